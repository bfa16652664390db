"""The order of steps: those that free most memory first."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from esat.graph import Variable
from esat.phases.effects import shown_positions
from esat.phases.group import Group

Roots = Mapping[Variable, frozenset[Variable]]
"""Variable -> the variables whose memory it may show: itself, unless it is a view or overwrites one."""

NOTHING: Mapping[Any, Any] = {}


def find_roots(groups: Sequence[Group], taken: Mapping[Variable, Variable] = NOTHING) -> Roots:
    """Whose memory each variable may share: through any number of views and of steps that overwrite.

    Parameters
    ----------
    groups
        The groups in order.
    taken
        Output of a kernel -> input whose memory it takes.
    """
    roots: dict[Variable, frozenset[Variable]] = {}
    for group in groups:
        for variable in group.reads:
            roots.setdefault(variable, frozenset((variable,)))
        for output in group.outputs:
            shown = [roots[variable] for variable in _shown(group, output, taken)]
            roots[output] = frozenset().union(*shown) if shown else frozenset((output,))
    return roots


def _shown(group: Group, output: Variable, taken: Mapping[Variable, Variable]) -> list[Variable]:
    """The inputs whose memory an output may share."""
    node = output.owner
    if group.kind == "kernel" or node is None or output.index is None:
        return [taken[output]] if output in taken else []
    positions = (*shown_positions(node, output.index), *node.op.destroy_map.get(output.index, ()))
    return [node.inputs[position] for position in positions]


def order_steps(
    groups: Sequence[Group],
    kept: Sequence[Variable],
    size: Callable[[Variable], float],
    after: Mapping[Group, Sequence[Group]] = NOTHING,
    taken: Mapping[Variable, Variable] = NOTHING,
) -> tuple[Group, ...]:
    """Order groups so that few bytes are alive at once.

    Of the groups that can run, the one that adds least to the live bytes runs next (results it makes
    less operands it is the last to read); ties go to the earlier one. The given order is kept where
    that does not lower the peak.

    Parameters
    ----------
    groups
        Groups in an order in which they can run.
    kept
        Variables that stay alive to the end.
    size
        Bytes of a variable.
    after
        Group -> groups that must run before it, beside those that feed it.
    taken
        Output of a kernel -> input whose memory it takes.
    """
    roots = find_roots(groups, taken)
    held = frozenset().union(*(roots.get(variable, frozenset((variable,))) for variable in kept))
    ordered = _Scheduler(groups, roots, held, size, after).run()
    given, found = (peak_bytes(order, roots, held, size) for order in (groups, ordered))
    return tuple(ordered if found < given else groups)


def peak_bytes(
    groups: Sequence[Group], roots: Roots, held: frozenset[Variable], size: Callable[[Variable], float]
) -> float:
    """The most bytes of computed variables that are alive at one time."""
    uses = _count_uses(groups, roots)
    made = {output for group in groups for output in group.outputs}
    alive = peak = 0.0
    for group in groups:
        alive += sum(size(output) for output in group.outputs if output in roots[output])
        peak = max(peak, alive)
        for root in _read_roots(group, roots):
            uses[root] -= 1
            if uses[root] == 0 and root not in held and root in made:
                alive -= size(root)
    return peak


def _read_roots(group: Group, roots: Roots) -> set[Variable]:
    return {root for variable in group.reads for root in roots[variable]}


def _count_uses(groups: Sequence[Group], roots: Roots) -> dict[Variable, int]:
    uses: dict[Variable, int] = {}
    for group in groups:
        for root in _read_roots(group, roots):
            uses[root] = uses.get(root, 0) + 1
    return uses


class _Scheduler:
    """Greedy list scheduling by the change in live bytes."""

    def __init__(
        self,
        groups: Sequence[Group],
        roots: Roots,
        held: frozenset[Variable],
        size: Callable[[Variable], float],
        after: Mapping[Group, Sequence[Group]],
    ) -> None:
        self.groups = groups
        self.held = held
        self.size = size
        self.reads = [_read_roots(group, roots) for group in groups]
        self.makes = [
            sum(size(output) for output in group.outputs if output in roots[output]) for group in groups
        ]
        self.producer = {output: number for number, group in enumerate(groups) for output in group.outputs}
        place = {group: number for number, group in enumerate(groups)}
        sources = [
            {self.producer[variable] for variable in group.reads if variable in self.producer}
            | {place[earlier] for earlier in after.get(group, ())}
            for group in groups
        ]
        self.waiting = [len(feeding) for feeding in sources]
        self.feeds: list[list[int]] = [[] for _ in groups]
        for number, feeding in enumerate(sources):
            for source in feeding:
                self.feeds[source].append(number)
        self.readers: dict[Variable, set[int]] = {}
        for number, reads in enumerate(self.reads):
            for root in reads:
                self.readers.setdefault(root, set()).add(number)

    def run(self) -> list[Group]:
        """The groups in their new order."""
        done = [False] * len(self.groups)
        heap = [(self._growth(number), number) for number, count in enumerate(self.waiting) if count == 0]
        heapq.heapify(heap)
        order: list[Group] = []
        while heap:
            growth, number = heapq.heappop(heap)
            if done[number] or growth != self._growth(number):
                continue  # an older price: the group was entered again when it changed
            done[number] = True
            order.append(self.groups[number])
            for following in self.feeds[number]:
                self.waiting[following] -= 1
                if self.waiting[following] == 0:
                    heapq.heappush(heap, (self._growth(following), following))
            for root in self.reads[number]:
                self.readers[root].discard(number)
                if len(self.readers[root]) == 1:
                    (last,) = self.readers[root]
                    if self.waiting[last] == 0:
                        heapq.heappush(heap, (self._growth(last), last))
        return order

    def _growth(self, number: int) -> float:
        freed = sum(
            self.size(root)
            for root in self.reads[number]
            if len(self.readers[root]) == 1 and root not in self.held and root in self.producer
        )
        return self.makes[number] - freed
