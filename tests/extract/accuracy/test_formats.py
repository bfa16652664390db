"""Numbers of two doubles: as exact as they say, and judging by them finds the same forms bad."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from esat.extract.accuracy.wide_format.double_double import DoubleDouble, double_double
from esat.extract.accuracy.wide_format.formats import VARIABLE
from esat.extract.accuracy.wide_format.pair_functions import computes

mp = mpmath.mp.clone()
mp.prec = 500

FUNCTIONS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: lambda x, y: x + y, np.subtract: lambda x, y: x - y, np.multiply: lambda x, y: x * y,
    np.divide: lambda x, y: x / y, np.power: lambda x, y: abs(x) ** y, np.hypot: mp.hypot,
    np.arctan2: mp.atan2, np.maximum: max, np.fmin: min,
    np.remainder: lambda x, y: x - mp.floor(x / y) * y if abs(x / y) < 2**10 else mp.nan,
    np.floor_divide: lambda x, y: mp.floor(x / y) if abs(x / y) < 2**40 else mp.nan,
    np.exp: mp.exp, np.exp2: lambda x: mp.mpf(2) ** x, np.expm1: mp.expm1,
    np.log: lambda x: mp.log(abs(x)), np.log2: lambda x: mp.log(abs(x), 2),
    np.log10: lambda x: mp.log10(abs(x)), np.log1p: lambda x: mp.log1p(abs(x)),
    np.sqrt: lambda x: mp.sqrt(abs(x)), np.cbrt: lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    np.sin: mp.sin, np.cos: mp.cos, np.tan: mp.tan, np.arctan: mp.atan,
    np.sinh: mp.sinh, np.cosh: mp.cosh, np.tanh: mp.tanh, np.arcsinh: mp.asinh,
    np.floor: mp.floor, np.ceil: mp.ceil, np.rint: mp.nint, np.square: lambda x: x * x,
}  # fmt: skip
OF_SIZES = (np.log, np.log2, np.log10, np.log1p, np.sqrt)


def _numbers(seed: int) -> DoubleDouble:
    random = np.random.default_rng(seed)
    sizes = [
        1e-200,
        1e-17,
        1e-9,
        1e-5,
        0.01,
        0.3,
        0.9,
        1.0,
        1.7,
        3.0,
        12.0,
        40.0,
        400.0,
        1e4,
        1e9,
        1e17,
        1e200,
    ]
    high = np.repeat(sizes, 4) * random.uniform(0.7, 1.4, 4 * len(sizes))
    high = np.concatenate([high, 1 + random.uniform(-1e-9, 1e-9, 8)]) * random.choice(
        [-1.0, 1.0], len(high) + 8
    )
    high = random.permutation(high)
    return DoubleDouble(high, high * random.uniform(-1, 1, len(high)) * 2.0**-54)


def _exactly(x: DoubleDouble) -> list[Any]:
    return [mp.mpf(float(high)) + mp.mpf(float(low)) for high, low in zip(x.high, x.low, strict=True)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_functions_are_exact_to_ninety_bits(function: np.ufunc) -> None:
    operands = [_numbers(seed) for seed in range(function.nin)]
    if function in OF_SIZES or function is np.power:
        operands[0] = np.abs(operands[0])
    found: DoubleDouble = function(*operands)
    checked = 0
    for place, row in enumerate(zip(*map(_exactly, operands), strict=True)):
        wanted = FUNCTIONS[function](*row)
        if not 1e-250 < abs(wanted) < 1e300:
            continue
        value = mp.mpf(float(found.high[place])) + mp.mpf(float(found.low[place]))
        assert abs(value - wanted) <= abs(wanted) * mp.mpf(2) ** -90, (row, value, wanted)
        checked += 1
    assert checked >= 20


@pytest.mark.parametrize(
    ("function", "reference"),
    [(np.arcsin, mp.asin), (np.arccos, mp.acos), (np.arctanh, mp.atanh)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_functions_of_the_unit_interval(function: np.ufunc, reference: Callable[[Any], Any]) -> None:
    values = np.array([1e-17, -1e-9, 0.01, -0.3, 0.7, 0.99, -1 + 1e-9, 1 - 1e-15])
    found = function(double_double(values))
    for value, high, low in zip(values, found.high, found.low, strict=True):
        wanted = reference(mp.mpf(float(value)))
        assert abs(mp.mpf(float(high)) + mp.mpf(float(low)) - wanted) <= abs(wanted) * mp.mpf(2) ** -90


@pytest.mark.parametrize(
    "function", [f for f in FUNCTIONS if f.nin == 1], ids=lambda function: function.__name__
)
def test_special_values_are_those_of_doubles(function: np.ufunc) -> None:
    values = np.array([0.0, np.inf, -np.inf, np.nan, 1e308, -1e308])
    with np.errstate(all="ignore"):
        wanted, found = function(values), function(double_double(values))
    np.testing.assert_array_equal(found.high[~np.isfinite(wanted)], wanted[~np.isfinite(wanted)])
    assert np.isfinite(found.high[np.isfinite(wanted)]).all()


def test_what_is_missing_is_refused() -> None:
    assert not computes(np.frexp)
    with pytest.raises(TypeError):
        np.frexp(double_double(1.0))
    with pytest.raises(TypeError, match="no array"):
        np.asarray(double_double(1.0))


def test_integers_are_exact() -> None:
    number = double_double(np.array([2**62 + 1, -(2**53) - 1]))
    assert _exactly(number) == [2**62 + 1, -(2**53) - 1]


VERDICTS = """
import json
import numpy as np
import esat
from esat.extract.accuracy.judge import judged
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.schedule import Budgets
from esat.graph import FunctionGraph
from esat.optimize.equality.search import saturated
from esat.rules import RULES
from esat.rules.language.query import Query

x, y = esat.vector("x"), esat.vector("y")
m = esat.matrix("m")
program = program_for(RULES.query(Query(include=("fast_run",))))
p = 1 / (1 + esat.exp(-x))
outputs = [
    [esat.log(p), p], [1 - p], [esat.sqrt(x * x + 1) - x], [esat.exp(x - y), esat.exp(x), esat.exp(y)],
    [x * (y + 1), x * y, x * y + x], [1 - esat.cos(x)], [x / y / y], [esat.log(1 + esat.exp(x))],
    [esat.log(esat.exp(m).sum(axis=1))], [esat.sinh(x) / esat.cosh(x)], [esat.log(x + 1) - esat.log(x)],
    [esat.atan(x + 1) - esat.atan(x)],
]
for results in outputs:
    found, _ = saturated(encode(FunctionGraph([x, y, m], results)), program, Budgets())
    verdicts = judged(found)
    bad = verdicts.bits_too_many("best", found.arrays.class_of)
    print(json.dumps([np.flatnonzero(bad).tolist(), int(verdicts.judged.sum()), verdicts.outputs[0].points]))
"""


def _verdicts(form: str) -> list[list[Any]]:
    environment = {**os.environ, VARIABLE: form}
    run = subprocess.run(
        [sys.executable, "-c", VERDICTS],
        env=environment,
        cwd=Path(__file__).parent.parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_verdicts_do_not_depend_on_the_wide_format() -> None:
    usual, pairs = _verdicts(""), _verdicts("pairs")
    assert len(usual) == 12
    assert sum(len(bad) for bad, _, _ in usual) > 20
    for (bad, judged, points), (other, others_judged, other_points) in zip(usual, pairs, strict=True):
        assert bad == other
        assert judged == others_judged
        assert other_points >= 0.7 * points  # the range is that of doubles
