"""Iterations that are not traced: one with a number that stands for any stands for all that are left."""

from __future__ import annotations

import math
import types
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

import numpy as np

from esat.frontend.tracing.rolling.iterations import Iterations, NotEqualError, StepNode, StepOperand
from esat.frontend.tracing.rolling.loop_state import LoopState, UnseenStateError, names_in
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.index.basic import SetSubtensor, Subtensor
from esat.ops.index.entries import OPERAND, Slice

TRACED = 5
"""Iterations that are traced, and shown equal, before others are skipped."""
MOST_TRACED = TRACED + 1
"""The same where the first one differs: what was before the loop is handed on by none of the others."""
FEWEST_SKIPPED = 64
"""Iterations from which some are skipped: tracing takes a quarter of a millisecond a node."""
Rows: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_EXACT = ("add", "sub", "mul", "div", "neg", "abs", "cast", "floor_div", "mod")
"""Ops that NumPy rounds as Python does, or not at all."""
_NOT_SEEN = 0x20 | 0x80 | 0x200
"""Flags of code that is suspended between iterations: what runs meanwhile is not seen."""


class StateWatch:
    """Looks at the state of a loop's function before each of some iterations."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._last: LoopState | None = None
        self._same = 0
        self.is_seen = True

    def look(self, frame: types.FrameType) -> None:
        """Compare the state of the loop's function with that before the last iteration."""
        if not self.is_seen or frame.f_code.co_flags & _NOT_SEEN or _is_nested(frame.f_code):
            self.is_seen = False
            return
        try:
            names = names_in(frame)
            names.pop(self._target, None)
            now = LoopState(frame, names, self._last)
        except UnseenStateError:
            self.is_seen = False
            return
        self._same = self._same + 1 if self._last is not None and now.seen == self._last.seen else 0
        self._last = now

    def settles(self, times: int) -> bool:
        """Whether the state was the same so many times in a row."""
        return self.is_seen and self._same >= times

    def forget(self) -> set[int]:
        """Refer to nothing of the loop any more; the identities of values that each iteration hands on to the
        next one, as ``y`` in ``y, z = z, f(z)``."""
        last, self._last = self._last, None
        return set() if last is None else last.moved


def _stays_small(name: str, operands: Sequence[Rows]) -> bool:
    """Whether integers stay what Python's are, which have any number of bits."""
    if any(one.dtype.kind not in "biu" for one in operands):
        return False
    largest = [max((abs(int(one.min())), abs(int(one.max())))) if one.size else 0 for one in operands]
    bound = math.prod(largest) if name == "mul" else sum(largest)
    return bound < 1 << 62 and not (name in ("floor_div", "mod") and 0 in operands[1])


def _is_nested(code: types.CodeType) -> bool:
    return code.co_name.startswith("<")


