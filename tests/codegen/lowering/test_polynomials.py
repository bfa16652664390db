"""Which steps of polynomials leave their products unrounded, and what they result in."""

from fractions import Fraction

import numpy as np
import pytest
from codegen.kernel_cases import group_of, op, run, variable
from codegen.targets import HOST

from esat.codegen import lower, print_kernel
from esat.codegen.printing.shared_loops import print_parallel_source
from esat.graph import Variable

X, Y, WHOLE = variable("float64", None), variable("float64", None), variable("int64", None)
COEFFICIENTS = (0.3, -1.2, 0.7, 2.0, -0.4)


def horner(x: Variable, coefficients: tuple[float, ...] = COEFFICIENTS) -> Variable:
    value = op("mul", x, coefficients[0])
    for place, coefficient in enumerate(coefficients[1:]):
        value = op("add", value, coefficient) if coefficient > 0 else op("sub", value, -coefficient)
        if place < len(coefficients) - 2:
            value = op("mul", x, value) if place % 2 else op("mul", value, x)
    return value


def steps(*outputs: Variable) -> int:
    text = print_kernel(lower(group_of(outputs, [X, Y, WHOLE])), HOST)
    return text.count("= multiply_add(") + text.count("= multiply_subtract(")


def test_polynomials_are_printed_as_steps() -> None:
    kernel = lower(group_of([horner(X)], [X]))
    for streams in (False, True):
        printed = print_parallel_source(kernel, HOST, "C", True, streams)
        assert printed is not None
        loops = printed.text.count(" = x0[")
        assert loops
        assert printed.text.count("= multiply_add(") == 2 * loops
        assert printed.text.count("= multiply_subtract(") == 2 * loops
    assert steps(horner(X)) == 4


@pytest.mark.parametrize(
    "outputs",
    [
        pytest.param([op("add", op("mul", X, 0.5), 1.5)], id="one step"),
        pytest.param([op("add", op("mul", op("add", op("mul", X, 0.5), Y), X), Y)], id="no numbers"),
        pytest.param([horner(X, (0.5, np.inf, -np.inf))], id="infinite numbers"),
        pytest.param([op("add", op("mul", op("add", op("mul", X, 0.5), 0.0), X), -0.0)], id="zeros"),
        pytest.param([horner(WHOLE, (3, 2, 1))], id="integers"),
    ],
)
def test_what_is_no_polynomial_is_computed_as_numpy_does(outputs: list[Variable]) -> None:
    assert steps(*outputs) == 0


def test_products_and_steps_that_are_used_otherwise_are_rounded() -> None:
    first = op("mul", X, 0.5)
    second = op("mul", op("add", first, 1.5), X)
    assert steps(op("add", second, 2.5)) == 2
    assert steps(op("add", second, 2.5), first) == 0
    assert steps(op("add", second, 2.5), second) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polynomials_are_about_as_accurate_as_their_terms(dtype: str) -> None:
    x = variable(dtype, None)
    data = np.random.default_rng(1).uniform(-2, 2, 1001).astype(dtype)
    numbers = [Fraction(float(np.dtype(dtype).type(abs(c)))) * (1 if c > 0 else -1) for c in COEFFICIENTS]
    (found,) = run(group_of([horner(x)], [x]), {x: data})
    for point, value in zip(data, found, strict=True):
        exact, size = Fraction(0), Fraction(0)
        for number in numbers:
            exact, size = (
                exact * Fraction(float(point)) + number,
                size * abs(Fraction(float(point))) + abs(number),
            )
        # Four additions and multiplications, each rounded once.
        assert abs(Fraction(float(value)) - exact) <= 4 * size * Fraction(float(np.finfo(dtype).eps))


def test_special_values_are_those_of_numpy() -> None:
    data = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324])
    (found,) = run(group_of([horner(X)], [X]), {X: data})
    with np.errstate(all="ignore"):
        value = data * COEFFICIENTS[0]
        for coefficient in COEFFICIENTS[1:-1]:
            value = (value + coefficient) * data
        np.testing.assert_array_equal(found, value + COEFFICIENTS[-1])


@pytest.mark.parametrize("size", [1, 3, 4, 15, 16, 17, 100])
def test_values_do_not_depend_on_their_place(size: int) -> None:
    group = group_of([horner(X)], [X])
    data = np.random.default_rng(2).uniform(-2, 2, size)
    (together,) = run(group, {X: data})
    alone = [run(group, {X: data[place : place + 1]})[0][0] for place in range(size)]
    assert np.array_equal(together, alone)
