"""The functions behind the methods of Variables, in one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esat.frontend.arrays import indexing, shaping
from esat.frontend.arrays.creation import full_like
from esat.frontend.elements import elementwise, numeric, reductions
from esat.frontend.linear_algebra import linear
from esat.frontend.linear_algebra.sparse_operators import sparse_operation
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.op import as_variable
from esat.graph.registry import register_functions
from esat.graph.variables import Variable
from esat.ops.arrays.creation import check_device
from esat.ops.arrays.cumulative import cumprod, cumsum
from esat.ops.arrays.diagonal import diagonal
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import element_count, size_of
from esat.ops.arrays.sorting import argsort, sort
from esat.ops.cast import cast
from esat.ops.inference.vectors import shape_vector


def shape(a: Any) -> Variable:
    """The sizes as an int64 vector; a Constant where the type knows all of them."""
    return shape_vector(as_variable(a))


def size(a: Any, axis: int | None = None) -> Variable:
    """The number of elements, or of those along an axis, as an int64 scalar; a Constant where it is known."""
    variable = as_variable(a)
    return element_count(variable) if axis is None else size_of(variable, axis)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Variable:
    """The sum of diagonal ``offset`` of the matrices in two axes, in ``dtype`` if it is given."""
    return reductions.sum(diagonal(a, offset, axis1, axis2), -1, dtype)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Variable:
    """The elements converted to ``dtype``.

    Parameters
    ----------
    x
        A Variable or array.
    dtype
        A dtype.
    copy
        Means nothing: the result is a Variable of its own, or ``x``.
    device
        None or "cpu".
    """
    check_device("astype", device)
    return cast(x, dtype)


def conj(operand: Any) -> Variable:
    """The complex conjugate; what is real is handed on as it is, unlike by ``numpy.conj`` booleans too."""
    variable = as_variable(operand)
    result: Variable = elementwise.conj(variable) if variable.tensor_type.kind == "c" else variable
    return result


METHODS: dict[str, Callable[..., Any]] = {
    "shape": shape, "size": size, "at": indexing.at, "getitem": indexing.getitem, "take": indexing.take,
    "evaluate": evaluate, "real": elementwise.real, "imag": elementwise.imag, "conj": conj,
    "clip": numeric.clip, "round": numeric.round, "copy": elementwise.copy, "cast": cast,
    "full_like": full_like, "sum": reductions.sum, "prod": reductions.prod, "mean": reductions.mean,
    "var": reductions.var, "std": reductions.std, "max": reductions.max, "min": reductions.min,
    "any": reductions.any, "all": reductions.all, "argmax": reductions.argmax, "argmin": reductions.argmin,
    "norm": reductions.norm, "cumsum": cumsum, "cumprod": cumprod, "sort": sort, "argsort": argsort,
    "dot": linear.dot, "matmul": linear.matmul, "reshape": shaping.reshape, "transpose": shaping.transpose,
    "matrix_transpose": shaping.matrix_transpose, "dimshuffle": dimshuffle, "swapaxes": shaping.swapaxes,
    "flatten": shaping.flatten, "ravel": shaping.ravel, "squeeze": shaping.squeeze, "repeat": shaping.repeat,
    "diagonal": diagonal, "trace": trace,
}  # fmt: skip
"""Method of a Variable -> the function it calls, the Variable being its first argument."""


def register_methods() -> None:
    """Give Variables their methods, and sparse ones theirs. Repeating it changes nothing."""
    register_functions({**METHODS, "sparse_operation": sparse_operation})
