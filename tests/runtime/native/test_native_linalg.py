"""Factorizations and systems of equations in native functions: the driver's bits, and its errors."""

import json
from functools import partial

import numpy as np
import pytest
from native_calls import by_driver, way_of

import esat
from esat import assume
from esat.codegen.ground.blas_library import lapack_address
from esat.codegen.matmul.small_systems import system_code
from esat.compilation.recorded.content import decoded, encoded
from esat.errors import LinearAlgebraError
from esat.linalg import (
    cho_solve,
    cholesky,
    det,
    eigh,
    eigvalsh,
    inv,
    lu,
    qr,
    slogdet,
    solve,
    solve_triangular,
    svd,
    svdvals,
)
from esat.ops.linalg.solve import Solve
from esat.ops.linalg.whitening import WHITEN
from esat.runtime.native import direct

pytestmark = pytest.mark.skipif(
    None in (lapack_address("dpotrf", "numpy"), lapack_address("dtrtrs", "scipy")),
    reason="NumPy or SciPy has another library than the OpenBLAS of its wheel",
)
SIZE = 6
M = esat.matrix("m", shape=(SIZE, SIZE))
S = esat.matrix("s", shape=(SIZE, SIZE), dtype="float32")
B = esat.matrix("b", shape=(SIZE, 3))
V = esat.vector("v", shape=(SIZE,))
T = esat.tensor("t", shape=(3, SIZE, SIZE), dtype="float64")
F = cholesky(M)
M3, FIVE = np.arange(4.0 * SIZE).reshape(4, SIZE), np.cos(np.arange(30.0)).reshape(2, 3, 5, 1)
SINGLES = esat.tensor("singles", shape=(7, SIZE, SIZE), dtype="float32")
ONES = np.ones((SIZE, 1))
R = esat.tensor("r", shape=(3, SIZE, 2), dtype="float64")
TALL = esat.matrix("tall", shape=(SIZE, 4))
WIDE = esat.tensor("wide", shape=(2, 3, 3, 5), dtype="float64")
NONE = esat.tensor("none", shape=(0, SIZE, 2), dtype="float64")
NO_MATRICES = esat.tensor("no_matrices", shape=(2, 0, SIZE, SIZE), dtype="float64")
MANY = esat.tensor("many", shape=(40, 1, SIZE, SIZE), dtype="float64")

