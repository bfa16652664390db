"""Operations in a wider format, with first-order bounds of their errors.

Values are of the wide format (see ``formats``), bools and integers included. An error bound is absolute: how
far rounding in the wide format, of operands and of the operation itself, may have moved a value. Values that
are exact have the bound zero; of those of which nothing is known it is :data:`UNKNOWN`, and they are finite:
processors compute with Inf and NaN a hundred times slower in this format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.extract.accuracy.wide_format.formats import (
    OVERFLOWN,
    PAIRS,
    REAL,
    SMALLEST,
    UNIT,
    UNKNOWN,
    array_of,
    bound_of,
    lacks,
    widened,
)  # fmt: skip
from esat.graph.op import Op
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.elementwise.records.scipy_functions import Special

Wide = NDArray[Any]
Bounded = tuple[Wide, Wide]
"""Values and bounds of their errors, of one shape."""
Rule = Callable[[Sequence[Wide], Sequence[Wide]], Bounded]
"""From the values of operands and their bounds to those of a result."""

UNIT_OF_DOUBLES = REAL(2.0) ** -49
"""Relative error of functions that exist in float64 only."""
UNDERFLOW = REAL(float(np.finfo(np.float64).smallest_subnormal))
"""What such functions may lose beyond it."""
_NOTHING = REAL(0)
_MOST_BITS = REAL(2.0) ** -40
"""Relative bound up to which a value is known well enough for two of them to contradict each other."""


def add(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """``x + y``."""
    value = xs[0] + xs[1]
    return value, ts[0] + ts[1] + UNIT * np.abs(value)


def subtract(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """``x - y``."""
    value = xs[0] - xs[1]
    return value, ts[0] + ts[1] + UNIT * np.abs(value)


def multiply(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """``x * y``."""
    value = xs[0] * xs[1]
    size = np.abs(value)
    bound = np.abs(xs[0]) * ts[1] + (np.abs(xs[1]) + ts[1]) * ts[0] + UNIT * size
    return value, _underflown(size, bound, xs)


def divide(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """``x / y``; nothing is known where ``y`` may be zero."""
    value = xs[0] / xs[1]
    size = np.abs(value)
    least = np.abs(xs[1]) - ts[1]
    sure = least > 0
    bound = (ts[0] + size * ts[1]) / np.where(sure, least, 1) + UNIT * size
    bound = np.where(sure, bound, np.where(ts[1] > 0, UNKNOWN, 0))
    return value, _underflown(size, bound, xs[:1])


def square(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """``x * x``."""
    return multiply((xs[0], xs[0]), (ts[0], ts[0]))


def reciprocal(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """``1 / x``."""
    return divide((np.ones_like(xs[0]), xs[0]), (np.zeros_like(ts[0]), ts[0]))


def exponential(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """``exp(x)``."""
    value = np.exp(xs[0])
    size = np.abs(value)
    return value, _underflown(size, size * np.expm1(ts[0]) + UNIT * size, ())


def logarithm(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """``log(x)``; nothing is known where ``x`` may be zero."""
    value = np.log(xs[0])
    size = np.abs(xs[0])
    sure = ts[0] < size
    share = np.where(sure, ts[0] / np.where(sure, size, 1), 0)
    bound = UNIT * np.abs(value) - np.log1p(-share)
    return value, np.where(sure | (ts[0] == 0), bound, UNKNOWN)


def same(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """The last operand."""
    return xs[-1], ts[-1]


def negate(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """``-x``."""
    return -xs[0], ts[0]


def absolute(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """``abs(x)``."""
    return np.abs(xs[0]), ts[0]


def switch(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """``y`` where ``x`` is not zero, else ``z``; nothing is known where it may be."""
    condition = xs[0] != 0
    bound = np.where(condition, ts[1], ts[2])
    return np.where(condition, xs[1], xs[2]), np.where(ts[0] > 0, UNKNOWN, bound)


def fill(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """The second operand in the shape of both."""
    shape = np.broadcast_shapes(xs[0].shape, xs[1].shape)
    return np.broadcast_to(xs[1], shape), np.broadcast_to(ts[1], shape)


def _compared(function: Callable[..., Any]) -> Rule:
    def rule(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
        error = ts[0] + ts[1]
        unsure = (error > 0) & (np.abs(xs[0] - xs[1]) <= error)
        value = widened(function(xs[0], xs[1]))
        return value, np.where(unsure, UNKNOWN, REAL(0))

    return rule


def _logical(function: Callable[..., Any]) -> Rule:
    def rule(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
        value = widened(function(*(x != 0 for x in xs)))
        unsure = sum(((t > 0) & (np.abs(x) <= t) for x, t in zip(xs, ts, strict=True)), np.zeros((), bool))
        return value, np.where(unsure, UNKNOWN, REAL(0)) + np.zeros(value.shape, REAL)

    return rule


RULES: dict[str, Rule] = {
    "Add": add,
    "Sub": subtract,
    "Mul": multiply,
    "Div": divide,
    "Sqr": square,
    "Reciprocal": reciprocal,
    "Neg": negate,
    "Abs": absolute,
    "Identity": same,
    "Positive": same,
    "Exp": exponential,
    "Log": logarithm,
    "Switch": switch,
    "Fill": fill,
    **{
        name: _compared(function)
        for name, function in (
            ("Eq", np.equal),
            ("Ne", np.not_equal),
            ("Lt", np.less),
            ("Le", np.less_equal),
            ("Gt", np.greater),
            ("Ge", np.greater_equal),
        )
    },
    **{
        name: _logical(function)
        for name, function in (
            ("LogicalAnd", np.logical_and),
            ("LogicalOr", np.logical_or),
            ("LogicalXor", np.logical_xor),
            ("LogicalNot", np.logical_not),
        )
    },
}
"""Operations whose bounds have a closed form."""

EXACT = frozenset(
    {
        "Neg", "Abs", "Switch", "Fill", "Identity", "Positive", "DimShuffle", "Maximum", "Minimum", "Fmax",
        "Fmin", "Clip", "Sign", "Floor", "Ceil", "Trunc", "Rint", "ReduceMax", "ReduceMin", "Real", "Imag",
        "Conj", "Copysign",
    }
)  # fmt: skip
"""Operations that never round."""


def rule_of(op: Op) -> Rule | None:
    """The rule of an elementwise op; None where it cannot be computed in the wide format."""
    known = RULES.get(op.constructor)
    if known is not None:
        return known
    if not isinstance(op, Elementwise):
        return None
    function, unit, underflow = op.wide or op.numpy, UNIT, REAL(0)
    if op.wide is None and (isinstance(function, Special) or lacks(function)):
        function, unit, underflow = _in_doubles(function), UNIT_OF_DOUBLES, UNDERFLOW
    return general(function, REAL(0) if op.constructor in EXACT else unit, underflow)


def _in_doubles(function: Callable[..., Any]) -> Callable[..., Any]:
    def computed(*operands: Wide) -> Any:
        kinds = (np.complex128 if x.dtype.kind == "c" else np.float64 for x in operands)
        value = np.asarray(function(*(x.astype(kind) for x, kind in zip(operands, kinds, strict=True))))
        return widened(value)

    return computed


def general(function: Callable[..., Any], unit: Any = UNIT, underflow: Any = _NOTHING) -> Rule:
    """The rule of any function: its errors follow from moving each operand by its bound."""

    def rule(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
        value = array_of(function(*xs))
        is_number = value.dtype.kind != "b"
        if not is_number:
            value = widened(value)
        bound = moved(function, xs, ts, value)
        if is_number:
            bound = bound + (unit * np.abs(value) + underflow)
        return value, bound

    return rule


def reduction(function: Callable[[Wide], Wide], adds: bool) -> Rule:
    """The rule of a reduction, which is a sum or not."""
    if not adds:
        return general(function, 4 * UNIT)

    def rule(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
        return function(xs[0]), function(ts[0]) + UNIT * function(np.abs(xs[0]))

    return rule


def matrix_product(multiply: Callable[[Wide, Wide], Wide], xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
    """A product of matrices, as ``multiply`` computes it."""
    left, right = (np.abs(x) for x in xs)
    return multiply(*xs), multiply(left, ts[1] + 4 * UNIT * right) + multiply(ts[0], right)


def moved(function: Callable[..., Any], xs: Sequence[Wide], ts: Sequence[Wide], value: Wide) -> Wide:
    """How far the errors of operands may move a result, each by itself."""
    total = np.zeros(value.shape, REAL)
    for place, (x, error) in enumerate(zip(xs, ts, strict=True)):
        if not error.any():
            continue
        most = np.zeros(value.shape, REAL)
        for step in (error, -error) if x.dtype.kind != "c" else (error, -error, 1j * error, -1j * error):
            other = function(*(y + step if i == place else y for i, y in enumerate(xs)))
            gap = np.where(other == value, 0, np.abs(other - value))
            most = np.maximum(most, np.fmin(gap, UNKNOWN))
        # An operand without error moves nothing, also where the function is not a number.
        total = total + np.where(_at_elements(error == 0, value.shape, np.all), 0, most)
    return total


def cast(target: np.dtype[Any], x: Wide, error: Wide) -> Bounded:
    """A value in another dtype: among floats it is the same, rounding is the program's."""
    if target.kind == "c":
        return widened(x.astype(np.complex128)) if x.dtype.kind != "c" else x, error
    if target.kind == "f":
        return x.real, error
    if target.kind == "b":
        return widened(x != 0), np.where((np.abs(x) <= error) & (error > 0), UNKNOWN, REAL(0))
    return np.trunc(x.real), np.where(error > 0.1, UNKNOWN, REAL(0))


