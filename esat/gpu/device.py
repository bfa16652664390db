"""A CUDA device through cupy: memory, streams, copies, graphs, and what its errors mean.

The only module that imports cupy, when a device is first asked for. Everything runs in the caller's current
stream: then programs, cupy's functions and whatever else reads the same arrays are in order without an event
between them. Only the recording of a graph takes a stream of its own: the default stream cannot be recorded.
"""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np

from esat.errors import DeviceError, DeviceMemoryError, ModeError
from esat.gpu.blas import Cublas, CublasError
from esat.graph.op import Array
from esat.runtime.buffers import POOLED_FROM, Allocator, allocator

DeviceArray: TypeAlias = Any
"""An array of cupy's, or of what stands for it."""

OLDEST = (8, 0)
"""Compute capability from which kernels run: copies in the background, full warps of 64-bit shuffles."""
HOST_POOLS = 64
"""Shapes of results that come back to the host for which memory is kept."""
EXACT_COUNTS = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
"""Whether reference counts tell who holds an object; without the interpreter lock they do not."""
CUDA_DEVICE = 2
"""DLPack's number for memory of a CUDA device."""
_PERMANENT = ("IllegalAddress", "LaunchFailure", "LaunchFailed", "ILLEGAL_ADDRESS", "LAUNCH_FAILED", "Assert")
"""Parts of the names of errors after which a process cannot use its device again."""


class Keeper(Protocol):
    """What keeps memory of a device for later calls."""

    def forget(self) -> None:
        """Give back what no call uses now."""


