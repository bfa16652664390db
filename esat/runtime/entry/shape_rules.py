"""Run-time shapes: from the shapes of the inputs to those of every result, before any step runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from esat.errors import EsatError, UserLine
from esat.graph import Apply, Constant, Family, TensorType, Variable
from esat.graph.op import Array, Op
from esat.graph.sparse_type import SparseType
from esat.ops.arrays.creation import Alloc
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.view import Reshape
from esat.ops.control import IfElse
from esat.ops.reduction import Reduction
from esat.phases.shape_values import reshaped

Shape: TypeAlias = tuple[int, ...]
Shortcut: TypeAlias = Callable[[Sequence[Shape]], Shape | None]

_CHECKED_BY_SHAPE = (Family.ELEMENTWISE, Family.REDUCTION, Family.CONTRACTION)


class ShapeRules:
    """How shapes follow from shapes, for some nodes of a graph; made once and applied many times.

    Parameters
    ----------
    nodes
        The nodes, in topological order.
    value_nodes
        Those of them whose results depend on shapes alone.
    lazy
        Those of them that run under conditions only: sizes that do not fit are an error where they run.
    """

    def __init__(
        self,
        nodes: Iterable[Apply],
        value_nodes: Collection[Apply] = frozenset(),
        lazy: Collection[Apply] = frozenset(),
    ) -> None:
        self._value_nodes = value_nodes
        self._lazy = lazy
        self._rules = [(node, shortcut_of(node)) for node in nodes]

    def apply(self, given: Mapping[Variable, Shape]) -> ShapeWalk:
        """The shapes of everything the nodes compute, where they follow from those given.

        Raises
        ------
        ShapeError
            When sizes meet that do not fit at a node that always runs, naming the op and the user's line.
        """
        walk = ShapeWalk(given, self._value_nodes)
        for node, shortcut in self._rules:
            try:
                walk.follow(node)
                if shortcut is None or not walk.take(node, shortcut):
                    located(node, walk.visit, node)
            except EsatError as error:
                if node not in self._lazy:
                    raise
                walk.errors.update(dict.fromkeys(node.outputs, error))
        return walk


class ShapeWalk:
    """Shapes of variables, and values of those that depend on shapes alone.

    Attributes
    ----------
    shapes
        Variable -> its shape, where known.
    values
        Variable -> its value, for results of nodes that depend on shapes alone.
    errors
        Variable -> what computing it raises; all that would be computed from it has the same error.
    """

    def __init__(self, shapes: Mapping[Variable, Shape], value_nodes: Collection[Apply]) -> None:
        self.shapes: dict[Variable, Shape] = dict(shapes)
        self.values: dict[Variable, Array] = {}
        self.errors: dict[Variable, EsatError] = {}
        self._value_nodes = value_nodes
        self._stand_ins: dict[Variable, Variable] = {}

    def follow(self, node: Apply) -> None:
        """Raise the error of an operand that the node needs: of a choice, of its condition."""
        if self.errors:
            needed = node.inputs[:1] if isinstance(node.op, IfElse) else node.inputs
            for variable in needed:
                if variable in self.errors:
                    raise self.errors[variable]

    def take(self, node: Apply, shortcut: Shortcut) -> bool:
        """Find the shape of a node's result the short way, if the sizes are as they should be."""
        if not all(self.is_known(variable) for variable in node.inputs) or node in self._value_nodes:
            return False
        shape = shortcut([self.shape(variable) for variable in node.inputs])
        if shape is None:
            return False
        self.shapes[node.outputs[0]] = shape
        return True

    def visit(self, node: Apply) -> None:
        """Find the shapes of a node's results by its op's own rules. Raises ShapeError."""
        if node in self._value_nodes:
            results = node.op.perform([self.operand(variable) for variable in node.inputs])
            for variable, result in zip(node.outputs, results, strict=True):
                self.values[variable] = np.asarray(result)
                self.shapes[variable] = np.shape(result)
            return
        if isinstance(node.op, Reshape) and self.has_value(node.inputs[1]) and self.is_known(node.inputs[0]):
            sizes = [int(size) for size in self.operand(node.inputs[1])]
            self.shapes[node.outputs[0]] = reshaped(node, self.shape(node.inputs[0]), sizes)
            return
        if all(self.is_known(variable) for variable in node.inputs):
            self._check(node)
            types: Sequence[Any] = node.op.infer_types([self._stand_in(variable) for variable in node.inputs])
        else:
            types = [variable.type for variable in node.outputs]
        if isinstance(node.op, Alloc):
            types = [self._allocated(node, types[0])]
        for variable, type in zip(node.outputs, types, strict=True):
            if isinstance(type, TensorType) and None not in type.shape:
                self.shapes[variable] = tuple(size for size in type.shape if size is not None)

    def _allocated(self, node: Apply, type: TensorType) -> TensorType:
        """The type of an allocation: axes that the value's type does not say to be 1 keep their sizes.

        A run-time size of 1 does not make them broadcast.
        """
        value = node.inputs[0]
        if not self.is_known(value):
            return type
        sizes = zip(type.shape, value.tensor_type.broadcastable, self.shape(value), strict=True)
        return type.with_shape(tuple(wanted if flag else given for wanted, flag, given in sizes))

    def is_known(self, variable: Variable) -> bool:
        """Whether the shape of a variable is known."""
        return isinstance(variable, Constant) or variable in self.shapes

    def has_value(self, variable: Variable) -> bool:
        """Whether the value of a variable is known."""
        return isinstance(variable, Constant) or variable in self.values

    def shape(self, variable: Variable) -> Shape:
        """The shape of a variable, which is known."""
        return np.shape(variable.data) if isinstance(variable, Constant) else self.shapes[variable]

    def _check(self, node: Apply) -> None:
        """Check sizes where nothing but shapes is needed for that; other ops are checked as they run."""
        if not checked_by_shape(node):
            return
        operands = [self.operand(variable) for variable in node.inputs]
        node.op.check_operands(node, operands)
        if node.op.family is Family.REDUCTION and operands[0].size == 0:
            # What NumPy makes of nothing to reduce, an error included, costs nothing to find out.
            node.op.perform([np.empty(operands[0].shape, operands[0].dtype)])

    def operand(self, variable: Variable) -> Array:
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
        stand_in = self._stand_ins.get(variable)
        if stand_in is None:
            known, shape = self.values.get(variable), self.shapes[variable]
            if isinstance(variable.type, SparseType):
                rows, columns = shape
                stand_in = Variable(SparseType(variable.type.format, variable.type.dtype, (rows, columns)))
            else:
                type = variable.tensor_type.with_shape(shape)
                stand_in = Variable(type) if known is None else Constant(type, known)
            self._stand_ins[variable] = stand_in
        return stand_in