def total(xs: Sequence[Wide], ts: Sequence[Wide], positives: int) -> Bounded:
    """A sum of which all but the first ``positives`` operands are subtracted.

    What each addition rounds off is added up beside it (T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot
    product", SIAM J. Sci. Comput. 26, 2005, algorithm 4.4 and its bound), unless the format is that of pairs.
    """
    value: Any = REAL(0)
    rest: Any = REAL(0)
    bound: Any = REAL(0)
    size: Any = REAL(0)
    for place, (x, error) in enumerate(zip(xs, ts, strict=True)):
        term = x if place < positives else -x
        previous, value = value, value + term
        bound = bound + error
        size = size + np.abs(x)
        if not PAIRS:
            part = value - previous
            rest = rest + ((previous - (value - part)) + (term - part))
    rounding = len(xs) * UNIT * size
    if PAIRS:
        return value, bound + rounding
    value = value + np.where(np.isfinite(rest), rest, 0)
    return value, bound + UNIT * np.abs(value) + len(xs) * UNIT * rounding


def product(xs: Sequence[Wide], ts: Sequence[Wide], positives: int) -> Bounded:
    """A product, divided by all but the first ``positives`` operands."""
    value, bound = (xs[0], ts[0]) if positives else reciprocal(xs, ts)
    for place, (x, error) in enumerate(zip(xs[1:], ts[1:], strict=True), 1):
        rule = multiply if place < positives else divide
        value, bound = rule((value, x), (bound, error))
    return value, bound


