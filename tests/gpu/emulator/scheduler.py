"""Blocks, warps and threads of emulated kernels, in an order that a seed chooses."""

from __future__ import annotations

import ctypes
import functools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gpu.emulator.functions import (
    FAULT_WORDS,
    MISALIGNED,
    NOW_WORD,
    OUTSIDE,
    READ,
    THREAD_BITS,
    THREAD_WORD,
    WRITTEN,
    RefusedAccessError,
    environment,
    moment,
    rubbish,
)
from gpu.emulator.translation import Translated, translated
from numba import njit
from numba.core.errors import NumbaError

from esat.base.records import record
from esat.errors import EmulationError
from esat.gpu.kernel_text.launches import STORED_AS, WARP, Argument, Launch, Launches

_NJIT: Any = njit


def run_launches(
    launches: Launches, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], *, seed: int | None = None
) -> None:
    r"""Run a kernel's launches one after the other; outputs are written.

    Parameters
    ----------
    arrays
        Outputs and inputs by the names of their parameters, ``o0``, ``x0``... of the dtypes that the launches
        name. Inputs may have any strides where launches take strides.
    sizes
        Sizes and strides (in elements) by their names, ``n0``, ``s0_1``...
    seed
        None for blocks, warps and threads in their order; with a number they are shuffled, warps and threads
        anew after every barrier.

    Raises
    ------
    EmulationError
        A kernel accesses what is outside an array or misaligned, threads access an element of a shared array,
        one of them to write it, with no barrier between, they wait at different barriers, or the text is not
        what numba compiles; the error names kernel, line, block and thread.

    Notes
    -----
    Workspaces, shared arrays and a thread's own arrays are NaN at first (integers 37), so that reading what
    nothing wrote shows in the results.

    >>> text = "def kernel(o0, n0):\n    i0 = cuda.threadIdx.x\n    if i0 < n0: o0[i0] = float32(i0)\n"
    >>> launch = Launch("flat", text, (Argument("o0", "float32"), Argument("n0")), 32, "1")
    >>> o0 = np.zeros(3, "float32")
    >>> run_launches(Launches((launch,)), {"o0": o0}, {"n0": 3})
    >>> o0
    array([0., 1., 2.], dtype=float32)
    """
    order = None if seed is None else random.Random(seed)
    spaces = {
        name: rubbish(one.elements(sizes), STORED_AS.get(one.dtype, one.dtype))
        for name, one in launches.workspaces.items()
    }
    for launch in launches.launches:
        pointers, values = _arguments(launch, {**arrays, **spaces}, sizes)
        _run(launch, pointers, values, launch.blocks(sizes), order)


# ---- arguments


@record(frozen=True)
class _Pointer:
    """What a pointer of a kernel may reach.

    Attributes
    ----------
    elements
        All memory between the first and the last element of an array, as a vector.
    first
        The place of the element that the pointer points to, which is another than 0 for negative strides.
    address
        Of that element.
    """

    elements: np.ndarray
    first: int
    address: int


def _arguments(
    launch: Launch, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]
) -> tuple[list[_Pointer], list[int]]:
    """Pointers in order, then numbers in order, as parameters of a kernel come."""
    pointers: list[_Pointer] = []
    values: list[int] = []
    strided = {one.name.partition("_")[0][1:] for one in launch.arguments if one.name[0] == "s"}
    for one in launch.arguments:
        given = arrays.get(one.name) if one.dtype else sizes.get(one.name)
        if given is None:
            raise EmulationError(f"nothing is given for {one.name}", launch.family, text=launch.text)
        if not one.dtype:
            values.append(int(given))
            continue
        array = np.asarray(given)
        if not array.flags.c_contiguous and not (one.name[0] == "x" and one.name[1:] in strided):
            raise EmulationError(f"{one.name} is not contiguous", launch.family, text=launch.text)
        pointers.append(_pointer(launch, one, array))
    return pointers, values


