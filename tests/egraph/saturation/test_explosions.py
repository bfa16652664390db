"""Programs in which rules fed each other without end: e-nodes stay in proportion to the graph.

What they have in common: constants that are found late, in many forms; fills of many shapes; powers and
roots of one value that are written in terms of each other.
"""

import functools
import itertools
import operator
import random

import numpy as np
import pytest

import esat
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.schedule import Budgets
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.algorithms.traversal import inputs_of
from esat.optimize.equality.optimizer import optimize
from esat.optimize.equality.search import saturated
from esat.rules import RULES
from esat.rules.language.query import Query

E_NODES_A_NODE = 20


@pytest.fixture(scope="module")
def program():
    return program_for(RULES.query(Query(include=("fast_run",))))


def assert_proportional(program, inputs, outputs, most=E_NODES_A_NODE):
    graph = esat.Graph(inputs, outputs).function_graph()
    found, report = saturated(encode(graph), program, Budgets())
    assert report.stop_reason == "saturated", report
    assert found.arrays.node_count <= most * len(graph), report


def assert_same_values(program, inputs, outputs, values, most=E_NODES_A_NODE):
    """The same, and that the best program computes what was written."""
    graph = esat.Graph(inputs, outputs).function_graph()
    optimized, report = optimize(graph, program, Budgets())
    assert report.stop_reason == "saturated", report
    assert report.e_nodes <= most * len(graph), report
    with np.errstate(all="ignore"):
        written = evaluate(graph.outputs, dict(zip(graph.inputs, values, strict=True)))
        found = evaluate(optimized.outputs, dict(zip(optimized.inputs, values, strict=True)))
    for right, value in zip(written, found, strict=True):
        assert (value.dtype, value.shape) == (right.dtype, right.shape)
        np.testing.assert_allclose(value, right, rtol=1e-9, atol=1e-9)


x, y, s = esat.vector("x"), esat.vector("y"), esat.scalar("s")


def powers(variable, count):
    total = sum(float(i + 1) * variable**i for i in range(count))
    return [total, esat.grad(total.sum() if variable.type.ndim else total, variable)]


def density_of_students(variable, logarithm, freedom):
    """By the logarithm of its scale, from which precision and scale follow by powers."""
    precision = (esat.exp(-2 * logarithm) ** -0.5 * esat.ones_like(logarithm)) ** -2.0
    squares = esat.log1p(precision * variable**2 / freedom)
    density = (0.5 * esat.log(precision / (freedom * np.pi)) - (freedom + 1) / 2 * squares).sum()
    return [density, esat.grad(density, logarithm), esat.grad(density, freedom)]


many = [esat.vector(f"v{number}") for number in range(16)]