SELECTING = frozenset({"Switch", "Fill", "Identity", "Positive", "DimShuffle"})
"""Operations of which a result may be known where an operand is not."""


def applied(rule: Rule, xs: Sequence[Wide], ts: Sequence[Wide], selects: bool = False) -> Bounded:
    """The result of a rule: a number, or infinite as exact operands make it, or else unknown.

    Parameters
    ----------
    selects
        Whether a result may be known where an operand is not.
    """
    missing = [error >= UNKNOWN for error in ts]
    unknown = not selects and any(mask.any() for mask in missing)
    known = [np.where(mask, 0, error) for mask, error in zip(missing, ts, strict=True)] if unknown else ts
    value, bound = rule(xs, known)
    value = array_of(value)
    bound = np.fmin(bound_of(bound), UNKNOWN)  # which NaN is, too
    if bound.shape != value.shape:
        bound = np.broadcast_to(bound, value.shape)
    finite = np.isfinite(value)
    if not finite.all():
        exact = ~np.isnan(value)
        for error in [bound] if selects else known:  # a selection is as exact as what it selects
            exact &= _at_elements(error == 0, value.shape, np.all)
        value = np.where(finite | exact, value, 1)
        bound = np.where(finite, bound, np.where(exact, OVERFLOWN, UNKNOWN))
    if unknown:
        for mask in missing:
            bound = np.where(_at_elements(mask, value.shape, np.any), UNKNOWN, bound)
        value = np.where(np.isfinite(value) | (bound < UNKNOWN), value, 1)
    return value, bound


def _at_elements(mask: Wide, shape: tuple[int, ...], join: Callable[..., Any]) -> Wide:
    """What holds of an operand at the elements of a result; of one of another shape at a whole point."""
    if mask.ndim == len(shape) and all(
        size in (1, wanted) for size, wanted in zip(mask.shape, shape, strict=True)
    ):
        return mask
    if mask.ndim < 2 or mask.shape[:2] != shape[:2]:
        return np.asarray(join(mask))
    whole = join(mask.reshape(*mask.shape[:2], -1), axis=2)
    return np.asarray(whole).reshape(*whole.shape, *[1] * (len(shape) - 2))


def contradicts(value: Wide, bound: Wide, other: Wide, other_bound: Wide) -> NDArray[np.bool_]:
    """Where two values that are both well known are apart."""
    finite = np.isfinite(value) & np.isfinite(other)
    apart = finite & (np.abs(value - other) > 8 * (bound + other_bound) + SMALLEST)
    sure: NDArray[np.bool_] = (
        apart & (bound < _MOST_BITS * np.abs(value)) & (other_bound < _MOST_BITS * np.abs(other))
    )
    return sure


def _underflown(size: Wide, bound: Wide, nonzero: Sequence[Wide]) -> Wide:
    """The bound where the wide format itself may have underflown: a zero that no operand explains."""
    low = size < SMALLEST
    if not low.any():
        return bound
    for operand in nonzero:
        low = low & (operand != 0)
    return np.where(low, bound + SMALLEST, bound)
