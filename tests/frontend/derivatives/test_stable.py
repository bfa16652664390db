"""Gradients are taken of stable forms, wherever they stand, and of what was written everywhere else."""

import numpy as np
import pytest

import esat
from esat.frontend.derivatives.stable import stable_form

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
    "det": (esat.log(esat.linalg.det(square)), "slogdet"),
    "size of det": (esat.log(abs(3.0 * esat.linalg.det(square))), "mul"),
    "log2": (esat.log2(esat.linalg.det(square)), "div"),
    "log1p": (esat.log1p(esat.linalg.det(square) - 1), "slogdet"),
    "quotient by det": (esat.log(esat.sqrt(esat.cosh(x)) / esat.linalg.det(square) ** 2), "add"),
    "prod": (esat.log(esat.prod(esat.exp(x) * esat.sigmoid(y))), "sum"),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_have_the_value_of_what_was_written(name):
    written, op = FORMS[name]
    form = stable_form(written.owner)
    assert form.owner.op.name == op
    values = {
        x: np.array([0.3, -0.7, 0.9]),
        y: np.array([-0.5, 0.4, 1.1]),
        square: np.array([[2.0, 0.5, 0.1], [0.3, 1.5, -0.2], [0.0, 0.7, 1.2]]),
    }
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
    "product of numbers": esat.log(x * y),
    "size of a complex product": esat.log(abs(esat.zscalar("u") * esat.linalg.det(esat.zmatrix("c")))),
    "power that changes": esat.log(esat.linalg.det(square) ** x),
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


LOGARITHMS = {
    "log of size": (lambda a: esat.log(abs(esat.linalg.det(a))), 1.0),
    "log": (lambda a: esat.log(esat.linalg.det(a)), 1.0),
    "slogdet": (lambda a: esat.linalg.slogdet(a)[1], 1.0),
    "log2 of size": (lambda a: esat.log2(abs(esat.linalg.det(a))), 1 / np.log(2)),
    "log of square": (lambda a: esat.log(esat.linalg.det(a) ** 2), 2.0),
    "log of multiple": (lambda a: esat.log(abs(-3 * esat.linalg.det(a))), 1.0),
    "log of reciprocal root": (lambda a: esat.log(1 / esat.sqrt(esat.linalg.det(a))), -0.5),
}


@pytest.mark.parametrize(
    "mode", ["fast_run", "o3", "o2", "o1", "unsafe", "greedy", "fast_compile", "strict", "Stabilization"]
)
@pytest.mark.parametrize("name", LOGARITHMS)
def test_gradients_of_logarithms_of_determinants_are_inverses(name, mode):
    """The determinant itself is beyond the range, and so are cofactors."""
    cost, factor = LOGARITHMS[name]
    a = esat.dmatrix("a")
    function = esat.compile(esat.Graph([a], [esat.grad(cost(a), a)]), mode)
    for size, scale in ((300, 10.0), (300, 1e-3)):
        matrix = scale * (1 + np.random.default_rng(0).normal(size=(size, size)))
        sign, logarithm = np.linalg.slogdet(matrix)
        assert sign == 1
        assert abs(logarithm) > 750
        expected = factor * np.linalg.inv(matrix).T
        np.testing.assert_allclose(function(matrix), expected, rtol=1e-7, atol=1e-9 * abs(expected).max())
    assert "inv" in {node.op.name for node in function.optimized.toposort()}


def test_tangents_and_second_derivatives_of_logarithms_of_determinants():
    matrix = np.array([[2.0, 0.5, 0.1], [0.3, 1.5, -0.2], [0.0, 0.7, 1.2]])
    for cost, _ in LOGARITHMS.values():
        esat.verify_grad(cost, [matrix])
        esat.verify_grad(lambda a, cost=cost: esat.grad(cost(a), a), [matrix])


@pytest.mark.parametrize("mode", ["fast_compile", "fast_run", "greedy"])
def test_gradients_of_logarithms_of_products(mode):
    point = np.concatenate([np.full(500, 10.0), [-2.0, -4.0]])
    function = esat.compile(esat.Graph([x], [esat.grad(esat.log(esat.prod(x)), x)]), mode)
    np.testing.assert_allclose(function(point), 1 / point)
