"""The functions behind the methods of Variables, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from esat.frontend.arrays import indexing
from esat.frontend.elements import elementwise, reductions
from esat.frontend.linear_algebra.sparse_operators import sparse_operation
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.op import as_variable
from esat.graph.registry import register_functions
from esat.graph.variables import Variable
from esat.ops.arrays.creation import check_device
from esat.ops.arrays.diagonal import diagonal
from esat.ops.arrays.shape import element_count, size_of
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


METHODS = (
    "shape", "size", "take", "real", "imag", "clip", "round", "copy", "cast", "full_like", "sum", "prod",
    "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin", "cumsum", "cumprod", "sort",
    "argsort", "dot", "matmul", "reshape", "transpose", "matrix_transpose", "dimshuffle", "swapaxes",
    "flatten", "ravel", "squeeze", "repeat", "diagonal", "trace",
)  # fmt: skip
"""Methods of Variables that are the package's functions of their names, of the Variable and more."""

OTHER_METHODS: dict[str, Callable[..., Any]] = {
    "at": indexing.at, "getitem": indexing.getitem, "evaluate": evaluate, "conj": conj,
    "norm": reductions.norm,
}  # fmt: skip
"""Methods that are none of these."""


def register_methods(namespace: Mapping[str, Any]) -> None:
    """Give Variables their methods, and sparse ones theirs. Repeating it changes nothing."""
    methods = {name: namespace[name] for name in METHODS} | OTHER_METHODS
    register_functions({**methods, "sparse_operation": sparse_operation})
