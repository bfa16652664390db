"""Poles of the graph as it was written: what is infinite there has the sign that was written.

``1 / (1 - x)`` and ``-1 / (x - 1)`` are equal but at ``x = 1``, where one is ``inf`` and the other ``-inf``,
for the difference is a zero of another sign. Such an infinity is the truth where a number is divided by zero,
and nothing but sums and products of inputs and constants made that zero, or functions where their values are
exact, as ``exp(0)``: where a function underflows or was rounded, other forms know better, and a logarithm of
zero has one sign only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.egraph.language.terms import TermGraph
from esat.extract.accuracy.points import signed
from esat.extract.accuracy.roots import evaluated, inputs_of, steps_below
from esat.extract.accuracy.units import Places, Unit
from esat.extract.accuracy.wide_format.operations import EXACT_AT, fitted, operation_of

Array = NDArray[Any]

MOST_DIVISORS = 12
"""Divisors whose zeros are looked for: the first ones."""
OF_EACH = 2
"""Zeros that are taken of each."""
_EXACT = frozenset({"In", "K", "Array", "Add", "Sub", "Neg", "Mul", "Sqr", "DimShuffle"})
_KEEPING = frozenset({"Add", "Sub", "Neg", "Mul", "Div", "DimShuffle", "Fill", "Switch"})
"""What an infinite operand goes through with its sign."""


@record(frozen=True, eq=False)
class Poles:
    """Points at which written divisors are zero.

    Attributes
    ----------
    inputs
        Values of the inputs, ``(points, ...)``.
    values
        Term -> its written values, ``(points, ...)``: of divisors that are zero, and of what is infinite
        by them; NaN at all other points.
    """

    inputs: Mapping[int, Array]
    values: Mapping[int, Array]


def representatives(
    units: Sequence[Unit | None], places: Places, term_class: Sequence[int]
) -> list[Unit | None]:
    """Units of terms, with the first that can be evaluated of terms in one class in the place of others.

    So what is taken from arrays that are made of numbers is one of these.
    """
    first: dict[int, int] = {}
    found: list[Unit | None] = []
    for number, unit in enumerate(units):
        if unit is None:
            found.append(None)
            continue
        operands = tuple([first.get(_class_of(term, term_class), term) for term in unit.operands])
        found.append(unit._replace(operands=operands))
        if not operands or operation_of(unit, places) is not None:
            first.setdefault(_class_of(number, term_class), number)
    return found


def _class_of(term: int, term_class: Sequence[int]) -> int:
    """The class of a term, a number of its own where it has none."""
    klass = term_class[term] if term < len(term_class) else -1
    return klass if klass >= 0 else -2 - term


def poles_of(
    terms: TermGraph,
    units: Sequence[Unit | None],
    places: Places,
    inputs: Mapping[int, Array],
    calm: int,
    signs: Mapping[int, Collection[str]],
) -> Poles:
    """The poles that are zeros of differences of inputs and of inputs with constants of the graph.

    Parameters
    ----------
    units, places
        Of the terms.
    inputs
        Values of the inputs at the sample points, the first ``calm`` of which are moderate.
    signs
        Of each input, names of the relations that are known of it.
    """
    nothing = Poles({}, {})
    divisors = list(dict.fromkeys(_divisors(units, places)))[:MOST_DIVISORS]
    steps, divisors = steps_below(units, places, divisors)
    if not divisors:
        return nothing
    at = _candidates(units, divisors, inputs, calm, signs)
    if not at:
        return nothing
    values = evaluated(steps, terms, at, len(next(iter(at.values()))))
    chosen: dict[int, None] = {}
    for zeros in _exact_zeros(units, divisors, values).values():
        is_zero = _flat(zeros).all(axis=1)
        chosen.update(dict.fromkeys(np.flatnonzero(is_zero)[:OF_EACH].tolist()))
    if not chosen:
        return nothing
    found = {number: one[list(chosen)] for number, one in at.items()}
    users = _users(units, divisors)
    steps, _ = steps_below(units, places, users)
    values = evaluated(steps, terms, found, len(chosen))
    written = {term: one[0] for term, one in values.items()}
    return Poles(found, _with_signs(units, _exact_zeros(units, divisors, values), users, written))


def _exact_zeros(
    units: Sequence[Unit | None], divisors: Sequence[int], values: Mapping[int, Array]
) -> dict[int, Array]:
    """Of each divisor with values ``(1, points, ...)``, where it is zero and was never rounded."""
    exact: dict[int, Array] = {}
    for term in sorted(values):
        unit = units[term]
        operands = () if unit is None else unit.operands
        exact[term] = np.ones(values[term].shape[1], np.bool_)
        for operand in operands:
            exact[term] &= exact[operand]
        if unit is not None and unit.name in EXACT_AT:
            exact[term] &= np.isin(_flat(values[operands[0]][0]), EXACT_AT[unit.name]).all(axis=1)
    found = {}
    for divisor in divisors:
        if divisor in values:
            value = values[divisor][0]
            found[divisor] = (value == 0) & exact[divisor].reshape(-1, *[1] * (value.ndim - 1))
    return found


def _divisors(units: Sequence[Unit | None], places: Places) -> Iterator[int]:
    """Terms by which others are divided, and that are exact."""
    exact: list[bool] = []
    for number, unit in enumerate(units):
        may_be = unit is not None and (unit.name in _EXACT or unit.name in EXACT_AT)
        is_exact = may_be and unit is not None and all(exact[term] for term in unit.operands)
        dtype = places.dtypes[number]
        exact.append(is_exact and dtype is not None and dtype.kind == "f")
        divisor = _divisor(unit, units)
        if divisor is not None and exact[divisor]:
            yield divisor


def _divisor(unit: Unit | None, units: Sequence[Unit | None]) -> int | None:
    """What a term divides by."""
    if unit is None:
        return None
    if unit.name in ("Div", "Reciprocal"):
        return unit.operands[-1]
    exponent = units[unit.operands[1]] if unit.name == "Pow" else None
    if exponent is not None and exponent.name == "K" and float(np.real(exponent.attributes[0])) < 0:
        return unit.operands[0]
    return None


def _candidates(
    units: Sequence[Unit | None],
    divisors: Sequence[int],
    inputs: Mapping[int, Array],
    calm: int,
    signs: Mapping[int, Collection[str]],
) -> dict[int, Array]:
    """Points at which an input is a constant of the graph or another input; others are drawn."""
    numbers = {0.0: None, 1.0: None, -1.0: None}
    for unit in units:
        if unit is not None and unit.name == "K" and np.isreal(unit.attributes[0]):
            numbers[float(np.real(unit.attributes[0]))] = None
    pairs: dict[tuple[int, float | None, int], None] = {}
    for divisor in divisors:
        own = [place for place in sorted(inputs_of(divisor, units)) if inputs[place].dtype.kind == "f"]
        pairs.update({(one, number, one): None for one in own for number in numbers})
        pairs.update({(one, None, other): None for other, one in combinations(own, 2)})
    if not pairs:
        return {}
    count = len(pairs) * OF_EACH
    random = np.random.default_rng(13)
    found = {}
    for place, values in inputs.items():
        found[place] = values[random.integers(0, calm, count)]
    for lane, (one, number, other) in enumerate(pairs):
        lanes = slice(lane * OF_EACH, (lane + 1) * OF_EACH)
        if number is not None:
            found[one][lanes] = number
        elif found[one].shape[1:] == found[other].shape[1:]:
            found[one][lanes] = found[other][lanes]
    possible = np.ones(count, np.bool_)
    for place, values in found.items():
        possible &= _flat(signed(values, signs[place]) == values).all(axis=1)
    return {place: values[possible] for place, values in found.items()} if possible.any() else {}


def _users(units: Sequence[Unit | None], divisors: Sequence[int]) -> list[int]:
    """What divides by some terms, and what infinite values of that go through."""
    found: set[int] = set()
    for number, unit in enumerate(units):
        if unit is not None and (
            _divisor(unit, units) in divisors
            or (unit.name in _KEEPING and not found.isdisjoint(unit.operands))
        ):
            found.add(number)
    return sorted(found)


def _with_signs(
    units: Sequence[Unit | None],
    zeros_of: Mapping[int, Array],
    users: Sequence[int],
    written: Mapping[int, Array],
) -> dict[int, Array]:
    """The values that poles make: zeros of divisors, and what is infinite by them."""
    found: dict[int, Array] = {}
    for number in users:
        unit, value = units[number], written.get(number)
        if unit is None or value is None:
            continue
        divisor = _divisor(unit, units)
        poles = np.zeros(value.shape, np.bool_)
        if divisor is not None and divisor in zeros_of:
            zeros = zeros_of[divisor]
            poles |= np.isinf(value) & _like(zeros, value)
            found.setdefault(divisor, np.where(zeros, written[divisor], np.nan))
        for operand in unit.operands:
            if operand in found:
                poles |= np.isinf(value) & _like(np.isinf(found[operand]), value)
        if poles.any():
            found[number] = np.where(poles, value, np.nan)
    return found


def _like(values: Array, other: Array) -> Array:
    """Values of an operand in the shape of a result."""
    found: Array = fitted(values[None], other.shape[1:])[0]
    return found


def _flat(values: Array) -> Array:
    return values.reshape(len(values), -1)
