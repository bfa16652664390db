"""Verdicts on the e-nodes of a saturated e-graph: evaluated at sample points, beside the graph as written."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.egraph.language.forms import op_of
from esat.egraph.language.terms import TermGraph
from esat.extract.accuracy.losses import REFUSED, Losses, UnitLosses
from esat.extract.accuracy.references import DEAD_ZONE, WORST, References, fails_beyond
from esat.extract.accuracy.sample import Sample, sample_of
from esat.extract.accuracy.scales import scales_of
from esat.extract.accuracy.truths import Truths
from esat.extract.accuracy.unit_order import Order, order_of
from esat.extract.accuracy.units import Places, Units, places_of, tiny_values, units_of
from esat.extract.accuracy.written_losses import Written, as_written
from esat.extract.arrays import Attribute, EGraphArrays, IntArray
from esat.extract.extraction import SaturatedGraph
from esat.extract.verdicts import TOLERANCE, OutputAccuracy, Verdicts
from esat.graph.op import Family

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

NOT_JUDGED = OutputAccuracy(0.0, 0.0, 0.0, 0.0, 0)
MOST_REFUSALS = 8
"""Times that forms are looked for which fail: what takes their place in one class shows what others lose."""
_ARITHMETIC = frozenset(
    {"Add", "Sub", "Neg", "Mul", "Div", "Sqr", "Reciprocal", "NarySum", "NaryProd", "Abs", "Fill",
    "DimShuffle",
     "ReduceSum", "MatMul"}
)  # fmt: skip
_MIXING = ("Reduce", "Softmax", "LogSoftmax", "LogSumExp", "MatMul", "Arg")
"""What begins the names of operations that join elements."""


@record(frozen=True, eq=False)
class Evaluated:
    """An e-graph at sample points: what all that is said of its e-nodes follows from.

    Attributes
    ----------
    graph
        The e-graph.
    units, places
        What there is to evaluate, and where.
    order
        In which order.
    contested
        bool ``(classes,)``: which of them may be computed in several ways.
    sample, truths, references
        The points, the truths there, and what is compared with them.
    """

    graph: SaturatedGraph
    units: Units
    places: Places
    order: Order
    contested: NDArray[np.bool_]
    sample: Sample
    truths: Truths
    references: References

    def at(self, sample: Sample) -> Evaluated:
        """The same e-graph at other points."""
        truths, references = _truths(self.graph, self.order, self.contested, sample)
        return replace(self, sample=sample, truths=truths, references=references)

    def losses(self, references: References) -> Losses:
        """What forms lose, the best ones chosen by these references."""
        sample = self.sample
        contested = [self.contested[members] for members in self.order.numbering.members]
        found = Losses(
            self.graph.terms,
            self.order,
            sample.inputs,
            sample.drawn,
            sample.batch,
            references,
            contested,
        )
        found.run()
        return found

    def of_nodes(self, losses: Losses) -> tuple[tuple[FloatArray, FloatArray], frozenset[int]]:
        """Losses of e-nodes, and which of them are computed strictly as they were written."""
        arrays = self.graph.arrays
        found, strict = _of_nodes(self.units, losses.loss, arrays, self.truths.conflicts)
        if self.truths.conflicts and not self.sample.drawn:
            conflicts = self.truths.conflicts - _with_functions(self.order)
            _keep_written(found, arrays, conflicts, self.graph.initial)
        return found, strict


def tiny_of(arrays: EGraphArrays) -> int:
    """Elements of axes that have several: one is enough where nothing joins elements."""
    return 2 if any(name.startswith(_MIXING) for name in arrays.operator_names) else 1


def evaluated(graph: SaturatedGraph) -> Evaluated:
    """An e-graph at the usual points."""
    arrays, terms = graph.arrays, graph.terms
    tiny = tiny_of(arrays)
    places = places_of(tiny_values(arrays, terms, tiny), tiny)
    units = units_of(arrays, terms, graph.initial, places)
    of_terms = [int(klass) for klass in arrays.term_class if klass >= 0]
    order = order_of(units.units, places, (), of_terms, _selected(arrays, terms))
    sample = sample_of(terms, places, order, tiny, arrays.term_class)
    contested = np.bincount([unit.result for unit in units.units], minlength=len(places)) > 1
    return Evaluated(
        graph, units, places, order, contested, sample, *_truths(graph, order, contested, sample)
    )


def _selected(arrays: EGraphArrays, terms: TermGraph) -> list[int]:
    """The classes of what is taken from arrays or drawn at random, and has no form by a library.

    What a library computes is bound to its operands by identities that values of other classes would break.
    """

    def family(constructor: str, attributes: Sequence[Attribute], operands: int) -> Family | None:
        known = op_of(constructor, attributes, [0] * operands, terms.opaque)
        return None if known is None else known.op.family

    found = []
    pairs = zip(terms.terms, arrays.term_class.tolist(), strict=False)
    for klass in dict.fromkeys(
        klass
        for term, klass in pairs
        if klass >= 0
        and family(term.constructor, term.attributes, len(term.operands)) in (Family.INDEX, Family.RANDOM)
    ):
        nodes = arrays.nodes_of(klass)
        operators = [(arrays.operator_of(node), arrays.attributes_of(node)) for node in nodes]
        counts = [len(arrays.operands_of(node)) for node in nodes]
        families = {family(*one, count) for one, count in zip(operators, counts, strict=True)}
        if Family.LIBRARY not in families:
            found.append(klass)
    return found


def _truths(
    graph: SaturatedGraph, order: Order, contested: NDArray[np.bool_], sample: Sample
) -> tuple[Truths, References]:
    truths = Truths(graph.terms, order, sample.inputs, sample.drawn, sample.batch)
    truths.run()
    truths.forget(range(len(contested)) if sample.drawn else _with_functions(order))
    poles = truths.take_poles(sample.poles, graph.arrays.term_class)
    scales = scales_of(order, truths, sample)
    compared = contested.copy()
    compared[graph.roots] = True
    return truths, References(truths, order.numbering, scales, sample, compared, poles)


def judged(graph: SaturatedGraph) -> Verdicts:
    """What the e-nodes of a graph lose, as far as they can be evaluated.

    It depends on the e-graph and the terms alone: neither on costs nor on sizes that types leave open.
    """
    arrays = graph.arrays
    found = evaluated(graph)
    references, sample = found.references, found.sample
    refused: set[int] = set()
    losses = found.losses(references)
    for left in reversed(range(MOST_REFUSALS)):
        of_nodes, strict = found.of_nodes(losses)
        differ = _classes_that_differ(arrays, *of_nodes)
        differ[arrays.class_of[list(strict)]] = True
        failing = _failing(found, losses)
        least = _least_bits(found, losses, failing)
        differ[_classes_with_failures(found, losses, failing, least)] = True
        written = as_written(graph, losses, references, sample, differ) if differ.any() else None
        more = _fails(found, losses, failing, written, least, refused)
        if not more or not left:
            break
        refused |= more
        losses.refuse(more)
    outputs = tuple(
        _output(klass, losses, None if written is None else written.bits[place], references)
        for place, klass in enumerate(graph.roots)
    )
    nothing = np.full(arrays.class_count, np.inf)
    before = (nothing, nothing) if written is None else (written.moderate, written.extreme)
    given = found.order.given
    verdicts = Verdicts(of_nodes[0], of_nodes[1], before[0], before[1], strict, outputs, given)
    return replace(verdicts, places=_places(verdicts, found.units, losses.loss, arrays, graph.terms, sample))


def _least_bits(found: Evaluated, losses: Losses, failing: BoolArray) -> FloatArray:
    """float64 ``(classes, points)``: what the form loses that is best at a point, of classes with one that
    fails; infinity of others."""
    results = np.array([unit.result for unit in found.order.units], np.int64)
    least = np.full((len(found.places), found.sample.batch), np.inf)
    is_asked = np.zeros(len(found.places), np.bool_)
    is_asked[results[failing.any(axis=1)]] = True
    numbers = np.flatnonzero(is_asked[results])
    numbers = numbers[np.argsort(results[numbers], kind="stable")]
    if len(numbers):
        classes, starts = np.unique(results[numbers], return_index=True)
        least[classes] = np.minimum.reduceat(losses.loss.bits[numbers], starts, axis=0)
    return least


def _classes_with_failures(
    found: Evaluated, losses: Losses, failing: BoolArray, least: FloatArray
) -> list[int]:
    """The classes of which a form fails at a point where another is right, or no number where one is."""
    results = np.array([unit.result for unit in found.order.units], np.int64)
    suspects = np.flatnonzero(failing.any(axis=1))
    best = least[results[suspects]]
    no_numbers = (losses.loss.bits[suspects] == WORST) & (best < WORST)
    fails = failing[suspects] & ((best <= DEAD_ZONE) | no_numbers)
    classes: list[int] = results[suspects[fails.any(axis=1)]].tolist()
    return classes


def _failing(found: Evaluated, losses: Losses) -> BoolArray:
    """Bool ``(units, points)``: where units lose more bits than any that is to be chosen may."""
    dtypes = [found.places.dtypes[unit.result] for unit in found.order.units]
    limits = np.array([fails_beyond(np.dtype(np.float64) if one is None else one) for one in dtypes])
    return losses.loss.bits > limits[:, None]


def _fails(
    found: Evaluated,
    losses: Losses,
    fails: BoolArray,
    written: Written | None,
    least: FloatArray,
    refused: Collection[int],
) -> set[int]:
    """Units that fail at a point where what was written is right, or are no numbers where it is one, and are
    not refused yet.

    In a class of no term it counts what another form is. Where the true value is out of range, forms may
    differ, but at poles. Where all units of a class are refused, those that use it fail, unless they are
    right."""
    units, numbering = found.order.units, found.order.numbering
    of_class = {} if written is None else written.of_class
    failing = set()
    for number in np.flatnonzero(fails.any(axis=1)).tolist():
        if number in refused:
            continue
        klass = units[number].result
        reference = of_class.get(klass, least[klass])
        is_known = found.references.is_finite_or_pole(numbering.stack[klass], int(numbering.row[klass]))
        right = reference <= DEAD_ZONE
        right |= (losses.loss.bits[number] == WORST) & (reference < WORST)
        if (fails[number] & right & is_known).any():
            failing.add(number)
    return _first_of(failing, found.order, losses) if failing else failing


def _first_of(failing: set[int], order: Order, losses: Losses) -> set[int]:
    """Those of failing units that do not fail for their operands: of which no part is computed by such a
    unit."""
    chosen = {order.units[number].result: number for number in losses.chosen()}
    spoilt: set[int] = set()
    for klass, number in sorted(chosen.items(), key=lambda item: order.levels[item[1]]):
        if number in failing or not spoilt.isdisjoint(order.units[number].operands):
            spoilt.add(klass)
    return {number for number in failing if spoilt.isdisjoint(order.units[number].operands)}


def _places(
    verdicts: Verdicts, units: Units, loss: UnitLosses, arrays: EGraphArrays, terms: TermGraph, sample: Sample
) -> dict[int, str]:
    """Of e-nodes that lose more than others of their class, how much and where, in words."""
    found = {}
    best: dict[int, int] = {}

    @functools.cache
    def inputs_at(place: int) -> str:
        return ", ".join(
            f"{terms.inputs[index]} = {np.ravel(values[place])[0]:.3g}"
            for index, values in sample.inputs.items()
        )

    for node in np.flatnonzero(verdicts.bits_too_many("best", arrays.class_of) > 0.0).tolist():
        klass = int(arrays.class_of[node])
        if klass not in best:
            others = np.array(arrays.nodes_of(klass))
            best[klass] = int(others[np.nanargmin(verdicts.loss[others])])
        mine, theirs = (loss.bits[units.of_node[which]] for which in (node, best[klass]))
        place = int(np.argmax(mine - theirs))
        values = inputs_at(place)
        found[node] = f"{mine[place]:.0f} bits at {values}" if values else f"{mine[place]:.0f} bits"
    return found


def _classes_that_differ(arrays: EGraphArrays, loss: FloatArray, far: FloatArray) -> NDArray[np.bool_]:
    """The classes of which some forms lose more than others."""
    found = np.zeros(arrays.class_count, np.bool_)
    for values in (loss, far):
        known = ~np.isnan(values)
        least, most = np.full(arrays.class_count, np.inf), np.zeros(arrays.class_count)
        np.minimum.at(least, arrays.class_of[known], values[known])
        np.maximum.at(most, arrays.class_of[known], values[known])
        found |= most > least + TOLERANCE
    return found


def _of_nodes(
    units: Units, loss: UnitLosses, arrays: EGraphArrays, conflicts: Collection[int]
) -> tuple[tuple[FloatArray, FloatArray], frozenset[int]]:
    """Losses of e-nodes, and which of them are computed strictly as they were written."""
    number = np.array(units.of_node, np.int64)
    found = tuple(
        np.where(number >= 0, part[number], np.nan) if len(part) else np.full(len(number), np.nan)
        for part in (loss.moderate, loss.extreme)
    )
    strict = set()
    for node, other in units.strict.items():
        usual = units.of_node[node]
        gain = loss.moderate[usual] - loss.moderate[other]
        far_gain = loss.extreme[usual] - loss.extreme[other]
        if gain > TOLERANCE or (far_gain > TOLERANCE and gain > -TOLERANCE):
            strict.add(node)
            found[0][node], found[1][node] = loss.moderate[other], loss.extreme[other]
    if conflicts:
        apart = np.isin(arrays.class_of, np.fromiter(conflicts, np.int64))
        found[0][apart] = found[1][apart] = np.nan
    return (found[0], found[1]), frozenset(strict)


def _with_functions(order: Order) -> set[int]:
    """The classes of which a form computes functions, which the wide format need not know for all numbers."""
    found: set[int] = set()
    for number in sorted(range(len(order.units)), key=order.levels.__getitem__):
        unit = order.units[number]
        if unit.operands and (unit.name not in _ARITHMETIC or not found.isdisjoint(unit.operands)):
            found.add(unit.result)
    return found


def _keep_written(
    losses: tuple[FloatArray, FloatArray], arrays: EGraphArrays, conflicts: Collection[int], initial: IntArray
) -> None:
    """Let e-nodes of contradicting classes lose too much, but those that were written, where there are any.

    One of the forms is another number than the graph says, and which is not known.
    """
    apart = np.isin(arrays.class_of, np.fromiter(conflicts, np.int64))
    is_written = (initial[arrays.class_of] == np.arange(arrays.node_count)) & apart
    of_written = np.isin(arrays.class_of, arrays.class_of[is_written])
    for values in losses:
        values[of_written] = REFUSED
        values[is_written] = 0.0


def _output(klass: int, losses: Losses, written: FloatArray | None, references: References) -> OutputAccuracy:
    best = losses.bits_of(klass)
    if best is None:
        return NOT_JUDGED
    numbering = losses.order.numbering
    points = references.points(numbering.stack[klass], int(numbering.row[klass]))
    if not points.any():
        return NOT_JUDGED
    then, now = (bits[points] for bits in (best if written is None else written, best))
    return OutputAccuracy(
        float(then.mean()), float(now.mean()), float(then.max()), float(now.max()), int(points.sum())
    )
