"""Names for axes: which axes of the variables of a group one loop can run along.

Index that ops make equal share a name. Each use of a group's input is named apart, so that ``x + x.T``
reads ``x`` along two pairs of axes; uses are then made to agree where nothing speaks against it, so
that the two readings of ``x`` in ``x - x.mean(0)`` fall together.
"""

from __future__ import annotations

from collections.abc import Sequence

from esat.base.records import record
from esat.base.union_find import UnionFind
from esat.codegen.kernel.loop_ir import Index
from esat.codegen.lowering.unsupported import UnsupportedError
from esat.graph import Apply, Family, Variable
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.index.part import Part, part_of
from esat.ops.index.write import PartWrite
from esat.ops.reduction import Reduction

Use = tuple[int, int]
"""Position of a node in the group, and of an operand of it."""


@record(frozen=True)
class AxisNames:
    """Loop axes, as arbitrary numbers, of everything in a group.

    Attributes
    ----------
    computed
        For each variable the nodes compute, the loop axis along each of its axes; None for size 1.
    uses
        The same for each use of an input; of one that is read at places that values say, None for their axes.
    parts
        For each node that writes a part, by its position, the loop axis along each axis of the part.
    """

    computed: dict[Variable, Index]
    uses: dict[Use, Index]
    parts: dict[int, Index]

    def operand(self, node: Apply, use: Use) -> Index:
        """The loop axes along which the operand at ``use`` of ``node`` is read."""
        known = self.computed.get(node.inputs[use[1]])
        return self.uses[use] if known is None else known

    def renumbered(self, order: Sequence[int]) -> AxisNames:
        """The same with each axis called by its place in ``order``."""
        places: dict[int | None, int | None] = {axis: place for place, axis in enumerate(order)}
        places[None] = None
        return AxisNames(
            {variable: tuple(places[axis] for axis in index) for variable, index in self.computed.items()},
            {use: tuple(places[axis] for axis in index) for use, index in self.uses.items()},
            {node: tuple(places[axis] for axis in index) for node, index in self.parts.items()},
        )


def name_axes(nodes: Sequence[Apply]) -> AxisNames:
    """Name the axes of ``nodes``, which stand in topological order.

    Raises
    ------
    UnsupportedError
        When a variable would have to be computed along several sets of loops.
    """
    return _Naming(nodes).result()


