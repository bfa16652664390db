"""Which rules of the rule files belong to a database of local optimizers, and how they are applied."""

from __future__ import annotations

from esat.base.records import record
from esat.classic.optimizers.global_optimizers import Optimizer
from esat.classic.optimizers.local import LocalOptimizer
from esat.classic.rules.rule_options import RuleOptions
from esat.classic.rules.rule_rewriter import RuleRewriter
from esat.classic.rules.rule_step import EGraphStep
from esat.egraph.preparation.replacements import saturating
from esat.egraph.preparation.rule_database import RuleDatabase
from esat.rules.language.query import Query
from esat.rules.language.rule import Rule
from esat.rules.language.rule_selection import is_of_package


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
            found.append(EGraphStep(selection, own, options, normalizes))
        return [*found, *(RuleRewriter(rule, context) for rule in opaque if self._runs(rule))]

    def _runs(self, rule: Rule) -> bool:
        return self.has(rule) or self.again in rule.tags
