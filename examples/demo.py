"""Four NumPy functions as they are written, what NumPy answers, and what esat makes of them.

Run ``make demo``, or ``python examples/demo.py`` with the ``examples`` extra; ``--verbose`` prints reports of
the programs.
"""

from __future__ import annotations

import argparse
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.syntax import Syntax
from sklearn.datasets import load_diabetes, load_digits

import esat


def log_density(x, a):  # of a normal distribution
    covariance = a @ a.T + np.eye(len(a))
    misfit = x @ np.linalg.inv(covariance) @ x
    return -0.5 * misfit - 0.5 * np.log(np.linalg.det(covariance))


def gaussian_process(features, targets):  # 442 patients with 10 features each
    covariance = features @ features.T + 0.5 * np.eye(len(features))
    misfit = targets @ np.linalg.inv(covariance) @ targets
    return -0.5 * misfit - 0.5 * np.log(np.linalg.det(covariance))


def cross_entropy(weights, images, is_large):  # of handwritten digits, five and above
    probability = 1 / (1 + np.exp(-images @ weights))
    return -(is_large * np.log(probability) + (1 - is_large) * np.log(1 - probability)).mean()


def oscillator(start, stiffness):  # the energy after 1,000 steps in time
    position, velocity = start
    for _ in range(1000):
        velocity = velocity - 0.01 * stiffness * position
        position = position + 0.01 * velocity
    return (0.5 * velocity**2 + 0.5 * stiffness * position**2).sum()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="print a report of each program")
    verbose = parser.parse_args().verbose
    warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of what overflows
    random = np.random.default_rng(0)
    features, targets = load_diabetes(return_X_y=True)
    targets = (targets - targets.mean()) / targets.std()
    images, labels = load_digits(return_X_y=True)

    vector, matrix = random.normal(size=500), random.normal(size=(500, 500))
    show(log_density, (vector, matrix), "The determinant overflows in NumPy; esat needs none.", verbose)
    show(
        gaussian_process,
        (features, targets),
        "NumPy inverts a matrix of 442 x 442; esat solves with one of 10 x 10.",
        verbose,
    )
    arguments = random.normal(size=64), images, (labels >= 5).astype(float)
    show(cross_entropy, arguments, "1 - probability is 0 in NumPy; esat's form has all digits.", verbose)
    start = np.ones((2, 50))
    note = "A plain loop becomes one compiled loop. It has a gradient:"
    show(oscillator, (start, 2.0), note, verbose)
    slope = esat.grad(oscillator, argnums=1)
    step = 1e-6
    difference = (oscillator(start, 2 + step) - oscillator(start, 2 - step)) / (2 * step)
    print(f"  by esat.grad         {float(slope(start, 2.0)):.9f}")
    print(f"  by differences       {difference:.9f}\n")


def show(f: Callable[..., Any], arguments: tuple[Any, ...], note: str, verbose: bool) -> None:
    """Print a function, NumPy's answer, esat's, and how long each took."""
    Console(width=110).print(Syntax(inspect.getsource(f).strip(), "python", background_color="default"))
    compiled = esat.jit(f)
    answer = float(compiled(*arguments))
    compared = esat.compare_times(compiled, *arguments)
    print(f"  NumPy                {float(f(*arguments)):.9g}")
    print(f"  esat                 {answer:.9g}")
    print(f"  {note}")
    print("  " + "\n  ".join(str(compared).split("; ")) + "\n")
    if verbose:
        print(f"{compiled.report}\n\n{compiled.explain()}\n")


if __name__ == "__main__":
    main()
