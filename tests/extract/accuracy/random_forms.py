"""Random sums, weights and constants of every size, compared with the form as it was written.

``python -m tests.extract.accuracy.random_forms --count 20000`` makes programs of one to three inputs,
optimizes them in turn in several modes and float dtypes, and evaluates them at points where rewritten forms
fail: weights at 0, at 1 and beside them, operands of very different size and equal ones, the top of the
range. It counts where the written form is right, by many digits, and the optimized one is worse.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import mpmath
import numpy as np

import esat
from esat.graph.algorithms.evaluate import evaluate

MODES = ("fast_run", "greedy", "o3", "unsafe")
DTYPES = ("float64", "float32", "float16")
POINTS = 48
RIGHT = 1.0
"""Bits up to which the written form is right."""
Array = np.ndarray[Any, Any]


class Program(NamedTuple):
    """An expression as nested tuples, and its inputs."""

    expression: Any
    inputs: tuple[str, ...]
    dtype: str

    def built(self, variables: dict[str, Any], module: Any) -> Any:
        """The expression over the values of a module."""
        return _built(self.expression, variables, module, np.dtype(self.dtype).type)


def _built(expression: Any, variables: dict[str, Any], module: Any, constant: Any) -> Any:
    if isinstance(expression, str):
        return variables[expression]
    if isinstance(expression, float):
        return constant(expression)
    name, *operands = expression
    values = [_built(operand, variables, module, constant) for operand in operands]
    match name:
        case "+":
            return values[0] + values[1]
        case "-":
            return values[0] - values[1]
        case "*":
            return values[0] * values[1]
        case "/":
            return values[0] / values[1]
        case "sum":
            return values[0].sum() if module is not mpmath else mpmath.fsum(values[0])
    return getattr(module, name)(values[0])


class Maker:
    """Makes programs."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.dtype = DTYPES[int(self._random.integers(0, 6)) // 2 if self._random.random() < 0.7 else 0]
        self._inputs = "abt"[: int(self._random.integers(1, 4))] if self._random.random() < 0.8 else "abt"

    def program(self) -> Program:
        """One program."""
        expression = self._value(int(self._random.integers(2, 5)))
        if self._random.random() < 0.3:
            expression = (self._choice("log", "sqrt", "exp", "log1p"), expression)
        used = tuple(sorted(set(_inputs_of(expression))))
        return Program(expression if used else ("+", expression, "a"), used or ("a",), self.dtype)

    def _choice(self, *options: Any) -> Any:
        return options[int(self._random.integers(0, len(options)))]

    def _value(self, depth: int) -> Any:
        if depth == 0 or self._random.random() < 0.15:
            return self._leaf()
        kind = self._random.random()
        if kind < 0.12:  # a mixture
            weight, one, other = self._choice(*self._inputs), self._value(depth - 1), self._leaf()
            return ("+", ("*", ("-", 1.0, weight), one), ("*", weight, other))
        if kind < 0.22:  # a weighted mean
            share = self._choice(0.25, 0.5, 0.125, 0.1, 1 / 3)
            return ("+", ("*", self._value(depth - 1), share), ("*", self._leaf(), 1.0 - share))
        if kind < 0.32:
            return ("/", self._value(depth - 1), self._choice(2.0, 4.0, 3.0, 7.0, 0.5, self._leaf()))
        if kind < 0.55:  # constants of every size
            return (self._choice("+", "-"), self._value(depth - 1), self._constant())
        if kind < 0.62:
            return (self._choice("-", "+"), self._constant(), self._value(depth - 1))
        return (self._choice("+", "-", "*", "+", "-"), self._value(depth - 1), self._value(depth - 1))

    def _leaf(self) -> Any:
        return self._choice(*self._inputs) if self._random.random() < 0.85 else self._constant()

    def _constant(self) -> float:
        exponents = {"float64": (-17, 18), "float32": (-9, 9), "float16": (-3, 4)}[self.dtype]
        number = 10.0 ** int(self._random.integers(*exponents)) * self._choice(1.0, 1.0, 2.0, 3.0, 1.5, 0.7)
        number = 1.0 if self._random.random() < 0.3 else number
        return float(np.dtype(self.dtype).type(number))


def _inputs_of(expression: Any) -> Iterator[str]:
    if isinstance(expression, str):
        yield expression
    elif isinstance(expression, tuple):
        for operand in expression[1:]:
            yield from _inputs_of(operand)


def _constants_of(expression: Any) -> Iterator[float]:
    if isinstance(expression, float):
        yield expression
    elif isinstance(expression, tuple):
        for operand in expression[1:]:
            yield from _constants_of(operand)


