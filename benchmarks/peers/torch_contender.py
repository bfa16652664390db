"""``torch.compile`` on the CPU, between ``torch.from_numpy`` and ``Tensor.numpy``."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.peers.cases import Case

VERSION = torch.__version__

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        return function(x) if axis is None else function(x, dim=axis, keepdim=keepdims)

    return reduced


class Namespace:
    """Torch's functions under NumPy's names."""

    exp, log, sqrt, tanh, erf, abs = torch.exp, torch.log, torch.sqrt, torch.tanh, torch.erf, torch.abs
    maximum, where, matmul = torch.maximum, torch.where, torch.matmul
    sum, mean, max = _reduction(torch.sum), _reduction(torch.mean), _reduction(torch.amax)


def prepare(case: Case, dtype: str) -> Callable[..., Any]:
    compiled = torch.compile(functools.partial(case.function, Namespace), dynamic=True)

    def call(*arrays: np.ndarray) -> Any:
        with torch.inference_mode():
            results = compiled(*map(torch.from_numpy, arrays))
        if isinstance(results, Sequence):
            return tuple(one.numpy() for one in results)
        return results.numpy()

    return call
