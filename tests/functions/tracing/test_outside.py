"""What a traced function reads that is another in every call: refused or told, by whatever way."""

import datetime
import logging
import os
import queue
import random
import sys
import threading
import time
import types
import uuid
from random import random as drawn_by_python
from time import perf_counter

import numpy as np
import pytest
import scipy.stats

import esat
from esat.errors import EsatError, EsatWarning, InputError

X = np.zeros(3)

HELPERS = types.ModuleType("helpers_of_test_outside")
exec(
    """
import numpy as np
rng = np.random.default_rng(1)
def seeded(x): return x + np.random.default_rng(5).normal(size=3)
def seeded_state(x): return x + np.random.RandomState(5).rand(3)
def drawn(x): return x + np.random.rand(3)
def unseeded(x): return x + np.random.default_rng().normal(size=3)
def unseeded_state(x): return x + np.random.RandomState().rand(3)
def of_module(x): return x + rng.normal(size=3)
def plain(x): return x * 2.0 + 1.0
""",
    HELPERS.__dict__,
)
sys.modules[HELPERS.__name__] = HELPERS


class Holder:
    gen = np.random.default_rng(7)

    def __init__(self):
        self.rng, self.state = np.random.default_rng(0), np.random.RandomState(0)

    def draw(self, x):
        return x + self.rng.normal(size=3)

    def draw_normal(self, x):
        return x + self.state.randn()

    def draw_globally(self, x):
        return x + np.random.normal()

    def draw_anew(self, x):
        return x + np.random.default_rng(None).normal()

    @classmethod
    def draw_from_class(cls, x):
        return x + cls.gen.random()

    def plain(self, x):
        return x * 3.0 + 1.0

    def __call__(self, x):
        return self.draw(x)


RNG, STATE, BITS, HOLDER = np.random.default_rng(0), np.random.RandomState(0), np.random.PCG64(3), Holder()
DRAW, KEPT = RNG.normal, {"g": [(np.random.default_rng(3),)]}


def closure():
    rng = np.random.default_rng(2)
    return lambda x: x + rng.normal(size=3)


def in_default(x, rng=np.random.default_rng(2)):  # noqa: B008
    return x + rng.random()


def decorated(x):
    return closure()(x) if x.ndim > 1 else within(x)


within = closure()

DRAWS = {
    "a global": lambda x: x + RNG.normal(size=3),
    "a state": lambda x: x + STATE.rand(3),
    "a closure": closure(),
    "a function's closure": decorated,
    "a bound method": lambda x: x + DRAW(),
    "containers": lambda x: x + KEPT["g"][0][0].random(),
    "bits": lambda x: x + BITS.random_raw(),
    "a default": lambda x: 1.0 * in_default(x),
    "an attribute": lambda x: x + HOLDER.rng.random(),
    "a method": lambda x: 1.0 * HOLDER.draw(x),
    "a method of a state": lambda x: 1.0 * HOLDER.draw_normal(x),
    "a method, NumPy's": lambda x: 1.0 * HOLDER.draw_globally(x),
    "a method, new": lambda x: 1.0 * HOLDER.draw_anew(x),
    "an object": lambda x: 1.0 * HOLDER(x),
    "a class": lambda x: 1.0 * Holder.draw_from_class(x),
    "a module": lambda x: 1.0 * HELPERS.of_module(x),
    "a module's name": lambda x: x + HELPERS.rng.random(),
    "a module, NumPy's": lambda x: 1.0 * HELPERS.drawn(x),
    "a module, new": lambda x: 1.0 * HELPERS.unseeded(x),
    "a module, new state": lambda x: 1.0 * HELPERS.unseeded_state(x),
    "a library": lambda x: x + scipy.stats.norm.rvs(size=3),
    "NumPy's": lambda x: x + np.random.rand(3),
    "new": lambda x: x + np.random.default_rng().random(),
    "new, of None": lambda x: x + np.random.default_rng(None).random(),
    "new bits": lambda x: x + np.random.Generator(np.random.PCG64()).random(),
    "within a call": lambda x: np.vectorize(lambda _: RNG.random())(np.zeros(3)) + x,
}

LOG = logging.getLogger("of test_outside")
LOG.addHandler(logging.NullHandler())


def logged(x, _kept):
    LOG.warning("traced")
    return x + 1.0


def timed(x):
    """A library waits by the clock."""
    queue.Queue(1).put(1, timeout=1.0)
    return x


