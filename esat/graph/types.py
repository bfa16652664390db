"""Types: the constraints a Variable puts on its values."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ShapeError

if TYPE_CHECKING:
    from esat.graph.variables import Variable

DTYPES: tuple[str, ...] = (
    "bool",
    "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
"""Every dtype a tensor can have. The position is the dtype's number in the e-graph."""

DTYPE_NUMBER: dict[str, int] = {name: number for number, name in enumerate(DTYPES)}

_RANK_NAMES = ("scalar", "vector", "matrix", "tensor3", "tensor4", "tensor5", "tensor6", "tensor7", "tensor8")
MAXIMUM_RANK = 8
LARGEST_SIZE = 2**63 - 1


class Type:
    """A set of constraints on values: the kind of data a Variable can hold.

    Attributes
    ----------
    variable
        The class of Variables; it is made of types, and enters itself here.
    """

    variable: ClassVar[type[Variable]]

    def filter(self, value: object) -> Any:
        """Return ``value`` as data of this type, or raise an EsatError."""
        raise NotImplementedError

    def make_variable(self, name: str | None = None) -> Variable:
        """A new Variable of this type, without owner."""
        return self.variable(self, name=name)

    def __call__(self, name: str | None = None) -> Variable:
        """A new Variable of this type."""
        return self.make_variable(name)


def check_unmasked(value: object) -> None:
    """Raise DtypeError for a masked array that hides elements: they would be computed with unnoticed."""
    if type(value) is not np.ndarray and isinstance(value, np.ndarray) and np.ma.is_masked(value):
        raise DtypeError("a masked array hides elements, and masks are unknown here; fill it first")


