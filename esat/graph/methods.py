"""The methods and properties of Variables, under NumPy's names.

Each calls the function of its name that the frontend has registered, so that the graph need not
know the ops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from esat.errors import DtypeError, GraphError, ShapeError, UserLine, describe
from esat.graph.calls.callers import caller
from esat.graph.operators import Operators, same_node
from esat.graph.registry import function_named
from esat.graph.sparse_type import SparseType, holds_sparse
from esat.graph.types import TensorType, Type

if TYPE_CHECKING:
    from esat.graph.variables import Apply, Variable

NOT_GIVEN: Any = np._NoValue
"""What NumPy's functions call an argument that is not given where None means something."""


class Methods(Operators):
    """What a Variable can do beside arithmetic. The functions of the same names say more."""

    __slots__ = ()
    type: Type

    @property
    def tensor_type(self) -> TensorType:
        """The type, for a variable that holds a tensor. Raises GraphError for any other."""
        if not isinstance(self.type, TensorType):
            reason = f"{self} is a {self.type}, not a tensor; what sparse matrices have is in esat.sparse"
            raise GraphError(caller() + reason)
        return self.type

    # ---- NumPy's functions called with a Variable, `array + variable` included

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        return function_named("call_numpy")(function, arguments, keywords)

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        return function_named("call_ufunc")(ufunc, method, operands, options)

    # ---- properties

    @property
    def dtype(self) -> str:
        """Name of the dtype of the elements."""
        return self.type.dtype if isinstance(self.type, SparseType) else self.tensor_type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return 2 if isinstance(self.type, SparseType) else self.tensor_type.ndim

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """True for each axis that is known to have size 1."""
        return self.tensor_type.broadcastable

    @property
    def shape(self) -> Variable:
        """The sizes as an int64 vector, part of the graph; ``type.shape`` has those known now."""
        return self._call("shape")

    @property
    def size(self) -> Variable:
        """The number of elements as an int64 scalar, part of the graph."""
        return self._call("size")

    @property
    def T(self) -> Variable:  # noqa: N802
        """The axes in reverse order."""
        return self._call("transpose")

    @property
    def mT(self) -> Variable:  # noqa: N802
        """The last two axes exchanged."""
        return self._call("matrix_transpose")

    @property
    def real(self) -> Variable:
        """The real part."""
        return self._call("real")

    @property
    def imag(self) -> Variable:
        """The imaginary part."""
        return self._call("imag")

    @property
    def at(self) -> Any:
        """``x.at[index].set(value)`` and ``.add(value)`` make changed copies."""
        return function_named("at")(self)

    # ---- indexing and protocols

    def __getitem__(self, index: Any) -> Variable:
        return self._call("getitem", index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise GraphError("Variables cannot be changed; write y = esat.set_subtensor(x[index], value)")

    def __len__(self) -> int:
        shape = self.tensor_type.shape
        if not shape or shape[0] is None:
            reason = "the size of the first axis is not known; x.shape[0] is part of the graph"
            raise ShapeError(describe("len", [self.type], reason, self._where))
        return shape[0]

    def __iter__(self) -> Iterator[Variable]:
        shape = self.tensor_type.shape
        if not shape or shape[0] is None:
            reason = "the number of elements is not known yet; use esat's functions, not Python's"
            raise ShapeError(describe("iter", [self.type], reason, self._where))
        return iter([self[position] for position in range(shape[0])])

    def __contains__(self, item: Any) -> bool:
        raise GraphError("a Variable has no elements before it is computed; use esat.any(x == item)")

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise DtypeError(f"{self} has no value before it is computed; use esat's functions, not NumPy's")

    # ---- what asks for a number

    @property
    def _where(self) -> UserLine | None:
        """The user's line that made it, for messages."""
        owner: Apply | None = getattr(self, "owner", None)
        return None if owner is None else owner.where

    def __bool__(self) -> bool:
        same = same_node(self)
        if same is not None:
            return same
        advice = (
            "use esat.where, esat.ifelse, & and |; whether two Variables are the same one is asked by `is`"
        )
        raise self._no_value("bool", advice, "truth value")

    def __float__(self) -> float:
        raise self._no_value("float", "x.astype('float64') converts it, x.evaluate(...) computes it")

    def __int__(self) -> int:
        raise self._no_value("int", "x.astype('int64') converts it, x.evaluate(...) computes it")

    def __complex__(self) -> complex:
        raise self._no_value("complex", "x.astype('complex128') converts it, x.evaluate(...) computes it")

    def __index__(self) -> int:
        raise self._no_value(
            "index", "a Variable is an index of Variables, not of Python's sequences and ranges"
        )

    def _no_value(self, asked: str, advice: str, lacking: str = "value") -> DtypeError:
        reason = f"{self} has no {lacking} before it is computed; {advice}"
        return DtypeError(describe(asked, [self.type], reason, self._where))

    def __matmul__(self, other: Any) -> Variable:
        return self._call("matmul", other)

    def __rmatmul__(self, other: Any) -> Variable:
        return _called("matmul", other, self)

    def __round__(self, decimals: int | None = None) -> Variable:
        return self._call("round", decimals or 0)

    def _call(self, name: str, *arguments: Any, **options: Any) -> Variable:
        return _called(name, self, *arguments, **options)

    def eval(self, values: Mapping[Variable, Any] | None = None) -> Any:
        """The value, given values of the Variables it depends on; computed without optimization."""
        return function_named("evaluate")(self, values)

    # ---- reductions

    def sum(
        self, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = NOT_GIVEN,
        where: Any = NOT_GIVEN,
    ) -> Variable:  # fmt: skip
        """Sum over ``axis``."""
        return self._call("sum", axis, dtype, keepdims, initial=initial, where=where)

    def prod(
        self, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = NOT_GIVEN,
        where: Any = NOT_GIVEN,
    ) -> Variable:  # fmt: skip
        """Product over ``axis``."""
        return self._call("prod", axis, dtype, keepdims, initial=initial, where=where)

    def mean(
        self, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = NOT_GIVEN
    ) -> Variable:
        """Mean over ``axis``."""
        return self._call("mean", axis, dtype, keepdims, where=where)

    def var(
        self, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *,
        where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN,
    ) -> Variable:  # fmt: skip
        """Variance over ``axis``."""
        return self._call("var", axis, dtype, ddof, keepdims, where=where, mean=mean)

    def std(
        self, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *,
        where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN,
    ) -> Variable:  # fmt: skip
        """Standard deviation over ``axis``."""
        return self._call("std", axis, dtype, ddof, keepdims, where=where, mean=mean)

    def max(
        self, axis: Any = None, keepdims: bool = False, initial: Any = NOT_GIVEN, where: Any = NOT_GIVEN
    ) -> Variable:
        """Largest element over ``axis``."""
        return self._call("max", axis, keepdims, initial=initial, where=where)

    def min(
        self, axis: Any = None, keepdims: bool = False, initial: Any = NOT_GIVEN, where: Any = NOT_GIVEN
    ) -> Variable:
        """Smallest element over ``axis``."""
        return self._call("min", axis, keepdims, initial=initial, where=where)

    def any(self, axis: Any = None, keepdims: bool = False, *, where: Any = NOT_GIVEN) -> Variable:
        """Whether some element over ``axis`` is not zero."""
        return self._call("any", axis, keepdims, where=where)

    def all(self, axis: Any = None, keepdims: bool = False, *, where: Any = NOT_GIVEN) -> Variable:
        """Whether every element over ``axis`` is not zero."""
        return self._call("all", axis, keepdims, where=where)

    def argmax(self, axis: Any = None, keepdims: bool = False) -> Variable:
        """Index of the first largest element."""
        return self._call("argmax", axis, keepdims)

    def argmin(self, axis: Any = None, keepdims: bool = False) -> Variable:
        """Index of the first smallest element."""
        return self._call("argmin", axis, keepdims)

    def norm(self, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Variable:
        """Vector norm over ``axis``."""
        return self._call("norm", ord, axis, keepdims)

    def cumsum(self, axis: Any = None, dtype: Any = None) -> Variable:
        """Running sums along ``axis``."""
        return self._call("cumsum", axis, dtype)

    def cumprod(self, axis: Any = None, dtype: Any = None) -> Variable:
        """Running products along ``axis``."""
        return self._call("cumprod", axis, dtype)

    # ---- elements

    def dot(self, other: Any) -> Variable:
        """``numpy.dot`` of the two."""
        return self._call("dot", other)

    def astype(self, dtype: Any) -> Variable:
        """The elements converted to ``dtype``."""
        return self._call("cast", dtype)

    def clip(self, min: Any = None, max: Any = None) -> Variable:
        """The elements, no less than ``min`` and no more than ``max``; None is no bound."""
        return self._call("clip", min, max)

    def round(self, decimals: int = 0) -> Variable:
        """The elements rounded to so many decimals, halves to even."""
        return self._call("round", decimals)

    def conj(self) -> Variable:
        """The complex conjugate."""
        return self._call("conj")

    def copy(self) -> Variable:
        """The same values as a new array."""
        return self._call("copy")

    def fill(self, value: Any) -> Variable:
        """An array of this shape and dtype filled with ``value``."""
        return self._call("full_like", value)

    def sort(self, axis: Any = -1) -> Variable:
        """The elements in ascending order along ``axis``."""
        return self._call("sort", axis)

    def argsort(self, axis: Any = -1) -> Variable:
        """The places of the elements in ascending order along ``axis``."""
        return self._call("argsort", axis)

    # ---- shape

    def reshape(self, *shape: Any, ndim: int | None = None) -> Variable:
        """The elements in C order under another shape, given as one argument or several."""
        return self._call("reshape", shape[0] if len(shape) == 1 else shape, ndim=ndim)

    def transpose(self, *axes: Any) -> Variable:
        """The axes permuted, given as one argument or several; by default reversed."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return self._call("transpose", order)

    def dimshuffle(self, *order: Any) -> Variable:
        """The axes in another order, with ``"x"`` for new ones of size 1."""
        return self._call(
            "dimshuffle", order[0] if len(order) == 1 and isinstance(order[0], (tuple, list)) else order
        )

    def swapaxes(self, axis1: int, axis2: int) -> Variable:
        """Two axes exchanged."""
        return self._call("swapaxes", axis1, axis2)

    def flatten(self, ndim: int = 1) -> Variable:
        """The last axes merged, so that ``ndim`` are left."""
        return self._call("flatten", ndim)

    def ravel(self) -> Variable:
        """All elements as a vector."""
        return self._call("ravel")

    def squeeze(self, axis: Any = None) -> Variable:
        """Axes of size 1 dropped."""
        return self._call("squeeze", axis)

    def repeat(self, repeats: Any, axis: Any = None) -> Variable:
        """Each element, or each place along ``axis``, repeated."""
        return self._call("repeat", repeats, axis)

    def take(self, indices: Any, axis: Any = None) -> Variable:
        """The elements that ``indices`` name."""
        return self._call("take", indices, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
        """A diagonal, as the last axis."""
        return self._call("diagonal", offset, axis1, axis2)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
        """The sum of a diagonal."""
        return self._call("trace", offset, axis1, axis2)


def _called(name: str, *arguments: Any, **options: Any) -> Variable:
    is_sparse = any(map(holds_sparse, arguments))
    function = partial(function_named("sparse_operation"), name) if is_sparse else function_named(name)
    given = {key: value for key, value in options.items() if value is not NOT_GIVEN}
    result: Variable = function(*arguments, **given)
    return result
