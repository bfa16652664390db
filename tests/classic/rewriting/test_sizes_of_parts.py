"""Sizes of slices, joins and choices, without the values."""

import numpy as np
import pytest

import esat

X, Y = np.linspace(-1, 1, 7), np.linspace(0, 1, 4)


def cases():
    x, y, k = esat.dvector("x"), esat.dvector("y"), esat.lscalar("k")
    inputs = [x, y, k]
    return inputs, {
        "from": esat.exp(x)[k:].shape[0],
        "up to": esat.exp(x)[:k].shape[0],
        "every second": esat.exp(x * 2)[k::2].shape[0],
        "choice": esat.ifelse(k > 0, esat.exp(x), y).shape[0],
        "choice of one size": esat.ifelse(k > 0, esat.exp(x), x).shape[0],
        "join": esat.concatenate([esat.exp(x), y]).shape[0],
        "stack": esat.stack([esat.exp(x), x], axis=1).shape[0],
        "sorted": esat.sort(esat.exp(x)).shape[0],
        "running": esat.cumsum(esat.exp(x)).shape[0],
        "reversed": esat.exp(x)[::-1].shape[0],
        "rows": esat.exp(x)[None, k:].shape[1],
    }


def wanted(name, k):
    e = np.exp(X)
    return {
        "from": e[k:], "up to": e[:k], "every second": e[k::2],
        "choice": e if k > 0 else Y, "choice of one size": e, "join": np.concatenate([e, Y]), "stack": e,
        "sorted": e, "running": e, "reversed": e, "rows": e[k:],
    }[name].size  # fmt: skip


@pytest.mark.parametrize("name", cases()[1])
@pytest.mark.parametrize("mode", ["fast_run", "o3", "greedy"])
def test_values_are_not_computed(name, mode):
    inputs, found = cases()
    f = esat.compile(esat.Graph(inputs, [found[name]], on_unused_input="ignore"), mode=mode)
    for k in (-20, -3, 0, 2, 7, 30):
        assert f(X, Y, k) == wanted(name, k)
    assert not {"exp", "sort", "cumsum", "join"} & {node.op.name for node in f.graph.toposort()}


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
@pytest.mark.parametrize("reduction", [esat.sum, esat.mean, esat.max, esat.prod])
def test_reductions_of_reversed_axes(mode, reduction):
    m = esat.dmatrix("m")
    outputs = [reduction(esat.exp(m)[::-1]), reduction(esat.exp(m)[:, ::-1], axis=0)]
    f = esat.compile(esat.Graph([m], outputs), mode=mode)
    value = np.random.default_rng(0).normal(size=(3, 4))
    name = reduction.__name__
    e = np.exp(value)
    np.testing.assert_allclose(f(value)[0], getattr(np, name)(e), 1e-12)
    np.testing.assert_allclose(f(value)[1], getattr(np, name)(e[:, ::-1], axis=0), 1e-12)
    alone = esat.compile(esat.Graph([m], [outputs[0]]), mode=mode)
    np.testing.assert_allclose(alone(value), getattr(np, name)(e), 1e-12)
    # In greedy mode the slice has moved to the operand of exp before.
    assert mode == "greedy" or "subtensor" not in {node.op.name for node in alone.graph.toposort()}


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_means_of_joins_compute_no_join(mode):
    x = esat.dvector("x")
    f = esat.compile(esat.Graph([x], [esat.concatenate([esat.exp(x), x]).mean()]), mode=mode)
    np.testing.assert_allclose(f(X), np.concatenate([np.exp(X), X]).mean(), 1e-12)
    assert "join" not in {node.op.name for node in f.graph.toposort()}


def test_places_of_reversed_axes_stay():
    x = esat.dvector("x")
    f = esat.compile(esat.Graph([x], [esat.argmax(x[::-1]), esat.cumsum(x[::-1])]))
    found = f(X)
    assert found[0] == np.argmax(X[::-1])
    np.testing.assert_allclose(found[1], np.cumsum(X[::-1]), 1e-12)
