"""Draws against NumPy's generators, their gradients along the path, and what they refuse."""

import numpy as np
import pytest

import esat
from esat import random
from esat.errors import DtypeError, GradientError, ParameterError, ShapeError
from esat.graph.algorithms.folding import fold
from esat.graph.op import Family

SEED = 11
ROW = np.array([0.5, 1.0, 2.5])
SHARES = np.array([0.2, 0.3, 0.5])
COVARIANCE = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.5]])
DRAWS = [
    ("uniform", (ROW, ROW + 1)),
    ("uniform", (-2.0, 3)),
    ("normal", (ROW, 2.0)),
    ("normal", (np.ones((2, 1)), ROW)),
    ("laplace", (ROW, 0.5)),
    ("gumbel", (0.0, ROW)),
    ("logistic", (1, 2)),
    ("exponential", (ROW,)),
    ("gamma", (ROW, 2.0)),
    ("beta", (ROW, 1.5)),
    ("poisson", (ROW,)),
    ("binomial", (np.array([3, 4, 5]), 0.4)),
    ("geometric", (SHARES,)),
    ("lognormal", (ROW, 0.5)),
    ("rayleigh", (ROW,)),
    ("weibull", (ROW,)),
    ("pareto", (ROW,)),
    ("power", (ROW,)),
    ("standard_t", (ROW,)),
    ("chisquare", (ROW,)),
    ("f", (ROW, 3.0)),
    ("wald", (ROW, 2.0)),
    ("vonmises", (ROW, 2.0)),
    ("triangular", (-1.0, 0.0, ROW)),
    ("negative_binomial", (ROW, 0.4)),
    ("hypergeometric", (5, 7, np.array([1, 4, 12]))),
    ("logseries", (SHARES,)),
    ("zipf", (ROW + 1,)),
    ("dirichlet", (ROW,)),
    ("integers", (0, np.array([5, 10, 1000]))),
    ("multinomial", (7, SHARES)),
    ("multinomial", (np.array([7, 100]), SHARES)),
    ("multivariate_normal", (ROW, COVARIANCE)),
]


def sample(function, *arguments, **options):
    after, drawn = function(SEED, *arguments, **options)
    assert drawn.owner.op.family is Family.RANDOM
    state, values = esat.evaluate([after, drawn])
    assert drawn.type.admits(esat.TensorType(values.dtype, shape=values.shape))
    return state, values


@pytest.mark.parametrize(("name", "parameters"), DRAWS, ids=lambda value: value if type(value) is str else "")
def test_samples_and_states_are_those_of_numpy(name, parameters):
    function = getattr(random, name)
    batch = np.shape(getattr(np.random.default_rng(SEED), name)(*parameters))
    batch = batch[: -1 if name.startswith(("multi", "dirichlet")) else None]
    for size in (None, (4, *batch), (0, *batch)):
        rng = np.random.default_rng(SEED)
        expected = np.asarray(getattr(rng, name)(*parameters, size=size))
        state, values = sample(function, *parameters, size=size)
        np.testing.assert_array_equal(values, expected)
        assert values.dtype == expected.dtype
        assert state.same_as(rng)


def test_options_are_those_of_numpy():
    for dtype in ("int8", "uint16", "int32", "bool"):
        _, values = sample(random.integers, 0, 2, size=9, dtype=dtype)
        np.testing.assert_array_equal(values, np.random.default_rng(SEED).integers(0, 2, 9, dtype=dtype))
    _, values = sample(random.integers, 5, size=(3,), endpoint=True)
    np.testing.assert_array_equal(values, np.random.default_rng(SEED).integers(5, size=3, endpoint=True))
    for method in ("svd", "eigh", "cholesky"):
        _, values = sample(random.multivariate_normal, ROW, COVARIANCE, size=2, method=method)
        expected = np.random.default_rng(SEED).multivariate_normal(ROW, COVARIANCE, 2, method=method)
        np.testing.assert_allclose(values, expected, rtol=1e-13)
    _, values = sample(random.bernoulli, SHARES, size=(50, 3))
    np.testing.assert_array_equal(values, np.random.default_rng(SEED).random((50, 3)) < SHARES)


