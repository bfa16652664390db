"""Control: values that pass only under conditions, and choices between values.

Nodes of this family are not computed at compile time: an assertion that fails belongs to run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import (
    AssertionFailed,
    CallError,
    DtypeError,
    EsatError,
    GraphError,
    ShapeError,
    StatedShapeError,
    describe,
)
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable
from esat.graph.registry import op_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.annotations.masks import is_zero
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.cast import cast
from esat.ops.index.basic import zeros_like
from esat.ops.inference.batching import batch_size, repeated
from esat.ops.inference.promotion import common_dtype

Shape = tuple[int | None, ...]


@record(frozen=True, eq=False, repr=False)
class _Pass(Op):
    """An op that hands its first operand on, as a view, after a check."""

    family = Family.CONTROL
    view_map = MappingProxyType({0: (0,)})

    def linear_in(self, count: int) -> range:
        return range(1)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        return [cotangents[0], *[None] * (len(node.inputs) - 1)]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        return Work(flops=0.0, bytes=0.0, calls=1)


@record(frozen=True, eq=False, repr=False)
class Assert(_Pass):
    """The first operand, of any type, if all elements of all further ones, which are bool, are true.

    Attributes
    ----------
    message
        What the error says.
    error
        Its class.
    """

    message: str = "an assertion failed"
    error: type[EsatError] = AssertionFailed
    name, constructor = "assert", "Assert"

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        value, *conditions = inputs
        return (as_variable(value), *(cast(condition, "bool") for condition in conditions))

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return (inputs[0].type,)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        value, *conditions = inputs
        for place, condition in enumerate(conditions):
            if not np.all(condition):
                raise self.error(describe(self.name, [_failure(place, condition)], self.message))
        return (value,)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        if not batched[0]:  # a condition of the batch says whether there is a value at all
            size = batch_size(inputs, batched)
            return tuple(self.make_node(repeated(inputs[0], size), *inputs[1:]).outputs)
        return tuple(self.make_node(*inputs).outputs)

    def __str__(self) -> str:
        return f"{self.name}{{{self.message}}}"


def _failure(place: int, condition: Array) -> str:
    if np.ndim(condition) == 0:
        return f"condition {place} is false"
    first = tuple(int(index) for index in np.argwhere(~condition)[0])
    count = int(np.size(condition) - np.count_nonzero(condition))
    return f"condition {place} is false at {count} places, first at {first}"


@record(frozen=True, eq=False, repr=False)
class After(_Pass):
    """The first operand, of any type, as what is there once all further ones are computed.

    Nothing sees through it: what is computed of its result is another value than what is computed of its
    operand, and neither is taken for the other.
    """

    name, constructor = "after", "After"

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return (inputs[0].type,)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (inputs[0],)

    def jvp(self, node: Apply, tangents: Sequence[Variable | None]) -> list[Variable | None]:
        return [tangents[0]]

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        value = inputs[0] if batched[0] else repeated(inputs[0], batch_size(inputs, batched))
        return tuple(self.make_node(value, *inputs[1:]).outputs)


AFTER = After()


@record(frozen=True, eq=False, repr=False)
class SpecifyShape(_Pass):
    """An array of the given shape, which is checked at run time.

    Attributes
    ----------
    shape
        One size an axis, None where any will do.
    """

    shape: Shape = ()
    name, constructor = "specify_shape", "SpecifyShape"

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        wanted = source.with_shape(self.shape)
        return (merged_type(self.name, source, wanted),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (array,) = inputs
        fits = zip(array.shape, self.shape, strict=True)
        if any(wanted is not None and size != wanted for size, wanted in fits):
            raise StatedShapeError(describe(str(self), [f"shape {array.shape}"], "the sizes differ"))
        return (array,)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        return (SpecifyShape((None, *self.shape))(inputs[0]),)

    def __str__(self) -> str:
        return f"{self.name}{{{','.join('?' if size is None else str(size) for size in self.shape)}}}"


@record(frozen=True, eq=False, repr=False)
class IfElse(Op):
    """One of two lists of values, by a bool scalar: ``(condition, *then, *otherwise)``.

    Values that stand for each other have one type, up to sizes. An executor that supports it computes
    the values of the list that is chosen only; :meth:`perform`, which is given both, picks.

    Attributes
    ----------
    count
        Length of each list, and number of outputs.
    lazy
        True: operands after the first need not be computed before the choice is known.
    """

    count: int = 1
    name, constructor, family = "ifelse", "IfElse", Family.CONTROL
    lazy = True
    host_only = "the host chooses; the values that it chooses between stay where they are"

    def __post_init__(self) -> None:
        views = {place: (1 + place, 1 + self.count + place) for place in range(self.count)}
        object.__setattr__(self, "view_map", MappingProxyType(views))

    def branches(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The operands of the two lists."""
        return list(inputs[1 : 1 + self.count]), list(inputs[1 + self.count :])

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        if len(inputs) != 1 + 2 * self.count:
            reason = f"takes a condition and two lists of {self.count} values"
            raise GraphError(describe(self.name, inputs, reason))
        pairs = [_equal_dtypes(*pair) for pair in zip(*self.branches(inputs), strict=True)]
        return (cast(inputs[0], "bool"), *(pair[0] for pair in pairs), *(pair[1] for pair in pairs))

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        if inputs[0].tensor_type.ndim:
            raise ShapeError(describe(self.name, [inputs[0].type], "the condition is a scalar"))
        return tuple(
            common_type(self.name, then.type, otherwise.type)
            for then, otherwise in zip(*self.branches(inputs), strict=True)
        )

    def needed(self, inputs: Sequence[Variable], values: Mapping[Variable, Any]) -> Sequence[Variable]:
        condition = inputs[0]
        value = condition.data if isinstance(condition, Constant) else values.get(condition)
        if value is None:
            return inputs[:1]
        return (condition, *self.branches(inputs)[0 if value else 1])

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return tuple(self.branches(inputs)[0 if inputs[0] else 1])

    def linear_in(self, count: int) -> range:
        return range(1, count)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        condition, *values = inputs
        size = batch_size(inputs, batched)
        flags = [any(pair) for pair in zip(*self.branches(batched), strict=True)] * 2
        if batched[0]:
            flags = [True] * len(values)
        values = [
            value if own or not wanted else repeated(value, size)
            for value, own, wanted in zip(values, batched[1:], flags, strict=True)
        ]
        pairs = list(zip(values[: self.count], values[self.count :], strict=True))
        if batched[0]:
            ranks = [then.tensor_type.ndim for then, _ in pairs]
            conditions = [dimshuffle(condition, (0, *["x"] * (rank - 1))) for rank in ranks]
            switch = op_named("switch")
            return tuple(switch(where, *pair) for where, pair in zip(conditions, pairs, strict=True))
        outputs = self.make_node(condition, *values).outputs
        return tuple(
            output if wanted else repeated(output, size)
            for output, wanted in zip(outputs, flags[: self.count], strict=True)
        )

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """Each cotangent to the value that was chosen, zeros to the other."""
        condition = node.inputs[0]
        found: tuple[list[Variable | None], list[Variable | None]] = ([], [])
        for cotangent, *pair in zip(cotangents, *self.branches(node.inputs), strict=True):
            for chosen, (operand, parts) in enumerate(zip(pair, found, strict=True)):
                if cotangent is None:
                    parts.append(None)
                    continue
                values = (zeros_like(operand), cotangent) if chosen else (cotangent, zeros_like(operand))
                parts.append(IfElse(1)(condition, *values))
        return [None, *found[0], *found[1]]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        return Work(flops=0.0, bytes=0.0, calls=1)


