"""Rewrites that would be a loss: fewer operations that take longer are not taken.

Run ``python -m benchmarks.losses``. Each case has two equal forms, of which the second does fewer
floating-point operations from some size on. Both are compiled as they are written and timed in turns, at
sizes where the second is slower and at sizes where it is faster; then ``fast_run`` gets the first form, and
chooses. The exit status is the number of choices slower than the faster form by more than a tenth.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import esat

TOLERANCE = 1.1
CLOCK = 5e-8
"""Seconds below which times are not told apart."""
AS_WRITTEN = esat.Mode("fast_run", query=esat.Query(["inplace", "fusion"]), variants=0)

Form = Callable[..., esat.Variable]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """Two forms of one expression."""

    name: str
    plain: Form
    fewer: Form
    shapes: tuple[Shape, ...]
    floats: tuple[float, float]


def cases() -> Iterator[Case]:
    """Forms, shapes of the inputs, and operations of both forms."""
    for n in (2, 4, 8, 64, 400):
        yield Case(
            f"sum(W H), n = {n}",
            lambda w, h: (w @ h).sum(),
            lambda w, h: (w.sum(axis=0) * h.sum(axis=1)).sum(),
            ((n, n), (n, n)),
            (2.0 * n**3 + n**2, 2.0 * n**2 + 2 * n),
        )
    for n in (2, 8, 64, 400):
        yield Case(
            f"A B + A C, n = {n}",
            lambda a, b, c: a @ b + a @ c,
            lambda a, b, c: a @ (b + c),
            ((n, n),) * 3,
            (4.0 * n**3 + n**2, 2.0 * n**3 + n**2),
        )
    for n in (2, 16, 64, 512):
        half = n // 2
        yield Case(
            f"A B by Strassen's seven products, n = {n}",
            lambda a, b: a @ b,
            lambda a, b, half=half: _strassen(a, b, half),
            ((n, n), (n, n)),
            (2.0 * n**3, 1.75 * n**3 + 4.5 * n**2),
        )
    for n, k in ((400, 1), (400, 4), (1500, 1)):
        yield Case(
            f"U V + U W with {k} inner, n = {n}",
            lambda u, v, w: u @ v + u @ w,
            lambda u, v, w: u @ (v + w),
            ((n, k), (k, n), (k, n)),
            (4.0 * n * n * k + n * n, 2.0 * n * n * k + k * n),
        )


def _strassen(a: esat.Variable, b: esat.Variable, half: int) -> esat.Variable:
    """One step of Strassen's algorithm ("Gaussian elimination is not optimal", 1969)."""
    a11, a12, a21, a22 = a[:half, :half], a[:half, half:], a[half:, :half], a[half:, half:]
    b11, b12, b21, b22 = b[:half, :half], b[:half, half:], b[half:, :half], b[half:, half:]
    m1 = (a11 + a22) @ (b11 + b22)
    m2, m3 = (a21 + a22) @ b11, a11 @ (b12 - b22)
    m4, m5 = a22 @ (b21 - b11), (a11 + a12) @ b22
    m6, m7 = (a21 - a11) @ (b11 + b12), (a12 - a22) @ (b21 + b22)
    top = esat.concatenate([m1 + m4 - m5 + m7, m3 + m5], axis=1)
    bottom = esat.concatenate([m2 + m4, m1 - m2 + m3 + m6], axis=1)
    return esat.concatenate([top, bottom], axis=0)


def compiled(form: Form, shapes: tuple[Shape, ...], mode: str | esat.Mode) -> Callable[..., object]:
    """A form as a function of arrays of these shapes."""
    inputs = [esat.tensor(f"x{place}", shape=shape) for place, shape in enumerate(shapes)]
    function: Callable[..., object] = esat.compile(esat.Graph(inputs, [form(*inputs)]), mode=mode)
    return function


def seconds(functions: list[Callable[..., object]], arrays: list[np.ndarray], budget: float) -> list[float]:
    """Best time of each function, in turns."""
    best = [np.inf] * len(functions)
    repeats = [1] * len(functions)
    deadline = time.perf_counter() + budget
    rounds = 0
    while rounds < 5 or time.perf_counter() < deadline:
        for place, function in enumerate(functions):
            begin = time.perf_counter()
            for _ in range(repeats[place]):
                function(*arrays)
            best[place] = min(best[place], (time.perf_counter() - begin) / repeats[place])
            repeats[place] = max(1, int(2e-4 / best[place]))
        rounds += 1
    return best


def main() -> int:
    """Print the table; the number of choices that were wrong."""
    rng = np.random.default_rng(0)
    wrong = 0
    print(f"{'':44s}{'flops':>8s}{'as written':>13s}{'fewer flops':>13s}{'fast_run':>13s}")
    for case in cases():
        arrays = [rng.normal(size=shape) for shape in case.shapes]
        functions = [
            compiled(case.plain, case.shapes, AS_WRITTEN),
            compiled(case.fewer, case.shapes, AS_WRITTEN),
            compiled(case.plain, case.shapes, "fast_run"),
        ]
        results = [np.asarray(function(*arrays)) for function in functions]
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], rtol=1e-7, atol=1e-7)
        plain, fewer, chosen = seconds(functions, arrays, 0.3)
        good = chosen <= TOLERANCE * min(plain, fewer) + CLOCK
        wrong += not good
        ratio = case.floats[1] / case.floats[0]
        times = "".join(f"{value * 1e6:10.2f} us" for value in (plain, fewer, chosen))
        print(f"{case.name:44s}{ratio:8.3f}{times}{'' if good else '   slower'}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
