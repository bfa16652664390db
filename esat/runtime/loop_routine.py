"""What runs a loop: the compiled program of its body, step by step, or in a native function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from esat.errors import EsatError
from esat.graph import Constant, FunctionGraph, TensorType
from esat.graph.op import Array
from esat.ops.loops.record import LoopOp
from esat.runtime.native_memory import Inside, NativeMemory, NoNativeFormError, returned

if TYPE_CHECKING:
    from esat.codegen.native_plan import Place, Step
    from esat.runtime.executable import Executable


class LoopRoutine:
    """The routine ``(*operands, *results)`` of a loop.

    Attributes
    ----------
    op
        The loop.
    body
        The program of a step.

    Parameters
    ----------
    link
        Makes the program of a graph.
    """

    def __init__(self, op: LoopOp, link: Callable[[FunctionGraph], Executable]) -> None:
        self.op = op
        self.body = link(op.body.clone())

    def __call__(self, *arrays: Array) -> None:
        count = 1 + len(self.op.body.inputs)
        found = self.op.run(arrays[:count], self._step)
        for result, value in zip(arrays[count:], found, strict=True):
            result[...] = value

    def perform(self, operands: Sequence[Array]) -> tuple[Array, ...]:
        """The results, in arrays of their own."""
        return self.op.run(operands, self._step)

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
