"""Starts a contender's process and talks to it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

_THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    *("NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS"),
)

_CHOICES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONSAFEPATH")
"""Variables that contenders do not inherit: every library shall choose its kernels by itself."""


class ContenderLostError(Exception):
    """The process died or did not answer in time; the message says which and what it wrote."""


class Client:
    """A contender's process, ready to answer.

    Parameters
    ----------
    contender
        Its name.
    interpreter
        The Python of its environment.
    threads
        Threads it may use: said by environment variables, and by the processors it may run on, which
        is what those libraries heed that have no variable.
    """

    def __init__(self, contender: str, interpreter: Path, threads: int) -> None:
        self.contender = contender
        environment = {name: value for name, value in os.environ.items() if name not in _CHOICES}
        environment["PYTHONWARNINGS"] = "ignore"
        environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
        processors = ",".join(map(str, _processors(threads)))
        self._process = subprocess.Popen(
            [str(interpreter), "-m", "benchmarks.peers.worker", contender, processors],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._pipe(), selectors.EVENT_READ)
        self._buffer = b""
        try:
            self.about = self._answer(120.0)
        except ContenderLostError:
            self.close()
            raise

    def ask(self, do: str, timeout: float = 300.0, **details: Any) -> dict[str, Any]:
        """One request and its answer.

        Raises
        ------
        ContenderLostError
            When none comes within ``timeout`` seconds. The process is of no use after that.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **details}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._lost("is gone") from error
        return self._answer(timeout)

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.kill()
        self._process.wait()
        self._selector.close()

    def _pipe(self) -> Any:
        return self._process.stdout

    def _answer(self, timeout: float) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            if not self._selector.select(timeout):
                raise self._lost(f"did not answer in {timeout:g} s")
            read = os.read(self._pipe().fileno(), 1 << 16)
            if not read:
                raise self._lost("died")
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _lost(self, how: str) -> ContenderLostError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1.0)  # one that dies still has to write why
        self._process.kill()
        assert self._process.stderr is not None
        written = self._process.stderr.read().decode(errors="replace").strip().splitlines()
        return ContenderLostError(f"{self.contender} {how}{': ' + written[-1] if written else ''}")


def _processors(threads: int) -> list[int]:
    """The processors for this many threads; none where the system cannot restrict processes."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    return sorted(os.sched_getaffinity(0))[-threads:]
