"""Draws in native functions: NumPy's numbers, its errors, and streams that go on as with the driver."""

import numpy as np
import pytest
from native_calls import as_tuple, way_of

import esat
from esat.codegen.ground import draws
from esat.errors import ParameterError
from esat.runtime.native import direct

pytestmark = pytest.mark.skipif(
    not draws.DrawLine("normal").is_available, reason="NumPy hides its functions of bit generators"
)
V = np.array([0.5, 2.0, 0.25])
DRAWS = {
    "normal": lambda g, size: g.normal(size=size),
    "normal, located": lambda g, size: g.normal(V, 2.0, size=size),
    "exponential": lambda g, size: g.exponential(3.0, size=size),
    "laplace": lambda g, size: g.laplace(1.0, V, size=size),
    "gumbel": lambda g, size: g.gumbel(size=size),
    "logistic": lambda g, size: g.logistic(-1.0, 0.5, size=size),
    "gamma": lambda g, size: g.gamma(V, 2.0, size=size),
    "beta": lambda g, size: g.beta(V, V[::-1], size=size),
    "uniform": lambda g, size: g.uniform(-V, 3.0, size=size),
    "lognormal": lambda g, size: g.lognormal(V, 0.5, size=size),
    "rayleigh": lambda g, size: g.rayleigh(V, size=size),
    "vonmises": lambda g, size: g.vonmises(V, 2.0, size=size),
    "weibull": lambda g, size: g.weibull(V, size=size),
    "pareto": lambda g, size: g.pareto(V, size=size),
    "power": lambda g, size: g.power(V, size=size),
    "standard_t": lambda g, size: g.standard_t(V, size=size),
    "chisquare": lambda g, size: g.chisquare(V, size=size),
    "f": lambda g, size: g.f(V, 3.0, size=size),
    "wald": lambda g, size: g.wald(V, 2.0, size=size),
    "poisson": lambda g, size: g.poisson(20 * V, size=size),
    "geometric": lambda g, size: g.geometric(0.25, size=size),
    "integers": lambda g, size: g.integers(-3, 1 << 40, size=size),
    "one integer": lambda g, size: g.integers(3, 4, size=size),
}
SIZES = [(5, 3), (3,), (2, 4, 3)]


@pytest.fixture(autouse=True)
def few_calls(monkeypatch):
    monkeypatch.setattr(direct, "CALLS", 3)


def check(program, reference, *arguments, calls=8, way="native with shared"):
    for _ in range(calls):
        found, wanted = as_tuple(program(*arguments)), reference()
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == np.asarray(other).dtype
            np.testing.assert_array_equal(one, other)
    assert way_of(program) == way


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_numpys(name):
    stream, generator = esat.random.RandomStream(3), np.random.default_rng(3)
    program = esat.compile(esat.Graph([], [DRAWS[name](stream, size) for size in SIZES]))
    check(program, lambda: [DRAWS[name](generator, size) for size in SIZES])


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_of_any_bit_generator(kind):
    state = esat.random.shared_state(np.random.Generator(kind(5)))
    after, sample = esat.random.normal(state, size=(7,))
    after, counts = esat.random.poisson(after, 3.0, size=(4,))
    program = esat.compile(esat.Graph([], [sample, counts], updates={state: after}))
    generator = np.random.Generator(kind(5))
    check(program, lambda: [generator.normal(size=7), generator.poisson(3.0, 4)])
    # The state that others see is the one after the last call.
    assert state.get_value().same_as(generator)


def test_bernoulli_and_what_is_computed_with_draws():
    stream, generator = esat.random.RandomStream(1), np.random.default_rng(1)
    x = esat.vector("x", shape=(6,))
    mask = stream.bernoulli(0.7, size=(6,))
    program = esat.compile(esat.Graph([x], [mask, x * mask / 0.7]))
    values = np.arange(1.0, 7.0)

    def reference():
        kept = generator.random(6) < 0.7
        return [kept, np.where(kept, values / 0.7, 0.0)]

    check(program, reference, values)


