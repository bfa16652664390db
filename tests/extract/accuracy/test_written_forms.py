"""Forms and constants as they were written are taken where rules would lose what they were written for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import esat

MODES = ("fast_run", "o3", "unsafe", "greedy", "fast_compile", "strict")
F2, F4, F8 = np.float16, np.float32, np.float64
TOLERANCES = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-12}
Array = np.ndarray[Any, Any]


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """A sum and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def compensated(a: Any, b: Any, c: Any) -> Any:
    """The sum of three numbers, with the errors of both additions."""
    first, error = two_sum(a, b)
    second, other = two_sum(first, c)
    return second + (error + other)


def kahan(a: Any, b: Any, c: Any) -> Any:
    """Kahan's sum of three numbers."""
    total, lost = a, 0.0 * a
    for value in (b, c):
        corrected = value - lost
        new = total + corrected
        lost = (new - total) - corrected
        total = new
    return total - lost


def product_error(a: Any, b: Any) -> Any:
    """The rounding error of a product, by Veltkamp's splitting (Dekker)."""

    def split(x: Any) -> tuple[Any, Any]:
        scaled = 134217729.0 * x
        high = scaled - (scaled - x)
        return high, x - high

    (ah, al), (bh, bl) = split(a), split(b)
    return ((ah * bh - a * b) + ah * bl + al * bh) + al * bl


