"""Is an output as accurate beside others as alone? Random programs of forms that are equal over the reals.

``python -m benchmarks.companions [--programs N] [--seed S]``

An output is drawn from a family of equal forms, its companions from the same family and from others. The
program of the output alone and the program of all are computed at the same points, and both compared with
450 digits. Reported is each output that loses more than a bit in the mean against itself compiled alone, or
becomes Inf or NaN where it was none. Graphs are optimized and interpreted, not compiled into kernels.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np
from numpy.typing import NDArray

import esat
from esat.egraph.preparation.rule_program import RuleProgram, program_for
from esat.egraph.saturation.schedule import Budgets
from esat.extract.accuracy.judge import judged
from esat.graph import FunctionGraph, Variable
from esat.graph.algorithms.evaluate import evaluate
from esat.optimize.equality.optimizer import optimize
from esat.rules import RULES
from esat.rules.language.query import Query

Form = Callable[[Any, Any, Any], Any]
"""A function of a namespace and two operands."""

POINTS = 24
WORST = 64.0
_mp = mpmath.mp.clone()
_mp.dps = 450


class _Exact:
    """The functions that forms use, in 450 digits."""

    exp, log, log1p, expm1 = _mp.exp, _mp.log, _mp.log1p, _mp.expm1
    sin, cos, sinh, cosh, tanh, sqrt = _mp.sin, _mp.cos, _mp.sinh, _mp.cosh, _mp.tanh, _mp.sqrt

    @staticmethod
    def sigmoid(x: Any) -> Any:
        return 1 / (1 + _mp.exp(-x))

    @staticmethod
    def softplus(x: Any) -> Any:
        return _mp.log1p(_mp.exp(x))


FAMILIES: Sequence[Sequence[Form]] = (
    (
        lambda f, x, y: f.sigmoid(x),
        lambda f, x, y: 1 / (1 + f.exp(-x)),
        lambda f, x, y: f.exp(x) / (1 + f.exp(x)),
        lambda f, x, y: 1 - f.sigmoid(-x),
    ),
    (
        lambda f, x, y: f.softplus(x),
        lambda f, x, y: f.log(1 + f.exp(x)),
        lambda f, x, y: -f.log(f.sigmoid(-x)),
        lambda f, x, y: -f.log(1 - f.sigmoid(x)),
    ),
    (lambda f, x, y: f.exp(x - y), lambda f, x, y: f.exp(x) / f.exp(y), lambda f, x, y: f.exp(x) * f.exp(-y)),
    (lambda f, x, y: f.tanh(x), lambda f, x, y: f.sinh(x) / f.cosh(x)),
    (lambda f, x, y: f.sin(x) ** 2, lambda f, x, y: 1 - f.cos(x) ** 2),
    (lambda f, x, y: x * (y + 1), lambda f, x, y: x * y + x),
    (lambda f, x, y: x / y / y, lambda f, x, y: x / (y * y)),
    (lambda f, x, y: f.expm1(x), lambda f, x, y: f.exp(x) - 1),
    (lambda f, x, y: f.log1p(x * x), lambda f, x, y: f.log(1 + x * x)),
    (lambda f, x, y: (x - y) * (x + y), lambda f, x, y: x * x - y * y),
    (lambda f, x, y: x * f.sigmoid(x), lambda f, x, y: x / (1 + f.exp(-x))),
    (
        lambda f, x, y: f.exp(x) / (f.exp(x) + f.exp(y)),
        lambda f, x, y: f.sigmoid(x - y),
        lambda f, x, y: 1 / (1 + f.exp(y) / f.exp(x)),
    ),
    (lambda f, x, y: x * y / y, lambda f, x, y: x),
    (lambda f, x, y: (x + y) - y, lambda f, x, y: x),
)


class Regression(NamedTuple):
    """An output that lost by its companions."""

    program: int
    alone: float
    beside: float
    form: str
    text: str


def drawn(random: np.random.Generator) -> tuple[Form, list[Form]]:
    """A form, and forms to compute beside it."""
    family = FAMILIES[random.integers(len(FAMILIES))]
    target = family[random.integers(len(family))]
    companions = []
    for _ in range(random.integers(1, 5)):
        other = family if random.random() < 0.6 else FAMILIES[random.integers(len(FAMILIES))]
        companions.append(other[random.integers(len(other))])
    return target, companions


def values(random: np.random.Generator) -> list[NDArray[np.float64]]:
    """Points: ordinary, tiny, large, and close to each other or to -1."""
    sizes = 10.0 ** random.uniform(-12, 2.95, (2, POINTS))
    x, y = sizes * random.choice([-1.0, 1.0], (2, POINTS))
    y[::4] = x[::4] * (1 + 1e-9 * random.normal(size=len(x[::4])))
    y[1::6] = -1 + 1e-13 * random.normal(size=len(y[1::6]))
    return [x, y]


def bits(value: NDArray[Any], truths: Sequence[Any]) -> NDArray[np.float64]:
    """Bits lost at each point; NaN where the truth is no float."""
    found = []
    for result, truth in zip(value.tolist(), truths, strict=True):
        right = float(truth) if truth is not None else np.nan
        if not np.isfinite(right):
            found.append(np.nan)
        elif result == right:
            found.append(0.0)
        elif not np.isfinite(result):
            found.append(WORST)
        else:
            ulp = _mp.mpf(float(np.spacing(max(abs(right), 2.3e-308))))
            found.append(min(WORST, float(_mp.log(1 + abs(_mp.mpf(result) - truth) / ulp, 2))))
    return np.array(found)


def _truth(form: Form, x: float, y: float) -> Any:
    try:
        return form(_Exact, _mp.mpf(x), _mp.mpf(y))
    except ZeroDivisionError:
        return None


def first_output(
    program: RuleProgram, forms: Sequence[Form], at: Sequence[NDArray[Any]], sized: bool
) -> NDArray[Any]:
    """The value of the first form where all of them are computed."""
    shape = (POINTS,) if sized else (None,)
    inputs: list[Variable] = [esat.tensor(name, shape=shape) for name in "xy"]
    outputs = [form(esat, *inputs) for form in forms]
    used = [
        (variable, column) for variable, column in zip(inputs, at, strict=True) if _uses(outputs, variable)
    ]
    graph = FunctionGraph([variable for variable, _ in used], outputs)
    graph = optimize(graph, program, Budgets(), judge=judged)[0]
    known = dict(zip(graph.inputs, [column for _, column in used], strict=True))
    with np.errstate(all="ignore"):
        found: NDArray[Any] = evaluate(graph.outputs[:1], known)[0]
    return found


def _uses(outputs: Sequence[Variable], variable: Variable) -> bool:
    pending, seen = list(outputs), set[Variable]()
    while pending:
        one = pending.pop()
        if one is variable:
            return True
        if one not in seen and one.owner is not None:
            seen.add(one)
            pending += one.owner.inputs
    return False


def regressions(count: int, seed: int, report: Callable[[str], object] = lambda _: None) -> list[Regression]:
    """Outputs of random programs that are worse than alone."""
    program = program_for(RULES.query(Query(include=("fast_run",))))
    found = []
    for number in range(count):
        random = np.random.default_rng([seed, number])
        target, companions = drawn(random)
        at = values(random)
        sized = bool(random.random() < 0.5)
        truths = [_truth(target, x, y) for x, y in zip(*(column.tolist() for column in at), strict=True)]
        alone = bits(first_output(program, [target], at, False), truths)
        beside = bits(first_output(program, [target, *companions], at, sized), truths)
        known = ~np.isnan(alone)
        if known.any():
            lost, was = float(beside[known].mean()), float(alone[known].mean())
            broken = bool(((beside == WORST) & (alone < WORST))[known].any())
            if lost > was + 1 or broken:
                index = next((i, f.index(target)) for i, f in enumerate(FAMILIES) if target in f)
                names = [next((i, f.index(c)) for i, f in enumerate(FAMILIES) if c in f) for c in companions]
                found.append(Regression(number, was, lost, str(index), str(names)))
                report(f"{found[-1]}")
        if (number + 1) % 100 == 0:
            report(f"{number + 1} programs, {len(found)} outputs worse than alone")
    return found


def main() -> int:
    """Try random programs and report; the number of outputs that are worse."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = regressions(options.programs, options.seed, lambda line: print(line, flush=True))
    print(f"{options.programs} programs: {len(found)} outputs are worse beside others than alone")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
