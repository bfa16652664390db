"""What a saturation runs: rule sets in steps, and what is known of their rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from esat.egraph.report import rule_name
from esat.records import record

if TYPE_CHECKING:
    from esat.egraph.joins import Join
    from esat.egraph.modules import Module


@record(frozen=True, slots=True)
class Budgets:
    """Limits of one saturation.

    Attributes
    ----------
    nodes
        E-nodes.
    seconds
        Wall time.
    rounds
        Rounds.
    matches
        Fuel of a rule set once it has shown to explode.
    """

    nodes: int = 100_000
    seconds: float = 5.0
    rounds: int = 8
    matches: int = 5_000


@record(frozen=True, slots=True)
class RuleStep:
    """Rule sets that run once a round.

    Attributes
    ----------
    rulesets
        In the order they run.
    fuel
        Matches a rule may have in one run, from ``from_nodes`` on; a rule with more matches is left out of
        the run. None: no limit, as long as the rule sets behave. A run with a limit is slow: it compiles the
        rules again and finds all matches anew.
    rounds
        The step runs in the first so many rounds only; None: in all.
    from_nodes
        E-nodes above which the fuel counts; None: as many as there is fuel.
    """

    rulesets: tuple[str, ...]
    fuel: int | None = None
    rounds: int | None = None
    from_nodes: int | None = None


@record(frozen=True, slots=True)
class RuleTables:
    """A rule, and sets of tables, each a sum of :attr:`Schedule.table_bits`.

    Attributes
    ----------
    ruleset, member
        As of a :class:`~esat.egraph.modules.Module`.
    needs, makes
        Its tables.
    """

    ruleset: str
    member: str
    needs: int
    makes: int


@record(frozen=True)
class Schedule:
    """What to run.

    Attributes
    ----------
    steps
        The rules of files, in order.
    core
        Whether the engine holds the layer of n-ary sums and products.
    check_types
        Compute types after every step, for debugging: the error about a rule that changed a type then names
        only rules of the step that did it.
    watched
        Names of rules that are reported when they have no end: those of users.
    joins
        Rules that may have too many matches, by their rule set; one that would have more than the budget
        admits does not run.
    rules
        The rules of the rule sets, by which those with nothing to match are left out; empty: all run.
    """

    steps: tuple[RuleStep, ...] = ()
    core: bool = True
    check_types: bool = False
    watched: frozenset[str] = frozenset()
    joins: Mapping[str, tuple[Join, ...]] = field(default_factory=dict)
    rules: Mapping[str, tuple[Module, ...]] = field(default_factory=dict)

    @cached_property
    def named(self) -> Mapping[str, tuple[Module, ...]]:
        """The rules by name: one of a user's may have the name of one of the layer itself."""
        found: dict[str, tuple[Module, ...]] = {}
        for rule in (rule for own in self.rules.values() for rule in own):
            found[rule.name] = (*found.get(rule.name, ()), rule)
        return found

    @cached_property
    def table_bits(self) -> Mapping[str, int]:
        """A bit for every table of a rule."""
        tables: dict[str, int] = {}
        for rule in (rule for own in self.rules.values() for rule in own):
            for table in (*rule.needs, *rule.makes):
                if table not in tables:
                    tables[table] = 1 << len(tables)
        return tables

    @cached_property
    def rule_tables(self) -> Mapping[str, tuple[RuleTables, ...]]:
        """The rules of each rule set, in order."""
        return {
            ruleset: tuple(
                RuleTables(ruleset, rule.member, self._set_of(rule.needs), self._set_of(rule.makes))
                for rule in own
            )
            for ruleset, own in self.rules.items()
        }

    @cached_property
    def tables_made(self) -> Mapping[str, int]:
        """What rules of a name make, as a set of tables."""
        made: dict[str, int] = {}
        for ruleset, own in self.rules.items():
            for rule, tables in zip(own, self.rule_tables[ruleset], strict=True):
                made[rule.name] = made.get(rule.name, 0) | tables.makes
        return made

    def _set_of(self, tables: frozenset[str]) -> int:
        bits, result = self.table_bits, 0
        for table in tables:
            result |= bits[table]
        return result

    @cached_property
    def watched_rulesets(self) -> frozenset[str]:
        """Rule sets that have a watched rule among theirs."""
        return frozenset(
            ruleset
            for ruleset, own in self.rules.items()
            if any(rule_name(rule.name) in self.watched for rule in own)
        )
