"""What a run on a device found, as data; stored as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.peers.record import Compared


@dataclass(frozen=True)
class DeviceRecord(Compared):
    """One case at one size and dtype.

    Attributes
    ----------
    seconds
        Contender -> median time of a call, by the host's clock. Contenders that failed are missing.
    device
        The same by the device's events.
    quartiles
        Contender -> first and third quartile of ``seconds`` over the rounds.
    first_call
        Contender -> seconds of compiling where that was still to do, and of the first call.
    notes
        Contender -> why it is missing.
    bytes
        Bytes of the inputs and outputs, which every program must move.
    flops
        Operations of the matrix products; None where there are none.
    """

    case: str
    size: int
    dtype: str
    seconds: Mapping[str, float]
    device: Mapping[str, float]
    quartiles: Mapping[str, tuple[float, float]]
    first_call: Mapping[str, float]
    notes: Mapping[str, str]
    bytes: int
    flops: float | None


@dataclass(frozen=True)
class DeviceRun:
    """A run, and where it ran.

    Attributes
    ----------
    device
        The device's name.
    copy
        Bytes read and written a second when large arrays are copied on it.
    product
        dtype -> floating-point operations a second of a matrix product.
    versions
        Contender -> its version.
    """

    device: str
    copy: float
    product: Mapping[str, float]
    versions: Mapping[str, str]
    records: tuple[DeviceRecord, ...] = ()
    day: str = field(default_factory=lambda: date.today().isoformat())

    @property
    def stem(self) -> str:
        """What files of this device are called."""
        return re.sub(r"\W+", "_", self.device.lower()).strip("_")


def save(run: DeviceRun, path: Path) -> None:
    """Write it; who reads it meanwhile finds the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(".json.new")
    written.write_text(json.dumps(asdict(run), indent=1) + "\n", encoding="utf-8")
    written.replace(path)


def load(path: Path) -> DeviceRun:
    """A stored run."""
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    records = tuple(DeviceRecord(**record) for record in stored.pop("records"))
    return DeviceRun(records=records, **stored)
