"""Values that no single form computes accurately everywhere get two forms and a condition, on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import esat
from esat.errors import ModeError
from esat.graph import Variable

mp = mpmath.mp.clone()
mp.dps = 200

# What a user may know: good where the sum cancels, and bad elsewhere.
CONJUGATE = """
(rewrite (Add (Sqrt x) y) (Div (Sub x (Sqr y)) (Sub (Sqrt x) y))
  :when ((float-dtype (dt x))) :name "conjugate")
"""
OTHERS = ("root-plus-its-number", "root-minus-its-number", "root-plus-its-number-below")
ONE = esat.Mode("fast_run").excluding(*OTHERS, "root-minus-its-number-below")
TWO = esat.Mode(ONE, regimes=True)

Formula = tuple[Callable[..., Variable], Callable[..., Any]]
FORMULAS: dict[str, Formula] = {
    "p + sqrt(p^2 + 1)": (lambda p: p + esat.sqrt(p * p + 1), lambda p: p + mp.sqrt(p * p + 1)),
    "its negative": (lambda p: -p - esat.sqrt(p * p + 3), lambda p: -p - mp.sqrt(p * p + 3)),
    "its third part": (lambda p: (p + esat.sqrt(2 + p * p)) / 3, lambda p: (p + mp.sqrt(2 + p * p)) / 3),
}


def _points(count: int = 400) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(3)
    points: np.ndarray[Any, Any] = 10.0 ** random.uniform(-6, 7, count) * random.choice([-1.0, 1.0], count)
    return points


def _bits(values: np.ndarray[Any, Any], reference: Callable[..., Any], points: np.ndarray[Any, Any]) -> Any:
    found = []
    for value, point in zip(values, points, strict=True):
        wanted = reference(mp.mpf(float(point)))
        error = abs(mp.mpf(float(value)) / wanted - 1) if np.isfinite(value) else mp.mpf(2) ** 11
        found.append(min(64.0, max(0.0, float(mp.log(error * 2**53 + mp.mpf(2) ** -20, 2)))))
    return np.array(found)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("ranks", [1, 2])
def test_two_forms_and_a_condition(name: str, ranks: int) -> None:
    build, reference = FORMULAS[name]
    p = esat.tensor("p", shape=(None,) * ranks)
    points = _points()
    shape = (-1,) + (20,) * (ranks - 1)
    one, two = (esat.compile(esat.Graph([p], [build(p)]), mode, rules=CONJUGATE) for mode in (ONE, TWO))
    before, after = (_bits(np.ravel(f(points.reshape(shape))), reference, points) for f in (one, two))
    assert before.max() > 40
    assert after.max() < 12
    assert after.mean() < 2
    assert one.report.regimes == ()
    (line,) = two.report.regimes
    assert "where p < " in line
    assert line in str(two.report)
    assert line in str(two.explain())


def test_float32() -> None:
    p = esat.vector("p", dtype="float32")
    build, reference = FORMULAS["p + sqrt(p^2 + 1)"]
    f = esat.compile(esat.Graph([p], [build(p)]), TWO, rules=CONJUGATE)
    points = _points().astype(np.float32)
    points = points[np.abs(points) < 1e5]
    assert f.report.regimes
    assert (_bits(f(points), reference, points) - 29).max() < 8


def test_parts_between_other_ops() -> None:
    p, m = esat.vector("p"), esat.matrix("m")
    build, reference = FORMULAS["p + sqrt(p^2 + 1)"]
    graph = esat.Graph([m, p], [esat.sqrt(build(m @ p)).sum()])
    f = esat.compile(graph, TWO, rules=CONJUGATE)
    assert f.report.regimes
    points = -np.abs(_points(50))
    wanted = mp.fsum(mp.sqrt(reference(mp.mpf(float(point)))) for point in points)
    assert abs(f(np.eye(50), points) - float(wanted)) < 1e-10 * abs(float(wanted))


def test_gradients_take_nothing_from_the_other_form() -> None:
    p = esat.vector("p")
    value = FORMULAS["p + sqrt(p^2 + 1)"][0](p)
    f = esat.compile(esat.Graph([p], [value, esat.grad(value.sum(), p)]), TWO, rules=CONJUGATE)
    points = np.concatenate([_points(), [0.0, 1e150, -1e150, 1e200, -1e200]])
    found, slope = f(points)
    assert np.isfinite(slope).all()
    inside = np.abs(points) < 1e7
    bits = _bits(found[inside], FORMULAS["p + sqrt(p^2 + 1)"][1], points[inside])
    assert bits.max() < 12
    wanted = [float(1 + x / mp.sqrt(x * x + 1)) for x in map(mp.mpf, points[inside].tolist())]
    gap = np.abs(slope[inside] - wanted)
    assert (gap <= 1e-15 * np.maximum(1.0, np.abs(wanted))).all()


NEVER_WORSE: dict[str, Formula] = {
    "log1p": (lambda x: esat.log(1 + esat.exp(x)), lambda x: mp.log(1 + mp.exp(x))),
    "x - sin x": (lambda x: x - esat.sin(x), lambda x: x - mp.sin(x)),
    "sigmoid": (lambda x: 1 - 1 / (1 + esat.exp(-x)), lambda x: 1 / (1 + mp.exp(x))),
    "tanh x - x": (lambda x: esat.tanh(x) - x, lambda x: mp.tanh(x) - x),
    "roots": (lambda x: esat.sqrt(x * x + 1) - x, lambda x: mp.sqrt(x * x + 1) - x),
    "quotient": (lambda x: (x * x - 1) / (x - 1), lambda x: x + 1),
    "cosine": (lambda x: (1 - esat.cos(x)) / (x * x), lambda x: (1 - mp.cos(x)) / (x * x)),
    "inverses": (lambda x: 1 / (x + 1) - 1 / x, lambda x: -1 / (x * (x + 1))),
}


@pytest.mark.parametrize("name", NEVER_WORSE)
def test_never_worse_than_one_form(name: str) -> None:
    build, reference = NEVER_WORSE[name]
    x = esat.vector("x")
    random = np.random.default_rng(5)
    points = 10.0 ** random.uniform(-7, 2.5, 300) * random.choice([-1.0, 1.0], 300)
    one, two = (esat.compile(esat.Graph([x], [build(x)]), mode) for mode in ("fast_run", TWO))
    before, after = (
        _bits(f(points), reference, points)
        for f in (one, esat.compile(esat.Graph([x], [build(x)]), esat.Mode("fast_run", regimes=True)))
    )
    assert after.mean() <= before.mean() + 0.25
    assert after.max() <= before.max() + 2
    assert two(points).shape == points.shape


def test_nothing_changes_unasked() -> None:
    assert not esat.Mode("fast_run").regimes
    x = esat.vector("x")
    f = esat.compile(esat.Graph([x], [esat.exp(x) * 2]), esat.Mode("fast_run", regimes=True))
    assert f.report.regimes == ()
    ignoring = esat.Mode(TWO, accuracy="ignore")
    build = FORMULAS["p + sqrt(p^2 + 1)"][0]
    assert esat.compile(esat.Graph([x], [build(x)]), ignoring, rules=CONJUGATE).report.regimes == ()


def test_the_setting_is_a_flag() -> None:
    with pytest.raises(ModeError, match="regimes"):
        esat.Mode("fast_run", regimes="two")