@record(frozen=True, slots=True, init=False)
class TensorType(Type):
    """Dense arrays of one dtype and rank.

    Parameters
    ----------
    dtype
        One of :data:`DTYPES`, or anything NumPy takes for one of them.
    broadcastable
        One flag an axis: True where the size is 1 and may be stretched. Given alone, the other
        sizes are unknown.
    shape
        One size an axis, ``None`` where it is known only at run time. An axis of unknown size
        never broadcasts at run time: sizes that do not match there are an error.

    Raises
    ------
    DtypeError
        For a dtype outside :data:`DTYPES`.
    ShapeError
        For a negative size, more than eight axes, or flags that contradict the sizes.
    """

    dtype: str
    shape: tuple[int | None, ...]

    def __init__(
        self,
        dtype: Any,
        broadcastable: tuple[bool, ...] | list[bool] | None = None,
        shape: tuple[int | None, ...] | list[int | None] | None = None,
    ) -> None:
        object.__setattr__(self, "dtype", normalize_dtype(dtype))
        flags = None if broadcastable is None else _flags(broadcastable)
        sizes = tuple(1 if flag else None for flag in flags or ()) if shape is None else _sizes(shape)
        if flags is not None and len(flags) != len(sizes):
            raise ShapeError(f"TensorType: {len(flags)} broadcast flags for {len(sizes)} axes")
        if flags is not None and any(flag != (size == 1) for flag, size in zip(flags, sizes, strict=True)):
            raise ShapeError(f"TensorType: broadcastable={flags} contradicts shape={sizes}")
        if len(sizes) > MAXIMUM_RANK:
            raise ShapeError(f"TensorType: at most {MAXIMUM_RANK} axes, not {len(sizes)}")
        object.__setattr__(self, "shape", sizes)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def broadcastable(self) -> tuple[bool, ...]:
        """True for each axis of size 1."""
        return tuple(size == 1 for size in self.shape)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype as NumPy's object."""
        return np.dtype(self.dtype)

    @property
    def kind(self) -> str:
        """NumPy's kind letter: b, i, u, f or c."""
        return self.numpy_dtype.kind

    def with_dtype(self, dtype: str) -> TensorType:
        """The same shape in another dtype."""
        return self if isinstance(dtype, str) and dtype == self.dtype else TensorType(dtype, shape=self.shape)

    def with_shape(self, shape: tuple[int | None, ...]) -> TensorType:
        """The same dtype in another shape."""
        same = isinstance(shape, tuple) and shape == self.shape
        return self if same else TensorType(self.dtype, shape=shape)

    def filter(self, value: object) -> np.ndarray[Any, np.dtype[Any]]:
        """``value`` as an array of exactly this dtype and rank; sizes must fit the static ones.

        A cast is made only where it loses nothing (NumPy's ``safe`` rule, and Python numbers by value).
        """
        check_unmasked(value)
        try:
            given = np.asarray(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise DtypeError(f"{reprlib.repr(value)} is no array, as {self} needs: {error}") from error
        if given.dtype.kind not in "biufc":
            shown = reprlib.repr(value)
            if type(value) is int:
                raise DtypeError(f"{shown} does not fit {self}")
            raise DtypeError(f"{shown} is not numeric, as {self} needs: its dtype is {given.dtype}")
        if given.dtype != self.numpy_dtype:
            weak = type(value) in (bool, int, float, complex) or (
                isinstance(value, (list, tuple)) and given.size == 0
            )
            if not (weak and _fits(given, self.numpy_dtype)) and not np.can_cast(
                given.dtype, self.numpy_dtype
            ):
                raise DtypeError(f"a value of dtype {given.dtype} does not fit {self} without loss")
            given = given.astype(self.numpy_dtype)
        if not self.admits_shape(given.shape):
            raise ShapeError(f"a value of shape {given.shape} does not fit {self}")
        return given

    def admits_shape(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape can be a value of the type."""
        if not isinstance(shape, tuple | list):
            return False
        return len(shape) == self.ndim and all(
            size is None or size == actual for size, actual in zip(self.shape, shape, strict=True)
        )

    def admits(self, other: Type) -> bool:
        """Whether every value of ``other`` is a value of this type."""
        return (
            isinstance(other, TensorType)
            and other.dtype == self.dtype
            and other.ndim == self.ndim
            and all(
                mine is None or mine == theirs for mine, theirs in zip(self.shape, other.shape, strict=True)
            )
        )

    def __str__(self) -> str:
        name = f"{_RANK_NAMES[self.ndim]}({self.dtype}"
        if any(size is not None for size in self.shape):
            name += ", shape=(" + ", ".join("?" if size is None else str(size) for size in self.shape)
            name += ",)" if self.ndim == 1 else ")"
        return name + ")"

    def __repr__(self) -> str:
        return f"TensorType({self.dtype!r}, shape={self.shape})"


def may_stand_for(old: Type, new: Type) -> bool:
    """Whether a Variable of one type may stand where one of the other type stood.

    What is known of the sizes may differ, but must not contradict.
    """
    if old == new:
        return True
    return (
        isinstance(old, TensorType)
        and isinstance(new, TensorType)
        and old.dtype == new.dtype
        and old.ndim == new.ndim
        and all(None in pair or pair[0] == pair[1] for pair in zip(old.shape, new.shape, strict=True))
    )


def normalize_dtype(dtype: Any) -> str:
    """The name of a dtype esat knows. Raises DtypeError for any other."""
    if isinstance(dtype, str) and dtype in DTYPE_NUMBER:
        return dtype
    try:
        name = str(np.dtype(dtype).name)
    except (
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        raise DtypeError(f"{reprlib.repr(dtype)} is not a dtype") from error
    if name not in DTYPE_NUMBER:
        raise DtypeError(f"dtype {name!r} is not numeric; esat knows {', '.join(DTYPES)}")
    return name


def _sizes(shape: Any) -> tuple[int | None, ...]:
    if not isinstance(shape, list | tuple):
        try:
            shape = tuple(shape)
        except TypeError as error:
            reason = f"shape has one size an axis, an integer or None; it is not {reprlib.repr(shape)}"
            raise ShapeError(f"TensorType: {reason}") from error
    return tuple([None if size is None else _normalize_size(size) for size in shape])


def _flags(broadcastable: Any) -> tuple[bool, ...]:
    try:
        flags = tuple(broadcastable)
    except TypeError:
        flags = (None,)
    if not all(isinstance(flag, bool | np.bool_ | int) for flag in flags):
        reason = f"broadcastable has True or False for each axis; it is not {reprlib.repr(broadcastable)}"
        raise ShapeError(f"TensorType: {reason}")
    return tuple(map(bool, flags))


def _normalize_size(size: Any) -> int:
    try:
        known = int(size.__index__())
    except (AttributeError, TypeError) as error:
        reason = f"a size is an integer or None, not {reprlib.repr(size)}"
        raise ShapeError(f"TensorType: {reason}") from error
    if not 0 <= known <= LARGEST_SIZE:
        reason = f"a size is from 0 to 2**63 - 1, never negative: not {reprlib.repr(known)}"
        raise ShapeError(f"TensorType: {reason}")
    return known


def _fits(value: np.ndarray[Any, np.dtype[Any]], dtype: np.dtype[Any]) -> bool:
    """Whether a Python number keeps its value (integers) or its kind (floats) in ``dtype``."""
    if value.dtype.kind in "iub" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return bool(np.all((value >= limits.min) & (value <= limits.max)))
    return "biufc".index(value.dtype.kind if value.dtype.kind != "u" else "i") <= "biufc".index(
        dtype.kind if dtype.kind != "u" else "i"
    )
