"""Plans of n-ary sums and products: right, and small operands first."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esat.extract.prices.nary import PlanStep, Shape, plan_product, plan_sum

FUNCTIONS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqr": np.square,
    "neg": np.negative,
    "reciprocal": np.reciprocal,
}
SHAPES: list[Shape] = [(), (3.0, 4.0), (1.0, 4.0), (3.0, 1.0)]


def follow(steps: tuple[PlanStep, ...], operands: list[np.ndarray]) -> np.ndarray:
    values = list(operands)
    for step in steps:
        inputs = [values[step.left]] if step.right is None else [values[step.left], values[step.right]]
        function = FUNCTIONS[step.op] if not step.exponent else lambda base, n=step.exponent: base**n
        values.append(function(*inputs))
    return values[-1]


@given(
    shapes=st.lists(st.sampled_from(SHAPES), min_size=1, max_size=7), data=st.data(), seed=st.integers(0, 99)
)
@settings(max_examples=80, deadline=None)
def test_a_plan_computes_what_it_stands_for(shapes: list[Shape], data: st.DataObject, seed: int) -> None:
    positives = data.draw(st.integers(0, len(shapes)))
    rng = np.random.default_rng(seed)
    names = [SHAPES.index(shape) * 10 + int(rng.integers(2)) for shape in shapes]
    by_name = {name: rng.uniform(0.5, 2.0, tuple(map(int, SHAPES[name // 10]))) for name in names}
    operands = [by_name[name] for name in names]
    signs = [1.0] * positives + [-1.0] * (len(shapes) - positives)
    total = sum(sign * operand for sign, operand in zip(signs, operands, strict=True))
    np.testing.assert_allclose(follow(plan_sum(shapes, positives), operands), total, rtol=1e-12, atol=1e-12)
    product = prod(operand**sign for sign, operand in zip(signs, operands, strict=True))
    np.testing.assert_allclose(follow(plan_product(names, shapes, positives), operands), product, rtol=1e-12)


def test_shapes_meet_late() -> None:
    row, column = (1.0, 300.0), (256.0, 1.0)
    steps = plan_sum([row, column, row, column], 4)
    assert [prod(step.shape) for step in steps] == [300.0, 256.0, 76800.0]


def test_a_small_quotient_is_made_before_it_meets_a_matrix() -> None:
    scalar, matrix = (), (3.0, 4.0)
    steps = plan_product([1, 2, 3, 4], [scalar, matrix, scalar, matrix], 2)
    assert [(step.op, step.shape) for step in steps] == [("div", ()), ("mul", matrix), ("div", matrix)]


@pytest.mark.parametrize("exponent", [*range(1, 20), 64, 127, 128, 200])
def test_powers_take_few_products(exponent: int) -> None:
    steps = plan_product([7] * exponent, [(3.0, 4.0)] * exponent, exponent)
    assert len(steps) <= 2 * max(exponent.bit_length() - 1, 0)
    assert [step.op for step in steps if step.exponent] == ["pow"] * (8 < exponent < 128)
    assert follow(steps, [np.array(1.1)] * exponent) == pytest.approx(1.1**exponent)
