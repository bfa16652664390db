"""TracedArray: what a traced function is given in place of an array.

It has the value that the array has at this point of the function: a Variable, or an array where nothing that
is given at run time has entered it. Assignments replace the value. A view has no value of its own but reads
that of what it is a view of, and what is written to it is written there, as in NumPy.

Results of rank 0 are NumPy's scalars there and here: nothing can be assigned to them, and ``s += 1`` makes
another one.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from esat.errors import DtypeError, IndexingError, TracedAttributeError, describe
from esat.frontend.tracing.texts import written
from esat.frontend.tracing.trace import (
    ValueAsked,
    current_trace,
    decided,
    not_known,
    require_running,
    value_of,
)
from esat.frontend.tracing.values.layouts import KnownLayout, MemoryLayout
from esat.frontend.tracing.values.numbers import TracedNumber, size_number
from esat.frontend.tracing.values.operators import TracedOperators
from esat.graph.calls.callers import user_line
from esat.graph.op import as_variable
from esat.graph.registry import function_named
from esat.graph.variables import Variable
from esat.ops.cast import cast


def _python_number(value: Any) -> Any:
    """The one element of an array as a number of Python's."""
    if not isinstance(value, TracedArray) or not isinstance(value.value, Variable):
        return np.asarray(value.value if isinstance(value, TracedArray) else value).item()
    kind = type(value.dtype.type(0).item())
    return TracedNumber(cast(value.value.reshape(()), np.dtype(kind)), kind)


Value = Variable | np.ndarray[Any, np.dtype[Any]]
Read = Callable[[Any], Any]
Write = Callable[[Any, Any], Any]

_NO_TRUTH = "use esat.where or esat.ifelse for what it decides, and & and | for `and` and `or`"
_AMBIGUOUS = (
    "several elements have no truth: x.any() and x.all() have; np.where(condition, a, b) chooses for each"
)
_NO_VALUE = (
    "what depends on values of arrays stays an array; an argument that says how to compute is named in "
    "esat.jit(f, static_argnames=...)"
)
_NO_INDEX = (
    "np.array(values)[i] takes an index that is computed, where lists, range and sizes do not; an argument "
    "that says how to compute is named in esat.jit(f, static_argnames=...)"
)
_NO_KEY = (
    "it cannot be a key of a dict or set; look values up in an array, np.array(values)[i]; np.unique(x) has "
    "the different values of an array"
)
_NO_SIZE = (
    "its size depends on values, a mask's for example; x.shape[0] computes with it, np.sum(mask) counts"
)
_NO_ARRAY = (
    "what is called or written to there takes known values: call a library's function outside, and pass its "
    "result; use a function of NumPy's that esat has; make an array that is written to within the function"
)


