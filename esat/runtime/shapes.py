"""Run-time shapes: from the shapes of the inputs to those of every result, before any step runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from esat.errors import EsatError, UserLine
from esat.graph import Apply, Constant, Family, TensorType, Variable
from esat.graph.op import Array
from esat.ops.view import Reshape
from esat.phases.shape_values import reshaped

Shape: TypeAlias = tuple[int, ...]

_CHECKED_BY_SHAPE = (Family.ELEMENTWISE, Family.REDUCTION, Family.CONTRACTION)


class ShapeWalk:
    """Shapes of variables, and values of those that depend on shapes alone.

    Attributes
    ----------
    shapes
        Variable -> its shape, where known.
    values
        Variable -> its value, for results of nodes that depend on shapes alone.
    """

    def __init__(self, shapes: Mapping[Variable, Shape], value_nodes: Iterable[Apply] = ()) -> None:
        self.shapes: dict[Variable, Shape] = dict(shapes)
        self.values: dict[Variable, Array] = {}
        self._value_nodes = frozenset(value_nodes)

    def walk(self, nodes: Iterable[Apply]) -> None:
        """Find the shapes of what ``nodes``, in topological order, compute.

        Raises
        ------
        ShapeError
            When sizes meet that do not fit, naming the op and the user's line.
        """
        for node in nodes:
            located(node, self._visit, node)

    def _visit(self, node: Apply) -> None:
        if node in self._value_nodes:
            results = node.op.perform([self._operand(variable) for variable in node.inputs])
            for variable, result in zip(node.outputs, results, strict=True):
                self.values[variable] = np.asarray(result)
                self.shapes[variable] = np.shape(result)
            return
        if (
            isinstance(node.op, Reshape)
            and self._has_value(node.inputs[1])
            and self._is_known(node.inputs[0])
        ):
            sizes = [int(size) for size in self._operand(node.inputs[1])]
            self.shapes[node.outputs[0]] = reshaped(node, self._shape(node.inputs[0]), sizes)
            return
        if all(self._is_known(variable) for variable in node.inputs):
            self._check(node)
            types: Sequence[Any] = node.op.infer_types([self._stand_in(variable) for variable in node.inputs])
        else:
            types = [variable.type for variable in node.outputs]
        for variable, type in zip(node.outputs, types, strict=True):
            if isinstance(type, TensorType) and None not in type.shape:
                self.shapes[variable] = tuple(size for size in type.shape if size is not None)

    def _is_known(self, variable: Variable) -> bool:
        return isinstance(variable, Constant) or variable in self.shapes

    def _has_value(self, variable: Variable) -> bool:
        return isinstance(variable, Constant) or variable in self.values

    def _shape(self, variable: Variable) -> Shape:
        return np.shape(variable.data) if isinstance(variable, Constant) else self.shapes[variable]

    def _check(self, node: Apply) -> None:
        """Check sizes where nothing but shapes is needed for that; other ops are checked as they run."""
        if not checked_by_shape(node):
            return
        operands = [self._operand(variable) for variable in node.inputs]
        node.op.check_operands(node, operands)
        if node.op.family is Family.REDUCTION and operands[0].size == 0:
            # What NumPy makes of nothing to reduce, an error included, costs nothing to find out.
            node.op.perform([np.empty(operands[0].shape, operands[0].dtype)])

    def _operand(self, variable: Variable) -> Array:
        """The variable's value, or an array of its shape that takes no memory."""
        if isinstance(variable, Constant):
            value: Array = variable.data
            return value
        known = self.values.get(variable)
        if known is not None:
            return known
        element: Array = np.zeros((), variable.tensor_type.numpy_dtype)
        return np.broadcast_to(element, self.shapes[variable])

    def _stand_in(self, variable: Variable) -> Variable:
        if isinstance(variable, Constant):
            return variable
        known = self.values.get(variable)
        type = variable.tensor_type.with_shape(self.shapes[variable])
        return Variable(type) if known is None else Constant(type, known)


def checked_by_shape(node: Apply) -> bool:
    """Whether the shapes of a node's inputs are all that its run-time check looks at."""
    return node.op.family in _CHECKED_BY_SHAPE


def located(node: Apply, action: Callable[..., Any], *arguments: Any) -> Any:
    """Run ``action``; an EsatError from it says where the user built ``node``."""
    try:
        return action(*arguments)
    except EsatError as error:
        place = place_text(node.where)
        if place in str(error):
            raise
        raise type(error)(f"{error}{place}") from error


def place_text(where: UserLine | None) -> str:
    """The last line of a message: where the user built the node."""
    return "" if where is None else f"\n  at {where[0]}:{where[1]}"
