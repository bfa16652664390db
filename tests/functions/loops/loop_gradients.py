"""Derivatives of random programs with loops, against differences.

``python -m tests.functions.loops.loop_gradients 300`` tries 300 of them, ``300 100`` those from 100 on, and
``300 100 20`` second derivatives of 20 of these.
Steps multiply states by matrices, so that Jacobians of steps do not commute.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import esat

from .loop_programs import FOOTER, HEADER, HEADS, PLAIN, arguments, loaded

MATRICES = (
    ("v = np.tanh(M @ v) + 0.3 * X[t]",),
    ("v = 0.2 * (M @ v) * (M.T @ X[t]) + v * 0.5",),
    ("v, u = 0.3 * (M @ u) + X[t], np.sin(M.T @ v)",),
    ("V[t] += 0.4 * (M @ V[t - 1])",),
    ("W = 0.5 * W + np.outer(v, X[t])", "v = 0.3 * (W @ v) + X[t]"),
    ("y = y + 0.1 * (v @ (M @ v))", "v = 0.5 * v + np.cos(M @ X[t])"),
    ("v = np.linalg.solve(M @ M.T + 3.0 * np.eye(3), v) + X[t]",),
    ("if t % 2 == 0:", "    v = 0.3 * (M @ v)", "else:", "    v = v + x[t] * X[t]"),
)
SMOOTH = tuple(lines for lines in PLAIN if "np.where" not in lines[0] and "T - 1 - t" not in lines[0])
STEP = 1e-5
LARGEST = 1e4


def gradient_text(generator):
    """The text of a program whose results are smooth in its arguments."""
    lines = [HEADER, "    u = np.full(3, 0.5)"]
    for _ in range(generator.integers(1, 3)):
        lines.append(f"    for t in {generator.choice(HEADS)}:")
        for place in range(generator.integers(1, 4)):
            group = MATRICES if place == 0 or generator.random() < 0.3 else SMOOTH
            lines += [f"        {line}" for line in group[generator.integers(len(group))]]
    return "\n".join([*lines, FOOTER])


def weighed(program, x, X, M):
    """A number that all results of a program decide."""
    return sum(np.sum(np.sin(0.5 * one) + 0.1 * one) for one in program(x, X, M))


def errors(text, folder, name, generator, steps=12):
    """Relative errors of value, gradient, tangent and batch of a program: four numbers."""
    program = loaded(text, folder, name)
    given = arguments(generator, steps)
    given = (given[0], given[1], 0.5 * given[2])

    def cost(*given):
        return weighed(program, *given)

    value, gradients = esat.value_and_grad(cost, argnums=(0, 1, 2))(*given)
    along = [generator.standard_normal(one.shape) for one in given]

    def difference(step):
        ends = [
            cost(*(one + s * step * part for one, part in zip(given, along, strict=True))) for s in (1, -1)
        ]
        return (ends[0] - ends[1]) / (2 * step)

    if any(np.max(np.abs(one)) > LARGEST for one in program(*(one.copy() for one in given))):
        return np.zeros(4)  # differences cannot follow the sines of such results
    slope = (4 * difference(STEP / 2) - difference(STEP)) / 3  # L. F. Richardson, 1911
    wanted = float(cost(*(one.copy() for one in given)))
    size = 1.0 + abs(slope) + abs(wanted)
    by_gradient = sum(float(np.sum(one * part)) for one, part in zip(gradients, along, strict=True))
    _, tangent = esat.jvp(cost, given, tuple(along))
    batch = [np.stack([one, 0.5 * one]) for one in given]
    both = esat.vmap(cost)(*batch)
    halves = float(cost(*(0.5 * one for one in given)))
    return np.abs([
        (float(value) - wanted) / size,
        (by_gradient - slope) / size,
        (float(tangent) - slope) / size,
        max(abs(float(both[0]) - wanted), abs(float(both[1]) - halves)) / size,
    ])  # fmt: skip


BOUNDS = np.array([1e-9, 1e-6, 1e-6, 1e-9])
CURVED_STEPS = 5
CURVED_BOUND = 1e-5


def curvature_errors(text, folder, name, generator):
    """Relative errors of second derivatives by two parameters: of the Hessian, of a tangent of the gradient,
    and of a batch of gradients, against differences of gradients."""
    program = loaded(text, folder, name)
    x, X, M = arguments(generator, CURVED_STEPS)

    def cost(scales):
        return weighed(program, scales[0] * x, scales[1] * X, 0.5 * M)

    def compiled(function):
        return esat.jit(function, mode="fast_compile")

    point, along = np.array([0.9, 0.7]), np.array([1.0, -0.5])
    slope = esat.grad(cost)
    gradient = compiled(slope)
    ends = [[gradient(point + s * STEP * one) for s in (1, -1)] for one in np.eye(2)]
    wanted = np.array([(above - below) / (2 * STEP) for above, below in ends])
    size = 1.0 + np.abs(wanted).max() + np.abs(gradient(point)).max()
    if size > LARGEST:
        return np.zeros(3)
    hessian = compiled(esat.hessian(cost))(point)
    tangent = compiled(lambda at: esat.jvp(slope, (at,), (along,))[1])(point)
    batch = compiled(esat.vmap(slope))(np.stack([point, 0.5 * point]))
    return np.array([
        np.abs(hessian - wanted).max(),
        np.abs(tangent - wanted @ along).max(),
        max(np.abs(row - gradient(one)).max() for row, one in zip(batch, (point, 0.5 * point), strict=True)),
    ]) / size  # fmt: skip


def main(count, first=0, curved=0):
    """Try so many programs, and second derivatives of so many; how many were wrong."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            generator = np.random.default_rng(seed)
            text = gradient_text(generator)
            try:
                found = errors(text, Path(folder), f"gradient_{seed}", generator)
                bends = np.zeros(3)
                if seed < first + curved:
                    bends = curvature_errors(text, Path(folder), f"curved_{seed}", generator)
            except esat.errors.EsatError as error:
                found = error
            if isinstance(found, Exception) or not (np.all(found < BOUNDS) and np.all(bends < CURVED_BOUND)):
                wrong += 1
                found = found if isinstance(found, Exception) else (found, bends)
                print(f"number {seed}: {found}\n{text}", flush=True)
    print(f"{count} programs, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
