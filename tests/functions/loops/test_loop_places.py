"""What of loops is computed before and after them: values, and what is left in their steps."""

from __future__ import annotations

import numpy as np
import pytest

import esat
from esat.ops.contraction import MatMul
from esat.ops.linalg.packed_factors import PackedLU
from esat.ops.linalg.solve import Solve
from esat.ops.loops.parts import LoopParts
from esat.ops.loops.record import Scan

MODES = ("fast_run", "fast_compile", "o2", "greedy", "strict", "debug")


def affine(w, x, b, y):
    for row in x:
        y = np.tanh(0.5 * y + w @ row + b)
    return y


def hidden_markov(p, logs, a):
    total = 0.0
    for row in logs:
        a = (a @ p) * np.exp(row)
        s = a.sum()
        a = a / s
        total = total + np.log(s)
    return total, a


def filtered(a, c, q, r, ys):
    m, p, total = np.zeros(len(a)), np.eye(len(a)), 0.0
    out = np.zeros((len(ys), len(a)))
    for t in range(len(ys)):
        m, p = a @ m, a @ p @ a.T + q
        s, rest = c @ p @ c.T + r, ys[t] - c @ m
        k = p @ c.T @ np.linalg.inv(s)
        total = total - 0.5 * (rest @ np.linalg.solve(s, rest) + np.log(np.linalg.det(s)))
        m, p = m + k @ rest, p - k @ c @ p
        out[t] = m
    return total, m, out


def sums(x, y, s):
    outer, last, count, product = np.zeros((3, 3)), 0.0, 0, 1.0
    for t in range(len(x)):
        outer = outer + np.outer(x[t], y[t]) - 0.5 * np.outer(y[t], y[t])
        s = s + x[t] - y[t]
        count = count + t
        product = product * (1.0 + 0.01 * x[t, 0])
        last = x[t, 1]
    return outer, s, count, product, last


def two_layers(u, w, x):
    first, second = np.zeros(4), np.zeros(4)
    out = np.zeros((len(x), 4))
    for t in range(len(x) - 1, -1, -1):
        first = np.tanh(u @ first + x[t])
        second = np.tanh(w @ second + u @ first)
        out[t] = second * second + 1.0
    return first, second, out


RNG = np.random.default_rng(7)
GAIN = RNG.normal(size=(2, 4))
PROGRAMS = {
    "affine": (affine, (RNG.normal(size=(4, 4)), RNG.normal(size=(30, 4)), RNG.normal(size=4), np.ones(4))),
    "hidden Markov": (hidden_markov, (RNG.random((3, 3)) + 0.1, -RNG.random((30, 3)), np.full(3, 1 / 3))),
    "filter": (filtered, (0.9 * np.eye(4), GAIN, 0.1 * np.eye(4), 0.5 * np.eye(2), RNG.normal(size=(30, 2)))),
    "sums": (sums, (RNG.normal(size=(30, 3)), RNG.normal(size=(30, 3)), np.ones(3))),
    "two layers": (two_layers, (*(0.3 * RNG.normal(size=(2, 4, 4))), RNG.normal(size=(30, 4)))),
}  # fmt: skip


def _of(function, kind):
    """Nodes of the program that ran last."""
    return [node for node in function.latest.optimized.apply_nodes if isinstance(node.op, kind)]


def _same(found, wanted):
    found, wanted = (one if isinstance(one, tuple) else (one,) for one in (found, wanted))
    for own, other in zip(found, wanted, strict=True):
        assert np.shape(own) == np.shape(other)
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_in_all_modes(name, mode):
    program, arguments = PROGRAMS[name]
    wanted, compiled = program(*arguments), esat.jit(program, mode=mode)
    for _ in range(1 if mode == "debug" else 300):
        found = compiled(*arguments)
    _same(found, wanted)


@pytest.mark.parametrize("steps", [0, 1, 2, 300])
@pytest.mark.parametrize("name", PROGRAMS)
def test_any_number_of_steps(name, steps):
    program, arguments = PROGRAMS[name]
    given = [RNG.normal(size=(steps, *one.shape[1:])) if len(one) == 30 else one for one in arguments]
    if name == "hidden Markov":
        given[1] = -np.abs(given[1])
    _same(esat.jit(program)(*given), program(*given))


def layers_by_scan(u, w, x):
    def step(state, row):
        first, second, total = state
        first = np.tanh(u @ first + w @ row)
        second = np.tanh(w @ second + u @ first)
        return (first, second, total + np.outer(second, row)), second * row

    start = np.zeros(4), np.zeros(4), np.zeros((4, 4))
    return esat.scan(step, start, x, reverse=True)


