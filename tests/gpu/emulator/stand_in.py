"""A stand-in for cupy over NumPy: programs for a device run, step by step, where there is none.

Arrays are of a class of their own. As with cupy, no function takes one of them together with a NumPy array,
and none becomes a NumPy array unless it is copied; so a program that mixes up the sides fails. Kernels are
run by the emulator. Streams do everything at once. What is recorded as a graph is
run when the graph is launched: calls of functions with the arrays they had.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
from gpu.emulator.scheduler import run_launches

from esat.gpu.kernel_text.kernels import Start
from esat.gpu.kernel_text.launches import Launches


class StandInArray:
    """An array of the stand-in.

    Attributes
    ----------
    memory
        The NumPy array that holds the elements; for the emulator.
    """

    __array_ufunc__ = None  # NumPy's operators leave the matter to this class

    def __init__(self, memory: np.ndarray[Any, Any], uploads: list[int] | None = None) -> None:
        self.memory = memory
        self._uploads = uploads

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    # ---- what it is

    shape = property(lambda self: self.memory.shape)
    dtype = property(lambda self: self.memory.dtype)
    ndim = property(lambda self: self.memory.ndim)
    size = property(lambda self: self.memory.size)
    nbytes = property(lambda self: self.memory.nbytes)
    base = property(lambda self: self.memory.base)
    strides = property(lambda self: self.memory.strides)
    flags = property(lambda self: self.memory.flags)

    @property
    def data(self) -> Any:
        """The pointer: its address, and the memory behind it."""
        return SimpleNamespace(ptr=self.memory.ctypes.data, memory=self.memory)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.memory.__array_interface__, "version": 3}

    def __len__(self) -> int:
        return len(self.memory)

    def __bool__(self) -> bool:
        return bool(self.memory)

    def __int__(self) -> int:
        return int(self.memory)

    def __float__(self) -> float:
        return float(self.memory)

    def __repr__(self) -> str:
        return repr(self.memory)

    # ---- copies

    def get(self) -> Any:
        """A copy as a NumPy array."""
        return self.memory.copy()

    def set(self, array: Any, stream: Any = None) -> None:
        """Overwrite with a NumPy array of the same shape and dtype."""
        if array.shape != self.shape or array.dtype != self.dtype:
            raise ValueError(f"cannot set {self.dtype}{self.shape} from {array.dtype}{array.shape}")
        if self._uploads is not None:
            self._uploads.append(array.nbytes)
        launched(lambda: np.copyto(self.memory, array))

    def copy(self, order: Any = "C") -> Any:
        """A copy."""
        return _call(np.copy, self, order=order)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Elements of another dtype."""
        return _call(np.ndarray.astype, self, dtype)

    # ---- views

    T = property(lambda self: StandInArray(self.memory.T))
    real = property(lambda self: StandInArray(self.memory.real))

    def view(self, dtype: Any) -> StandInArray:
        """The same bytes as elements of another dtype."""
        return StandInArray(self.memory.view(dtype))

    def reshape(self, *shape: Any) -> Any:
        """A view where that is possible, as NumPy's."""
        return _view(self.memory.reshape(*shape), self)

    def transpose(self, *axes: Any) -> StandInArray:
        """A view with axes permuted."""
        return StandInArray(self.memory.transpose(*axes))

    def __getitem__(self, index: Any) -> Any:
        return _call(lambda array, *parts: array[_joined(index, parts)], self, *_arrays_in(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        taken, parts = _plain(value), tuple(map(_plain, _arrays_in(index)))

        def store() -> None:
            self.memory[_joined(index, parts)] = taken

        launched(store)


def _view(found: np.ndarray[Any, Any], source: StandInArray) -> Any:
    if not np.may_share_memory(found, source.memory):
        return _call(lambda array: array.reshape(found.shape), source)
    return StandInArray(found)


def _arrays_in(index: Any) -> list[Any]:
    parts = index if isinstance(index, tuple) else (index,)
    return [part for part in parts if isinstance(part, StandInArray | np.ndarray)]


def _joined(index: Any, arrays: tuple[Any, ...]) -> Any:
    """An index with plain arrays in the places of its arrays."""
    remaining = iter(arrays)
    parts = index if isinstance(index, tuple) else (index,)
    return tuple(next(remaining) if isinstance(part, StandInArray | np.ndarray) else part for part in parts)


def _operator(name: str) -> Callable[..., Any]:
    def operate(self: StandInArray, *others: Any) -> Any:
        return _call(getattr(np.ndarray, name), self, *others)

    return operate


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")
_UNARY = ("__neg__", "__abs__", "__invert__", "any", "all", "sum", "max", "min", "conj", "ravel")
_COMPARED = ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")
for _name in (*(f"__{_way}{_one}__" for _one in _BINARY for _way in ("", "r")), *_UNARY, *_COMPARED):
    setattr(StandInArray, _name, _operator(_name))
StandInArray.__hash__ = object.__hash__  # type: ignore[method-assign]


# ---- calls, at once or recorded


class _Recorder(threading.local):
    calls: list[Callable[[], None]] | None = None


_RECORDER = _Recorder()


def _do(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of plain arrays; every launch of a recorded graph computes its result anew."""
    result = function(*arguments)
    if _RECORDER.calls is not None:
        _RECORDER.calls.append(lambda: _again(result, function(*arguments)))
    return result


def launched(effect: Callable[[], None]) -> None:
    """Change arrays: now, or in every launch of the graph that is being recorded."""
    if _RECORDER.calls is None:
        effect()
    else:
        _RECORDER.calls.append(effect)


def _again(known: Any, found: Any) -> None:
    """Put what a call returned this time where it was when it was recorded."""
    if isinstance(known, tuple):
        for one, other in zip(known, found, strict=True):
            _again(one, other)
    elif isinstance(known, np.ndarray) and not np.may_share_memory(known, found):
        np.copyto(known, found)


def _plain(value: Any) -> Any:
    if isinstance(value, StandInArray):
        return value.memory
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return value


def _wrapped(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return StandInArray(value)
    if isinstance(value, np.generic):
        return StandInArray(np.array(value))
    return (
        type(value)(*map(_wrapped, value))
        if hasattr(value, "_fields")
        else (
            tuple(map(_wrapped, value))
            if isinstance(value, tuple)
            else list(map(_wrapped, value))
            if isinstance(value, list)
            else value
        )
    )


def _call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    plain = [_plain(one) for one in arguments]
    keywords = {name: _plain(one) for name, one in named.items()}

    def run(*given: Any) -> Any:
        with np.errstate(all="ignore"):
            result = function(*given, **keywords)
        return np.array(result) if isinstance(result, np.generic) else result

    return _wrapped(_do(run, *plain))


class _Functions:
    """A module of NumPy's whose functions take and return the stand-in's arrays."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, type) or not callable(found):
            return found

        def function(*arguments: Any, **named: Any) -> Any:
            return _call(found, *arguments, **named)

        return function


class _Add:
    """``cupy.add``."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return _call(np.add, *arguments, **named)

    def at(self, array: StandInArray, index: Any, value: Any) -> None:
        """Add to elements, to each as often as it is named."""
        plain, taken = _joined(index, tuple(map(_plain, _arrays_in(index)))), _plain(value)
        launched(lambda: np.add.at(array.memory, plain, taken))


def _gemm(
    left_form: str, right_form: str, left: Any, right: Any, out: StandInArray, alpha: Any, beta: Any
) -> None:
    """``cupy.cublas.gemm``, of matrices that are not transposed."""
    if (left_form, right_form) != ("N", "N") or not left.dtype == right.dtype == out.dtype:
        raise TypeError("invalid dtype")
    a, b, alpha, beta = map(_plain, (left, right, alpha, beta))

    def add() -> None:
        out.memory[...] = (alpha * (a @ b) + beta * out.memory).astype(out.dtype)

    launched(add)


def _solve_triangular(matrix: Any, sides: Any, **how: Any) -> Any:
    import scipy.linalg

    return _call(scipy.linalg.solve_triangular, matrix, sides, check_finite=False, **how)


# ---- the driver


class OutOfMemoryError(MemoryError):
    """Memory is short."""


class CUDARuntimeError(RuntimeError):
    """What the run time of CUDA says."""


class CUDADriverError(RuntimeError):
    """What the driver says."""


class _Stream:
    def __init__(self, non_blocking: bool = False, ptr: int | None = None) -> None:
        self.ptr = id(self) if ptr is None else ptr
        self._calls: list[Callable[[], None]] = []

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        _RECORDER.calls = None

    def synchronize(self) -> None:
        """Nothing is ever left to do."""

    def record(self) -> _Stream:
        """An event; streams are events too."""
        return self

    def wait_event(self, event: Any) -> None:
        """Everything came before."""

    def begin_capture(self) -> None:
        """Begin to record."""
        _RECORDER.calls = []

    def end_capture(self) -> Any:
        """What was recorded."""
        calls, _RECORDER.calls = _RECORDER.calls or [], None
        return SimpleNamespace(launch=lambda stream=None: [call() for call in calls])


class _Event:
    """A place in a stream, with the time when it was reached."""

    def __init__(self) -> None:
        self.time = 0.0

    def record(self, stream: Any = None) -> None:
        """It is reached at once."""
        self.time = time.perf_counter()

    def synchronize(self) -> None:
        """Nothing is ever left to do."""


class _Pool:
    def __init__(self, allocator: Any = None) -> None:
        self.given_back = 0

    def malloc(self, size: int) -> Any:
        """Not used: the stand-in's arrays are NumPy's."""

    def free_bytes(self) -> int:
        """None is kept."""
        return 0

    def free_all_blocks(self) -> None:
        """Count how often."""
        self.given_back += 1


class _Allocator:
    def __init__(self, allocator: Any) -> None:
        """Takes what cupy's takes."""

    def __enter__(self) -> None: ...
    def __exit__(self, *_: Any) -> None: ...


class _Emulated:
    """Runs kernels on the CPU, thread by thread; an :class:`esat.gpu.kernel_text.kernels.Executor`."""

    def prepared(self, launches: Launches, names: Sequence[str], sizes: Mapping[str, int]) -> Start:
        """What launches a kernel."""

        def start(arrays: Sequence[Any]) -> None:
            given = {name: array.memory for name, array in zip(names, arrays, strict=True)}
            launched(lambda: run_launches(launches, given, sizes))

        return start


class StandIn(_Functions):
    """A module like cupy.

    Attributes
    ----------
    kernel_executor
        What runs kernels on its arrays.
    limit
        Bytes that a single array may have; more is out of memory.
    devices, compute_capability
        How many devices there are, and what they can.
    uploads, downloads
        Bytes of each array that was copied to the device, and back.
    """

    ndarray = StandInArray
    kernel_executor = _Emulated()

    def __init__(self, devices: int = 1, compute_capability: str = "90") -> None:
        super().__init__(np)
        self.limit = 1 << 62
        self.devices = devices
        self.compute_capability = compute_capability
        self.uploads: list[int] = []
        self.downloads: list[int] = []
        self.linalg = _Functions(np.linalg)
        algebra = SimpleNamespace(solve_triangular=_solve_triangular)
        self.extensions = SimpleNamespace(
            errstate=lambda **_: nullcontext(), scipy=SimpleNamespace(linalg=algebra)
        )
        self.add = _Add()
        self.cublas = SimpleNamespace(gemm=_gemm)
        self.fft = _Functions(np.fft)
        self._pool = _Pool()
        self._stream = _Stream(ptr=0)
        runtime = SimpleNamespace(
            getDeviceCount=lambda: self.devices,
            getDeviceProperties=lambda number: {"name": b"stand-in"},
            memGetInfo=lambda: (self.limit, self.limit),
            CUDARuntimeError=CUDARuntimeError,
        )
        self.cuda = SimpleNamespace(
            runtime=runtime,
            driver=SimpleNamespace(CUDADriverError=CUDADriverError),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            Device=lambda number: SimpleNamespace(compute_capability=self.compute_capability),
            Stream=_Stream,
            Event=_Event,
            get_elapsed_time=lambda first, last: 1e3 * (last.time - first.time),
            MemoryPool=_Pool,
            using_allocator=_Allocator,
            set_allocator=lambda allocator: None,
            get_current_stream=lambda: self._stream,
        )

    def get_default_memory_pool(self) -> Any:
        """Where arrays' memory would come from."""
        return self._pool

    def get_default_pinned_memory_pool(self) -> Any:
        """Where pinned memory would come from."""
        return _Pool()

    def empty(self, shape: Any, dtype: Any = np.float64) -> StandInArray:
        """Memory with rubbish in it."""
        array = np.empty(shape, dtype)
        self._take(array.nbytes)
        array.reshape(-1).view(np.uint8)[...] = 0xA5
        return StandInArray(array, self.uploads)

    def asarray(self, value: Any, dtype: Any = None, order: Any = None) -> StandInArray:
        """A device array: itself, of its memory, or a copy of what the host has."""
        if isinstance(value, StandInArray):
            return value
        if hasattr(value, "__cuda_array_interface__"):
            shown = SimpleNamespace(__array_interface__=value.__cuda_array_interface__, owner=value)
            return StandInArray(np.asarray(shown))
        array = np.array(value, dtype, order=order)
        self._take(array.nbytes)
        return StandInArray(array)

    array = asarray

    def from_dlpack(self, value: Any) -> StandInArray:
        """A device array of the memory that another library shows."""
        return StandInArray(
            np.from_dlpack(
                SimpleNamespace(__dlpack__=lambda **_: value.__dlpack__(), __dlpack_device__=lambda: (1, 0))
            )
        )

    def asnumpy(self, array: Any, stream: Any = None, order: str = "C", out: Any = None) -> Any:
        """A copy as a NumPy array."""
        if not isinstance(array, StandInArray):
            raise TypeError(f"not an array of the device: {type(array)}")
        if _RECORDER.calls is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted")
        self.downloads.append(array.nbytes)
        result = np.empty(array.shape, array.dtype) if out is None else out
        if (result.shape, result.dtype) != (array.shape, array.dtype):
            raise ValueError(f"Shape mismatch. Expected shape: {array.shape}, actual shape: {result.shape}")
        np.copyto(result, array.memory)
        return result

    def _take(self, size: int) -> None:
        if size > self.limit:
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes (allocated so far: 0 bytes).")

    def may_share_memory(self, array: Any, other: Any) -> bool:
        """As NumPy's."""
        return bool(np.may_share_memory(array.memory, other.memory))