def _pointer(launch: Launch, argument: Argument, array: np.ndarray) -> _Pointer:
    name = array.dtype.name
    stored = STORED_AS.get(name, name)
    if argument.dtype not in (name, stored):
        raise EmulationError(
            f"{argument.name} is of {argument.dtype}, not {name}", launch.family, text=launch.text
        )
    address, width = array.ctypes.data, array.itemsize
    spans = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
    below, above = sum(min(span, 0) for span in spans), sum(max(span, 0) for span in spans)
    if array.size and (address % width or any(stride % width for stride in array.strides)):
        raise EmulationError(f"{argument.name} is not aligned", launch.family, text=launch.text)
    if not array.size:
        return _Pointer(np.empty(0, stored), 0, address)
    memory = (ctypes.c_char * (above - below + width)).from_address(address + below)
    return _Pointer(np.frombuffer(memory, stored), -below // width, address)


# ---- running


@functools.cache
def _compiled(text: str, family: str, pointers: tuple[str, ...]) -> tuple[Translated, Any]:
    """What a kernel becomes, for the scheduler and compiled."""
    try:
        kernel = translated(text, pointers)
    except EmulationError as error:
        raise EmulationError(error.reason, family, error.line, text) from error
    names = environment()
    exec(compile(kernel.source, f"<emulated kernel {family}>", "exec"), names)
    return kernel, _NJIT(error_model="numpy", no_cfunc_wrapper=True)(names["kernel"])


def _run(
    launch: Launch,
    pointers: Sequence[_Pointer],
    values: Sequence[int],
    grid: tuple[int, int, int],
    order: random.Random | None,
) -> None:
    if [bool(one.dtype) for one in launch.arguments] != [True] * len(pointers) + [False] * len(values):
        raise EmulationError("numbers come before pointers", launch.family, text=launch.text)
    named = tuple(one.name for one in launch.arguments if one.dtype)
    kernel, function = _compiled(launch.text, launch.family, named)
    tables = np.array(
        [0] * (FAULT_WORDS + 2) + [word for one in pointers for word in (one.first, one.address)]
    )
    blocks = list(range(grid[0] * grid[1] * grid[2]))
    if order:
        order.shuffle(blocks)
    for number in blocks:
        block = _Block(launch, kernel, function, number, tables)
        x, y, _ = grid
        place = (number % x, number // x % y, number // (x * y))
        own = [one.make(launch.block) for one in kernel.arrays]
        arguments = (*map(np.int32, (launch.block, *place, *grid)), tables, *own)
        try:
            block.run((*arguments, *(one.elements for one in pointers), *values), order)
        except NumbaError as error:
            reason = f"numba refuses the text: {error}\n{launch.text}"
            raise EmulationError(reason, launch.family, text=launch.text) from error


class _Block:
    """The threads of a block."""

    def __init__(
        self, launch: Launch, kernel: Translated, function: Any, number: int, tables: np.ndarray
    ) -> None:
        self.launch, self.kernel, self.function = launch, kernel, function
        self.number, self.tables = number, tables

    def run(self, arguments: tuple[Any, ...], order: random.Random | None) -> None:
        """Run all threads, from barrier to barrier where there are any."""
        numbers = list(range(self.launch.block))
        if not self.kernel.together:
            if order:
                order.shuffle(numbers)
            try:
                self.function(np.array(numbers), *arguments)
            except RefusedAccessError as error:
                raise self._fault(int(self.tables[THREAD_WORD])) from error
            return
        self.passed, self.passed_by_warp = 0, [0] * -(-len(numbers) // WARP)
        threads = [(number, self.function(np.int32(number), *arguments)) for number in numbers]
        warps = [threads[start : start + WARP] for start in range(0, len(threads), WARP)]
        numbers = list(range(len(warps)))
        while True:
            if order:
                order.shuffle(numbers)
            waiting = {number: self._warp(warps[number], order) for number in numbers}
            one = waiting[0]
            for number, other in waiting.items():
                if other != one:
                    raise self._apart(number * WARP, other, one, "the first warp")
            if one == 0:
                return
            self.passed += 1

    def _warp(self, warp: Sequence[tuple[int, Iterator[int]]], order: random.Random | None) -> int:
        """Run a warp up to a barrier of the block: its number, or 0 at the end."""
        threads = list(warp)
        while True:
            if order:
                order.shuffle(threads)
            wanted = None
            own = threads[0][0] // WARP
            self.tables[NOW_WORD] = moment(self.passed, self.passed_by_warp[own])
            for number, thread in threads:
                try:
                    reached = next(thread)
                except RefusedAccessError as error:
                    raise self._fault(number) from error
                if wanted is None:
                    wanted, other = reached, number
                elif reached != wanted:
                    raise self._apart(number, reached, wanted, f"thread {other}")
            assert wanted is not None, "a warp has a thread"
            if wanted >= 0:
                return wanted
            self.passed_by_warp[own] += self.kernel.waits[-wanted - 1].kind == "warp"

    def _apart(self, thread: int, reached: int, wanted: int, other: str) -> EmulationError:
        """Threads that must wait together, and do not."""
        lines = [self.kernel.waits[abs(site) - 1].line if site else 0 for site in (reached, wanted)]
        does, others = [f"waits in line {line}" if line else "has ended" for line in lines]
        reason = f"threads at different barriers: it {does}, but {other} {others}"
        return EmulationError(
            reason, self.launch.family, lines[0] or lines[1], self.launch.text, self.number, thread
        )

    def _fault(self, thread: int) -> EmulationError:
        """The error of an access that was refused."""
        line, kind, place, size = map(int, self.tables[:4])
        other = size % 2**THREAD_BITS
        reasons = {
            OUTSIDE: f"element {place} is outside an array of {size}",
            MISALIGNED: f"the address of element {place} is no multiple of {size} bytes",
            WRITTEN: f"thread {other} has written element {place}, with no barrier between",
            READ: f"thread {other} has read element {place}, with no barrier before it is written",
        }
        reason = reasons[kind]
        return EmulationError(reason, self.launch.family, line, self.launch.text, self.number, thread)