def shortcut_of(node: Apply) -> Shortcut | None:
    """A short way from the shapes of a node's inputs to that of its result, for the commonest ops.

    It gives None where something is unusual, an error above all: then the op's own rules are asked.
    """
    if not all(isinstance(variable.type, TensorType) for variable in (*node.inputs, *node.outputs)):
        return None
    op = node.op
    if op.family is Family.ELEMENTWISE and type(op).check_operands is Op.check_operands:
        return _elementwise_shortcut([variable.tensor_type.broadcastable for variable in node.inputs])
    if isinstance(op, DimShuffle):
        return functools.partial(_shuffled, op.order, op.dropped)
    if isinstance(op, Reduction):
        return functools.partial(_reduced, op.axes, op.keepdims)
    return None


def _elementwise_shortcut(flags: Sequence[tuple[bool, ...]]) -> Shortcut | None:
    """Operands that stretch nowhere have the result's shape; the others fit it axis by axis."""
    whole = next((place for place, stretched in enumerate(flags) if not any(stretched)), None)
    if whole is None:
        return None

    def shortcut(shapes: Sequence[Shape]) -> Shape | None:
        result = shapes[whole]
        for shape, stretched in zip(shapes, flags, strict=True):
            if shape != result and any(
                size != wanted and not flag
                for size, wanted, flag in zip(shape, result, stretched, strict=True)
            ):
                return None
        return result

    return shortcut


def _shuffled(
    order: tuple[int | str, ...], dropped: tuple[int, ...], shapes: Sequence[Shape]
) -> Shape | None:
    (shape,) = shapes
    if any(shape[axis] != 1 for axis in dropped):
        return None
    return tuple([1 if axis == "x" else shape[int(axis)] for axis in order])


def _reduced(axes: tuple[int, ...], keepdims: bool, shapes: Sequence[Shape]) -> Shape | None:
    (shape,) = shapes
    if 0 in shape:
        return None
    if keepdims:
        return tuple([1 if axis in axes else size for axis, size in enumerate(shape)])
    return tuple([size for axis, size in enumerate(shape) if axis not in axes])


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