def beside_moved(move: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The slope of a sigmoid by the complement of the same values, moved: both have the sigmoid's error."""

    def ratio(m: Any, x: Any) -> Any:
        s = 1 / (1 + m.exp(-x))
        return s * (1 - s) / (1 - move(m, s))

    return ratio


def beside_beta(a: Any, x: Any) -> Any:
    """How much less a sigmoid is than one, beside its power: both by the rounded sigmoid."""
    s = 1 / (1 + np.exp(-x))
    return np.log1p(-s) - np.log1p(-scipy.special.betainc(a, 1.0, s))


def differences(m: Any, x: Any) -> Any:
    """The slopes of logarithms of differences of neighbouring sigmoids, as an ordinal regression has them."""
    s = 1 / (1 + m.exp(-x))
    joined = m.concatenate([0 * s[:1], s, 0 * s[:1] + 1])
    weight = 1 / (joined[1:] - joined[:-1])
    return (weight[:-1] - weight[1:]) * s * (1 - s)


Case = tuple[Callable[..., Any], Sequence[Array]]


def cases() -> dict[str, Case]:
    """Name -> what is computed by a module of NumPy's names, and arguments at which rewritten forms fail."""
    ce = F4([0, 1, 0, 1, 0.5]), F4([0, 1, 1, 0, 1])
    return {
        "small constant under a logarithm": (lambda m, p: m.log(1 - p + 1e-9), [F4([1, 0.5, 0])]),
        "cross entropy": (lambda m, p, y: -y * m.log(p + 1e-9) - (1 - y) * m.log(1 - p + 1e-9), ce),
        "mean cross entropy": (
            lambda m, p, y: (-y * m.log(p + 1e-9) - (1 - y) * m.log(1 - p + 1e-9)).mean(),
            ce,
        ),
        "small constant in a divisor": (lambda m, x: 1 / (1 - x + 1e-9), [F4([1, 0.5])]),
        "small constant under a root": (lambda m, x: m.sqrt(1 - x * x + 1e-9), [F4([1, 0.5])]),
        "small constant after a difference": (lambda m, x: (x - 100) + 1e-6, [F4([100, 1])]),
        "one after a large constant": (lambda m, x: (x - 1e8) + 1, [F4([1e8, 1])]),
        "small constant, half precision": (lambda m, x: 1 - x + 1e-4, [F2([1, 0.5])]),
        "small constant, double precision": (lambda m, x: m.log(1 - x + 1e-17), [F8([1, 0.5])]),
        "one after 1e17": (lambda m, x: (x - 1e17) + 1, [F8([1e17, 0.5])]),
        "mixture at one": (
            lambda m, a, b, t: (1 - t) * a + t * b,
            [F8([1e16, 0.5]), F8([1, 1e-20]), np.ones(2)],
        ),
        "mixture at zero": (
            lambda m, a, b, t: t * a + (1 - t) * b,
            [F8([1e16, 0.5]), F8([1, 1e-20]), np.zeros(2)],
        ),
        "mixture, single precision": (
            lambda m, a, b, t: (1 - t) * a + t * b,
            [F4([1e10, 0.5]), F4([1, 1e-20]), np.ones(2, F4)],
        ),
        "mixture at one, added to": (
            lambda m, a, b, t: (((1 - t) * a + t * b) * 0.5 + b * 0.5) / 2,
            [F8([1.0, 1e6]), F8([3e-12, 1e-6]), np.ones(2)],
        ),
        "mean of two large numbers": (lambda m, a, b: a / 2 + b / 2, [F8([1.5e308]), F8([1.7e308])]),
        "mean by a difference": (lambda m, a, b: a + (b - a) / 2, [F8([1.5e308]), F8([1.7e308])]),
        "weighted mean of large numbers": (
            lambda m, a, b, c: a * 0.25 + b * 0.25 + c * 0.5,
            [F8([1.5e308]), F8([1.7e308]), F8([1.7e308])],
        ),
        "weights whose sum is out of range": (
            lambda m, a, b: b + ((0.3 - a) * 0.25 + b * 0.75) - 1,
            [F8([1.12e308, 1.0]), F8([1.12e308, 2.0])],
        ),
        "mean of two, half precision": (lambda m, a, b: a / 2 + b / 2, [F2([4e4]), F2([5e4])]),
        "sum of parts, half precision": (lambda m, x: (x / 4).sum(), [F2([4e4, 5e4, 6e4, 3e4])]),
        "sum of parts, single precision": (lambda m, x: (x / 4).sum(), [F4([2e38, 3e38, 3e38, 3e38])]),
        "sum of parts": (lambda m, x: (x / 4).sum(), [F8([1.5e308] * 4)]),
        "sum of scaled": (lambda m, x: (x * 0.25).sum(), [F8([1.5e308] * 4)]),
        "sum of parts of squares": (lambda m, x: (x * x / 4).sum(), [F8([1.3e154] * 4)]),
        "product with ones": (lambda m, x: m.dot(x / 3, m.ones(3)), [F8([1.5e308] * 3)]),
        "scaled mean of squares": (
            lambda m, x: ((x / 1e200) ** 2).mean() * 1e200,
            [F8([1e200, 3e200])],
        ),
        "compensated sum": (lambda m, *x: compensated(*x), [F8([1e16]), F8([1]), F8([-1e16])]),
        "error of a sum": (lambda m, *x: two_sum(*x)[1], [F8([1e16]), F8([1])]),
        "error of a sum, single precision": (lambda m, *x: two_sum(*x)[1], [F4([1e8]), F4([1])]),
        "Kahan's sum": (lambda m, *x: kahan(*x), [F8([1]), F8([1e-16]), F8([1e-16])]),
        "error of a product": (lambda m, *x: product_error(*x), [F8([1 + 2.0**-30]), F8([1 + 2.0**-29])]),
        "small constant after a multiple of a difference": (
            lambda m, x: 2e16 * (x / 0.5 - 1) - 7e-14,
            [F8([0.5, 0.25])],
        ),
        "polynomial with rounded coefficients": (
            lambda m, a: (
                (a * a + 1) * ((1 - a) * ((1 - a) * a + a * 2e-6) + a * a) * F4(1 / 3) + a * F4(2 / 3)
            ),
            [F4([316113.59375, 2e6, 0.5])],
        ),
        **{
            f"complement beside one {name}, {dtype.__name__}": (beside_moved(move), [dtype(values)])
            for name, move in {
                "joined": lambda m, s: m.concatenate([s[:1], s])[1:],
                "sorted": lambda m, s: m.sort(s),
                "repeated": lambda m, s: m.repeat(s, 2)[::2],
                "multiplied up": lambda m, s: m.cumprod(m.stack([s, s]), axis=0)[0],
                "clipped": lambda m, s: m.clip(s, 0, 1),
                "chosen": lambda m, s: m.where(s > 0.5, s, 0),
                "taken": lambda m, s: m.take(s, np.arange(3)),
                "padded": lambda m, s: m.pad(s, 1)[1:-1],
            }.items()
            for dtype, values in ((F8, [1, 20.0, 33.7]), (F4, [1, 8.0, 14.5]))
        },
        "differences of joined sigmoids": (differences, [F8([1.0, 34.0, 35.0])]),
        "slope of a hyperbolic tangent beside one joined": (
            lambda m, x: (1 - m.tanh(x) ** 2) / (1 - m.concatenate([m.tanh(x), x])[: x.shape[0]]),
            [F8([1.0, 16.0, 17.5])],
        ),
        "slope of a hyperbolic tangent beside its complement": (
            lambda m, x: (1 - m.tanh(x) ** 2) / (1 - m.tanh(x)),
            [F8([1.0, 16.0, 17.5])],
        ),
        "complement of a hyperbolic tangent": (lambda m, x: 1 + m.tanh(-x), [F8([1.0, 3.0])]),
        "rounding by a constant": (
            lambda m, x: (x + 6755399441055744.0) - 6755399441055744.0,
            [F8([1.4, 2.6])],
        ),
    }


CASES = cases()


def _expected(name: str) -> Any:
    build, arguments = CASES[name]
    with np.errstate(all="ignore"):
        return build(np, *arguments)


def _assert_right(name: str, found: Any) -> None:
    expected = _expected(name)
    np.testing.assert_allclose(found, expected, rtol=TOLERANCES[str(CASES[name][1][0].dtype)], atol=0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_in_modes(name, mode):
    build, arguments = CASES[name]
    inputs = [esat.tensor(f"x{i}", dtype=str(one.dtype), shape=(None,)) for i, one in enumerate(arguments)]
    _assert_right(name, esat.compile(esat.Graph(inputs, [build(esat, *inputs)]), mode=mode)(*arguments))


@pytest.mark.parametrize("name", CASES)
def test_traced(name):
    build, arguments = CASES[name]

    def function(*values: Array) -> Any:
        return build(np, *values)

    _assert_right(name, esat.jit(function)(*arguments))
    _assert_right(name, esat.jit(function, shapes="symbolic")(*arguments))


def beside_inverses(x: Any) -> list[Any]:
    """Functions that are steep at one, of a sigmoid, beside how much less this is than one."""
    s = 1 / (1 + np.exp(-x))
    return [
        np.sqrt(1 - s) / np.arccos(s),
        np.arctanh(s) + np.log1p(-s) / 2,
        np.sqrt(1 - s) / (np.pi / 2 - np.arcsin(s)),
    ]


@pytest.mark.parametrize("mode", MODES)
def test_inverses_that_are_steep_at_one(mode):
    function = esat.jit(beside_inverses, mode=mode)
    for x in (1.0, 15.0, 25.0, 33.0):
        np.testing.assert_allclose(function(x), beside_inverses(np.float64(x)), rtol=1e-12)


def test_inverses_of_steep_functions_are_known():
    x = np.array([0.5, 3.0, 5.0])
    found = esat.jit(lambda x: (scipy.special.erfinv(scipy.special.erf(x)), scipy.special.erf(x)))(x)
    np.testing.assert_array_equal(found[0], x)
    found = esat.jit(lambda x: (np.arctanh(np.tanh(x)), 1 - np.tanh(x)))(x)
    np.testing.assert_array_equal(found[0], x)


@pytest.mark.parametrize("mode", MODES)
def test_arguments_of_functions_that_are_steep_at_one(mode):
    function = esat.jit(beside_beta, mode=mode)
    for x in (1.0, 15.0, 25.0, 33.0):
        with mpmath.workprec(300):
            s, a = 1 / (1 + mpmath.exp(-mpmath.mpf(x))), mpmath.mpf(2.5)
            truth = float(mpmath.log((1 - s) / (1 - s**a)))
        assert function(2.5, x) == pytest.approx(truth, rel=1e-10)


def test_beside_others():
    """What is computed beside a form does not take it out of the e-graph, nor give it back what it lost."""
    names = [name for name in CASES if len(CASES[name][1]) == 1 and CASES[name][1][0].dtype == F8]
    for name in names:
        build, (argument,) = CASES[name]
        x = esat.dvector("x")
        outputs = [esat.exp(-x * x).sum(), build(esat, x), 2 * build(esat, x), x.sum() / 4]
        with np.errstate(all="ignore"):
            _assert_right(name, esat.compile(esat.Graph([x], outputs))(argument)[1])


def test_constants_that_lose_nothing_are_one():
    x = esat.dvector("x")
    for expression, constant in (
        ((x + 0.5) + 2.0, 2.5),
        ((x + 3.0) - 1.0, 2.0),
        (1.0 + (x + 2.0**-40), 1 + 2.0**-40),
    ):
        for mode in ("fast_run", "greedy"):
            nodes = esat.compile(esat.Graph([x], [expression]), mode=mode).optimized.toposort()
            assert [node.op.name for node in nodes] == ["add"]
            assert constant in [
                one.data.item() for one in nodes[0].inputs if isinstance(one, esat.graph.Constant)
            ]


def test_sums_that_cancel_without_purpose_still_do():
    x, y = esat.dvector("x"), esat.dvector("y")
    for expression in ((x + y) - x, (x - 1) ** 3 - (x**3 - 3 * x**2 + 3 * x - 1), (x * y + x) - x * (y + 1)):
        nodes = esat.compile(esat.Graph([x, y], [expression], on_unused_input="ignore")).optimized.toposort()
        assert not [node for node in nodes if node.op.name in ("add", "sub", "mul", "pow")]


ROUNDED: dict[str, Callable[[Any, Any], Any]] = {
    "cast": lambda m, x: (x * 255 / x.max()).astype("uint8"),
    "clipped": lambda m, x: m.clip(x * 255 / x.max(), 0, 255).astype("int64"),
    "part": lambda m, x: (x / x.max() * 7)[1:].astype("int32"),
    "floor": lambda m, x: m.floor(x * 0.1 / 0.3 - x * 0.2),
    "remainder": lambda m, x: m.mod(x * 3 / 7 + x, 0.25),
    "floor division": lambda m, x: (x * 10 / 3) // 0.1,
    "rounded": lambda m, x: m.rint(x * 5 / x.max()),
}


@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("mode", ["fast_run", "greedy", "unsafe", "o1"])
def test_what_is_rounded_to_whole_numbers(name, mode):
    """The last bit decides which whole number it is, for the largest element at least."""
    x = esat.vector("x")
    f = esat.compile(esat.Graph([x], ROUNDED[name](esat, x)), mode)
    for seed in range(40):
        random = np.random.default_rng(seed)
        values = np.round(random.uniform(0.1, 1.0, size=9), 2) * random.choice([1.0, 0.7, 3.1])
        np.testing.assert_array_equal(f(values), ROUNDED[name](np, values))


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_what_else_reads_a_rounded_value_is_as_accurate_as_alone(mode):
    x = esat.vector("x")
    step = esat.sqrt(x + 1) - esat.sqrt(x)
    values = np.array([1e15, 3.0])
    alone = esat.compile(esat.Graph([x], step), mode)(values)
    beside, whole = esat.compile(esat.Graph([x], [step, esat.floor(step * 10)]), mode)(values)
    np.testing.assert_array_equal(beside, alone)
    np.testing.assert_allclose(beside[0], 1.5811388300841893e-08, rtol=1e-14)
    np.testing.assert_array_equal(whole, np.floor((np.sqrt(values + 1) - np.sqrt(values)) * 10))