@record(frozen=True, slots=True, eq=False)
class CotangentChoice:
    """Cotangents that are zeros but where one condition has one value.

    A gradient is linear in its cotangents, so that it may be taken of the values, and the choice be made of
    what comes of them: a branch that is not taken is not gone back through, and its infinities meet no zero.

    Attributes
    ----------
    condition
        A bool scalar.
    taken
        The value of it for which the cotangents are not zeros.
    values
        The cotangents then.
    """

    condition: Variable
    taken: bool
    values: tuple[Variable | None, ...]

    def otherwise_zeros(self, value: Variable | None, operand: Variable) -> Variable | None:
        """A value of the shape of an operand, or zeros."""
        if value is None or not isinstance(operand.type, TensorType):
            return value
        zeros = zeros_like(operand)
        result: Variable = IfElse(1)(self.condition, *((value, zeros) if self.taken else (zeros, value)))
        return result


def chosen(cotangents: Sequence[Variable | None]) -> CotangentChoice | None:
    """Cotangents by the one condition on which all of them depend, where there is one."""
    known = [one.owner for one in cotangents if one is not None]
    first = known[0] if known else None
    if first is None or not _chooses(first):
        return None
    condition, then, otherwise = first.inputs
    taken = is_zero(otherwise)
    if not taken and not is_zero(then):
        return None
    for node in known[1:]:
        if node is None or not _chooses(node) or node.inputs[0] is not condition:
            return None
        if not is_zero(node.inputs[2 if taken else 1]):
            return None
    place = 1 if taken else 2
    values = (None if one is None or one.owner is None else one.owner.inputs[place] for one in cotangents)
    return CotangentChoice(condition, taken, tuple(values))


