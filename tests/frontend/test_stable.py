"""Gradients are taken of stable forms, wherever they stand, and of what was written everywhere else."""

import numpy as np
import pytest

import esat
from esat.frontend.stable import stable_form

x, y = esat.vector("x"), esat.vector("y")
square = esat.matrix("square", shape=(3, 3))
FORMS = {
    "1 + exp": (esat.log(1 + esat.exp(x)), "softplus"),
    "exp + 1": (esat.log(esat.exp(x) + 1.0), "softplus"),
    "1 - exp": (esat.log(1 - esat.exp(-esat.exp(x))), "log1mexp"),
    "-expm1": (esat.log(-esat.expm1(-esat.exp(x))), "log1mexp"),
    "sigmoid": (esat.log(esat.sigmoid(x)), "neg"),
    "1 - quotient": (esat.log(1 - 1 / (1 + esat.exp(-x))), "neg"),
    "log1p of -sigmoid": (esat.log1p(-esat.sigmoid(x)), "neg"),
    "reciprocal": (esat.reciprocal(1 + esat.exp(x)), "sigmoid"),
    "quotient": (esat.exp(x) / (esat.exp(x) + 1), "sigmoid"),
    "quotient of two": (esat.exp(y) / (esat.exp(x) + esat.exp(y)), "sigmoid"),
    "sum": (esat.log(esat.exp(x) + esat.exp(y)), "logaddexp"),
    "difference": (esat.log(esat.exp(x + 3) - esat.exp(y)), "add"),
    "softmax": (esat.log(esat.softmax(x, axis=0)), "log_softmax"),
    "all": (esat.log(esat.sum(esat.exp(x))), "logsumexp"),
    "restored axes": (esat.exp(x) / esat.sum(esat.exp(x))[None], "softmax"),
    "part": (esat.log(esat.softmax(x, axis=0)[1:]), "subtensor"),
    "erfc": (esat.log(esat.erfc(x)), "add"),
    "erf": (esat.log(1 - esat.erf(x)), "add"),
    "cosh": (esat.log(esat.cosh(x)), "log_cosh"),
    "ndtr": (esat.log(esat.ndtr(x)), "log_ndtr"),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_have_the_value_of_what_was_written(name):
    written, op = FORMS[name]
    form = stable_form(written.owner)
    assert form.owner.op.name == op
    values = {x: np.array([0.3, -0.7, 0.9]), y: np.array([-0.5, 0.4, 1.1])}
    np.testing.assert_allclose(esat.evaluate(form, values), esat.evaluate(written, values), rtol=1e-12)


OTHERS = {
    "2 + exp": esat.log(2 + esat.exp(x)),
    "exp - 1": esat.log(esat.exp(x) - 1),
    "-exp - exp": esat.log(-esat.exp(x) - esat.exp(y)),
    "other sum": esat.exp(x) / esat.sum(esat.exp(y)),
    "three terms": esat.log(1 + esat.exp(x) + esat.exp(y)),
    "over the other axis": esat.exp(square) / esat.sum(esat.exp(square), axis=1),
    "complex": esat.log(1 + esat.exp(esat.zvector("z"))),
    "part of another": esat.log(x[1:]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_formulas_have_none(name):
    assert stable_form(OTHERS[name].owner) is None


@pytest.mark.parametrize("mode", ["fast_compile", "fast_run"])
def test_a_variable_on_the_way_gets_its_own_gradient(mode):
    p = esat.sigmoid(x)
    cost = esat.sum(esat.log(p))
    point = np.array([-2.0, 0.5])
    function = esat.compile(esat.Graph([x], esat.grad(cost, [p, x])), mode)
    by_p, by_x = function(point)
    np.testing.assert_allclose(by_p, 1 + np.exp(-point))
    np.testing.assert_allclose(by_x, 1 / (1 + np.exp(point)))


def test_gradients_are_stable_without_any_rewriting():
    cost = esat.sum(y * esat.log(esat.sigmoid(x)) + (1 - y) * esat.log(1 - esat.sigmoid(x)))
    function = esat.compile(esat.Graph([x, y], [esat.grad(cost, x)]), "fast_compile")
    ends = np.array([-1000.0, 1000.0])
    np.testing.assert_array_equal(function(ends, np.array([1.0, 0.0])), [1.0, -1.0])


def test_second_derivatives():
    first = esat.grad(esat.sum(esat.log(1 + esat.exp(x))), x)
    function = esat.compile(esat.Graph([x], [esat.grad(esat.sum(first), x)]), "fast_compile")
    np.testing.assert_allclose(function(np.array([-1000.0, 0.0, 1000.0])), [0.0, 0.25, 0.0])
