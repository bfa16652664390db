"""Programs of linear algebra through the whole compiler: the form that structure allows, and its result."""

import numpy as np
import pytest

import esat

N = 400
la = esat.linalg
generator = np.random.default_rng(0)
A = generator.normal(size=(N, N)) / np.sqrt(N)
B = generator.normal(size=N)
LOWER = np.tril(A) + 2 * np.eye(N)
DEFINITE = A @ A.T + np.eye(N)
ORTHOGONAL = np.linalg.qr(A)[0]
U, V = generator.normal(size=(2, N, 3)) / N
W = generator.normal(size=(N, 60))
SMALL = DEFINITE[:3, :3]
D = generator.normal(size=N) / N

a = esat.tensor("a", shape=(N, N))
u, v = esat.tensor("u", shape=(N, 3)), esat.tensor("v", shape=(N, 3))
b, d, c = esat.vector("b"), esat.vector("d"), esat.tensor("c", shape=(3, 3))
lower, definite = esat.assume(a, "lower_triangular"), esat.assume(a, "positive_definite")
orthogonal, symmetric = esat.assume(a, "orthogonal"), esat.assume(a, "symmetric")
low_rank = esat.diag(esat.exp(d)) + u @ v.T

w = esat.tensor("w", shape=(N, 60))
small = esat.assume(c, "positive_definite")
ridge = la.inv(u @ u.T + 0.5 * esat.eye(N)) @ u @ b[:3]
gain = la.inv(la.inv(definite) + u @ la.inv(small) @ u.T) @ u @ la.inv(small)

