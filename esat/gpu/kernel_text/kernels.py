"""Kernels for a device: printed from the loop IR, compiled for the arrays that come, launched.

A kernel has a text for each kind of arrays that it meets (``esat/gpu/kernel_text/launches.py``): it is
printed, and compiled, when the first such arrays come. What runs the text is an executor: the device, or an
emulator that brings its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol, TypeAlias

import numpy as np

from esat.codegen.kernel.loop_ir import Kernel
from esat.errors import ModeError
from esat.gpu.device import Device, DeviceArray, cuda_device
from esat.gpu.kernel_text.launches import VECTOR_BYTES, Launches, LaunchVariant
from esat.gpu.printing import UnprintableError, is_printable, print_launches, sizes_in, variant_for
from esat.gpu.printing.source import stored
from esat.gpu.toolchain import default_toolchain
from esat.gpu.toolchain.cache import process_cubins
from esat.graph import Variable
from esat.phases.fusing.group import Group
from esat.runtime.printed.kernel_calls import LoweredGroups
from esat.runtime.program import KernelCall

EMULATORS = "esat.emulators"
"""The group of entry points of emulators: esat's own is beside its tests (``tests/gpu/emulator``)."""
MAXIMUM_PLANS = 256
"""Combinations of shapes for which a kernel remembers how it is launched."""

Start: TypeAlias = Callable[[Sequence[DeviceArray]], None]
"""Launches a kernel for arrays of certain shapes, outputs first."""


class Executor(Protocol):
    """What runs printed kernels."""

    def prepared(self, launches: Launches, names: Sequence[str], sizes: Mapping[str, int]) -> Start:
        """What launches a kernel for arrays of these names, outputs first, and numbers."""


class Compiled:
    """Runs kernels on their device.

    Parameters
    ----------
    device
        The device.
    contract
        Whether products and sums may become one operation with one rounding.

    Raises
    ------
    ModeError
        When the packages that compile kernels are not installed.
    """

    def __init__(self, device: Device, contract: bool = True) -> None:
        self._device = device
        self._contract = contract
        self._toolchain = default_toolchain()

    def prepared(self, launches: Launches, names: Sequence[str], sizes: Mapping[str, int]) -> Start:
        """What launches a kernel; its text is compiled now, or comes from the cache."""
        device = self._device
        spaces = [((space.elements(sizes),), stored(space.dtype)) for space in launches.workspaces.values()]
        numbers = [np.int64(size) for size in sizes.values()]
        place = {name: number for number, name in enumerate((*names, *sizes, *launches.workspaces))}
        calls = []
        for launch in launches.launches:
            blocks = launch.blocks(sizes)
            if 0 in blocks:
                continue
            cubin = process_cubins().load_or_compile(
                self._toolchain, launch, device.compute_capability, contract=self._contract
            )
            function = device.function(cubin.code, cubin.entry)
            wanted = [place[one.name] for one in launch.arguments]
            calls.append((function, blocks, (launch.block, 1, 1), wanted))

        def start(arrays: Sequence[DeviceArray]) -> None:
            given: list[Any] = [*arrays, *numbers]
            for shape, dtype in spaces:
                given.append(device.empty(shape, dtype))
            for function, blocks, threads, wanted in calls:
                function(blocks, threads, tuple([given[number] for number in wanted]))

        return start


def executor_of(device: Device, contract: bool = True) -> Executor:
    """What runs kernels on a device's arrays."""
    emulator: Executor | None = getattr(device.arrays, "kernel_executor", None)
    return Compiled(device, contract) if emulator is None else emulator


def usable_device(or_emulated: bool = False) -> Device:
    """The first CUDA device, for which kernels can be compiled.

    Parameters
    ----------
    or_emulated
        Whether, where there is none, an emulator takes its place.

    Raises
    ------
    ModeError
        Where there is none; the message names what is missing.
    """
    try:
        device = cuda_device()
        executor_of(device)
    except ModeError as error:
        if not or_emulated:
            raise
        emulated = _emulated_device()
        if emulated is None:
            raise ModeError(
                f"{error}; debug mode also runs on the emulator of esat's tests: "
                "have the folder `tests` of esat's sources on PYTHONPATH"
            ) from error
        return emulated
    return device


