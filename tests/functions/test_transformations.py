"""Derivatives and batches of functions, and of Variables: against differences, stacks, and formulas."""

import re

import numpy as np
import pytest

import esat
from esat.errors import GradientError, GraphError, ShapeError
from esat.frontend.derivatives.jacobians import jacobians_of
from esat.graph.algorithms.traversal import toposort

rng = np.random.default_rng(11)
X = rng.normal(size=(5, 3))
Y = rng.normal(size=5)
W = rng.normal(size=3)


def jit(f):
    return esat.jit(f, mode="fast_compile")


@jit
def loss(w, x, y):
    return np.mean((np.tanh(x @ w) - y) ** 2)


def plain_loss(w, x=X, y=Y):
    return np.mean((np.tanh(x @ w) - y) ** 2)


def differences(f, x, step=1e-6):
    """The Jacobian of a function of a vector by central differences."""
    columns = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(x.size)]
    return np.stack(columns, axis=-1)


def test_grad_and_value_and_grad():
    gradient = esat.grad(loss)(W, X, Y)
    np.testing.assert_allclose(gradient, differences(plain_loss, W), atol=1e-8)
    value, same = esat.value_and_grad(loss)(W, X, y=Y)
    np.testing.assert_allclose(value, plain_loss(W))
    np.testing.assert_array_equal(same, gradient)
    assert type(value) is np.float64
    by_w, by_y = esat.grad(loss, argnums=(0, 2))(W, X, Y)
    np.testing.assert_allclose(by_w, gradient)
    np.testing.assert_allclose(by_y, differences(lambda y: plain_loss(W, X, y), Y), atol=1e-8)


def test_gradients_of_trees_numbers_and_aux():
    @jit
    def f(p, k):
        cost = (p["w"] ** 2).sum() * p["more"][0] + p["more"][1].sum()
        return cost, {"k": k, "norm": np.sqrt((p["w"] ** 2).sum())}

    p = {"w": W, "more": (2.0, X)}
    gradient, aux = esat.grad(f, has_aux=True)(p, 3)
    np.testing.assert_allclose(gradient["w"], 4 * W)
    np.testing.assert_allclose(gradient["more"][0], W @ W)
    np.testing.assert_allclose(gradient["more"][1], np.ones_like(X))
    assert aux["k"] == 3
    np.testing.assert_allclose(aux["norm"], np.linalg.norm(W))
    (value, _), _ = esat.value_and_grad(f, has_aux=True)(p, 3)
    np.testing.assert_allclose(value, W @ W * 2 + X.sum())


def test_derivatives_of_derivatives():
    cube = jit(lambda x: x**3)
    assert esat.grad(cube)(2.0) == 12
    assert esat.grad(esat.grad(cube))(2.0) == 12
    assert esat.grad(esat.grad(esat.grad(cube)))(2.0) == 6


def test_jitted_once_more():
    twice = jit(esat.grad(loss))
    np.testing.assert_allclose(twice(W, X, Y), esat.grad(loss)(W, X, Y))
    assert isinstance(twice, type(loss).__mro__[1])


def test_within_traced_functions():
    @jit
    def step(w, x, y, rate):
        value, gradient = esat.value_and_grad(plain_loss)(w, x, y)
        w -= rate * gradient
        return value

    w = W.copy()
    value = step(w, X, Y, 0.1)
    np.testing.assert_allclose(value, plain_loss(W))
    np.testing.assert_allclose(w, W - 0.1 * esat.grad(loss)(W, X, Y))


def test_what_a_function_uses_beside_its_arguments_is_constant():
    f = jit(lambda x: esat.grad(lambda y: x * y)(x) + esat.grad(lambda y: y * y)(x))
    assert f(3.0) == 9


def test_gradients_that_are_refused():
    with pytest.raises(GradientError, match="one real scalar"):
        esat.grad(jit(lambda x: x * 2))(X)
    with pytest.raises(GradientError, match="integers"):
        esat.grad(jit(lambda n: n * 2.0))(3)
    with pytest.raises(GradientError, match="no argument 2"):
        esat.grad(jit(lambda x: x), argnums=2)(1.0)

    def writes(x):
        x[0] = 0
        return x.sum()

    with pytest.raises(GraphError, match="writes"):
        esat.grad(jit(writes))(W)


