"""Kinds of programs in which time alone chose forms that lose all digits."""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import esat
from esat.graph import Variable

mp = mpmath.mp.clone()
mp.dps = 400
E, LOG, S = esat.exp, esat.log, esat.sigmoid


def p(z: Any) -> Any:
    return 1 / (1 + E(-z))


def truth(z: Any) -> Any:
    return 1 / (1 + mp.exp(-z))


def entropy(z: Any, y: Any) -> Any:
    return -y * LOG(p(z)) - (1 - y) * LOG(1 - p(z))


Case = tuple[Callable[..., list[Variable]], Sequence[Sequence[float]], Callable[..., list[Any]]]

CASES: dict[str, Case] = {
    "-log p": (lambda z: [-LOG(p(z))], [[-800, -40, 3]], lambda z: [mp.log1p(mp.exp(-z))]),
    "cross entropy": (
        lambda z, y: [entropy(z, y)],
        [[-800, 800, 800, 40], [1, 0, 1, 0]],
        lambda z, y: [y * mp.log1p(mp.exp(-z)) + (1 - y) * mp.log1p(mp.exp(z))],
    ),
    "gradient of cross entropy": (
        lambda z, y: [esat.grad(entropy(z, y).mean(), z)],
        [[-800, 800, 40], [1, 0, 0]],
        lambda z, y: [(truth(z) - y) / 3],
    ),
    "log p and p": (lambda z: [LOG(p(z)), p(z)], [[-800, -40]], lambda z: [-mp.log1p(mp.exp(-z)), truth(z)]),
    "log odds": (lambda z: [LOG(p(z)) - LOG(1 - p(z))], [[-800, 800, 40]], lambda z: [z]),
    "sigmoid and its quotients": (
        lambda x: [S(x), 1 / (1 + E(x)), E(x) / (1 + E(x))],
        [[800, -800]],
        lambda x: [truth(x), truth(-x), truth(x)],
    ),
    "silu and its quotients": (
        lambda x: [x * S(x), x / (1 + E(-x)), x * E(x) / (1 + E(x))],
        [[800, -800, -700]],
        lambda x: [x * truth(x)] * 3,
    ),
    "sigmoid and what is missing to one": (
        lambda x: [S(-x), S(x), 1 - S(x)],
        [[40, -3]],
        lambda x: [truth(-x), truth(x), truth(-x)],
    ),
    "tanh and its quotient": (
        lambda x: [esat.tanh(x), esat.sinh(x), esat.cosh(x), esat.sinh(x) / esat.cosh(x)],
        [[800, -800]],
        lambda x: [mp.tanh(x), mp.sinh(x), mp.cosh(x), mp.tanh(x)],
    ),
    "exp of a difference and its quotient": (
        lambda x, y: [E(x - y), E(x), E(y), E(x) / E(y)],
        [[1000], [999]],
        lambda x, y: [mp.exp(x - y), mp.exp(x), mp.exp(y), mp.exp(x - y)],
    ),
    "squares of sine and cosine": (
        lambda x: [esat.sin(x) ** 2, 1 - esat.cos(x) ** 2, esat.cos(x)],
        [[1e-9]],
        lambda x: [mp.sin(x) ** 2, mp.sin(x) ** 2, mp.cos(x)],
    ),
    "a product and its expansion": (
        lambda x, y: [x * (y + 1), x * y, x * y + x],
        [[3.7], [-1 + 1e-15]],
        lambda x, y: [x * (y + 1), x * y, x * (y + 1)],
    ),
    "one minus the sigmoid of one number": (lambda x: [1 - S(x)], [[50]], lambda x: [truth(-x)]),
    "a quotient twice": (lambda x, y: [x / y / y], [[1e300], [1e200]], lambda x, y: [x / y / y]),
    "a quotient in a product": (
        lambda x, y, z: [x * (esat.sin(y) / y) / z],
        [[1e200], [1e150], [1e160]],
        lambda x, y, z: [x * mp.sin(y) / y / z],
    ),
    "quotients of quotients": (
        lambda a, b: [((a / b) / b) / (b + 1)],
        [[1e300, 3.0], [1e120, 0.7]],
        lambda a, b: [a / b / b / (b + 1)],
    ),
    "masked gradient of a logarithm": (
        lambda x: [esat.grad(esat.where(x > 0, LOG(x), 0).sum(), x)],
        [[-1, 0, 2]],
        lambda x: [1 / x if x > 0 else mp.mpf(0)],
    ),
    "masked gradient of a root": (
        lambda x: [esat.grad(esat.where(x > 0, esat.sqrt(x), 0).sum(), x)],
        [[-1, 0, 4]],
        lambda x: [1 / (2 * mp.sqrt(x)) if x > 0 else mp.mpf(0)],
    ),
    "masked gradient of a quotient": (
        lambda x: [esat.grad(esat.where(esat.eq(x, 0.0), 1.0, esat.sin(x) / x).sum(), x)],
        [[0, 2]],
        lambda x: [(x * mp.cos(x) - mp.sin(x)) / x**2 if x else mp.mpf(0)],
    ),
}


def bits_lost(value: float, wanted: Any) -> float:
    right = float(wanted)
    if value == right:
        return 0.0
    if not np.isfinite(value) or not np.isfinite(right):
        return 99.0
    return float(mp.log(abs(mp.mpf(value) - wanted) / mp.mpf(np.spacing(abs(right))) + 1, 2))