PROGRAMS = {
    "cholesky": ([M], [cholesky(M), cholesky(M, upper=True)]),
    "float32": ([S], [solve_triangular(S, S.T[:, :2], lower=True), cholesky(S), inv(S[:3, :3]), det(S)]),
    "cholesky of a batch": ([T], [cholesky(T)]),
    "solve": ([M, B, V], [solve(M, B), solve(M, V)]),
    "solve, semidefinite": ([M, B, V], [solve(M @ M.T, B), solve(M.T @ M, V), solve(M @ M.T, B[::-1])]),
    "solve a batch": ([T, R, M], [solve(T, R), solve(M, R)]),
    "inverse": ([M], [inv(M), inv(M[::-1].T)]),
    "determinants": ([M, T], [*slogdet(M), det(T), *slogdet(T[:2])]),
    "triangular": (
        [M, B, V],
        [
            solve_triangular(M, B, lower=True),
            solve_triangular(M.T, V, lower=True),
            solve_triangular(M, V, lower=False, unit_diagonal=True),
            solve_triangular(M[::-1], B, lower=False),
        ],
    ),
    "triangular batch": ([T, R], [solve_triangular(T, R, lower=True)]),
    "from a factor": ([M, B, V], [cho_solve((M, True), B), cho_solve((M, False), V)]),
    "broadcast batches": (
        [MANY, R],
        [solve(MANY, R), solve(MANY[:, 0], ONES), cholesky(MANY), *slogdet(MANY[:, 0]), inv(MANY)],
    ),
    "eigenvectors": ([M, T], [*eigh(M), *eigh(T, "U"), eigvalsh(M), eigvalsh(T[:, ::-1])]),
    "singular values": (
        [TALL, WIDE, M],
        [*svd(TALL), *svd(WIDE, full_matrices=False), *svd(M.T), svdvals(WIDE), svdvals(TALL)],
    ),
    "orthogonal factors": (
        [TALL, WIDE, M],
        [*qr(TALL), *qr(TALL, "complete"), qr(TALL, "r"), *qr(WIDE), *qr(WIDE[0], "complete"), qr(M, "r")],
    ),
    "products": (
        [MANY, WIDE, T, R],
        [MANY @ T, T @ R, MANY[:, 0] @ R[0], M3 @ T, esat.swapaxes(T, 1, 2) @ T, T[:, ::-1] @ R, WIDE @ FIVE],
    ),
    "products with vectors": (
        [MANY, T, R],
        [MANY @ R[0, :, 0], T[:, :1] @ R, T @ R[..., :1], T[:, 1:] @ R[..., 1:]],
    ),
    "float32 products": ([SINGLES], [SINGLES @ SINGLES, SINGLES @ SINGLES[0]]),
    "lu": ([TALL, WIDE, M, S], [*lu(TALL), *lu(WIDE), *lu(M.T), *lu(S)]),
    "diagonal matrices": ([V], [esat.diag(V), esat.diag(V[::-2], -1)]),
    "triangular inverses": (
        [M, T],
        [inv(assume(M, "lower_triangular")), inv(assume(T, "upper_triangular")), inv(M)],
    ),
    "products of assumed matrices": (
        [M, B, V],
        [assume(M, kind) @ B for kind in ("lower_triangular", "upper_triangular", "diagonal", "tridiagonal")]
        + [B.T @ assume(M.T, kind) for kind in ("lower_triangular", "diagonal", "tridiagonal", "symmetric")]
        + [assume(M, kind) @ V for kind in ("lower_triangular", "upper_triangular", "symmetric")],
    ),
    "a likelihood": (
        [M, V],
        [esat.sum(solve_triangular(F, V, lower=True) ** 2) + esat.sum(esat.log(esat.diagonal(F)))],
    ),
}