def test_unused_arguments_have_zeros():
    np.testing.assert_array_equal(esat.grad(jit(lambda x, y: y * 2.0))(W, 3.0), np.zeros(3))


def test_vjp():
    f = jit(lambda a, b: {"product": a * b, "sum": a.sum()})
    value, pull_back = esat.vjp(f, W, X[0])
    np.testing.assert_allclose(value["product"], W * X[0])
    by_a, by_b = pull_back({"product": np.ones(3), "sum": 2.0})
    np.testing.assert_allclose(by_a, X[0] + 2)
    np.testing.assert_allclose(by_b, W)


def test_jvp_and_linearize():
    f = jit(lambda a, b: (np.sin(a) * b, a.sum()))
    (value, total), (tangent, of_total) = esat.jvp(f, (W, X[0]), (np.ones(3), W))
    np.testing.assert_allclose(value, np.sin(W) * X[0])
    np.testing.assert_allclose(total, W.sum())
    np.testing.assert_allclose(tangent, np.cos(W) * X[0] + np.sin(W) * W)
    np.testing.assert_allclose(of_total, 3)
    value, push = esat.linearize(f, W, X[0])
    for scale in (1.0, 2.0):
        np.testing.assert_allclose(push(scale * np.ones(3), scale * W)[0], scale * tangent)


@pytest.mark.parametrize("direction", ["forward", "reverse", None])
def test_jacobians(direction):
    f = jit(lambda w: np.tanh(X @ w))
    t = np.tanh(X @ W)
    expected = (1 - t * t)[:, None] * X
    np.testing.assert_allclose(esat.jacobian(f, direction=direction)(W), expected, rtol=1e-12)
    g = jit(lambda w, m: {"a": m @ w, "b": w.sum()})
    found = esat.jacobian(g, argnums=(0, 1), direction=direction)(W, X)
    np.testing.assert_allclose(found["a"][0], X)
    np.testing.assert_allclose(found["a"][1], np.einsum("ij,k->ijk", np.eye(5), W), atol=1e-15)
    np.testing.assert_allclose(found["b"][0], np.ones(3))
    assert found["b"][1].shape == X.shape


def logistic(w):
    return np.sum(np.log(1 + np.exp(X @ w)))


def gaussian_process(w):
    k = np.exp(-((w[:, None] - w[None]) ** 2)) + 0.5 * np.eye(3)
    return Y[:3] @ np.linalg.solve(k, Y[:3]) + np.linalg.slogdet(k)[1]


def network(w):
    hidden = np.maximum(np.outer(X[:, 0], w), 0) + np.tanh(X * w)
    return (esat.softmax(hidden, axis=1)[:, 0] ** 2).sum()


def mixture(w):
    return -np.log(np.exp(-((X - w) ** 2).sum(1) / 2).sum()) + np.abs(w).sum()


def series(w):
    state = 0.0
    for k in range(4):
        state = np.tanh(w[0] * state + X[k, 0] * w[1]) + w[2]
    return state**2


@pytest.mark.parametrize("model", [logistic, gaussian_process, network, mixture, series])
def test_hessians_of_models(model):
    f = jit(model)
    gradient = esat.grad(f)
    hessian = esat.hessian(f)(W)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(hessian, differences(gradient, W), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        hessian, esat.jacobian(gradient, direction="reverse")(W), rtol=1e-11, atol=1e-11
    )


def test_hessian_by_a_matrix():
    found = esat.hessian(jit(lambda x: (x**3).sum()))(X[:2])
    assert found.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(found.reshape(6, 6), np.diag(6 * X[:2].ravel()), atol=1e-14)


# ---- batches

