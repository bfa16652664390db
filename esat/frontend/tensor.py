"""Constructors of Variables: by rank, by dtype letter and rank, or by shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esat.errors import DtypeError, ShapeError, describe
from esat.graph.calls.arguments import elements_of
from esat.graph.constants import constant
from esat.graph.op import as_variable
from esat.graph.tracing import Traced
from esat.graph.types import DTYPES, MAXIMUM_RANK, TensorType
from esat.graph.variables import Variable

__all__ = [
    "array",
    "as_tensor",
    "asarray",
    "col",
    "constant",
    "matrix",
    "row",
    "scalar",
    "tensor",
    "tensor3",
    "tensor4",
    "vector",
]

Shape = Sequence[int | None]


def tensor(
    name: str | None = None,
    dtype: Any = "float64",
    shape: Shape | None = None,
    broadcastable: Sequence[bool] | None = None,
    ndim: int | None = None,
) -> Variable:
    """A Variable of any rank.

    Parameters
    ----------
    name
        For printing.
    dtype
        Of its elements.
    shape
        One size an axis, None where it is known only at run time.
    broadcastable
        In place of ``shape``: one flag an axis, True for size 1.
    ndim
        In place of both: the rank, all sizes being unknown.

    Raises
    ------
    ShapeError
        When none of the three is given, or more than one.
    DtypeError
        For a dtype esat does not know, or a name that is one.
    """
    if isinstance(name, str) and name in DTYPES:
        reason = f"the name comes first; for a tensor of {name} write tensor(dtype={name!r}, ...)"
        raise DtypeError(describe("tensor", [repr(name)], reason))
    if name is not None and not isinstance(name, str):
        raise DtypeError(f"the name of a Variable is a string, not {name!r}; pass dtype= and shape= by name")
    if sum(given is not None for given in (shape, broadcastable, ndim)) != 1:
        raise ShapeError("tensor: give one of shape, broadcastable and ndim")
    if ndim is not None:
        if not isinstance(ndim, int) or not 0 <= ndim <= MAXIMUM_RANK:
            raise ShapeError(f"tensor: ndim is 0 to {MAXIMUM_RANK}, not {ndim!r}")
        shape = (None,) * ndim
    sizes = None if shape is None else elements_of("tensor", "shape", shape)
    flags = None if broadcastable is None else elements_of("tensor", "broadcastable", broadcastable)
    return TensorType(dtype, flags, sizes).make_variable(name)


def _of_rank(ndim: int, name: str | None, dtype: Any, shape: Shape | None) -> Variable:
    sizes = (None,) * ndim if shape is None else elements_of("tensor", "shape", shape)
    if len(sizes) != ndim:
        raise ShapeError(f"shape {sizes} has {len(sizes)} axes, not {ndim}")
    return tensor(name, dtype, sizes)


def scalar(name: str | None = None, dtype: Any = "float64") -> Variable:
    """A Variable of rank 0."""
    return _of_rank(0, name, dtype, None)


def vector(name: str | None = None, dtype: Any = "float64", shape: Shape | None = None) -> Variable:
    """A Variable of rank 1; its size is unknown unless ``shape`` gives it."""
    return _of_rank(1, name, dtype, shape)


def matrix(name: str | None = None, dtype: Any = "float64", shape: Shape | None = None) -> Variable:
    """A Variable of rank 2; its sizes are unknown unless ``shape`` gives them."""
    return _of_rank(2, name, dtype, shape)


def tensor3(name: str | None = None, dtype: Any = "float64", shape: Shape | None = None) -> Variable:
    """A Variable of rank 3; its sizes are unknown unless ``shape`` gives them."""
    return _of_rank(3, name, dtype, shape)


def tensor4(name: str | None = None, dtype: Any = "float64", shape: Shape | None = None) -> Variable:
    """A Variable of rank 4; its sizes are unknown unless ``shape`` gives them."""
    return _of_rank(4, name, dtype, shape)


def row(name: str | None = None, dtype: Any = "float64") -> Variable:
    """A matrix of one row, which broadcasts against other matrices."""
    return _of_rank(2, name, dtype, (1, None))


def col(name: str | None = None, dtype: Any = "float64") -> Variable:
    """A matrix of one column, which broadcasts against other matrices."""
    return _of_rank(2, name, dtype, (None, 1))


def as_tensor(value: Any, dtype: Any = None) -> Variable:
    """``value`` itself if it is a Variable, the stack of a list that has Variables in it, else a Constant.

    Raises
    ------
    DtypeError
        When it is not numeric.
    """
    from esat.frontend.arrays.shaping import stack
    from esat.ops.cast import cast

    if isinstance(value, (list, tuple)) and _contains_variable(value):
        value = stack([as_tensor(item) for item in value])
    variable = as_variable(value)
    return variable if dtype is None else cast(variable, dtype)


def asarray(a: Any, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Variable:
    """As :func:`as_tensor`. What ``copy`` says means nothing: nobody can change a Variable.

    Parameters
    ----------
    a
        A Variable, array, number or nested list of them.
    dtype
        Of the result; by default NumPy's choice.
    device
        None or "cpu".
    """
    from esat.ops.arrays.creation import check_device

    check_device("asarray", device)
    return as_tensor(a, dtype)


def array(object: Any, dtype: Any = None, *, copy: bool | None = True, ndmin: int = 0) -> Variable:
    """As :func:`asarray`, with new axes in front up to ``ndmin`` of them."""
    from esat.ops.inference.broadcasting import pad_rank

    return pad_rank(asarray(object, dtype), ndmin)


def _contains_variable(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_contains_variable, value))
    return isinstance(value, (Variable, Traced))


_LETTERS = {
    "b": "int8", "w": "int16", "i": "int32", "l": "int64",
    "f": "float32", "d": "float64", "c": "complex64", "z": "complex128",
}  # fmt: skip
_SHAPES: dict[str, Shape] = {
    "scalar": (),
    "vector": (None,),
    "matrix": (None, None),
    "row": (1, None),
    "col": (None, 1),
    "tensor3": (None,) * 3,
    "tensor4": (None,) * 4,
}

TYPES: dict[str, TensorType] = {
    letter + kind: TensorType(dtype, shape=tuple(shape))
    for letter, dtype in _LETTERS.items()
    for kind, shape in _SHAPES.items()
}
"""Types by Theano's names: ``dmatrix`` is a matrix of float64. Called with a name, it makes a Variable."""
