"""Where an e-graph is evaluated: values of its inputs at all points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.egraph.language.terms import SCALAR, TermGraph
from esat.extract.accuracy.pairs import paired_extremes
from esat.extract.accuracy.points import POINTS, POINTS_OF_ARRAYS, SEED, Points, extreme_points, known_signs
from esat.extract.accuracy.poles import poles_of, representatives
from esat.extract.accuracy.roots import roots_of_sums
from esat.extract.accuracy.stacks import IntArray
from esat.extract.accuracy.unit_order import Order
from esat.extract.accuracy.units import Places, open_sizes, places_of, term_units
from esat.extract.prices.class_values import term_values
from esat.graph import TensorType
from esat.graph.types import DTYPES

Array = NDArray[Any]

MOST_ELEMENTS = 1_000_000
"""Numbers that the values of all classes may be; of larger e-graphs fewer points are looked at."""
LEAST_POINTS = 16
"""Points that the largest e-graphs are looked at, all the same."""


@record(frozen=True, eq=False)
class Sample:
    """Sample points.

    Attributes
    ----------
    inputs
        Values of the inputs that are tensors, ``(batch, ...)``, by their numbers.
    drawn
        Those of classes that nothing can compute, by class.
    batch
        Number of points.
    is_extreme
        bool ``(batch,)``: at which of them an input is extreme.
    is_topmost
        bool ``(batch,)``: at which of them all inputs are large, and of one size.
    is_exact
        bool ``(batch,)``: which of them are exact roots. They tell forms that fail there, and count no more.
    tiny
        Elements of an axis that has more than one.
    poles
        Term -> values that it has by poles of the written graph, ``(batch, ...)``, NaN at other points; see
        :class:`~esat.extract.accuracy.poles.Poles`.
    """

    inputs: Mapping[int, Array]
    drawn: Mapping[int, Array]
    batch: int
    is_extreme: NDArray[np.bool_]
    is_topmost: NDArray[np.bool_]
    is_exact: NDArray[np.bool_]
    tiny: int
    poles: Mapping[int, Array] = field(default_factory=dict)


def sample_of(
    terms: TermGraph, places: Places, order: Order, tiny: int, term_class: IntArray, seed: int = SEED
) -> Sample:
    """The points for the inputs of terms, and for classes that are given, drawn like inputs.

    Parameters
    ----------
    places, order
        Of the classes, and of what computes them.
    tiny
        Elements of an axis that has more than one.
    term_class
        The class of each term.
    seed
        Other points for other numbers.
    """
    numbering = order.numbering
    elements = sum(
        count * int(np.prod(shape, dtype=np.int64))
        for shape, count in zip(numbering.shapes, numbering.counts, strict=True)
    )
    usual = POINTS if tiny == 1 else POINTS_OF_ARRAYS
    points = Points(max(LEAST_POINTS, min(usual, MOST_ELEMENTS // max(elements, 1) // 4 * 4)), seed)
    inputs = inputs_of(terms, points, tiny)
    drawn = {}
    for klass in sorted(order.given):
        shape, dtype = places.shapes[klass], places.dtypes[klass]
        assert shape is not None
        assert dtype is not None
        drawn[klass] = points.draw(dtype, shape)
    batch = points.batch
    is_topmost = np.arange(batch) >= batch - points.topmost
    added: list[Mapping[int, Array]] = []
    poles: Mapping[int, Array] = {}
    if batch == usual:
        added, poles = _more_points(terms, inputs, points, tiny, term_class)
    counts = [len(next(iter(kind.values()), ())) for kind in added]
    more = np.resize(np.arange(points.calm), sum(counts))
    inputs = {
        number: np.concatenate([values, *(kind[number] for kind in added if kind)])
        for number, values in inputs.items()
    }
    for place, (klass, values) in enumerate(drawn.items()):
        others = values[more]
        others[(np.arange(len(more)) < sum(counts[:1])) & (np.arange(len(more)) >> place % 4 & 1 == 1)] = 0
        drawn[klass] = np.concatenate([values, others])
    batch += sum(counts)
    is_exact = np.arange(batch) >= batch - sum(counts[-2:])
    return Sample(
        inputs,
        drawn,
        batch,
        extreme_points(inputs, batch),
        np.concatenate([is_topmost, np.zeros(sum(counts), np.bool_)]),
        is_exact,
        tiny,
        {term: _at_last(values, batch) for term, values in poles.items()},
    )


def _more_points(
    terms: TermGraph,
    inputs: Mapping[int, Array],
    points: Points,
    tiny: int,
    term_class: IntArray,
) -> tuple[list[Mapping[int, Array]], Mapping[int, Array]]:
    """Points of each kind that follow from the graph, and the values that terms have at the last by poles."""
    of_terms = places_of(term_values(terms, open_sizes(terms, tiny)), tiny)
    units, signs = term_units(terms, of_terms), _signs(terms)
    scalars = all(values.ndim == 1 for values in inputs.values())
    pairs = paired_extremes(inputs, signs, (POINTS if scalars else points.batch) // 2)
    roots = [
        roots_of_sums(terms, units, of_terms, inputs, points.calm, exact) if tiny == 1 or exact else {}
        for exact in (False, True)
    ]
    alike = representatives(units, of_terms, term_class.tolist())
    poles = poles_of(terms, alike, of_terms, inputs, points.calm, signs)
    return [pairs, *roots, poles.inputs], poles.values


def _at_last(values: Array, batch: int) -> Array:
    """Values at the last points, NaN at those before."""
    found = np.full((batch, *values.shape[1:]), np.nan)
    found[batch - len(values) :] = values
    return found


def _signs(terms: TermGraph) -> dict[int, list[str]]:
    """What is known of the inputs, by their numbers."""
    return {
        int(term.attributes[0]): known_signs(terms.facts, number)
        for number, term in enumerate(terms.terms)
        if term.constructor == "In"
    }


def inputs_of(terms: TermGraph, points: Points, tiny: int) -> dict[int, Array]:
    """Values of the inputs that are tensors, by their numbers."""
    places = {
        int(term.attributes[0]): number for number, term in enumerate(terms.terms) if term.constructor == "In"
    }
    inputs = {}
    for index, number in sorted(places.items()):
        type = terms.types[number]
        if not isinstance(terms.inputs[index].type, TensorType) or 0 in type.shape:
            continue
        shape = () if type.broadcast == SCALAR else tuple(1 if size == 1 else tiny for size in type.shape)
        inputs[index] = points.draw(np.dtype(DTYPES[type.dtype]), shape, known_signs(terms.facts, number))
    return inputs
