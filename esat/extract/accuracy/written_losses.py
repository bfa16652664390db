"""What the graph loses as it was written: the measure of what extraction may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.extract.accuracy.losses import Losses
from esat.extract.accuracy.references import References
from esat.extract.accuracy.sample import Sample
from esat.extract.accuracy.unit_order import order_of
from esat.extract.accuracy.units import open_sizes, places_of, term_units
from esat.extract.extraction import SaturatedGraph
from esat.extract.prices.class_values import term_values

Array = NDArray[Any]
FloatArray = NDArray[np.float64]


@record(frozen=True, eq=False)
class Written:
    """Losses of the loaded terms.

    Attributes
    ----------
    moderate, extreme
        float64 ``(classes,)``: what the best of the terms of each class loses; inf where there are none.
    of_class
        Class -> the bits that the best of its terms loses at each point.
    bits
        Of each output, the bits it loses at each point; None where that is unknown.
    """

    moderate: FloatArray
    extreme: FloatArray
    of_class: Mapping[int, NDArray[np.float32]]
    bits: tuple[FloatArray | None, ...]


def as_written(
    graph: SaturatedGraph, losses: Losses, references: References, sample: Sample, wanted: NDArray[np.bool_]
) -> Written:
    """Evaluate terms from the values of their operands as they were written.

    Where no form of a class differs from the others, nor of what is below, the term has the class's value.

    Parameters
    ----------
    losses, references
        Of the classes.
    sample
        The points.
    wanted
        bool ``(classes,)``: the classes of which it is wanted what their terms lose.
    """
    arrays, terms = graph.arrays, graph.terms
    classes = arrays.term_class.tolist() + [-1] * (len(terms.terms) - len(arrays.term_class))
    own_places = places_of(term_values(terms, open_sizes(terms, sample.tiny)), sample.tiny)
    drawn: dict[int, Array] = {}
    units = []
    differs = [False] * len(classes)
    for term, unit in enumerate(term_units(terms, own_places)):
        klass = classes[term]
        operands = terms.terms[term].operands
        differs[term] = (klass >= 0 and bool(wanted[klass])) or any(differs[operand] for operand in operands)
        shape = own_places.shapes[term]
        value = sample.drawn.get(klass)
        if value is None and klass >= 0 and not differs[term]:
            value = losses.value_of(klass)
        if value is not None and shape is not None:
            drawn[term] = value.reshape(*value.shape[: value.shape.index(sample.batch) + 1], *shape)
        elif unit is not None:
            units.append(unit)
    order = order_of(units, own_places, drawn, range(len(classes)))
    for term in order.given - drawn.keys():
        # With zeros for what cannot be evaluated, what needs it is hardly right, and refuses no form.
        drawn[term] = np.zeros((sample.batch, *(own_places.shapes[term] or ())))
    numbering, own = losses.order.numbering, order.numbering
    keys = {key: stack for stack, key in enumerate(zip(numbering.shapes, numbering.dtypes, strict=True))}
    judged_as, contested = [], []
    for shape, dtype, members in zip(own.shapes, own.dtypes, own.members, strict=True):
        stack = keys.get((shape, dtype), -1)
        owners = [classes[term] for term in members.tolist()]
        rows = [
            int(numbering.row[klass]) if klass >= 0 and numbering.stack[klass] == stack else -1
            for klass in owners
        ]
        judged_as.append((max(stack, 0), np.array(rows if stack >= 0 else [-1] * len(owners), np.int64)))
        contested.append(np.array([klass >= 0 and bool(wanted[klass]) for klass in owners], np.bool_))
    written = Losses(terms, order, sample.inputs, drawn, sample.batch, references, contested, judged_as)
    written.run()
    loss = written.loss
    moderate, extreme = (np.full(arrays.class_count, np.inf) for _ in range(2))
    of_class: dict[int, NDArray[np.float32]] = {}
    for number, unit in enumerate(units):
        klass = classes[unit.result]
        if klass >= 0 and wanted[klass] and not np.isnan(loss.moderate[number]):
            if klass not in of_class or loss.moderate[number] < moderate[klass]:
                of_class[klass] = loss.bits[number]
            moderate[klass] = min(moderate[klass], loss.moderate[number])
            extreme[klass] = min(extreme[klass], loss.extreme[number])
    return Written(moderate, extreme, of_class, tuple(written.bits_of(root) for root in terms.roots))
