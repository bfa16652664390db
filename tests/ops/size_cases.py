"""Programs of every op, with what NumPy and SciPy give, and operands of extreme sizes for them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.special

import esat
from esat.frontend.scipy_functions import FUNCTIONS as SCIPYS
from esat.graph import FunctionGraph
from esat.ops.accumulate import AccumulateProduct
from esat.ops.annotations.gradients import WithGradient
from esat.ops.control import AFTER
from esat.ops.linalg.bands import TRIDIAGONAL_FACTORS, BandedSolve, TridiagonalFactorsSolve
from esat.ops.linalg.factor import CHOLESKY_PULLBACK
from esat.ops.linalg.functions import ORDER_OF_PIVOTS, PIVOTS_OF_ORDER
from esat.ops.linalg.inverse import COFACTORS, TriangularInverse
from esat.ops.linalg.normal import NORMAL_PRODUCT
from esat.ops.linalg.packed_factors import PACKED_LU, PackedSolve
from esat.ops.linalg.pivoted import PivotedQR
from esat.ops.linalg.row_blocks import RowBlocks
from esat.ops.linalg.rows_product import RowsProduct
from esat.ops.linalg.schur import SCHUR, SYLVESTER, TRIANGULAR_SYLVESTER, GeneralizedSchur
from esat.ops.linalg.solve import SemidefiniteSolve
from esat.ops.linalg.structured import STRUCTURED_PRODUCTS
from esat.ops.linalg.whitening import WHITEN
from esat.ops.sparse.passes import (
    SPARSE_BILINEAR,
    SQUARES_AND_BILINEAR,
    SQUARES_AND_QUADRATIC,
    USMM_PRODUCT,
    USMM_SHIFTED_PRODUCT,
)
from esat.ops.sparse.structure import DENSE_AT, VALUES_AT

MATRICES = [(0, 3), (3, 0), (0, 0), (1, 1), (1, 4), (2, 3)]
FILLED = [(1, 1), (1, 4), (3, 1), (2, 3)]
SQUARES = [(0, 0), (1, 1), (3, 3)]


@dataclass(frozen=True)
class Cases:
    """Programs of the same inputs.

    Attributes
    ----------
    inputs
        Makes the Variables.
    programs
        Name -> what to compute from Variables, and from arrays the same by NumPy and SciPy.
    calls
        Values of the inputs, one tuple a call.
    """

    inputs: Callable[[], list[Any]]
    programs: dict[str, tuple[Callable[..., Any], Callable[..., Any]]]
    calls: list[tuple[Any, ...]]


def numbers(shape, dtype="float64", seed=0):
    generator = np.random.default_rng(seed + sum(shape))
    values = generator.uniform(0.2, 0.8, shape) if dtype == "float64" else generator.integers(1, 7, shape)
    return np.asarray(values, dtype)


def regular(size, seed=0):
    """A square matrix far from singular."""
    return numbers((size, size), seed=seed) + size * np.eye(size)


def pulled_back(kept, cotangents):
    """A gradient that is pickled by name."""
    return cotangents


def both(function):
    """One function for Variables and arrays, with the namespace of each."""
    return (lambda *operands: function(esat, *operands), lambda *arrays: function(np, *arrays))


def over_axes(name, function=None, axes=(0, 1, None), of_esat=None):
    reference = function or getattr(np, name)
    own = of_esat or getattr(esat, name)
    return {
        f"{name} {axis}": (
            lambda x, axis=axis: own(x, axis=axis),
            lambda x, axis=axis: reference(x, axis=axis),
        )
        for axis in axes
    }


def log_of_sum(x, axis):
    return np.log(np.sum(np.exp(x), axis=axis))


def normalized(x, axis):
    return np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)


REDUCTIONS = {
    name: program
    for function in (
        "sum",
        "prod",
        "any",
        "all",
        "cumsum",
        "cumprod",
        "sort",
        "argsort",
        "mean",
        "var",
        "std",
    )
    for name, program in over_axes(function).items()
}
SOFTMAX = {
    **over_axes("logsumexp", log_of_sum),
    **over_axes("softmax", normalized),
    **over_axes("log_softmax", lambda x, axis: np.log(normalized(x, axis))),
    "cross entropy": (
        lambda x: -esat.mean(esat.log(esat.softmax(x, axis=1)) * 0.5),
        lambda x: -np.mean(np.log(normalized(x, 1)) * 0.5),
    ),
}
EXTREMA = {
    **{
        name: program
        for function in ("max", "min", "argmax", "argmin", "ptp")
        for name, program in over_axes(function).items()
    },
    "frequencies": both(lambda np, x: np.fft.fft(x, axis=0)),
}

VIEWS = {
    "first rows": both(lambda np, x: x[:1]),
    "backwards": both(lambda np, x: x[::-1, ::2]),
    "beyond": both(lambda np, x: x[5:, :-7]),
    "new axes": both(lambda np, x: x[None, ..., None]),
    "transposed": both(lambda np, x: x.T),
    "flat": both(lambda np, x: x.reshape((-1,))),
    "reshaped": both(lambda np, x: np.reshape(x, (x.shape[1], x.shape[0]))),
    "diagonal": both(lambda np, x: np.diagonal(x, offset=1)),
    "rows": both(lambda np, x: x.shape[0] + x.shape[1] * 2),
    "cast": (lambda x: x.astype("int8"), lambda x: x.astype("int8")),
    "specified": (
        lambda x: esat.specify_shape(esat.full((x.shape[0] * 0 + 2, x.shape[1]), 1.5), (2, None)),
        lambda x: np.full((2, x.shape[1]), 1.5),
    ),
    "equal parts": (
        lambda x: esat.split(esat.concatenate([x, x + 1]), 2)[1],
        lambda x: np.split(np.concatenate([x, x + 1]), 2)[1],
    ),
    "after": (lambda x: AFTER(x, x.sum()) * x, lambda x: x * x),
    "checked": (lambda x: esat.assert_(x, x.shape[0] < 9), lambda x: x),
    "flip": both(lambda np, x: np.flip(x, 0)),
    "roll": both(lambda np, x: np.roll(x, 1, axis=1)),
    "tril": both(lambda np, x: np.tril(x, -1)),
    "without gradient": (esat.stop_gradient, lambda x: x),
    "with a gradient": (lambda x: WithGradient(1, 1, pulled_back)(x, x), lambda x: x),
}

SAMPLES = {
    "searchsorted": both(lambda np, x: np.searchsorted(np.linspace(-1, 1, 4), x)),
    "sorted in nothing": both(lambda np, x: np.searchsorted(np.zeros(0), x, "right")),
    "convolve": both(lambda np, x: np.convolve(np.append(x, [1.0, 2.0]), [1.0, -1.0, 2.0])),
    "histogram": both(lambda np, x: np.histogram(x, 3, (-1, 1))[0]),
    "nansum": both(lambda np, x: np.nansum(x, axis=0)),
    "pad": both(lambda np, x: np.pad(x, ((1, 2), (0, 1)))),
}

JOINS = {
    "join rows": both(lambda np, x, y: np.concatenate([x, y, x])),
    "join columns": both(lambda np, x, y: np.concatenate([x, y], axis=1)),
    "stack": both(lambda np, x, y: np.stack([x, y], axis=1)),
    "split first": (lambda x, y: esat.split(x, [1], axis=1)[0], lambda x, y: np.split(x, [1], axis=1)[0]),
    "split rest": (lambda x, y: esat.split(x, [1], axis=1)[1], lambda x, y: np.split(x, [1], axis=1)[1]),
    "tile": both(lambda np, x, y: np.tile(x, (2, 0))),
    "tiled": both(lambda np, x, y: np.tile(x, (2, 1, 3))),
    "repeat": both(lambda np, x, y: np.repeat(x, 2, axis=1)),
    "repeat none": both(lambda np, x, y: np.repeat(x, 0)),
    "outer": both(lambda np, x, y: np.outer(x, y)),
    "kron": (esat.linalg.kron, np.kron),
    "product": both(lambda np, x, y: x @ y.T),
    "einsum": both(lambda np, x, y: np.einsum("ij,kj->ik", x, y)),
    "block_diag": (esat.linalg.block_diag, scipy.linalg.block_diag),
    "where": both(lambda np, x, y: np.where(x > y, x, 0.0)),
    "chosen": (
        lambda x, y: esat.ifelse(x.shape[0] > 1, esat.exp(x), y),
        lambda x, y: np.exp(x) if x.shape[0] > 1 else y,
    ),
    "pinv": (lambda x, y: esat.linalg.pinv(x), lambda x, y: np.linalg.pinv(x)),
    "gemm": (
        lambda x, y: AccumulateProduct()(esat.zeros((x.shape[0], y.shape[0])) + 1.0, 2.0, x, y.T, 3.0),
        lambda x, y: 3.0 + 2.0 * (x @ y.T),
    ),
    **{
        f"qr {part}": (
            lambda x, y, part=part: esat.linalg.qr(x)[part],
            lambda x, y, part=part: np.linalg.qr(x)[part],
        )
        for part in (0, 1)
    },
    "singular values": (
        lambda x, y: esat.linalg.svd(x, compute_uv=False),
        lambda x, y: np.linalg.svd(x, compute_uv=False),
    ),
    "svd": (
        lambda x, y: esat.linalg.svd(x, full_matrices=False)[1],
        lambda x, y: np.linalg.svd(x, full_matrices=False)[1],
    ),
}


def replaced(x, index, value, add=False):
    result = x.copy()
    if add:
        np.add.at(result, index, value)
    else:
        result[index] = value
    return result


INDEXED = {
    "rows": both(lambda np, x, i: x[i]),
    "columns": both(lambda np, x, i: x[:, i]),
    "pairs": both(lambda np, x, i: x[i, i]),
    "masked": both(lambda np, x, i: x[x > 0.5]),
    "take": both(lambda np, x, i: np.take(x, i)),
    "along": (
        lambda x, i: esat.take_along_axis(x, esat.argsort(x, axis=1), axis=1),
        lambda x, i: np.take_along_axis(x, np.argsort(x, axis=1), axis=1),
    ),
    "set part": (
        lambda x, i: esat.set_subtensor(x[1:, ::2], 3.0),
        lambda x, i: replaced(x, np.s_[1:, ::2], 3.0),
    ),
    "inc part": (lambda x, i: esat.inc_subtensor(x[:1], 3.0), lambda x, i: replaced(x, np.s_[:1], 3.0, True)),
    "set rows": (lambda x, i: esat.set_subtensor(x[i], 3.0), lambda x, i: replaced(x, i, 3.0)),
    "inc rows": (lambda x, i: esat.inc_subtensor(x[i], 3.0), lambda x, i: replaced(x, i, 3.0, True)),
    "set mask": (lambda x, i: esat.set_subtensor(x[x > 0.5], 0.0), lambda x, i: replaced(x, x > 0.5, 0.0)),
    "repeated": (
        lambda x, i: esat.repeat(esat.arange(i.shape[0]), i),
        lambda x, i: np.repeat(np.arange(i.shape[0]), i),
    ),
    "vector": (
        lambda x, i: esat.stack([i.shape[0], x.shape[0]]),
        lambda x, i: np.array([i.size, x.shape[0]]),
    ),
    "filled": (lambda x, i: esat.full((i.shape[0], 2), 1.5), lambda x, i: np.full((i.size, 2), 1.5)),
    "range": (lambda x, i: esat.arange(0, x.shape[0], 2), lambda x, i: np.arange(0, x.shape[0], 2)),
    "eye": (lambda x, i: esat.eye(x.shape[0], k=1), lambda x, i: np.eye(x.shape[0], k=1)),
    "diagonal": (lambda x, i: esat.diag(i), lambda x, i: np.diag(i)),
}


def by_matrix_of_factor(factor, cotangent):
    """Murray (2016), "Differentiation of the Cholesky decomposition", equation 10."""
    middle = np.tril(factor.T @ np.tril(cotangent))
    middle -= 0.5 * np.diag(np.diag(middle))
    inverse = np.linalg.inv(factor)
    full = inverse.T @ middle @ inverse
    return 0.5 * (full + full.T)


LIBRARY = {
    "inv": (lambda a, b: esat.linalg.inv(a), lambda a, b: np.linalg.inv(a)),
    "det": (lambda a, b: esat.linalg.det(a), lambda a, b: np.linalg.det(a)),
    "slogdet": (lambda a, b: esat.linalg.slogdet(a)[1], lambda a, b: np.linalg.slogdet(a)[1]),
    "cofactors": (lambda a, b: COFACTORS(a), lambda a, b: np.linalg.det(a) * np.linalg.inv(a).T),
    "solve": (esat.linalg.solve, np.linalg.solve),
    "triangular": (
        lambda a, b: esat.linalg.solve_triangular(a, b, lower=True),
        lambda a, b: np.linalg.solve(np.tril(a), b),
    ),
    "cholesky": (lambda a, b: esat.linalg.cholesky(a @ a.T), lambda a, b: np.linalg.cholesky(a @ a.T)),
    "cholesky or NaN": (
        lambda a, b: esat.linalg.cholesky(a @ a.T, on_error="nan"),
        lambda a, b: np.linalg.cholesky(a @ a.T),
    ),
    "cholesky's pullback": (
        lambda a, b: CHOLESKY_PULLBACK(esat.linalg.cholesky(a @ a.T), a),
        lambda a, b: by_matrix_of_factor(np.linalg.cholesky(a @ a.T), a),
    ),
    "cho_solve": (
        lambda a, b: esat.linalg.cho_solve((esat.linalg.cholesky(a @ a.T), True), b),
        lambda a, b: np.linalg.solve(a @ a.T, b),
    ),
    "eigenvalues": (lambda a, b: esat.linalg.eigvalsh(a @ a.T), lambda a, b: np.linalg.eigvalsh(a @ a.T)),
    "general eigenvalues": (
        lambda a, b: esat.sort(esat.abs(esat.linalg.eigvals(a))),
        lambda a, b: np.sort(np.abs(np.linalg.eigvals(a))),
    ),
    "general eigenvectors": (
        lambda a, b: esat.abs(esat.linalg.eig(a)[1]),
        lambda a, b: np.abs(np.linalg.eig(a)[1]),
    ),
    "eigenvectors": (lambda a, b: esat.linalg.eigh(a + a.T)[0], lambda a, b: np.linalg.eigh(a + a.T)[0]),
    "lu": (lambda a, b: esat.linalg.lu(a)[2], lambda a, b: scipy.linalg.lu(a)[2] if a.size else a),
    "expm": (lambda a, b: esat.linalg.expm(a), lambda a, b: scipy.linalg.expm(a) if a.size else a),
    "exchanges of rows": (
        lambda a, b: ORDER_OF_PIVOTS(PIVOTS_OF_ORDER(esat.argsort(esat.sum(a, axis=1)))),
        lambda a, b: np.argsort(a.sum(axis=1)),
    ),
    "schur": (
        lambda a, b: esat.abs(SCHUR(a)[0]),
        lambda a, b: np.abs(scipy.linalg.schur(a)[0]) if a.size else a,
    ),
    "two Schur forms": (
        lambda a, b: esat.abs(GeneralizedSchur(True, "lhp")(a, a @ a.T)[2]),
        lambda a, b: np.abs(scipy.linalg.ordqz(a, a @ a.T, "lhp", "complex")[2]) if a.size else np.zeros(0),
    ),
    "solve_sylvester": (
        lambda a, b: SYLVESTER(a @ a.T, a @ a.T + esat.eye(a.shape[0]), a),
        lambda a, b: scipy.linalg.solve_sylvester(a @ a.T, a @ a.T + np.eye(len(a)), a) if a.size else a,
    ),
    "sylvester of triangles": (
        lambda a, b: TRIANGULAR_SYLVESTER(esat.triu(a @ a.T), esat.triu(a @ a.T) + esat.eye(a.shape[0]), a),
        lambda a, b: (
            scipy.linalg.solve_sylvester(np.triu(a @ a.T), np.triu(a @ a.T) + np.eye(len(a)), a)
            if a.size
            else a
        ),
    ),
    "solve_banded": (
        lambda a, b: BandedSolve(0, 1)(esat.stack([a[:1].sum(0), a[:1].sum(0) + 9.0]), b),
        lambda a, b: np.linalg.solve(np.diag(a[:1].sum(0) + 9.0) + np.diag(a[:1].sum(0)[1:], 1), b),
    ),
    "tridiagonal factors": (
        lambda a, b: TridiagonalFactorsSolve()(
            TRIDIAGONAL_FACTORS(esat.stack([a[:1].sum(0), a[:1].sum(0) + 9.0, a[:1].sum(0)])), b
        ),
        lambda a, b: np.linalg.solve(
            np.diag(a[:1].sum(0) + 9.0) + np.diag(a[:1].sum(0)[1:], 1) + np.diag(a[:1].sum(0)[:-1], -1), b
        ),
    ),
    "pivoted qr": (
        lambda a, b: esat.abs(PivotedQR()(a)[1]),
        lambda a, b: np.abs(scipy.linalg.qr(a, pivoting=True)[1]) if a.size else a,
    ),
    "sqrtm": (
        lambda a, b: SCIPYS["scipy.linalg.sqrtm"](a @ a.T + esat.eye(a.shape[0])),
        lambda a, b: scipy.linalg.sqrtm(a @ a.T + np.eye(len(a))) if a.size else a,
    ),
    "logm": (
        lambda a, b: SCIPYS["scipy.linalg.logm"](a @ a.T + esat.eye(a.shape[0])),
        lambda a, b: scipy.linalg.logm(a @ a.T + np.eye(len(a))) if a.size else a,
    ),
    "trace": (lambda a, b: esat.trace(a), lambda a, b: np.trace(a)),
    "norm": (lambda a, b: esat.linalg.norm(a), lambda a, b: np.linalg.norm(a)),
    "power": (lambda a, b: esat.linalg.matrix_power(a, 3), lambda a, b: np.linalg.matrix_power(a, 3)),
    "assumed": (lambda a, b: esat.assume(a @ a.T, "symmetric") @ b, lambda a, b: a @ a.T @ b),
}

_DENSE = {
    "lower": np.tril,
    "upper": np.triu,
    "diagonal": lambda a: np.diag(np.diag(a)),
    "tridiagonal": lambda a: np.triu(np.tril(a, 1), -1),
    "symmetric": lambda a: a + a.T,
}


def structured_product(op):
    """A product with a matrix that has the structure, made from any square one."""
    if op.structure == "gram":
        return (lambda a, b: op(a, a.T), lambda a, b: a @ a.T)
    shape = _DENSE[op.structure]

    def sided(a, b):
        # A symmetric matrix is multiplied by a single column or row.
        other = b.sum(axis=1, keepdims=True) if op.structure == "symmetric" else b
        return (a, other) if op.side == "left" else (other.T, a)

    def own(a, b):
        rows, columns = esat.arange(a.shape[0])[:, None], esat.arange(a.shape[0])[None, :]
        kept = {
            "lower": columns <= rows,
            "upper": columns >= rows,
            "diagonal": esat.eq(columns, rows),
            "tridiagonal": abs(columns - rows) <= 1,
        }
        made = a + a.T if op.structure == "symmetric" else esat.where(kept[op.structure], a, 0.0)
        return op(*sided(made, b))

    return own, lambda a, b: np.matmul(*sided(shape(a), b))


LIBRARY |= {op.name: structured_product(op) for op in STRUCTURED_PRODUCTS}
LIBRARY["normal_matmul"] = (
    lambda a, b: NORMAL_PRODUCT(a, b.sum(axis=1, keepdims=True)),
    lambda a, b: a.T @ (a @ b.sum(axis=1, keepdims=True)),
)


def rows_product(a, b):
    products, others = esat.vector("products"), esat.vector("others")
    op = RowsProduct(FunctionGraph([products, others], [esat.tanh(products) - others], clone=False))
    return op(a, b.sum(axis=1, keepdims=True), a.sum(axis=1))


LIBRARY["rows_matmul"] = (
    rows_product,
    lambda a, b: a.T @ (np.tanh(a @ b.sum(axis=1, keepdims=True)) - a.sum(axis=1, keepdims=True)),
)


def row_blocks(a, b):
    x, w = esat.matrix("x"), esat.matrix("w")
    layers = esat.matmul(esat.tanh(esat.matmul(x, w)), esat.swapaxes(w, 0, 1))
    return RowBlocks(FunctionGraph([x, w], [layers], clone=False), leaves=1)(a, b)


LIBRARY["solve_semidefinite"] = (
    lambda a, b: SemidefiniteSolve()(a @ a.T, b),
    lambda a, b: np.linalg.solve(a @ a.T, b),
)
LIBRARY["packed_solve"] = (
    lambda a, b: PackedSolve(transpose=False)(PACKED_LU(a), b),
    np.linalg.solve,
)
LIBRARY["whiten"] = (
    lambda a, b: WHITEN(a @ a.T, b),
    lambda a, b: np.linalg.solve(np.linalg.cholesky(a @ a.T), b),
)
for _lower in (True, False):
    LIBRARY[f"inv_triangular, {'lower' if _lower else 'upper'}"] = (
        lambda a, b, lower=_lower: TriangularInverse(lower=lower)(a),
        lambda a, b, lower=_lower: np.linalg.inv(np.tril(a) if lower else np.triu(a)),
    )
LIBRARY["checkpoint"] = esat.checkpoint(lambda a, b: esat.tanh(a) @ b), lambda a, b: np.tanh(a) @ b
LIBRARY["row_blocks"] = row_blocks, lambda a, b: np.tanh(a @ b) @ b.T

SPARSE = {
    "stored": (lambda s, x: esat.sparse.stored_values(s), lambda s, x: s.data),
    "dense": (lambda s, x: esat.sparse.dense_from_sparse(s), lambda s, x: s.toarray()),
    "transposed": (lambda s, x: esat.sparse.transpose(s), lambda s, x: s.T.toarray()),
    "product": (lambda s, x: esat.sparse.dot(s, x.T), lambda s, x: s @ x.T),
    "sparse product": (
        lambda s, x: esat.sparse.dot(s, esat.sparse.transpose(s)),
        lambda s, x: (s @ s.T).toarray(),
    ),
    "sum 0": (lambda s, x: esat.sparse.sum(s, 0), lambda s, x: s.sum(axis=0)),
    "sum 1": (lambda s, x: esat.sparse.sum(s, 1), lambda s, x: s.sum(axis=1)),
    "sum": (lambda s, x: esat.sparse.sum(s), lambda s, x: s.sum()),
    "added": (lambda s, x: esat.sparse.add(s, esat.sparse.neg(s)), lambda s, x: (s - s).toarray()),
    "at": (DENSE_AT, lambda s, x: x[s.nonzero()]),
    "values at": (lambda s, x: VALUES_AT(s, s), lambda s, x: s.data),
    "times": (esat.sparse.mul, lambda s, x: s.toarray() * x),
    "from dense": (lambda s, x: esat.sparse.csr_from_dense(x), lambda s, x: x),
    "converted": (lambda s, x: esat.sparse.to_format(s, "csc"), lambda s, x: s.toarray()),
    "sampled": (
        lambda s, x: esat.sparse.sampled_dot(x, x.T @ x, s),
        lambda s, x: s.toarray() * (x @ (x.T @ x)),
    ),
    "bilinear": (lambda s, x: SPARSE_BILINEAR(s, x.T @ x, x), lambda s, x: np.sum(x * (s @ (x.T @ x)))),
    "squares and bilinear": (
        lambda s, x: SQUARES_AND_BILINEAR(esat.constant(0.5), s, x.T @ x, x),
        lambda s, x: np.sum(s.data**2) + 0.5 * np.sum(x * (s @ (x.T @ x))),
    ),
    "squares and quadratic": (
        lambda s, x: SQUARES_AND_QUADRATIC(esat.constant(0.5), s, x.T @ x, x, x.T @ x),
        lambda s, x: np.sum(s.data**2) + 0.5 * np.sum(x * (s @ (x.T @ x))) + np.sum(x * (x @ (x.T @ x))),
    ),
    "usmm and product": (
        lambda s, x: USMM_PRODUCT(esat.constant(0.5), s, x.T @ x, x, x.T @ x),
        lambda s, x: 0.5 * (s @ (x.T @ x)) + x @ (x.T @ x),
    ),
    "usmm and shifted product": (
        lambda s, x: USMM_SHIFTED_PRODUCT(esat.constant(0.5), s, x.T @ x, x, x.T @ x, esat.constant(0.25)),
        lambda s, x: 0.5 * (s @ (x.T @ x)) + x @ (x.T @ x) + 0.25 * x,
    ),
    "usmm": (lambda s, x: esat.sparse.usmm(2.0, s, x.T @ x, x), lambda s, x: 2.0 * (s @ (x.T @ x)) + x),
    "rebuilt": (
        lambda s, x: esat.sparse.csm(*esat.sparse.csm_properties(s)),
        lambda s, x: s.toarray(),
    ),
    "with values": (
        lambda s, x: esat.sparse.structured(esat.exp, s),
        lambda s, x: np.where(s.toarray() != 0, np.exp(s.toarray()), 0.0),
    ),
}


def sparse_numbers(shape):
    values = numbers(shape)
    return scipy.sparse.csr_array(np.where(values > 0.5, values, 0.0))


def _matrix():
    return [esat.matrix("x")]


def halved(x):
    """A loop with a condition, of sums of squares of a matrix."""
    return esat.while_loop(lambda v: (v**2).sum() > 0.3, lambda v: v / 2, x, max_steps=9)


def halved_by_python(x):
    while (x**2).sum() > 0.3:
        x = x / 2
    return x


def running(x, reverse=False):
    """A loop over the rows of a matrix."""
    step = lambda c, row: (np.tanh(c) + row, c * row)
    return esat.scan(step, esat.zeros((x.shape[1],)), x, reverse=reverse)


def running_by_python(x, reverse=False):
    c, rows = np.zeros(x.shape[1]), np.zeros(x.shape)
    for place in reversed(range(len(x))) if reverse else range(len(x)):
        rows[place] = c * x[place]
        c = np.tanh(c) + x[place]
    return c, rows


LOOPS = {
    "scan": (lambda x: running(x)[0], lambda x: running_by_python(x)[0]),
    "rows of a scan": (lambda x: running(x, True)[1], lambda x: running_by_python(x, True)[1]),
    "while_loop": (halved, halved_by_python),
}

CASES = {
    "loops": Cases(_matrix, LOOPS, [(numbers(shape),) for shape in MATRICES]),
    "reductions": Cases(_matrix, REDUCTIONS, [(numbers(shape),) for shape in MATRICES]),
    "softmax": Cases(_matrix, SOFTMAX, [(numbers(shape),) for shape in MATRICES]),
    "extrema": Cases(_matrix, EXTREMA, [(numbers(shape),) for shape in FILLED]),
    "views": Cases(_matrix, VIEWS, [(numbers(shape),) for shape in MATRICES]),
    "samples": Cases(_matrix, SAMPLES, [(numbers(shape),) for shape in MATRICES]),
    "reductions of integers": Cases(
        lambda: [esat.matrix("x", dtype="int8")],
        REDUCTIONS,
        [(numbers(shape, "int8"),) for shape in MATRICES],
    ),
    "joins and products": Cases(
        lambda: [esat.matrix("x"), esat.matrix("y")],
        JOINS,
        [(numbers(shape), numbers(shape, seed=1)) for shape in MATRICES],
    ),
    "indices": Cases(
        lambda: [esat.matrix("x"), esat.lvector("i")],
        INDEXED,
        [
            (numbers(shape), np.asarray(places, "int64"))
            for shape, places in (((1, 1), [0, 0]), ((2, 3), [1, 0, 1]), ((2, 3), []), ((1, 4), []))
        ],
    ),
    "linear algebra": Cases(
        lambda: [esat.matrix("a"), esat.matrix("b")],
        LIBRARY,
        [
            (regular(size), numbers((size, columns)))
            for size, columns in ((0, 0), (0, 2), (1, 0), (1, 1), (3, 0), (3, 2))
        ],
    ),
    "sparse": Cases(
        lambda: [esat.sparse.csr_matrix("s"), esat.matrix("x")],
        SPARSE,
        [(sparse_numbers(shape), numbers(shape)) for shape in MATRICES],
    ),
}
