"""What a saturation runs: rule sets in steps, and what is known of their rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from esat.egraph.joins import Join
from esat.egraph.modules import Module


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
        Rules of unrelated patterns, by their rule set; one that would have more matches than the budget
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