class Device:
    """A device, and what programs do with it.

    Attributes
    ----------
    arrays
        The module of its arrays: cupy, or what stands for it.
    number
        As CUDA counts.
    compute_capability
        Such as (9, 0).
    keepers
        What gives memory back when it is short.

    Parameters
    ----------
    arrays
        A module like cupy.
    number
        Of the device.

    Raises
    ------
    ModeError
        Without a driver or a device, or for one that is too old.
    """

    def __init__(self, arrays: Any, number: int = 0) -> None:
        self.arrays = arrays
        self.number = number
        self._lost: str | None = None
        self._host_pools: dict[tuple[tuple[int, ...], np.dtype[Any]], Allocator] = {}
        self.keepers: weakref.WeakSet[Keeper] = weakref.WeakSet()
        self._functions: dict[tuple[bytes, str], tuple[Any, Any]] = {}
        try:
            found = arrays.cuda.runtime.getDeviceCount()
            capability = str(arrays.cuda.Device(number).compute_capability) if number < found else ""
        except Exception as error:
            raise ModeError(f"device='cuda': there is no CUDA driver that works: {error}") from error
        if number >= found:
            raise ModeError(f"device='cuda': there are {found} CUDA devices, none of number {number}")
        self.compute_capability = (int(capability[:-1]), int(capability[-1]))
        if self.compute_capability < OLDEST:
            wanted = ".".join(map(str, OLDEST))
            have = ".".join(map(str, self.compute_capability))
            reason = f"device {number} has compute capability {have}; kernels take {wanted} or newer"
            raise ModeError(f"device='cuda': {reason}")

    def __repr__(self) -> str:
        return (
            f"<CUDA device {self.number}, compute capability {'.'.join(map(str, self.compute_capability))}>"
        )

    # ---- arrays

    def is_array(self, value: Any) -> bool:
        """Whether a value is an array of the device's own kind."""
        return isinstance(value, self.arrays.ndarray)

    def admit(self, value: Any) -> DeviceArray | None:
        """A device array that shows the memory of ``value``, without a copy; None where that is no device's.

        What holds device memory says so by ``__cuda_array_interface__`` or DLPack.
        """
        if isinstance(value, self.arrays.ndarray):
            return value
        if hasattr(value, "__cuda_array_interface__"):
            return self.arrays.asarray(value)
        place = getattr(value, "__dlpack_device__", None)
        if place is not None and not isinstance(value, np.ndarray) and place()[0] == CUDA_DEVICE:
            return self.arrays.from_dlpack(value)
        return None

    def empty(self, shape: tuple[int, ...], dtype: Any) -> DeviceArray:
        """Memory of the device with anything in it, contiguous in C order."""
        return self.arrays.empty(shape, dtype)

    def frame(self, sizes: tuple[int, ...]) -> list[DeviceArray]:
        """Buffers of so many bytes."""
        return [self.arrays.empty((size,), np.uint8) for size in sizes]

    def shaped(self, buffer: DeviceArray, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        """The beginning of a buffer as an array."""
        return buffer[: prod(shape) * dtype.itemsize].view(dtype).reshape(shape)

    def address(self, array: DeviceArray) -> int:
        """Of its first element."""
        return int(array.data.ptr)

    def upload(self, array: Array) -> DeviceArray:
        """A copy of a NumPy array on the device, contiguous in C order."""
        target = self.arrays.empty(array.shape, array.dtype)
        self.upload_into(array, target)
        return target

    def upload_into(self, array: Array, target: DeviceArray) -> None:
        """Copy a NumPy array to a contiguous array of its shape and dtype that the device has already.

        Straight from the host's pages: to put them into pinned memory first takes longer than that saves.
        """
        target.set(np.ascontiguousarray(array).reshape(array.shape))

    def download(self, array: DeviceArray) -> Array:
        """A copy of a device array as a NumPy array, contiguous in C order; waits for what computes it.

        The memory of large ones is that of earlier ones that nobody sees any more: new pages take three times
        as long as the copy.
        """
        with self.translated():
            # Numbers, too: cupy makes vectors of those where it is given a place.
            if array.nbytes < POOLED_FROM:
                return np.asarray(self.arrays.asnumpy(array, order="C"))
            target = self._host_array(tuple(array.shape), array.dtype)
            self.arrays.asnumpy(array.reshape(-1), out=target.reshape(-1))
            return target

    def _host_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        pools = self._host_pools
        known = pools.get((shape, dtype))
        if known is None:
            while len(pools) >= HOST_POOLS:
                pools.pop(next(iter(pools)), None)
            known = pools[shape, dtype] = allocator(shape, dtype)
        return known()

    @property
    def stream(self) -> int:
        """The current stream's number: what is launched in one stream runs in that order."""
        return int(self.arrays.cuda.get_current_stream().ptr)

    def wait(self) -> None:
        """Until the current stream has done all that it was given."""
        with self.translated():
            self.arrays.cuda.get_current_stream().synchronize()

    def function(self, code: bytes, entry: str) -> Any:
        """A kernel of machine code: ``function(blocks, threads, arguments)``."""
        known = self._functions.get((code, entry))
        if known is None:
            module = self.arrays.cuda.function.Module()
            module.load(code)
            known = self._functions[code, entry] = (module.get_function(entry), module)
        return known[0]

    # ---- what only cupy's further modules have

    @functools.cached_property
    def _extensions(self) -> Any:
        own = getattr(self.arrays, "extensions", None)
        return importlib.import_module("cupyx") if own is None else own

    def checked_algebra(self) -> Any:
        """A context in which factorizations say when they fail, instead of giving NaN."""
        return self._extensions.errstate(linalg="raise")

    def solve_triangular(
        self, matrix: DeviceArray, sides: DeviceArray, trans: int, lower: bool, unit_diagonal: bool
    ) -> DeviceArray:
        """As SciPy's, for batches too."""
        if not hasattr(self.arrays, "extensions"):
            importlib.import_module("cupyx.scipy.linalg")
        function = self._extensions.scipy.linalg.solve_triangular
        return function(matrix, sides, trans=trans, lower=lower, unit_diagonal=unit_diagonal)

    @functools.cached_property
    def _cublas(self) -> Cublas | None:
        """CuBLAS called directly; None where it cannot be, and cupy calls it."""
        if hasattr(self.arrays, "extensions"):
            return None
        try:
            return Cublas(self.arrays)
        except OSError:
            return None

    def product(self, left: DeviceArray, right: DeviceArray) -> DeviceArray:
        """``left @ right``, of matrices or batches of them."""
        if self._cublas is not None and left.ndim == right.ndim and left.ndim in (2, 3):
            batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
            result = self.arrays.empty((*batch, left.shape[-2], right.shape[-1]), left.dtype)
            if self._cublas.multiply(left, right, result):
                return result
        return self.arrays.matmul(left, right)

    def add_product(
        self, target: DeviceArray, alpha: Any, left: DeviceArray, right: DeviceArray, beta: Any
    ) -> None:
        """``target = beta * target + alpha * left @ right`` for matrices of one dtype that cuBLAS has."""
        known = isinstance(alpha, float) and isinstance(beta, float)
        if known and self._cublas is not None and self._cublas.multiply(left, right, target, alpha, beta):
            return
        blas = getattr(self.arrays, "cublas", None)
        if blas is None:
            blas = importlib.import_module("cupy.cublas")
        blas.gemm("N", "N", left, right, out=target, alpha=alpha, beta=beta)

    def add_at(self, array: DeviceArray, index: Any, value: DeviceArray) -> None:
        """Add integers to elements, to each as often as it is named; their sums do not tell the order."""
        if array.dtype == np.int64:  # which has no atomic addition; the sum of the same bits is the same
            array, value = array.view(np.uint64), value.astype(np.int64).view(np.uint64)
        self.arrays.add.at(array, index, value)

    def references(self, array: DeviceArray) -> tuple[int, ...] | None:
        """How often an array is held; None where that does not tell who sees its memory.

        Every view holds the array whose memory it shows, so that no view can tell of others. What the
        stand-in has beside is the NumPy array that its views hold.
        """
        if not EXACT_COUNTS or array.base is not None:
            return None
        own = sys.getrefcount(array)
        return (own, sys.getrefcount(array.memory)) if hasattr(array, "memory") else (own,)

    # ---- errors

    @property
    def free_bytes(self) -> int:
        """What is free on the device, and in the pool of its memory."""
        free, _total = self.arrays.cuda.runtime.memGetInfo()
        return int(free) + int(self.arrays.get_default_memory_pool().free_bytes())

    @property
    def memory_errors(self) -> tuple[type[Exception], ...]:
        """What cupy raises where memory is short."""
        return (self.arrays.cuda.memory.OutOfMemoryError,)

    def give_back(self) -> None:
        """Unused memory: what programs keep for later calls to the pools, and from these to the device."""
        for keeper in list(self.keepers):
            keeper.forget()
        self.arrays.get_default_memory_pool().free_all_blocks()
        self.arrays.get_default_pinned_memory_pool().free_all_blocks()

    def with_room(self, action: Callable[[], Any], step: str, repeatable: bool = True) -> Any:
        """``action()``; where memory is short, again once all that is unused has been given back.

        Raises
        ------
        DeviceMemoryError
            When that is not enough, or the action cannot be repeated.
        DeviceError
            When the device is lost.
        """
        with self.translated():
            try:
                return action()
            except self.memory_errors as error:
                self.give_back()
                if not repeatable:
                    raise self._no_room(error, step) from error
            try:
                return action()
            except self.memory_errors as error:
                raise self._no_room(error, step) from error

    def _no_room(self, error: Exception, step: str) -> DeviceMemoryError:
        needed, free = int(getattr(error, "size", 0) or _bytes_in(str(error))), self.free_bytes
        reason = f"{step}: the device has no room for {needed} bytes, {free} are free"
        return DeviceMemoryError(reason, needed, free, step)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turns errors of the driver into esat's; after one that a process cannot survive nothing runs."""
        if self._lost is not None:
            raise DeviceError(self._lost)
        try:
            yield
        except self._driver_errors as error:
            if any(part in str(error) for part in _PERMANENT):
                self._lost = (
                    f"the device is lost ({error}): what was on it is gone, values on the host are as they"
                    " were; start the process anew"
                )
                raise DeviceError(self._lost) from error
            raise DeviceError(f"the device refused: {error}") from error

    @functools.cached_property
    def _driver_errors(self) -> tuple[type[Exception], ...]:
        cuda = self.arrays.cuda
        return (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError, CublasError)

    # ---- graphs

    def record(self, action: Callable[[], None]) -> Recording | None:
        """What ``action()`` gives the device to do, as a graph; None where it cannot be recorded.

        The action itself has no effect on the device. Memory that it takes stays the graph's.
        """
        arrays = self.arrays
        pool = arrays.cuda.MemoryPool()
        own = arrays.cuda.Stream(non_blocking=True)
        failed = False
        with self.translated(), own, arrays.cuda.using_allocator(pool.malloc):
            own.begin_capture()
            try:
                action()
            except Exception:  # whatever it was: the steps run one by one as before, and say it themselves
                failed = True
            try:
                graph = own.end_capture()
            except self._driver_errors:
                return None
        return None if failed or graph is None else Recording(self, graph, pool)


class Recording:
    """Launches recorded as a CUDA graph, and the memory they use."""

    def __init__(self, device: Device, graph: Any, pool: Any) -> None:
        self._device = device
        self._graph = graph
        self._pool = pool
        self._done: Any = None

    def replay(self) -> None:
        """Do it all, in the current stream, after what the last call's results were copied by."""
        with self._device.translated():
            stream = self._device.arrays.cuda.get_current_stream()
            if self._done is not None:
                stream.wait_event(self._done)
            self._graph.launch(stream)

    def finish(self) -> None:
        """The current stream has been given all that reads the results: the next replay comes after that."""
        self._done = self._device.arrays.cuda.get_current_stream().record()


def _bytes_in(message: str) -> int:
    """The first number of bytes that a message names, such as in "allocating 1,024 bytes"."""
    words = message.replace(",", "").split()
    return next((int(word) for word in words if word.isdigit()), 0)


@functools.cache
def cuda_device(number: int = 0) -> Device:
    """The CUDA device of a number.

    Raises
    ------
    ModeError
        When cupy is not installed, there is no driver or no such device, or it is too old.
    """
    try:
        arrays = importlib.import_module("cupy")
    except ImportError as error:
        reason = "device='cuda' takes the package cupy (pip install 'esat[gpu]')"
        raise ModeError(f"{reason}: {error}") from error
    return Device(arrays, number)
