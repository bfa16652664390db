"""Steps of native functions that only Python computes: a call of the op with arrays made beforehand.

The arrays of operands and results are made once, for known shapes and strides. Before a call the native
function says where their elements are, and afterwards they stand for idle memory again, so that one which an
op keeps never shows memory that is gone.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.codegen.ground.builtin_function import DATA
from esat.codegen.matmul.lapack import performer
from esat.codegen.native_functions.native_plan import ArraySpecification, PythonStep, Step
from esat.graph import Apply, Constant, Variable
from esat.ops.loops.record import LoopOp
from esat.runtime.native.native_memory import NativeMemory, NoNativeFormError
from esat.runtime.native.native_views import NativeView
from esat.runtime.program import Routine


class PerformedOp:
    """Computes the results of an op from arrays whose elements are told before each call.

    Parameters
    ----------
    node
        The op on operands of the types it has in the program.
    threads
        The most threads that it may use.
    checks
        Whether operands are checked first, which depends on more than shapes.
    operands, results
        The arrays, by shapes and strides. A result that the op writes in place of an operand has that one's.
    routine
        What computes the results into given arrays; None where the op's ``perform`` makes them.
    """

    def __init__(
        self,
        node: Apply,
        threads: int | None,
        checks: bool,
        operands: Sequence[ArraySpecification],
        results: Sequence[ArraySpecification],
        routine: Routine | None = None,
    ) -> None:
        self._parameters = node, threads, checks, tuple(operands), tuple(results), routine
        self._perform = performer(node.op, threads)
        self._routine = routine
        self._check = functools.partial(node.op.check_operands, node) if checks else None
        self._operands = tuple(map(_idle_array, operands))
        self._results = tuple((one, one.dtype, one.shape) for one in map(_idle_array, results))

    @functools.cached_property
    def pointers(self) -> tuple[tuple[int, int], ...]:
        """Of each array, operands first: the address of the word that tells where its elements are, and what
        that holds between calls."""
        arrays = (*self._operands, *(array for array, *_ in self._results))
        return tuple((id(array) + DATA, int(array.ctypes.data)) for array in arrays)

    def __call__(self) -> bool:
        """Whether the results are there. Where the op raises an error they are not: the driver repeats the
        step, and says which line of the user's it belongs to."""
        try:
            if self._check is not None:
                self._check(self._operands)
            if self._routine is not None:
                self._routine(*self._operands, *(target for target, *_ in self._results))
                return True
            made = self._perform(self._operands)
        except Exception:
            return False
        for (target, dtype, shape), one in zip(self._results, made, strict=True):
            array = one if type(one) is np.ndarray else np.asarray(one)  # some ops return numbers
            if array.dtype != dtype or array.shape != shape:
                return False
            target[...] = array
        return True

    def __reduce__(self) -> Any:
        return PerformedOp, self._parameters

    def __str__(self) -> str:
        return str(self._parameters[0].op)


def performed(memory: NativeMemory, node: Apply) -> list[Step]:
    """The step of an op that only Python computes.

    Raises
    ------
    NoNativeFormError
        For an op that writes over what outlives the call, or whose results show what is written over; for
        loops, which take long.
    """
    op, program = node.op, memory.program
    shown = {root for place in op.view_map for root in program.roots(node.outputs[place])}
    routine = program.routines.get(node)
    is_whole = isinstance(op, LoopOp) or (routine is not None and op.destroy_map)
    if is_whole or shown & program.written_over:
        raise NoNativeFormError
    memory.refuses()
    memory.forget(node.outputs)
    steps: list[Step] = []
    views = [memory.view(one) for one in node.inputs]
    targets = list[NativeView]()
    for number, output in enumerate(node.outputs):
        places = op.destroy_map.get(number, ())
        if places:
            (place,) = places
            views[place], copies = memory.overwritable(node.inputs[place])
            if views[place].place.kind == "input":
                raise NoNativeFormError
            steps += copies
            memory.define(output, views[place])
        targets.append(views[places[0]] if places else memory.target(output))
    operands, results = (
        [
            ArraySpecification(one.tensor_type.numpy_dtype, view.shape, strides=view.byte_strides)
            for one, view in zip(variables, seen, strict=True)
        ]
        for variables, seen in ((node.inputs, views), (node.outputs, targets))
    )
    memory.own_bytes += sum(map(_idle_bytes, (*operands, *results)))
    alone = node.clone_with([one if isinstance(one, Constant) else Variable(one.type) for one in node.inputs])
    call = PerformedOp(alone, program.threads, program.needs_check(node), operands, results, routine)
    return [*steps, PythonStep(call, tuple(view.place for view in (*views, *targets)))]


def _idle_array(array: ArraySpecification) -> np.ndarray[Any, Any]:
    """An array of these strides, in memory of its own."""
    strides = array.strides
    assert strides is not None
    steps = [(size - 1) * stride for size, stride in zip(array.shape, strides, strict=True)]
    below = -sum(min(step, 0) for step in steps) if 0 not in array.shape else 0
    memory = np.empty(_idle_bytes(array), np.uint8)
    return np.ndarray(array.shape, array.dtype, memory, below, strides)


def _idle_bytes(array: ArraySpecification) -> int:
    """Bytes from the first to the last element of an array."""
    if 0 in array.shape or array.strides is None:
        return array.dtype.itemsize
    steps = (abs((size - 1) * stride) for size, stride in zip(array.shape, array.strides, strict=True))
    return sum(steps) + array.dtype.itemsize
