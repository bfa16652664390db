"""Contenders against each other on a device: correctness first, then interleaved rounds."""

from __future__ import annotations

import functools
import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.device.cases import arrays_of
from benchmarks.device.clock import Taken, calls_in, timed
from benchmarks.device.contenders import Contender
from benchmarks.device.record import DeviceRecord
from benchmarks.peers.cases import Case
from benchmarks.peers.numpy_contender import Reference
from esat.gpu.device import Device, DeviceArray

TOLERANCE: Mapping[str, float] = {"float64": 1e-10, "float32": 1e-4}
"""Largest error of a result in units of its largest element."""
COMPARED_ON_HOST = 2 * 10**6
"""Size up to which results are compared with NumPy's in float64; larger ones with the first contender's."""


@dataclass(frozen=True)
class Settings:
    """How long to measure.

    Attributes
    ----------
    rounds
        Over all contenders.
    seconds
        What a contender's turn should take, if one call takes less.
    """

    rounds: int
    seconds: float


class Contest:
    """Contenders on a device, and what they have prepared so far.

    Parameters
    ----------
    device
        Where.
    contenders
        By name, ours first.
    settings
        How long.
    """

    def __init__(self, device: Device, contenders: Mapping[str, Contender], settings: Settings) -> None:
        self._device = device
        self._contenders = contenders
        self._settings = settings
        self._prepared: dict[tuple[str, str, str], Callable[..., Any]] = {}

    def play(self, case: Case, size: int, dtype: str) -> DeviceRecord:
        """Time all contenders that compute the case and do it right."""
        arrays = arrays_of(case, size, dtype, self._device)
        wanted: list[Any] | None = None
        if size <= COMPARED_ON_HOST:
            wanted = _as_list(
                case.function(Reference, *(self._device.download(one).astype(np.float64) for one in arrays))
            )
        notes: dict[str, str] = {}
        first_call: dict[str, float] = {}
        functions: dict[str, Callable[[], Any]] = {}
        moved = 0
        for name, contender in self._contenders.items():
            try:
                start = time.perf_counter()
                function = self._function(contender, case, dtype, arrays)
                results = function()
                contender.wait(results)
                first_call[name] = time.perf_counter() - start
                found = [contender.shown(one) for one in _as_list(results)]
                moved = sum(one.nbytes for one in (*arrays, *found))
                note = _objection(self._device, found, wanted, dtype)
                wanted = found if wanted is None else wanted
            except Exception as error:  # whatever a library says: the others go on
                note = _said(error)
            results = found = None
            if note:
                notes[name] = note
            else:
                functions[name] = function
        wanted = None
        self._release()
        samples = self._in_turns(functions, notes)
        return DeviceRecord(
            case=case.name,
            size=size,
            dtype=dtype,
            seconds={name: statistics.median(one.seconds for one in all_) for name, all_ in samples.items()},
            device={name: statistics.median(one.device for one in all_) for name, all_ in samples.items()},
            quartiles={name: _quartiles([one.seconds for one in all_]) for name, all_ in samples.items()},
            first_call=first_call,
            notes=notes,
            bytes=moved,
            flops=None if case.flops is None else case.flops(size),
        )

    def compile(self, case: Case, size: int, dtype: str) -> None:
        """Call every contender once, so that what it keeps on disk is there."""
        arrays = arrays_of(case, size, dtype, self._device)
        for contender in self._contenders.values():
            try:
                contender.wait(self._function(contender, case, dtype, arrays)())
            except Exception as error:
                print(f"{contender.name}, {case.name}, {dtype}: {type(error).__name__}: {error}", flush=True)

    def _function(
        self, contender: Contender, case: Case, dtype: str, arrays: Sequence[DeviceArray]
    ) -> Callable[[], Any]:
        key = contender.name, case.name, dtype
        if key not in self._prepared:
            self._prepared[key] = contender.prepare(case, dtype)
        return functools.partial(self._prepared[key], *map(contender.given, arrays))

    def _in_turns(
        self, functions: Mapping[str, Callable[[], Any]], notes: dict[str, str]
    ) -> dict[str, list[Taken]]:
        """What a call of each contender takes, in rounds over all of them."""
        samples: dict[str, list[Taken]] = {name: [] for name in functions}
        counts: dict[str, int] = {}
        for number in range(self._settings.rounds):
            for name, function in functions.items():
                contender = self._contenders[name]
                if name in notes:
                    continue
                try:
                    if number == 0:
                        counts[name] = calls_in(self._device, contender, function, self._settings.seconds)
                    samples[name].append(timed(self._device, contender, function, counts[name]))
                except Exception as error:  # most often memory: what others keep in their pools
                    notes[name] = _said(error)
        return {name: taken for name, taken in samples.items() if name not in notes}

    def _release(self) -> None:
        gc.collect()
        for contender in self._contenders.values():
            contender.release()


def _as_list(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple | list) else [results]


def _objection(device: Device, found: Sequence[DeviceArray], wanted: Sequence[Any] | None, dtype: str) -> str:
    """Why a contender is not timed; empty where it is."""
    if dtypes := {str(one.dtype) for one in found} - {dtype}:
        return f"returns {', '.join(sorted(dtypes))}"
    if wanted is None:
        return ""
    if len(found) != len(wanted) or any(a.shape != b.shape for a, b in zip(found, wanted, strict=True)):
        return f"returns shapes {[one.shape for one in found]}"
    error = max(_error(device, one, right) for one, right in zip(found, wanted, strict=True))
    return "" if error <= TOLERANCE[dtype] else f"wrong by {error:.1e}"


def _error(device: Device, found: DeviceArray, wanted: Any) -> float:
    """The largest difference, in units of the largest element; infinite where something is NaN."""
    if isinstance(wanted, np.ndarray | np.generic):
        found = device.download(found)
    difference = float(abs(found - wanted).max())
    scale = float(abs(wanted).max()) or 1.0
    return float("inf") if math.isnan(difference) else difference / scale


def _said(error: Exception) -> str:
    """The kind of an error, and the beginning of what it says."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"


def _quartiles(samples: Sequence[float]) -> tuple[float, float]:
    if len(samples) < 2:
        return samples[0], samples[0]
    first, _, third = statistics.quantiles(samples, n=4)
    return first, third