class TracedArray(TracedOperators):
    """An array within a traced function.

    Parameters
    ----------
    value
        A Variable, or an array that nobody else writes to.
    is_scalar
        Whether it is what NumPy has as a scalar: it cannot be changed.
    base
        For a view: what it is one of.
    read
        For a view: from the value of the base to its own.
    write
        For a view: from the value of the base and a new one of the view to the new one of the base.
    key
        For a view by an index: the index.
    layout
        How it lies in memory; by default as a new array in C order.

    Attributes
    ----------
    version
        How often it was assigned to.
    """

    __slots__ = (
        "__weakref__", "_base", "_decided", "_layout", "_maybe", "_read", "_seen", "_trace", "_value",
        "_write", "is_scalar", "key", "version",
    )  # fmt: skip

    def __init__(
        self,
        value: Value | None,
        is_scalar: bool = False,
        base: TracedArray | None = None,
        read: Read | None = None,
        write: Write | None = None,
        key: Any = None,
        layout: MemoryLayout | None = None,
    ) -> None:
        self._value = value
        self._base = base
        self._read = read
        self._write = write
        self._seen = -1
        self._layout = layout
        self._decided: list[tuple[weakref.ref[TracedArray], KnownLayout]] = []
        self._maybe: dict[int, tuple[weakref.ref[TracedArray], Callable[[TracedArray], None]]] = {}
        self._trace = current_trace()
        self.key = key
        self.version = 0
        self.is_scalar = is_scalar
        if self._trace is not None:
            self._trace.live.append(weakref.ref(self))

    # ---- the value, and what changes it

    @property
    def root(self) -> TracedArray:
        """The array that this one is a view of, or itself."""
        return self if self._base is None else self._base.root

    @property
    def base(self) -> TracedArray | None:
        """What it is a view of, or None."""
        return self._base

    @property
    def value(self) -> Value:
        """What it holds now: a Variable, or an array where that is known.

        Raises
        ------
        GraphError
            After the trace that it belongs to.
        """
        require_running(self._trace, "an array")
        if self._base is not None and self._read is not None:
            version = self.root.version
            if version != self._seen:
                self._value = self._read(self._base.value)
                self._seen = version
        assert self._value is not None
        return self._value

    @property
    def variable(self) -> Variable:
        return as_variable(self.value)

    @property
    def held(self) -> Value | None:
        """What it holds by itself; None for a view."""
        return self._value if self._base is None else None

    @property
    def cached(self) -> Value | None:
        """What it held when it was last asked, or None where it never was."""
        return self._value

    def exchange(self, value: Variable) -> None:
        """Hold another Variable, which is known to be of equal value."""
        self._value = value

    def become(self, view: TracedArray) -> None:
        """Be the same view as another one, by an index that is known."""
        self._read, self._write, self.key = view._read, view._write, view.key
        self._value, self._seen = view._value, -1

    def look_again(self) -> None:
        """Of a view: have the value from the base, of which another Variable may stand for it."""
        self._seen = -1

    def put_back(self, value: Value) -> None:
        """Hold again what it held before."""
        self._value = value
        self.version += 1

    def may_be(self, other: TracedArray, is_reached: Callable[[TracedArray], None]) -> None:
        """Note that it is an array or another one, by a condition.

        Parameters
        ----------
        is_reached
            Called with one of them before the other is written to; raises an error where code can see it.
        """
        root = other.root
        partners = [root, *(one for one, _ in root._partners())]
        for partner in partners:
            if partner is not self:
                self._maybe[id(partner)] = weakref.ref(partner), is_reached
                partner._maybe[id(self)] = weakref.ref(self), is_reached

    def _partners(self) -> list[tuple[TracedArray, Callable[[TracedArray], None]]]:
        """The arrays that are there still of those that it may be."""
        found = [(reference(), is_reached) for reference, is_reached in self._maybe.values()]
        there = [(one, is_reached) for one, is_reached in found if one is not None]
        self._maybe = {id(one): (weakref.ref(one), is_reached) for one, is_reached in there}
        return there

    def assign(self, value: Value) -> None:
        """Replace all that it holds.

        Raises
        ------
        DtypeError
            For a scalar of NumPy's, which cannot be changed.
        """
        require_running(self._trace, "an array")
        if self.is_scalar:
            reason = (
                "numbers cannot be assigned to; they are arrays of rank 0 only where np.array makes them so"
            )
            raise DtypeError(describe("assignment", [self.variable.type], reason, user_line()))
        if self._base is None:
            if self._decided:
                self._ask_of_layouts()
            for other, is_reached in self._partners():
                is_reached(other)
            if isinstance(self._value, np.ndarray):
                self.layout.found()  # of the array that it was made as
            self._value = value
            self.version += 1
        elif self._write is None:
            raise DtypeError(
                describe("assignment", [self.variable.type], "this view is read-only", user_line())
            )
        else:
            self._base.assign(self._write(self._base.value, value))

    # ---- how it lies in memory

    @property
    def layout(self) -> MemoryLayout:
        """How NumPy would have it in memory."""
        if self._layout is None:
            value = self.value
            known = None if isinstance(value, Variable) else KnownLayout(value, value.flags.c_contiguous)
            self._layout = MemoryLayout(self.known_shape, self.dtype, found=known)
        return self._layout

    def lies_as(self, layout: MemoryLayout) -> None:
        """Say how it lies in memory, where nobody has asked yet."""
        self._layout = layout

    def decided_by(self, source: TracedArray, found: KnownLayout) -> None:
        """Note that it is a view or a copy of another array for what was found of that one's layout.

        It matters once one of the two is written to while the other is there.
        """
        if found.assumed or found.contiguous is None:
            source.root._decided.append((weakref.ref(self), found))
            if self.root is not source.root:
                self._decided.append((weakref.ref(source.root), found))

    def _ask_of_layouts(self) -> None:
        """Before it is written to.

        Raises
        ------
        ValueAsked
            Where the layout of an argument decides whether another array changes, too.
        DtypeError
            Where that is not known.
        """
        for other, found in self._decided:
            if other() is not None:
                if found.assumed:
                    raise ValueAsked(found.assumed, user_line())
                reason = (
                    "whether this array and another one share memory depends on sizes that are not known; "
                    "take a copy of one of them, or compile for arrays of known shapes"
                )
                raise DtypeError(describe("assignment", [self.variable.type], reason, user_line()))

    # ---- what is known of it

    @property
    def known_shape(self) -> tuple[int, ...] | None:
        """The sizes, where all are known."""
        value = self.value
        if isinstance(value, Variable):
            sizes = [size for size in value.tensor_type.shape if size is not None]
            return tuple(sizes) if len(sizes) == value.ndim else None
        known: tuple[int, ...] = value.shape
        return known

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes: integers where they are known, and else numbers to compute with."""
        value = self.value
        if not isinstance(value, Variable):
            known: tuple[int, ...] = value.shape
            return known
        sizes = value.tensor_type.shape
        return tuple(size_number(value, axis) if size is None else size for axis, size in enumerate(sizes))

    @shape.setter
    def shape(self, shape: Any) -> None:
        reason = "a shape is not assigned to in a traced function; write x = x.reshape(shape)"
        raise TracedAttributeError(describe("shape", [self.variable.type], reason, user_line()))

    @property
    def flags(self) -> Any:
        """How it lies in memory, as NumPy's arrays say: that of an argument becomes a part of the program.

        Raises
        ------
        TracingError
            Where that depends on sizes that are not known.
        """
        found = self.layout.found()
        if found.assumed:
            raise ValueAsked(found.assumed, user_line())
        if found.example is None:
            raise not_known(self.variable, "flags", "its layout depends on sizes; compile for known shapes")
        return found.example.flags

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.value.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""
        return np.dtype(self.value.dtype)

    @property
    def size(self) -> Any:
        """The number of elements."""
        result: Any = 1
        for size in self.shape:
            result = result * size
        return result

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """As ``isinstance(x, np.ndarray)`` asks, which functions do to tell arrays from numbers."""
        return self.dtype.type if self.is_scalar and not self._is_left() else np.ndarray

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The functions of the array-API standard: ``esat.numpy``."""
        return function_named("array_namespace")()

    @property
    def device(self) -> str:
        """Where arrays are, for code written to the array-API standard."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: Any = None) -> TracedArray:
        """Itself: there is the one device "cpu"."""
        if device != "cpu":
            raise DtypeError(describe("to_device", [device], 'arrays are on the device "cpu"', user_line()))
        return self

    # ---- elements

    def __getitem__(self, index: Any) -> Any:
        return function_named("traced_getitem")(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        function_named("traced_setitem")(self, index, value)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of unsized object")
        size = self.shape[0]
        if isinstance(size, TracedNumber):
            raise not_known(self.variable, "len", _NO_SIZE)
        return int(size)

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return iter([self[place] for place in range(len(self))])

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    # ---- values

    def known(self, asked: str, advice: str = _NO_VALUE) -> np.ndarray[Any, np.dtype[Any]]:
        """The value, where it is known; see :func:`value_of`."""
        value = self.value
        return value_of(value, asked, advice) if isinstance(value, Variable) else value

    def __hash__(self) -> int:
        if not self.is_scalar:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(self.known("hash", _NO_KEY)[()])

    def __bool__(self) -> bool:
        value = self.value
        if not isinstance(value, Variable):
            return bool(value)
        if self.known_shape is not None and math.prod(self.known_shape) == 1:
            value = value.reshape(())
        return decided(value, "bool", _AMBIGUOUS if value.ndim else _NO_TRUTH)

    def __float__(self) -> float:
        return float(self._number("float"))

    def __int__(self) -> int:
        return int(self._number("int"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def _number(self, kind: str) -> Any:
        """The value as a number is asked for it, as NumPy does to store it in an array of its own."""
        converted = f"x.astype({kind}) converts it, and arrays that esat.numpy makes can hold it"
        return self.known(kind, f"{converted}; {_NO_VALUE}")

    def __index__(self) -> int:
        return operator.index(self.known("index", _NO_INDEX)[()])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, np.dtype[Any]]:
        return np.array(self.known("array", _NO_ARRAY), dtype)

    def item(self, *index: Any) -> Any:
        """The one element, or that at an index, as a number."""
        chosen: Any = self
        if len(index) == 1 and isinstance(index[0], int) and self.ndim != 1:
            chosen = self.flat[index[0]]
        elif index:
            chosen = self[index if len(index) != 1 else index[0]]
        if index or self.known_shape == () or self.size == 1:
            return _python_number(chosen)
        raise IndexingError("can only convert an array of size 1 to a Python scalar")

    def tolist(self) -> Any:
        """The elements as Python's numbers."""
        if not self.ndim:
            return self.item()
        return [one.tolist() if type(one) is TracedArray else one for one in self]

    def __repr__(self) -> str:
        if self._is_left():
            return "<an array of a function whose trace has ended>"
        value = self.value
        return f"<traced {value.type}>" if isinstance(value, Variable) else f"<known {value!r}>"

    def _is_left(self) -> bool:
        """Whether the trace that it belongs to has ended."""
        return self._trace is not None and self._trace.has_ended

    def __format__(self, spec: str) -> str:
        value = self.value
        if not isinstance(value, Variable):
            return format(value[()], spec)
        return written(value, spec, repr(self))

    def __str__(self) -> str:
        return self.__format__("")

    # ---- copies

    def copy(self, order: Literal["C", "F", "A", "K"] = "C") -> TracedArray:
        """Another array of the same elements."""
        value = self.value
        layout = MemoryLayout(self.known_shape, self.dtype, np.array, (self.layout,), {"order": order})
        value = value if isinstance(value, Variable) else value.copy()
        return TracedArray(value, is_scalar=self.is_scalar, layout=layout)

    def __copy__(self) -> TracedArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> TracedArray:
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise DtypeError(f"{self!r} is part of a function that is being traced, and cannot be pickled")
