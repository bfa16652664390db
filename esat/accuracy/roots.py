"""Points at which sums that were written cancel: found by bisection between samples of either sign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.accuracy.operations import Operation, fitted, leaf_of, operation_of
from esat.accuracy.units import Places, Unit
from esat.egraph.terms import TermGraph
from esat.records import record

Array = NDArray[Any]

LANES = 3
"""Roots sought of each sum."""
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


def roots_of_sums(
    terms: TermGraph, units: Sequence[Unit | None], places: Places, inputs: Mapping[int, Array], calm: int
) -> dict[int, Array]:
    """Values of the inputs at points where written sums are zero, or change their sign.

    Parameters
    ----------
    units, places
        Of the terms.
    inputs
        Values of the inputs at the sample points; the first ``calm`` are where the search starts.

    Returns
    -------
    Input -> values, ``(roots, ...)``: none where there are no sums of floats.
    """
    moving = [number for number, values in inputs.items() if values.dtype.kind == "f"]
    sums = _float_sums(units, places)
    steps, sums = _steps_below(units, places, sums)
    if not sums or not moving:
        return {}
    values = _evaluated(steps, terms, inputs, calm)
    random = np.random.default_rng(3)
    ends: list[tuple[int, int, int]] = []
    for number in sums:
        at = values.get(number)
        if at is None:
            continue
        flat = at.reshape(at.shape[1], -1)[:calm, 0]
        below, above = (np.flatnonzero(side & np.isfinite(flat)) for side in (flat < 0, flat > 0))
        if len(below) and len(above):
            ends += [(number, random.choice(below), random.choice(above)) for _ in range(LANES)]
    return _bisected(steps, terms, inputs, moving, ends) if ends else {}


def _float_sums(units: Sequence[Unit | None], places: Places) -> list[int]:
    found = []
    for number, unit in enumerate(units):
        dtype = places.dtypes[number]
        if unit is not None and unit.name in _SUMS and dtype is not None and dtype.kind == "f":
            found.append(number)
    return found[:MOST_SUMS]


def _steps_below(
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


def _evaluated(
    steps: Sequence[_Step], terms: TermGraph, inputs: Mapping[int, Array], batch: int
) -> dict[int, Array]:
    """Values of terms, ``(1, points, ...)``, as far as they can be evaluated."""
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
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
    ends: Sequence[tuple[int, int, int]],
) -> dict[int, Array]:
    """Inputs between pairs of points, one for each pair, as close to a change of sign as floats allow."""
    low = {number: _ordinals(inputs[number][[end[1] for end in ends]]) for number in moving}
    high = {number: _ordinals(inputs[number][[end[2] for end in ends]]) for number in moving}
    fixed = {number: values[[end[1] for end in ends]] for number, values in inputs.items()}
    lanes = np.arange(len(ends))
    which = [end[0] for end in ends]
    bits = max(inputs[number].dtype.itemsize for number in moving) * 8
    for _ in range(bits - 11):
        middle = {
            number: (low[number] >> 1) + (high[number] >> 1) + (low[number] & high[number] & 1)
            for number in moving
        }
        at = {**fixed, **{number: _floats(middle[number], inputs[number].dtype) for number in moving}}
        values = _evaluated(steps, terms, at, len(ends))
        below = np.array(
            [
                values[term].reshape(1, len(ends), -1)[0, lane, 0] < 0
                for lane, term in zip(lanes, which, strict=True)
            ]
        )
        for number in moving:
            mask = below.reshape(-1, *[1] * (middle[number].ndim - 1))
            low[number] = np.where(mask, middle[number], low[number])
            high[number] = np.where(mask, high[number], middle[number])
    found = dict(fixed)
    for number in moving:
        root = _floats(high[number], inputs[number].dtype)
        found[number] = np.where(np.isfinite(root), root, root.dtype.type(1))
    return found


def _ordinals(values: Array) -> Array:
    """Integers in the order of floats."""
    kind = _INTEGERS[values.dtype.itemsize]
    bits = np.ascontiguousarray(values).view(kind)
    return np.where(bits < 0, np.iinfo(kind).min - bits, bits)


def _floats(ordinals: Array, dtype: np.dtype[Any]) -> Array:
    """The floats that have these places in their order."""
    bits = np.where(ordinals < 0, np.iinfo(ordinals.dtype).min - ordinals, ordinals)
    return np.ascontiguousarray(bits.astype(ordinals.dtype)).view(dtype)