def worst(function: Any, points: Sequence[Sequence[float]], wanted: Callable[..., list[Any]]) -> float:
    results = function(*(np.array(values, float).reshape(-1) for values in points))
    results = results if isinstance(results, tuple) else (results,)
    truths = [wanted(*map(mp.mpf, point)) for point in zip(*points, strict=True)]
    return max(
        bits_lost(value, truths[place][number])
        for number, result in enumerate(results)
        for place, value in enumerate(np.ravel(result).tolist())
    )


@pytest.mark.parametrize("name", CASES)
def test_no_output_loses_digits(name: str) -> None:
    build, points, wanted = CASES[name]
    inputs = [esat.vector(f"x{place}") for place in range(len(points))]
    assert worst(esat.compile(esat.Graph(inputs, build(*inputs))), points, wanted) < 4


@pytest.mark.parametrize("name", ["cross entropy", "sigmoid and its quotients", "a quotient twice"])
def test_it_does_not_depend_on_whether_sizes_are_declared(name: str) -> None:
    build, points, wanted = CASES[name]
    inputs = [esat.tensor(f"x{place}", shape=(len(values),)) for place, values in enumerate(points)]
    assert worst(esat.compile(esat.Graph(inputs, build(*inputs))), points, wanted) < 4


def test_time_alone_chooses_where_accuracy_is_ignored() -> None:
    build, points, wanted = CASES["sigmoid and what is missing to one"]
    x = esat.vector("x")
    mode = esat.Mode("fast_run", accuracy="ignore")
    assert worst(esat.compile(esat.Graph([x], build(x)), mode), points, wanted) > 40


def test_a_form_as_accurate_as_written_is_enough_where_it_is_asked_for() -> None:
    x = esat.vector("x")
    written = esat.compile(esat.Graph([x], [S(x) * (1 - S(x))]), esat.Mode("fast_run", accuracy="written"))
    assert [node.op.name for node in written.optimized.toposort()].count("sigmoid") == 1
    build, points, wanted = CASES["tanh and its quotient"]
    function = esat.compile(esat.Graph([x], build(x)[:1]), esat.Mode("fast_run", accuracy="written"))
    assert worst(function, points, lambda x: wanted(x)[:1]) < 4


def test_an_unknown_setting_is_an_error() -> None:
    with pytest.raises(esat.errors.ModeError, match="'best', 'written' or 'ignore'"):
        esat.Mode("fast_run", accuracy="good")


@pytest.mark.parametrize(("dtype", "place"), [("float32", 20.0), ("float16", 9.0), ("float64", 40.0)])
def test_digits_are_those_of_the_dtype(dtype: str, place: float) -> None:
    x = esat.vector("x", dtype=dtype)
    function = esat.compile(esat.Graph([x], [S(-x), S(x), 1 - S(x), LOG(p(x))]))
    value = np.array([place, -place], dtype)
    wanted = [truth(mp.mpf(float(v))) for v in value]
    for result, right in zip(
        function(value),
        ([1 - w for w in wanted], wanted, [1 - w for w in wanted], [mp.log(w) for w in wanted]),
        strict=True,
    ):
        np.testing.assert_allclose(
            result.astype(float), [float(r) for r in right], rtol=4 * np.finfo(dtype).eps
        )


def test_sums_along_axes_that_single_elements_lack_are_judged():
    """Of the sum of a vector, which is a single element, a sum along further axes is one of the vector."""
    x = esat.vector("x")
    outer = esat.tensordot(x, x, 0)
    highest = esat.max(esat.max(x, keepdims=True)[:, None], axis=(0, 1))
    first, second = esat.compile(esat.Graph([x], [outer.sum(), highest + esat.sum(x)]))(np.arange(3.0))
    assert (float(first), float(second)) == (9.0, 5.0)


@pytest.mark.parametrize("mode", ["fast_run", "debug"])
def test_what_scipy_is_told_to_raise_is_no_error_of_a_compilation(mode):
    x = esat.vector("x")
    with scipy.special.errstate(all="raise"):
        function = esat.compile(esat.Graph([x], [esat.gamma(x) * 2.5 + x]), mode)
    np.testing.assert_allclose(function(np.array([3.0])), [8.0])


def test_what_depends_on_an_op_that_is_not_evaluated_is_judged_too():
    """Rules write what is gathered as the logarithm of its exponential, which needs the gathered values.

    The slopes of a Poisson density, at a rate of zero 0 * 0 / 0 as they are written, are finite.
    """
    table, factor = esat.matrix("table"), esat.TensorType("float64", shape=(4,))("factor")
    counts, exposure = (esat.TensorType("float64", shape=(4, 3))(name) for name in ("counts", "exposure"))
    places = np.arange(3)[None, :], np.array([0, 1, 1, 0])[:, None]
    level = E(table[places])
    rate = exposure * level * factor[:, None]
    possible = esat.where(esat.eq(rate, 0) & esat.eq(counts, 0), 0.0, 1.0)
    powers = esat.where(esat.eq(LOG(rate), -np.inf) & (counts <= 0), 0.0, possible)
    slope = powers * counts / rate - possible
    outputs = [
        esat.inc_subtensor(esat.zeros((3, 2))[places], slope * factor[:, None] * exposure * level),
        (slope * (exposure * level)).sum(axis=1),
    ]
    function = esat.compile(esat.Graph([table, factor, counts, exposure], outputs))
    exposed, counted = np.ones((4, 3)), np.zeros((4, 3))
    exposed[0, 0], counted[1, 1] = 0.0, 1.0
    by_table, by_factor = function(np.zeros((3, 2)), np.ones(4), counted, exposed)
    np.testing.assert_allclose(by_table, [[-1, -2], [-2, -1], [-2, -2]], atol=1e-12)
    np.testing.assert_allclose(by_factor, [-2, -2, -3, -3], atol=1e-12)
