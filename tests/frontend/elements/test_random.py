import numpy as np
import pytest

import esat
from esat import random
from esat.graph import debugprint


def test_a_stream_draws_what_numpy_draws():
    stream, rng = random.RandomStream(5), np.random.default_rng(5)
    drawn = [
        stream.uniform(size=2), stream.normal(1.0, 2.0, size=(2, 2)), stream.integers(10, size=3),
        stream.exponential(), stream.permutation(4), stream.choice(np.arange(5.0), 2), stream.gamma(2.0),
        stream.beta(1.0, 2.0), stream.multinomial(5, [0.5, 0.5]),
        stream.multivariate_normal(np.zeros(2), np.eye(2)), stream.poisson(3.0), stream.binomial(5, 0.5),
        stream.geometric(0.2), stream.laplace(), stream.gumbel(), stream.logistic(), stream.bernoulli(0.5),
        stream.lognormal(), stream.rayleigh(), stream.weibull(2.0), stream.pareto(2.0), stream.power(2.0),
        stream.standard_t(4.0), stream.chisquare(3.0), stream.f(2.0, 3.0), stream.wald(1.0, 2.0),
        stream.vonmises(0.0, 2.0), stream.triangular(0.0, 1.0, 2.0), stream.negative_binomial(3, 0.5),
        stream.hypergeometric(5, 4, 3), stream.logseries(0.5), stream.zipf(2.5), stream.dirichlet([1.0, 2.0]),
    ]  # fmt: skip
    expected = [
        rng.uniform(size=2), rng.normal(1.0, 2.0, size=(2, 2)), rng.integers(10, size=3),
        rng.exponential(), rng.permutation(4), rng.choice(np.arange(5.0), 2), rng.gamma(2.0),
        rng.beta(1.0, 2.0), rng.multinomial(5, [0.5, 0.5]),
        rng.multivariate_normal(np.zeros(2), np.eye(2)), rng.poisson(3.0), rng.binomial(5, 0.5),
        rng.geometric(0.2), rng.laplace(), rng.gumbel(), rng.logistic(), rng.random() < 0.5,
        rng.lognormal(), rng.rayleigh(), rng.weibull(2.0), rng.pareto(2.0), rng.power(2.0),
        rng.standard_t(4.0), rng.chisquare(3.0), rng.f(2.0, 3.0), rng.wald(1.0, 2.0),
        rng.vonmises(0.0, 2.0), rng.triangular(0.0, 1.0, 2.0), rng.negative_binomial(3, 0.5),
        rng.hypergeometric(5, 4, 3), rng.logseries(0.5), rng.zipf(2.5), rng.dirichlet([1.0, 2.0]),
    ]  # fmt: skip
    for values, wanted in zip(esat.evaluate(drawn), expected, strict=True):
        np.testing.assert_array_equal(values, wanted)
    assert esat.evaluate(stream.state()).same_as(rng)


def test_updates_and_seeds():
    stream = random.RandomStream(5, name="stream")
    assert stream.updates() == {}
    x = stream.normal(size=2)
    ((shared, after),) = stream.updates().items()
    assert shared is stream.shared
    first, state = esat.evaluate([x, after])
    shared.set_value(state)
    second = esat.evaluate(x)
    rng = np.random.default_rng(5)
    np.testing.assert_array_equal(first, rng.normal(size=2))
    np.testing.assert_array_equal(second, rng.normal(size=2))
    stream.seed(5)
    np.testing.assert_array_equal(esat.evaluate(x), first)
    assert shared.get_value() is not shared.get_value()
    shared.get_value().normal()
    np.testing.assert_array_equal(esat.evaluate(x), first)


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "debug"])
def test_every_call_goes_on_with_the_stream(mode):
    stream, rng = random.RandomStream(5), np.random.default_rng(5)
    first, second = stream.normal(size=3), stream.uniform(size=2)
    stream.gamma(2.0)  # no part of the graphs below
    both = esat.compile(esat.Graph([], [first, second]), mode)
    for _ in range(2):
        for values, wanted in zip(both(), [rng.normal(size=3), rng.uniform(size=2)], strict=True):
            np.testing.assert_array_equal(values, wanted)
    alone = esat.compile(esat.Graph([], second), mode)
    rng.normal(size=3)
    np.testing.assert_array_equal(alone(), rng.uniform(size=2))
    np.testing.assert_array_equal(both()[0], rng.normal(size=3))


def test_streams_that_the_user_decides_about():
    stream, state = random.RandomStream(5), random.state("state")
    noise = stream.normal(size=3)
    kept = esat.compile(esat.Graph([], noise, updates={stream.shared: stream.shared}))
    np.testing.assert_array_equal(kept(), kept())
    given = esat.Graph([state], noise, givens={stream.shared: state})
    assert given.updates == ()
    np.testing.assert_array_equal(
        esat.compile(given)(np.random.default_rng(7)), np.random.default_rng(7).normal(size=3)
    )
    written = esat.Graph([], noise, updates=stream.updates())
    assert written.updates == esat.Graph([], noise).updates
    plain = random.shared_state(5)
    assert esat.Graph([], random.normal(plain)[1]).updates == ()


def test_a_given_generator_is_not_drawn_from():
    rng = np.random.default_rng(5)
    stream = random.RandomStream(rng)
    esat.evaluate(stream.normal(size=2))
    assert random.RandomState(rng.bit_generator).same_as(np.random.default_rng(5))


def test_graphs_with_states_can_be_copied_and_printed():
    stream = random.RandomStream(5, name="stream")
    x = esat.vector("x")
    graph = esat.Graph([x], x * stream.uniform(size=x.shape), updates=stream.updates()).function_graph()
    assert graph.shared_variables == [stream.shared]
    assert len(graph.clone()) == len(graph)
    text = debugprint(graph, file="str")
    assert "*1 -> uniform.1 <vector(float64)>" in text
    assert text.endswith("*1.0")
    assert "stream <random state>" in text
    constant = random.constant_state(3)
    assert str(constant) == "<constant random state>"
    with pytest.raises(esat.GraphError):
        esat.Graph([x], x * 2, updates={stream.shared: x})
