"""A run on a device as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.device.contenders import PEERS
from benchmarks.device.record import DeviceRecord, DeviceRun
from benchmarks.peers.contenders import OURS
from benchmarks.peers.record import geometric_mean

BEYOND_CACHES = 256 << 20
"""Bytes of inputs and outputs from which memory sets the pace: bandwidth is shown from there."""
BEHIND = 0.95


def line(record: DeviceRecord, run: DeviceRun) -> str:
    """One record: our time, each peer's time by ours, the best peer's, shares of the limits."""
    peers = [peer for peer in PEERS if peer in run.versions]
    ours, device = record.seconds.get(OURS), record.device.get(OURS)
    cells = [f"{record.case:24} {record.size:6.0e} {record.dtype[5:]}b {_time(ours)} {_time(device)}"]
    cells += [_ratio(record.ratio(peer)) for peer in peers]
    best = record.best_ratio
    cells.append(f" |{_ratio(best)} {'<' if best is not None and best < BEHIND else ' '}")
    if device is not None and record.bytes >= BEYOND_CACHES:
        cells.append(f" copy {record.bytes / device / run.copy:4.0%}")
    if device is not None and record.flops is not None and record.size >= 10**7:
        cells.append(f" gemm {record.flops / device / run.product[record.dtype]:4.0%}")
    return "".join(cells).rstrip()


def table(run: DeviceRun) -> str:
    """All of a run, with the geometric means, and where esat is behind."""
    peers = [peer for peer in PEERS if peer in run.versions]
    products = ", ".join(f"{dtype} {rate / 1e12:.1f} Tflop/s" for dtype, rate in run.product.items())
    lines = [
        f"{run.device}, {run.day}",
        "; ".join(f"{name} {version}" for name, version in run.versions.items()),
        f"copy {run.copy / 1e12:.2f} TB/s; matrix product {products}",
        "Arrays are on the device. call: by the host's clock, waiting once after many; device: by events.",
        "Ratios: time of the peer / time of esat, by the host's clock. copy, gemm: share of the device's.",
        "",
        f"{'case':24} {'n':>6} type {'call':>9} {'device':>9}"
        + "".join(f"{peer:>8}" for peer in peers)
        + f" |{'best':>8}",
    ]
    lines += [line(record, run) for record in run.records]
    lines += ["", *_means(run, peers), "", *_behind(run)]
    notes = [f"missing: {name}, {one.case}, n={one.size:.0e}, {one.dtype}: {note}"
             for one in run.records for name, note in one.notes.items()]  # fmt: skip
    return "\n".join(lines + (["", *notes] if notes else []))


def _means(run: DeviceRun, peers: Sequence[str]) -> Iterable[str]:
    groups = sorted({(record.dtype, record.size) for record in run.records})
    for dtype, size in groups:
        records = [one for one in run.records if (one.dtype, one.size) == (dtype, size)]
        yield _mean_line(f"{'geometric mean':24} {size:6.0e} {dtype[5:]}b {'':19}", records, peers)
    yield _mean_line(f"{'geometric mean of all':55}", run.records, peers)


def _mean_line(title: str, records: Sequence[DeviceRecord], peers: Sequence[str]) -> str:
    ratios = [[r for one in records if (r := one.ratio(peer)) is not None] for peer in peers]
    best = [one.best_ratio for one in records if one.best_ratio is not None]
    cells = "".join(_ratio(geometric_mean(of_peer) if of_peer else None) for of_peer in ratios)
    return f"{title}{cells} |{_ratio(geometric_mean(best) if best else None)}"


def _behind(run: DeviceRun) -> Iterable[str]:
    compared = [(one.best_ratio, one) for one in run.records if one.best_ratio is not None]
    behind = sorted((pair for pair in compared if pair[0] < BEHIND), key=lambda pair: pair[0])
    yield f"{len(behind)} of {len(compared)} below {BEHIND}:"
    for ratio, one in behind:
        yield f"  {_ratio(ratio)} by {one.best_peer}: {one.case}, n={one.size:.0e}, {one.dtype}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "        -"
    return f"{seconds * 1e6:6.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:6.2f} ms"


def _ratio(ratio: float | None) -> str:
    return f"{'-':>8}" if ratio is None else f"{ratio:8.2f}"
