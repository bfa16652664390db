"""Rules of the rule files as one step of a classic equilibrium."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable
from dataclasses import field

from esat.classic.cheaper import CheaperRule
from esat.classic.equilibrium import EquilibriumOptimizer
from esat.classic.global_optimizers import Optimizer
from esat.classic.graph_terms import DropReducedAxes, KeepReducedAxes
from esat.classic.local import LocalOptimizer
from esat.classic.profile import OptimizerProfile
from esat.classic.rule_rewriter import RuleContext
from esat.classic.sizes import ExpectedSizes
from esat.egraph.constructors import op_signature
from esat.egraph.replacements import unanswered
from esat.errors import EsatWarning
from esat.extract.cost import CostModel
from esat.extract.expected_shapes import Expected
from esat.extract.machine import MachineProfile
from esat.graph import FunctionGraph
from esat.records import record
from esat.rules.database import RuleDatabase
from esat.rules.query import Query
from esat.rules.replacement import replacement_of
from esat.rules.rule import Rule, RuleFile, Soundness


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
    """

    soundness: Soundness = "real"
    extra: tuple[RuleFile, ...] = ()
    machine: MachineProfile = field(default_factory=MachineProfile)
    shapes: Expected = ()
    users: tuple[RuleFile, ...] | None = None

    def require_replacements(self, database: RuleDatabase, query: Query) -> None:
        """See that greedy rewriting can do what users' rules say.

        Raises
        ------
        RuleError
            For a rule of one compilation that is no replacement, or asks what only an e-graph can tell.

        Warns
        -----
        EsatWarning
            For such a rule that was added for all compilations: it has no effect.
        """
        given = {file.file for file in self.extra}
        added = database.users_files() if self.users is None else self.users
        names = given.union(file.file for file in added)
        if not names:
            return
        selection = database.query(query, soundness=self.soundness, extra=self.extra, users=self.users)
        for rule in selection.rules:
            reason = unanswered(rule) if rule.file in names else ""
            if reason:
                error = rule.error(f"a greedy mode has no e-graph, and this rule no effect there: {reason}")
                if rule.file in given:
                    raise error
                warnings.warn(str(error), EsatWarning, stacklevel=2)

    def context(self, database: RuleDatabase) -> RuleContext:
        """What replacements share, those of a database among them."""
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

    def optimizers(self, query: Query, options: RuleOptions) -> list[LocalOptimizer]:
        """Those of the rules that can be read as replacements, as local optimizers."""
        selection = self.database.query(
            query, soundness=options.soundness, extra=options.extra, users=options.users
        )
        rules = [rule for rule in selection.rules if self.has(rule) or self.again in rule.tags]
        rules = [rule for rule in rules if replacement_of(rule) is not None]
        if not rules:
            return []
        context = options.context(self.database)
        model = CostModel(options.machine)
        sizes = ExpectedSizes(options.shapes)
        return [CheaperRule(rule, context, model, sizes) for rule in rules]


class RulePhase(Optimizer):
    """An equilibrium of rules on the graph in the form that rules speak of.

    Rules that did not come to rest had their turn: going on would let the graph grow by a factor in each pass
    of the equilibrium around it.
    """

    name = "rules"

    def __init__(self, optimizers: Iterable[LocalOptimizer | Optimizer]) -> None:
        self.inner = EquilibriumOptimizer(optimizers, name=self.name)
        self._restless: weakref.ref[FunctionGraph] | None = None

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile:
        if self._restless is not None and self._restless() is fgraph:
            return OptimizerProfile(self.inner.label, "EquilibriumOptimizer")
        for sizes in {rule.sizes for rule in self.inner.locals if isinstance(rule, CheaperRule)}:
            sizes.begin(fgraph)
        KeepReducedAxes().optimize(fgraph)
        profile = self.inner.optimize(fgraph)
        DropReducedAxes().optimize(fgraph)
        if profile.note:
            self._restless = weakref.ref(fgraph)
        return profile

    def summary(self) -> list[str]:
        """Rules that are applied wherever they match first, then those that the cost model decides about."""
        first, *lines = self.inner.summary()
        rules = (rule for rule in self.inner.locals if isinstance(rule, CheaperRule))
        priced = {f"  {rule.label}" for rule in rules if not rule.is_always_made}
        below = [f"  {line}" for line in lines if line in priced]
        head = ["  where the cost model finds that cheaper:"] if below else []
        return [first, *(line for line in lines if line not in priced), *head, *below]
