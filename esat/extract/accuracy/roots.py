"""Points at which sums that were written cancel: found by bisection between samples of either sign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.egraph.language.terms import TermGraph
from esat.extract.accuracy.units import Places, Unit
from esat.extract.accuracy.wide_format.operations import Operation, fitted, leaf_of, operation_of
from esat.ops.elementwise.records.scipy_functions import quiet

Array = NDArray[Any]

LANES = 3
"""Roots sought of each sum where all inputs move, to near the root."""
EXACT_LANES = (0, 0, 1, 1, -2, -1)
"""Roots sought exactly of each sum with a constant, and by how many floats the points lie beside them. Only
the
inputs of the sum move there, others are large and small: what a weight ``1 - t`` is multiplied with, at t =
1."""
MOST_EXACT_SUMS = 6
COARSE = 11
"""Bits of the places of floats by which inputs are away from a root where all of them move."""
MOST_SUMS = 12
MOST_TERMS = 120
"""Terms below all sums that are looked at."""
_SUMS = ("Add", "Sub")
_INTEGERS: dict[int, type[np.signedinteger[Any]]] = {2: np.int16, 4: np.int32, 8: np.int64}


@record(frozen=True, eq=False)
class _Step:
    """How the values of one term follow from those before it."""

    number: int
    unit: Unit
    operation: Operation | None
    shape: tuple[int, ...]


class _Lane(NamedTuple):
    """The search for one root.

    Attributes
    ----------
    number
        The sum.
    below, above
        Points at which it is negative, and positive.
    own
        The inputs of the sum, where the search is exact and only they move; None: all move.
    shift
        By how many floats they lie beside the root.
    """

    number: int
    below: int
    above: int
    own: frozenset[int] | None
    shift: int


def roots_of_sums(
    terms: TermGraph,
    units: Sequence[Unit | None],
    places: Places,
    inputs: Mapping[int, Array],
    calm: int,
    exact: bool,
) -> dict[int, Array]:
    """Values of the inputs at points where written sums are zero, or change their sign.

    Parameters
    ----------
    units, places
        Of the terms.
    inputs
        Values of the inputs at the sample points; the first ``calm`` are where the search starts.
    exact
        Whether roots of sums with a constant are wanted, as close as floats allow, or such near all roots.

    Returns
    -------
    Input -> values, ``(roots, ...)``: none where there are no sums of floats.
    """
    moving = [number for number, values in inputs.items() if values.dtype.kind == "f"]
    sums = _sums_with_constants(units, places) if exact else _float_sums(units, places)[:MOST_SUMS]
    steps, sums = steps_below(units, places, sums)
    if not sums or not moving:
        return {}
    values = evaluated(steps, terms, inputs, calm)
    random = np.random.default_rng(3)
    lanes: list[_Lane] = []
    for number in sums:
        at = values.get(number)
        if at is None:
            continue
        flat = at.reshape(at.shape[1], -1)[:calm, 0]
        below, above = (np.flatnonzero(side & np.isfinite(flat)) for side in (flat < 0, flat > 0))
        if len(below) and len(above):
            own = frozenset(inputs_of(number, units)) if exact else None
            lanes += [
                _Lane(number, random.choice(below), random.choice(above), own, shift)
                for shift in (EXACT_LANES if exact else (0,) * LANES)
            ]
    return _bisected(steps, terms, inputs, moving, lanes, calm) if lanes else {}


def inputs_of(number: int, units: Sequence[Unit | None]) -> Iterator[int]:
    """The numbers of the inputs below a term, all of whose terms are units."""
    pending, seen = [number], set()
    while pending:
        term = pending.pop()
        unit = units[term]
        if unit is not None and term not in seen:
            seen.add(term)
            pending += unit.operands
            if unit.name == "In":
                yield int(unit.attributes[0])


def _float_sums(units: Sequence[Unit | None], places: Places) -> list[int]:
    found = []
    for number, unit in enumerate(units):
        dtype = places.dtypes[number]
        if unit is not None and unit.name in _SUMS and dtype is not None and dtype.kind == "f":
            found.append(number)
    return found


def _sums_with_constants(units: Sequence[Unit | None], places: Places) -> list[int]:
    constants = {number for number, unit in enumerate(units) if unit is not None and unit.name == "K"}
    found = []
    for number in _float_sums(units, places):
        unit = units[number]
        if unit is not None and not constants.isdisjoint(unit.operands):
            found.append(number)
    return found[:MOST_EXACT_SUMS]


def steps_below(
    units: Sequence[Unit | None], places: Places, sums: Sequence[int]
) -> tuple[list[_Step], list[int]]:
    """Steps that compute as many of the sums as there is time for."""
    needed: dict[int, None] = {}
    computed: list[int] = []
    for number in sums:
        below: dict[int, None] = {}
        pending = [number]
        while pending:
            term = pending.pop()
            unit = units[term]
            if unit is None:
                break
            if term not in below and term not in needed:
                below[term] = None
                pending += unit.operands
        else:
            if len(needed) + len(below) <= MOST_TERMS:
                needed.update(below)
                computed.append(number)
    steps = []
    for term in sorted(needed):
        unit, shape = units[term], places.shapes[term]
        assert unit is not None
        assert shape is not None
        steps.append(_Step(term, unit, operation_of(unit, places) if unit.operands else None, shape))
    return steps, computed


def evaluated(
    steps: Sequence[_Step], terms: TermGraph, inputs: Mapping[int, Array], batch: int
) -> dict[int, Array]:
    """Values of terms, ``(1, points, ...)``, as far as they can be evaluated."""
    values: dict[int, Array] = {}
    with quiet():
        for step in steps:
            if step.operation is not None:
                if all(operand in values for operand in step.unit.operands):
                    found = step.operation.own([values[operand] for operand in step.unit.operands])
                    values[step.number] = fitted(found, step.shape)
            elif not step.unit.operands:
                count = len(next(iter(inputs.values())))
                leaf = leaf_of(step.unit, step.shape, terms, inputs, count)
                if leaf is not None:
                    values[step.number] = fitted(leaf[0][None], step.shape)
    return values


def _bisected(
    steps: Sequence[_Step],
    terms: TermGraph,
    inputs: Mapping[int, Array],
    moving: Sequence[int],
    ends: Sequence[_Lane],
    calm: int,
) -> dict[int, Array]:
    """Inputs between pairs of points, one for each lane, as close to a change of sign as it says."""
    low: dict[int, Array] = {}
    high: dict[int, Array] = {}
    fixed: dict[int, Array] = {}
    random = np.random.default_rng(5)
    for number, given in inputs.items():
        below = np.array([end.below for end in ends])
        above = np.array([end.above for end in ends])
        still = np.array([end.own is not None and number not in end.own for end in ends])
        below = np.where(still, _of_sizes(given, calm, len(fixed), len(ends), random), below)
        fixed[number] = given[below]
        if number in moving:
            low[number] = _ordinals(given[below])
            high[number] = _ordinals(given[np.where(still, below, above)])
    lanes = np.arange(len(ends))
    which = [end.number for end in ends]
    is_exact = np.array([end.own is not None for end in ends])
    bits = max(inputs[number].dtype.itemsize for number in moving) * 8
    for step in range(bits):
        middle = {
            number: (low[number] >> 1) + (high[number] >> 1) + (low[number] & high[number] & 1)
            for number in moving
        }
        at = {**fixed, **{number: _floats(middle[number], inputs[number].dtype) for number in moving}}
        values = evaluated(steps, terms, at, len(ends))
        below = np.array(
            [
                values[term].reshape(1, len(ends), -1)[0, lane, 0] < 0
                for lane, term in zip(lanes, which, strict=True)
            ]
        )
        for number in moving:
            columns = (-1, *[1] * (middle[number].ndim - 1))
            mask = below.reshape(columns)
            moves = (is_exact | (step < bits - COARSE)).reshape(columns)
            low[number] = np.where(moves & mask, middle[number], low[number])
            high[number] = np.where(moves & ~mask, middle[number], high[number])
    found = dict(fixed)
    shifts = np.array([end.shift for end in ends])
    for number in moving:
        moved = np.array([end.own is not None and number in end.own for end in ends])
        steps_beside = np.where(moved, shifts, 0).reshape(-1, *[1] * (high[number].ndim - 1))
        root = _floats(high[number] + steps_beside.astype(high[number].dtype), inputs[number].dtype)
        found[number] = np.where(np.isfinite(root), root, root.dtype.type(1))
    return found


def _of_sizes(values: Array, calm: int, place: int, count: int, random: np.random.Generator) -> Array:
    """Points at which an input is large and at which it is small, in turns that differ from its
    neighbour's."""
    sizes = np.abs(values[:calm].reshape(calm, -1)[:, 0]).astype(np.float64)
    order = np.argsort(sizes, kind="stable")
    large = random.choice(order[int(0.9 * calm) :], count)
    small = random.choice(order[int(0.05 * calm) : int(0.3 * calm)], count)
    return np.where((np.arange(count) + place) % 2 == 0, large, small)


def _ordinals(values: Array) -> Array:
    """Integers in the order of floats."""
    kind = _INTEGERS[values.dtype.itemsize]
    bits = np.ascontiguousarray(values).view(kind)
    return np.where(bits < 0, np.iinfo(kind).min - bits, bits)


def _floats(ordinals: Array, dtype: np.dtype[Any]) -> Array:
    """The floats that have these places in their order."""
    bits = np.where(ordinals < 0, np.iinfo(ordinals.dtype).min - ordinals, ordinals)
    return np.ascontiguousarray(bits.astype(ordinals.dtype)).view(dtype)
