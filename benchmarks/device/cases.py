"""What is computed on the device: the cases of ``benchmarks.kernels`` and those below.

Inputs are drawn on the device where they are large: a thousand million numbers take the host a minute.
"""

from __future__ import annotations

import math
from typing import Any

from benchmarks.peers import cases
from benchmarks.peers.cases import Case, Input
from esat.gpu.device import Device, DeviceArray

DRAWN_THERE = 10**7
"""Size from which inputs are drawn on the device."""
HEAD = 64
"""Features of a head of attention."""
ROW = 512
FEATURES = 768
"""Numbers in a row where rows are short and many."""


def attention(xp: Any, queries: Any, keys: Any, values: Any) -> Any:
    """One head."""
    scores = xp.matmul(queries, keys.T) / math.sqrt(HEAD)
    return xp.matmul(cases.softmax(xp, scores), values)


def _head(n: int) -> tuple[int, int]:
    return (math.isqrt(n), HEAD)


def _rows(length: int) -> Input:
    return Input(lambda n: (max(n // length, 1), length), -5, 5)


def _row(length: int) -> Input:
    return Input(lambda n: (length,))


FURTHER: tuple[Case, ...] = (
    Case("softmax, rows of 512", cases.softmax, (_rows(ROW),)),
    Case("layernorm, rows of 768", cases.layernorm, (_rows(FEATURES), _row(FEATURES), _row(FEATURES))),
    Case("attention", attention, (Input(_head),) * 3, lambda n: 4.0 * n * HEAD),
)

DEVICE_CASES: tuple[Case, ...] = (*cases.CASES, *FURTHER)


def bytes_of(case: Case, size: int, dtype: str) -> int:
    """Bytes of a case's inputs."""
    return sum(math.prod(one.shape(size)) for one in case.inputs) * (4 if dtype == "float32" else 8)


def arrays_of(case: Case, size: int, dtype: str, device: Device) -> tuple[DeviceArray, ...]:
    """A case's inputs as arrays of the device; the same in every run."""
    if size < DRAWN_THERE:
        return tuple(map(device.upload, case.arrays(size, dtype)))
    generator = device.arrays.random.default_rng(size)
    drawn = []
    for one in case.inputs:
        array = generator.random(one.shape(size), dtype=dtype)
        array *= one.high - one.low
        array += one.low
        drawn.append(array)
    return tuple(drawn)
