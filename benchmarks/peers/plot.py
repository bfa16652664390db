"""A run as a picture: the best peer's time by ours over the size, a line a case."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from benchmarks.peers.record import Record, Run


def draw(run: Run, path: Path) -> bool:
    """Write the picture, a panel for each dtype and number of threads; False without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return False
    from matplotlib import use

    use("Agg")
    from matplotlib import pyplot

    panels = sorted({(record.threads, record.dtype) for record in run.records})
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(5.5 * len(panels) + 2, 5.5), sharey=True, squeeze=False
    )
    cases = list(dict.fromkeys(record.case for record in run.records))
    for axis, (threads, dtype) in zip(axes[0], panels, strict=True):
        records = [r for r in run.records if (r.threads, r.dtype) == (threads, dtype)]
        _panel(axis, records, cases)
        axis.set_title(f"{dtype}, {threads} thread{'s' if threads > 1 else ''}")
    axes[0][0].set_ylabel("time of the best peer / time of esat")
    axes[0][-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.suptitle(f"{run.machine}, {run.day}", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return True


def _panel(axis: Any, records: list[Record], cases: list[str]) -> None:
    for number, case in enumerate(cases):
        points = [(r.size, r.best_ratio) for r in records if r.case == case and r.best_ratio is not None]
        if points:
            marker = "osv^D"[number // 10 % 5]
            axis.plot(*zip(*points, strict=True), marker=marker, markersize=3, linewidth=1, label=case)
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("n")