def points(program: Program, seed: int) -> dict[str, Array]:
    """Values of the inputs: each is a weight, a constant of the program, of any size, equal to another, or
    large."""
    random = np.random.default_rng([seed, 1])
    dtype = np.dtype(program.dtype)
    info = np.finfo(dtype)
    eps, most = float(info.eps), float(info.max)
    constants = [1.0, *_constants_of(program.expression)]
    span = np.log10(1 / eps) + 1
    found: dict[str, Array] = {}
    same = most ** random.choice([1.0, 1.0, 0.5], POINTS) * random.uniform(0.6, 0.99, POINTS)
    role_of_point = random.random(POINTS)
    for name in program.inputs:
        role = random.integers(0, 5, POINTS)
        weight = random.choice([0.0, 1.0, 1.0 - eps / 2, 1.0 + eps, 0.5, 0.3], POINTS)
        constant = random.choice(constants, POINTS) * random.choice([1.0, 1.0, -1.0, 1 + eps], POINTS)
        sized = random.choice([-1.0, 1.0, 1.0], POINTS) * 10.0 ** random.uniform(-span, span, POINTS)
        value = np.select(
            [role == 0, role == 1, role == 2, role == 3], [weight, constant, constant, sized], sized
        )
        if found:
            other = found[next(iter(found))].astype(float)
            value = np.where(role == 4, other * random.choice([1.0, 1.0, -1.0, 1 + eps], POINTS), value)
        value = np.where(role_of_point < 0.12, same, value)
        with np.errstate(over="ignore"):
            found[name] = np.clip(value, -most, most).astype(dtype)
    return found


def bits_lost(values: Array, truths: list[Any], dtype: str) -> Array:
    """Bits by which values differ from truths; 64 for Inf and NaN."""
    info = np.finfo(dtype)
    least = float(info.smallest_normal)
    lost = np.empty(len(values))
    for place, (value, truth) in enumerate(zip(values.tolist(), truths, strict=True)):
        if not np.isfinite(value):
            lost[place] = 64.0
            continue
        ulp = max(float(abs(truth)), least) * float(info.eps)
        lost[place] = float(mpmath.log(abs(mpmath.mpf(value) - truth) / ulp + 1, 2))
    return lost


class Finding(NamedTuple):
    """A point at which the optimized form is worse."""

    seed: int
    mode: str
    program: Program
    at: dict[str, float]
    written: float
    optimized: float
    bits: tuple[float, float]


def compared(seed: int, mode: str) -> tuple[int, list[Finding]]:
    """Points at which the written form is right, and those of them at which the optimized one is worse."""
    program = Maker(seed).program()
    values = points(program, seed)
    dtype = np.dtype(program.dtype)
    variables = {name: esat.tensor(name, dtype=program.dtype, shape=(None,)) for name in program.inputs}
    graph = esat.Graph(list(variables.values()), [program.built(variables, esat)], on_unused_input="ignore")
    optimized = esat.compile(graph, mode=mode).optimized
    with np.errstate(all="ignore"):
        written = np.asarray(program.built(values, np)) * np.ones(POINTS, dtype)
        (found,) = evaluate(optimized.outputs, dict(zip(optimized.inputs, values.values(), strict=True)))
        found = np.asarray(found) * np.ones(POINTS, dtype)
    truths, known = [], np.zeros(POINTS, bool)
    for place in range(POINTS):
        truth = _truth(program, {name: float(one[place]) for name, one in values.items()})
        known[place] = truth is not None and abs(truth) <= float(np.finfo(dtype).max)
        truths.append(truth if known[place] else mpmath.mpf(0))
    of_written, of_found = (bits_lost(one, truths, program.dtype) for one in (written, found))
    right = known & (of_written <= RIGHT)
    worse = right & (of_found > of_written + 1.0)
    findings = [
        Finding(
            seed,
            mode,
            program,
            {name: float(one[place]) for name, one in values.items()},
            float(written[place]),
            float(found[place]),
            (float(of_written[place]), float(of_found[place])),
        )
        for place in np.flatnonzero(worse)
    ]
    return int(right.sum()), findings


def _truth(program: Program, at: dict[str, float]) -> Any:
    large = max([1.0, *map(abs, at.values())]) > 1e20
    with mpmath.workdps(700 if large else 100):  # float64 spans 632 digits
        try:
            expression = _with_known_parts(program.expression, np.dtype(program.dtype).type)
            value = _built(expression, {k: mpmath.mpf(v) for k, v in at.items()}, _Real, mpmath.mpf)
        except (ZeroDivisionError, ValueError, OverflowError):
            return None
        return value if isinstance(value, mpmath.mpf) and mpmath.isfinite(value) else None


def _with_known_parts(expression: Any, constant: Any) -> Any:
    """An expression in which what is made of constants alone is a constant, as it is when a graph is
    built."""
    if not isinstance(expression, tuple):
        return expression
    if not any(True for _ in _inputs_of(expression)):
        with np.errstate(all="ignore"):
            return float(_built(expression, {}, np, constant))
    return (expression[0], *(_with_known_parts(operand, constant) for operand in expression[1:]))


class _Real:
    """Functions of mpmath, where they are real."""

    sqrt, log, exp, log1p = (staticmethod(getattr(mpmath, name)) for name in ("sqrt", "log", "exp", "log1p"))


def main() -> None:
    """Compare many programs, and tell of the worst."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    begin, right, worse = time.process_time(), 0, []
    for seed in range(options.first, options.first + options.count):
        at, findings = compared(seed, MODES[seed % len(MODES)])
        right += at
        if findings:
            worst = max(findings, key=lambda finding: finding.bits[1])
            worse.append(worst)
            if worst.bits[1] > 4:
                print(f"{worst.bits[1]:5.1f} bits for {worst.bits[0]:.1f}: {worst}", flush=True)
    digits = sum(finding.bits[1] > 4 for finding in worse)
    print(
        f"{options.count} programs, {right} points where the written form is right: {len(worse)} programs are"
        f" worse by more than a bit somewhere, {digits} of them lose more than 4 bits;"
        f" {time.process_time() - begin:.0f} s"
    )


if __name__ == "__main__":
    main()
