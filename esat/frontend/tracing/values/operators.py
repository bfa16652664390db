"""Python's operators and NumPy's methods on traced arrays, all of them calls of NumPy's functions.

NumPy hands these calls on by its protocols, so that ``x.sum(axis=0)``, ``np.sum(x, axis=0)`` and
``np.add.reduce(x, axis=0)`` are one thing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esat.base.spelling import suggestion
from esat.errors import DtypeError, TracedAttributeError, describe
from esat.graph.calls.callers import user_line
from esat.graph.registry import function_named
from esat.graph.tracing import Traced

_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift,
    "rshift": np.right_shift, "divmod": np.divmod,
}  # fmt: skip
_COMPARING = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal,
}  # fmt: skip
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}

_numpy: Any = np
"""NumPy's functions, called with what is no array for type checkers."""

_METHODS = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "cumprod", "cumsum",
    "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ravel", "repeat", "round", "searchsorted",
    "squeeze", "std", "sum", "swapaxes", "take", "trace", "var",
)  # fmt: skip
"""Methods whose parameters are those of NumPy's functions of their names, after the array."""


_OF_LISTS = {
    "append": "np.append(x, value)", "extend": "np.concatenate([x, values])",
    "insert": "np.insert(x, place, value)", "pop": "np.delete(x, -1)", "remove": "x[x != value]",
    "index": "np.argmax(x == value)", "count": "np.sum(x == value)", "reverse": "x[::-1]",
}  # fmt: skip
"""Methods of lists -> what does so with arrays."""


class TracedOperators(Traced):
    """The arithmetic that traced arrays take part in, and their methods."""

    __slots__ = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError

    def __setitem__(self, index: Any, value: Any) -> None:
        raise NotImplementedError

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        return function_named("traced_ufunc")(ufunc, method, operands, options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        return function_named("traced_function")(function, arguments, keywords)

    # ---- parts, as views

    @property
    def T(self) -> Any:  # noqa: N802 - as NumPy's
        """The axes in reverse order."""
        return _numpy.transpose(self)

    @property
    def mT(self) -> Any:  # noqa: N802
        """The last two axes exchanged."""
        return _numpy.matrix_transpose(self)

    @property
    def real(self) -> Any:
        """The real parts."""
        return _numpy.real(self)

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return _numpy.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    @property
    def flat(self) -> Any:
        """All elements as a vector that writes to them, however they lie in memory."""
        return function_named("traced_flat")(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[...] = value

    # ---- methods with parameters of their own

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
        """The elements under another shape, given as one argument or several."""
        sizes = shape[0] if len(shape) == 1 else shape
        return _numpy.reshape(self, sizes, order=order, copy=copy)

    def transpose(self, *axes: Any) -> Any:
        """The axes permuted, given as one argument or several; by default reversed."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return _numpy.transpose(self, order)

    def flatten(self, order: Any = "C") -> Any:
        """All elements as a vector of its own."""
        return _numpy.ravel(self, order).copy()

    def astype(self, dtype: Any, order: Any = "K", casting: Any = "unsafe", copy: bool = True) -> Any:
        """The elements converted to a dtype."""
        return function_named("traced_astype")(self, dtype, order, casting, copy)

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """All elements, as a view; of no other dtype."""
        if type is not None or (dtype is not None and np.dtype(dtype) != self.dtype):
            reason = "bits are not taken for those of another type; x.astype(dtype) converts the values"
            raise DtypeError(describe("view", [self.dtype, dtype or type], reason, user_line()))
        return self.__getitem__(...)

    def __getattr__(self, name: str) -> Any:
        """Tell what there is in place of an attribute that there is not."""
        if name.startswith("__"):
            raise AttributeError(name)
        close = suggestion(name, dir(type(self)))
        if not hasattr(np.ndarray, name):
            instead = _OF_LISTS.get(name)
            advice = close if instead is None else f" (lists have it; {instead} instead)"
            reason = f"an array has no attribute {name!r}{advice}"
            raise TracedAttributeError(describe(f"x.{name}", [], reason, user_line()))
        reason = f"an array within a traced function has no attribute {name!r}{close}"
        raise TracedAttributeError(describe(name, [self.dtype], reason, user_line()))

    def fill(self, value: Any) -> None:
        """Write a number to all elements."""
        self.__setitem__(..., value)

    def sort(self, axis: int = -1, kind: Any = None) -> None:
        """Sort the elements along an axis, in place."""
        self.__setitem__(..., _numpy.sort(self, axis))

    def conj(self) -> Any:
        """The complex conjugate; of real numbers, booleans among them, the array itself."""
        return _numpy.conjugate(self) if self.dtype.kind == "c" else self

    conjugate = conj

    def put(self, indices: Any, values: Any) -> None:
        """Write to elements by their places among all."""
        _numpy.put(self, indices, values)

    def compress(self, condition: Any, axis: Any = None) -> Any:
        """The parts across an axis for which a condition holds."""
        return _numpy.compress(condition, self, axis)

    def __round__(self, decimals: int | None = None) -> Any:
        return _numpy.round(self, decimals or 0)

    def __divmod__(self, other: Any) -> Any:
        return _numpy.floor_divide(self, other), _numpy.remainder(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return _numpy.floor_divide(other, self), _numpy.remainder(other, self)

    def __pow__(self, other: Any) -> Any:
        # As NumPy's operator: the square of a boolean is int8, where its power is int64; roots and
        # reciprocals of complex numbers have other infinities than their powers.
        if type(other) is int and other == 2:
            return _numpy.square(self)
        if type(other) in (int, float) and not getattr(self, "is_scalar", False) and self.dtype.kind == "c":
            if type(other) is int and other == -1:  # and not -1.0
                return _numpy.reciprocal(self)
            if other == 0.5:
                return _numpy.sqrt(self)
        return _numpy.power(self, other)


def _binary(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:  # a function, that it becomes a method
        return ufunc(self, other)

    return operate


def _compared(name: str, ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        if other is None and name in ("eq", "ne"):  # which no number is
            return _numpy.full_like(self, name == "ne", dtype=bool)
        return ufunc(self, other)

    return operate


def _reflected(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    return lambda self, other: ufunc(other, self)


def _in_place(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        return ufunc(self, other) if self.is_scalar else ufunc(self, other, out=(self,))

    return operate


def _unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    def operate(self: Any) -> Any:
        return ufunc(self)

    return operate


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        return function(self, *arguments, **keywords)

    method.__name__ = name
    method.__doc__ = f"As ``numpy.{name}``."
    return method


def _define() -> None:
    for name, ufunc in _BINARY.items():
        if f"__{name}__" not in vars(TracedOperators):
            setattr(TracedOperators, f"__{name}__", _binary(ufunc))
        if name != "divmod":
            setattr(TracedOperators, f"__r{name}__", _reflected(ufunc))
            setattr(TracedOperators, f"__i{name}__", _in_place(ufunc))
    for name, ufunc in _COMPARING.items():
        setattr(TracedOperators, f"__{name}__", _compared(name, ufunc))
    for name, ufunc in _UNARY.items():
        setattr(TracedOperators, f"__{name}__", _unary(ufunc))
    for name in _METHODS:
        setattr(TracedOperators, name, _method(name))


_define()