LARGE = 13  # for LAPACK: smaller ones are code of its own
LM = esat.matrix("m", shape=(LARGE, LARGE))
LB = esat.matrix("b", shape=(LARGE, 3))
LV = esat.vector("v", shape=(LARGE,))
LT = esat.tensor("t", shape=(3, LARGE, LARGE), dtype="float64")
LR = esat.tensor("r", shape=(3, LARGE, 2), dtype="float64")
LS = esat.matrix("s", shape=(LARGE, LARGE), dtype="float32")
LBS = esat.matrix("b", shape=(LARGE, 3), dtype="float32")
LTS = esat.tensor("t", shape=(3, LARGE, LARGE), dtype="float32")
TALLS = esat.matrix("tall", shape=(LARGE, 4), dtype="float32")
WIDES = esat.tensor("wide", shape=(2, 3, 3, 5), dtype="float32")
LW = esat.matrix("w", shape=(LARGE, 21))  # right sides that are solved for by rows
LC = esat.matrix("c", shape=(21, LARGE))
LS2 = esat.matrix("s2", shape=(LARGE, 21), dtype="float32")
LT2 = esat.tensor("t2", shape=(3, LARGE, 9), dtype="float64")
MANY13 = esat.tensor("many", shape=(11, 1, LARGE, LARGE), dtype="float64")
LARGER = {
    "cholesky": ([LM, LT], [cholesky(LM), cholesky(LM, upper=True), cholesky(LT)]),
    "float32": ([LS], [solve_triangular(LS, LS.T[:, :2], lower=True)]),
    "float32, as NumPy in float64": (
        [LS, LBS, LTS],
        [
            cholesky(LS),
            cholesky(LS[::-1, ::-1], upper=True),
            cholesky(LTS, upper=True),
            solve(LS, LBS),
            solve(LTS[:, ::-1], LBS[:, 0]),
            solve(LS @ LS.T, LBS),
            inv(LS.T),
            inv(LTS),
            det(LTS),
            *slogdet(LS),
            *slogdet(LTS),
        ],
    ),
    "float32, factors": (
        [LS, TALLS, WIDES],
        [
            *eigh(LS),
            eigvalsh(LS[:5, :5], "U"),
            *svd(TALLS),
            *svd(WIDES, full_matrices=False),
            svdvals(WIDES),
            *qr(TALLS),
            *qr(WIDES),
            qr(TALLS, "r"),
        ],
    ),
    "solve": ([LM, LB, LV, LT, LR], [solve(LM, LB), solve(LM, LV), solve(LT, LR), solve(LM, LR)]),
    "solve, semidefinite": (
        [LM, LB, LV],
        [solve(LM @ LM.T, LB), solve(LM.T @ LM, LV), solve(LM @ LM.T, LB[::-1])],
    ),
    "whitened": (
        [LM, LB, LV],
        [WHITEN(LM @ LM.T, LB), WHITEN(LM.T @ LM, LV[:, None]), WHITEN(LM @ LM.T, LB[::-1])],
    ),
    "whitened, many right sides": ([LM, LW, LC], [WHITEN(LM @ LM.T, LW), WHITEN(LM.T @ LM, LC.T)]),
    "whitened, float32": ([LS, LS2], [WHITEN(LS @ LS.T, LS2)]),
    "inverse": ([LM], [inv(LM), inv(LM[::-1].T)]),
    "determinants": ([LM, LT], [*slogdet(LM), det(LT), *slogdet(LT[:2])]),
    "triangular": (
        [LM, LB, LV, LT, LR],
        [
            solve_triangular(LM, LB, lower=True),
            solve_triangular(LM.T, LV, lower=True),
            solve_triangular(LM, LB, lower=False, unit_diagonal=True),
            solve_triangular(LM[::-1], LB, lower=False),
            solve_triangular(LT, LR, lower=True),
        ],
    ),
    "many right sides": (
        [LM, LW, LC, LT, LT2],
        [
            solve_triangular(LM, LW, lower=True),
            solve_triangular(LM.T, LW, lower=True),
            solve_triangular(LM, LW[:, ::-1], lower=False, unit_diagonal=True),
            solve_triangular(LM[::-1], LC.T, lower=False).T @ LW,
            solve_triangular(LT, LT2, lower=True),
            cho_solve((LM, True), LW),
            cho_solve((LM.T, False), LC.T),
            cho_solve((LM[::-1], False), LW),
        ],
    ),
    "many right sides, semidefinite": (
        [LM, LW, LC],
        [solve(LM @ LM.T, LW), solve(LM.T @ LM, LC.T)],
    ),
    "many right sides, float32": (
        [LS, LS2],
        [solve_triangular(LS, LS2, lower=True), cho_solve((LS, True), LS2)],
    ),
    "batches as loops": (
        [MANY13, LR],
        [
            cholesky(MANY13),
            cholesky(MANY13, upper=True),
            solve(MANY13, LR),
            inv(MANY13[:, 0]),
            solve_triangular(MANY13, LR[0], lower=True),
            *slogdet(MANY13),
        ],
    ),
    "from a factor": ([LM, LB, LV], [cho_solve((LM, True), LB), cho_solve((LM, False), LV)]),
}
PROGRAMS |= {f"larger: {name}": program for name, program in LARGER.items()}