@functools.cache
def _emulated_device() -> Device | None:
    """A device over the first emulator that is installed; None where none is.

    An emulator is a module like cupy whose ``kernel_executor`` runs kernels: an entry point of the group
    :data:`EMULATORS` makes it.
    """
    for emulator in entry_points(group=EMULATORS):
        return Device(emulator.load()())
    return None


class CudaKernels:
    """Kernels of a program for a device; a :class:`esat.runtime.printed.kernel_calls.KernelSource`.

    Parameters
    ----------
    device
        Whose arrays they take.
    contract
        Whether products and sums may become one operation with one rounding.
    """

    def __init__(self, device: Device, contract: bool = True) -> None:
        self._device = device
        self._executor = executor_of(device, contract)
        self._lowered = LoweredGroups()

    def reason_on_host(self, group: Group) -> str | None:
        """Why a group has no kernel for a device; None where it has one."""
        try:
            print_launches(self._lowered.kernel(group), LaunchVariant())
        except UnprintableError as error:
            return str(error)
        return None

    def overwritable(self, group: Group) -> Sequence[tuple[Variable, Variable]]:
        """Pairs of an output and an input whose memory it may take: nothing reads it after that."""
        return [
            (output, source)
            for output, source in self._lowered.overwritable(group)
            if is_printable(self._lowered.in_place(group, {output: source}))
        ]

    def compile(self, group: Group, taken: Mapping[Variable, Variable]) -> KernelCall:
        """The kernel of a group, whose functions take arrays of the device."""
        kernel = self._lowered.in_place(group, taken)
        inputs = tuple(group.inputs[place] for place in kernel.operands)
        launcher = Launcher(kernel, self._device, self._executor)
        return KernelCall(inputs, launcher, launcher, launcher.source)


class Launcher:
    """A kernel as steps call it: ``launcher(*outputs, *inputs)`` with arrays of the device."""

    def __init__(self, kernel: Kernel, device: Device, executor: Executor) -> None:
        self._kernel = kernel
        self._device = device
        self._executor = executor
        self._texts: dict[LaunchVariant, Launches] = {}
        self._plans: dict[tuple[Any, ...], Start] = {}
        outputs = len(kernel.outputs)
        self._names = [*(f"o{place}" for place in range(outputs))]
        self._names += [f"x{place}" for place in range(len(kernel.inputs))]

    def __call__(self, *arrays: DeviceArray) -> None:
        self.start_for(arrays)(arrays)

    def start_for(self, arrays: Sequence[DeviceArray]) -> Start:
        """What launches the kernel for arrays of these shapes, strides and alignments, outputs first."""
        address = self._device.address
        key: tuple[Any, ...] = tuple([array.shape for array in arrays])
        if any(address(array) % VECTOR_BYTES for array in arrays):
            key = (*key, tuple([address(array) % VECTOR_BYTES for array in arrays]))
        if not all(array.flags.c_contiguous for array in arrays):
            key = (*key, *[array.strides for array in arrays])
        start = self._plans.get(key)
        return self._plan(key, arrays) if start is None else start

    def _plan(self, key: tuple[Any, ...], arrays: Sequence[DeviceArray]) -> Start:
        shapes = [array.shape for array in arrays]
        strides = [array.strides for array in arrays]
        variant = variant_for(
            self._kernel, shapes, strides, [self._device.address(array) for array in arrays]
        )
        sizes = sizes_in(self._kernel, shapes, strides if variant.strided else None)
        start = self._executor.prepared(self.launches(variant), self._names, sizes)
        while len(self._plans) >= MAXIMUM_PLANS:
            del self._plans[next(iter(self._plans))]
        self._plans[key] = start
        return start

    def launches(self, variant: LaunchVariant) -> Launches:
        """The text for arrays of a kind, printed once."""
        known = self._texts.get(variant)
        if known is None:
            known = self._texts[variant] = print_launches(self._kernel, variant)
        return known

    def source(self) -> str:
        """The texts that were used so far, or the one for aligned contiguous arrays."""
        texts = list(self._texts.values()) or [self.launches(LaunchVariant())]
        return "\n".join(launch.text for text in texts for launch in text.launches)
