"""A Gaussian process on real data: where equality saturation beats greedy rewriting.

Run ``make demo``, or ``python examples/gaussian_process.py`` with the ``examples`` extra. The log-density is
written as in a textbook, with an inverse and a determinant of a 442 x 442 matrix. The covariance has rank ten
and a diagonal: esat solves with it by Woodbury's identity, in 10 x 10. The greedy optimizer has the same
rules, and solves in 442 x 442.
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes

import esat

NOISE = 0.5
ROUNDS = 21


def log_density() -> tuple[esat.Graph, list[esat.Variable]]:
    """Of centred targets, under a linear kernel and noise."""
    features, targets = esat.matrix("features"), esat.vector("targets")
    covariance = features @ features.T + NOISE * esat.eye(features.shape[0])
    misfit = targets @ esat.linalg.inv(covariance) @ targets
    density = -0.5 * misfit - 0.5 * esat.log(esat.linalg.det(covariance))
    return esat.Graph([features, targets], density), [features, targets]


def by_numpy(features: np.ndarray, targets: np.ndarray) -> float:
    """The same, as it is written."""
    covariance = features @ features.T + NOISE * np.eye(len(features))
    misfit = targets @ np.linalg.inv(covariance) @ targets
    return float(-0.5 * misfit - 0.5 * np.log(np.linalg.det(covariance)))


def main() -> None:
    console = Console()
    features, targets = load_diabetes(return_X_y=True)
    targets = (targets - targets.mean()) / targets.std()
    contenders = {}
    for mode in ("fast_run", "greedy"):
        graph, inputs = log_density()
        shapes = dict(zip(inputs, (features.shape, targets.shape), strict=True))
        contenders[f"esat {mode}"] = esat.compile(graph, mode, shapes=shapes)
    contenders["NumPy"] = by_numpy
    times: dict[str, list[float]] = {name: [] for name in contenders}
    values = {name: float(call(features, targets)) for name, call in contenders.items()}
    for _ in range(ROUNDS):
        for name, call in contenders.items():
            begin = time.perf_counter()
            call(features, targets)
            times[name].append(time.perf_counter() - begin)
    table = Table(title="log-density of a Gaussian process, 442 patients, 10 features")
    for column in ("", "milliseconds", "against fast_run", "value"):
        table.add_column(column, justify="left" if not column else "right")
    fastest = median(times["esat fast_run"])
    for name, seconds in times.items():
        ratio = median(seconds) / fastest
        table.add_row(name, f"{median(seconds) * 1e3:.2f}", f"{ratio:.2f} x", f"{values[name]:.9f}")
    console.print(table)
    console.print("what esat chose, and what it would have cost otherwise:", style="bold")
    explanation = str(contenders["esat fast_run"].explain(limit=1))
    console.print(explanation, highlight=False, markup=False, soft_wrap=True)
    console.print()


if __name__ == "__main__":
    main()
