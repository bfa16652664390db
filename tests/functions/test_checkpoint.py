"""Functions whose gradients compute anew what they need: the same values, and less memory."""

import numpy as np
import pytest

import esat
from esat.errors import GraphError
from esat.graph.algorithms.traversal import toposort
from esat.ops.annotations.checkpoint import Checkpoint
from esat.ops.control import After

rng = np.random.default_rng(5)
W = [rng.normal(size=(6, 6)) for _ in range(5)]
X = rng.normal(size=(400, 6))


def block(w, x):
    h = np.tanh(x @ w)
    for _ in range(3):
        h = np.sin(h @ w) * h
    return h


def loss_of(layer):
    def loss(ws, x):
        for w in ws:
            x = layer(w, x)
        return (x**2).sum()

    return loss


@pytest.mark.parametrize("mode", ["fast_compile", "greedy", "fast_run"])
def test_gradients_are_the_same_and_take_less_memory(mode):
    kept, anew = (esat.jit(esat.grad(loss_of(layer)), mode=mode) for layer in (block, esat.checkpoint(block)))
    for one, other in zip(kept(W, X), anew(W, X), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9)
    (program,), (smaller,) = kept.programs.values(), anew.programs.values()
    # Five blocks of some ten arrays of the size of x are alive at once, or the insides of one of them.
    assert smaller.peak_bytes < 0.6 * program.peak_bytes


def test_values_are_computed_once_where_there_is_no_gradient():
    f = esat.checkpoint(block)
    np.testing.assert_allclose(f(W[0], X), block(W[0], X))
    x, w = esat.matrix("x"), esat.matrix("w")
    outputs = esat.Graph([w, x], f(w, x)).function_graph().outputs
    assert not any(isinstance(node.op, Checkpoint | After) for node in toposort(outputs))


def test_of_variables():
    x, w = esat.matrix("x"), esat.matrix("w")
    gradients = [esat.grad(f(w, x).sum(), [w, x]) for f in (block, esat.checkpoint(block))]
    assert any(isinstance(node.op, After) for node in toposort(gradients[1]))
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(*(g.eval({w: W[0], x: X}) for g in (one, other)), rtol=1e-10)


def test_what_is_used_beside_the_arguments_has_gradients():
    def plain(w, x):
        twice = w * 2
        return (np.tanh(x * w) * twice * w).sum()

    def parted(w, x):
        twice = w * 2
        inner = esat.checkpoint(lambda x: {"h": np.tanh(x * w) * twice * w, "kept": w, "name": "a"})
        found = inner(x)
        assert found["name"] == "a"
        return found["h"].sum()

    for argnums in (0, 1):
        np.testing.assert_allclose(
            esat.grad(parted, argnums=argnums)(W[0], X[:6]), esat.grad(plain, argnums=argnums)(W[0], X[:6])
        )


def test_within_other_transformations():
    def f(w, x):
        return np.sin(np.exp(x) * w).sum()

    g = esat.checkpoint(f)
    w, x, xs = W[0][0], X[0], X[:4]
    for make in (
        lambda f: esat.hessian(f)(w, x),
        lambda f: esat.grad(lambda w, x: esat.grad(f)(w, x).sum())(w, x),
        lambda f: esat.vmap(esat.grad(f), in_axes=(None, 0))(w, xs),
        lambda f: esat.grad(lambda w: esat.vmap(f, in_axes=(None, 0))(w, xs).sum())(w),
        lambda f: esat.jvp(f, (w, x), (x, w))[1],
        lambda f: esat.jacobian(lambda w: esat.vmap(f, in_axes=(None, 0))(w, xs), direction="reverse")(w),
        lambda f: esat.grad(esat.checkpoint(lambda w, x: f(w, x) ** 2))(w, x),
        lambda f: esat.value_and_grad(lambda n: f(w * n, x * n))(1.5)[1],
    ):
        np.testing.assert_allclose(make(g), make(f), rtol=1e-10)


def test_numbers_and_integers_among_the_arguments():
    @esat.checkpoint
    def f(x, n, index, scale):
        for _ in range(n):
            x = np.sin(x)[index] * scale
        return x.sum()

    index = np.array([1, 0, 2, 2])
    found = esat.grad(f)(X[0], 2, index, 0.5)
    expected = esat.grad(lambda x: (np.sin(np.sin(x)[index] * 0.5)[index] * 0.5).sum())(X[0])
    np.testing.assert_allclose(found, expected)


def test_methods_can_be_checkpointed():
    class Layer:
        def __init__(self, w):
            self.w = w

        @esat.checkpoint
        def __call__(self, x):
            return np.tanh(x * self.w).sum()

    layer = Layer(W[0][0])
    found = esat.grad(lambda x: layer(x) * 2)(X[0]) / 2
    np.testing.assert_allclose(found, W[0][0] / np.cosh(X[0] * W[0][0]) ** 2)


def test_arguments_are_not_written_to():
    @esat.checkpoint
    def f(x):
        x[0] = 1.0
        return x

    with pytest.raises(GraphError, match="checkpoint: the function writes to its argument"):
        f(X[0].copy())