class _Naming:
    def __init__(self, nodes: Sequence[Apply]) -> None:
        self.nodes = nodes
        self.equal = UnionFind[int]()
        self.slots = 0
        self.computed: dict[Variable, Index] = {}
        self.uses: dict[Use, Index] = {}
        self.inputs: dict[Variable, list[Use]] = {}
        self.parts: dict[int, Index] = {}
        self.written: set[Variable] = set()
        for position, node in enumerate(nodes):
            part = part_of(node)
            if part is not None and isinstance(node.op, PartWrite):
                self._write(position, node, part)
                continue
            operands = [
                self._operand((position, place)) if part is None or place else self._source(position, part)
                for place in range(len(node.inputs))
            ]
            for output in node.outputs:
                self.computed[output] = self._new(output)
            result = self.computed[node.outputs[0]]
            if part is None:
                self._relate(node, operands, result)
            else:
                self._relate_part(part, operands, result)
        if self._conflict():
            raise UnsupportedError("a variable would run along one loop by two of its axes")
        for uses in self.inputs.values():
            for use in uses[1:]:
                self._agree(self.uses[uses[0]], self.uses[use])

    def result(self) -> AxisNames:
        return AxisNames(
            {variable: self._roots(slots) for variable, slots in self.computed.items()},
            {use: self._roots(slots) for use, slots in self.uses.items()},
            {position: self._roots(slots) for position, slots in self.parts.items()},
        )

    def _new(self, variable: Variable) -> Index:
        slots: list[int | None] = []
        for flag in variable.tensor_type.broadcastable:
            if flag:
                slots.append(None)
            else:
                slots.append(self._slot())
        return tuple(slots)

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _operand(self, use: Use) -> Index:
        variable = self.nodes[use[0]].inputs[use[1]]
        if variable in self.written:
            raise UnsupportedError("an array is read of which a part is written")
        known = self.computed.get(variable)
        if known is None:
            known = self.uses[use] = self._new(variable)
            self.inputs.setdefault(variable, []).append(use)
        return known

    def _source(self, position: int, part: Part) -> Index:
        """The axes of an array of which a node reads a part: loops run along those of slices only."""
        variable = self.nodes[position].inputs[0]
        if variable in self.computed:
            raise UnsupportedError("what the kernel computes is read at places that values say")
        whole = self._new(variable)
        slots = tuple(
            slot if isinstance(axis, int) else None for slot, axis in zip(whole, part.axes, strict=True)
        )
        self.uses[position, 0] = slots
        return slots

    def _write(self, position: int, node: Apply, part: Part) -> None:
        """Name the axes of a part that is written: none is one of the array's own, which is filled first."""
        if node.inputs[0] in self.computed:
            raise UnsupportedError("a part of what the kernel computes is written")
        operands = [self._operand((position, place)) for place in range(len(node.inputs))]
        (output,) = node.outputs
        result = self.computed[output] = self._new(output)
        self.written.add(output)
        self._equate(operands[0], result)
        slots: list[int | None] = list(operands[1])

        def meet(axis: int, slot: int | None) -> None:
            known = slots[axis]
            if known is None:
                slots[axis] = slot
            elif slot is not None:
                self._union(known, slot)

        for whole, along in zip(result, part.axes, strict=True):
            if isinstance(along, int) and whole is not None:
                meet(along, self._slot())
        for place, axes in part.arrays.items():
            for slot, axis in zip(operands[place], axes, strict=True):
                meet(axis, slot)
        self.parts[position] = tuple(slots)

    def _relate_part(self, part: Part, operands: list[Index], result: Index) -> None:
        for slot, axis in zip(operands[0], part.axes, strict=True):
            if isinstance(axis, int):
                self._equate((slot,), (result[axis],))
        for position, axes in part.arrays.items():
            for slot, axis in zip(operands[position], axes, strict=True):
                if slot is not None:
                    self._equate((slot,), (result[axis],))

    def _relate(self, node: Apply, operands: list[Index], result: Index) -> None:
        op = node.op
        if isinstance(op, DimShuffle):
            if any(operands[0][axis] is not None for axis in op.dropped):
                raise UnsupportedError(f"{op} drops an axis of unknown size")
            shown = tuple(None if axis == "x" else operands[0][int(axis)] for axis in op.order)
            self._equate(shown, result)
        elif isinstance(op, Reduction):
            kept = tuple(None if axis in op.axes else slot for axis, slot in enumerate(operands[0]))
            if not op.keepdims:
                kept = tuple(slot for axis, slot in enumerate(operands[0]) if axis not in op.axes)
            self._equate(kept, result)
        elif op.family is Family.ELEMENTWISE:
            self._relate_elementwise(operands, result)
        else:
            self._equate(operands[0], result)

    def _relate_elementwise(self, operands: list[Index], result: Index) -> None:
        for axis, place in enumerate(result):
            slots = [slot for slot in (operand[axis] for operand in operands) if slot is not None]
            if (place is None) != (not slots):
                raise UnsupportedError("the type of a result does not follow from its operands")
            for slot in slots:
                assert place is not None
                self._union(place, slot)

    def _equate(self, first: Index, second: Index) -> None:
        for one, other in zip(first, second, strict=True):
            if (one is None) != (other is None):
                raise UnsupportedError("the type of a result does not follow from its operand")
            if one is not None and other is not None:
                self._union(one, other)

    def _union(self, first: int, second: int) -> None:
        self.equal.unite(*sorted((self.equal.find(first), self.equal.find(second))))

    def _roots(self, slots: Index) -> Index:
        return tuple(None if slot is None else self.equal.find(slot) for slot in slots)

    def _conflict(self) -> bool:
        for slots in (*self.computed.values(), *self.uses.values(), *self.parts.values()):
            roots = [root for root in self._roots(slots) if root is not None]
            if len(set(roots)) < len(roots):
                return True
        return False

    def _agree(self, first: Index, second: Index) -> None:
        """Let two uses of one variable run along the same loops if that leads to no conflict."""
        if self._roots(first) == self._roots(second):
            return
        before = dict(self.equal.parent)
        self._equate(first, second)
        if self._conflict():
            self.equal.parent = before
