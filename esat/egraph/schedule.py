"""What a saturation runs: rule sets in steps, and what is known of their rules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from esat.egraph.saturation_report import rule_name
from esat.records import record

if TYPE_CHECKING:
    from esat.egraph.match_counts import MatchBound
    from esat.egraph.modules import Module


LEAST_NODES, NODES_A_NODE = 5_000, 40
"""E-nodes that saturation may always come to, and those for each e-node that was loaded.

Graphs whose rules have an end come to two to seven times the e-nodes they were loaded with."""

LEAST_MATCHES, MATCHES_A_NODE = 50_000, 300
"""Matches that all rules together may always have, and those for each e-node that was loaded.

Graphs whose rules have an end need 20 to 60 for each, some of many fills and conditions 200."""


@record(frozen=True, slots=True)
class Budgets:
    """Limits of one saturation: of what it does, so that equal graphs end alike on any machine.

    Attributes
    ----------
    nodes
        E-nodes; None: as many as :data:`LEAST_NODES` and :data:`NODES_A_NODE` make.
    seconds
        Wall time. What the clock ends depends on what else the machine does.
    rounds
        Rounds; None: no limit.
    matches
        Matches of all rules together; None: as many as :data:`LEAST_MATCHES` and :data:`MATCHES_A_NODE` make.
    fuel
        Matches of a rule in one run, once its rule set has shown to explode.
    """

    nodes: int | None = None
    seconds: float = math.inf
    rounds: int | None = None
    matches: int | None = None
    fuel: int = 5_000

    def limits(self, loaded: int) -> GraphBudgets:
        """What these budgets are for a graph that was loaded as so many e-nodes."""
        return GraphBudgets(
            LEAST_NODES + NODES_A_NODE * loaded if self.nodes is None else self.nodes,
            self.seconds,
            math.inf if self.rounds is None else self.rounds,
            LEAST_MATCHES + MATCHES_A_NODE * loaded if self.matches is None else self.matches,
            self.fuel,
        )


@record(frozen=True, slots=True)
class GraphBudgets:
    """Budgets of one graph; see there."""

    nodes: int
    seconds: float
    rounds: float
    matches: int
    fuel: int


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
    stabilizing
        Rule sets that run to their end, whatever budget ended the others: right numbers depend on them.
    outward
        Rule sets that draw scalars and signs out of operations; they run within a round until that ends.
    normal
        Rule sets that bring terms into a normal form; they run whenever the index is brought up to date.
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
    stabilizing: tuple[str, ...] = ()
    outward: tuple[str, ...] = ()
    normal: tuple[str, ...] = ()
    watched: frozenset[str] = frozenset()
    joins: Mapping[str, tuple[MatchBound, ...]] = field(default_factory=dict)
    rules: Mapping[str, tuple[Module, ...]] = field(default_factory=dict)

    @cached_property
    def named(self) -> Mapping[str, tuple[Module, ...]]:
        """The rules by name: one of a user's may have the name of one of the layer itself."""
        found: dict[str, tuple[Module, ...]] = {}
        for rule in (rule for own in self.rules.values() for rule in own):
            found[rule.name] = (*found.get(rule.name, ()), rule)
        return found

    @cached_property
    def members(self) -> Mapping[str, Module]:
        """The rules by the rule sets that hold them alone."""
        return {rule.member: rule for own in self.rules.values() for rule in own}

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
