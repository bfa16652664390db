"""Rules of what reduces axes, normalizes along them, runs along one, or orders it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esat.frontend.elements import elementwise as own
from esat.frontend.elements import reductions
from esat.frontend.elements.searching import where
from esat.frontend.pytensor.steps import NoRuleError, PyTensorStep, Rule, label, number_of
from esat.graph.constants import constant
from esat.graph.variables import Variable
from esat.ops.arrays.cumulative import cumprod, cumsum
from esat.ops.arrays.searching import searchsorted
from esat.ops.arrays.sorting import argsort, sort
from esat.ops.arrays.view import expand_dims, reshape, transpose
from esat.ops.cast import cast
from esat.ops.normalization import log_softmax, softmax


def _reduction(step: PyTensorStep) -> Variable:
    op, x = step.op, step.first
    kind = type(op.scalar_op).__name__
    axis = None if op.axis is None else tuple(op.axis)
    if axis == () or x.tensor_type.ndim == 0:
        return cast(x, step.dtype)
    if kind in ("Add", "Mul", "MulWithoutZeros"):
        return _folded(step, kind, axis)
    if kind in ("AND", "OR", "XOR"):
        return _bits(kind, x, axis)
    if kind.endswith("Maximum") or kind.endswith("Minimum"):
        extremum = reductions.max if kind.endswith("Maximum") else reductions.min
        if not getattr(op, "initial", False):
            return extremum(x, axis=axis)
        return extremum(x, axis=axis, initial=_least(x, largest=kind.endswith("Minimum")))
    raise NoRuleError(f"{label(op.scalar_op)} is not reduced")


def _bits(kind: str, x: Variable, axis: Any) -> Variable:
    """Of integers each bit by itself."""
    fold = _FOLDS[kind]
    dtype = x.tensor_type.dtype
    if dtype == "bool":
        return fold(x, axis=axis)
    axes = tuple(range(x.tensor_type.ndim)) if axis is None else axis
    places = constant(np.arange(8 * x.tensor_type.numpy_dtype.itemsize, dtype=dtype))
    bits = own.bitwise_and(own.right_shift(expand_dims(x, -1), places), constant(1, dtype))
    return reductions.sum(own.left_shift(cast(fold(own.ne(bits, 0), axis=axes), dtype), places), -1, dtype)


def _parity(x: Variable, axis: Any) -> Variable:
    odd: Variable = own.ne(own.bitwise_and(reductions.sum(x, axis=axis), 1), 0)
    return odd


_FOLDS: dict[str, Callable[..., Variable]] = {
    "AND": reductions.all, "OR": reductions.any, "XOR": _parity,
}  # fmt: skip


def _folded(step: PyTensorStep, kind: str, axis: Any) -> Variable:
    dtype = getattr(step.op, "acc_dtype", None) or step.dtype
    x = cast(step.first, dtype)
    if kind == "Add":
        return reductions.sum(x, axis=axis, dtype=dtype)
    if kind == "MulWithoutZeros":
        x = cast(where(own.eq(x, 0), 1, x), dtype)
    return reductions.prod(x, axis=axis, dtype=dtype)


def _least(x: Variable, largest: bool) -> Any:
    """What changes no maximum, or no minimum."""
    dtype = x.tensor_type.numpy_dtype
    if dtype.kind == "b":
        return largest
    if dtype.kind == "f":
        return np.inf if largest else -np.inf
    if dtype.kind == "c":
        raise NoRuleError("an order of complex numbers")
    return np.iinfo(dtype).max if largest else np.iinfo(dtype).min


def _argmax(step: PyTensorStep) -> Variable:
    x, axes = step.first, step.op.axis
    rank = x.tensor_type.ndim
    if rank == 0:
        return constant(np.int64(0))
    chosen = range(rank) if axes is None else sorted(axis % rank for axis in axes)
    if len(chosen) == rank:
        return reductions.argmax(x)
    if len(chosen) == 1:
        return reductions.argmax(x, axis=chosen[0])
    kept = [axis for axis in range(rank) if axis not in chosen]
    together = transpose(x, (*kept, *chosen))
    lines = reshape(together, (*(together.shape[place] for place in range(len(kept))), -1))
    return reductions.argmax(lines, axis=len(kept))


def _along_axes(function: Callable[..., Any]) -> Rule:
    """A function of one array, along the op's axes."""

    def rule(step: PyTensorStep) -> Any:
        return function(cast(step.first, step.dtype), axis=step.op.axis)

    return rule


def _running(step: PyTensorStep) -> Variable:
    accumulate = cumsum if step.op.mode == "add" else cumprod
    return accumulate(step.first, axis=step.op.axis, dtype=step.dtype)


def _axis(step: PyTensorStep) -> int | None:
    """Of a sort: a property of the op, or its second operand."""
    if hasattr(step.op, "axis"):
        axis: int | None = step.op.axis
        return axis
    if step.operands[1] is None:
        return None
    found = number_of(step.operands[1])
    if found is None:
        raise NoRuleError("an axis that is computed")
    return found


def _ordered(function: Any) -> Rule:
    def rule(step: PyTensorStep) -> Any:
        kind = step.op.kind if step.op.kind == "stable" else None
        return function(step.first, axis=_axis(step), kind=kind)

    return rule


def _places_in(step: PyTensorStep) -> Variable:
    sorter = step.operands[2] if len(step.operands) > 2 else None
    return searchsorted(step.first, step.operands[1], side=step.op.side, sorter=sorter)


RULES: dict[str, Rule] = {
    "ArgSortOp": _ordered(argsort),
    "Argmax": _argmax,
    "CAReduce": _reduction,
    "CumOp": _running,
    "LogSoftmax": _along_axes(log_softmax),
    "LogSumExp": _along_axes(reductions.logsumexp),
    "SearchsortedOp": _places_in,
    "Softmax": _along_axes(softmax),
    "SortOp": _ordered(sort),
}
