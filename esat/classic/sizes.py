"""Expected sizes in a graph that changes: what the greedy optimizer prices replacements with."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import ref

import numpy as np

from esat.errors import EsatError
from esat.extract.expected_shapes import Expected
from esat.graph import Constant, FunctionGraph, SharedVariable, TensorType, Type, Variable
from esat.graph.sparse_type import SparseType
from esat.graph.traversal import postorder_of

Sizes = tuple[int | None, ...]


class ExpectedSizes:
    """Sizes of variables as far as types, expected shapes of inputs and values of shared variables tell.

    Parameters
    ----------
    shapes
        Expected shapes of a graph's inputs, by position.
    """

    def __init__(self, shapes: Expected = ()) -> None:
        self._shapes = shapes
        # Variables that a rewrite drops are not kept for this. A WeakKeyDictionary compares them by `==`;
        # here they are found by identity: a Variable has one reference without a callback.
        self._known: dict[ref[Variable], Sizes] = {}

    def begin(self, graph: FunctionGraph) -> None:
        """From here on the inputs are those of this graph."""
        self._known.clear()
        for variable, shape in zip(graph.inputs, self._shapes, strict=False):
            if shape is not None and isinstance(variable.type, TensorType):
                self._known[ref(variable)] = _admitted(variable.type, shape)
            elif shape is not None and isinstance(variable.type, SparseType):
                self._known[ref(variable)] = shape[:2]

    def of(self, variable: Variable) -> Sizes:
        """Size of each axis of a tensor, None where nothing tells."""
        known = self._known.get(ref(variable))
        if known is None:
            for ancestor in postorder_of([variable], self._unknown_inputs):
                if ref(ancestor) not in self._known:
                    self._learn(ancestor)
            known = self._known[ref(variable)]
        return known

    def _unknown_inputs(self, variable: Variable) -> list[Variable]:
        node = variable.owner
        if node is None or ref(variable) in self._known:
            return []
        return [operand for operand in node.inputs if ref(operand) not in self._known]

    def _learn(self, variable: Variable) -> None:
        """Sizes from those of the operands, by the op's own typing rule."""
        type, node = variable.type, variable.owner
        found: Sizes = type.shape if isinstance(type, TensorType | SparseType) else ()
        if isinstance(variable, SharedVariable) and isinstance(type, TensorType):
            found = _admitted(type, np.shape(variable.look()))
        elif node is not None and isinstance(type, TensorType) and None in type.shape:
            try:
                results: Sequence[Type] = node.op.infer_types(
                    [self._stand_in(operand) for operand in node.inputs]
                )
            except EsatError:
                results = []  # expected sizes that do not fit each other say nothing
            for output, result in zip(node.outputs, results, strict=False):
                if output is variable and isinstance(result, TensorType) and result.ndim == type.ndim:
                    found = result.shape
        self._known[ref(variable)] = found

    def _stand_in(self, variable: Variable) -> Variable:
        if isinstance(variable.type, SparseType) and not isinstance(variable, Constant):
            rows, columns = self._known[ref(variable)]
            return Variable(SparseType(variable.type.format, variable.type.dtype, (rows, columns)))
        if isinstance(variable, Constant) or not isinstance(variable.type, TensorType):
            return variable
        return Variable(variable.type.with_shape(self._known[ref(variable)]))


def _admitted(type: TensorType, shape: tuple[int, ...]) -> Sizes:
    """Sizes without those that would make an axis broadcast that does not by its type."""
    return tuple(
        known if known is not None or size == 1 else size
        for size, known in zip(shape, type.shape, strict=True)
    )
