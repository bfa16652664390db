"""What the graph loses as it was written: the measure of what extraction may do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from esat.accuracy.losses import Losses, References
from esat.accuracy.sample import Sample
from esat.accuracy.stacks import Grouping, Numbering, numbered
from esat.accuracy.units import levels_of, open_sizes, places_of, term_units
from esat.extract.extraction import SaturatedGraph
from esat.extract.values import term_values
from esat.records import record

FloatArray = NDArray[np.float64]


@record(frozen=True, eq=False)
class Written:
    """Losses of the loaded terms.

    Attributes
    ----------
    moderate, extreme
        float64 ``(classes,)``: what the best of the terms of each class loses; inf where there are none.
    bits
        Of each output, the bits it loses at each point; None where that is unknown.
    """

    moderate: FloatArray
    extreme: FloatArray
    bits: tuple[FloatArray | None, ...]


def as_written(
    graph: SaturatedGraph,
    numbering: Numbering,
    references: References,
    sample: Sample,
    wanted: NDArray[np.bool_],
) -> Written:
    """Evaluate each term from the values of its operands as they were written.

    Parameters
    ----------
    numbering, references
        Of the classes.
    sample
        The points.
    wanted
        bool ``(classes,)``: the classes of which it is wanted what their terms lose.
    """
    arrays, terms = graph.arrays, graph.terms
    classes = arrays.term_class.tolist() + [-1] * (len(terms.terms) - len(arrays.term_class))
    own_places = places_of(term_values(terms, open_sizes(terms, sample.tiny)), sample.tiny)
    found = term_units(terms, own_places)
    own = numbered(own_places, range(len(own_places)))
    units = [unit for unit in found if unit is not None]
    grouping = Grouping(units, own_places, own)
    drawn = {
        term: sample.drawn[klass].reshape(sample.batch, *(own_places.shapes[term] or ()))
        for term, klass in enumerate(classes)
        if klass in sample.drawn and own.stack[term] >= 0
    }
    levels = levels_of(units, [term in drawn for term in range(len(classes))], grouping.can_evaluate)
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
    losses = Losses(terms, own, sample.inputs, drawn, sample.batch, references, judged_as, contested)
    loss = losses.compute(units, grouping, levels)
    moderate, extreme = (np.full(arrays.class_count, np.inf) for _ in range(2))
    for number, unit in enumerate(units):
        klass = classes[unit.result]
        if klass >= 0 and wanted[klass] and not np.isnan(loss.moderate[number]):
            moderate[klass] = min(moderate[klass], loss.moderate[number])
            extreme[klass] = min(extreme[klass], loss.extreme[number])
    return Written(moderate, extreme, tuple(losses.bits_of(root) for root in terms.roots))