BATCHED = {
    "elementwise": lambda x: np.sin(x) * 2 + x**2,
    "reductions": lambda x: (x.mean(), x.std(), x.max(), np.median(x), np.ptp(x)),
    "products": lambda x: (X @ x, np.outer(x, x), np.dot(x, x), np.einsum("i,j->ij", x, x)),
    "branches": lambda x: np.where(x.sum() > 0, x, -x),
    "normalization": lambda x: esat.softmax(x) + x / np.linalg.norm(x),
    "indices": lambda x: (x[::-1], x[[2, 0, 0]], x[x.argmax()], np.take(x, [1, 1])),
    "sorting": lambda x: (np.sort(x), np.argsort(x), np.cumsum(x), np.diff(x)),
    "joins": lambda x: (np.concatenate([x, W]), np.stack([x, x]), np.tile(x, 2), np.repeat(x, 2)),
    "linear algebra": lambda x: np.linalg.solve(np.eye(3) + np.outer(x, x), W),
    "determinants": lambda x: (
        np.linalg.det(np.eye(3) * 2 + np.outer(x, x)),
        np.linalg.inv(np.diag(x**2 + 1)),
    ),
    "loops": lambda x: sum(np.tanh(x * k) for k in range(3)),
    "masks": lambda x: np.where(x > 0, np.sqrt(np.abs(x)), 0).sum(),
}


def written(x):
    y = np.zeros(5)
    y[1:4] = x
    y[0] += x.sum()
    np.add.at(y, [0, 0, 4], x)
    return y


BATCHED["assignments"] = written


@pytest.mark.parametrize("name", BATCHED)
def test_vmap_is_a_loop(name):
    f = BATCHED[name]
    found = esat.vmap(jit(f))(X)
    one = jit(f)
    expected = [one(x) for x in X]
    if isinstance(expected[0], tuple):
        for place, part in enumerate(found):
            np.testing.assert_allclose(part, np.stack([each[place] for each in expected]), rtol=1e-11)
    else:
        np.testing.assert_allclose(found, np.stack(expected), rtol=1e-11, atol=1e-14)


def test_axes_of_batches():
    multiply = jit(lambda a, b, scale: {"product": a * b * scale, "sum": b.sum()})
    found = esat.vmap(multiply, in_axes=(1, None, None), out_axes={"product": 1, "sum": None})(X, Y, 2.0)
    np.testing.assert_allclose(found["product"], X * Y[:, None] * 2)
    np.testing.assert_allclose(found["sum"], Y.sum())
    tree = esat.vmap(jit(lambda p: p["w"] * p["b"]), in_axes=({"w": 0, "b": None},))({"w": X, "b": W})
    np.testing.assert_allclose(tree, X * W)
    shared = esat.vmap(jit(lambda a: np.ones(2)), out_axes=0)(X)
    np.testing.assert_array_equal(shared, np.ones((5, 2)))
    assert esat.vmap(jit(lambda a: a * 2), in_axes=None, axis_size=4)(W).shape == (4, 3)
    with pytest.raises(ShapeError, match="sizes"):
        esat.vmap(jit(lambda a, b: a + b))(X, W)
    with pytest.raises(ShapeError, match="out_axes"):
        esat.vmap(jit(lambda a: a), out_axes=None)(X)
    with pytest.raises(ShapeError, match="axis 2"):
        esat.vmap(jit(lambda a: a), in_axes=2)(X)
    with pytest.raises(ShapeError, match="axis_size"):
        esat.vmap(jit(lambda a: a), in_axes=None)(X)


def test_batches_of_batches_and_of_derivatives():
    table = esat.vmap(esat.vmap(jit(lambda a, b: a * b), (None, 0)), (0, None))(W, Y)
    np.testing.assert_allclose(table, np.outer(W, Y))
    each = esat.vmap(esat.grad(loss), (None, 0, 0))(W, X, Y)
    np.testing.assert_allclose(each.mean(axis=0), esat.grad(loss)(W, X, Y), atol=1e-12)
    total = esat.grad(jit(lambda w: esat.vmap(plain_loss, (None, 0, 0))(w, X, Y).mean()))(W)
    np.testing.assert_allclose(total, esat.grad(loss)(W, X, Y), atol=1e-12)
    np.testing.assert_allclose(
        esat.vmap(esat.hessian(jit(lambda x: (x**3).sum())))(X), [np.diag(6 * x) for x in X], atol=1e-13
    )