def test_parameters_that_are_computed():
    stream, generator = esat.random.RandomStream(2), np.random.default_rng(2)
    m, s = esat.vector("m", shape=(3,)), esat.vector("s", shape=(3,))
    program = esat.compile(esat.Graph([m, s], [stream.normal(m, esat.exp(s), size=(4, 3))]))
    for _ in range(8):
        np.testing.assert_allclose(program(V, V), generator.normal(V, np.exp(V), (4, 3)), rtol=1e-14)
    assert way_of(program) == "native with shared"


def test_what_numpy_refuses_raises_and_leaves_the_stream():
    stream, generator = esat.random.RandomStream(2), np.random.default_rng(2)
    s = esat.vector("s", shape=(3,))
    program = esat.compile(esat.Graph([s], [stream.gamma(s, 1.5, size=(4, 3))]))
    for _ in range(8):
        np.testing.assert_array_equal(program(V), generator.gamma(V, 1.5, (4, 3)))
    assert way_of(program) == "native with shared"
    with pytest.raises(ParameterError, match="shape < 0"):
        program(-V)
    np.testing.assert_array_equal(program(V), generator.gamma(V, 1.5, (4, 3)))
    # At the bounds NumPy decides.
    np.testing.assert_array_equal(program(0 * V), generator.gamma(0 * V, 1.5, (4, 3)))
    np.testing.assert_array_equal(program(V), generator.gamma(V, 1.5, (4, 3)))


def test_constants_at_the_bounds_stay_with_the_driver():
    stream, generator = esat.random.RandomStream(2), np.random.default_rng(2)
    program = esat.compile(esat.Graph([], [stream.normal(1.0, 0.0, size=(3,)), stream.normal(size=(2,))]))
    check(program, lambda: [generator.normal(1.0, 0.0, 3), generator.normal(size=2)], way="driver")


def test_empty_samples_leave_the_state():
    stream, generator = esat.random.RandomStream(4), np.random.default_rng(4)
    program = esat.compile(esat.Graph([], [stream.normal(size=(0, 3)), stream.normal(size=(2,))]))
    check(program, lambda: [generator.normal(size=(0, 3)), generator.normal(size=2)])


def test_a_new_state_between_calls():
    state = esat.random.shared_state(5)
    after, sample = esat.random.normal(state, size=(3,))
    program = esat.compile(esat.Graph([], [sample], updates={state: after}))
    generator = np.random.default_rng(5)
    check(program, lambda: [generator.normal(size=3)])
    other = np.random.default_rng(77)
    state.set_value(np.random.default_rng(77))
    check(program, lambda: [other.normal(size=3)])


def test_two_programs_of_one_stream():
    stream, generator = esat.random.RandomStream(6), np.random.default_rng(6)
    one = esat.compile(esat.Graph([], [stream.normal(size=(3,))]))
    other = esat.compile(esat.Graph([], [stream.exponential(size=(2,))]))
    del generator
    first = [one() for _ in range(8)]
    second = [other() for _ in range(8)]
    assert way_of(one) == way_of(other) == "native with shared"
    again = esat.random.RandomStream(6)
    same = esat.compile(esat.Graph([], [again.normal(size=(3,))]))
    for wanted in first:
        np.testing.assert_array_equal(same(), wanted)
    assert len({*np.concatenate(second)}) == 16


def test_hidden_functions_stay_with_the_driver(monkeypatch):
    monkeypatch.setattr(draws, "_address", lambda name: None)
    stream, generator = esat.random.RandomStream(3), np.random.default_rng(3)
    program = esat.compile(esat.Graph([], [stream.normal(size=(3,)), stream.integers(0, 9, size=(2,))]))
    check(program, lambda: [generator.normal(size=3), generator.integers(0, 9, 2)], way="driver")


def test_draws_by_copies_of_a_state_stay_with_the_driver():
    state = esat.random.state("state")
    after, sample = esat.random.normal(state, size=(3,))
    program = esat.compile(esat.Graph([state], [sample, after]))
    generator = np.random.default_rng(1)
    for _ in range(6):
        found, _ = program(generator)
        np.testing.assert_array_equal(found, np.random.default_rng(1).normal(size=3))
    assert way_of(program) == "driver"