ENTRIES = {
    "four powers": ([x], powers(x, 4), 3),
    "eight powers": ([x], powers(x, 8), 4),
    "powers of a scalar": ([s], powers(s, 6), 4),
    "no gradient": ([x], [1 + 2 * x + 3 * x**2 + 4 * x**3], 4),
    "variance": ([x], [esat.grad(esat.var(x), x)], 16),
    "ones and zeros": ([x, y], [esat.ones_like(x) * y + esat.zeros_like(x) * y + esat.full_like(x, 2.0)], 6),
    "roots of a root": ([x], [esat.sqrt(esat.sqrt(abs(x))) ** 3 / esat.sqrt(abs(x))], 16),
    "an exponential and its inverse": ([x, s], [x * esat.exp(-s) * esat.exp(2 * s) / esat.exp(s)], 10),
    "powers of exponentials": ([x, y, s], density_of_students(x, y, s), 10),
    "differences of exponentials": (many, [sum(esat.exp(one) - esat.exp(-one) for one in many)], 3),
    "the logarithm of one": (
        [s],
        [esat.log(esat.exp(s) * esat.ones_like(s)) + esat.log(esat.ones_like(s))],
        6,
    ),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_entries(program, name):
    inputs, outputs, most = ENTRIES[name]
    values = [np.array([0.5, 1.5, 2.0]) if one.type.ndim else np.array(0.7) for one in inputs]
    assert_same_values(program, inputs, outputs, values, most)


def normal(value, mean, deviation):
    density = -0.5 * ((value - mean) / deviation) ** 2 - esat.log(np.sqrt(2 * np.pi)) - esat.log(deviation)
    return esat.assert_(density, (deviation > 0).all(), message="deviation > 0")


def switched_normal(value, mean, deviation):
    density = -0.5 * ((value - mean) / deviation) ** 2 - 0.5 * np.log(2 * np.pi) - esat.log(deviation)
    return esat.where(deviation > 0, density, -np.inf)


def half_cauchy(value, scale):
    return esat.where(value >= 0, np.log(2 / (np.pi * scale)) - esat.log(1 + (value / scale) ** 2), -np.inf)


def hierarchical(density, groups):
    """The logarithm of a density of a hierarchical model, with its gradient: full of fills and conditions."""
    mean, log_tau, log_sigma = (esat.scalar(name) for name in ("mean", "log_tau", "log_sigma"))
    effects, slopes = esat.vector("effects"), esat.vector("slopes")
    inputs = [mean, log_tau, log_sigma, effects, slopes]
    tau, sigma = esat.exp(log_tau), esat.exp(log_sigma)
    total = density(mean, esat.full_like(mean, 0.0), esat.full_like(mean, 10.0)).sum()
    total = total + half_cauchy(tau, 5.0) + log_tau + half_cauchy(sigma, 2.0) + log_sigma
    total = total + density(effects, esat.zeros_like(effects) + mean, esat.ones_like(effects) * tau).sum()
    total = total + density(slopes, esat.zeros_like(slopes), esat.ones_like(slopes)).sum()
    for group in range(groups):
        features, observed = esat.matrix(f"features{group}"), esat.vector(f"observed{group}")
        expected = features @ slopes + effects[group]
        total = total + density(observed, expected, esat.full_like(observed, 1.0) * sigma).sum()
        inputs += [features, observed]
    return inputs, [total, *(esat.grad(total, one) for one in inputs[:5])]


@pytest.mark.parametrize(("density", "groups"), [(normal, 1), (switched_normal, 1)])
def test_hierarchical_models(program, density, groups):
    inputs, outputs = hierarchical(density, groups)
    assert_proportional(program, inputs, outputs)


class Expressions:
    """Random polynomials of vectors and scalars, with fills and switches on conditions that are constant."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.leaves = [x, y, s]

    def constant(self):
        return self.random.choice([0.0, 1.0, -1.0, 2.0, 0.5, 3.0])

    def grown(self, depth):
        chooser = self.random
        if depth == 0:
            leaf = chooser.choice(self.leaves)
            return chooser.choice([leaf, leaf, leaf * self.constant(), leaf ** chooser.choice([0, 1, 2, 3])])
        left, right = self.grown(depth - 1), self.grown(depth - 1)
        return chooser.choice([self.sum, self.product, self.filled, self.switched])(left, right)

    def sum(self, left, right):
        return left + self.constant() * right if self.random.random() < 0.7 else left - right

    def product(self, left, right):
        return left * right

    def filled(self, left, right):
        fill = self.random.choice(
            [esat.zeros_like, esat.ones_like, lambda one: esat.full_like(one, self.constant())]
        )
        return left * fill(right) + right

    def switched(self, left, right):
        condition = self.random.choice([esat.ones_like(left) > 0, esat.constant(True), esat.exp(right) > 0])
        return esat.where(condition, left, right)


@pytest.mark.parametrize("seed", range(12))
def test_random_polynomials_with_gradients(program, seed):
    expressions = Expressions(seed)
    total = expressions.grown(3)
    loss = (total + 0.0 * (x + y + s)).sum()
    outputs = [total, *(esat.grad(loss, one) for one in (x, y, s))]
    generator = np.random.default_rng(seed)
    values = [generator.uniform(-2, 2, 4), generator.uniform(-2, 2, 4), np.array(generator.uniform(-2, 2))]
    assert_same_values(program, [x, y, s], outputs, values)


def test_what_the_algebra_says_again_is_no_change(program):
    matrix = esat.matrix("m")
    nothing = (matrix - matrix) * esat.exp(matrix) * esat.softmax(matrix + matrix, axis=-1)
    quotient = (nothing + matrix) / (nothing + matrix + matrix) - matrix
    graph = esat.Graph([matrix], [quotient, esat.grad(quotient.sum(), matrix)]).function_graph()
    _, report = saturated(encode(graph), program, Budgets(rounds=100))
    assert report.stop_reason == "saturated", report


QUOTIENTS = {
    "a sum that cancels": lambda: (x * y + s * y) / (x + s) - y,
    "sigmoid and exponential": lambda: esat.log(esat.sigmoid(x) * esat.exp(x)),
    "square of a sigmoid": lambda: esat.log(esat.sigmoid(x) ** 2),
    "multiple of a softmax": lambda: esat.log(2 * esat.softmax(x * y, axis=0))[:1],
}


@pytest.mark.parametrize("name", QUOTIENTS)
def test_small_products_and_quotients_stay_small(program, name):
    value = QUOTIENTS[name]()
    outputs = [value, esat.grad(value.sum(), x)]
    graph = esat.Graph([x, y, s], outputs, on_unused_input="ignore").function_graph()
    _, report = saturated(encode(graph), program, Budgets())
    assert report.stop_reason == "saturated", report
    assert report.nodes <= E_NODES_A_NODE * len(graph), report


def units(variable, one):
    """Ways to write a variable with units of one element."""
    zero = one - one
    return [
        variable * one,
        variable / one,
        variable + zero,
        variable - zero,
        variable**one,
        (variable * one + zero) * one,
        esat.ones_like(variable) * variable * one,
        esat.zeros_like(variable) + variable / one,
    ]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_units_of_one_element_leave_nothing_to_compute(program, rank, dtype):
    one = esat.constant(np.ones((1,) * rank, dtype))
    variable = esat.tensor("t", dtype=dtype, shape=(None,) * rank)
    graph = esat.Graph([variable], units(variable, one)).function_graph()
    optimized, _ = optimize(graph, program, Budgets())
    assert not optimized.apply_nodes
    # Units that add axes to a scalar leave the axes, and those of another dtype the cast.
    scalar = esat.scalar("s", dtype=dtype)
    graph = esat.Graph([scalar], units(scalar, one)[:2]).function_graph()
    optimized, _ = optimize(graph, program, Budgets())
    assert {type(node.op).__name__ for node in optimized.apply_nodes} == {"DimShuffle"}


PAIRED = {
    "sin over cos": lambda a, b: esat.sin(a) / esat.cos(a),
    "e^a over 1 + e^a": lambda a, b: esat.exp(a) / (1 + esat.exp(a)),
    "sigmoid": lambda a, b: esat.sigmoid(a),
    "1 + 1/a": lambda a, b: 1 + 1 / a,
    "sizes": lambda a, b: abs(a) * abs(b),
    "roots": lambda a, b: esat.sqrt(a) * esat.sqrt(b),
    "two products": lambda a, b: a * b + b * a,
    "maximum": lambda a, b: esat.maximum(a, 0),
    "differences of exponentials": lambda a, b: esat.exp(a) - esat.exp(b),
}
"""What has another form in products, across a fraction, in sums or in logarithms."""
AROUND = {
    "product": lambda factors: functools.reduce(operator.mul, factors),
    "among others": lambda factors: esat.tan(s) * functools.reduce(operator.mul, factors) * esat.sinh(s),
    "sum": sum,
    "logarithm": lambda factors: esat.log(functools.reduce(operator.mul, factors)),
    "reciprocal": lambda factors: 1 / functools.reduce(operator.mul, factors),
}


OVERLAPPING = {("differences of exponentials", "sum")}
"""Any two of its terms make a pair."""


@pytest.mark.parametrize(("name", "around"), sorted(set(itertools.product(PAIRED, AROUND)) - OVERLAPPING))
def test_nodes_grow_with_the_factors_not_with_their_subsets(program, name, around):
    nodes = {}
    for count in (8, 16):
        firsts, seconds = ([esat.vector(f"{letter}{i}") for i in range(count)] for letter in "ab")
        whole = AROUND[around](list(map(PAIRED[name], firsts, seconds)))
        inputs = [*firsts, *seconds, s]
        graph = esat.Graph(inputs, [whole], on_unused_input="ignore").function_graph()
        found, report = saturated(encode(graph), program, Budgets())
        assert report.stop_reason == "saturated", report
        nodes[count] = found.arrays.node_count
    assert nodes[16] <= 2.2 * nodes[8], nodes
    assert nodes[8] <= 60 * 8, nodes


def test_places_of_a_rule_in_a_long_product_are_all_taken(program):
    variables = [esat.vector(f"v{i}") for i in range(12)]
    product = functools.reduce(operator.mul, [esat.sin(one) / esat.cos(one) for one in variables])
    graph = esat.Graph(variables, [product]).function_graph()
    optimized, _ = optimize(graph, program, Budgets())
    assert sorted(node.op.name for node in optimized.apply_nodes) == ["mul"] * 11 + ["tan"] * 12
    values = [np.linspace(0.1, 1.2, 3) + 0.01 * place for place in range(12)]
    found = evaluate(optimized.outputs, dict(zip(optimized.inputs, values, strict=True)))[0]
    np.testing.assert_allclose(found, np.prod(np.tan(values), axis=0), rtol=1e-13)


def test_rules_whose_places_overlap_end(program):
    # Any exponential makes a pair with any other: one pair after the other is made, not every set of pairs.
    nodes = {}
    for count in (4, 8):
        firsts, seconds = ([esat.vector(f"{letter}{i}") for i in range(count)] for letter in "ab")
        pairs = zip(firsts, seconds, strict=True)
        total = sum(esat.exp(one) - esat.exp(other) for one, other in pairs)
        found, _ = saturated(
            encode(esat.Graph([*firsts, *seconds], [total]).function_graph()), program, Budgets()
        )
        nodes[count] = found.arrays.node_count
    assert nodes[8] <= 4 * 1.5 * nodes[4], nodes


def recurrence(steps):
    """tanh(W h), often, and the gradients of its sum: a sign and a scalar pass through each step."""
    weights, state = esat.matrix("weights"), esat.vector("state")
    last = state
    for _ in range(steps):
        last = esat.tanh(weights @ last)
    return [weights, state], [last, *esat.grad(last.mean(), [weights, state])]


def perceptron(layers):
    """Layers with a loss that is a mean: its constant passes through each layer's product."""
    batch, wanted = esat.matrix("batch"), esat.matrix("wanted")
    weights = [esat.matrix(f"weights{layer}") for layer in range(layers)]
    last = batch
    for matrix in weights:
        last = esat.tanh(last @ matrix)
    loss = ((last - wanted) ** 2).mean()
    return [batch, wanted, *weights], [loss, *esat.grad(loss, weights)]


@pytest.mark.parametrize("build", [recurrence, perceptron])
def test_rounds_do_not_depend_on_depth_nor_nodes_more_than_linearly(program, build):
    rounds, nodes = {}, {}
    for depth in (6, 12, 24):
        graph = esat.Graph(*build(depth)).function_graph()
        found, report = saturated(encode(graph), program, Budgets())
        assert report.stop_reason == "saturated", report
        rounds[depth], nodes[depth] = report.rounds, found.arrays.node_count
    assert rounds[24] == rounds[12], rounds
    assert nodes[24] - nodes[12] <= 2.1 * (nodes[12] - nodes[6]), nodes


PAIRS = {
    "a quotient in itself": lambda a, b: ((a * a + a) / a) / (((a * a + a) / a) + a) - a,
    "a quotient of exponentials": lambda a, b: esat.log(esat.softplus(a)) / ((a + a) / esat.exp(b)),
}


@pytest.mark.parametrize(
    ("name", "gradient"),
    [
        ("a quotient in itself", False),
        ("a quotient of exponentials", False),
        ("a quotient of exponentials", True),
    ],
)
def test_a_factor_of_one_is_not_taken_out_of_what_it_is_in(program, name, gradient):
    """Of x = x y, which says that y is 1, no x is made with more factors y."""
    output = PAIRS[name](x, y)
    inputs = [x, y] if "exponentials" in name else [x]
    outputs = [output, *(esat.grad(output.sum(), inputs) if gradient else ())]
    values = [np.array([0.5, 1.25, 2.0]), np.array([-0.75, 0.5, 1.5])]
    assert_same_values(program, inputs, outputs, values[: len(inputs)], most=40)


def test_distances_of_all_pairs(program):
    points = esat.matrix("points")
    difference = points[:, None, :] - points[None, :, :]
    inverse = 1.0 / ((difference * difference).sum(axis=2) + 1.0) ** 3
    energy = (inverse * inverse - inverse).sum()
    outputs = [energy, esat.grad(energy, points)]
    assert_same_values(program, [points], outputs, [np.linspace(-1.0, 2.0, 12).reshape(4, 3)])


def test_products_with_zeros_are_no_factors_of_others(program):
    """Of a square matrix, A @ 0 is 0: its own factor, and that of all powers of A."""
    a, b = esat.matrix("a"), esat.vector("b")
    x = esat.zeros_like(b)
    r = b - a @ x
    p, rs = r, (r * r).sum()
    for _ in range(3):  # conjugate gradients
        ap = a @ p
        alpha = rs / (p * ap).sum()
        x, r = x + alpha * p, r - alpha * ap
        new = (r * r).sum()
        p, rs = r + new / rs * p, new
    m = np.random.default_rng(1).normal(size=(6, 6))
    assert_same_values(program, [a, b], [x], [m @ m.T + 6 * np.eye(6), np.ones(6)])


A, B, W = esat.matrix("A"), esat.matrix("B"), esat.matrix("W")
SQUARES = {
    "half": (x, lambda: 0.5 * ((A @ x - y) ** 2).sum()),
    "by two": (x, lambda: ((A @ x - y) ** 2).sum() / 2),
    "mean": (x, lambda: 0.5 * ((A @ x - y) ** 2).mean()),
    "scaled by an input": (x, lambda: s * ((A @ x - y) ** 2).sum() / 2),
    "ridge": (x, lambda: 0.5 * ((A @ x - y) ** 2).sum() + 0.5 * s * (x**2).sum()),
    "of matrices": (W, lambda: 0.5 * ((A @ W - B) ** 2).sum()),
    "two layers": (W, lambda: 0.5 * ((A @ W @ B - y) ** 2).sum()),
}


@pytest.mark.parametrize("name", SQUARES)
def test_scales_do_not_go_in_and_out_of_products(program, name):
    """The 1/2 and the 2 that cancel each other make multiples of the operands, which make further ones."""
    by, build = SQUARES[name]
    loss = build()
    outputs = [loss, esat.grad(loss, by)]
    inputs = [one for one in inputs_of(outputs) if not isinstance(one, esat.Constant)]
    assert_proportional(program, inputs, outputs)


def forward_recursion(moments):
    """The likelihood of a hidden Markov model: the sum that divides a state passes through all later ones."""
    scores, log_rates = esat.tensor("scores", shape=(4, 4)), esat.tensor("log_rates", shape=(4,))
    counts = np.arange(moments, dtype=float)[:, None]
    weights = esat.exp(scores)
    transitions = weights / weights.sum(axis=1)[:, None]
    emissions = esat.exp(counts * log_rates - esat.exp(log_rates))
    state, total = emissions[0] / 4, -0.5 * (scores**2).sum()
    for moment in range(1, moments):
        scale = state.sum()
        total = total + esat.log(scale)
        state = ((state / scale) @ transitions) * emissions[moment]
    total = total + esat.log(state.sum())
    return [scores, log_rates], [total, *esat.grad(total, [scores, log_rates])]


@pytest.mark.parametrize("moments", [2, 4, 8])
def test_scaled_recursions(program, moments):
    assert_proportional(program, *forward_recursion(moments))


def test_all_scalars_of_a_product_are_drawn_out_at_once(program):
    """One after the other there would be a term for each subset of them."""
    scalars = [esat.scalar(f"s{place}") for place in range(8)]
    product = A
    for scalar in scalars:
        product = product * scalar
    outputs = [(product @ B).sum(axis=0), product.T]
    assert_proportional(program, [A, B, *scalars], outputs, most=8)


points, others = esat.matrix("points"), esat.matrix("others")
length, height = esat.scalar("length"), esat.scalar("height")
KERNELS = {
    "as it is": lambda squares: height**2 * esat.exp(-0.5 * squares / length**2),
    "of logarithms": lambda squares: esat.exp(height) * esat.exp(-0.5 * squares * esat.exp(-2 * length)),
    "of squares of exponentials": lambda squares: (
        esat.exp(height) ** 2 * esat.exp(-squares / (2 * esat.exp(length) ** 2))
    ),
    "of a rate": lambda squares: esat.exp(-esat.exp(length) * squares),
}
SUMS = {"sum": lambda kernel: kernel.sum(), "quadratic form": lambda kernel: x @ kernel @ y}


@pytest.mark.parametrize("summed", SUMS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_exponentials_of_a_product_become_one(program, kernel, summed):
    """Factors and divisors one after the other, there would be a term for each subset of them."""
    squares = ((points[:, None, :] - others[None, :, :]) ** 2).sum(axis=2)
    total = SUMS[summed](KERNELS[kernel](squares))
    inputs = [one for one in inputs_of([total]) if not isinstance(one, esat.Constant)]
    outputs = [total, *esat.grad(total, inputs)]
    values = {
        points: np.linspace(-1.0, 1.0, 12).reshape(4, 3),
        others: np.linspace(0.0, 1.5, 15).reshape(5, 3),
        length: np.array(0.3),
        height: np.array(-0.2),
        x: np.linspace(-1.0, 1.0, 4),
        y: np.linspace(0.5, 1.0, 5),
    }
    assert_same_values(program, inputs, outputs, [values[one] for one in inputs], most=30)


def test_what_is_its_own_inverse_is_inverted_once(program):
    """One is a power, and its inverse: powers of it with one sign after another have no end."""
    outputs = [esat.sqrt(esat.assume(x, "positive") ** 2)]
    assert_proportional(program, [x], outputs, most=25)


def test_views_of_rows_and_columns_have_one_word_each(program):
    column = esat.tensor("column", shape=(None, 1))
    views = [column[:, 0], column[:, 0][:, None], column[:, 0][None, :], column.T, column.T[0][:, None].T]
    graph = esat.Graph([column], views).function_graph()
    optimized, report = optimize(graph, program, Budgets())
    assert report.saturation.nodes <= 16, report
    assert len(optimized.apply_nodes) == 2


def kalman_filter(moments):
    """The log-density of a point that moves in the plane, seen with noise, and its gradient."""
    process, noise = esat.exp(length) * np.eye(4), esat.exp(height) * np.eye(2)
    motion, seen = np.eye(4) + np.eye(4, k=2), np.eye(2, 4)
    mean, covariance, total = np.zeros(4), np.eye(4), 0.0
    for place in np.cumsum(np.linspace(-1.0, 1.5, 2 * moments).reshape(moments, 2), axis=0):
        mean = esat.matmul(motion, mean)
        covariance = esat.matmul(esat.matmul(motion, covariance), motion.T) + process
        rest = place - esat.matmul(seen, mean)
        own = esat.matmul(esat.matmul(seen, covariance), seen.T) + noise
        gain = esat.linalg.solve(own, esat.matmul(seen, covariance)).T
        explained = esat.sum(rest * esat.linalg.solve(own, rest[:, None])[:, 0])
        total = total - 0.5 * esat.linalg.slogdet(own)[1] - 0.5 * explained
        mean = mean + esat.matmul(gain, rest)
        covariance = covariance - esat.matmul(esat.matmul(gain, seen), covariance)
    return [total, *esat.grad(total, [length, height])]


def test_recurrences_of_small_matrices_are_no_chains(program):
    """Products and systems go through all steps, in both directions: the chains have n^2 pieces."""
    assert_proportional(program, [length, height], kalman_filter(4), most=13)
    values = [np.array(0.3), np.array(-0.2)]
    assert_same_values(program, [length, height], kalman_filter(2), values)
