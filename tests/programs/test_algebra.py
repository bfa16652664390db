"""What a mathematician would do: each expression comes out in the form one would write by hand."""

import math

import numpy as np
import pytest

import esat


def compiled_ops(inputs: list, outputs: object, mode: str = "fast_run") -> list[str]:
    """Names of the ops left after optimization, sorted; views left out."""
    function = esat.compile(esat.Graph(inputs, outputs), mode=mode)
    names = [node.op.name for node in function.optimized.toposort()]
    return sorted(name for name in names if name != "dimshuffle")


@pytest.fixture
def vectors() -> list:
    return [esat.vector(name) for name in "abcdxyz"]


def test_sums_in_either_order_are_one(vectors: list) -> None:
    x, y = vectors[:2]
    assert compiled_ops([x, y], [x + y, y + x]) == ["add"]


def test_far_terms_cancel(vectors: list) -> None:
    a, b, c, d = vectors[:4]
    function = esat.compile(esat.Graph([a, b, c, d], (a + b + c + d) - (b + d)))
    assert [node.op.name for node in function.optimized.toposort()] == ["add"]
    values = [np.random.default_rng(seed).normal(size=5) for seed in range(4)]
    np.testing.assert_allclose(function(*values), values[0] + values[2], rtol=1e-14)


def test_factors_cancel_in_any_order(vectors: list) -> None:
    x, y, z = vectors[:3]
    function = esat.compile(esat.Graph([x, y, z], x * y * z / (y * x)))
    assert not function.optimized.toposort()
    value = np.array([1.0, -2.0, 3.5])
    np.testing.assert_array_equal(function(value + 5, value + 7, value), value)


def test_a_common_factor_is_pulled_out(vectors: list) -> None:
    a, b, c, d = vectors[:4]
    assert compiled_ops([a, b, c, d], a * b + a * c + a * d) == ["add", "add", "mul"]


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_log_of_one_plus_exp_does_not_overflow(vectors: list, mode: str) -> None:
    x = vectors[0]
    function = esat.compile(esat.Graph([x], esat.log(1 + esat.exp(x))), mode=mode)
    assert [node.op.name for node in function.optimized.toposort()] == ["softplus"]
    values = np.array([-1000.0, -1.0, 0.0, 1.0, 1000.0])
    np.testing.assert_allclose(function(values), np.logaddexp(0, values), rtol=1e-14)


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_log_of_softmax_does_not_underflow(mode: str) -> None:
    x = esat.matrix("x")
    function = esat.compile(esat.Graph([x], esat.log(esat.softmax(x, axis=1))), mode=mode)
    assert [node.op.name for node in function.optimized.toposort()] == ["log_softmax"]
    np.testing.assert_allclose(function(np.array([[0.0, 1000.0]])), [[-1000.0, 0.0]])


def test_a_constant_factor_leaves_a_sum(vectors: list) -> None:
    x = vectors[0]
    function = esat.compile(esat.Graph([x], esat.sum(2 * x)))
    names = [node.op.name for node in function.optimized.toposort()]
    assert names == ["sum", "mul"]
    assert function.optimized.toposort()[1].outputs[0].type.ndim == 0


def test_distribution_over_a_quotient(vectors: list) -> None:
    p, y = vectors[:2]
    function = esat.compile(esat.Graph([p, y], (y / p + 3.0) * p))
    assert "div" not in [node.op.name for node in function.optimized.toposort()]


def test_shapes_are_not_computed_from_results(vectors: list) -> None:
    x, y = vectors[:2]
    function = esat.compile(esat.Graph([x, y], esat.exp(x + y).shape[0]))
    assert [node.op.name for node in function.optimized.toposort()] == ["shape_i"]


