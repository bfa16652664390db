"""Softmax and its logarithm, computed so that nothing overflows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import AxisError, describe
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable, check_count
from esat.graph.registry import op_named
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.annotations.masks import apply, masked
from esat.ops.cast import cast
from esat.ops.inference.axes import normalize_axes
from esat.ops.reduction import ANY, LOGSUMEXP, MAX, SUM, Reduction, reduce

NORMALIZATIONS = {"softmax": "Softmax", "log_softmax": "LogSoftmax"}
"""Name in the tensor API -> constructor."""
FLOPS, ELEMENTWISE = 2.0, 10.0
"""Cost of one element in additions: of a maximum and a sum, and of an exponential, by vectors."""


@record(frozen=True, eq=False, repr=False)
class Normalization(Op):
    """``softmax``: ``exp(x) / sum(exp(x))`` over the axes, or ``log_softmax``, its logarithm.

    Both take the maximum out first. The result has the operand's shape. Axes of size 0 are an error when
    run, as in SciPy.

    Attributes
    ----------
    axes
        The axes, ascending and non-negative.
    """

    name: str
    constructor: str
    axes: tuple[int, ...]
    family = Family.LIBRARY
    typing = "same"

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        check_count(self.name, inputs, 1)
        operand = as_variable(inputs[0])
        return (cast(operand, _exponential_dtype(operand.tensor_type.dtype)),)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        if any(not 0 <= axis < source.ndim for axis in self.axes):
            raise AxisError(describe(str(self), [source], f"the operand has {source.ndim} axes"))
        return (source,)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (array,) = inputs
        if array.size == 0:
            # As exp(x) / sum(exp(x)) of nothing: rules turn one into the other. SciPy refuses an empty axis.
            return (array.copy(),)
        with np.errstate(all="ignore"):
            highest = np.max(array, axis=self.axes, keepdims=True)
            shifted = array - highest
            exponentials = np.exp(shifted)
            total = np.sum(exponentials, axis=self.axes, keepdims=True)
            result = exponentials / total if self.name == "softmax" else shifted - np.log(total)
        return (np.asarray(result, dtype=array.dtype),)

    def expand(self, operand: Variable) -> Variable:
        """The same values by elementwise ops and reductions, which kernels can fuse."""
        shifted = op_named("sub")(operand, reduce(MAX, operand, self.axes, keepdims=True))
        exponentials = op_named("exp")(shifted)
        total = reduce(SUM, exponentials, self.axes, keepdims=True)
        if self.name == "softmax":
            quotient: Variable = op_named("div")(exponentials, total)
            return quotient
        difference: Variable = op_named("sub")(shifted, op_named("log")(total))
        return difference

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        moved = Normalization(self.name, self.constructor, tuple(axis + 1 for axis in self.axes))
        return tuple(moved.make_node(*inputs).outputs)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        part = self._pulled_back(node.outputs[0], cotangent)
        found = masked(cotangent)
        if found is None:
            return [part]
        # Where all that an element takes part in is masked, so is the element.
        return [apply(reduce(ANY, found.mask, self.axes, keepdims=True), part)]

    def _pulled_back(self, result: Variable, cotangent: Variable) -> Variable:
        mul, sub = op_named("mul"), op_named("sub")
        if self.name == "softmax":
            weighted = mul(cotangent, result)
            total = reduce(SUM, weighted, self.axes, keepdims=True)
            part: Variable = sub(weighted, mul(result, total))
        else:
            total = reduce(SUM, cotangent, self.axes, keepdims=True)
            part = sub(cotangent, mul(op_named("exp")(result), total))
        return part

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        size = float(np.prod(outputs[0], dtype=np.float64))
        return Work(flops=(FLOPS + ELEMENTWISE) * size, bytes=general.bytes, calls=1)

    def __str__(self) -> str:
        return f"{self.name}{{{','.join(map(str, self.axes))}}}"


def _exponential_dtype(dtype: str) -> str:
    """The dtype of ``numpy.exp`` of ``dtype``, in which SciPy's softmax computes: float16 for int8."""
    return str(np.exp(np.empty(0, dtype)).dtype.name)


SOFTMAX = Normalization("softmax", "Softmax", ())
LOG_SOFTMAX = Normalization("log_softmax", "LogSoftmax", ())


def softmax(x: Any, axis: Any = None) -> Variable:
    """``exp(x) / sum(exp(x))`` over ``axis`` (an int, a tuple, or None for all), as SciPy's softmax."""
    return _normalize(SOFTMAX, x, axis)


def log_softmax(x: Any, axis: Any = None) -> Variable:
    """``x - log(sum(exp(x)))`` over ``axis`` (an int, a tuple, or None for all), as SciPy's log_softmax."""
    return _normalize(LOG_SOFTMAX, x, axis)


def logsumexp(a: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """``log(sum(exp(x)))`` over ``axis`` (an int, a tuple, or None for all), without overflow."""
    variable = as_variable(a)
    axes = _axes("logsumexp", variable, axis)
    result: Variable = Reduction(LOGSUMEXP, axes, bool(keepdims))(variable)
    return result


def _normalize(kind: Normalization, operand: Any, axis: Any) -> Variable:
    variable = as_variable(operand)
    result: Variable = replace(kind, axes=_axes(kind.name, variable, axis))(variable)
    return result


def _axes(name: str, variable: Variable, axis: Any) -> tuple[int, ...]:
    """The axes; a number has 0 and -1 as well, as for SciPy's functions."""
    rank = variable.tensor_type.ndim
    return normalize_axes(name, None if rank == 0 and type(axis) is int and axis in (0, -1) else axis, rank)
