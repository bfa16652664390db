"""Gradients of ``ifelse`` take nothing from the branch that is not taken; tangents behind masks are those
that the gradient has."""

import numpy as np
import pytest

import esat

MODES = ("fast_run", "o3", "unsafe", "greedy", "Stabilization", "strict", "fast_compile")
BRANCHES = {
    "sqrt": lambda s, x: esat.sqrt(s),
    "log": lambda s, x: esat.log(s),
    "reciprocal": lambda s, x: 1 / s,
    "norm": lambda s, x: esat.linalg.norm(x),
    "twice": lambda s, x: esat.sqrt(s) * esat.log(s) + s**0.3,
    "vector": lambda s, x: (x / esat.sqrt(s)).sum(),
    "matrix": lambda s, x: esat.linalg.inv(s * x[:, None] * x[None, :] + esat.diag(x)).sum(),
    "nested": lambda s, x: esat.ifelse(s > 1, esat.log(s - 1), esat.sqrt(s)),
    "through where": lambda s, x: esat.where(x > 0, esat.log(x), 0).sum() / s,
}
X = np.array([0.3, 1.2, -0.7])


def cost(name, x, turned=False):
    s = (x * x).sum()
    value, zero = BRANCHES[name](s, x), 0.0 * x.sum()
    return esat.ifelse(s <= 0, zero, value) if turned else esat.ifelse(s > 0, value, zero)


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize("turned", [False, True])
def test_the_branch_not_taken_adds_nothing(name, turned):
    x = esat.vector("x")
    s = (x * x).sum()
    gradient = esat.grad(cost(name, x, turned), x)
    plain = esat.grad(BRANCHES[name](s, x), x)
    for mode in MODES if name in ("sqrt", "matrix") else ("fast_run", "fast_compile"):
        f = esat.compile(esat.Graph([x], [gradient, plain.sum()]), mode=mode)
        np.testing.assert_array_equal(f(X)[0].shape, (3,))
        alone = esat.compile(esat.Graph([x], [gradient]), mode=mode)
        np.testing.assert_array_equal(alone(np.zeros(3)), np.zeros(3), err_msg=mode)
        taken = esat.compile(esat.Graph([x], [plain]), mode=mode)(X)
        np.testing.assert_allclose(alone(X), taken, 1e-10, err_msg=mode)


def test_values_outside_the_choice_keep_their_gradients():
    x = esat.vector("x")
    s = (x * x).sum()
    value = esat.ifelse(s > 0, esat.sqrt(s), 0 * s) + (x * np.arange(3.0)).sum() + s
    f = esat.compile(esat.Graph([x], [esat.grad(value, x)]))
    np.testing.assert_array_equal(f(np.zeros(3)), [0, 1, 2])
    np.testing.assert_allclose(f(X), X / np.linalg.norm(X) + np.arange(3) + 2 * X, 1e-12)


def test_second_derivatives_batches_and_tangents_of_choices():
    def f(x):
        s = (x * x).sum()
        return esat.ifelse(s > 0, esat.sqrt(s), 0 * s)

    zeros = np.zeros(3)
    np.testing.assert_array_equal(esat.hessian(f)(zeros), np.zeros((3, 3)))
    np.testing.assert_array_equal(esat.jvp(f, (zeros,), (np.ones(3),))[1], 0)
    batch = np.stack([zeros, X])
    found = esat.vmap(esat.grad(f))(batch)
    np.testing.assert_allclose(found, [zeros, X / np.linalg.norm(X)], 1e-12)


def test_choices_of_lists_pass_by_what_is_not_taken():
    x = esat.vector("x")
    s = (x * x).sum()
    first, second = esat.ifelse(s > 0, [esat.sqrt(s), esat.log(s)], [0 * s, s + 1])
    f = esat.compile(esat.Graph([x], [esat.grad(first + second, x)]))
    np.testing.assert_array_equal(f(np.zeros(3)), np.zeros(3))
    np.testing.assert_allclose(f(X), X / np.linalg.norm(X) + 2 * X / (X @ X), 1e-12)


# ---- tangents

KINKS = {
    "sqrt of maximum": lambda x: esat.sqrt(esat.maximum(x, 0)).sum(),
    "log of maximum": lambda x: esat.log(esat.maximum(x, 0)).sum(),
    "power of maximum": lambda x: (esat.maximum(x, 0) ** 0.5).sum(),
    "sqrt of where": lambda x: esat.sqrt(esat.where(x > 0, x, 0)).sum(),
    "sqrt of clip": lambda x: esat.sqrt(esat.clip(x, 0, None)).sum(),
    "norm of maximum": lambda x: esat.linalg.norm(esat.maximum(x, 0)),
    "log of minimum": lambda x: esat.log(-esat.minimum(-x, 0)).sum(),
    "sqrt of relu": lambda x: esat.sqrt(esat.relu(x)).sum(),
    "quotient of where": lambda x: (1 / esat.where(x > 0, x, 0)).sum(),
    "arctan2 of where": lambda x: esat.arctan2(esat.where(x > 0, x, 0), esat.where(x > 0, x, 0)).sum(),
    "product of where": lambda x: esat.where(x > 0, x, 0).prod(),
    "maximum of log": lambda x: esat.maximum(esat.log(x), -5).sum(),
    "matrix": lambda x: esat.sqrt(esat.where(x > 0, x, 0)[:, None] * np.ones((1, 2))).sum(),
}


@pytest.mark.parametrize("name", KINKS)
@pytest.mark.parametrize("mode", ["fast_run", "greedy", "strict"])
def test_tangents_are_those_of_the_gradient(name, mode):
    f = KINKS[name]
    for point in (np.full(2, -10.0), np.array([2.0, -1.0]), np.array([0.5, 3.0])):
        jitted = esat.jit(f, mode=mode)
        gradient = esat.grad(jitted)(point)
        tangents = [esat.jvp(jitted, (point,), (row,))[1] for row in np.eye(2)]
        np.testing.assert_allclose(tangents, gradient, 1e-12, err_msg=str(point))
        hessian = esat.hessian(jitted)(point)
        assert np.isfinite(hessian).all()


def test_tangents_of_what_does_not_change_are_zero_as_jax_has_it():
    _, tangent = esat.jvp(lambda x: esat.sqrt(esat.maximum(x, 0)), (np.array([-10.0, 4.0]),), (np.ones(2),))
    np.testing.assert_array_equal(tangent, [0, 0.25])
