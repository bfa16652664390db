"""Translation validation: what was chosen is evaluated as a whole, beside the graph as it was written.

A verdict is on one form, computed from the best forms of its operands. What is chosen may combine others,
each as good. Of ``x = -100``, ``s = sqrt(1 + x*x)`` and ``t = 1 + x/s``, which cancels::

    1/t/s - x*x/(t*s*s*s)        written: both quotients have the error of t, which goes away
    1/(s + x) - x*x/(t*s*s*s)    chosen: they have errors of their own, which stay

So each value that was written is computed at points in three ways: as written in the program's format, as
chosen, and as written in the wide format, with which the other two are compared. Of what is chosen and is
farther off, the lowest values are computed as they were written, down to more and more levels, until nothing
is. (That a compilation is checked, not the compiler: A. Pnueli, M. Siegel, E. Singerman, "Translation
validation", TACAS 1998.)
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esat.extract.accuracy.judge import tiny_of
from esat.extract.accuracy.losses import FormValues
from esat.extract.accuracy.points import Points, extreme_points
from esat.extract.accuracy.references import fails_beyond
from esat.extract.accuracy.sample import Sample, inputs_of
from esat.extract.accuracy.scales import scales_of
from esat.extract.accuracy.truths import Truths
from esat.extract.accuracy.unit_order import Order, order_of
from esat.extract.accuracy.units import UnitMaker, places_of, tiny_values
from esat.extract.arrays import IntArray
from esat.extract.extraction import Extraction, SaturatedGraph, extract
from esat.extract.prices.class_values import Hints
from esat.extract.prices.cost import CostModel
from esat.extract.verdicts import Verdicts
from esat.graph.algorithms.traversal import postorder_of
from esat.ops.elementwise.records.scipy_functions import quiet

Array = NDArray[Any]

POINTS = 256
MOST_NUMBERS = 400_000
"""Numbers that the values of all terms may be; of larger graphs fewer points are looked at."""
LEAST_POINTS = 64
LEAST_SHARE = 0.025
"""Of the points, those at which a value has to be farther off than it was written. At fewer, what was written
is right by luck: in 77 of PyMC's densities at up to 1.5 %."""
SAME = 2.0**-8
"""Relative difference of two values in the wide format up to which they are the same number with errors."""
DEPTHS = (1, 2, 4, 8, 16, 64)
"""Levels that are computed as they were written, one after the other."""


def extract_validated(graph: SaturatedGraph, model: CostModel, hints: Hints | None = None) -> Extraction:
    """What :func:`~esat.extract.extraction.extract` finds, validated."""

    def choose(graph: SaturatedGraph) -> Extraction:
        return extract(graph, model, hints)

    return validated(choose(graph), choose)


def validated(found: Extraction, choose: Callable[[SaturatedGraph], Extraction]) -> Extraction:
    """An extraction, or the cheapest one that is no farther off than the graph was written.

    Parameters
    ----------
    found
        What was chosen. Where nothing is known of the accuracy of e-nodes, or it is ignored, it stands.
    choose
        Chooses again, from an e-graph of which more is kept as it was written.
    """
    graph = found.graph
    if graph.verdicts is None or graph.accuracy == "ignore":
        return found
    validation = Validation(graph, graph.verdicts)
    best, failures = found, validation.failures(found.selection.chosen)
    if not failures.points:
        return found
    validation.expect(found.selection.chosen)
    fewest, kept = failures.points, graph.kept
    for depth in DEPTHS:
        if not fewest or not failures.lowest:
            break
        kept |= validation.written_below(failures.lowest, depth)
        found = choose(replace(graph, kept=kept))
        failures = validation.failures(found.selection.chosen)
        if failures.points < fewest:
            best, fewest = found, failures.points
    return best


class Failures(NamedTuple):
    """What a selection computes farther off than it was written.

    Attributes
    ----------
    points
        At how many points it computes the outputs so, all together.
    lowest
        The classes, below such outputs, that it computes so from others which it does not.
    """

    points: int
    lowest: Sequence[int]


