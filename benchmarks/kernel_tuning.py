"""What each number that kernels are tuned by is worth on this machine, as a table.

Run ``python -m benchmarks.kernel_tuning`` on a machine without other work; it writes
``docs/kernel_tuning.md``. ``esat.calibrate()`` takes the values from the same measurements.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.vector_math import machine
from esat.codegen.ground.host import untuned_host
from esat.tools.calibration import busy_seconds_of
from esat.tools.kernel_tuning import measurements, relative_times


def table() -> str:
    """The document."""
    target = untuned_host()
    lines = [
        "# What kernels are tuned by: measured",
        "",
        "Written by `python -m benchmarks.kernel_tuning`; do not edit. Times of kernels with each value of",
        "a number, in units of those with the value that follows from the instruction set and the caches",
        f"(which stands first), on {machine()}.",
        "",
        "| number | value | kernels |",
        "|---|---|---|",
    ]
    for number, values, kernels in measurements(target):
        for value, times in relative_times(target, number, values, kernels, busy_seconds_of).items():
            cells = [f"{kernel.name}: {time:.2f}" for kernel, time in zip(kernels, times, strict=True)]
            lines.append(f"| {number} | {value} | {', '.join(cells)} |")
            print(lines[-1], flush=True)
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure and write the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parents[1] / "docs" / "kernel_tuning.md"
    )
    parser.parse_args().output.write_text(table(), encoding="utf-8")


if __name__ == "__main__":
    main()
