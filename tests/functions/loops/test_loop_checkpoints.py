"""Loops of fewer steps than elements, and loops whose gradient computes carries once more."""

import tracemalloc

import numpy as np
import pytest

import esat
from esat.ops.loops.parts import LoopParts

MODES = ["fast_compile", "fast_run", "greedy", "strict", "debug"]
rng = np.random.default_rng(4)


def test_gradients_where_fewer_steps_are_run_than_there_are_elements():
    carry, x, rows, steps = esat.scalar(), esat.scalar(), esat.vector(), esat.lscalar()
    loop = LoopParts(steps, {carry: esat.constant(0.3)}, [0.5 * carry + x * x], [], {x: rows})
    last = loop.node().outputs[0]
    compiled = esat.compile(esat.Graph([steps, rows], [last, esat.grad(last, rows)]))
    given = rng.standard_normal(7)
    for count in (0, 3, 7):
        weights = np.where(np.arange(7) < count, 0.5 ** (count - 1.0 - np.arange(7)), 0.0)
        found, gradient = compiled(np.int64(count), given)
        assert found == pytest.approx(0.3 * 0.5**count + weights @ given**2)
        assert np.allclose(gradient, 2 * given * weights)


def block_cost(w, h, xs, checkpoint=False, reverse=False):
    def step(carry, x):
        h, total = carry
        return (np.tanh(w @ h + x), total + h @ h), h * x

    (h, total), rows = esat.scan(step, (h, 0.0), xs, reverse=reverse, checkpoint=checkpoint)
    return total + (rows**2).sum() + h[0]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("checkpoint", [True, 1, 4, 50])
@pytest.mark.parametrize("steps", [0, 1, 9, 23])
def test_checkpoints_change_no_value_nor_gradient(steps, checkpoint, reverse):
    given = rng.standard_normal((3, 3)), rng.standard_normal(3), rng.standard_normal((steps, 3))
    plain = esat.value_and_grad(lambda *a: block_cost(*a, False, reverse), argnums=(0, 1, 2))
    sparing = esat.value_and_grad(lambda *a: block_cost(*a, checkpoint, reverse), argnums=(0, 1, 2))
    value, wanted = plain(*given)
    found, gradients = sparing(*given)
    assert found == pytest.approx(value, rel=1e-12)
    for own, other in zip(gradients, wanted, strict=True):
        assert np.allclose(own, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_checkpoints_in_every_mode(mode):
    given = rng.standard_normal((3, 3)), rng.standard_normal(3), rng.standard_normal((11, 3))
    found = esat.jit(esat.grad(lambda *a: block_cost(*a, 4), argnums=0), mode=mode)(*given)
    assert np.allclose(found, esat.grad(block_cost, argnums=0)(*given))


def test_checkpoints_of_an_unknown_number_of_steps():
    compiled = esat.jit(esat.grad(lambda *a: block_cost(*a, 4), argnums=0), shapes="symbolic")
    for steps in (11, 3, 8):
        given = rng.standard_normal((3, 3)), rng.standard_normal(3), rng.standard_normal((steps, 3))
        assert np.allclose(compiled(*given), esat.grad(block_cost, argnums=0)(*given))
    with pytest.raises(esat.errors.CallError, match="number of steps that is known"):
        esat.jit(lambda *a: block_cost(*a, True), shapes="symbolic")(*given)


def test_checkpoints_keep_the_carries_of_few_steps():
    steps, size = 100_000, 32

    def last(w, h):
        return esat.scan(lambda h, _: (np.tanh(w @ h + 0.1), None), h, length=steps, checkpoint=True)[0].sum()

    gradient = esat.grad(last)
    tracemalloc.start()
    for _ in range(2):
        gradient(0.1 * rng.standard_normal((size, size)), np.ones(size))
    arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    by_programs = tracemalloc.Filter(True, "*/esat/runtime/*")
    taken_now = tracemalloc.take_snapshot()
    tracemalloc.stop()
    found = taken_now.filter_traces([arrays]).filter_traces([by_programs]).traces  # one list would mean "or"
    matrix = 8 * size * size
    taken = sum(one.size for one in found if one.size > 2 * matrix) / (8 * size)
    assert 2 * np.sqrt(steps) < taken < 3 * np.sqrt(steps)


@pytest.mark.parametrize("checkpoint", [0, -1, 2.5, None])
def test_no_number_of_steps_to_keep(checkpoint):
    with pytest.raises(esat.errors.CallError, match="checkpoint"):
        esat.scan(lambda c, x: (c + x, None), 0.0, np.ones(3), checkpoint=checkpoint)
