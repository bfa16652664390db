"""Which rules of a graph have something to match: those whose tables all have rows.

egglog takes its time for every rule of a run, even where a table that the rule needs is empty. A third of the
rules that could ever matter to a small graph need something that never turns up, or late.

Sets of tables are integers here, a bit a table: they are compared some thousand times in a saturation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from esat.egraph.schedule import RuleTables, Schedule


@dataclass(slots=True)
class _Selection:
    """Rules of some rule sets, by whether they have something to match.

    Attributes
    ----------
    waiting
        Those that have nothing, in order.
    empty
        Tables that stay without rows while only the others run.
    missing
        Tables that the waiting ones lack.
    members
        Of the others, by rule set, in order.
    """

    waiting: list[RuleTables]
    empty: int
    missing: int
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
        self._rules = schedule.rule_tables
        self._makes = schedule.tables_made
        self._empty = sum(bit for table, bit in schedule.table_bits.items() if sizes.get(table) == 0)
        self._selections: dict[tuple[str, ...], _Selection] = {}

    def note(self, matched: Iterable[str]) -> None:
        """Note that the rules of these names matched: what they make has rows from now on."""
        for name in matched:
            self._empty &= ~self._makes.get(name, 0)

    def members(self, rulesets: tuple[str, ...], repeated: bool) -> dict[str, tuple[str, ...]]:
        """The members of rule sets that have something to match.

        Parameters
        ----------
        rulesets
            What runs.
        repeated
            Whether one rule may run after another, so that they can feed each other.

        Returns
        -------
        dict
            Members by rule set, in order. The same object as before, if they are the same as before.
        """
        known = self._selections.get(rulesets)
        if known is None:
            rules = [rule for name in rulesets for rule in self._rules.get(name, ())]
            known = _Selection(rules, self._empty, self._empty, {})
        elif not known.missing & ~self._empty:
            return known.members
        selection = self._selections[rulesets] = self._widened(known, rulesets, repeated)
        return selection.members

    def _widened(self, known: _Selection, rulesets: tuple[str, ...], repeated: bool) -> _Selection:
        empty = known.empty & self._empty
        waiting = known.waiting
        while True:
            still: list[RuleTables] = []
            made = 0
            for rule in waiting:
                if rule.needs & empty:
                    still.append(rule)
                else:
                    made |= rule.makes
            waiting = still
            if not repeated or not made & empty:
                break
            empty &= ~made
        idle = {rule.member for rule in waiting}
        needed = 0
        for rule in waiting:
            needed |= rule.needs
        members = {
            name: tuple([rule.member for rule in self._rules.get(name, ()) if rule.member not in idle])
            for name in rulesets
        }
        return _Selection(waiting, empty, empty & needed, members)