def test_softmax_gradient_is_stable() -> None:
    scores, classes = esat.matrix("scores"), esat.matrix("classes")
    loss = -(classes * esat.log(esat.softmax(scores, axis=1))).sum()
    function = esat.compile(esat.Graph([scores, classes], esat.grad(loss, scores)))
    gradient = function(np.array([[0.0, 2000.0]]), np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(gradient, [[-1.0, 1.0]])


def test_sigmoid_gradient_is_stable() -> None:
    """Not the difference ``p - classes``, of which nothing is left where both are one."""
    scores, classes = esat.vector("scores"), esat.vector("classes")
    p = esat.sigmoid(scores)
    loss = -(classes * esat.log(p) + (1 - classes) * esat.log(1 - p)).sum()
    function = esat.compile(esat.Graph([scores, classes], esat.grad(loss, scores)))
    assert "log" not in {node.op.name for node in function.optimized.toposort()}
    gradient = function(
        np.array([-1000.0, -1000.0, 1000.0, 1000.0, 50.0]), np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    )
    np.testing.assert_allclose(gradient, [0.0, -1.0, 1.0, 0.0, -1.928749847963918e-22])


def test_one_minus_sigmoid_is_a_sigmoid_even_where_it_costs_another() -> None:
    x = esat.vector("x")
    assert compiled_ops([x], 1 - esat.sigmoid(x)) == ["neg", "sigmoid"]
    for output in (esat.sigmoid(x) * (1 - esat.sigmoid(x)), esat.grad(esat.sum(esat.sigmoid(x)), x)):
        assert compiled_ops([x], output).count("sigmoid") == 2
        np.testing.assert_allclose(
            esat.compile(esat.Graph([x], [output]))(np.array([50.0])), 1.928749847963918e-22
        )


@pytest.mark.parametrize("rows", ["scores", "labels"])
def test_gradient_at_labels_adds_to_the_softmax_and_is_stable(rows: str) -> None:
    scores, labels = esat.matrix("scores"), esat.lvector("labels")
    every = esat.arange({"scores": scores, "labels": labels}[rows].shape[0])
    loss = -esat.log(esat.softmax(scores, axis=1)[every, labels]).sum()
    function = esat.compile(esat.Graph([scores, labels], [loss, esat.grad(loss, scores)]))
    nodes = function.optimized.toposort()
    names = [node.op.name for node in nodes]
    assert names.count("log_softmax") == 1
    assert not {"log", "softmax", "div"} & set(names)
    (probabilities,) = (node for node in nodes if node.op.name == "exp")
    assert probabilities.inputs[0].owner.op.name == "log_softmax"
    value, gradient = function(np.array([[0.0, 2000.0], [1.0, 1.0]]), np.array([0, 1]))
    np.testing.assert_allclose(value, 2000.0 + np.log(2.0))
    np.testing.assert_allclose(gradient, [[-1.0, 1.0], [0.5, -0.5]])


def polynomial(x: object, degree: int, write: str) -> object:
    """A sum of powers, written with ``**`` or with products, of a Variable or an array."""
    total = 0.7
    for exponent in range(1, degree + 1):
        power = x**exponent if write == "powers" else math.prod([x] * exponent)
        total = total + (0.3 + exponent / 7) * power
    return total


@pytest.mark.parametrize("write", ["powers", "products"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_sum_of_powers_becomes_horners_form(write: str, dtype: str) -> None:
    x = esat.vector("x", dtype=dtype)
    written = polynomial(x, 19, write)
    quick = esat.compile(esat.Graph([x], written), esat.Mode("fast_run", accuracy="ignore"))
    names = [node.op.name for node in quick.optimized.toposort()]
    assert names.count("add") == 19
    products = names.count("mul") + names.count("sqr")
    assert products <= (19 if write == "powers" else 22)  # 209 are written
    assert set(names) <= {"add", "mul", "sqr", "dimshuffle"}
    function = esat.compile(esat.Graph([x], written))
    values = np.linspace(-1.4, 1.3, 501).astype(dtype)
    exact = polynomial(values.astype(np.longdouble), 19, write)
    scale = polynomial(abs(values).astype(np.longdouble), 19, write) * np.finfo(dtype).eps
    for form in (quick, function):
        assert np.max(abs(form(values) - exact) / scale) < 3
        assert np.mean(abs(form(values) - exact) / scale) < 0.3  # 0.40 to 0.47 as written, 0.22 Horner


def test_powers_in_distance_of_each_other_share(vectors: list) -> None:
    x = vectors[0]
    names = compiled_ops([x], 2.5 * x**9 + 0.3 * x**18 + x**27)
    assert names == ["add", "add", "mul", "mul", "pow"]
    squares = compiled_ops([x], [x**5, x**6])
    assert squares.count("sqr") <= 3


def test_powers_of_integers_are_products(vectors: list) -> None:
    x = esat.vector("x", dtype="int64")
    function = esat.compile(esat.Graph([x], [x**12 - x**5 * x**7, x**9 * 3 + x**9]), mode="strict")
    values = np.array([-3, 0, 2, 10**6])
    zero, four = function(values)
    np.testing.assert_array_equal(zero, 0 * values)
    np.testing.assert_array_equal(four, 4 * values**9)
