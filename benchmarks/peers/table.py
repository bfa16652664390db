"""A run as text."""

from __future__ import annotations

import math
from collections.abc import Iterable

from benchmarks.peers.contenders import OURS, PEERS
from benchmarks.peers.record import Limits, Record, Run, geometric_mean

BEYOND_CACHES = 64 << 20
"""Bytes of inputs and outputs from which memory sets the pace: bandwidth is shown from there."""
BEHIND = 0.95


def line(record: Record, contenders: Iterable[str], limits: Limits | None = None) -> str:
    """One record: our time, each peer's time by ours, the best peer's, shares of the limits."""
    ours = record.seconds.get(OURS)
    cells = [f"{record.case:22} {record.size:8.0e} {record.dtype[5:]}b {record.threads}t {_time(ours)}"]
    cells += [_ratio(record.ratio(peer)) for peer in PEERS if peer in contenders]
    best = record.best_ratio
    cells.append(f"| {_ratio(best)} {'<' if best is not None and best < BEHIND else ' '}")
    if limits is not None and ours is not None:
        if record.bytes >= BEYOND_CACHES:
            cells.append(f" copy {record.bytes / ours / limits.copy:4.0%}")
        if record.flops is not None and record.size >= 10**5:
            cells.append(f" gemm {record.flops / ours / limits.product[record.dtype]:4.0%}")
    return "".join(cells).rstrip()


def table(run: Run) -> str:
    """All of a run, with the geometric means and the cases where esat is behind."""
    peers = [peer for peer in PEERS if peer in run.versions]
    lines = [
        f"{run.machine}, {run.day}",
        "; ".join(f"{name} {version}" for name, version in run.versions.items()),
        *map(str, run.limits),
        "Ratios: time of the peer / time of esat. copy, gemm: share of the machine's rate.",
        "",
        f"{'case':22} {'n':>8} type    {'esat':>9}" + "".join(f"{peer:>9}" for peer in peers) + " |     best",
    ]
    lines += [line(record, peers, run.limit(record.threads)) for record in run.records]
    lines += ["", *_means(run, peers), "", *_behind(run)]
    notes = _notes(run)
    return "\n".join(lines + (["", *notes] if notes else []))


def _means(run: Run, peers: list[str]) -> list[str]:
    lines = []
    groups = sorted({(record.threads, record.dtype, record.size) for record in run.records})
    for threads, dtype, size in groups:
        records = [r for r in run.records if (r.threads, r.dtype, r.size) == (threads, dtype, size)]
        title = f"{'geometric mean':22} {size:8.0e} {dtype[5:]}b {threads}t {'':9}"
        lines.append(_mean_line(title, records, peers))
    return [*lines, _mean_line(f"{'geometric mean of all':52}", run.records, peers)]


def _mean_line(title: str, records: Iterable[Record], peers: list[str]) -> str:
    ratios = {peer: [r for record in records if (r := record.ratio(peer)) is not None] for peer in peers}
    best = [record.best_ratio for record in records if record.best_ratio is not None]
    cells = "".join(_ratio(geometric_mean(ratios[peer])) for peer in peers)
    return f"{title[:52]}{cells}| {_ratio(geometric_mean(best))}"


def _behind(run: Run) -> list[str]:
    behind = [r for r in run.records if r.best_ratio is not None and r.best_ratio < BEHIND]
    behind.sort(key=lambda record: record.best_ratio or 0.0)
    compared = sum(record.best_ratio is not None for record in run.records)
    head = f"{len(behind)} of {compared} below {BEHIND}:"
    return [
        head,
        *(
            f"  {_ratio(r.best_ratio)} by {r.best_peer}: {r.case}, n={r.size:.0e}, {r.dtype}, {r.threads}t"
            for r in behind
        ),
    ]


def _notes(run: Run) -> list[str]:
    """Contenders that are missing, one line a reason."""
    reasons: dict[str, list[Record]] = {}
    for record in run.records:
        for contender, note in record.notes.items():
            reasons.setdefault(f"{contender}, {record.case}: {note}", []).append(record)
    return [f"missing ({len(records)}): {reason}" for reason, records in reasons.items()]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "        -"
    if seconds < 1e-3:
        return f"{seconds * 1e6:6.1f} us"
    return f"{seconds * 1e3:6.1f} ms"


def _ratio(ratio: float | None) -> str:
    return f"{'-':>9}" if ratio is None or math.isnan(ratio) else f"{ratio:9.2f}"
