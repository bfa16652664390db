"""What runs a loop: the compiled program of its body, step by step, or in a native function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from esat.errors import EsatError
from esat.graph import Apply, Constant, FunctionGraph, TensorType
from esat.graph.constants import constant
from esat.graph.op import Array
from esat.ops.index.write import PartWrite
from esat.ops.loops.record import LoopOp, Scan
from esat.runtime.linked import Build, Linked
from esat.runtime.native.native_memory import (
    Inside,
    NativeMemory,
    NoNativeFormError,
    base_of,
    returned,
)

if TYPE_CHECKING:
    from esat.codegen.native_functions.native_plan import Place, Step

MOST_PROGRAMS = 16
"""Numbers of steps for which a loop of its own is kept."""


def rewritten(op: LoopOp) -> frozenset[int]:
    """The carries of which a step changes parts, and which nobody keeps: they stay where they are."""
    kept = set(op.kept)
    found = set[int]()
    for number, (own, following) in enumerate(
        zip(op.body.inputs, op.body.outputs[: op.carries], strict=False)
    ):
        array = following
        while array.owner is not None and isinstance(array.owner.op, PartWrite):
            array = array.owner.inputs[0]
        if array is own and following is not own and following not in kept:
            found.add(number)
    return frozenset(found)


class LoopRoutine:
    """The routine ``(*operands, *results)`` of a loop.

    Attributes
    ----------
    op
        The loop.
    body
        The program of a step, which may write over the carries that it changes parts of.

    Parameters
    ----------
    link
        Makes the program of a graph.
    alone
        The node, to be run as a program of its own, which is a native function even where the whole is none;
        None where it is the whole.
    """

    def __init__(self, op: LoopOp, link: Build, alone: Apply | None = None) -> None:
        self.op, self._changed = op, rewritten(op)
        self.body: Linked = link(op.body.clone())
        self._alone = None if alone is None else _Alone(alone, link)

    def __call__(self, *arrays: Array) -> None:
        count = 1 + len(self.op.body.inputs)
        if self._alone is not None:
            self._alone(arrays[:count], arrays[count:])
            return
        found = self.perform(arrays[:count])
        for result, value in zip(arrays[count:], found, strict=True):
            result[...] = value

    def perform(self, operands: Sequence[Array]) -> tuple[Array, ...]:
        """The results, in arrays of their own."""
        first = [np.array(one) if place - 1 in self._changed else one for place, one in enumerate(operands)]
        return self.op.run(first, self._step)

    def stays(self, number: int) -> bool:
        """Whether a step leaves a carry where it was."""
        program = self.body._calls.program
        carry, following = program.graph.inputs[number], program.graph.outputs[number]
        return number in self._changed and base_of(program, following) is carry

    def _step(
        self, carries: Sequence[Array], elements: Sequence[Array], invariants: Sequence[Array]
    ) -> Sequence[Array]:
        results: Any = self.body(*carries, *elements, *invariants)
        found: Sequence[Array] = (results,) if len(self.op.body.outputs) == 1 else results
        before = [np.shape(one) for one in carries]
        self.op.check_carries(before, [one.shape for one in found[: len(before)]])
        return found

    def source(self) -> str:
        """The text of what runs for a step."""
        return self.body.source()

    def native_steps(
        self,
        memory: NativeMemory,
        shapes: Sequence[tuple[int, ...]],
        inputs: Sequence[Place],
        outputs: Sequence[Place],
    ) -> list[Step]:
        """What a native function does for a step.

        Parameters
        ----------
        memory
            Of the function.
        shapes
            Of the inputs of the body.
        inputs, outputs
            Where they are, and where results go.

        Raises
        ------
        NoNativeFormError
            Where a step needs Python, or a carry changes its size.
        """
        program, table = self.body._calls.program, self.body._calls.table
        key = tuple(shapes)
        if any(not isinstance(one.type, TensorType) for one in program.graph.inputs):
            raise NoNativeFormError
        try:
            if key not in table.records:
                table.add(key)
        except EsatError as error:
            raise NoNativeFormError from error
        sizes = table.shapes(key)
        for shape, output in zip(key[: self.op.carries], returned(program), strict=False):
            found = np.shape(output.data) if isinstance(output, Constant) else sizes.get(output)
            if found != shape:
                raise NoNativeFormError
        return memory.steps_inside(program, table, key, Inside(memory, inputs, outputs))


class _Alone:
    """Programs of one loop, each linked when first called: one for each number of rows of its traces."""

    def __init__(self, node: Apply, link: Build) -> None:
        self._node, self._link = node, link
        self._programs: dict[int | None, tuple[Linked, list[int]]] = {}

    def _linked(self, steps: int | None) -> tuple[Linked, list[int]]:
        """The program for a number of steps, or for any; the operands that it takes."""
        stands = [one if isinstance(one, Constant) else one.type.make_variable() for one in self._node.inputs]
        if steps is not None:
            stands[0] = constant(steps, "int64")
        taken = [place for place, one in enumerate(stands) if not isinstance(one, Constant)]
        outputs = self._node.op.make_node(*stands).outputs
        return self._link(FunctionGraph([stands[place] for place in taken], outputs, clone=False)), taken

    def __call__(self, operands: Sequence[Array], results: Sequence[Array]) -> None:
        op = self._node.op
        steps = max(int(operands[0]), 0) if isinstance(op, Scan) and op.kept else None
        if steps not in self._programs:
            while len(self._programs) >= MOST_PROGRAMS:
                self._programs.pop(next(iter(self._programs)), None)
            self._programs[steps] = self._linked(steps)
        program, taken = self._programs[steps]
        given = [np.require(operands[place], requirements=["C", "A"]) for place in taken]
        program(*given, out=results[0] if len(results) == 1 else tuple(results))
