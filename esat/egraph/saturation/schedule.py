"""What a saturation runs: rule sets in steps, and what is known of their rules."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from esat.base.records import record

if TYPE_CHECKING:
    from esat.egraph.preparation.modules import Module


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
        the run. None: no limit, as long as the rule sets behave. With a limit, egglog compiles the rules
        again in each run, and finds all matches anew.
    rounds
        The step runs in the first so many rounds only; None: in all.
    from_nodes
        E-nodes above which the fuel counts; None: as many as there is fuel.
    """

    rulesets: tuple[str, ...]
    fuel: int | None = None
    rounds: int | None = None
    from_nodes: int | None = None


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
    watched_rulesets
        Rule sets that have a watched rule among theirs.
    rules
        All rules that may run; empty where that is not known.
    """

    steps: tuple[RuleStep, ...] = ()
    core: bool = True
    check_types: bool = False
    stabilizing: tuple[str, ...] = ()
    outward: tuple[str, ...] = ()
    normal: tuple[str, ...] = ()
    watched: frozenset[str] = frozenset()
    watched_rulesets: frozenset[str] = frozenset()
    rules: tuple[Module, ...] = ()
