"""The contenders on a device, each with full precision of its float32 matrix products."""

from __future__ import annotations

import functools
import importlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import esat
from benchmarks.peers.cases import Case
from benchmarks.peers.contenders import OURS
from benchmarks.peers.esat_contender import executable
from esat.gpu.device import Device, DeviceArray

PEERS = ("cupy", "jax", "torch")
"""Contenders that esat is compared with on a device."""


@dataclass(frozen=True)
class Contender:
    """A library on the device.

    Attributes
    ----------
    name, version
        Of the library.
    prepare
        ``prepare(case, dtype)``: the case as a function of the library's own arrays, compiled once for all
        sizes where the library can.
    given
        The library's own array over the memory of one of the device's.
    shown
        The device's array over the memory of one of the library's.
    wait
        Until the device has done what the library gave it, given the results of the last call.
    release
        Give unused memory back to the device.
    by_events
        Whether the library runs in the stream in which the clock's events are recorded.
    """

    name: str
    version: str
    prepare: Callable[[Case, str], Callable[..., Any]]
    given: Callable[[DeviceArray], Any]
    shown: Callable[[Any], DeviceArray]
    wait: Callable[[Any], None]
    release: Callable[[], None]
    by_events: bool = True


def contenders(device: Device, names: Sequence[str]) -> dict[str, Contender]:
    """Those of ``names`` that can be imported, ours first; of the others a line is printed."""
    found = {}
    makers: Mapping[str, Callable[[Device], Contender]] = {
        OURS: _esat, "cupy": _cupy, "jax": _jax, "torch": _torch,
    }  # fmt: skip
    for name in names:
        try:
            found[name] = makers[name](device)
        except ImportError as missing:
            print(f"{name}: left out: {missing}")
    return found


def _itself(array: Any) -> Any:
    return array


def _device_waits(device: Device) -> Callable[[Any], None]:
    return lambda results: device.wait()


def _esat(device: Device) -> Contender:
    def prepare(case: Case, dtype: str) -> Callable[..., Any]:
        return executable(case, dtype, esat.Mode("fast_run", device="cuda"))

    return Contender(
        OURS, "working tree", prepare, _itself, _itself, _device_waits(device), device.give_back
    )  # fmt: skip


def _cupy(device: Device) -> Contender:
    """Cupy's functions one after the other, as NumPy's."""
    module = device.arrays
    names = ("exp", "log", "sqrt", "tanh", "abs", "maximum", "where", "matmul", "sum", "mean", "max")
    functions = {name: staticmethod(getattr(module, name)) for name in names}
    erf = staticmethod(importlib.import_module("cupyx.scipy.special").erf)
    namespace = type("Namespace", (), {**functions, "erf": erf})

    def prepare(case: Case, dtype: str) -> Callable[..., Any]:
        return functools.partial(case.function, namespace)

    return Contender(
        "cupy", module.__version__, prepare, _itself, _itself, _device_waits(device), device.give_back
    )


def _jax(device: Device) -> Contender:
    """``jax.jit``; memory is taken as it is needed, not all at the start."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    from benchmarks.peers.jax_namespace import Namespace

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    jax.config.update("jax_compilation_cache_dir", str(Path(tempfile.gettempdir(), "esat-benchmark-jax")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    if jax.default_backend() != "gpu":
        raise ImportError(f"jax is for {jax.default_backend()} here")

    def prepare(case: Case, dtype: str) -> Callable[..., Any]:
        return jax.jit(functools.partial(case.function, Namespace))

    return Contender(
        "jax",
        jax.__version__,
        prepare,
        jax.dlpack.from_dlpack,
        device.arrays.from_dlpack,
        jax.block_until_ready,
        lambda: None,
        by_events=False,
    )


def _torch(device: Device) -> Contender:
    """``torch.compile`` for all sizes, without gradients."""
    import torch

    from benchmarks.peers.torch_contender import Namespace

    if not torch.cuda.is_available():
        raise ImportError("torch sees no device")
    torch.set_float32_matmul_precision("highest")
    # All cases are one function to torch; beyond a few it would not compile them any more.
    torch._dynamo.config.recompile_limit = 1000

    def prepare(case: Case, dtype: str) -> Callable[..., Any]:
        compiled = torch.compile(functools.partial(case.function, Namespace), dynamic=True)

        def call(*arrays: Any) -> Any:
            with torch.inference_mode():
                return compiled(*arrays)

        return call

    def shown(array: Any) -> DeviceArray:
        return device.arrays.asarray(array.detach())

    return Contender(
        "torch",
        torch.__version__,
        prepare,
        torch.from_dlpack,
        shown,
        lambda results: torch.cuda.synchronize(),
        torch.cuda.empty_cache,
    )