def arrays_for(inputs, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for variable in inputs:
        values = rng.standard_normal(variable.type.shape)
        size = values.shape[-1]
        if values.ndim > 1 and size == values.shape[-2] and size in (SIZE, LARGE):
            values = values @ np.swapaxes(values, -1, -2) + 0.3 * np.eye(size)
        made.append(values.astype(variable.type.dtype))
    return made


def frequent(inputs, outputs):
    program = esat.compile(esat.Graph(inputs, outputs))
    for _ in range(direct.CALLS + 1):
        program(*arrays_for(inputs))
    assert way_of(program) == "native"
    return program


NO_SIDES = esat.tensor("no_sides", shape=(0, LARGE, 2), dtype="float64")
OF_NONE = [
    *(solve(M, NONE), solve_triangular(M, NONE, lower=True), cho_solve((M, True), NONE), M @ NONE),
    *(solve(LM, NO_SIDES), solve_triangular(LM, NO_SIDES, lower=True), LM @ NO_SIDES),
    *(inv(NO_MATRICES), det(NO_MATRICES), slogdet(NO_MATRICES)[1], cholesky(NO_MATRICES)),
    *(solve(NO_MATRICES, B), NO_MATRICES @ B, esat.swapaxes(NONE, 1, 2) @ B),
]


@pytest.mark.parametrize("output", OF_NONE, ids=str)
def test_batches_of_none(output):
    """Nothing is computed for none: a loop that ran once wrote beyond the results, or never ended."""
    inputs = esat.graph.inputs_of([output])
    program = esat.compile(esat.Graph(inputs, output))
    values = arrays_for(inputs)
    (expected,) = esat.evaluate([output], dict(zip(inputs, values, strict=True)))
    for _ in range(direct.CALLS + 1):
        found = program(*values)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert not found.size


def test_there_is_no_code_for_no_systems():
    described = (Solve(), "float64", [(3, 3), (3, 2), (3, 2)], [(3, 1), (2, 1), (2, 1)])
    assert system_code(*described, count=1) is not None
    assert system_code(*described, count=0) is None


WIDTH, LENGTH = 130, 90


def large_programs(dtype="float64"):
    """Products for which half of the work is worth while, and readers of halves."""
    x = esat.matrix("x", shape=(LENGTH, WIDTH), dtype=dtype)
    a = esat.matrix("a", shape=(WIDTH, WIDTH), dtype=dtype)
    b = esat.matrix("b", shape=(WIDTH, LENGTH), dtype=dtype)
    definite = x.T @ x + 3.0 * esat.eye(WIDTH, dtype=dtype)
    factor = cholesky(assume(definite, "positive_definite"), upper=True)
    known = assume(a, "positive_definite")
    return {
        "gram": ([x], [x.T @ x]),
        "gram of columns": ([b], [b @ b.T]),
        "gram of a part": ([x], [x[:, ::-1].T @ x[:, ::-1]]),
        "factor of a gram matrix": ([x], [factor]),
        "half a gram matrix": ([x, b], [solve(x @ x.T, b.T)]),
        "by both triangles": ([x], [cholesky(x @ x.T), cholesky(x @ x.T, upper=True)]),
        "definite": ([a, b], [solve(known, b), slogdet(known)[1], b.T @ solve(known, b)]),
        "quadratic forms": ([a, b], [esat.sum((b.T @ inv(known)) * b.T, axis=1)]),
        "solutions by columns": ([a, b], [(solve(known, b)).T, solve(known, b).T @ b]),
        "a tall product": ([a, b], [b.T @ (a @ b)]),
        "its transpose": ([a, b], [(a @ b).T]),
        **{
            f"{kind}, {side}": (
                [a, b],
                [assume(a, kind) @ b if side == "left" else b.T @ assume(a.T, kind)],
            )
            for kind in ("lower_triangular", "upper_triangular")
            for side in ("left", "right")
        },
    }


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", large_programs())
def test_large_products_and_factors_in_native_functions(name, dtype):
    (inputs, outputs), rng = large_programs(dtype)[name], np.random.default_rng(3)
    program = esat.compile(esat.Graph(inputs, outputs))
    arrays = []
    for one in inputs:
        array = rng.standard_normal(one.type.shape)
        if one.name == "a":
            array = array @ array.T / WIDTH + np.eye(WIDTH)
            triangle = {"lower": np.tril, "upper": np.triu}.get(name.partition("_")[0])
            if triangle is not None:
                array = triangle(array) if name.endswith("left") else triangle(array).T
        arrays.append(array.astype(dtype))
    wanted = as_tuple(by_driver(program, *arrays))
    for _ in range(direct.CALLS + 1):
        found = as_tuple(program(*arrays))
    assert way_of(program) == "native"
    tolerance = 1e-11 if dtype == "float64" else 2e-4
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.fixture(autouse=True)
def few_calls(monkeypatch):
    monkeypatch.setattr(direct, "CALLS", 3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_native_calls_give_the_drivers_results(name):
    inputs, outputs = PROGRAMS[name]
    program = frequent(inputs, outputs)
    arrays = arrays_for(inputs, 1)
    before = [array.copy() for array in arrays]
    recipe = direct.recipe_in_one_thread(
        program._program, program._calls.table, tuple(array.shape for array in arrays)
    )
    content, code = encoded(recipe)
    elsewhere = decoded(json.loads(json.dumps(content)), code).function(partial(by_driver, program))
    wanted = as_tuple(by_driver(program, *arrays))
    for found in (program(*arrays), program(*arrays), elsewhere(*arrays)):
        for one, other in zip(as_tuple(found), wanted, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_array_equal(one, other)
    for array, kept in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize("size", [SIZE, LARGE])
@pytest.mark.parametrize(
    ("output", "wrong", "reason"),
    [
        (lambda m, v: cholesky(m), lambda size: -np.eye(size), "positive definite"),
        (solve, lambda size: np.ones((size, size)), "singular"),
        (lambda m, v: inv(m), lambda size: np.zeros((size, size)), "singular"),
        (lambda m, v: solve_triangular(m, v, lower=True), lambda size: np.tri(size, k=-1), "singular"),
        (
            lambda m, v: solve_triangular(m, v[:, None] + np.ones(9), lower=True),
            lambda size: np.tri(size, k=-1),
            "singular",
        ),
    ],
)
def test_what_is_refused_raises_as_before(output, wrong, reason, size):
    matrix, vector = (M, V) if size == SIZE else (LM, LV)
    result = output(matrix, vector)
    inputs = [matrix] if reason != "singular" else [matrix, vector]
    program = frequent(inputs, [esat.sum(result) + 0.0 * inputs[-1]])
    rest = arrays_for(inputs)[1:]
    with pytest.raises(LinearAlgebraError) as raised_by_driver:
        by_driver(program, wrong(size), *rest)
    for _ in range(3):
        with pytest.raises(LinearAlgebraError, match=reason) as found:
            program(wrong(size), *rest)
        assert str(raised_by_driver.value) in str(found.value)
    right = arrays_for(inputs, 2)
    np.testing.assert_array_equal(program(*right), by_driver(program, *right))


@pytest.mark.parametrize("columns", [2, 9])
def test_what_has_no_factor_is_whitened_by_the_driver(columns):
    sides = esat.matrix("sides", shape=(SIZE, columns))
    program = frequent([M, sides], [WHITEN(M, sides)])
    values = np.diag([1.0, 2.0, 3.0, 4.0, 5.0, -1e-17])
    found = program(values, np.ones((SIZE, columns)))
    np.testing.assert_array_equal(found, by_driver(program, values, np.ones((SIZE, columns))))
    np.testing.assert_allclose(found.T @ found, (np.sum(1 / np.arange(1, SIZE)) + 1e17), rtol=1e-12)


def test_determinants_of_singular_matrices_and_nans():
    program = frequent([M], [*slogdet(M), det(M)])
    for matrix in (np.zeros((SIZE, SIZE)), np.full((SIZE, SIZE), np.nan), -np.eye(SIZE)):
        for one, other in zip(program(matrix), by_driver(program, matrix), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_refused_factorization_leaves_shared_variables_as_they_were():
    state = esat.shared(np.eye(SIZE), name="state")
    program = esat.compile(esat.Graph([M], [], updates={state: cholesky(state + M)}))
    for _ in range(direct.CALLS + 2):
        program(np.eye(SIZE))
    before = state.get_value()
    with pytest.raises(LinearAlgebraError):
        program(-9.0 * np.eye(SIZE))
    np.testing.assert_array_equal(state.get_value(), before)
