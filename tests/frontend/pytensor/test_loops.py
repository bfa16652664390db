"""Scan: loops of a number of steps are esat's, others PyTensor's."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.scan.utils import until

from frontend.pytensor.peer import compared, variable

X = np.random.default_rng(2).normal(size=6)
M = np.random.default_rng(3).normal(size=(6, 3))


def scan(function, **options):
    return pytensor.scan(function, return_updates=False, **options)


LOOPS = {
    "sum": lambda x, m: scan(lambda v, s: s * 0.5 + v, sequences=x, outputs_info=pt.zeros(())),
    "map": lambda x, m: scan(lambda v: pt.exp(v) * x.sum(), sequences=x),
    "rows": lambda x, m: scan(lambda row, s: pt.tanh(row + s), sequences=m, outputs_info=pt.zeros(3)),
    "steps": lambda x, m: scan(lambda s: s * 2, outputs_info=x, n_steps=5),
    "two lags": lambda x, m: scan(
        lambda v, s2, s1: s1 + 0.5 * s2 + v,
        sequences=x,
        outputs_info=[{"initial": pt.stack([x[0], x[1]]), "taps": [-2, -1]}],
    ),
    "one distant lag": lambda x, m: scan(
        lambda v, s3: s3 * 0.5 + v, sequences=x, outputs_info=[{"initial": x[:3], "taps": [-3]}]
    ),
    "taps of sequences": lambda x, m: scan(
        lambda old, new: new - old, sequences={"input": x, "taps": [-1, 0]}
    ),
    "reversed": lambda x, m: scan(
        lambda v, s: s + v, sequences=x, outputs_info=pt.zeros(()), go_backwards=True
    ),
    "constants": lambda x, m: scan(
        lambda v, s, w: w @ s + v, sequences=x, outputs_info=pt.ones(3), non_sequences=m[:3]
    ),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("known", [False, True])
def test_loops_of_a_number_of_steps(name, known):
    """All values, the last one, and the last two, for which PyTensor keeps no more than it needs."""
    x, m = variable(X, known), variable(M, known)
    found = LOOPS[name](x, m)
    compared([x, m], [found], [X, M])
    compared([x, m], [found[-1]], [X, M])
    compared([x, m], [found[-2:], found[1:3]], [X, M])


def test_several_states_and_results():
    x = variable(X)
    total, product, squares = scan(
        lambda v, s, p: (s + v, p * (s + 1), v**2),
        sequences=x,
        outputs_info=[pt.zeros(()), pt.ones(()), None],
    )
    compared([x], [total, product[-1], squares], [X])


def test_rows_that_no_step_computes_are_zero():
    """Of buffers that are longer than the loop, as those of truncated gradients are."""
    x, n = variable(X), pt.lscalar("n")
    found = scan(lambda v, s: (s + v, s * v), sequences=x[:3], outputs_info=[pt.ones(()), None])
    node = next(one.owner for one in ancestors(found) if one.owner and isinstance(one.owner.op, Scan))
    for length in (pt.constant(7), n, pt.constant(2)):
        steps, sequence, state, _ = node.inputs
        longer = pt.set_subtensor(pt.ones(length + 1)[:1], state[:1]) * 3
        outputs = node.op.make_node(steps, sequence, longer, length).outputs
        compared([x, n], outputs, [X, np.int64(6)])


def test_truncated_gradients_by_pytensor_and_here():
    x, limit = variable(X), pt.lscalar("limit")
    found = scan(
        lambda old, new, u: (old * new, until(new > u)),
        sequences={"input": x, "taps": [-1, 0]},
        non_sequences=[limit],
        truncate_gradient=2,
    )
    compared([x, limit], [pytensor.grad(found.sum(), x)], [np.arange(6.0), np.int64(3)], foreign=("Scan",))


def test_a_computed_number_of_steps():
    x, n = variable(X), pt.lscalar("n")
    found = scan(lambda s: s * 2 + 1, outputs_info=x, n_steps=n)
    for steps in (1, 4):
        compared([x, n], [found, found[-1]], [X, np.int64(steps)])


def test_gradients_and_conditions_by_pytensor():
    x = variable(X)
    found = scan(lambda v, s: pt.tanh(s * 0.5 + v), sequences=x, outputs_info=pt.zeros(()))
    compared([x], [pytensor.grad(found[-1], x), pytensor.grad(found.sum(), x)], [X], foreign=("Scan",))
    with_mode = scan(lambda s: s * 2, outputs_info=[x], n_steps=3, mode="ESAT")
    slope = pytensor.function([x], pytensor.grad(with_mode.sum(), x), mode="ESAT")
    np.testing.assert_array_equal(slope(X), np.full(6, 14.0))
    ending = scan(lambda s: (s * 2, until(s > 20)), outputs_info=pt.ones(()), n_steps=50)
    compared([x], [ending[-1] * x], [X], foreign=("Scan",))


def test_states_that_are_generators_by_pytensor():
    rng = pytensor.shared(np.random.default_rng(4))

    def step(state):
        after, draw = pt.random.normal(rng=state).owner.outputs
        return after, draw

    compared(
        [],
        [pytensor.scan(step, outputs_info=[rng, None], n_steps=4, return_updates=False)[1]],
        [],
        foreign=("Scan",),
    )
