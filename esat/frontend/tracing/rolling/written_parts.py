"""Arrays to parts of which branches have written: these parts are chosen, not the whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from esat.frontend.tracing.values.arrays import Value
from esat.frontend.tracing.values.merging import Merge
from esat.graph.op import as_variable
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.arrays.creation import Alloc, alloc
from esat.ops.index.write import PartWrite, Replacing

MOST_WRITES = 8
"""Writes of both branches together; more of them are one choice between whole arrays."""
Put: TypeAlias = Callable[[Variable], None]
Parts: TypeAlias = list[Variable | None]


class WrittenParts:
    """Writes that take place after both branches, of what is chosen for each part.

    Parameters
    ----------
    merge
        Where the pairs of values are added.
    is_known_place
        Whether it is known that an index is one of the array's.
    """

    def __init__(self, merge: Merge, is_known_place: Callable[[Variable], bool]) -> None:
        self._merge, self._is_known_place = merge, is_known_place
        self._plans: list[tuple[Variable, list[Apply], Parts, Put]] = []

    def add(self, before: Value, then: Value, otherwise: Value, put: Put) -> bool:
        """Add an array; whether it is found by writes to parts of what it was.

        Parameters
        ----------
        before, then, otherwise
            What it held before the branches, and after each of them.
        put
            Given what it holds from now on.
        """
        chains = [self._writes(one, before) for one in (then, otherwise)]
        if chains[0] is None or chains[1] is None:
            return False
        writes = [*chains[0], *chains[1]]
        if len(chains[0]) == len(chains[1]) == 1 and _place(writes[0]) == _place(writes[1]):
            del writes[1:]
        whole = writes[0].inputs[0] if writes else None
        if whole is None or len(writes) > MOST_WRITES:
            return False
        sides = [whole if one is before else as_variable(one) for one in (then, otherwise)]
        pairs = [[_part(side, write) for side in sides] for write in writes]
        parts: Parts = [None] * len(writes)
        for place, (write, pair) in enumerate(zip(writes, pairs, strict=True)):
            type = write.op.part_of(whole, write.inputs[2:]).type  # type: ignore[attr-defined]
            if None in type.shape:
                return False
            full = [one if one.type == type else alloc(one, *type.shape) for one in pair]
            self._merge.add_variables(full[0], full[1], _putting(parts, place))
        self._plans.append((whole, writes, parts, put))
        return True

    def build(self) -> None:
        """Write what was chosen."""
        for before, writes, parts, put in self._plans:
            whole = before
            for write, part in zip(writes, parts, strict=True):
                whole = write.op.make_node(whole, part, *write.inputs[2:]).outputs[0]
            put(whole)

    def _writes(self, value: Value, before: Value) -> list[Apply] | None:
        """The writes that made an array of what it was before, in order; None where it was made otherwise."""
        writes = list[Apply]()
        while value is not before:
            node = value.owner if isinstance(value, Variable) else None
            if node is None or not isinstance(node.op, Replacing) or not _is_write(node.op):
                return writes[::-1] if writes and _is_known_as(value, before) else None
            if not all(map(self._is_known_place, node.inputs[2:])):
                return None
            writes.append(node)
            value = node.inputs[0]
        return writes[::-1]


def _is_write(op: PartWrite) -> bool:
    return not op.inplace


def _putting(parts: Parts, place: int) -> Put:
    def put(chosen: Variable) -> None:
        parts[place] = chosen

    return put


def _place(write: Apply) -> object:
    return write.op, tuple(map(_key, write.inputs[2:]))


def _key(place: Variable) -> object:
    return place.data.tobytes() if isinstance(place, Constant) else id(place)


def _part(array: Variable, write: Apply) -> Variable:
    """What an array has where a node writes."""
    if array.owner is not None and _place(array.owner) == _place(write):
        return array.owner.inputs[1]
    part: Variable = write.op.part_of(array, write.inputs[2:])  # type: ignore[attr-defined]
    return part


def _is_known_as(value: Value, before: Value) -> bool:
    """Whether a Variable is what a known array became when it was written to."""
    if isinstance(before, Variable) or not isinstance(value, Variable):
        return False
    if isinstance(value, Constant):
        return bool(value.data.tobytes() == before.tobytes())
    fill = value.owner.inputs[0] if value.owner is not None and isinstance(value.owner.op, Alloc) else None
    return isinstance(fill, Constant) and np.full_like(before, fill.data).tobytes() == before.tobytes()
