"""The process of one contender: serves requests, one JSON object a line, over stdin and stdout.

``python -m benchmarks.peers.worker CONTENDER PROCESSORS``, where the processors are those it may run on, as
``0,1``; none for any. Requests and answers:

==============================================  ========================================================
``{"do": "prepare", case, size, dtype}``        ``{"error": largest error, "seconds": of the first call,
                                                "processor": its processor time}``
``{"do": "time", "count": calls, by_hand}``     ``{"seconds": of one call, on average, "processor": its
                                                processor time}``; of the form by hand, if told
``{"do": "measure", "what": "copy", ...}``      ``{"rate": ...}``, see ``machine``
==============================================  ========================================================

A request that fails is answered by ``{"failed": message}``, or ``{"unsupported": message}``.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from benchmarks.peers import machine
from benchmarks.peers.application_cases import APPLICATIONS
from benchmarks.peers.cases import CASES, Case
from benchmarks.peers.contenders import Unsupported, module_name
from benchmarks.peers.laab_cases import EXPRESSIONS, Expression
from benchmarks.peers.model_cases import MODELS, Model
from benchmarks.peers.numpy_contender import Reference
from benchmarks.peers.simulation_cases import SIMULATIONS

_ALL: tuple[Case | Model, ...] = (*CASES, *EXPRESSIONS, *APPLICATIONS, *MODELS, *SIMULATIONS)
_CASES: dict[str, Case | Model] = {case.name: case for case in _ALL}
assert len(_CASES) == len(_ALL), "two cases have one name"


class Worker:
    """Holds the functions prepared so far and the one being timed."""

    def __init__(self, contender: str) -> None:
        self.module = importlib.import_module(module_name(contender))
        self._prepared: dict[tuple[Case | Model, str], Callable[..., Any]] = {}
        self._function: Callable[..., Any] | None = None
        self._by_hand: Callable[..., Any] | None = None
        self._arrays: tuple[np.ndarray, ...] = ()

    def prepare(self, case: str, size: int, dtype: str) -> dict[str, Any]:
        """Compile a case, make its arrays and compare its results with NumPy's in float64."""
        chosen = _CASES[case].at(size)
        start, busy = time.perf_counter(), time.process_time()
        if (chosen, dtype) not in self._prepared:
            self._prepared[chosen, dtype] = self.module.prepare(chosen, dtype)
        self._function = self._prepared[chosen, dtype]
        self._by_hand = chosen.by_hand if isinstance(chosen, Expression) else None
        self._arrays = ()
        arrays = chosen.arrays(size, dtype)
        results = self._function(*arrays)
        seconds, processor = time.perf_counter() - start, time.process_time() - busy
        found = [np.asarray(one) for one in (results if isinstance(results, (tuple, list)) else (results,))]
        error = _error(chosen, found, [array.astype(np.float64) for array in arrays])
        dtypes = sorted({str(one.dtype) for one in found})
        moved = sum(array.nbytes for array in (*arrays, *found))
        self._arrays = arrays
        gc.collect()
        times = {"seconds": seconds, "processor": processor}
        return {"error": error, **times, "dtypes": dtypes, "bytes": moved}

    def time(self, count: int, by_hand: bool = False) -> dict[str, Any]:
        """The mean time of ``count`` calls, after one that warms the caches where calls are short."""
        function, arrays = self._by_hand if by_hand else self._function, self._arrays
        assert function is not None
        if count > 1:
            function(*arrays)
        start, busy = time.perf_counter(), time.process_time()
        for _ in range(count):
            function(*arrays)
        seconds, processor = time.perf_counter() - start, time.process_time() - busy
        return {"seconds": seconds / count, "processor": processor / count}

    def measure(self, what: str, dtype: str, threads: int) -> dict[str, Any]:
        """One of the machine's limits."""
        rate = machine.copy_bandwidth(threads) if what == "copy" else machine.product_rate(dtype)
        return {"rate": rate}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        handlers = {"prepare": self.prepare, "time": self.time, "measure": self.measure}
        handler = handlers[request.pop("do")]
        try:
            return handler(**request)
        except Unsupported as reason:
            return {"unsupported": str(reason)}
        except Exception as error:  # whatever a library raises is a result of the benchmark
            return {"failed": f"{type(error).__name__}: {error}"[:400]}


def _error(case: Case | Model, found: list[np.ndarray], at: list[np.ndarray]) -> float:
    if isinstance(case, Model):
        return case.error(Reference, found, at)
    wanted = case.function(Reference, *at)
    return largest_error(found, wanted if isinstance(wanted, tuple) else (wanted,))


def largest_error(found: list[np.ndarray], wanted: tuple[Any, ...]) -> float:
    """The largest difference of a result, in units of its largest element; infinite for other shapes."""
    largest = 0.0 if len(found) == len(wanted) else float("inf")
    for one, other in zip(found, map(np.asarray, wanted), strict=False):
        if one.shape != other.shape:
            return float("inf")
        difference = np.abs(one - other)
        scale = float(np.max(np.abs(other), initial=0.0)) or 1.0
        error = float(np.max(difference, initial=0.0)) / scale
        largest = max(largest, float("inf") if np.isnan(error) else error)
    return largest


def serve(contender: str, requests: IO[str], answers: IO[str]) -> None:
    """Answer requests until there are no more."""
    worker = Worker(contender)
    _say(answers, {"version": worker.module.VERSION, "python": sys.version.split()[0]})
    for line in requests:
        _say(answers, worker.answer(json.loads(line)))


def _say(answers: IO[str], answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def main() -> None:
    contender, processors = sys.argv[1:]
    if processors:
        # Before the library is loaded: it may count the processors then.
        os.sched_setaffinity(0, [int(number) for number in processors.split(",")])
    # Libraries print; what they print must not get between the answers.
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        warnings.simplefilter("ignore")
        serve(contender, sys.stdin, answers)


if __name__ == "__main__":
    main()