@pytest.mark.parametrize("shapes", ["static", "symbolic"])
def test_sizes_may_be_unknown(shapes):
    u, w = 0.3 * RNG.normal(size=(2, 4, 4))
    compiled = esat.jit(layers_by_scan, shapes=shapes)
    for steps in (30, 1, 0, 25):
        x = RNG.normal(size=(steps, 4))
        first, second, total, out = np.zeros(4), np.zeros(4), np.zeros((4, 4)), np.zeros((steps, 4))
        for t in reversed(range(steps)):
            first = np.tanh(u @ first + w @ x[t])
            second = np.tanh(w @ second + u @ first)
            total = total + np.outer(second, x[t])
            out[t] = second * x[t]
        found, rows = compiled(u, w, x)
        _same((*found, rows), (first, second, total, out))


def test_products_of_elements_are_one_product_before_the_loop():
    program, _ = PROGRAMS["affine"]
    rows = RNG.normal(size=(200, 32))
    wide = 0.1 * RNG.normal(size=(32, 32)), rows, RNG.normal(size=32), np.ones(32)
    compiled = esat.jit(program)
    _same(compiled(*wide), program(*wide))
    (loop,) = _of(compiled, Scan)
    assert not any(isinstance(node.op, MatMul) for node in loop.op.body.apply_nodes)


def test_the_gradient_by_a_matrix_is_a_product_of_all_steps():
    def cost(w, u, x):
        h, total = np.zeros(16), 0.0
        for row in x:
            h = np.tanh(w @ h + u @ row)
            total = total + h @ h
        return total

    w, u, x = 0.2 * RNG.normal(size=(16, 16)), RNG.normal(size=(16, 5)), RNG.normal(size=(100, 5))
    both = esat.value_and_grad(cost, argnums=(0, 1))
    value, gradients = both(w, u, x)
    assert value == pytest.approx(cost(w, u, x), rel=1e-12)
    for place, found in enumerate(gradients):
        direction = RNG.normal(size=found.shape)
        moved = [[w, u], [w, u]]
        for sign, given in zip((1, -1), moved, strict=True):
            given[place] = given[place] + sign * 1e-6 * direction
        slope = (cost(*moved[0], x) - cost(*moved[1], x)) / 2e-6
        assert np.sum(found * direction) == pytest.approx(slope, rel=1e-6)
    for loop in _of(both, Scan):
        assert all(np.prod(one.tensor_type.shape) <= 16 for one in loop.op.body.outputs)  # no matrix is made


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [2, 6, 40])
def test_a_matrix_of_all_steps_is_factorized_once(size, mode):
    def program(a, xs, y):
        for x in xs:
            y = np.tanh(np.linalg.solve(a, y) + np.linalg.solve(a.T, x))
        return y

    a = RNG.normal(size=(size, size)) + 2 * size**0.5 * np.eye(size)[::-1]
    xs, compiled = RNG.normal(size=(50, size)), esat.jit(program, mode=mode)
    for _ in range(1 if mode == "debug" else 300):
        found = compiled(a, xs, xs[0])
    _same(found, program(a, xs, xs[0]))
    if mode == "fast_run":
        (loop,) = _of(compiled, Scan)
        assert _of(compiled, PackedLU)
        assert not any(isinstance(node.op, Solve | PackedLU) for node in loop.op.body.apply_nodes)
        with pytest.raises(esat.errors.LinearAlgebraError, match=r"solve\(.*singular"):
            compiled(np.ones((size, size)), xs, xs[0])
        _same(esat.jit(program)(np.ones((size, size)), xs[:0], xs[0]), xs[0])


def test_what_may_raise_stays_in_a_loop_that_may_not_run():
    def program(matrix, xs, length):
        def step(i, y):
            return np.tanh(np.linalg.inv(matrix) @ y + xs[0])

        return esat.fori_loop(0, length, step, xs[0])

    compiled = esat.jit(program)
    singular, xs = np.zeros((3, 3)), RNG.normal(size=(4, 3))
    _same(compiled(singular, xs, np.int64(0)), xs[0])
    with pytest.raises(esat.errors.LinearAlgebraError):
        compiled(singular, xs, np.int64(2))


def test_sequences_that_may_be_too_short_are_refused():
    x, y = esat.vector("x"), esat.vector("y")
    carry, first, second = (esat.scalar() for _ in range(3))
    parts = LoopParts(x.shape[0], {carry: esat.constant(0.0)}, [carry + first], [np.tanh(2.0) * second + 1.0],
                      {first: x, second: y})  # fmt: skip
    compiled = esat.compile(esat.Graph([x, y], parts.node().outputs))
    total, rows = compiled(np.ones(4), np.arange(4.0))
    assert total == 4.0
    np.testing.assert_allclose(rows, np.tanh(2.0) * np.arange(4.0) + 1.0)
    with pytest.raises(esat.errors.ShapeError, match="3 elements for 4 steps"):
        compiled(np.ones(4), np.ones(3))
