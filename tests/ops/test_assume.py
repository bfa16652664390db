"""Assumptions: what they take, that they change no value, and that debug mode checks them."""

import numpy as np
import pytest

import esat
from esat.ops.annotations.assume import ASSUMABLE
from esat.ops.inference.structure import SIGNS, STRUCTURES, holds, shaped

SQUARE = (6, 6)
MODES = ("fast_run", "greedy", "fast_compile", "strict", "Stabilization")


def matrix(shape=SQUARE, dtype="float64"):
    return esat.tensor("a", dtype=dtype, shape=shape)


@pytest.mark.parametrize("fact", ASSUMABLE)
def test_values_can_be_made_that_satisfy_each_fact(fact):
    generator = np.random.default_rng(0)
    for shape in (SQUARE, (3, 5, 5)):
        plain = generator.normal(size=shape)
        if fact == "finite":
            plain[..., 0, 1], plain[..., 1, 0] = np.inf, np.nan
        if fact == "full_lower_triangle":
            plain[..., 1, 1] = plain[..., 0, 1] = 0.0
        assert holds(fact, shaped(plain, [fact]))
        assert fact == "square" or not holds(fact, plain)


def test_facts_that_are_false_are_refused():
    turned = np.array([[0.0, -1.0], [1.0, 0.0]])
    assert holds("orthogonal", turned)
    assert not holds("permutation", turned)
    assert not holds("symmetric", turned)
    assert holds("positive_semidefinite", np.zeros((3, 3)))
    assert not holds("positive_definite", np.zeros((3, 3)))
    assert not holds("symmetric", np.zeros((2, 3)))
    assert not holds("lower_triangular", np.array([[1.0, np.nan], [0.0, 1.0]]))
    assert holds("skew_symmetric", turned)
    assert not holds("skew_symmetric", np.eye(2))
    assert holds("skew_symmetric", np.array([[0, 1], [255, 0]], np.uint8))
    assert not holds("skew_symmetric", np.array([[0, 1], [255, 0]], np.int16))
    assert not holds("skew_symmetric", np.ones((2, 2), bool))
    assert holds("skew_symmetric", shaped(np.ones((2, 2), bool), ["skew_symmetric"]))
    assert holds("orthonormal_columns", np.eye(4)[:, :2])
    assert not holds("orthonormal_columns", np.eye(4)[:2])


@pytest.mark.parametrize("mode", MODES)
def test_an_assumption_is_its_operand_and_leaves_nothing_behind(mode):
    a, b = matrix(), esat.vector("b")
    lower = esat.assume(a, "lower_triangular")
    function = esat.compile(esat.Graph([a, b], [lower @ b, lower * 2]), mode)
    assert not any(node.op.name == "assume" for node in function.optimized.toposort())
    value = shaped(np.random.default_rng(1).normal(size=SQUARE), ["lower_triangular"])
    product, doubled = function(value, np.ones(6))
    np.testing.assert_allclose(product, value @ np.ones(6))
    np.testing.assert_allclose(doubled, value * 2)


def test_gradients_and_clones_pass_through():
    a = matrix()
    gradient = esat.grad(esat.sum(esat.assume(a, "symmetric") ** 2), a)
    value = np.arange(36.0).reshape(SQUARE)
    value = value + value.T
    np.testing.assert_allclose(esat.compile(esat.Graph([a], [gradient]))(value), 2 * value)
    graph = esat.FunctionGraph([a], [esat.assume(a, "symmetric")])
    assert str(graph.clone().outputs[0].owner.op) == "assume{symmetric}"


@pytest.mark.parametrize(
    ("operand", "facts", "words"),
    [
        (esat.matrix("a"), (), "nothing is assumed"),
        (esat.matrix("a"), ("lower_triangle",), "did you mean lower_triangular or"),
        (esat.matrix("a"), ("cheerful",), "known are diagonal"),
        (esat.vector("a"), ("symmetric",), "only matrices"),
        (esat.tensor("a", shape=(2, 3)), ("symmetric",), "only square matrices"),
        (esat.tensor("a", dtype="int64", shape=(3, 3)), ("orthogonal",), "only arrays of real floats"),
        (esat.tensor("a", dtype="complex128", shape=(3, 3)), ("positive",), "only arrays of real floats"),
    ],
)
def test_bad_assumptions_are_refused(operand, facts, words):
    with pytest.raises(esat.EsatError, match=words.replace("?", r"\?")):
        esat.assume(operand, *facts)


@pytest.mark.parametrize("fact", [*STRUCTURES, *SIGNS])
def test_debug_mode_checks_every_fact_and_names_the_line(fact):
    a = esat.matrix("a")
    function = esat.compile(esat.Graph([a], [esat.assume(a, fact) + 1.0]), "debug")
    plain = np.random.default_rng(2).normal(size=SQUARE)
    plain[0, 0] *= fact != "full_lower_triangle"
    good = shaped(plain, [fact])
    np.testing.assert_allclose(function(good), good + 1)
    bad = plain if fact != "square" else plain[:2]
    with pytest.raises(esat.AssertionFailed, match=rf"not {fact}\n  at .*test_assume.py:\d+"):
        function(bad)


def test_signs_are_used():
    x = esat.vector("x")
    root = esat.sqrt(esat.assume(x, "positive") ** 2)
    function = esat.compile(esat.Graph([x], [root]))
    assert not any(node.op.name in ("sqrt", "abs") for node in function.optimized.toposort())