def test_shares_of_several_vectors_are_drawn_one_after_the_other():
    rows = np.array([[1.0, 2.0, 0.5], [3.0, 1.0, 9.0]])
    for size in (None, (2,), (3, 2)):
        state, values = sample(random.dirichlet, rows, size=size)
        generator = np.random.default_rng(SEED)
        for place in np.ndindex(size or (2,)):
            np.testing.assert_array_equal(values[place], generator.dirichlet(rows[place[-1]]))
        assert state.same_as(generator)
    assert sample(random.dirichlet, rows, size=(0, 2))[1].shape == (0, 2, 3)


def test_choice_and_permutation():
    table = np.arange(12.0).reshape(4, 3)
    for options in (
        {},
        {"size": 5},
        {"size": (2, 2), "replace": False},
        {"size": 2, "replace": False, "shuffle": False},
        {"size": 6, "p": np.array([0.1, 0.2, 0.3, 0.4])},
    ):
        for source in (4, table[:, 0], table):
            expected = np.random.default_rng(SEED).choice(source, **options)
            values = esat.evaluate(random.choice(SEED, source, **options)[1])
            np.testing.assert_array_equal(values, expected)
            assert values.shape == np.shape(expected)
    values = esat.evaluate(random.choice(SEED, table, 2, axis=1)[1])
    np.testing.assert_array_equal(values, np.random.default_rng(SEED).choice(table, 2, axis=1))
    for source in (6, table[:, 0], table):
        after, drawn = random.permutation(SEED, source)
        rng = np.random.default_rng(SEED)
        np.testing.assert_array_equal(esat.evaluate(drawn), rng.permutation(source))
        assert esat.evaluate(after).same_as(rng)
    values = esat.evaluate(random.permutation(SEED, table, axis=1)[1])
    np.testing.assert_array_equal(np.sort(values, axis=1), table)


def test_other_generators():
    state = random.state("state")
    _, drawn = random.normal(state, size=3)
    for kind in (np.random.Philox, np.random.SFC64, np.random.MT19937, np.random.PCG64DXSM):
        rng = np.random.Generator(kind(3))
        expected = np.random.Generator(kind(3)).normal(size=3)
        for _ in range(2):
            np.testing.assert_array_equal(esat.evaluate(drawn, {state: rng}), expected)


def test_sizes_in_the_graph():
    x, n = esat.matrix("x"), esat.scalar("n", "int64")
    _, like = random.uniform(SEED, size=x.shape)
    _, some = random.normal(SEED, x[:1], 1.0, size=(n, 3))
    like, some = esat.evaluate([like, some], {x: np.ones((2, 3)), n: 4})
    assert like.shape == (2, 3)
    assert some.shape == (4, 3)
    _, known = random.normal(SEED, ROW, size=(2, 3))
    assert known.type.shape == (2, 3)
    assert random.multinomial(SEED, 3, SHARES, size=2)[1].type.shape == (2, 3)
    assert random.permutation(SEED, 5)[1].type.shape == (5,)


def test_equal_states_give_equal_samples_and_states_are_never_changed():
    state = random.constant_state(SEED)
    first, again = random.normal(state, size=3), random.normal(state, size=3)
    after, later = random.normal(first[0], size=3)
    values = esat.evaluate([first[1], again[1], later])
    np.testing.assert_array_equal(values[0], values[1])
    assert not np.array_equal(values[0], values[2])
    assert first[1].owner.op == again[1].owner.op
    assert state.data.same_as(np.random.default_rng(SEED))
    in_place = first[1].owner.op.inplace()
    assert in_place.destroy_map == {0: (0,)}
    np.testing.assert_array_equal(esat.evaluate(in_place(state, 0.0, 1.0, 3)[1]), values[0])
    assert state.data.same_as(np.random.default_rng(SEED))
    owned = state.data.copy()
    assert in_place.perform([owned, np.array(0.0), np.array(1.0), np.array(3)])[0] is owned
    assert fold(after.owner, after.owner.inputs) is None


