"""Operations on stacks of values, in the program's own format and in the wide one.

Values have two leading axes, e-nodes (times trials) and points, before the axes of their tiny shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from math import log, prod
from typing import Any

import numpy as np

from esat.base.records import record
from esat.egraph.language.terms import TermGraph
from esat.extract.accuracy.units import Places, Unit
from esat.extract.accuracy.wide_format import wide
from esat.extract.accuracy.wide_format.formats import UNKNOWN
from esat.extract.accuracy.wide_format.wide import Bounded, Rule, Wide
from esat.graph.op import Op
from esat.graph.registry import registered_ops
from esat.graph.types import DTYPES
from esat.ops.elementwise.records.record import Elementwise
from esat.rules.language.macros import permutation_axes

Array = np.ndarray[Any, np.dtype[Any]]
Own = Callable[[Sequence[Array]], Array]
"""The values of a result from those of the operands, in the format of the program."""

EXACT_AT: Mapping[str, tuple[float, ...]] = {
    "Pow": (1.0,), "Exp": (0.0,), "Expm1": (0.0,), "Log": (1.0,), "Log1p": (0.0,), "Sqrt": (0.0, 1.0),
}  # fmt: skip
"""First operands at which the values of functions are not rounded."""

LEAD = 2
"""Leading axes."""
UNFIT = (ValueError, TypeError, IndexError, ArithmeticError)
"""What NumPy raises of operands that do not fit at tiny sizes, or in the wide format: they are not judged."""


@record(frozen=True, eq=False)
class Operation:
    """What is done to operands.

    Attributes
    ----------
    own
        In the program's format.
    rule
        In the wide format; None where that is done with the values in the program's format, which are exact.
    rounds
        Whether a result may be rounded.
    """

    own: Own
    rule: Rule | None
    rounds: bool


@cache
def _ops() -> Mapping[str, Op]:
    return {op.constructor: op for op in registered_ops()}


def operation_of(unit: Unit, places: Places) -> Operation | None:
    """What a unit does; None where it cannot be evaluated at a batch of points."""
    name, dtype = unit.name, places.dtypes[unit.result]
    kinds = [places.dtypes[operand] for operand in unit.operands]
    if dtype is None or any(kind is None for kind in kinds):
        return None
    exact = dtype.kind in "biu" and all(kind is not None and kind.kind in "biu" for kind in kinds)
    if name in ("NarySum", "NaryProd"):
        return _nary(unit, exact)
    if name == "Cast":
        return _cast(DTYPES[int(unit.attributes[0])])
    if name in STRUCTURAL:
        return _structural(unit, places, exact)
    op = _ops().get(name)
    if not isinstance(op, Elementwise) or op.arity != len(unit.operands):
        return None
    function = op.wide or op.numpy  # as accurate, and without SciPy, which is slow to import
    rule = None if exact else wide.rule_of(op)
    if rule is None and not exact:
        return None

    def own(xs: Sequence[Array]) -> Array:
        return np.asarray(function(*aligned(xs)))

    def bounded(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
        assert rule is not None
        return rule(aligned(xs), aligned(ts))

    rounds = dtype.kind in "fc" and name not in wide.EXACT
    return Operation(own, None if exact else bounded, rounds)


def aligned(values: Sequence[Array]) -> list[Array]:
    """Values of one rank: scalars get the axes of the others."""
    rank = max(value.ndim for value in values)
    return [
        value if value.ndim == rank else value.reshape(*value.shape[:LEAD], *[1] * (rank - LEAD))
        for value in values
    ]


def fitted(value: Array, shape: tuple[int, ...]) -> Array:
    """A result in the shape of its class: a scalar has no axes."""
    wanted = (*value.shape[:LEAD], *shape)
    if value.shape == wanted:
        return value
    if prod(value.shape[LEAD:]) == prod(shape):
        return value.reshape(wanted)
    if value.ndim == LEAD:
        value = value.reshape(*value.shape, *[1] * len(shape))
    return np.broadcast_to(value, wanted)


def _nary(unit: Unit, exact: bool) -> Operation:
    positives, combine = int(unit.attributes[0]), wide.total if unit.name == "NarySum" else wide.product

    def own(xs: Sequence[Array]) -> Array:
        return stepped(unit, aligned(xs), lambda _op, _pair, value: value)

    def rule(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
        return combine(aligned(xs), aligned(ts), positives)

    return Operation(own, None if exact else rule, not exact)


def stepped(unit: Unit, xs: Sequence[Array], after: Callable[[str, Sequence[Array], Array], Array]) -> Array:
    """A sum or product by the steps of its plan; each result goes through ``after`` with op and operands."""
    parts = list(xs)
    for name, left, right, exponent in unit.steps:
        pair = [parts[left]] if right is None else [parts[left], parts[right]]
        if exponent:
            pair.append(np.full((1,) * pair[0].ndim, exponent, pair[0].dtype))
        parts.append(after(name, pair, np.asarray(STEPS[name](*pair))))
    return parts[-1]


STEPS: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "sqr": np.square,
    "reciprocal": np.reciprocal,
    "pow": np.power,
}


def _cast(name: str) -> Operation:
    target = np.dtype(name)

    def rule(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
        return wide.cast(target, xs[0], ts[0])

    def own(xs: Sequence[Array]) -> Array:
        (x,) = xs
        return (x if target.kind in "cb" else x.real).astype(target)

    return Operation(own, rule, target.kind in "fc")


# ---- operations that move or join elements

STRUCTURAL = (
    "DimShuffle", "ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceAny", "ReduceAll", "LogSumExp",
    "Softmax", "LogSoftmax", "MatMul",
)  # fmt: skip


def _structural(unit: Unit, places: Places, exact: bool) -> Operation | None:
    first = unit.operands[0]
    if unit.name == "DimShuffle":
        word = int(unit.attributes[0])
        return Operation(
            lambda xs: _shuffled(xs[0], word),
            None if exact else lambda xs, ts: (_shuffled(xs[0], word), _shuffled(ts[0], word)),
            False,
        )
    if unit.name == "MatMul":
        rank, weight = int(unit.attributes[0]), _weight(places, first, (-1,))
        return Operation(
            lambda xs: _weighted(np.matmul(*_ranked(xs, rank)), weight),
            None if exact else lambda xs, ts: _wide_product(_ranked(xs, rank), _ranked(ts, rank), weight),
            not exact,
        )
    mask, shape = int(unit.attributes[0]), places.shapes[first]
    reduced = (axis for axis in range(mask.bit_length()) if mask >> axis & 1)
    over = tuple(axis for axis in reduced if not shape or axis < len(shape))  # single elements may have more
    rank, weight = mask.bit_length(), _weight(places, first, over)
    axes = tuple(axis + LEAD for axis in over)
    function = _FUNCTIONS[unit.name]

    def own(xs: Sequence[Array]) -> Array:
        (x,) = _ranked(xs, rank)
        return np.asarray(function(x, axes, weight))

    adds = unit.name == "ReduceSum"
    bounded = wide.reduction(lambda values: function(values, axes, weight), adds)

    def rule(xs: Sequence[Wide], ts: Sequence[Wide]) -> Bounded:
        (x,), (error,) = _ranked(xs, rank), _ranked(ts, rank)
        value, bound = bounded([x], [error])
        missing = False if adds else np.logical_or.reduce(error >= UNKNOWN, axes, keepdims=True)
        return value, np.where(missing, UNKNOWN, bound) if np.any(missing) else bound

    return Operation(own, None if exact else rule, not exact and unit.name not in wide.EXACT)


def _ranked(values: Sequence[Array], rank: int) -> list[Array]:
    """Scalars with as many axes as an operation needs."""
    return [
        value.reshape(*value.shape, *[1] * rank) if value.ndim == LEAD and rank else value for value in values
    ]


def _weight(places: Places, klass: int, axes: Sequence[int]) -> float:
    """How many elements one stands for, along some axes."""
    sizes, shape = places.sizes[klass], places.shapes[klass]
    if not sizes or shape is None:
        return 1.0
    return prod(sizes[axis] / shape[axis] for axis in axes)


def _shuffled(x: Array, word: int) -> Array:
    order = permutation_axes(word)
    if x.ndim == LEAD:
        return x.reshape(*x.shape, *[1] * len(order))
    kept = [int(axis) for axis in order if axis != "x"]
    dropped = [axis for axis in range(x.ndim - LEAD) if axis not in kept]
    moved = np.transpose(x, (0, 1, *(LEAD + axis for axis in kept + dropped)))
    moved = moved.reshape(moved.shape[: LEAD + len(kept)])
    return np.expand_dims(moved, tuple(LEAD + place for place, axis in enumerate(order) if axis == "x"))


def _weighted(value: Array, weight: float) -> Array:
    return value if weight == 1.0 else value * value.dtype.type(weight)


def _summed(x: Array, axes: tuple[int, ...], weight: float) -> Array:
    return _weighted(np.add.reduce(x, axis=axes, keepdims=True), weight)


def _wide_product(xs: Sequence[Wide], ts: Sequence[Wide], weight: float) -> Bounded:
    def joined(left: Wide, right: Wide) -> Wide:
        terms = (left[..., k : k + 1] * right[..., k : k + 1, :] for k in range(left.shape[-1]))
        return _weighted(reduce(np.add, terms), weight)

    value, bound = wide.matrix_product(joined, xs, ts)
    missing = [error >= UNKNOWN for error in ts]
    if missing[0].any() or missing[1].any():
        rows = np.asarray(missing[0].any(axis=-1, keepdims=True))
        columns = np.asarray(missing[1].any(axis=-2, keepdims=True))
        bound = np.where(rows | columns, UNKNOWN, bound)
    return value, bound


def _exponential_sum(x: Array, axes: tuple[int, ...], weight: float) -> tuple[Array, Array]:
    """What is taken out of exponents, and the logarithm of the sum of exponentials of the rest."""
    highest = np.max(x, axis=axes, keepdims=True)
    highest = np.where(np.isfinite(highest), highest, x.dtype.type(0))
    total = np.sum(np.exp(x - highest), axis=axes, keepdims=True)
    return highest, np.log(total) + x.dtype.type(log(weight))


def _logsumexp(x: Array, axes: tuple[int, ...], weight: float) -> Array:
    highest, rest = _exponential_sum(x, axes, weight)
    return highest + rest


def _log_softmax(x: Array, axes: tuple[int, ...], weight: float) -> Array:
    highest, rest = _exponential_sum(x, axes, weight)
    return (x - highest) - rest


def _softmax(x: Array, axes: tuple[int, ...], weight: float) -> Array:
    powers = np.exp(x - np.max(x, axis=axes, keepdims=True))
    shares: Array = powers / _summed(powers, axes, weight)
    return shares


_FUNCTIONS: Mapping[str, Callable[[Array, tuple[int, ...], float], Array]] = {
    "ReduceSum": _summed,
    "ReduceProd": lambda x, axes, _: np.prod(x, axis=axes, keepdims=True),
    "ReduceMax": lambda x, axes, _: np.max(x, axis=axes, keepdims=True),
    "ReduceMin": lambda x, axes, _: np.min(x, axis=axes, keepdims=True),
    "ReduceAny": lambda x, axes, _: np.any(x, axis=axes, keepdims=True),
    "ReduceAll": lambda x, axes, _: np.all(x, axis=axes, keepdims=True),
    "LogSumExp": _logsumexp,
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
}


def leaf_of(
    unit: Unit, shape: tuple[int, ...], terms: TermGraph, inputs: Mapping[int, Array], batch: int
) -> tuple[Array, bool] | None:
    """The values of a leaf at all points, ``(batch, ...)``, and whether they were rounded; None if unknown.

    Of a constant array the points have different elements where axes have one.
    """
    if unit.name == "In":
        value = inputs.get(int(unit.attributes[0]))
        return None if value is None else (value, False)
    if unit.name == "Size":
        return np.full(batch, unit.attributes[0]).astype(np.int64), False
    if unit.name == "K":
        number = unit.attributes[0]
        data = np.asarray(number).astype(DTYPES[int(unit.attributes[1])])
        is_made = bool(unit.attributes[2]) and data.dtype.kind in "fc"
        return np.broadcast_to(data, (batch,)), is_made and not _is_short(data, number)
    if unit.name == "Array":
        data = np.asarray(terms.arrays[int(unit.attributes[0])].data)
        if data.dtype.kind not in "biufc":
            return None
        if prod(shape) == 1:
            return np.resize(data, batch).reshape(batch, *shape), False
        data = data[tuple(map(slice, shape))]
        return np.broadcast_to(data, (batch, *data.shape)), False
    return None


def _is_short(data: Array, number: Any) -> bool:
    """Whether a number that rules made has at most half of the digits of its dtype: then it was not
    rounded."""
    digits = (np.finfo(data.dtype).nmant + 1) // 2
    mantissa = float(np.frexp(data.real.astype(np.float64))[0]) * 2.0**digits
    return bool(data.real.astype(np.float64) == number) and mantissa == np.rint(mantissa)
