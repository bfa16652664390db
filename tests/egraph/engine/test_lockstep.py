"""Saturations of compilations, command by command on both engines."""

import numpy as np
import pytest

import esat
from tests.egraph.engine.lockstep import in_lockstep

EGGLOG = esat.Mode(engine="egglog")


def logistic(x, y, w):
    return esat.grad(esat.sum(esat.log1p(esat.exp(-y * (x @ w)))) / 40.0 + 0.5 * esat.sum(w * w), w)


def polynomial(x, y, w):
    return (x[:, 0] + 2 * y) ** 2 - (x[:, 0] - 2 * y) ** 2 + y / y + w[0]


def views(x, y, w):
    return esat.exp(x[1:].T) @ (y[1:] * esat.sqrt(w[0] ** 2)) + x.sum(axis=0) * 2.0


@pytest.mark.parametrize("build", [logistic, polynomial, views])
def test_both_engines_find_the_same(build) -> None:
    variables = [esat.matrix("x", shape=(40, 3)), esat.vector("y", shape=(40,)), esat.vector("w", shape=(3,))]
    graph = esat.Graph(variables, build(*variables))
    with in_lockstep() as found:
        esat.compile(graph, mode=EGGLOG)
    assert found.commands > 40
    assert found.rows > 1000
    for difference in found.differences:
        assert not difference.elsewhere, difference
    draw = np.random.default_rng(0)
    values = draw.uniform(0.5, 1.5, (40, 3)), draw.uniform(0.5, 1.5, 40), draw.uniform(0.5, 1.5, 3)
    expected = esat.compile(graph, mode=EGGLOG)(*values)
    np.testing.assert_allclose(esat.compile(graph)(*values), expected, rtol=1e-12)