class Validation:
    """A graph as it was written, at points, with which selections are compared."""

    def __init__(self, graph: SaturatedGraph, verdicts: Verdicts) -> None:
        arrays, terms = graph.arrays, graph.terms
        tiny = tiny_of(arrays)
        self._graph = graph
        self._places = places_of(tiny_values(arrays, terms, tiny), tiny)
        self._maker = UnitMaker(arrays, terms, graph.initial, self._places)
        shapes = (self._places.shapes[klass] for klass in np.flatnonzero(graph.initial >= 0).tolist())
        numbers = sum(prod(shape) for shape in shapes if shape is not None)
        self._batch = min(POINTS, max(LEAST_POINTS, MOST_NUMBERS // max(numbers, 1)))
        self._points = Points(self._batch)
        self._inputs = inputs_of(terms, self._points, tiny)
        self._given = verdicts.given
        self._drawn: dict[int, Array] = {}
        order = self._order(graph.initial, range(arrays.node_count))
        drawn = {klass: self._draw(klass) for klass in sorted(order.given & self._given)}
        self._written = FormValues(terms, order, self._inputs, drawn, self._batch)
        self._written.run()
        self._wide = Truths(terms, order, self._inputs, drawn, self._batch)
        self._wide.run()
        self._scales = scales_of(order, self._wide, self._sample(tiny))
        self._errors: dict[int, Array] = {}

    def failures(self, chosen: IntArray) -> Failures:
        """What a selection computes farther off than it was written."""
        values, order, given = self._values_of(chosen)
        found = self._failures(chosen, values)
        if found.points:
            # Of another number, as where one underflows, an error is that from its own value.
            wide = Truths(self._graph.terms, order, self._inputs, given, self._batch)
            wide.run()
            found = self._failures(chosen, values, wide)
        return found

    def _values_of(self, chosen: IntArray) -> tuple[FormValues, Order, dict[int, Array]]:
        """The values of a selection, what is evaluated of it, and what is given."""
        order = self._order(chosen, self._graph.strict)
        given = {klass: self._draw(klass) for klass in sorted(order.given & self._given)}
        for klass in order.given - self._given:
            written = self._written.value_of(klass)
            if written is not None:
                given[klass] = written[0]
        values = FormValues(self._graph.terms, order, self._inputs, given, self._batch)
        values.run()
        return values, order, given

    def expect(self, chosen: IntArray) -> None:
        """Compare further selections with this one as well, where it is nearer than what was written."""
        values = self._values_of(chosen)[0]
        for klass in postorder_of(self._graph.roots, self._operands(chosen)):
            value = values.value_of(klass) if self._is_known(klass, values, None) else None
            if value is not None and value.dtype.kind in "fc":
                self._errors[klass] = np.minimum(self._allowed(klass), self._distance(klass, value)[0])

    def _sample(self, tiny: int) -> Sample:
        """What is to be said of the points."""
        is_topmost = np.arange(self._batch) >= self._batch - self._points.topmost
        is_extreme = extreme_points(self._inputs, self._batch)
        is_exact = np.zeros(self._batch, np.bool_)
        return Sample(self._inputs, {}, self._batch, is_extreme, is_topmost, is_exact, tiny)

    def written_below(self, classes: Iterable[int], depth: int) -> frozenset[int]:
        """Classes and those that they were written from, so many levels in all."""
        initial = self._graph.initial
        operands = self._operands(initial)
        found: set[int] = set()
        level = set(classes)
        for _ in range(depth):
            level = {klass for klass in level - found if initial[klass] >= 0}
            found |= level
            level = {operand for klass in level for operand in operands(klass)}
        return frozenset(found)

    def _draw(self, klass: int) -> Array:
        """Values of a class that nothing computes, ``(points, ...)``: always the same."""
        if klass not in self._drawn:
            shape, dtype = self._places.shapes[klass], self._places.dtypes[klass]
            assert shape is not None
            assert dtype is not None
            self._drawn[klass] = self._points.draw(dtype, shape)
        return self._drawn[klass]

    def _operands(self, chosen: IntArray) -> Callable[[int], list[int]]:
        """The operands of what a selection has for a class."""
        rows, nodes = self._graph.arrays.lists, chosen.tolist()

        def operands(klass: int) -> list[int]:
            return rows.operands_of(nodes[klass]) if nodes[klass] >= 0 else []

        return operands

    def _order(self, chosen: IntArray, strict: Container[int]) -> Order:
        """What is evaluated of a selection, some e-nodes strictly as they were written."""
        units = []
        for klass in postorder_of(self._graph.roots, self._operands(chosen)):
            node = int(chosen[klass])
            usual, other = (None, None) if node < 0 or klass in self._given else self._maker.of(node)
            if usual is not None:
                units.append(usual if other is None or node not in strict else other)
        return order_of(units, self._places, (), ())

    def _failures(self, chosen: IntArray, values: FormValues, wide: Truths | None = None) -> Failures:
        """What is off; with values in the wide format only where these are the written ones with errors."""
        operands = self._operands(chosen)
        outputs: set[int] = set()
        for klass in postorder_of(self._graph.roots, operands):
            if self._is_known(klass, values, wide):
                outputs.difference_update(operands(klass))
                outputs.add(klass)
        points = {klass: self._points_off(klass, values, wide) for klass in sorted(outputs)}
        failing = [klass for klass, count in points.items() if count]
        lowest: list[int] = []
        above: set[int] = set()
        for klass in postorder_of(failing, operands):
            if not above.isdisjoint(operands(klass)):
                above.add(klass)
            elif self._is_known(klass, values, wide) and self._points_off(klass, values, wide):
                above.add(klass)
                lowest.append(klass)
        return Failures(sum(points[klass] for klass in failing), lowest)

    def _is_known(self, klass: int, values: FormValues, wide: Truths | None) -> bool:
        """Whether a class was written, and its values are known."""
        known = (own.value_of(klass) is not None for own in (values, self._written))
        return all(known) and self._wide.is_known(klass) and (wide is None or wide.is_known(klass))

    def _points_off(self, klass: int, values: FormValues, wide: Truths | None) -> int:
        """At how many points the value of a class is farther off than it was written; 0 for too few."""
        value = values.value_of(klass)
        assert value is not None
        if value.dtype.kind not in "fc":
            return 0
        with quiet():
            allowed = 2.0 ** fails_beyond(value.dtype) * (self._allowed(klass) + 1)
            is_off = self._distance(klass, value[:1])[0] > allowed
            if wide is not None:
                truth, other = self._wide.value_of(klass), wide.value_of(klass)
                is_off &= self._distance(klass, value[:1], other)[0] > allowed
                is_off &= (other == truth) | (np.abs(other - truth) <= SAME * np.abs(truth))
        count = int(is_off.reshape(self._batch, -1).any(axis=1).sum())
        return count if count >= LEAST_SHARE * self._batch else 0

    def _allowed(self, klass: int) -> Array:
        """How far the value of a class may be off, ``(points, ...)``; infinite where it was no number."""
        if klass not in self._errors:
            written = self._written.value_of(klass)
            assert written is not None
            distance = np.where(np.isfinite(written), self._distance(klass, written), np.inf)
            self._errors[klass] = distance.max(axis=0)
        return self._errors[klass]

    def _distance(self, klass: int, values: Array, wide: Array | None = None) -> Array:
        """How far values ``(trials, points, ...)`` are from those in the wide format, ``(points, ...)``.

        In units of the last place of these, or of what is summed over axes; infinite where one of both is a
        number, and the other is not. From other values than those of the written graph where these are given.
        """
        numbering = self._wide.order.numbering
        truth = self._wide.value_of(klass) if wide is None else wide
        scale = self._scales[numbering.stack[klass]][numbering.row[klass]]
        with quiet():
            rounded = truth.astype(values.dtype)
            rest = (rounded - truth).astype(np.complex128 if values.dtype.kind == "c" else np.float64)
            info = np.finfo(values.dtype)
            is_said = scale <= np.maximum(np.abs(rounded), info.max)
            size = np.maximum(np.abs(rounded), np.where(is_said, scale, 0).astype(info.dtype))
            unit = np.maximum(np.spacing(size), info.tiny).astype(np.float64)
            distance = np.abs((values - rounded).astype(rest.dtype) + rest) / unit
            is_same = (values == rounded) | (np.isnan(values) & np.isnan(rounded)) | ~is_said
            found: Array = np.where(np.isfinite(distance) & is_said, distance, np.where(is_same, 0.0, np.inf))
        return found
