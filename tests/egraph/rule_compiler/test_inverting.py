"""Rules that replace division: all divisors at once."""

from __future__ import annotations

import numpy as np
import pytest

import esat
from esat.rules import read_forms
from esat.rules.language.reader import show

from .conftest import compiled

RULES = {
    "reciprocal": "(rewrite (Reciprocal (Add o (Exp x))) (Tanh x) :when ((= (val o) 1.0)))",
    "a divisor that is no sum": "(rewrite (Div a (Sqrt x)) (Mul a (Tanh x)))",
    "quotient": "(rewrite (Div a (Add o (Exp x))) (Mul a (Tanh x)) :when ((= (val o) 1.0)))",
}
OTHERS = {
    "two divisors": "(rewrite (Div a (Mul (Add o (Exp x)) (Exp x))) (Mul a (Tanh x)) :when ((= o o)))",
    "a factor that is read": "(rewrite (Div a (Add o (Exp x))) (Mul a (Tanh x)) :when ((> (val a) 0.0)))",
    "another factor": "(rewrite (Div a (Add o (Exp x))) (Tanh x) :when ((= a o)))",
    "a divisor that is anything": "(rewrite (Div a x) (Mul a (Tanh x)))",
}


def inverses(text: str) -> list[str]:
    """What rules set for inverses of divisors."""
    rules = [form for form in read_forms(compiled(text).text) if form[0] == "rule"]
    actions = [show(action) for form in rules for action in form[2]]
    return [action for action in actions if action.startswith("(set (inverse/")]


@pytest.mark.parametrize("text", RULES.values(), ids=RULES)
def test_a_divisor_has_an_inverse(text: str) -> None:
    assert [action.split(" ", 3)[2:] for action in inverses(text)] == [["?%s)", "(Tanh ?x))"]]


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_rules_are_about_the_quotient(text: str) -> None:
    assert not inverses(text)
    assert compiled(text).text


@pytest.mark.parametrize("divides", [False, True])
def test_products_of_factors_with_a_reciprocal_have_as_many_forms_as_factors_at_most(divides) -> None:
    sizes = []
    for count in (8, 32):
        x, vectors = esat.vector("x"), [esat.vector(f"v{number}") for number in range(count)]
        product = esat.tan(x)
        for one in vectors:
            product = product / (esat.exp(one) + 1) if divides else product * (esat.exp(one) + 1)
        function = esat.compile(esat.Graph([x, *vectors], [product]))
        assert function.report.stop_reason == "saturated"
        sizes.append(function.report.e_nodes)
        values = np.random.default_rng(0).normal(size=(count + 1, 3))
        factors = np.prod(np.exp(values[1:]) + 1, axis=0)
        expected = np.tan(values[0]) / factors if divides else np.tan(values[0]) * factors
        np.testing.assert_allclose(function(*values), expected, rtol=1e-13)
    assert sizes[1] < 5 * sizes[0]
