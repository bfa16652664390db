"""Plans of powers with whole exponents: the right power, and few halves of an ulp off."""

from fractions import Fraction

import numpy as np
import pytest

from esat.graph import Constant, TensorType
from esat.ops.elementwise.whole_power import (
    LARGEST_EXPONENT,
    MOST_HALVES,
    PowerPlan,
    Rounding,
    power_plan,
    whole_exponent,
    whole_power_flops,
)


def exponent_and_error(plan: PowerPlan) -> tuple[int, int]:
    """The exponent that a plan's products add up to, and the most halves of an ulp that they are off by."""
    # A pair is exact to first order; what is rounded off one float is multiplied by later products.
    own = 1 if plan.inverts and not plan.has_pairs else 0
    exponent, error, base = 1, own, 1 if plan.inverts else 0
    for step in plan.steps:
        factor = (exponent, error) if step.squares else (1, base if step.rounding is Rounding.PLAIN else 0)
        exponent += factor[0]
        error = error + factor[1] + (0 if step.rounding is Rounding.PAIR else 1)
    return -exponent if plan.inverts else exponent, error


@pytest.mark.parametrize("sign", [1, -1])
def test_every_exponent(sign: int) -> None:
    for count in range(2, LARGEST_EXPONENT + 1):
        plan = power_plan(sign * count)
        exponent, error = exponent_and_error(plan)
        assert exponent == sign * count
        assert error <= MOST_HALVES
        kinds = [step.rounding for step in plan.steps]
        assert kinds[-1] is not Rounding.PAIR
        assert kinds == sorted(kinds, key=list(Rounding).index)
        assert kinds.count(Rounding.LAST_PAIR) == plan.has_pairs


def test_pairs_are_used_where_squaring_would_round_too_often_only() -> None:
    assert not any(power_plan(exponent).has_pairs for exponent in range(2, 9))
    assert all(power_plan(exponent).has_pairs for exponent in range(9, 200))
    assert whole_power_flops(8) == 3
    assert whole_power_flops(64) < 25


def constant(values: object, dtype: str) -> Constant:
    array = np.array(values, dtype)
    return Constant(TensorType(dtype, shape=array.shape), array)


def test_which_exponents_are_whole() -> None:
    assert whole_exponent(constant(9.0, "float64")) == 9
    assert whole_exponent(constant([[-3.0, -3.0]], "float32")) == -3
    assert whole_exponent(constant(200, "uint8")) == 200
    for values in (2.5, np.nan, np.inf, 1e9, [2.0, 3.0], []):
        assert whole_exponent(constant(values, "float64")) is None
    assert whole_exponent(TensorType("float64", shape=())("n")) is None
    assert Fraction(LARGEST_EXPONENT, 2**24) ** 2 < Fraction(1, 2**26)  # what pairs of float32 neglect
