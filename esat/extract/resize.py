"""Choosing again from a saturated e-graph, for sizes that were not known when it was first extracted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import fsum, inf, log2

from esat.base.records import record
from esat.egraph.language.terms import SCALAR
from esat.extract.arrays import IntArray
from esat.extract.decode import decode
from esat.extract.extraction import Extraction, SaturatedGraph
from esat.extract.prices.class_values import Hints, node_shape, term_value
from esat.extract.prices.cost import CostModel
from esat.extract.prices.expected_shapes import Expected, hints_of
from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.value import Value
from esat.graph import FunctionGraph
from esat.graph.algorithms.traversal import postorder_of

SizeClass = tuple[int, ...]
"""For each open size, in the order of its symbol, the nearest power of two."""


@record(frozen=True, eq=False)
class Resizing:
    """A saturated e-graph, ready to be extracted for other sizes.

    Attributes
    ----------
    first
        The extraction the first program was made from.
    like
        The graph that was encoded: gives inputs, and the types of outputs.
    machine
        Throughputs of the cost model.
    finish
        What is done to a decoded graph after extraction; it may change it.
    choose
        Extracts from an e-graph for sizes.
    """

    first: Extraction
    like: FunctionGraph
    machine: MachineProfile
    finish: Callable[[FunctionGraph], object]
    choose: Callable[[SaturatedGraph, CostModel, Hints], Extraction]

    @cached_property
    def is_open(self) -> bool:
        """Whether types leave sizes open, and the e-graph anything to choose."""
        terms, arrays = self.first.graph.terms, self.first.graph.arrays
        leaves = (
            type for term, type in zip(terms.terms, terms.types, strict=True) if term.constructor == "In"
        )
        sizes = (size for type in leaves for size in type.shape)
        return any(not isinstance(size, int) for size in sizes) and arrays.node_count > arrays.class_count

    def hints(self, expected: Expected) -> Hints:
        """Sizes of open axes for the shapes of the inputs, by position; see :func:`hints_of`."""
        return hints_of(self.first.graph.terms, expected)

    def size_class(self, hints: Hints) -> SizeClass:
        """Sizes that are taken to call for the same program."""
        return tuple(round(log2(hints[symbol])) for symbol in sorted(hints))

    def is_first_for(self, hints: Hints) -> bool:
        """Whether the first program was chosen for such sizes."""
        told = self.first.hints
        return told.keys() == hints.keys() and self.size_class(told) == self.size_class(hints)

    def seconds(self, chosen: IntArray, hints: Hints) -> float:
        """Predicted seconds of a selection for other sizes, from its own e-nodes alone.

        Infinite where a size cannot be told from these.
        """
        graph = self.first.graph
        arrays = graph.arrays
        model = self._model()
        dtypes, broadcasts = arrays.facts.get("dt", {}), arrays.facts.get("bp", {})
        choice = chosen.tolist()

        def operands(klass: int) -> list[int]:
            return [int(operand) for operand in arrays.operands_of(choice[klass])]

        values: dict[int, Value] = {}
        paid: list[float] = []
        for klass in postorder_of(graph.roots, operands):
            node = choice[klass]
            identities = operands(klass)
            inputs = [values[operand] for operand in identities]
            name, attributes = arrays.operator_of(node), arrays.attributes_of(node)
            term = self._term_of_class.get(klass)
            if term is not None:
                value = term_value(graph.terms.types[term], hints)
            else:
                scalar = int(broadcasts.get(klass, 0)) == SCALAR
                shape = () if scalar else node_shape(name, attributes, [value.shape for value in inputs])
                if shape is None or klass not in dtypes:
                    return inf
                value = Value(shape, int(dtypes[klass]))
            values[klass] = value
            paid.append(model.price(name, attributes, inputs, value, identities))
        return fsum(paid)

    def extract(self, hints: Hints) -> Extraction:
        """The cheapest program for these sizes."""
        return self.choose(self.first.graph, self._model(), hints)

    def program(self, extraction: Extraction) -> FunctionGraph:
        """The graph of an extraction."""
        chosen, sizes = extraction.terms()
        graph = decode(chosen, self.like, sizes)
        self.finish(graph)
        return graph

    @cached_property
    def _term_of_class(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for term, klass in enumerate(self.first.graph.arrays.term_class.tolist()):
            found.setdefault(klass, term)
        return found

    def _model(self) -> CostModel:
        # A model remembers every price it gave: one for each set of sizes would never be forgotten.
        return CostModel(self.machine, self.first.graph.terms.opaque)


def cost_under(extraction: Extraction, chosen: IntArray) -> float:
    """Predicted seconds of another selection at the sizes of an extraction."""
    return fsum(extraction.costs[chosen[chosen >= 0]].tolist())


def shapes_text(expected: Sequence[tuple[int, ...] | None]) -> str:
    """Shapes of the inputs on one line."""
    return ", ".join("?" if shape is None else "x".join(map(str, shape)) or "scalar" for shape in expected)