def _chooses(node: Apply) -> bool:
    return isinstance(node.op, IfElse) and node.op.count == 1


def _equal_dtypes(then: Any, otherwise: Any) -> tuple[Variable, Variable]:
    """Two values in their common dtype, where they are tensors."""
    if any(isinstance(v, Variable) and not isinstance(v.type, TensorType) for v in (then, otherwise)):
        return as_variable(then), as_variable(otherwise)
    dtype = common_dtype("ifelse", [then, otherwise])
    return cast(then, dtype), cast(otherwise, dtype)


def merged_type(name: str, left: TensorType, right: TensorType) -> TensorType:
    """The type of a value that has both types. Raises StatedShapeError when sizes contradict."""
    pairs = list(zip(left.shape, right.shape, strict=False))
    if left.ndim != right.ndim or any(None not in pair and pair[0] != pair[1] for pair in pairs):
        raise StatedShapeError(describe(name, [left, right], "the sizes contradict each other"))
    return left.with_shape(tuple(a if a is not None else b for a, b in pairs))


def common_type(name: str, left: Type, right: Type) -> Type:
    """The narrowest type that admits the values of both.

    Raises
    ------
    ShapeError
        When ranks differ.
    DtypeError
        When types other than tensors differ.
    """
    if left == right:
        return left
    if not isinstance(left, TensorType) or not isinstance(right, TensorType) or left.dtype != right.dtype:
        raise DtypeError(describe(name, [left, right], "the two values must have one type"))
    if left.ndim != right.ndim:
        raise ShapeError(describe(name, [left, right], "the two values must have one rank"))
    sizes = zip(left.shape, right.shape, strict=True)
    return left.with_shape(tuple(a if a == b else None for a, b in sizes))


def assert_(
    value: Any,
    *conditions: Any,
    message: str = "an assertion failed",
    error: type[EsatError] = AssertionFailed,
) -> Variable:
    """``value``, provided that every element of every condition is true.

    Parameters
    ----------
    value
        A Variable of any type, or an array.
    conditions
        Bool Variables or arrays of any shape; other dtypes count as true where they are not 0.
    message
        What the error says.
    error
        Its class, AssertionFailed or another EsatError.

    Raises
    ------
    CallError
        When ``error`` is no such class.
    AssertionFailed
        At run time, with the message and the user's line, when one is false; or the ``error`` given.
    """
    if not (isinstance(error, type) and issubclass(error, EsatError)):
        raise CallError(describe("assert_", [f"error={error!r}"], "the class of the error is an EsatError"))
    result: Variable = Assert(str(message), error)(value, *conditions)
    return result


def ifelse(condition: Any, then: Any, otherwise: Any) -> Any:
    """``then`` if a scalar condition is true, else ``otherwise``; either lists of as many values.

    Other than by :func:`esat.where`, the choice is made once for whole values, which may differ in size.

    Returns
    -------
    One Variable, or a tuple of them when lists are given.

    Raises
    ------
    ShapeError
        When the condition is not a scalar, or ranks differ.
    DtypeError
        When types other than tensors differ.
    GraphError
        When the lists differ in length.
    """
    if not isinstance(then, (list, tuple)):
        return IfElse(1)(condition, then, otherwise)
    if not isinstance(otherwise, (list, tuple)) or len(then) != len(otherwise) or not then:
        raise GraphError(describe("ifelse", [then, otherwise], "takes two lists of as many values"))
    outputs = IfElse(len(then))(condition, *then, *otherwise)
    return (outputs,) if len(then) == 1 else outputs


def specify_shape(operand: Any, shape: Sequence[int | None]) -> Variable:
    """``operand`` with sizes known when the graph is built, which are checked at run time.

    Parameters
    ----------
    operand
        A Variable or array.
    shape
        One size an axis, None where it stays as it is.

    Raises
    ------
    ShapeError
        When the sizes contradict what is known; at run time, what is there.
    """
    variable = as_variable(operand)
    sizes = tuple(shape)
    if len(sizes) != variable.tensor_type.ndim:
        reason = f"{len(sizes)} sizes for {variable.tensor_type.ndim} axes"
        raise ShapeError(describe("specify_shape", [variable.type], reason))
    op = SpecifyShape(sizes)
    if op.infer_types([variable])[0] == variable.type:
        return variable
    result: Variable = op(variable)
    return result
