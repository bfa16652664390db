"""Where sizes are open, no program is chosen that does asymptotically more than another."""

import time

import numpy as np
import pytest

import esat

A, B = esat.matrix("A"), esat.matrix("B")
u, v = esat.vector("u"), esat.vector("v")

PROGRAMS = {
    "row of a sum": ((A + B)[0], lambda a, b: (a + b)[0]),
    "element of a product": ((A @ B)[2, 2], lambda a, b: (a @ b)[2, 2]),
    "column of a product": ((A @ B)[:, 1], lambda a, b: (a @ b)[:, 1]),
    "function of some rows": (esat.exp((A + B)[3:5]), lambda a, b: np.exp((a + b)[3:5])),
    "last rows but one": (esat.exp((A * B)[:-1])[-1], lambda a, b: np.exp((a * b)[:-1])[-1]),
    "sum over a row": (esat.sqr(A - B)[1].sum(), lambda a, b: np.square(a - b)[1].sum()),
    "trace of a product": (esat.trace(A @ B), lambda a, b: np.trace(a @ b)),
    "diagonal of a product": (esat.diagonal(A @ B, 1), lambda a, b: np.diagonal(a @ b, 1)),
    "trace of a function": (esat.trace(esat.exp(A - B)), lambda a, b: np.trace(np.exp(a - b))),
}


PARTS_OF_VECTORS = {
    "element of a sum": ((u + v)[0], lambda u, v: (u + v)[0]),
    "part of a sum": ((u + v)[3:5], lambda u, v: (u + v)[3:5]),
    "function of some elements": (esat.exp((u + v)[3:5]), lambda u, v: np.exp((u + v)[3:5])),
    "some elements of a function": (esat.exp(u * v)[3:5], lambda u, v: np.exp(u * v)[3:5]),
    "sum of some elements": ((u * v + u)[:7].sum(), lambda u, v: (u * v + u)[:7].sum()),
}


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "o3"])
@pytest.mark.parametrize("name", PARTS_OF_VECTORS)
def test_no_whole_vectors_are_computed_for_a_part(name, mode):
    """What they take at the assumed size is short beside a call, whatever else a call does."""
    written, reference = PARTS_OF_VECTORS[name]
    f = esat.compile(esat.Graph([u, v], written), mode)
    cut = [node for node in f.optimized.toposort() if node.op.name == "subtensor"]
    assert {node.inputs[0] for node in cut} == set(f.optimized.inputs)
    values = np.random.default_rng(0).normal(size=(2, 9))
    np.testing.assert_allclose(f(*values), reference(*values), rtol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_predicted_time_grows_as_little_as_it_can(name):
    written, reference = PROGRAMS[name]
    f = esat.compile(esat.Graph([A, B], written))
    assert f.report.resizing is not None
    large = {A: (4096, 4096), B: (4096, 4096)}
    best = esat.compile(esat.Graph([A, B], written), shapes=large)
    resizing = f.report.resizing
    hints = resizing.hints(((4096, 4096), (4096, 4096)))
    chosen = resizing.seconds(resizing.first.selection.chosen, hints)
    assert chosen <= 2.0 * best.report.cost_after
    a, b = np.random.default_rng(0).normal(size=(2, 7, 7))
    np.testing.assert_allclose(f(a, b), reference(a, b), rtol=1e-12)


def test_parts_of_large_arrays_take_no_longer_than_those_of_small_ones():
    f = esat.compile(esat.Graph([A, B], esat.exp((A + B)[3:5, :9])))

    def seconds(size):
        a = np.ones((size, size))
        f(a, a)
        times = []
        for _ in range(30):
            begin = time.perf_counter()
            f(a, a)
            times.append(time.perf_counter() - begin)
        return min(times)

    assert seconds(2_000) < 20 * seconds(20)
