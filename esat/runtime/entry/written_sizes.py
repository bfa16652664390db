"""Sizes of 1 that are not declared, in a graph as it was written.

A size broadcasts where its type says that it is 1; elsewhere a run-time size of 1 is an error where it meets
another. Optimization leaves out nodes that no result needs, and with them what they would have said. For most
sizes that do not fit there is no right result then. But NumPy stretches a size of 1, and the gradient of
``(row + matrix).sum()`` by a row that is not declared to be one would silently be another than NumPy's. So
the nodes that were written are asked about such sizes, once for each combination of shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from esat.errors import EsatError, ShapeError
from esat.graph import Apply, Family, FunctionGraph, TensorType, Variable
from esat.graph.algorithms.traversal import inputs_of
from esat.ops.arrays.creation import Alloc
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.index.write import PartWrite
from esat.phases.fusing.laziness import find_guards
from esat.phases.shape_values import ShapeFacts
from esat.runtime.entry.shape_rules import Shape, ShapeWalk, located, shortcut_of

_PASSING = (Family.ELEMENTWISE, Family.REDUCTION, Family.CONTRACTION)
"""Families whose results have sizes of 1 only where operands have, or where their types say so."""


def may_stretch(graph: FunctionGraph) -> bool:
    """Whether sizes of inputs or shared variables may turn out to be 1."""
    types = [variable.type for variable in inputs_of(graph.outputs)]
    return any(isinstance(one, TensorType) and None in one.shape for one in types)


class WrittenSizes:
    """What is asked of the shapes of arguments.

    Parameters
    ----------
    build
        Makes the graph as it was written, when it is first needed.
    """

    def __init__(self, build: Callable[[], FunctionGraph]) -> None:
        self._build = build
        self._known: _Written | None = None

    def require(self, inputs: Sequence[Shape | None], shared: Mapping[Variable, Shape]) -> None:
        """Raise ShapeError where a size of 1 that is not declared meets another at a node that always runs.

        Parameters
        ----------
        inputs
            The shapes of the arguments; None for what has none.
        shared
            Those of shared variables.
        """
        written = self._known
        if written is None:
            written = self._known = _Written(self._build())
        given = {
            variable: shape
            for variable, shape in zip(written.graph.inputs, inputs, strict=True)
            if shape is not None
        }
        written.require({**given, **shared})


class _Written:
    """A graph, the nodes that may stretch something, and what decides about sizes in it."""

    def __init__(self, graph: FunctionGraph) -> None:
        self.graph = graph
        nodes = graph.toposort()
        last = max((place for place, node in enumerate(nodes) if _may_stretch(node)), default=-1)
        self._nodes = nodes[: last + 1]
        self._lazy = frozenset(find_guards(nodes, graph.outputs))
        self._values = frozenset(ShapeFacts(graph).values) if self._nodes else frozenset()
        self._makes_ones = any(not _passes_sizes(node) for node in self._nodes)
        self._rules = [(node, shortcut_of(node)) for node in self._nodes]

    def require(self, given: Mapping[Variable, Shape]) -> None:
        if not self._nodes or not (self._makes_ones or any(map(_has_a_one, given.items()))):
            return
        walk = ShapeWalk(given, self._values)
        for node, shortcut in self._rules:
            try:
                if shortcut is None or not walk.take(node, shortcut):
                    located(node, walk.visit, node)
                if isinstance(node.op, (PartWrite, Alloc)) and _is_decided(node, walk):
                    located(node, node.op.check_operands, node, [walk.operand(one) for one in node.inputs])
            except ShapeError:
                if node not in self._lazy and _stretches(node, walk):
                    raise
            except (EsatError, ArithmeticError, LookupError, ValueError):
                continue  # the sizes of its results are not known; it says so itself where it runs


def _has_a_one(item: tuple[Variable, Shape]) -> bool:
    variable, shape = item
    declared = variable.type.shape if isinstance(variable.type, TensorType) else ()
    return any(size == 1 and known is None for size, known in zip(shape, declared, strict=False))


def _may_stretch(node: Apply) -> bool:
    """Whether NumPy would stretch operands of some run-time sizes."""
    if isinstance(node.op, (Alloc, PartWrite)):
        return None in node.inputs[1 if isinstance(node.op, PartWrite) else 0].tensor_type.shape
    if node.op.family is not Family.ELEMENTWISE:
        return False
    shapes = [variable.tensor_type.shape for variable in node.inputs]
    # One of them at least is not declared, and meets another that is not 1 for certain.
    return any(None in sizes and len(sizes) - sizes.count(1) > 1 for sizes in zip(*shapes, strict=True))


def _passes_sizes(node: Apply) -> bool:
    return node.op.family in _PASSING or isinstance(node.op, DimShuffle)


def _is_decided(node: Apply, walk: ShapeWalk) -> bool:
    """Whether the size of what is filled or written to is known: arrays of places have one for each."""
    first = 2 if isinstance(node.op, PartWrite) else 1
    return all(map(walk.is_known, node.inputs[:first])) and all(
        walk.has_value(one)
        or (walk.is_known(one) and one.tensor_type.ndim > 0 and one.tensor_type.dtype != "bool")
        for one in node.inputs[first:]
    )


def _stretches(node: Apply, walk: ShapeWalk) -> bool:
    """Whether NumPy would have stretched an operand of a node whose sizes do not fit."""
    if isinstance(node.op, PartWrite):
        return _has_a_one((node.inputs[1], walk.shape(node.inputs[1])))
    if isinstance(node.op, Alloc):
        return _has_a_one((node.inputs[0], walk.shape(node.inputs[0])))
    if node.op.family is not Family.ELEMENTWISE:
        return False
    shapes = [walk.shape(variable) for variable in node.inputs]
    sizes = [{*sizes} - {1} for sizes in zip(*shapes, strict=True)]
    return all(len(one) <= 1 for one in sizes)
