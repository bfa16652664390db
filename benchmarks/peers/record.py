"""What a run found, as data; stored as JSON."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.peers.contenders import OURS


class Compared:
    """Times of contenders for the same work, of which one is ours."""

    seconds: Mapping[str, float]

    def ratio(self, peer: str) -> float | None:
        """A peer's time by ours; None where one of them is missing."""
        if peer not in self.seconds or OURS not in self.seconds:
            return None
        return self.seconds[peer] / self.seconds[OURS]

    @property
    def best_peer(self) -> str | None:
        """The fastest contender but ours."""
        return min(
            (name for name in self.seconds if name != OURS), key=self.seconds.__getitem__, default=None
        )

    @property
    def best_ratio(self) -> float | None:
        """The fastest peer's time by ours."""
        return None if self.best_peer is None else self.ratio(self.best_peer)


@dataclass(frozen=True)
class Record(Compared):
    """One case at one size, dtype and number of threads.

    Attributes
    ----------
    seconds
        Contender -> median time of a call. Contenders that failed are missing.
    quartiles
        Contender -> first and third quartile over the rounds.
    first_call
        Contender -> seconds of compiling where that was still to do, and of the first call.
    notes
        Contender -> why it is missing.
    bytes
        Bytes of the inputs and outputs, which every program must move.
    flops
        Operations of the matrix products; None where there are none.
    ratios
        Contender -> its time by that of the reference beside it; empty where none was set.
    """

    case: str
    size: int
    dtype: str
    threads: int
    seconds: Mapping[str, float]
    quartiles: Mapping[str, tuple[float, float]]
    first_call: Mapping[str, float]
    notes: Mapping[str, str]
    bytes: int
    flops: float | None
    ratios: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """What the machine can do at most with this many threads.

    Attributes
    ----------
    copy
        Bytes read and written a second when large arrays are copied.
    product
        dtype -> floating-point operations a second of a matrix product.
    """

    threads: int
    copy: float
    product: Mapping[str, float]

    def or_better(self, other: Limits) -> Limits:
        """The higher of each rate, for the same number of threads."""
        product = {
            dtype: max(self.product.get(dtype, 0.0), other.product.get(dtype, 0.0))
            for dtype in {**self.product, **other.product}
        }
        return Limits(self.threads, max(self.copy, other.copy), product)

    def __str__(self) -> str:
        products = ", ".join(f"{dtype} {rate / 1e9:.0f} Gflop/s" for dtype, rate in self.product.items())
        return f"{self.threads} thread(s): copy {self.copy / 1e9:.1f} GB/s; matrix product {products}"


@dataclass(frozen=True)
class Run:
    """A run, and where it ran.

    Attributes
    ----------
    code
        Stands for the code of esat and of the benchmark, and for how long it measures.
    """

    records: tuple[Record, ...]
    limits: tuple[Limits, ...]
    versions: Mapping[str, str]
    code: str = ""
    machine: str = field(default_factory=lambda: f"{processor()}, {platform.system()}")
    day: str = field(default_factory=lambda: date.today().isoformat())

    def limit(self, threads: int) -> Limits:
        """The limits for a number of threads."""
        return next(limit for limit in self.limits if limit.threads == threads)


def geometric_mean(values: list[float]) -> float:
    """NaN for no values."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return f"{len(names)} x {names[0]}" if names else platform.processor() or platform.machine()


def save(run: Run, stem: Path) -> None:
    """Write ``stem``.json; who reads it meanwhile finds the old one or the new one."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    written = stem.with_suffix(".json.new")
    written.write_text(json.dumps(asdict(run), indent=1) + "\n", encoding="utf-8")
    written.replace(stem.with_suffix(".json"))


def load(path: Path) -> Run:
    """A stored run."""
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Run(
        tuple(Record(**record) for record in stored.pop("records")),
        tuple(Limits(**limits) for limits in stored.pop("limits")),
        **stored,
    )
