"""Reductions: ops that fold one or more axes into one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import AxisError, ShapeError, describe
from esat.graph.calls.arguments import flag_of
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable, check_count
from esat.graph.registry import function_named, op_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.annotations.masks import through
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.cast import cast
from esat.ops.inference.axes import normalize_axes

Gradient = Callable[[Variable, Variable, Variable, tuple[int, ...]], Variable]
"""(operand, result, cotangent of the result, axes) -> cotangent of the operand; the result and its
cotangent keep the reduced axes with size 1."""


@record(frozen=True, slots=True)
class Reducer:
    """The record of one kind of reduction: everything esat knows about it but the axes.

    Attributes
    ----------
    name, constructor
        Its name in the tensor API and in rules.
    numpy
        The function that defines the result, called as ``numpy(array, axis=axes, keepdims=flag)``.
    operand_dtype
        The dtype the operand is cast to first; the result has it too, unless the typing is ``argreduce``.
    combine
        How to join two partial results ``{0}`` and ``{1}``, as an expression of kernel source; None where
        one pass does not do (an index, a scaled sum).
    identity
        The value of the reduction of nothing, for a dtype; None where there is none.
    gradient
        See :data:`Gradient`; None where it is zero everywhere.
    typing
        ``reduce``, or ``argreduce`` for an int64 index.
    flops
        Cost of one element in additions.
    elementwise
        Cost of what is computed of each element besides, by vectors.
    """

    name: str
    constructor: str
    numpy: Callable[..., Any]
    operand_dtype: Callable[[str], str]
    combine: str | None = None
    identity: Callable[[str], Any] | None = None
    gradient: Gradient | None = None
    typing: str = "reduce"
    flops: float = 1.0
    elementwise: float = 0.0

    def __reduce__(self) -> str:
        """Pickled as the constant of this module that it is: it holds functions."""
        return self.name.upper()


@record(frozen=True, eq=False, repr=False)
class Reduction(Op):
    """Reduce the given axes of an array, as NumPy does.

    Attributes
    ----------
    reducer
        What is done along the axes.
    axes
        The axes, ascending and non-negative. An index reduction takes one axis, or all of them for the
        index into the flattened array.
    keepdims
        Whether the reduced axes stay, with size 1.
    """

    reducer: Reducer
    axes: tuple[int, ...]
    keepdims: bool = False
    name: str = field(init=False)
    constructor: str = field(init=False)
    typing: str = field(init=False)
    family = Family.REDUCTION

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.reducer.name)
        object.__setattr__(self, "constructor", self.reducer.constructor)
        object.__setattr__(self, "typing", self.reducer.typing)

    def properties(self) -> tuple[object, ...]:
        return (self.axes, self.keepdims)

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        check_count(self.name, inputs, 1)
        operand = as_variable(inputs[0])
        return (cast(operand, self.reducer.operand_dtype(operand.tensor_type.dtype)),)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        self._check_axes(source)
        kept = tuple(1 if axis in self.axes else size for axis, size in enumerate(source.shape))
        if not self.keepdims:
            kept = tuple(size for axis, size in enumerate(source.shape) if axis not in self.axes)
        return (TensorType("int64" if self.typing == "argreduce" else source.dtype, shape=kept),)

    def _check_axes(self, source: TensorType) -> None:
        if any(not 0 <= axis < source.ndim for axis in self.axes):
            raise AxisError(describe(str(self), [source], f"the operand has {source.ndim} axes"))
        if self.typing == "argreduce" and len(self.axes) not in (1, source.ndim):
            raise AxisError(describe(str(self), [source], "takes one axis or all of them"))

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (array,) = inputs
        axes: Any = self.axes
        if self.typing == "argreduce":
            axes = None if len(axes) == array.ndim else axes[0]
        try:
            with np.errstate(all="ignore"):
                return (np.asarray(self.reducer.numpy(array, axis=axes, keepdims=self.keepdims)),)
        except ValueError as error:
            reason = "nothing to reduce, and it has no value for that" if 0 in array.shape else str(error)
            raise ShapeError(describe(str(self), [f"shape {array.shape}"], reason)) from error

    def linear_in(self, count: int) -> range:
        return range(int(self.reducer is SUM))

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        (operand,) = inputs
        rank = node.inputs[0].tensor_type.ndim
        axes = tuple(axis + 1 for axis in self.axes)
        if self.typing != "argreduce" or len(axes) == 1:
            return (Reduction(self.reducer, axes, self.keepdims)(operand),)
        found: Variable = Reduction(self.reducer, (1,))(function_named("flatten")(operand, 2))
        return (dimshuffle(found, (0, *["x"] * rank)) if self.keepdims else found,)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if self.reducer.gradient is None or cotangent is None:
            return [None]
        operand, result = node.inputs[0], node.outputs[0]
        if not self.keepdims:
            rank = operand.tensor_type.ndim
            result = restore_axes(result, self.axes, rank)
            cotangent = restore_axes(cotangent, self.axes, rank)
        gradient = self.reducer.gradient
        parts = through(
            cotangent, (operand, result), lambda value: [gradient(operand, result, value, self.axes)]
        )
        return list(parts)

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        size = float(np.prod(inputs[0], dtype=np.float64))
        flops = self.reducer.flops + self.reducer.elementwise
        return Work(flops=flops * size, bytes=general.bytes, calls=0)

    def __str__(self) -> str:
        axes = ",".join(map(str, self.axes))
        return f"{self.name}{{{axes}{', keepdims' if self.keepdims else ''}}}"


def restore_axes(reduced: Variable, axes: Sequence[int], rank: int) -> Variable:
    """Insert axes of size 1 where a reduction of ``axes`` dropped them."""
    kept = iter(range(rank - len(axes)))
    return dimshuffle(reduced, tuple("x" if axis in axes else next(kept) for axis in range(rank)))


def reduce(
    reducer: Reducer, operand: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False
) -> Variable:
    """Apply a reduction with NumPy's forms of arguments.

    Parameters
    ----------
    reducer
        The kind of reduction.
    operand
        A Variable, array or number.
    axis
        An axis, a tuple of them, or None for all. Negative axes count from the back.
    dtype
        Cast the operand to it first, and the result.
    keepdims
        Whether the reduced axes stay, with size 1.

    Raises
    ------
    AxisError
        For an axis that the operand does not have, or one named twice.
    """
    variable = as_variable(operand)
    if dtype is not None:
        variable = cast(variable, dtype)
    if variable.tensor_type.ndim == 0 and type(axis) is int and axis in (0, -1):
        axis = None  # as NumPy's reductions take it
    axes = normalize_axes(reducer.name, axis, variable.tensor_type.ndim)
    result: Variable = Reduction(reducer, axes, flag_of(reducer.name, "keepdims", keepdims))(variable)
    return result if dtype is None else cast(result, dtype)


def sum_to(variable: Variable, broadcastable: Sequence[bool]) -> Variable:
    """Sum over the axes along which a value of size 1 was stretched: the transpose of broadcasting.

    Parameters
    ----------
    variable
        The cotangent of a broadcast value.
    broadcastable
        One flag an axis: True where the operand that was stretched has size 1. Leading axes that the
        operand does not have at all are summed and dropped.
    """
    type = variable.tensor_type
    lead = type.ndim - len(broadcastable)
    if lead > 0:
        variable = reduce(SUM, variable, tuple(range(lead)))
        type = variable.tensor_type
    axes = tuple(
        axis
        for axis, (stretched, flat) in enumerate(zip(broadcastable, type.broadcastable, strict=True))
        if stretched and not flat
    )
    return reduce(SUM, variable, axes, dtype=type.dtype, keepdims=True) if axes else variable


# ---- gradients


def _sum_gradient(
    operand: Variable, result: Variable, cotangent: Variable, axes: tuple[int, ...]
) -> Variable:
    filled: Variable = op_named("fill")(operand, cotangent)
    return filled


def _product_gradient(
    operand: Variable, result: Variable, cotangent: Variable, axes: tuple[int, ...]
) -> Variable:
    """The product of the other elements, also where some are zero.

    With one zero along the axes only its own place has a derivative; with more, none has.
    """
    is_zero = op_named("eq")(operand, 0)
    factors = op_named("switch")(is_zero, 1, operand)
    product = reduce(PROD, factors, axes, keepdims=True)
    zeros = reduce(SUM, is_zero, axes, keepdims=True)
    others = op_named("div")(product, factors)
    alone = op_named("eq")(zeros, op_named("switch")(is_zero, 1, 0))
    derivative: Variable = op_named("mul")(cotangent, op_named("switch")(alone, others, 0))
    return derivative


def _extremum_gradient(
    operand: Variable, result: Variable, cotangent: Variable, axes: tuple[int, ...]
) -> Variable:
    """Equal parts to all elements that attain the extremum: an element of the subdifferential."""
    attains = cast(op_named("eq")(operand, result), cotangent.tensor_type.dtype)
    ties = reduce(SUM, attains, axes, keepdims=True)
    derivative: Variable = op_named("mul")(attains, op_named("div")(cotangent, ties))
    return derivative


def _logsumexp_gradient(
    operand: Variable, result: Variable, cotangent: Variable, axes: tuple[int, ...]
) -> Variable:
    derivative: Variable = op_named("mul")(cotangent, op_named("exp")(op_named("sub")(operand, result)))
    return derivative


# ---- dtypes and definitions


def accumulator_dtype(dtype: str) -> str:
    """The dtype NumPy sums in: the widest integer for booleans and integers, floats as they are."""
    kind = np.dtype(dtype).kind
    return "int64" if kind in "bi" else "uint64" if kind == "u" else dtype


def _bool_dtype(dtype: str) -> str:
    return "bool"


def _same_dtype(dtype: str) -> str:
    return dtype


def float_dtype(dtype: str) -> str:
    """Inexact dtypes as they are, float64 for booleans and integers: as ``scipy.special.logsumexp``."""
    return dtype if np.dtype(dtype).kind in "fc" else "float64"


def _logsumexp(array: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """``log(sum(exp(x)))`` with the maximum taken out, so that no exponential overflows."""
    # Of complex numbers the real part alone can overflow; the logarithm is the principal one, as SciPy's.
    highest = np.max(array.real, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(highest), highest, 0).astype(array.real.dtype)
    total = np.sum(np.exp(array - shift), axis=axis, keepdims=True)
    result: Array = np.log(total).astype(array.dtype) + shift
    return result if keepdims else np.squeeze(result, axis)


SUM = Reducer("sum", "ReduceSum", np.sum, accumulator_dtype, "{0} + {1}", lambda dtype: 0, _sum_gradient)
PROD = Reducer(
    "prod", "ReduceProd", np.prod, accumulator_dtype, "{0} * {1}", lambda dtype: 1, _product_gradient
)
MAX = Reducer("max", "ReduceMax", np.max, _same_dtype, "maximum({0}, {1})", None, _extremum_gradient)
MIN = Reducer("min", "ReduceMin", np.min, _same_dtype, "minimum({0}, {1})", None, _extremum_gradient)
ANY = Reducer("any", "ReduceAny", np.any, _bool_dtype, "{0} or {1}", lambda dtype: False)
ALL = Reducer("all", "ReduceAll", np.all, _bool_dtype, "{0} and {1}", lambda dtype: True)
ARGMAX = Reducer("argmax", "ArgMax", np.argmax, _same_dtype, typing="argreduce")
ARGMIN = Reducer("argmin", "ArgMin", np.argmin, _same_dtype, typing="argreduce")
LOGSUMEXP = Reducer(
    "logsumexp",
    "LogSumExp",
    _logsumexp,
    float_dtype,
    None,
    lambda dtype: -np.inf,
    _logsumexp_gradient,
    flops=2.0,
    elementwise=10.0,  # an exponential
)

REDUCERS = (SUM, PROD, MAX, MIN, ANY, ALL, ARGMAX, ARGMIN, LOGSUMEXP)
