"""What there is to evaluate in an e-graph: its e-nodes at tiny sizes, each different one once.

Axes whose size is open, or more than one, have two elements here, or one in graphs that never join elements.
Where a size is known, sums over it count each element as many times as it takes, so that a rule may have put
the size in as a number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from esat.base.records import record
from esat.egraph.language.loader import NARY_FORM, signed_operands
from esat.egraph.language.terms import Term, TermGraph
from esat.extract.arrays import Attribute, EGraphArrays, IntArray
from esat.extract.choice.source_order import WrittenSums
from esat.extract.prices.class_values import class_values
from esat.extract.prices.nary import PlanStep, Shape, plan_written
from esat.extract.prices.value import Value
from esat.graph.types import DTYPES

LEAVES = ("In", "Array", "K")
_ROUNDED = "fc"


PlainStep = tuple[str, int, int | None, int]
"""Op, operands, and the exponent of a power or 0."""


class Unit(NamedTuple):
    """One way to compute a class.

    Attributes
    ----------
    name, attributes
        The operation; of a sum or product of more than two operands its n-ary constructor.
    operands
        Their classes.
    result
        The class.
    steps
        Of a sum or product of more than two operands, how it is computed: op, operands, and the exponent of a
        power.
    """

    name: str
    attributes: tuple[Attribute, ...]
    operands: tuple[int, ...]
    result: int
    steps: tuple[PlainStep, ...] = ()


@record(frozen=True, eq=False)
class Places:
    """Tiny shape and dtype of each class; None where they are unknown or empty.

    Attributes
    ----------
    shapes
        Sizes of the axes at which a class is evaluated.
    dtypes
        Of its values in the program.
    sizes
        What the axes stand for: the size where it is known, else the tiny one.
    """

    shapes: tuple[tuple[int, ...] | None, ...]
    dtypes: tuple[np.dtype[Any] | None, ...]
    sizes: tuple[Shape, ...]

    def __len__(self) -> int:
        return len(self.shapes)


def places_of(values: Sequence[Value | None], tiny: int) -> Places:
    """The places of classes that :func:`tiny_values` tells of."""
    shapes: list[tuple[int, ...] | None] = []
    dtypes: list[np.dtype[Any] | None] = []
    for value in values:
        if value is None or 0.0 in value.shape:
            shapes.append(None)
            dtypes.append(None)
        else:
            shapes.append(tuple(1 if size == 1.0 else tiny for size in value.shape))
            dtypes.append(_DTYPES[value.dtype])
    return Places(
        tuple(shapes), tuple(dtypes), tuple(() if value is None else value.shape for value in values)
    )


_DTYPES = [np.dtype(name) for name in DTYPES]


def tiny_values(arrays: EGraphArrays, terms: TermGraph, tiny: int) -> list[Value | None]:
    """Shape and dtype of each class, open axes with ``tiny`` elements."""
    return class_values(arrays, terms, open_sizes(terms, tiny))


def open_sizes(terms: TermGraph, tiny: int) -> dict[tuple[int, int], float]:
    """The sizes that types leave open, each as ``tiny``."""
    return {size: float(tiny) for type in terms.types for size in type.shape if not isinstance(size, int)}


@dataclass(slots=True)
class Units:
    """The units of an e-graph.

    Attributes
    ----------
    units
        All of them, those of e-nodes that are alike once.
    of_node
        Unit of each e-node, -1 for one that is not evaluated.
    strict
        E-node -> the unit that keeps all sums and products together that the user wrote so, for e-nodes of
        which the usual plan does not.
    """

    units: list[Unit] = field(default_factory=list)
    of_node: list[int] = field(default_factory=list)
    strict: dict[int, int] = field(default_factory=dict)


class UnitMaker:
    """Makes the units of e-nodes.

    Parameters
    ----------
    arrays, terms
        The e-graph, and what was loaded.
    initial
        The e-nodes that were written, by class.
    places
        Of the classes.
    """

    def __init__(self, arrays: EGraphArrays, terms: TermGraph, initial: IntArray, places: Places) -> None:
        self._terms, self._places = terms, places
        self._written = WrittenSums(terms, arrays.term_class.tolist(), initial.tolist())
        self._literals = {term.attributes for term in terms.terms if term.constructor == "K"}
        self._rows, self._names = arrays.lists, arrays.operator_names
        self._values = arrays.attribute_values
        self._classes = arrays.class_of.tolist()

    def of(self, node: int) -> tuple[Unit | None, Unit | None]:
        """The unit of an e-node, and that of its strict plan where this differs; None for none."""
        name, operands = self._names[self._rows.operator[node]], self._rows.operands_of(node)
        klass, places = self._classes[node], self._places
        if not _is_usable(name, klass, operands, places):
            return None, None
        attributes = self._values[self._rows.attribute[node]]
        if name not in NARY_FORM:
            return _plain_unit(name, attributes, operands, klass, self._terms, places, self._literals), None
        return _nary(Term(name, tuple(operands), attributes), klass, places, self._written)


def units_of(arrays: EGraphArrays, terms: TermGraph, initial: IntArray, places: Places) -> Units:
    """What there is to evaluate of a saturated e-graph; the parameters are those of :class:`UnitMaker`."""
    found = Units()
    numbers: dict[Unit, int] = {}
    maker = UnitMaker(arrays, terms, initial, places)

    def number_of(unit: Unit) -> int:
        number = numbers.get(unit)
        if number is None:
            number = numbers[unit] = len(found.units)
            found.units.append(unit)
        return number

    for node in range(arrays.node_count):
        usual, strict = maker.of(node)
        found.of_node.append(-1 if usual is None else number_of(usual))
        if strict is not None:
            found.strict[node] = number_of(strict)
    return found


def _is_usable(name: str, klass: int, operands: Sequence[int], places: Places) -> bool:
    """Whether an e-node may be evaluated: its values have sizes, and it does not need its own class."""
    if not name[0].isupper() or name.startswith("Superseded") or klass in operands:
        return False
    return places.shapes[klass] is not None and all(
        places.shapes[operand] is not None for operand in operands
    )


def _plain_unit(
    name: str,
    attributes: tuple[Attribute, ...],
    operands: Sequence[int],
    klass: int,
    terms: TermGraph,
    places: Places,
    literals: Collection[tuple[Attribute, ...]] | None,
) -> Unit:
    """The unit of an operation that is no sum and no product.

    Parameters
    ----------
    literals
        Attributes of the constants that were written; others were rounded. None: all were written.
    """
    if name.startswith("ShapeI"):
        (operand,) = operands
        axis = getattr(terms.opaque[int(attributes[-1])].op, "axis", 0)
        sizes = places.sizes[operand]
        return Unit("Size", (sizes[axis] if axis < len(sizes) else 1.0,), (), klass)
    if name == "K":
        return Unit(name, (*attributes, int(literals is not None and attributes not in literals)), (), klass)
    return Unit(name, attributes, tuple(operands), klass)


def _nary(term: Term, klass: int, places: Places, written: WrittenSums) -> tuple[Unit, Unit | None]:
    """The unit of a sum or product, and that of its strict plan where this differs."""
    form = NARY_FORM[term.constructor]
    signed = signed_operands(term)
    above = sorted(operand for operand, side in signed if not side)
    below = sorted(operand for operand, side in signed if side)
    operands = tuple(above + below)
    if len(operands) <= 2:
        name = _BINARY.get((form, len(above), len(below)))
        if name is None:
            return _planned(form, operands, len(above), klass, places, ()), None
        if name == "Mul" and operands[0] == operands[1]:
            return Unit("Sqr", (), operands[:1], klass), None
        return Unit(name, (), operands, klass), None
    dtype = places.dtypes[klass]
    is_rounded = dtype is not None and dtype.kind in _ROUNDED
    joins = written.joins(form, klass, operands, len(above)) if is_rounded else ()
    usual = _planned(form, operands, len(above), klass, places, joins)
    if not joins and (not is_rounded or form == "NarySum" or len(below) < 2):
        return usual, None
    strict = _planned(form, operands, len(above), klass, places, joins, strict=True)
    return usual, None if strict.steps == usual.steps else strict


_BINARY = {
    ("NarySum", 2, 0): "Add",
    ("NarySum", 1, 1): "Sub",
    ("NarySum", 0, 1): "Neg",
    ("NaryProd", 2, 0): "Mul",
    ("NaryProd", 1, 1): "Div",
    ("NaryProd", 0, 1): "Reciprocal",
}


def _planned(
    form: str,
    operands: tuple[int, ...],
    positives: int,
    klass: int,
    places: Places,
    joins: Sequence[tuple[int, int]],
    strict: bool = False,
) -> Unit:
    shapes = [places.sizes[operand] for operand in operands]
    steps = plan_written(form, operands, shapes, positives, joins, strict=strict)
    return Unit(form, (positives,), operands, klass, tuple(_plain(steps)))


def _plain(steps: Sequence[PlanStep]) -> Iterator[PlainStep]:
    return ((step.op, step.left, step.right, step.exponent) for step in steps)


class Levels:
    """How far units are above leaves.

    Parameters
    ----------
    units
        All units.
    known
        Of each class whether its values are given.
    can_evaluate
        Whether the unit of a number is an operation that is known.

    Attributes
    ----------
    of
        Level of each unit: one above the highest of its operands; -1 for one that cannot be evaluated.
    """

    def __init__(
        self, units: Sequence[Unit], known: Sequence[bool], can_evaluate: Callable[[int], bool]
    ) -> None:
        self.of = [-1] * len(units)
        self._units = units
        self._reached = list(known)
        self._users: dict[int, list[int]] = {}
        self._computing: dict[int, list[int]] = {}
        self._missing = []
        for number, unit in enumerate(units):
            needed = set(unit.operands) if can_evaluate(number) else {-1}
            self._missing.append(len(needed))
            if -1 not in needed:
                self._computing.setdefault(unit.result, []).append(number)
            for operand in needed:
                self._users.setdefault(operand, []).append(number)
        ready = [number for number, count in enumerate(self._missing) if not count]
        self._spread(ready, [klass for klass, is_known in enumerate(known) if is_known], 0)

    def give(self, classes: Iterable[int]) -> Iterator[int]:
        """Give values to those classes that nothing computes but from themselves; which these are.

        Where other classes without values take part, values that are given could contradict each other.
        """
        for klass in classes:
            if self._reached[klass]:
                continue
            before = self._reached.copy()
            self._reached[klass] = True
            found = self._spread([], [klass], max(self.of, default=-1) + 1)
            if all(self.of[number] >= 0 for number in self._computing.get(klass, ())):
                yield klass
            else:
                self._take_back(found, before)

    def _spread(self, ready: list[int], fresh: list[int], level: int) -> list[int]:
        """Give levels to units, from those that are ready and the users of classes; all that got one."""
        found: list[int] = []
        while ready or fresh:
            for number in ready:
                self.of[number] = level
                klass = self._units[number].result
                if not self._reached[klass]:
                    self._reached[klass] = True
                    fresh.append(klass)
            found += ready
            ready = []
            for klass in fresh:
                for number in self._users.get(klass, ()):
                    self._missing[number] -= 1
                    if not self._missing[number]:
                        ready.append(number)
            fresh = []
            level += 1
        return found

    def _take_back(self, found: Sequence[int], before: list[bool]) -> None:
        for number in found:
            self.of[number] = -1
        for klass, was in enumerate(before):
            if self._reached[klass] and not was:
                for number in self._users.get(klass, ()):
                    self._missing[number] += 1
        self._reached = before


def term_units(terms: TermGraph, places: Places) -> list[Unit | None]:
    """The graph as it was written: each term as a unit of a class of its own."""
    found: list[Unit | None] = []
    for number, term in enumerate(terms.terms):
        usable = _is_usable(term.constructor, number, term.operands, places)
        if usable and term.constructor in ("NarySum", "NaryProd"):
            usable = False
        if not usable:
            found.append(None)
        elif term.constructor in NARY_FORM:
            found.append(Unit(term.constructor, (), term.operands, number))
        else:
            found.append(
                _plain_unit(term.constructor, term.attributes, term.operands, number, terms, places, None)
            )
    return found