def test_gradients_along_the_path():
    for name in ("uniform", "normal", "laplace", "gumbel", "logistic"):
        function = getattr(random, name)
        esat.verify_grad(lambda a, b, f=function: f(SEED, a, b)[1] ** 2, [ROW, np.ones((2, 1)) * 4])
        esat.verify_grad(lambda a, b, f=function: f(SEED, a, b, size=(4, 3))[1], [ROW, np.array(4.0)])
    for size in (None, (2, 3)):
        esat.verify_grad(lambda scale, n=size: random.exponential(SEED, scale, size=n)[1], [ROW])
        esat.verify_grad(lambda scale, n=size: random.rayleigh(SEED, scale, size=n)[1], [ROW])
        esat.verify_grad(lambda a, b, n=size: random.lognormal(SEED, a, b, size=n)[1], [ROW, 0.5 * ROW])
        esat.verify_grad(lambda mu, n=size: random.vonmises(SEED, mu, 2.0, size=n)[1], [ROW])
        esat.verify_grad(lambda scale, n=size: random.gamma(SEED, 2.0, scale, size=n)[1], [ROW])
        count = None if size is None else 2
        esat.verify_grad(lambda m, n=count: random.multivariate_normal(SEED, m, COVARIANCE, n)[1], [ROW])
        esat.verify_grad(
            lambda m, r, n=count: random.multivariate_normal(SEED, m, r @ r.T, n, method="cholesky")[1],
            [ROW, np.linalg.cholesky(COVARIANCE) + 0.1],
        )
    esat.verify_grad(lambda x: random.choice(SEED, x, size=5)[1] ** 2, [ROW])
    esat.verify_grad(lambda x: random.permutation(SEED, x)[1] * ROW, [ROW])
    x = esat.scalar("x")
    slopes = esat.grad(random.normal(SEED, 1.0, x, size=3)[1].sum(), x)
    assert np.isfinite(esat.evaluate(slopes, {x: 0.0}))


def test_gradients_that_do_not_exist():
    x = esat.vector("x")
    for drawn in (
        random.gamma(SEED, x)[1],
        random.beta(SEED, x, 1.0)[1],
        random.vonmises(SEED, 0.0, x)[1],
        random.dirichlet(SEED, x)[1],
        random.multivariate_normal(SEED, ROW, esat.diag(x))[1],
    ):
        with pytest.raises(GradientError, match="must be a constant"):
            esat.grad(drawn.sum(), x)
    masked = esat.where(random.bernoulli(SEED, x)[1], x, 0.0)
    gradient = esat.evaluate(esat.grad(masked.sum(), x), {x: SHARES})
    np.testing.assert_array_equal(gradient, sample(random.bernoulli, SHARES)[1].astype(float))


def test_parameters_outside_the_domain():
    for drawn in (
        random.normal(SEED, 0.0, -1.0),
        random.bernoulli(SEED, 1.5),
        random.integers(SEED, 3, 3),
        random.hypergeometric(SEED, 3, 3, 7),
        random.zipf(SEED, 1.0),
        random.dirichlet(SEED, [1.0, -1.0]),
        random.choice(SEED, 3, size=4, replace=False),
        random.multivariate_normal(SEED, ROW, -COVARIANCE),
        random.multivariate_normal(SEED, ROW, -COVARIANCE, method="cholesky"),
    ):
        with pytest.raises(ParameterError, match=r"\n  at .*test_draws\.py"):
            esat.evaluate(drawn[1])


def test_errors():
    for build in (
        lambda: random.normal(SEED, ROW, size=(4, 2)),
        lambda: random.normal(SEED, np.ones((2, 3)), size=3),
        lambda: random.uniform(SEED, size=-1),
        lambda: random.multinomial(SEED, 3, 0.5),
        lambda: random.multivariate_normal(SEED, ROW, np.eye(2)),
        lambda: random.multivariate_normal(SEED, np.ones((2, 3)), COVARIANCE),
        lambda: random.choice(SEED, 3, p=np.ones((3, 3))),
    ):
        with pytest.raises(ShapeError):
            build()
    for build in (
        lambda: random.normal(esat.vector()),
        lambda: random.normal("seed"),
        lambda: random.normal(SEED, 1j),
        lambda: random.integers(SEED, 0.5),
        lambda: random.integers(SEED, 5, dtype="float64"),
        lambda: random.multivariate_normal(SEED, ROW, COVARIANCE, method="lu"),
        lambda: random.RandomType().filter(3),
    ):
        with pytest.raises(DtypeError):
            build()
