"""Expanding rules of users: they match long sums, and an explosive one does not starve the others."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import esat

DISTRIBUTE = (
    '(rewrite (Cosh (Add x y)) (Add (Mul (Cosh x) (Cosh y)) (Mul (Sinh x) (Sinh y))) :name "cosh-sum-t")'
)
COSH_OF_LOG = """
(rewrite (Cosh (Add (Log a) x)) (Mul (K 0.5 d) (Add (Mul a (Exp x)) (Div (Exp (Neg x)) a)))
  :when ((= d (dt x))) :name "cosh-log-t")
"""


def optimized(output, inputs, rules):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", esat.EsatWarning)
        return esat.compile(esat.Graph(inputs, [output]), rules=rules)


@pytest.mark.parametrize("length", [3, 4, 5, 9, 20])
def test_an_expanding_rule_matches_sums_of_any_length(length):
    inputs = [esat.vector(f"x{number}") for number in range(length)]
    total = inputs[0]
    for variable in inputs[1:]:
        total = total + variable
    function = optimized(esat.cosh(total + esat.log(inputs[0])), inputs, COSH_OF_LOG)
    assert function.report.rules.get("cosh-log-t"), str(function.report)
    values = np.linspace(0.1, 0.3, 2 * length).reshape(length, 2)
    np.testing.assert_allclose(function(*values), np.cosh(values.sum(0) + np.log(values[0])), rtol=1e-12)


def test_distribution_over_a_long_sum_stays_within_its_fuel():
    inputs = [esat.vector(f"x{number}") for number in range(20)]
    total = inputs[0]
    for variable in inputs[1:]:
        total = total + variable
    function = optimized(esat.cosh(total), inputs, DISTRIBUTE)
    assert function.report.rules.get("cosh-sum-t")
    assert function.report.e_nodes < 20_000
    assert sum(function.report.rules.values()) < 40_000
    values = np.linspace(-0.3, 0.3, 40).reshape(20, 2)
    np.testing.assert_allclose(function(*values), np.cosh(values.sum(0)), rtol=1e-12)
