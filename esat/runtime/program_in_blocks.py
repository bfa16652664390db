"""A second program of a function, which takes layers over rows in blocks: for sizes where that is faster.

Between small matrices nothing leaves the caches, and weights of large ones do not fit into them. So which
program runs is decided for each combination of shapes, and this one is compiled when it is first needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from esat.codegen.ground.target import Target
from esat.codegen.rowwise.layers import Layers, RowTiling, lower_layers
from esat.errors import ShapeError
from esat.graph import Apply, FunctionGraph, Variable
from esat.ops.linalg.row_blocks import RowBlocks
from esat.phases.shape_values import ShapeFacts
from esat.runtime.entry.dispatch import Run, Way
from esat.runtime.entry.shape_rules import ShapeRules
from esat.runtime.linked import Build, Linked

WORTH_FROM = 1 << 22
"""Multiplications from which blocks were measured to be faster: some 150 microseconds."""

Shape = tuple[int, ...]


class InBlocks:
    """The program with layers in blocks.

    Parameters
    ----------
    graph
        Its graph, with :class:`RowBlocks`.
    build
        Compiles it.
    target
        What it is compiled for.
    """

    def __init__(self, graph: FunctionGraph, build: Build, target: Target) -> None:
        self.graph = graph
        self._build = build
        nodes = graph.toposort()
        self._rules = ShapeRules(nodes, frozenset(ShapeFacts(graph).values))
        self._layers: list[tuple[Apply, RowBlocks, Layers]] = [
            (node, node.op, lower_layers(node.op, node.inputs[0].tensor_type.dtype, target))
            for node in nodes
            if isinstance(node.op, RowBlocks)
        ]
        self._leaves: tuple[Variable, ...] = ()

    def attach(self, inputs: Sequence[Variable], leaves: Sequence[Variable]) -> None:
        """Tell of the inputs of the first program, and of the variables whose shapes make a key."""
        own = dict(zip(inputs, self.graph.inputs, strict=True))
        self._leaves = tuple(own.get(leaf, leaf) for leaf in leaves)

    def offer(self, way: Way) -> Run | None:
        """The function of the program, for shapes where it is faster."""
        return self.executable.run if self.suits(way.key) else None

    def suits(self, key: tuple[Shape, ...]) -> bool:
        """Whether blocks are faster for such shapes."""
        try:
            shapes = self._rules.apply(dict(zip(self._leaves, key, strict=True))).shapes
            sizes = [self._sizes(*layers, shapes) for layers in self._layers]
        except ShapeError:
            # Sizes that the graph needs equal differ: they may, in a branch that is not taken.
            return False
        fitting = [one for one in sizes if one is not None and one.fits]
        work = sum(one.multiplications for one in fitting)
        return len(fitting) == len(sizes) and work >= WORTH_FROM

    @staticmethod
    def _sizes(
        node: Apply, op: RowBlocks, layers: Layers, shapes: Mapping[Variable, Shape]
    ) -> RowTiling | None:
        """How rows are taken; None where the shapes are not known beforehand."""
        known = [shapes.get(variable) for variable in node.inputs]
        inputs = [shape for shape in known if shape is not None]
        itemsize = node.inputs[0].tensor_type.numpy_dtype.itemsize
        return RowTiling(op, layers, inputs, itemsize) if len(inputs) == len(known) else None

    @cached_property
    def executable(self) -> Linked:
        """The program, compiled."""
        made: Linked = self._build(self.graph)
        return made