# ---- gradients of their own


def test_stop_gradient():
    assert esat.grad(jit(lambda x: x * esat.stop_gradient(x**2)))(3.0) == 9
    x = esat.scalar()
    compiled = esat.compile(esat.Graph([x], esat.stop_gradient(x) * 2), mode="fast_compile")
    assert compiled(4.0) == 8
    _, tangent = esat.jvp(jit(lambda x: esat.stop_gradient(x) + x), (2.0,), (1.0,))
    assert tangent == 1


def test_custom_vjp():
    @esat.custom_vjp
    def clipped(x, limits):
        return np.clip(x, -limits, limits)

    clipped.defvjp(
        lambda x, limits: (clipped(x, limits), x > 0),
        lambda positive, c: (np.where(positive, c, 2 * c), None),
    )
    np.testing.assert_array_equal(clipped(X, 1.0), np.clip(X, -1, 1))
    found = esat.grad(jit(lambda x: clipped(x, 1.0).sum()))(np.array([-3.0, 0.5]))
    np.testing.assert_array_equal(found, [2, 1])
    np.testing.assert_array_equal(jit(lambda x: clipped(x, 0.5))(X), np.clip(X, -0.5, 0.5))
    with pytest.raises(GradientError, match="defvjp"):
        esat.custom_vjp(lambda x: x)(1.0)


def test_batches_of_custom_vjp():
    @esat.custom_vjp
    def scaled(x, factor):
        return x * factor, x.sum()

    scaled.defvjp(
        lambda x, factor: (scaled(x, factor), factor),
        lambda factor, c: (10 * c[0] * factor + c[1], (c[0] * 7).sum()),
    )

    def cost(x, factor):
        product, total = scaled(x, factor)
        return (product**2).sum() + total

    def by_hand(x, factor):
        return 20 * x * factor**2 + 1, 14 * (x * factor).sum()

    factors = np.array([1.0, -2.0, 0.5])[: len(X)]
    rows = X[: len(factors)]
    each = [by_hand(*pair) for pair in zip(rows, factors, strict=True)]
    for_rows, for_factors = jit(esat.vmap(esat.grad(jit(cost), (0, 1))))(rows, factors)
    np.testing.assert_allclose(for_rows, [one for one, _ in each])
    np.testing.assert_allclose(for_factors, [other for _, other in each])

    def of_batch(rows, factor):
        return esat.vmap(cost, in_axes=(0, None))(rows, factor).sum()

    for_rows, for_factor = esat.grad(jit(of_batch), (0, 1))(rows, 3.0)
    each = [by_hand(row, 3.0) for row in rows]
    np.testing.assert_allclose(for_rows, [one for one, _ in each])
    np.testing.assert_allclose(for_factor, sum(other for _, other in each))


# ---- of Variables


def test_derivatives_of_variables():
    x, m = esat.vector("x"), esat.matrix("m")
    y = esat.tanh(m @ x)
    t = np.tanh(X @ W)
    given = {x: W, m: X}
    np.testing.assert_allclose(esat.jacobian(y, x).eval(given), (1 - t * t)[:, None] * X)
    v = esat.vector("v")
    np.testing.assert_allclose(esat.jvp(y, x, v).eval({**given, v: W}), (1 - t * t) * (X @ W))
    pushed, same = esat.jvp([y, y * 2], [x], [v])
    np.testing.assert_allclose(same.eval({**given, v: W}), 2 * pushed.eval({**given, v: W}))
    cost = (x**3).sum()
    np.testing.assert_allclose(esat.hessian(cost, x).eval({x: W}), np.diag(6 * W))
    value, gradient = esat.value_and_grad(cost, x)
    assert value is cost
    np.testing.assert_allclose(gradient.eval({x: W}), 3 * W**2)
    with pytest.raises(GradientError, match="complex"):
        esat.jacobian(esat.vector(dtype="complex128") * 1j, x)


