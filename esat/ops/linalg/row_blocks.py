"""A part of a graph that treats the rows of matrices alike, as one op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.function_graph import FunctionGraph
from esat.graph.op import Array, Family, Op, as_variable, check_count
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.contraction import MatMul
from esat.ops.reduction import Reduction

TURNED = (1, 0)
"""Order of axes of a transposed matrix."""


@record(frozen=True, eq=False, repr=False)
class RowBlocks(Op):
    """What the body computes, of which each row depends on the same row of the first inputs alone.

    Matrices of the body are of two kinds. Those *of rows* have one row for each sample: the first inputs,
    their products with other inputs, and elementwise functions of these. Results may also be sums over all
    rows. Layers of a perceptron are of this form, and steps of its training.

    A phase puts it in the place of the body's nodes, which each read and write all rows
    (``esat/phases/layer_blocks.py``); it has no gradient.

    Attributes
    ----------
    body
        The function, of one dtype.
    leaves
        How many of its inputs, the first ones, are of rows.
    """

    body: FunctionGraph
    leaves: int
    name, constructor, family = "row_blocks", "RowBlocks", Family.CONTRACTION
    host_only = "an order of work for the caches of a processor"

    def of_rows(self) -> set[Variable]:
        """The variables of the body that have a row for each sample."""
        found = set(self.body.inputs[: self.leaves])
        for node in self.body.toposort():
            if not is_sum_over_rows(node) and found.intersection(node.inputs):
                found.update(node.outputs)
        return found

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        check_count(self.name, inputs, len(self.body.inputs))
        return tuple(map(as_variable, inputs))

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        known: dict[Variable, Variable] = dict(zip(self.body.inputs, inputs, strict=True))
        for node in self.body.toposort():
            types = node.op.infer_types([known.get(operand, operand) for operand in node.inputs])
            known.update(zip(node.outputs, (type.make_variable() for type in types), strict=True))
        return tuple(known[output].type for output in self.body.outputs)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return tuple(evaluate(self.body.outputs, dict(zip(self.body.inputs, inputs, strict=True))))

    def check_operands(self, node: Apply, operands: Sequence[Array]) -> None:
        self.shapes([array.shape for array in operands])

    def shapes(self, inputs: Sequence[tuple[int, ...]]) -> dict[Variable, tuple[int, ...]]:
        """The shapes of all variables of the body, for those of its inputs. Raises ShapeError."""
        known = dict(zip(self.body.inputs, inputs, strict=True))
        for node in self.body.toposort():
            shapes = [_shape(operand, known) for operand in node.inputs]
            arrays = [
                np.broadcast_to(np.zeros((), operand.tensor_type.numpy_dtype), shape)
                for operand, shape in zip(node.inputs, shapes, strict=True)
            ]
            node.op.check_operands(node, arrays)
            stand_ins = [
                operand.tensor_type.with_shape(shape).make_variable()
                for operand, shape in zip(node.inputs, shapes, strict=True)
            ]
            for output, type in zip(node.outputs, node.op.infer_types(stand_ins), strict=True):
                assert isinstance(type, TensorType)
                known[output] = tuple(size for size in type.shape if size is not None)
        return known

    def __str__(self) -> str:
        ops = [node.op for node in self.body.toposort() if node.op.family is not Family.VIEW]
        return f"{self.name}{{{', '.join(map(str, ops))}}}"


def is_turned(variable: Variable) -> bool:
    """Whether a variable is a transposed matrix."""
    node = variable.owner
    return node is not None and isinstance(node.op, DimShuffle) and node.op.is_transpose


def is_sum_over_rows(node: Apply) -> bool:
    """Whether a node of a body adds up what comes from its rows.

    That is the product of a transposed matrix of rows with another one, or a sum along the first axis.
    """
    if isinstance(node.op, MatMul):
        return is_turned(node.inputs[0])
    return isinstance(node.op, Reduction)


def _shape(variable: Variable, known: Mapping[Variable, tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(np.shape(variable.data)) if isinstance(variable, Constant) else known[variable]