CASES = {
    "inverse times vector": (la.inv(a) @ b, {a: A, b: B}, {"solve"}, {"inv"}),
    "vector times inverse": (b @ la.inv(a), {a: A, b: B}, {"solve"}, {"inv"}),
    "triangular": (la.solve(lower, b), {a: LOWER, b: B}, {"solve_triangular"}, {"solve"}),
    "transposed triangular": (la.solve(lower.T, b), {a: LOWER, b: B}, {"solve_triangular"}, {"solve"}),
    "product of triangles": (la.inv(lower @ lower.T) @ b, {a: LOWER, b: B}, set(), {"inv", "solve"}),
    "inverse of triangular": (la.inv(lower) @ a, {a: LOWER}, {"solve_triangular"}, {"inv"}),
    "times inverse of triangular": (a @ la.inv(lower), {a: LOWER}, {"solve_triangular"}, {"inv"}),
    "negative of triangular": (-la.inv(lower) @ a, {a: LOWER}, {"solve_triangular"}, {"inv"}),
    "least squares": (la.inv(w.T @ w) @ w.T @ b, {w: W, b: B}, {"solve_semidefinite"}, {"inv", "solve"}),
    "inverse of a triangle": (la.inv(lower), {a: LOWER}, {"inv_triangular"}, {"inv"}),
    "identity and a product": ((np.eye(N) - u @ v.T) @ a, {u: U, v: V, a: A}, {"sub"}, {"eye"}),
    "product and identities": (a @ (2 * esat.eye(N) + u @ v.T), {a: A, u: U, v: V}, {"add"}, {"eye"}),
    "ridge with few rows": (ridge, {u: U, b: B}, {"solve_semidefinite"}, {"eye"}),
    "ridge with few rows by halves": (
        la.inv(w @ w.T + 0.5 * esat.eye(N)) @ w @ b[:60],
        {w: W, b: B},
        {"solve_semidefinite"},
        {"eye"},
    ),
    "weights": (w.T @ esat.diag(esat.exp(d)) @ w, {w: W, d: D}, {"gram_matmul"}, {"diag"}),
    "filter": (gain @ b[:3], {a: DEFINITE, c: SMALL, u: U, b: B}, {"matmul"}, {"inv"}),
    "logarithm of low rank": (la.slogdet(low_rank)[1], {d: D, u: U, v: V}, {"slogdet"}, set()),
    "inverse around": (w.T @ la.inv(definite) @ w, {w: W, a: DEFINITE}, {"whiten"}, {"cho_solve"}),
    "leverages": (esat.diag(w @ la.inv(w.T @ w) @ w.T), {w: W}, {"whiten"}, {"inv", "solve_semidefinite"}),
    "leverages by rows": (esat.sum(w @ la.inv(w.T @ w) * w, axis=1), {w: W}, {"whiten"}, {"inv", "solve"}),
    "leverages together": (esat.trace(w @ la.inv(w.T @ w) @ w.T), {w: W}, {"whiten"}, {"solve_semidefinite"}),
    "forms together": (esat.sum(w * la.solve(definite, w)), {w: W, a: DEFINITE}, {"whiten"}, {"solve"}),
    "projection": (w @ la.inv(w.T @ w) @ w.T, {w: W}, {"whiten", "gram_matmul"}, {"solve_semidefinite"}),
    "distance": (b[:60] @ la.inv(w.T @ w) @ b[:60], {w: W, b: B}, {"whiten"}, {"solve_semidefinite"}),
    "positive definite": (la.solve(definite, b), {a: DEFINITE, b: B}, {"solve_semidefinite"}, {"solve"}),
    "ridge": (la.solve(a.T @ a + np.eye(N), b), {a: A, b: B}, {"solve_semidefinite"}, {"solve"}),
    "orthogonal": (la.solve(orthogonal, b), {a: ORTHOGONAL, b: B}, {"matmul"}, {"solve"}),
    "inverse of orthogonal": (la.inv(orthogonal) @ b, {a: ORTHOGONAL, b: B}, {"matmul"}, {"inv", "solve"}),
    "diagonal": (la.solve(esat.diag(esat.exp(d)), b), {d: D, b: B}, set(), {"solve", "diag"}),
    "Woodbury": (la.solve(low_rank, b), {d: D, u: U, v: V, b: B}, {"solve"}, set()),
    "determinant of triangular": (la.det(lower), {a: LOWER / 2}, {"diagonal", "prod"}, {"det"}),
    "determinant lemma": (la.det(low_rank), {d: D, u: U, v: V}, {"det", "sum", "exp"}, {"prod"}),
    "log of determinant": (esat.log(la.det(lower @ lower.T)), {a: LOWER}, set(), {"det", "slogdet"}),
    "trace of product": (esat.trace(a @ a), {a: A}, {"sum"}, {"matmul", "diagonal"}),
    "transpose of symmetric": (symmetric.T * 2.0, {a: A + A.T}, {"mul"}, {"dimshuffle"}),
    "norm of product": (esat.sum((u @ v.T) ** 2), {u: U, v: V}, {"matmul"}, set()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_form_that_structure_allows(name):
    output, values, present, absent = CASES[name]
    function = esat.compile(esat.Graph(list(values), [output]))
    with np.errstate(all="ignore"):
        expected = esat.evaluate(output, values)
    np.testing.assert_allclose(function(*values.values()), expected, rtol=1e-6, atol=1e-8)
    names = {node.op.name for node in function.optimized.toposort()}
    assert present <= names, names
    assert not absent & names, names


@pytest.mark.parametrize(
    "name",
    ["Woodbury", "determinant lemma", "norm of product", "ridge with few rows", "logarithm of low rank"],
)
def test_low_rank_forms_make_no_large_matrix(name):
    output, values, _, _ = CASES[name]
    function = esat.compile(esat.Graph(list(values), [output]))
    for node in function.optimized.toposort():
        for variable in node.outputs:
            sizes = [N if size is None else size for size in variable.tensor_type.shape]
            assert np.prod(sizes) < N * N, node.op


def test_leverages_of_nearly_dependent_columns():
    """They are at least as close as written, against the rows of an orthogonal factor."""
    near = W[:, :1] + 1e-5 * W
    exact = np.sum(np.linalg.qr(near)[0] ** 2, axis=1)
    output = CASES["leverages"][0]
    found, written = esat.compile(esat.Graph([w], [output]))(near), esat.evaluate(output, {w: near})
    assert np.abs(found - exact).max() <= np.abs(written - exact).max()


@pytest.mark.parametrize("output", [la.solve(a, b), la.inv(a) @ b, la.det(a) * b])
def test_without_an_assumption_nothing_is_taken_for_granted(output):
    function = esat.compile(esat.Graph([a, b], [output]))
    names = {node.op.name for node in function.optimized.toposort()}
    assert not names & {"solve_triangular", "cholesky", "cho_solve"}


@pytest.mark.parametrize("mode", ["greedy", "fast_compile", "strict", "debug"])
def test_other_modes_are_right(mode):
    for name in ("triangular", "product of triangles", "orthogonal"):
        output, values, _, _ = CASES[name]
        chosen = esat.Mode("debug", samples=tuple(values.values())) if mode == "debug" else mode
        function = esat.compile(esat.Graph(list(values), [output]), chosen)
        np.testing.assert_allclose(function(*values.values()), esat.evaluate(output, values), rtol=1e-6)


def test_one_factorization_serves_all_that_need_it():
    """Two solutions and a determinant of one definite matrix: one Cholesky factor."""
    c = esat.vector("c")
    outputs = [la.solve(definite, b), la.solve(definite, c), la.slogdet(definite)[1]]
    function = esat.compile(esat.Graph([a, b, c], outputs))
    values = {a: DEFINITE, b: B, c: D}
    for found, expected in zip(function(*values.values()), esat.evaluate(outputs, values), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    names = [node.op.name for node in function.optimized.toposort()]
    assert names.count("cholesky") == 1, names
    assert not {"solve", "slogdet", "inv"} & set(names), names


@pytest.mark.parametrize("rows", [0, 3])
def test_structured_products_of_nothing(rows):
    x = esat.matrix("x", shape=(rows, 4 - rows))
    triangle = esat.matrix("triangle", shape=(rows, rows))
    graph = esat.Graph([x, triangle], [esat.assume(triangle, "lower_triangular") @ x, x.T @ x])
    arrays = np.ones((rows, 4 - rows)), np.tri(rows)
    for found, wanted in zip(
        esat.compile(graph)(*arrays), (arrays[1] @ arrays[0], arrays[0].T @ arrays[0]), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