def test_graphs_of_batches():
    x, batch = esat.vector("x"), esat.matrix("batch")
    y, shared = esat.vectorize_graph([x / x.sum(), esat.constant(1.0)], {x: batch})
    np.testing.assert_allclose(y.eval({batch: X}), X / X.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(shared.eval({batch: X}), np.ones(5))
    with pytest.raises(ShapeError, match="one axis more"):
        esat.vectorize_graph(x, {x: x})


def test_clone_replace():
    x, y = esat.vector("x"), esat.vector("y")
    np.testing.assert_allclose(esat.clone_replace(x + 1, {x: y * 2}).eval({y: W}), 2 * W + 1)
    with pytest.raises(GraphError, match="type"):
        esat.clone_replace(x, {x: esat.matrix()})


def test_options_that_are_none():
    for argnums in (1.5, None, "a", (0, "b")):
        with pytest.raises(GradientError, match="argnums="):
            esat.grad(loss, argnums=argnums)(W, X, Y)
    with pytest.raises(GradientError, match="direction="):
        esat.jacobian(loss, direction="sideways")(W, X, Y)
    with pytest.raises(esat.CallError, match="has_aux="):
        esat.grad(loss, has_aux=1)
    for size in (-1, 2.5, "a"):
        with pytest.raises(ShapeError, match="axis_size="):
            esat.vmap(np.sin, axis_size=size)(X)


def test_batches_of_functions_with_defaults():
    def scaled(x, factor=2.0):
        return x * factor

    np.testing.assert_array_equal(jit(esat.vmap(scaled))(X), X * 2)
    np.testing.assert_allclose(jit(esat.vmap(np.dot, in_axes=(0, None)))(X, W), X @ W)


@pytest.mark.parametrize("direction", [None, "forward", "reverse"])
def test_jacobians_of_several_results_share_their_passes(direction):
    a, b, v = esat.scalar("a"), esat.scalar("b"), esat.vector("v", shape=(3,))
    matrix = esat.exp(a) * esat.eye(3) + b * v[:, None] * v
    ys = [esat.linalg.slogdet(matrix)[1], esat.linalg.solve(matrix, v), v * a]
    given = {a: 0.3, b: 0.2, v: W}
    whole = jacobians_of(ys, [a, b, v], direction)
    for y, row in zip(ys, whole, strict=True):
        for x, part in zip((a, b, v), row, strict=True):
            np.testing.assert_allclose(
                esat.evaluate(part, given), esat.evaluate(esat.jacobian(y, x), given), atol=1e-12
            )
    # By a number there is one column only: factors stay factors of one matrix.
    by_numbers = [row[column] for row in jacobians_of(ys[1:2], [a, b], "forward") for column in (0, 1)]
    solves = [node for node in toposort(by_numbers) if node.op.name == "solve"]
    assert {node.outputs[0].ndim for node in solves} == {2}


QUADRATIC = {
    "from the left": lambda x, a: x @ a @ x,
    "from the right": lambda x, a: np.dot(x, a @ x),
    "as a sum": lambda x, a: np.sum(x * (a @ x)),
    "as indices": lambda x, a: np.einsum("i,ij,j", x, a, x),
}


@pytest.mark.parametrize("name", QUADRATIC)
def test_a_batch_of_quadratic_forms_is_one_product_and_sums_of_rows(name):
    rows, matrix = rng.normal(size=(50, 6)), rng.normal(size=(6, 6))
    forms = esat.jit(esat.vmap(QUADRATIC[name], in_axes=(0, None)))
    np.testing.assert_allclose(forms(rows, matrix), np.einsum("ki,ij,kj->k", rows, matrix, rows))
    steps = re.findall(r"# \d+: (library|kernel): (\w+)", forms.source())
    assert [kind for kind, _ in steps] == ["library", "kernel"]
    assert steps[0][1] == "matmul"
