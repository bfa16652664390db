"""The gradient of ``where`` takes nothing from the branch not taken: not its NaN, not its infinities.

Functions with poles and domains, behind views, sums and broadcasting, are masked where they have no value;
the gradients must be those of the same functions at harmless points, and zero elsewhere. In every mode: the
graph that ``grad`` builds is right as it stands.
"""

import itertools

import numpy as np
import pytest

import esat

MODES = ("fast_run", "o3", "unsafe", "greedy", "Stabilization", "strict", "fast_compile")
X = np.array([-2.0, -0.5, 0.0, 0.5, 1.0, 3.0])
VALID = X > 0

# Each has a derivative that is infinite or NaN at some of the points of X that are not greater than zero.
FUNCTIONS = {
    "log": esat.log,
    "log2": esat.log2,
    "log10": esat.log10,
    "sqrt": esat.sqrt,
    "reciprocal": lambda x: 1 / x,
    "power": lambda x: x**0.3,
    "sinc": lambda x: esat.sin(x) / x,
    "xlogx": lambda x: x * esat.log(x),
    "far": lambda x: esat.exp(-1000 * x),
    "inverse": lambda x: esat.arcsin(x / esat.maximum(esat.abs(x), 4 * x)),
    "sequence": lambda x: esat.tanh(esat.log(x)) * esat.sqrt(x),
    "constant base": lambda x: 0.5 ** esat.log(x),
    "gamma": esat.gammaln,
}

# How the function's result reaches the ``where``: (result, condition) -> masked value.
PATHS = {
    "straight": lambda y, ok: esat.where(ok, y, 0),
    "second branch": lambda y, ok: esat.where(esat.logical_not(ok), 0, y),
    "other branch in use": lambda y, ok: esat.where(ok, y, 7),
    "negated": lambda y, ok: esat.where(ok, -y, 0),
    "scaled": lambda y, ok: esat.where(ok, 3 * y, 0) * 2,
    "difference": lambda y, ok: esat.where(ok, 2 - y, 0),
    "nested": lambda y, ok: esat.where(ok, esat.where(ok, y, 1), 0),
    "row": lambda y, ok: esat.where(ok[None, :], y[None, :], 0),
    "stretched": lambda y, ok: esat.where(ok[None, :], y[None, :] * np.ones((2, 1), y.type.dtype), 0),
    "reshaped": lambda y, ok: esat.where(ok.reshape((2, 3)), y.reshape((2, 3)), 0),
    "reversed": lambda y, ok: esat.where(ok[::-1], y[::-1], 0),
    "gathered": lambda y, ok: esat.where(ok[[0, 5, 2, 5]], y[[0, 5, 2, 5]], 0),
    "sum of two": lambda y, ok: esat.where(ok, y, 0) + esat.where(ok, y, 0),
    "sum of one": lambda y, ok: esat.where(ok[:, None], y[:, None].sum(axis=1, keepdims=True), 0),
    "largest of one": lambda y, ok: esat.where(ok, y[:, None].max(axis=1), 0),
    "softmax": lambda y, ok: esat.where(ok[:, None], esat.softmax(y[:, None] * np.arange(2.0), 1), 0)[:, 1],
}  # fmt: skip


PAIRS = tuple(itertools.product(FUNCTIONS, PATHS))


def gradients(dtype, pairs=PAIRS):
    """The input, and the gradients of pairs of functions and paths, by name."""
    x = esat.tensor("x", dtype=dtype, shape=(X.size,))
    found = {}
    for function, path in pairs:
        value = PATHS[path](FUNCTIONS[function](x), x > 0)
        found[f"{function}, {path}"] = esat.grad(esat.cast(value, dtype).sum(), x)
    return x, found


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_gradients_as_built_take_nothing_from_the_other_branch(dtype):
    x, found = gradients(dtype)
    here = esat.evaluate(list(found.values()), {x: X.astype(dtype)})
    there = esat.evaluate(list(found.values()), {x: np.where(VALID, X, 0.75).astype(dtype)})
    tolerance = 20 * np.finfo(dtype).eps
    for name, given, wanted in zip(found, here, there, strict=True):
        np.testing.assert_allclose(given, np.where(VALID, wanted, 0), tolerance, tolerance, err_msg=name)


