"""TracedNumber: a Python number of the caller's that takes part in a program as a run-time scalar.

It behaves as the number would: weak where it meets arrays, and a number again where it meets numbers. Where
Python asks for its value, as ``range(n)`` and ``if n > 3`` do, the function is traced anew with the value
known.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from esat.errors import ParameterError, TracedAttributeError, describe
from esat.frontend.tracing.texts import written
from esat.frontend.tracing.trace import (
    check,
    current_trace,
    decided,
    is_of_numbers,
    require_running,
    value_of,
)
from esat.frontend.tracing.values.mixed import keep_mixed
from esat.graph.calls.callers import user_line
from esat.graph.op import as_variable
from esat.graph.registry import function_named, op_named
from esat.graph.tracing import WeakNumber
from esat.graph.variables import Variable
from esat.ops.arrays.shape import size_of
from esat.ops.cast import cast

_numpy: Any = np
"""NumPy's functions, called with what is no array for type checkers."""
_KINDS: dict[str, type] = {"i": int, "f": float, "c": complex, "b": bool}
_PYTHONS = (int, float, complex)
_ADVICE = (
    "name the argument it comes from in esat.jit(f, static_argnames=...), or compute with arrays: esat.where "
    "and esat.ifelse decide by values"
)


_NO_COUNT = (
    "a range, list or text needs it before: compute it outside, and pass it as an argument; "
    "esat.fori_loop(0, n, body, value) has a computed number of steps, np.array(values)[i] a computed place"
)
_COMPLEX = (
    "a negative number of Python's to a power that is no integer is complex; numpy.power gives NaN, and "
    "complex(x) ** y the complex number"
)


