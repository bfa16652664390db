"""Which nodes depend on nothing but shapes, and which shapes are known before any step has run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from esat.errors import EsatError, ShapeError, describe
from esat.graph import Apply, Constant, Family, FunctionGraph, SharedVariable, TensorType, Variable
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.shape import ShapeI
from esat.ops.arrays.view import Reshape
from esat.ops.control import IfElse
from esat.phases.transfer import Transfer

_KNOWN_FAMILIES = (Family.ELEMENTWISE, Family.REDUCTION, Family.CONTRACTION)
_IMPURE_FAMILIES = (Family.RANDOM, Family.CONTROL, Family.SPARSE)
_SAMPLE_SIZE = 2
"""The size of an axis of unknown size in stand-ins: one that does not broadcast."""
_LONGEST_VECTOR = 64
"""Elements of a vector that is worth keeping for each combination of shapes: the sizes of some arrays."""


class ShapeFacts:
    """What the shapes of the inputs decide, found without knowing them.

    Attributes
    ----------
    early
        Variables whose shape follows from the shapes of the inputs and shared variables.
    values
        Nodes whose results do: sizes and arithmetic on sizes. They are computed once for each
        combination of input shapes, not once a call.
    decided
        The variables that those nodes compute.
    unread
        Further nodes that need not run, because nothing reads their results but for the shape.

    Parameters
    ----------
    graph
        The graph the facts are about.
    """

    def __init__(self, graph: FunctionGraph) -> None:
        self.early: set[Variable] = set(graph.inputs)
        self.values: set[Apply] = set()
        self.decided: set[Variable] = set()
        nodes = graph.toposort()
        for node in nodes:
            self._add(node)
        self.unread = self._find_unread(nodes, graph.outputs)

    @property
    def idle(self) -> frozenset[Apply]:
        """Nodes that no step of a call runs."""
        return frozenset(self.values | self.unread)

    def _find_unread(self, nodes: Sequence[Apply], outputs: Iterable[Variable]) -> set[Apply]:
        read = set(outputs)
        unread: set[Apply] = set()
        for node in reversed(nodes):
            if node in self.values:
                continue
            if read.isdisjoint(node.outputs):
                unread.add(node)
            else:
                read.update(node.inputs)
        return unread

    def _add(self, node: Apply) -> None:
        for variable in node.inputs:
            if isinstance(variable, (Constant, SharedVariable)):
                self.early.add(variable)
        if _is_told_by_types(node) or self._shape_follows(node):
            self.early.update(node.outputs)
        if self._value_follows(node):
            self.values.add(node)
            self.decided.update(node.outputs)

    def _shape_follows(self, node: Apply) -> bool:
        if node.op.family is Family.SPARSE or any(variable not in self.early for variable in node.inputs):
            return False  # sizes of sparse matrices are not followed
        if isinstance(node.op, IfElse):
            return False  # those of the two sides may differ
        if node.op.family in _KNOWN_FAMILIES or isinstance(node.op, DimShuffle) or node.op.typing == "same":
            return True
        if isinstance(node.op, Reshape):
            return isinstance(node.inputs[1], Constant) or node.inputs[1] in self.decided
        samples = [self._sample(variable) for variable in node.inputs]
        try:
            types = node.op.infer_types(samples)
        except EsatError:
            return False
        return all(isinstance(type, TensorType) and None not in type.shape for type in types)

    def _value_follows(self, node: Apply) -> bool:
        if isinstance(node.op, ShapeI):
            return node.inputs[0] in self.early and isinstance(node.inputs[0].type, TensorType)
        small = all(_is_small(variable) for variable in node.outputs)
        decided = [variable in self.decided for variable in node.inputs]
        return (
            small
            and any(decided)
            and not isinstance(node.op, Transfer)  # which is there to be read on the other side
            and node.op.family not in _IMPURE_FAMILIES
            and not node.op.destroy_map
            and all(
                known or isinstance(variable, Constant)
                for known, variable in zip(decided, node.inputs, strict=True)
            )
        )

    def _sample(self, variable: Variable) -> Variable:
        """A stand-in whose sizes, or value, are known, to see what an op makes of known ones."""
        if isinstance(variable, Constant) or not isinstance(variable.type, TensorType):
            return variable
        shape = tuple(_SAMPLE_SIZE if size is None else size for size in variable.type.shape)
        type = variable.type.with_shape(shape)
        if variable in self.decided:
            return Constant(type, np.full(shape, _SAMPLE_SIZE, type.numpy_dtype))
        return Variable(type)


def reshaped(node: Apply, shape: tuple[int, ...], sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape a Reshape gives an array of ``shape``. Raises ShapeError where the elements do not fit."""
    total, known = prod(shape), prod(size for size in sizes if size != -1)
    result = tuple(total // known if size == -1 and known else size for size in sizes)
    if prod(result) != total or min(result, default=0) < 0:
        reason = f"{total} elements do not fit shape {tuple(sizes)}"
        raise ShapeError(describe(node.op.name, [f"shape {shape}"], reason, node.where))
    return result


def _is_small(variable: Variable) -> bool:
    """Whether a value is worth keeping for each combination of shapes: a scalar or a short vector."""
    if not isinstance(variable.type, TensorType) or variable.type.ndim > 1:
        return False
    return all(size is not None and size <= _LONGEST_VECTOR for size in variable.type.shape)


def _is_told_by_types(node: Apply) -> bool:
    """Whether the types of the inputs tell the shapes of the results.

    Types of results may know more: ``x[mask]`` has two elements if it is added to a vector of two, and that
    is an error otherwise, which is found when the mask is known.
    """
    if not all(map(_is_static, node.outputs)):
        return False
    try:
        types = node.op.infer_types(node.inputs)
    except EsatError:
        return False
    return all(isinstance(type, TensorType) and None not in type.shape for type in types)


def _is_static(variable: Variable) -> bool:
    return isinstance(variable.type, TensorType) and None not in variable.type.shape
