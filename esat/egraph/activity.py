"""Which rules of a graph have something to match: those whose tables all have rows.

egglog takes its time for every rule of a run, even where a table that the rule needs is empty. A third of the
rules that could ever matter to a small graph need something that never turns up, or late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from esat.egraph.modules import Module
from esat.egraph.schedule import Schedule


@dataclass(slots=True)
class _Selection:
    """Rules of some rule sets, by whether they have something to match.

    Attributes
    ----------
    rules
        All, in order.
    waiting
        Those that have nothing.
    empty
        Tables that stay without rows while only the others run.
    missing
        Tables that the waiting ones lack.
    members
        Of the others, by rule set, in order.
    """

    rules: tuple[Module, ...]
    waiting: list[Module]
    empty: frozenset[str]
    missing: frozenset[str]
    members: dict[str, tuple[str, ...]]


class Activity:
    """Keeps track of the tables of an e-graph that have no rows.

    Parameters
    ----------
    schedule
        Has the rules.
    sizes
        Rows by table, of all tables.
    """

    def __init__(self, schedule: Schedule, sizes: Mapping[str, int]) -> None:
        self._schedule = schedule
        self._empty = frozenset(name for name, rows in sizes.items() if not rows)
        self._selections: dict[tuple[str, ...], _Selection] = {}

    def note(self, matched: Iterable[str]) -> None:
        """Note that the rules of these names matched: what they make has rows from now on."""
        named, empty = self._schedule.named, self._empty
        made = [
            rule.makes for name in matched for rule in named.get(name, ()) if not rule.makes.isdisjoint(empty)
        ]
        if made:
            self._empty = empty.difference(*made)

    def members(self, rulesets: tuple[str, ...], repeated: bool) -> dict[str, tuple[str, ...]]:
        """The members of rule sets that have something to match.

        Parameters
        ----------
        rulesets
            What runs.
        repeated
            Whether it runs again until nothing changes, so that its rules can feed each other.

        Returns
        -------
        dict
            Members by rule set, in order. The same object as before, if they are the same as before.
        """
        known = self._selections.get(rulesets)
        if known is None:
            rules = tuple(rule for name in rulesets for rule in self._schedule.rules.get(name, ()))
            known = _Selection(rules, list(rules), self._empty, self._empty, {})
        elif known.missing <= self._empty:
            return known.members
        selection = self._selections[rulesets] = self._widened(known, rulesets, repeated)
        return selection.members

    def _widened(self, known: _Selection, rulesets: tuple[str, ...], repeated: bool) -> _Selection:
        empty = known.empty & self._empty
        waiting = known.waiting
        while True:
            matching = [rule for rule in waiting if rule.needs.isdisjoint(empty)]
            if not matching:
                break
            waiting = [rule for rule in waiting if not rule.needs.isdisjoint(empty)]
            if repeated:
                empty = empty.difference(*(rule.makes for rule in matching))
        idle = {rule.member for rule in waiting}
        members: dict[str, list[str]] = {name: [] for name in rulesets}
        for rule in known.rules:
            if rule.member not in idle:
                members[rule.ruleset].append(rule.member)
        missing = empty.intersection(frozenset().union(*(rule.needs for rule in waiting)))
        return _Selection(
            known.rules, waiting, empty, missing, {name: tuple(own) for name, own in members.items()}
        )
