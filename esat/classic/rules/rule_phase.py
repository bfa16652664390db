"""Which rules of the rule files belong to a database of local optimizers, and how they are applied."""

from __future__ import annotations

import importlib
from dataclasses import field

from esat.base.records import record
from esat.classic.optimizers.global_optimizers import Optimizer
from esat.classic.optimizers.local import LocalOptimizer
from esat.classic.rules.rule_rewriter import RuleContext, RuleRewriter
from esat.egraph.language.constructors import op_signature
from esat.egraph.preparation.replacements import saturating
from esat.extract.prices.expected_shapes import Expected
from esat.extract.prices.lasting import Repeated
from esat.extract.prices.machine import MachineProfile
from esat.extract.verdicts import Accuracy
from esat.rules.language.database import RuleDatabase, is_of_package
from esat.rules.language.query import Query
from esat.rules.language.rule import Rule, RuleFile, Soundness


@record(frozen=True)
class RuleTexts:
    """What users' rules a compilation takes beside the package's.

    Attributes
    ----------
    extra
        Texts of this compilation.
    users
        What was added to the database.
    """

    extra: tuple[RuleFile, ...]
    users: tuple[RuleFile, ...]


@record(frozen=True)
class RuleOptions:
    """How rules are selected and applied, beside their tags.

    Attributes
    ----------
    soundness
        The loosest class admitted.
    extra
        Rule files of one compilation.
    machine
        What the cost model prices replacements with.
    shapes
        Expected shapes of the graph's inputs, by position.
    users
        What users added to the database; None: what is there now.
    accuracy
        What forms are chosen by before time.
    repeated
        Of the body of a loop, what is computed once.
    """

    soundness: Soundness = "real"
    extra: tuple[RuleFile, ...] = ()
    machine: MachineProfile = field(default_factory=MachineProfile)
    shapes: Expected = ()
    users: tuple[RuleFile, ...] | None = None
    accuracy: Accuracy = "best"
    repeated: Repeated | None = None

    def context(self, database: RuleDatabase) -> RuleContext:
        """What rules of ops that only Python types share, those of a database among them."""
        added = database.users_files() if self.users is None else self.users
        return RuleContext(op_signature(), [file.file for file in added])


@record(frozen=True)
class RuleSource:
    """The rules that belong to one database of local optimizers.

    Attributes
    ----------
    database
        Where they come from.
    tag
        What they are tagged with.
    rest_without
        Where given, rules that have none of these tags belong here, too.
    again
        A tag of rules that belong to an earlier database, and have their turn again with what was made since.
    """

    database: RuleDatabase
    tag: str
    rest_without: frozenset[str] | None = None
    again: str = ""

    def rules(self, query: Query, options: RuleOptions) -> list[Rule]:
        """The rules a Query selects, in order of their files."""
        selection = self.database.query(
            query, soundness=options.soundness, extra=options.extra, users=options.users
        )
        return [rule for rule in selection.rules if self.has(rule)]

    def has(self, rule: Rule) -> bool:
        """Whether a rule belongs to the database."""
        rest = self.rest_without is not None and not rule.tags & self.rest_without
        return rest or self.tag in rule.tags

    def optimizers(
        self, query: Query, options: RuleOptions, normalizes: bool
    ) -> list[Optimizer | LocalOptimizer]:
        """What makes the replacements of rules that a Query selects: one step of an e-graph, for most.

        Parameters
        ----------
        normalizes
            Whether the step normalizes sums and products where no rule has anything to say, too.
        """
        selected = self.database.query(
            query, soundness=options.soundness, extra=options.extra, users=options.users
        )
        selection, opaque = saturating(selected)
        context = options.context(self.database)
        found: list[Optimizer | LocalOptimizer] = []
        own = [rule for rule in selection.rules if self._runs(rule)]
        if own:
            rest = set(selection.rules).difference(own)
            selection = selection.without([rule for rule in rest if not is_of_package(rule.file)])
            # It needs all that modes which saturate need, which stands behind this room.
            step = importlib.import_module("esat.optimize.rule_step")
            found.append(step.EGraphStep(selection, own, options, normalizes))
        return [*found, *(RuleRewriter(rule, context) for rule in opaque if self._runs(rule))]

    def _runs(self, rule: Rule) -> bool:
        return self.has(rule) or self.again in rule.tags
