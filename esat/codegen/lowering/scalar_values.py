"""Nodes as scalar values: loads, computations and reductions, each with the axes it varies with.

Values are shared: two nodes that compute the same thing from the same values give one value. Views
give none, they only rename axes. Softmax and log-sum-exp become the steps they consist of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from esat.base.records import record
from esat.codegen.kernel.loop_ir import (
    MAXIMUM,
    MINIMUM,
    Accumulator,
    AccumulatorKind,
    At,
    Compute,
    Convert,
    Definition,
    Index,
    Literal,
    Load,
    LoadAt,
    Places,
    Size,
    axes_of,
    operands_of,
)
from esat.codegen.lowering.axes import AxisNames
from esat.codegen.lowering.powers import exponent_of, float_power, integer_power
from esat.codegen.lowering.unsupported import UnsupportedError
from esat.graph import Apply, Constant, Variable
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.cast import Cast
from esat.ops.elementwise.arithmetic import mul
from esat.ops.elementwise.records.code import KERNEL_DTYPES, expression
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.index.advanced import AdvancedSetSubtensor, AdvancedSubtensor
from esat.ops.index.part import Chosen, part_of, range_of
from esat.ops.index.write import Adding
from esat.ops.normalization import Normalization
from esat.ops.reduction import Reduction

COSTLY_FLOPS = 8.0
"""Work of one element from which a value is rather kept in memory than computed again."""

_COMBINE = {"{0} or {1}": "{0} | {1}", "{0} and {1}": "{0} & {1}"}
"""Templates of reductions in a form without branches."""

SUM = "{0} + {1}"

_OUTSIDE = "({0} < -{2}) | ({1} >= {2})"
"""Whether places between the first two numbers can lie outside an axis of so many elements."""
_FROM_FRONT = "{0} + ({0} >> 63 & {1})"
"""A place, counted from the front of an axis of so many elements if it is negative."""
_FROM_FRONT_AMONG = "select({2} < 0, {0} + ({0} >> 63 & {1}), {0})"
"""The same of one of several, of which the third number is the lowest: where none is negative, nothing is
added, and LLVM makes a loop of its own for that."""


@record(frozen=True)
class Scattered:
    """A value that is written to a part of a variable, which holds its first operand before.

    Attributes
    ----------
    axes
        Of the part.
    """

    variable: Variable
    index: Places
    value: int
    adds: bool
    axes: tuple[int, ...]
    comment: str


@record(frozen=True)
class Fold:
    """A value gathered over ``bound`` axes, in order, from the value ``operand``."""

    accumulator: Accumulator
    operand: int
    bound: tuple[int, ...]

    @property
    def value(self) -> int:
        """The number of the result."""
        return self.accumulator.value


Node: TypeAlias = Definition | Fold


def operands(node: Node) -> tuple[int, ...]:
    """The values that a value is computed from."""
    return (node.operand,) if isinstance(node, Fold) else operands_of(node)


def literal_text(value: Any, dtype: str) -> str:
    """Source text of a number of ``dtype``."""
    if dtype == "bool":
        return str(bool(value))
    number = float(value) if dtype.startswith("float") else int(value)
    return f"{dtype}({number!r})"


def is_literal(variable: Variable) -> bool:
    """Whether a variable is a constant of one element, which stands in the source of a kernel."""
    return isinstance(variable, Constant) and variable.data.size == 1


class Values:
    """The values of a group's nodes.

    Attributes
    ----------
    nodes
        Each value's definition; its position is its number.
    depends
        For each value the axes it varies with.
    flops
        For each value the work of computing one element, in additions.
    of
        The value of each variable the nodes compute.
    checks
        Bool values that do not vary with any axis: where one is True, an index is out of bounds.
    scattered
        What is written to parts of variables.
    """

    def __init__(self, nodes: Sequence[Apply], names: AxisNames, numbers: dict[Variable, int]) -> None:
        self.nodes: list[Node] = []
        self.depends: list[frozenset[int]] = []
        self.flops: list[float] = []
        self.of: dict[Variable, int] = {}
        self.checks: list[int] = []
        self.scattered: list[Scattered] = []
        self._names = names
        self._numbers = numbers
        self._known: dict[Node, int] = {}
        self._limits: dict[tuple[int, int], tuple[dict[int, None], str]] = {}
        """For each pair of values, the sizes of axes that places between the two must be within."""
        for position, node in enumerate(nodes):
            self._add_node(position, node)
        self._check_places()

    def add_fold(self, fold: Fold) -> int:
        """A further fold of known values, under a number of its own."""
        value = len(self.nodes)
        fold = replace(fold, accumulator=replace(fold.accumulator, value=value))
        return self._append(fold, self.depends[fold.operand] - frozenset(fold.bound), 1.0)

    def needed(self, values: Sequence[int]) -> set[int]:
        """Values, and all that they are computed from."""
        found: set[int] = set()
        pending = list(values)
        while pending:
            value = pending.pop()
            if value not in found:
                found.add(value)
                pending += operands(self.nodes[value])
        return found

    def _append(self, node: Node, depends: frozenset[int], flops: float) -> int:
        self.nodes.append(node)
        self.depends.append(depends)
        self.flops.append(flops)
        return len(self.nodes) - 1

    def _define(self, node: Node, flops: float = 0.0) -> int:
        """The number of a value equal to ``node``, which has number -1."""
        known = self._known.get(node)
        if known is not None:
            return known
        value = len(self.nodes)
        own = axes_of(node.index) if isinstance(node, Load | LoadAt) else ()
        depends = frozenset(own).union(*(self.depends[operand] for operand in operands(node)))
        numbered: Node
        if isinstance(node, Fold):
            depends -= frozenset(node.bound)
            numbered = replace(node, accumulator=replace(node.accumulator, value=value))
        else:
            numbered = replace(node, value=value)
        self._known[node] = value
        return self._append(numbered, depends, flops)

    # ---- operands

    def _operand(self, position: int, place: int, node: Apply) -> int:
        variable = node.inputs[place]
        known = self.of.get(variable)
        if known is not None:
            return known
        dtype = variable.tensor_type.dtype
        comment = str(variable)
        if isinstance(variable, Constant) and is_literal(variable):
            text = literal_text(variable.data.reshape(()).item(), dtype)
            return self._define(Literal(-1, dtype, text, comment))
        index = self._names.uses[position, place]
        return self._define(Load(-1, self._numbers[variable], index, comment))

    # ---- nodes

    def _add_node(self, position: int, node: Apply) -> None:
        op = node.op
        output = node.outputs[0]
        if isinstance(op, DimShuffle):
            self.of[output] = self._operand(position, 0, node)
        elif isinstance(op, Cast):
            source = node.inputs[0].tensor_type.dtype
            operand = self._operand(position, 0, node)
            self.of[output] = self._define(Convert(-1, op.dtype, operand, source, str(node)), 1.0)
        elif isinstance(op, Elementwise):
            self.of[output] = self._elementwise(position, node, op)
        elif isinstance(op, AdvancedSetSubtensor):
            self.of[output] = self._operand(position, 0, node)
            self._scatter(position, node, op)
        elif isinstance(op, AdvancedSubtensor):
            self.of[output] = self._gathered(position, node)
        elif isinstance(op, Reduction | Normalization):
            operand = self._operand(position, 0, node)
            index = self._names.operand(node, (position, 0))
            bound = tuple(axis for axis in (index[axis] for axis in op.axes) if axis is not None)
            dtype = node.inputs[0].tensor_type.dtype
            steps = Steps(self, operand, bound, dtype, str(node))
            self.of[output] = (
                steps.normalization(op) if isinstance(op, Normalization) else steps.reduction(op)
            )
        else:
            raise UnsupportedError(f"{op} has no kernel form")

    def _gathered(self, position: int, node: Apply) -> int:
        """The element of a part."""
        source = node.inputs[0]
        index = self._index(position, node, source, self._names.computed[node.outputs[0]])
        return self._define(LoadAt(-1, self._numbers[source], index, str(node)))

    def _scatter(self, position: int, node: Apply, op: AdvancedSetSubtensor) -> None:
        """Write the element of a part."""
        (output,) = node.outputs
        axes = self._names.parts[position]
        index = self._index(position, node, output, axes)
        value = self._operand(position, 1, node)
        adds = isinstance(op, Adding)
        self.scattered.append(Scattered(output, index, value, adds, axes_of(axes), str(node)))

    def _index(self, position: int, node: Apply, array: Variable, axes: Index) -> Places:
        """The index of the present place in the part of an array, whose axes are given."""
        part = part_of(node)
        assert part is not None
        return tuple(
            At(self._place(position, node, array, entry, axis)) if isinstance(entry, Chosen) else axes[entry]
            for axis, entry in enumerate(part.axes)
        )

    def _place(self, position: int, node: Apply, source: Variable, chosen: Chosen, axis: int) -> int:
        """The place that is chosen along an axis of an array, counted from the front and checked."""
        known = source.tensor_type.shape[axis]
        size = self._define(Size(-1, self._numbers[source], axis, str(source)))
        comment = f"along axis {axis} of {source}"
        if chosen.operand is None:
            place, dtype = self.literal("int64", literal_text(chosen.number, "int64")), "int64"
            limits: tuple[int, int] | None = (chosen.number, chosen.number)
        else:
            index = node.inputs[chosen.operand]
            dtype = index.tensor_type.dtype
            place = self._operand(position, chosen.operand, node)
            if dtype != "int64":
                place = self.convert(place, dtype, "int64")
            if not isinstance(index, Constant):
                low, high = self._extremes(place, comment)
                self._limit(low, high, size, comment)
                if dtype in ("uint8", "uint16", "uint32"):
                    return place
                if low == place:
                    return self._integer("int64", _FROM_FRONT, (place, size), comment)
                return self._integer("int64", _FROM_FRONT_AMONG, (place, size, low), comment)
            limits = range_of(index)
        if limits is None:
            return place
        if known is None or not -known <= limits[0] <= limits[1] < known:
            low, high = (self.literal("int64", literal_text(limit, "int64")) for limit in limits)
            self._limit(low, high, size, comment)
        return place if limits[0] >= 0 else self._integer("int64", _FROM_FRONT, (place, size), comment)

    def _integer(self, dtype: str, template: str, operands: tuple[int, ...], comment: str) -> int:
        return self.distinct(dtype, template, "int64", operands, comment)

    def distinct(
        self, dtype: str, template: str, operand_dtype: str, operands: tuple[int, ...], comment: str,
        flops: float = 1.0,
    ) -> int:  # fmt: skip
        """A value of operands that may be the same."""
        if len(set(operands)) < len(operands):  # each operand of a computation is given once
            numbers = {value: number for number, value in enumerate(dict.fromkeys(operands))}
            template = template.format(*(f"{{{numbers[value]}}}" for value in operands))
            operands = tuple(numbers)
        return self._define(Compute(-1, dtype, template, operand_dtype, operands, comment), flops)

    def _extremes(self, place: int, comment: str) -> tuple[int, int]:
        """The lowest and the highest of places, or values between which there is none; 0 and -1 are within
        any axis."""
        bound = tuple(sorted(self.depends[place]))
        if not bound:
            return place, place
        folds = (("int64(0)", MINIMUM), ("int64(-1)", MAXIMUM))
        low, high = (
            self.fold("combine", "int64", start, template, place, bound, comment) for start, template in folds
        )
        return low, high

    def _limit(self, low: int, high: int, size: int, comment: str) -> None:
        """Let the kernel find out first whether places between two values are within an axis."""
        sizes, _ = self._limits.setdefault((low, high), ({}, comment))
        sizes[size] = None

    def _check_places(self) -> None:
        """One bool value a pair: places that are within the shortest axis are within all."""
        for (low, high), (sizes, comment) in self._limits.items():
            size, *others = sizes
            for other in others:
                size = self._integer("int64", MINIMUM, (size, other), comment)
            self.checks.append(self._integer("bool", _OUTSIDE, (low, high, size), comment))

    def differ(self, first: tuple[int, int], second: tuple[int, int]) -> int:
        """Whether two axes of arrays have different sizes."""
        sizes = tuple(self._define(Size(-1, array, axis)) for array, axis in (first, second))
        return self._integer("bool", "{0} != {1}", sizes, "")

    def _elementwise(self, position: int, node: Apply, op: Elementwise) -> int:
        dtype = node.inputs[-1].tensor_type.dtype
        exponent = exponent_of(node)
        if exponent is not None:
            return self._power(self._operand(position, 0, node), exponent, dtype, str(node))
        template = op.source(dtype)
        if template is None:
            raise UnsupportedError(f"{op} has no code for {dtype}")
        used = [place for place in range(len(node.inputs)) if f"{{{place}}}" in template]
        places = {place: number for number, place in enumerate(used)}
        renumbered = template.format(*(f"{{{places.get(place)}}}" for place in range(len(node.inputs))))
        operands = tuple(self._operand(position, place, node) for place in used)
        if renumbered == "{0}":
            return operands[0]
        result = node.outputs[0].tensor_type.dtype
        return self._define(Compute(-1, result, renumbered, dtype, operands, str(node)), op.flops)

    def _power(self, base: int, exponent: int, dtype: str, comment: str) -> int:
        def compute(template: str, *operands: int) -> int:
            return self.compute(dtype, expression(template, dtype), operands, comment, 1.0)

        if exponent == 0:
            return self.literal(dtype, literal_text(1, dtype))
        if exponent == 1:
            return base
        if dtype.startswith("float"):
            return float_power(compute, base, exponent)
        product = mul.source(dtype)
        assert product is not None
        return integer_power(compute, product, base, exponent)

    def compute(
        self, dtype: str, template: str, operands: tuple[int, ...], comment: str, flops: float
    ) -> int:
        """A value of operands of its own dtype."""
        return self._define(Compute(-1, dtype, template, dtype, operands, comment), flops)

    def fold(
        self, kind: AccumulatorKind, dtype: str, start: str, template: str, operand: int,
        bound: tuple[int, ...], comment: str,
    ) -> int:  # fmt: skip
        """A value gathered from ``operand``."""
        accumulator = Accumulator(-1, kind, dtype, start, template, comment)
        return self._define(Fold(accumulator, operand, bound), 1.0)

    def convert(self, operand: int, source: str, target: str) -> int:
        """A value cast to another dtype."""
        return self._define(Convert(-1, target, operand, source))

    def literal(self, dtype: str, text: str) -> int:
        """A number."""
        return self._define(Literal(-1, dtype, text))


@record(frozen=True)
class Steps:
    """The steps of one reduction or normalization of one operand."""

    values: Values
    operand: int
    bound: tuple[int, ...]
    dtype: str
    comment: str

    def reduction(self, op: Reduction) -> int:
        if op.typing == "argreduce":
            return self._index(largest=op.reducer.constructor == "ArgMax")
        if op.reducer.combine is None:
            return self._log_sum_exp()
        return self._combine(op)

    def _combine(self, op: Reduction) -> int:
        combine = op.reducer.combine
        assert combine is not None
        if not self.bound:
            return self.operand
        if combine == SUM:
            return self._sum(self.operand)
        if combine in (MAXIMUM, MINIMUM):
            return self._extremum(combine == MAXIMUM)
        if op.reducer.identity is None:
            raise UnsupportedError(f"{op} has no first value")
        start = literal_text(op.reducer.identity(self.dtype), self.dtype)
        return self._fold("combine", self.operand, start, _COMBINE.get(combine, combine))

    def _fold(self, kind: AccumulatorKind, operand: int, start: str, template: str = "") -> int:
        return self.values.fold(kind, self.dtype, start, template, operand, self.bound, self.comment)

    def _sum(self, operand: int) -> int:
        return self._fold("sum", operand, literal_text(0, self.dtype)) if self.bound else operand

    def _extremum(self, largest: bool) -> int:
        if not self.bound:
            return self.operand
        if self.dtype == "bool":
            return self._fold(
                "combine", self.operand, str(not largest), "{0} | {1}" if largest else "{0} & {1}"
            )
        template = MAXIMUM if largest else MINIMUM
        return self._fold("combine", self.operand, extreme_text(self.dtype, not largest), template)

    def _index(self, largest: bool) -> int:
        if not self.bound:
            return self.values.literal("int64", "int64(0)")
        kind: AccumulatorKind = "argmax" if largest else "argmin"
        if self.dtype != "bool":
            return self._fold(kind, self.operand, extreme_text(self.dtype, not largest))
        # Truth values have no order in kernel source.
        number = self.values.convert(self.operand, "bool", "uint8")
        start = extreme_text("uint8", not largest)
        return self.values.fold(kind, "uint8", start, "", number, self.bound, self.comment)

    def _apply(self, template: str, *operands: int, flops: float = 1.0) -> int:
        return self.values.compute(self.dtype, template, operands, self.comment, flops)

    def normalization(self, op: Normalization) -> int:
        shifted = self._apply("{0} - {1}", self.operand, self._extremum(largest=True))
        exponential = self._apply("exp({0})", shifted, flops=10.0)
        total = self._sum(exponential)
        if op.name == "softmax":
            return self._apply("{0} * {1}", exponential, self._apply(f"{self.dtype}(1) / {{0}}", total))
        return self._apply("{0} - {1}", shifted, self._apply("log({0})", total, flops=14.0))

    def _log_sum_exp(self) -> int:
        highest = self._extremum(largest=True)
        shift = self._apply(f"select(isfinite({{0}}), {{0}}, {self.dtype}(0))", highest)
        exponential = self._apply("exp({0} - {1})", self.operand, shift, flops=11.0)
        return self._apply("log({0}) + {1}", self._sum(exponential), shift, flops=15.0)


def extreme_text(dtype: str, largest: bool) -> str:
    """Source text of the largest or least number of a dtype."""
    if dtype == "bool":
        return str(largest)
    if dtype.startswith("float"):
        return f"{dtype}({'inf' if largest else '-inf'})"
    limits = np.iinfo(dtype)
    return literal_text(limits.max if largest else limits.min, dtype)


def has_code(dtype: str) -> bool:
    """Whether kernels hold numbers of ``dtype``."""
    return dtype in KERNEL_DTYPES