SAME = {
    "seeded": lambda x: x + np.random.default_rng(3).random(),
    "a module, seeded": lambda x: 1.0 * HELPERS.seeded(x),
    "a module, seeded state": lambda x: 1.0 * HELPERS.seeded_state(x),
    "an object, seeded": lambda x: Holder().draw(x),
    "a generator's state": lambda x: x + RNG.bit_generator.state["has_uint32"],
    "a module without draws": lambda x: 1.0 * HELPERS.plain(x),
    "an object without draws": lambda x: 1.0 * HOLDER.plain(x),
    "logging": lambda x: logged(x, time.struct_time),
    "a library's clock": lambda x: timed(x) + 1.0,
    "mathematics": lambda x: x + sum(map(float, [1, 2])),
}

TOLD = {
    "random.random": lambda x: x + random.random(),
    "random.gauss": lambda x: x + random.gauss(0.0, 1.0),
    "its name": lambda x: x + drawn_by_python(),
    "an instance": lambda x: x + PYTHONS.random(),
    "time.time": lambda x: x + time.time(),
    "perf_counter": lambda x: x + perf_counter(),
    "now": lambda x: x + datetime.datetime.now().second,
    "urandom": lambda x: x + os.urandom(1)[0],
    "uuid": lambda x: x + uuid.uuid4().int % 3,
}
PYTHONS = random.Random(0)


def states():
    held = (RNG, HOLDER.rng, HELPERS.rng, Holder.gen, KEPT["g"][0][0])
    found = [one.bit_generator.state["state"]["state"] for one in held]
    return found, [one.get_state()[2] for one in (STATE, HOLDER.state)]


@pytest.mark.parametrize("shapes", ["static", "symbolic"])
@pytest.mark.parametrize("way", DRAWS)
def test_draws_are_refused_by_whatever_way_and_leave_generators_as_they_were(way, shapes):
    before = states()
    for _ in range(2):
        with pytest.raises(EsatError, match="RandomStream"):
            esat.jit(DRAWS[way], shapes=shapes)(X)
    assert states() == before


@pytest.mark.parametrize("way", ["a global", "a method", "a module, NumPy's"])
def test_draws_are_refused_in_derivatives_and_batches(way):
    function = DRAWS[way]
    for made in (esat.grad(lambda x: function(x).sum()), esat.vmap(function), esat.jit(esat.jit(function))):
        with pytest.raises(EsatError, match="RandomStream"):
            made(X)


def test_the_message_names_the_way_and_the_line():
    with pytest.raises(
        InputError, match=r"draws from a Generator, which is reached by HOLDER:.*\n.*test_outside"
    ):
        esat.jit(DRAWS["a method"])(X)


@pytest.mark.parametrize("way", SAME)
def test_what_is_the_same_in_each_call_is_taken(way):
    wanted = SAME[way](X)
    made = esat.jit(SAME[way])
    for _ in range(2):
        np.testing.assert_array_equal(made(X), wanted)


@pytest.mark.parametrize("way", TOLD)
def test_what_python_draws_and_the_time_are_told_once(way):
    made = esat.jit(TOLD[way])
    with pytest.warns(EsatWarning, match="pass it as an argument") as told:
        made(X)
    made(X)
    assert len(told) == 1
    assert "test_outside.py" in str(told[0].message)


def test_a_stream_of_the_program_draws_in_each_call():
    stream = esat.random.RandomStream(0)
    made = esat.jit(lambda x: 1.0 * HELPERS.plain(x) + stream.normal(size=3))
    first, second = made(X), made(X)
    assert (first != second).all()


def test_profilers_go_on():
    seen = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: seen.append(event))
    mine = sys.getprofile()
    try:
        esat.jit(lambda x: 1.0 * HELPERS.plain(x))(X)
        after = sys.getprofile()
    finally:
        sys.setprofile(before)
    assert after is mine
    assert "call" in seen


def test_draws_of_another_thread_are_no_errors():
    stop = threading.Event()

    def draw():
        while not stop.is_set():
            np.random.rand(10)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        for _ in range(3):
            try:
                found = esat.jit(lambda x: 1.0 * HELPERS.plain(x))(X)
            except EsatWarning:
                continue
            np.testing.assert_array_equal(found, HELPERS.plain(X))
    finally:
        stop.set()
        thread.join()
