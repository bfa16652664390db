"""The two loops, as ops whose body is a graph: a number of steps, or as long as a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ShapeError, describe
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.algorithms.structural_key import structural_key
from esat.graph.function_graph import FunctionGraph
from esat.graph.op import Array, Family, Op, as_variable, check_count
from esat.graph.registry import function_named
from esat.graph.types import TensorType, Type, may_stand_for
from esat.graph.variables import Apply, Constant, Variable

EXPECTED_STEPS = 256
"""Steps of a loop of which nothing tells them, as sizes of axes are expected to be."""

Parts = tuple[list[Any], list[Any], list[Any]]
"""Of operands, or of inputs of the body: carries, sequences or their elements, and invariants."""


@record(frozen=True, eq=False, repr=False)
class LoopOp(Op):
    """What two kinds of loops have in common: ``(control, *carries, *sequences, *invariants)`` are operands.

    The body takes carries, an element of each sequence, and the invariants. It gives the next carries, and
    what a trace keeps of the step.

    Attributes
    ----------
    body
        The graph of a step.
    carries
        How many values are handed on from step to step.
    """

    body: FunctionGraph
    carries: int
    family = Family.CONTROL
    host_only = "a loop; its steps are a function of the host's"

    sequences = 0
    """How many operands have an element for each step."""

    @cached_property
    def key(self) -> tuple[Hashable, ...]:
        """What the body computes: loops of equal bodies are equal."""
        return structural_key(self.body.inputs, self.body.outputs)

    def split(self, inputs: Sequence[Any]) -> Parts:
        """Carries, sequences and invariants among inputs of the body, or operands after the first one."""
        ends = self.carries, self.carries + self.sequences
        return list(inputs[: ends[0]]), list(inputs[ends[0] : ends[1]]), list(inputs[ends[1] :])

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        check_count(self.name, inputs, 1 + len(self.body.inputs))
        return tuple(map(as_variable, inputs))

    @property
    def kept(self) -> list[Variable]:
        """What the body gives of a step for the traces."""
        raise NotImplementedError

    def body_types(self, inputs: Sequence[Variable]) -> dict[Variable, TensorType]:
        """The types of the variables of the body, for those of the operands after the first one.

        Raises
        ------
        DtypeError, ShapeError
            For an operand that the body does not take.
        """
        carries, sequences, invariants = self.split(inputs)
        given = [
            *(one.type for one in carries),
            *(self._element(one) for one in sequences),
            *(one.type for one in invariants),
        ]
        known: dict[Variable, Variable] = {}
        for wanted, type in zip(self.body.inputs, given, strict=True):
            if not may_stand_for(wanted.type, type):
                error = ShapeError if getattr(type, "dtype", None) == wanted.tensor_type.dtype else DtypeError
                reason = f"the body takes {wanted.type} there"
                raise error(describe(self.name, [type], reason))
            known[wanted] = _narrowed(wanted.tensor_type, type).make_variable()
        types = {one: stand.tensor_type for one, stand in known.items()}
        if all(None not in output.tensor_type.shape for output in self.kept):
            return types
        for node in self.body.toposort():
            operands = [known.get(operand, operand) for operand in node.inputs]
            for output, type in zip(node.outputs, node.op.infer_types(operands), strict=True):
                known[output] = type.make_variable()
        return {one: stand.tensor_type for one, stand in known.items() if isinstance(stand.type, TensorType)}

    def _element(self, sequence: Variable) -> TensorType:
        type = sequence.tensor_type
        if type.ndim == 0:
            raise ShapeError(describe(self.name, [type], "a sequence has an axis of steps, its first one"))
        return type.with_shape(type.shape[1:])

    def traced_types(self, types: dict[Variable, TensorType], length: int | None) -> list[TensorType]:
        """The types of the traces, for so many rows."""
        found = [types.get(output, output.tensor_type) for output in self.kept]
        return [TensorType(one.dtype, shape=(length, *one.shape)) for one in found]

    def step(self, carries: Sequence[Array], elements: Sequence[Array], invariants: Sequence[Array]) -> Any:
        """What the body gives for one step. Raises ShapeError where a carry changes its size."""
        given = dict(zip(self.body.inputs, (*carries, *elements, *invariants), strict=True))
        found = evaluate(self.body.outputs, given)
        self.check_carries([one.shape for one in carries], [one.shape for one in found[: self.carries]])
        return found

    def check_carries(self, before: Sequence[tuple[int, ...]], after: Sequence[tuple[int, ...]]) -> None:
        """Raise ShapeError unless carries have the same sizes before and after a step."""
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                reason = f"carry {number} has the sizes {old} before a step, and {new} after it"
                raise ShapeError(f"{self.name}: {reason}")

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.run(inputs, self.step)

    def run(self, inputs: Sequence[Array], step: Callable[..., Any]) -> tuple[Array, ...]:
        """The results, where ``step`` makes those of a step of carries, elements and invariants."""
        raise NotImplementedError

    def expected_steps(self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]) -> int:
        """How many steps there are for operands and results of these shapes, as far as these tell."""
        raise NotImplementedError

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        return list(function_named(f"{self.name}_vjp")(node, cotangents))

    def jvp(self, node: Apply, tangents: Sequence[Variable | None]) -> list[Variable | None]:
        return list(function_named(f"{self.name}_jvp")(node, tangents))

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        return tuple(function_named(f"{self.name}_batch")(node, inputs, batched))

    def __str__(self) -> str:
        return f"{self.name}{{{self.body}}}"


@record(frozen=True, eq=False, repr=False)
class Scan(LoopOp):
    """A loop of so many steps: ``(steps, *carries, *sequences, *invariants)``.

    It gives the last carries, and for each further result of the body the trace of it: a row for each step.
    Steps are an int64 scalar; a negative number is none at all. Sequences have at least as many elements.

    Attributes
    ----------
    sequences
        How many operands have an element for each step along their first axis.
    reverse
        Whether the first step takes the last elements, and writes the last row.
    expected
        How many steps to expect where no operand or result tells: what loops are priced with.
    sparing
        Whether nothing is to be kept of all steps but what results need, even if that takes longer.
    """

    sequences: int = 0
    reverse: bool = False
    expected: int = EXPECTED_STEPS
    sparing: bool = False
    name, constructor = "scan", "Scan"

    def properties(self) -> tuple[object, ...]:
        return (self.key, self.carries, self.sequences, self.reverse, self.sparing)

    @property
    def kept(self) -> list[Variable]:
        return self.body.outputs[self.carries :]

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        steps, *rest = inputs
        _check_control(self.name, steps, "int64")
        length = max(int(steps.data), 0) if isinstance(steps, Constant) else None
        types = self.body_types(rest)
        for sequence in self.split(rest)[1]:
            size = sequence.tensor_type.shape[0]
            if length is not None and size is not None and size < length:
                raise ShapeError(describe(self.name, [sequence.type], _too_short(size, length)))
        return (
            *(types[one] for one in self.body.inputs[: self.carries]),
            *self.traced_types(types, length),
        )

    def check_operands(self, node: Apply, operands: Sequence[Array]) -> None:
        steps = int(operands[0])
        for array in self.split(operands[1:])[1]:
            if len(array) < steps:
                raise ShapeError(f"{self.name}: {_too_short(len(array), steps)}")

    def run(self, inputs: Sequence[Array], step: Callable[..., Any]) -> tuple[Array, ...]:
        carries, sequences, invariants = self.split(inputs[1:])
        steps = max(int(inputs[0]), 0)
        rows = [list[Array]() for _ in self.kept]
        for place in reversed(range(steps)) if self.reverse else range(steps):
            found = step(carries, [one[place] for one in sequences], invariants)
            carries = list(found[: self.carries])
            for kept, value in zip(rows, found[self.carries :], strict=True):
                kept.append(value)
        return (*map(np.array, carries), *self._stacked(rows, inputs[1:]))

    def _stacked(self, rows: Sequence[list[Array]], operands: Sequence[Array]) -> list[Array]:
        order = -1 if self.reverse else 1
        if all(rows):
            return [np.stack(kept[::order]) for kept in rows]
        types = self.body_types([_as_type(one).make_variable() for one in operands])
        made = self.traced_types(types, 0)
        return [np.empty(tuple(size or 0 for size in one.shape), one.numpy_dtype) for one in made]

    def expected_steps(self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]) -> int:
        rows = [shape[0] for shape in (*outputs[self.carries :], *self.split(inputs[1:])[1])]
        return rows[0] if rows else self.expected


@record(frozen=True, eq=False, repr=False)
class While(LoopOp):
    """A loop for as long as a condition holds: ``(condition, *carries, *invariants)``.

    The body gives the next carries, whether there is a further step, and what is kept of this one. Results
    are the last carries, how many steps there were, whether there would be another one, and the traces, of
    ``max_steps`` rows: those after the last step are zeros.

    Attributes
    ----------
    max_steps
        The most steps; None for any number of them, of which no trace can be kept.
    """

    max_steps: int | None = None
    name, constructor = "while_loop", "While"

    def properties(self) -> tuple[object, ...]:
        return (self.key, self.carries, self.max_steps)

    @property
    def kept(self) -> list[Variable]:
        return self.body.outputs[self.carries + 1 :]

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        condition, *rest = inputs
        _check_control(self.name, condition, "bool")
        types = self.body_types(rest)
        return (
            *(types[one] for one in self.body.inputs[: self.carries]),
            TensorType("int64", shape=()),
            TensorType("bool", shape=()),
            *self.traced_types(types, self.max_steps),
        )

    def run(self, inputs: Sequence[Array], step: Callable[..., Any]) -> tuple[Array, ...]:
        carries, _, invariants = self.split(inputs[1:])
        types = self.body_types([_as_type(one).make_variable() for one in inputs[1:]])
        made = self.traced_types(types, self.max_steps)
        traces = [np.zeros(tuple(size or 0 for size in one.shape), one.numpy_dtype) for one in made]
        goes_on, count = bool(inputs[0]), 0
        while goes_on and (self.max_steps is None or count < self.max_steps):
            found = step(carries, (), invariants)
            carries, goes_on = list(found[: self.carries]), bool(found[self.carries])
            for trace, value in zip(traces, found[self.carries + 1 :], strict=True):
                trace[count] = value
            count += 1
        return (*map(np.array, carries), np.asarray(count, np.int64), np.asarray(goes_on), *traces)

    def expected_steps(self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]) -> int:
        return EXPECTED_STEPS if self.max_steps is None else min(self.max_steps, EXPECTED_STEPS)


def _check_control(name: str, variable: Variable, dtype: str) -> None:
    type = variable.type
    if not isinstance(type, TensorType) or type.dtype != dtype or type.ndim:
        what = "the number of steps" if dtype == "int64" else "the condition"
        raise DtypeError(describe(name, [type], f"{what} is a scalar of dtype {dtype}"))


def _too_short(size: int, steps: int) -> str:
    return f"a sequence has {size} elements for {steps} steps"


def _as_type(array: Array) -> TensorType:
    return TensorType(array.dtype, shape=array.shape)


def _narrowed(wanted: TensorType, given: Type) -> TensorType:
    """What is known of the sizes of both types."""
    assert isinstance(given, TensorType)
    sizes = zip(wanted.shape, given.shape, strict=True)
    return wanted.with_shape(tuple(b if a is None else a for a, b in sizes))