ALONE = (
    ("log", "straight"),
    ("sinc", "difference"),
    ("sequence", "reshaped"),
    ("sqrt", "gathered"),
    ("reciprocal", "softmax"),
)


@pytest.fixture(scope="module")
def harmless():
    """What the gradients are where the functions have a value."""
    x, chosen = gradients("float64", ALONE)
    return esat.compile(esat.Graph([x], list(chosen.values())), mode="strict")(np.where(VALID, X, 0.75))


@pytest.mark.parametrize("mode", MODES)
def test_gradients_in_every_mode(mode, harmless):
    """Compiled alone, where no companion makes a form cheap, and all of them beside each other."""
    x, chosen = gradients("float64", ALONE)
    together = esat.compile(esat.Graph([x], list(chosen.values())), mode=mode)(X)
    for name, wanted, beside in zip(chosen, harmless, together, strict=True):
        inside = np.where(VALID, wanted, 0)
        np.testing.assert_allclose(beside, inside, 1e-12, 1e-12, err_msg=f"{name}, beside others")
        alone = esat.compile(esat.Graph([x], [chosen[name]]), mode=mode)(X)
        np.testing.assert_allclose(alone, inside, 1e-12, 1e-12, err_msg=name)


def test_masks_of_different_branches_are_joined():
    x = esat.vector("x")
    y = esat.log(x)
    value = esat.where(x > 0, y, 0) + esat.where(x > 1, y * y, 0)
    result = esat.compile(esat.Graph([x], [esat.grad(value.sum(), x)]), mode="strict")(X)
    inside = np.where(VALID, X, 1)
    wanted = np.where(VALID, 1 / inside, 0) + np.where(X > 1, 2 * np.log(inside) / inside, 0)
    np.testing.assert_allclose(result, wanted, 1e-14)


def test_a_sum_behind_a_condition_for_all_elements():
    x = esat.vector("x")
    value = esat.where(x.min() > 0, esat.log(esat.sqrt(x).sum()), 0)
    step = esat.compile(esat.Graph([x], [esat.grad(value, x)]), mode="strict")
    np.testing.assert_array_equal(step(X), np.zeros_like(X))
    assert (step(np.abs(X) + 1) > 0).all()


def test_second_derivatives():
    x = esat.vector("x")
    first = esat.grad(esat.where(x > 0, esat.log(x) * x, 0).sum(), x)
    result = esat.compile(esat.Graph([x], [esat.grad(first.sum(), x)]), mode="strict")(X)
    np.testing.assert_allclose(result, np.where(VALID, 1 / np.where(VALID, X, 1), 0), 1e-14)


def test_what_is_taken_still_gives_its_nan():
    """A mask hides the branch not taken, and nothing else."""
    x = esat.vector("x")
    step = esat.compile(esat.Graph([x], [esat.grad(esat.where(x > -1, esat.sqrt(x), 0).sum(), x)]))
    with np.errstate(all="ignore"):
        wanted = np.where(X > -1, 0.5 / np.sqrt(X), 0)
    np.testing.assert_array_equal(step(X), wanted)


def test_a_layer_below_a_where_keeps_its_gradient_as_it_was():
    """Ops that only pass a cotangent on need no mask: the graph does not grow."""
    x, b = esat.matrix("x"), esat.vector("b")
    inner = x + b
    gradient = esat.grad(esat.where(inner > 0, inner, 0).sum(), b)
    nodes = esat.FunctionGraph([x, b], [gradient]).toposort()
    # That of the value, whose shape the cotangent has, and that of the cotangent.
    assert [node.op.name for node in nodes].count("switch") == 2
