"""Operations on arrays of few numbers as straight lines: one value of LLVM's text for each number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, TypeAlias

import numpy as np

from esat.codegen.lowering.powers import exponent_of
from esat.codegen.matmul.small_systems import straight_system
from esat.codegen.matmul.straight_line import StraightLine
from esat.codegen.small_loops.number_lines import (
    KINDS,
    NoCodeError,
    computed,
    converted,
    elements,
    elementwise,
)
from esat.graph import Apply, Constant, TensorType, Variable
from esat.graph.op import Op
from esat.ops.arrays.creation import Alloc
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.join import Join
from esat.ops.arrays.view import Reshape
from esat.ops.cast import Cast
from esat.ops.contraction import MatMul
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.elementwise.whole_power import Rounding, power_plan
from esat.ops.index.basic import IncSubtensor, SetSubtensor, Subtensor
from esat.ops.inference.vectors import MakeVector
from esat.ops.linalg.record import MatrixOp
from esat.ops.reduction import Reduction

MOST_LINES = 1000
"""Lines of a step: a Kalman filter of four states has 600, which LLVM compiles in 60 ms, once a machine."""
MOST_NUMBERS = 16
"""Numbers of a value, which have a register each: a matrix of 4 x 4."""

Numbers: TypeAlias = np.ndarray[Any, Any]
"""The texts of the numbers of a value, as an array of objects."""


def number_lines(code: StraightLine, node: Apply, given: list[Numbers]) -> list[Numbers]:
    """The results of a node of numbers. Raises NoCodeError where there are no lines of it."""
    shapes = [_known_shape(one) for one in node.outputs]
    write = next((one for kind, one in _WRITERS.items() if isinstance(node.op, kind)), None)
    if write is None:
        raise NoCodeError
    found = write(_Writer(code, given), node)
    return [_array(list(one.flat), shape) for one, shape in zip(found, shapes, strict=True)]


def as_numbers(data: np.ndarray[Any, Any], dtype: str) -> Numbers:
    """The numbers of a constant. Raises NoCodeError where they are many."""
    if not 1 <= data.size <= MOST_NUMBERS:
        raise NoCodeError
    return elements(data, dtype)


class _Writer:
    """Where lines go, and the numbers of the operands of the node that they are of."""

    def __init__(self, code: StraightLine, given: list[Numbers]) -> None:
        self.code, self._given = code, given

    def given(self, node: Apply) -> list[Numbers]:
        """The numbers of all operands."""
        return self._given

    def folded(self, name: str, dtype: str, numbers: list[str]) -> str:
        """All of them combined, one after the other."""
        total = numbers[0]
        for one in numbers[1:]:
            total = computed(self.code, name, dtype, total, one)
        return total


def _known_shape(variable: Variable) -> tuple[int, ...]:
    type = variable.type
    if not isinstance(type, TensorType) or type.dtype not in KINDS or None in type.shape:
        raise NoCodeError
    shape = tuple(size for size in type.shape if size is not None)
    if not 1 <= prod(shape) <= MOST_NUMBERS:
        raise NoCodeError
    return shape


def _array(names: list[str], shape: tuple[int, ...]) -> Numbers:
    found = np.empty(len(names), object)
    found[:] = names
    return found.reshape(shape)


def _of_elements(write: Callable[..., str], *arrays: Numbers) -> Numbers:
    """What a function of numbers gives for each place of arrays that are broadcast."""
    given = np.broadcast_arrays(*arrays)
    found = np.empty(given[0].shape, object)
    for place in np.ndindex(found.shape):
        found[place] = write(*(one[place] for one in given))
    return found


def _elementwise(writer: _Writer, node: Apply) -> list[Numbers]:
    op, dtypes = node.op, [one.tensor_type.dtype for one in node.inputs]
    assert isinstance(op, Elementwise)
    if op.name == "copy":
        return writer.given(node)
    exponent = exponent_of(node)
    if exponent is not None and dtypes[0].startswith("float"):
        return [_of_elements(lambda one: _power(writer, dtypes[0], one, exponent), writer.given(node)[0])]
    given, dtype = writer.given(node), node.outputs[0].tensor_type.dtype
    if dtype.startswith("float") and not dtypes[-1].startswith("float"):  # as NumPy's functions of integers
        pairs = zip(dtypes, given, strict=True)
        given = [
            _of_elements(lambda one, of=of: converted(writer.code, dtype, of, one), one) for of, one in pairs
        ]
        dtypes = [dtype] * len(given)
    return [_of_elements(lambda *one: elementwise(writer.code, op, dtypes, list(one)), *given)]


def _power(writer: _Writer, dtype: str, base: str, exponent: int) -> str:
    """By the products of its plan, where none of these is a pair of numbers."""
    plan = power_plan(exponent)
    if any(step.rounding is not Rounding.PLAIN for step in plan.steps):
        raise NoCodeError
    factor = computed(writer.code, "reciprocal", dtype, base) if plan.inverts else base
    result = factor
    for step in plan.steps:
        result = computed(writer.code, "mul", dtype, result, result if step.squares else factor)
    return result


def _cast(writer: _Writer, node: Apply) -> list[Numbers]:
    given, wanted = (one.tensor_type.dtype for one in (node.inputs[0], node.outputs[0]))
    return [_of_elements(lambda one: converted(writer.code, wanted, given, one), *writer.given(node))]


def _moved(writer: _Writer, node: Apply) -> list[Numbers]:
    """By the op itself, which moves objects as it moves numbers; places are those of constants."""
    return list(node.op.perform([writer.given(node)[0], *_places(node.inputs[1:])]))


def _places(variables: list[Variable]) -> list[Numbers]:
    if not all(isinstance(one, Constant) for one in variables):
        raise NoCodeError
    return [np.asarray(one.data) for one in variables if isinstance(one, Constant)]


def _filled(writer: _Writer, node: Apply) -> list[Numbers]:
    return [np.broadcast_to(writer.given(node)[0], _known_shape(node.outputs[0]))]


def _reshaped(writer: _Writer, node: Apply) -> list[Numbers]:
    return [writer.given(node)[0]]


def _joined(writer: _Writer, node: Apply) -> list[Numbers]:
    return list(node.op.perform(writer.given(node)))


def _vector(writer: _Writer, node: Apply) -> list[Numbers]:
    return [np.concatenate([one.reshape(1) for one in writer.given(node)])]


def _replaced(writer: _Writer, node: Apply) -> list[Numbers]:
    op = node.op
    if type(op) not in (SetSubtensor, IncSubtensor):
        raise NoCodeError
    assert isinstance(op, SetSubtensor)
    target, value, places = *writer.given(node)[:2], _places(node.inputs[2:])
    if isinstance(op, IncSubtensor):
        (part,) = Subtensor(op.entries).perform([target, *places])
        dtype = node.outputs[0].tensor_type.dtype
        value = _of_elements(lambda *one: computed(writer.code, "add", dtype, *one), part, value)
    return list(SetSubtensor(op.entries).perform([target, value, *places]))


_COMBINED: Mapping[str, str] = {
    "sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "any": "logical_or", "all": "logical_and"
}  # fmt: skip


def _reduced(writer: _Writer, node: Apply) -> list[Numbers]:
    op = node.op
    assert isinstance(op, Reduction)
    if op.name not in _COMBINED:
        raise NoCodeError
    (source,), dtype = writer.given(node), node.inputs[0].tensor_type.dtype
    kept = [axis for axis in range(source.ndim) if axis not in op.axes]
    rows = source.transpose([*kept, *op.axes]).reshape([source.shape[axis] for axis in kept] + [-1])
    found = np.empty(rows.shape[:-1], object)
    for place in np.ndindex(found.shape):
        found[place] = writer.folded(_COMBINED[op.name], dtype, list(rows[place]))
    return [found]


def _product(writer: _Writer, node: Apply) -> list[Numbers]:
    (left, right), dtype = writer.given(node), node.inputs[0].tensor_type.dtype
    if left.ndim != 2 or not dtype.startswith("float"):
        raise NoCodeError
    if prod((*left.shape, right.shape[1])) > MOST_LINES:
        raise NoCodeError
    found = np.empty((left.shape[0], right.shape[1]), object)
    for i, j in np.ndindex(found.shape):
        total = computed(writer.code, "mul", dtype, left[i, 0], right[0, j])
        for k in range(1, left.shape[1]):
            total = computed(writer.code, "multiply_add", dtype, left[i, k], right[k, j], total)
        found[i, j] = total
    return [found]


def _system(writer: _Writer, node: Apply) -> list[Numbers]:
    given = writer.given(node)
    if any(one.tensor_type.dtype != "float64" for one in (*node.inputs, *node.outputs)):
        raise NoCodeError
    found = straight_system(node.op, writer.code, [one.tolist() for one in given if one.ndim == 2])
    if found is None or any(one.ndim != 2 for one in given):
        raise NoCodeError
    return [np.array(rows, object) for rows in found]


_WRITERS: Mapping[type[Op], Callable[[_Writer, Apply], list[Numbers]]] = {
    Elementwise: _elementwise,
    Cast: _cast,
    DimShuffle: _moved,
    Subtensor: _moved,
    Reshape: _reshaped,
    Alloc: _filled,
    Join: _joined,
    MakeVector: _vector,
    SetSubtensor: _replaced,
    Reduction: _reduced,
    MatMul: _product,
    MatrixOp: _system,
}
"""What writes the lines of an op."""