class Skipped:
    """An iteration with a number that stands for those of all iterations that are left.

    Parameters
    ----------
    iterations
        Those that were traced before, which are equal.
    nodes
        Those of the iteration.
    number
        Its number.
    values
        The numbers of all iterations.
    moved
        Values of iterations before it that it hands on.
    """

    def __init__(
        self,
        iterations: Iterations,
        nodes: Sequence[Apply],
        number: Variable,
        values: range,
        moved: Collection[Variable] = (),
    ) -> None:
        self.iterations, self.number = iterations, number
        self._values = np.array(values, np.int64)
        self._rows: dict[Variable, Rows] = {number: self._values}
        left: list[Apply] = []
        for node in nodes:
            rows = self._rows_of(node)
            if rows is None:
                left.append(node)
            else:
                self._rows[node.outputs[0]] = rows
        self._where = {
            output: (place, index)
            for place, node in enumerate(left)
            for index, output in enumerate(node.outputs)
        }
        if len(left) != len(iterations.steps):
            reason = f"iterations have {len(left)} and {len(iterations.steps)} operations"
            raise NotEqualError(reason, left[0].where if left else None)
        for step, node in zip(iterations.steps, left, strict=True):
            self._extend(step, node)
        iterations.extend(len(values), self._where, moved)

    @property
    def of_number(self) -> set[Variable]:
        """The number, and what is computed of it alone."""
        return set(self._rows)

    def _rows_of(self, node: Apply) -> Rows | None:
        """What a node gives for each number, where it is computed of the number alone, and rounded as
        Python rounds it."""
        is_read = any(one in self._rows for one in node.inputs)
        is_number = all(one in self._rows or isinstance(one, Constant) for one in node.inputs)
        if not is_read or not is_number or node.op.name not in _EXACT or node.outputs[0].ndim:
            return None
        operands = [
            np.asarray(one.data) if isinstance(one, Constant) else self._rows[one] for one in node.inputs
        ]
        if node.outputs[0].tensor_type.kind in "iu" and not _stays_small(node.op.name, operands):
            return None
        with np.errstate(all="ignore"):
            (found,) = node.op.perform(operands)
        return np.broadcast_to(found, self._values.shape)

    def rows(self, variable: Variable) -> Rows:
        """What a scalar that depends on the number is in each equal iteration."""
        return self._rows[variable][self.iterations.first :]

    def last(self, variable: Variable) -> Constant:
        """What it is in the last one."""
        return Constant(variable.tensor_type, self.rows(variable)[-1])

    def _extend(self, step: StepNode, node: Apply) -> None:
        """Add what a node is in all iterations that are left. Raises NotEqualError where it is another."""
        model = step.node
        types = [one.type for one in node.outputs] == [one.type for one in model.outputs]
        operands = list(node.inputs)
        if step.places is not None:
            operands = self._places(step, node)
        elif node.op != model.op:
            raise NotEqualError(f"an iteration computes {node.op}, and others {model.op}", node.where)
        if not types or len(operands) != len(step.operands):
            raise NotEqualError(f"{model.op.name} has another type", node.where)
        for operand, one in zip(step.operands, operands, strict=True):
            if not self._is_same(operand, one):
                raise NotEqualError(f"{model.op.name} takes another operand", node.where)

    def _is_same(self, operand: StepOperand, one: Variable) -> bool:
        if operand.kind == "outside":
            return one is operand.variable
        if operand.kind == "step":
            if operand.back == 0:
                return self._where.get(one) == operand.key
            return self.iterations.is_back(one, operand.back, operand.key)
        if operand.kind != "number":
            return False
        known = np.stack([value.data for value in operand.values])
        if one in self._rows:
            rows = self.rows(one)
        elif isinstance(one, Constant):
            rows = np.broadcast_to(one.data, (len(self._values) - self.iterations.first, *one.data.shape))
        else:
            return False
        if rows.dtype != known.dtype or rows[: len(known)].tobytes() != known.tobytes():
            return False
        operand.rows = np.ascontiguousarray(rows)
        return True

    def _places(self, step: StepNode, node: Apply) -> list[Variable]:
        """Add the places of a part in all iterations; the other operands."""
        assert step.places is not None
        op = node.op
        if type(op) is not type(step.node.op) or not isinstance(op, Subtensor | SetSubtensor):
            raise NotEqualError(f"an iteration computes {node.op}, and others {step.node.op}", node.where)
        kept = 1 if type(op) is Subtensor else 2
        remaining, asked = iter(node.inputs[kept:]), list[Variable]()
        columns: list[Rows] = []
        shape = node.inputs[0].tensor_type.shape
        for entry, model, size in zip(op.entries, getattr(step.node.op, "entries", ()), shape, strict=True):
            if isinstance(entry, Slice):
                if entry != model:
                    raise NotEqualError("another part of an array is taken", node.where)
                continue
            number: Any = next(remaining) if entry is OPERAND else entry
            if model is OPERAND:
                if entry is not OPERAND:
                    raise NotEqualError("another part of an array is taken", node.where)
                asked.append(number)
                continue
            column = self._column(number)
            if column is None or isinstance(model, Slice):
                raise NotEqualError("another part of an array is taken", node.where)
            column = np.where(column < 0, column + (size or 0), column)
            if column.min() < 0 or size is None or column.max() >= size:
                raise NotEqualError("the size of an array is not known", node.where)
            columns.append(column)
        if all(np.all(column == column[0]) for column in columns) and not step.varies:
            if [int(column[0]) for column in columns] != step.places[0].tolist():
                raise NotEqualError("a place is no function of the loop's number", node.where)
            return [*node.inputs[:kept], *asked]
        places = np.stack(columns, axis=1)
        if not np.array_equal(places[: len(step.places)], step.places):
            raise NotEqualError("a place is no function of the loop's number", node.where)
        step.places = places
        return [*node.inputs[:kept], *asked]

    def _column(self, number: Any) -> Rows | None:
        if isinstance(number, Constant):
            number = int(number.data)
        if isinstance(number, int):
            return np.full(len(self._values) - self.iterations.first, number, np.int64)
        return self.rows(number) if number in self._rows else None