class TracedNumber(WeakNumber):
    """A Python number within a traced function."""

    __slots__ = ("__weakref__", "_trace")

    def __init__(self, variable: Variable, kind: type) -> None:
        super().__init__(variable, kind)
        self._trace = current_trace()
        if self._trace is not None:
            self._trace.live.append(weakref.ref(self))

    @property
    def held(self) -> Variable:
        """The scalar."""
        return self._variable

    def exchange(self, variable: Variable) -> None:
        """Stand for another scalar, which is known to be of equal value."""
        self._variable = variable

    @property
    def variable(self) -> Variable:
        """A scalar of the dtype that NumPy gives the type. Raises GraphError after the number's trace."""
        require_running(self._trace, "a number")
        return self._variable

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """As ``isinstance(n, int)`` asks."""
        return self.kind

    def known(self) -> Any:
        """The value, as the Python number it is; see :func:`esat.frontend.tracing.trace.value_of`."""
        return self.kind(value_of(self.variable, self.kind.__name__, _ADVICE))

    def size_or_variable(self) -> Any:
        """For sizes and axes: the value, or the Variable where it is computed from sizes unknown till run
        time."""
        return self.variable if self._is_size() else self.known()

    def _is_size(self) -> bool:
        return not is_of_numbers(self.variable)

    def __getattr__(self, name: str) -> Any:
        """Tell what there is in place of an attribute that numbers of Python's do not have."""
        if name.startswith("__"):
            raise AttributeError(name)
        advice = "pass an array, np.asarray(x), where attributes of arrays are meant"
        reason = f"a {self.kind.__name__} of Python's has no attribute {name!r}; {advice}"
        raise TracedAttributeError(describe(f"x.{name}", [], reason, user_line()))

    def __bool__(self) -> bool:
        return decided(self.variable, "bool", _ADVICE)

    def __int__(self) -> int:
        return int(self.known())

    def __float__(self) -> float:
        return float(self.known())

    def __complex__(self) -> complex:
        return complex(self.known())

    def __index__(self) -> int:
        if self.kind is not int:
            raise TypeError(f"'{self.kind.__name__}' object cannot be interpreted as an integer")
        advice = _ADVICE if is_of_numbers(self.variable) else _NO_COUNT
        return operator.index(int(value_of(self.variable, "int", advice)))

    def __hash__(self) -> int:
        return hash(self.known())

    def __repr__(self) -> str:
        return f"<traced {self.kind.__name__}>"

    def __str__(self) -> str:
        return self.__format__("")

    def __format__(self, spec: str) -> str:
        if is_of_numbers(self.variable):
            return format(self.known(), spec)
        return written(self.variable, spec, repr(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, np.dtype[Any]]:
        """As NumPy asks for the items of a list."""
        return np.array(self.known(), dtype)

    def __round__(self, decimals: int | None = None) -> Any:
        return round(self.known(), decimals)

    def __trunc__(self) -> int:
        return int(self.known())

    __ceil__ = __floor__ = None

    # ---- what numbers of Python's have

    @property
    def real(self) -> Any:
        """The real part."""
        return self if self.kind is not complex else _number(op_named("real")(self.variable))

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return (
            _combined("mul", np.multiply, 0, self)
            if self.kind is not complex
            else _number(op_named("imag")(self.variable))
        )

    def conjugate(self) -> Any:
        """The complex conjugate."""
        return self if self.kind is not complex else _number(op_named("conj")(self.variable))

    def is_integer(self) -> bool:
        """Whether it is a whole number."""
        return bool(self.known().is_integer())

    # ---- arithmetic

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        return function_named("traced_ufunc")(ufunc, method, operands, options)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        return function_named("traced_function")(function, arguments, keywords)

    def __pow__(self, other: Any) -> Any:
        return _power(self, other) if _is_number(other) else _numpy.power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return _power(other, self) if _is_number(other) else _numpy.power(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _whole("floor_div", np.floor_divide, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _whole("floor_div", np.floor_divide, other, self)

    def __mod__(self, other: Any) -> Any:
        return _whole("mod", np.remainder, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _whole("mod", np.remainder, other, self)

    def __invert__(self) -> Any:
        if self.kind not in (int, bool):
            raise TypeError(f"bad operand type for unary ~: '{self.kind.__name__}'")
        return _combined("sub", np.subtract, -1, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self


_BINARY: dict[str, tuple[str, np.ufunc]] = {
    "add": ("add", np.add), "sub": ("sub", np.subtract), "mul": ("mul", np.multiply),
    "truediv": ("div", np.true_divide),
}  # fmt: skip
_BITS: dict[str, np.ufunc] = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift,
    "rshift": np.right_shift,
}  # fmt: skip
_COMPARING: dict[str, np.ufunc] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal,
}  # fmt: skip


def _is_number(value: Any) -> bool:
    return type(value) in (*_PYTHONS, bool) or type(value) is TracedNumber


def _number(variable: Variable) -> TracedNumber:
    return TracedNumber(variable, _KINDS[variable.tensor_type.kind])


def _combined(name: str, ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """Two numbers make a number; with an array, it is NumPy's function of them."""
    if _is_number(left) and _is_number(right):
        made = _number(op_named(name)(*(_plain(one) for one in (left, right))))
        return made if name == "div" else keep_mixed(made, (left, right))
    return ufunc(left, right)


def _plain(value: Any) -> Any:
    if type(value) is TracedNumber and value.kind is bool:
        return cast(value.variable, "int64")
    return int(value) if type(value) is bool else value


def _bits_of(number: TracedNumber) -> Any:
    return number if number.kind is bool else number.known()


def _power(left: Any, right: Any) -> Any:
    """Python's power of two numbers, whose type hangs on signs: they are asked for where they are not
    known."""
    kinds = [one.kind if type(one) is TracedNumber else type(one) for one in (left, right)]
    exponent_known = type(right) is not TracedNumber
    if kinds[0] in (int, bool) and kinds[1] in (int, bool) and not (exponent_known and right >= 0):
        right = right if exponent_known else right.known()
    elif kinds[1] is float and complex not in kinds:
        is_whole = exponent_known and float(right).is_integer()
        if type(left) is TracedNumber and not is_of_numbers(left.variable):
            if not is_whole:
                check(op_named("lt")(left.variable, 0.0), ParameterError(_COMPLEX))
        elif not is_whole and left < 0:
            left, right = (one.known() if type(one) is TracedNumber else one for one in (left, right))
    if type(left) is not TracedNumber and type(right) is not TracedNumber:
        return left**right
    if type(right) is int and right < 0:
        left = 1.0 * left
    return keep_mixed(_number(op_named("pow")(_plain(left), _plain(right))), (left, right))


def _whole(name: str, ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """Whole quotients and what is left, where Python raises an error for a divisor of zero."""
    if not (_is_number(left) and _is_number(right)):
        return ufunc(left, right)
    operate = operator.floordiv if name == "floor_div" else operator.mod
    if type(right) is TracedNumber:
        zero = right.kind(0)
        try:
            operate(1, zero)
        except ZeroDivisionError as error:
            check(op_named("eq")(right.variable, 0), error.with_traceback(None), _ADVICE)
    elif right == 0:
        return operate(1, right)
    return keep_mixed(_number(op_named(name)(_plain(left), _plain(right))), (left, right))


def _define() -> None:
    def two(name: str, ufunc: np.ufunc) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return (
            lambda self, other: _combined(name, ufunc, self, other),
            lambda self, other: _combined(name, ufunc, other, self),
        )

    def compared(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
        return lambda self, other: NotImplemented if other is None else ufunc(self, other)

    def bits(ufunc: np.ufunc) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return (
            lambda self, other: ufunc(_bits_of(self), other),
            lambda self, other: ufunc(other, _bits_of(self)),
        )

    for name, (op, ufunc) in _BINARY.items():
        forward, backward = two(op, ufunc)
        setattr(TracedNumber, f"__{name}__", forward)
        setattr(TracedNumber, f"__r{name}__", backward)
    for name, ufunc in _BITS.items():
        forward, backward = bits(ufunc)
        setattr(TracedNumber, f"__{name}__", forward)
        setattr(TracedNumber, f"__r{name}__", backward)
    for name, ufunc in _COMPARING.items():
        setattr(TracedNumber, f"__{name}__", compared(ufunc))
    for name in ("neg", "abs"):
        op = name
        setattr(
            TracedNumber,
            f"__{name}__",
            lambda self, op=op: keep_mixed(_number(op_named(op)(self.variable)), (self,)),
        )
    setattr(TracedNumber, "__pos__", lambda self: self)  # noqa: B010 - as the other operators


_define()


def size_number(variable: Variable, axis: int) -> TracedNumber:
    """The size of an axis, where it is known at run time only."""
    return TracedNumber(size_of(variable, axis), int)


def as_number(value: Any) -> Variable:
    """The scalar behind a number."""
    return as_variable(value)
