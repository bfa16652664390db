"""Each local optimizer of the table on examples: what is left, and that values stay as they are."""

import time
from collections import Counter

import numpy as np
import pytest

import esat
from esat import sparse
from esat.classic import EquilibriumOptimizer, MergeOptimizer
from esat.classic.rewriting import LOCALS
from esat.graph import FunctionGraph
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.registry import op_named
from esat.ops.arrays.join import Split
from esat.ops.control import SpecifyShape
from esat.ops.index.basic import subtensor
from esat.ops.inference.vectors import make_vector, shape_vector
from esat.ops.sparse.structure import SparseFromDense

BY_NAME = {local.optimizer.name: local.optimizer for local in LOCALS}
ROWS, COLUMNS = 5, 4

ASSERT = esat.assert_
block_diag = esat.linalg.block_diag

x, y = esat.matrix("x"), esat.matrix("y")
v, w = esat.vector("v"), esat.vector("w")
s = esat.scalar("s")
n = esat.scalar("n", dtype="int64")
labels = esat.lvector("labels")
known_labels = esat.tensor("known_labels", dtype="int64", shape=(ROWS,))
known = esat.tensor("known", shape=(ROWS, COLUMNS))
square = esat.tensor("square", shape=(3, 3))
INPUTS = [x, y, v, w, s, n, labels, known_labels, known, square]
VALUES = {
    x: np.random.default_rng(0).normal(size=(ROWS, COLUMNS)),
    y: np.random.default_rng(1).normal(size=(ROWS, COLUMNS)),
    v: np.random.default_rng(2).normal(size=COLUMNS),
    w: np.random.default_rng(3).normal(size=COLUMNS),
    s: np.array(1.7),
    n: np.array(2),
    labels: np.array([3, 0, 2, 1, 3]),
    known_labels: np.array([3, 0, 2, 1, 3]),
    known: np.random.default_rng(4).normal(size=(ROWS, COLUMNS)),
    square: np.eye(3) * 3 + np.random.default_rng(5).normal(size=(3, 3)),
}
rows = esat.arange(ROWS)
zeros = esat.zeros((ROWS, COLUMNS))
filled = esat.full((n, COLUMNS), s)
blank = esat.inc_subtensor(esat.zeros_like(x)[rows, labels], x[:, 1])
every = esat.arange(x.shape[0])
upper = esat.linalg.cholesky(square @ square.T, upper=True)
every_v, first = esat.arange(esat.diag(v).shape[0]), np.arange(3)
mask, several = x > y, y[:, 0] > 0


def fill(shape, value):
    return op_named("fill")(shape, value)


def written(array, *parts):
    for index, value in parts:
        array = esat.set_subtensor(array[index], value)
    return array


def in_blocks(first, second):
    """A matrix of two blocks on its diagonal, of joined rows."""
    right, below = (
        esat.zeros((first.shape[0], second.shape[1])),
        esat.zeros((second.shape[0], first.shape[1])),
    )
    return esat.block([[first, right], [below, second]])


# The optimizer's name, the expression, and the text of what is left ("" to check by values and change only).
CASES = [
    ("local_subtensor_lift", esat.exp(x)[0], "exp(subtensor{0,:}(x))"),
    ("local_subtensor_lift", (x * v)[1:, n], "mul(subtensor{1:,?}(x, n), dimshuffle{x}(subtensor{?}(v, n)))"),
    ("local_subtensor_lift", (x + v)[::-1, 1:3], ""),
    ("local_subtensor_lift", x.T[1, 2:], "subtensor{2:,1}(x)"),
    ("local_subtensor_lift", esat.softmax(x, axis=1)[2], "softmax{0}(subtensor{2,:}(x))"),
    ("local_subtensor_lift", esat.log_softmax(x, axis=1)[::2], "log_softmax{1}(subtensor{::2,:}(x))"),
    ("local_subtensor_of_reduction", x.sum(axis=1)[1:3], "sum{1}(subtensor{1:3,:}(x))"),
    ("local_subtensor_of_reduction", x.max(axis=0)[2], "max{0}(subtensor{:,2}(x))"),
    ("local_subtensor_of_reduction", esat.sum(x, axis=0, keepdims=True)[0, 1:], "sum{0}(subtensor{:,1:}(x))"),
    ("local_subtensor_of_reduction", esat.argmin(x, axis=0)[-1], "argmin{0}(subtensor{:,-1}(x))"),
    ("local_reduction_of_reversed", esat.sum(x[::-1], axis=0), "sum{0}(x)"),
    ("local_reduction_of_reversed", esat.max(x[::-1, ::-1]), "max{0,1}(x)"),
    ("local_subtensor_of_dot", (x @ y.T)[0], ""),
    ("local_subtensor_of_dot", (x @ y.T)[1:, -1], ""),
    ("local_subtensor_of_dot", (x @ y.T)[n, n], ""),
    ("local_subtensor_of_alloc", filled[1], "alloc(subtensor{0,:}(dimshuffle{x,x}(s)), 4)"),
    ("local_subtensor_of_alloc", esat.full((5, n), s)[1:3, :], ""),
    ("local_subtensor_of_join", esat.concatenate([known, known * 2.0], axis=0)[6], ""),
    ("local_subtensor_of_join", esat.concatenate([known, known * 2.0], axis=0)[-6], "subtensor{4,:}(known)"),
    ("local_subtensor_of_join", esat.concatenate([known, known * 2.0], axis=0)[1:3],
     "subtensor{1:3:1,:}(known)"),
    ("local_subtensor_of_join", esat.concatenate([known, known * 2.0], axis=0)[3:7], ""),
    ("local_subtensor_of_join", esat.concatenate([x, y], axis=1)[2],
     "join{0}(subtensor{2,:}(x), subtensor{2,:}(y))"),
    ("local_subtensor_make_vector", subtensor(shape_vector(x), 1), "shape_i{1}(x)"),
    ("local_subtensor_make_vector", subtensor(make_vector([s, s * 2.0, s + 1.0]), slice(None, None, -2)), ""),
    ("local_useless_subtensor", x[:, 0 : x.shape[1]] * 2.0, "mul(x, dimshuffle{x,x}(2.0))"),
    ("local_subtensor_merge", x[1:][2], "subtensor{3,:}(x)"),
    ("local_subtensor_merge", x[1:-1][1:-1], "subtensor{2:-2:1,:}(x)"),
    ("local_subtensor_merge", x[::-1][::-1], "x"),
    ("local_subtensor_merge", x[::-1][2], "subtensor{-3,:}(x)"),
    ("local_subtensor_merge", x[::-1][-1], "subtensor{0,:}(x)"),
    ("local_subtensor_merge", x[1][2], "subtensor{1,2}(x)"),
    ("local_subtensor_merge", x[n][n], "subtensor{?,?}(x, n, n)"),
    ("local_subtensor_merge", x[1::2][:1], "subtensor{1:3:2,:}(x)"),
    ("local_subtensor_merge", known[1:4][::-1], ""),
    ("local_subtensor_merge", known[4:1:-1][1:], ""),
    ("local_subtensor_merge", known[::-2][-1], "subtensor{0,:}(known)"),
    ("local_IncSubtensor_serialize", esat.inc_subtensor(zeros[:2], s) + esat.inc_subtensor(zeros[1:], v), ""),
    ("local_IncSubtensor_serialize", esat.inc_subtensor(zeros[rows, labels], s) + known, ""),
    ("local_subtensor_inc_subtensor", esat.set_subtensor(x[1:], y[1:])[1:], "subtensor{1:,:}(y)"),
    ("local_subtensor_inc_subtensor", esat.inc_subtensor(x[n], v)[n], "add(subtensor{?,:}(x, n), v)"),
    ("local_subtensor_inc_subtensor", esat.set_subtensor(x[1:], v)[1:], ""),
    ("local_write_to_whole", esat.set_subtensor(x[:], y), "y"),
    ("local_write_to_whole", esat.set_subtensor(x[:], v), "fill(x, dimshuffle{x,0}(v))"),
    ("local_write_to_whole", esat.inc_subtensor(x[:], v), "add(x, dimshuffle{x,0}(v))"),
    ("local_useless_inc_subtensor", esat.inc_subtensor(x[1:], 0.0) * 2.0, "mul(x, dimshuffle{x,x}(2.0))"),
    ("local_useless_inc_subtensor", esat.set_subtensor(x[1:], x[1:]) * 2.0, ""),
    ("local_setsubtensor_of_setsubtensor", esat.set_subtensor(esat.inc_subtensor(x[0], v)[0], w),
     "set_subtensor{0,:}(x, w)"),
    ("local_setsubtensor_of_setsubtensor", esat.inc_subtensor(esat.set_subtensor(x[0], v)[0], w),
     "set_subtensor{0,:}(x, add(v, w))"),
    ("local_setsubtensor_of_setsubtensor", esat.inc_subtensor(esat.inc_subtensor(x[0], v)[0], w),
     "inc_subtensor{0,:}(x, add(v, w))"),
    ("local_fill_shape", fill(esat.sin(x) * 2.0, s), "fill(x, dimshuffle{x,x}(s))"),
    ("local_useless_alloc", op_named("alloc")(x, x.shape[0], x.shape[1]) * 2.0,
     "mul(x, dimshuffle{x,x}(2.0))"),
    ("local_elemwise_alloc", esat.full((ROWS, COLUMNS), s) * known, "mul(dimshuffle{x,x}(s), known)"),
    ("local_elemwise_alloc", esat.exp(filled), "alloc(exp(dimshuffle{x,x}(s)), n, 4)"),
    ("local_reduce_of_filled", filled.sum(), ""),
    ("local_reduce_of_filled", filled.sum(axis=0), ""),
    ("local_reduce_of_filled", esat.prod(filled, axis=1), ""),
    ("local_reduce_of_filled", esat.full((3, n), s).max(axis=0), ""),
    ("local_reduce_of_filled", esat.sum(fill(x, s)), ""),
    ("local_0_dot_x", x.T @ zeros, ""),
    ("local_join_of_one", esat.concatenate([x]) * 2.0, "mul(x, dimshuffle{x,x}(2.0))"),
    ("local_join_of_joins", esat.concatenate([esat.concatenate([x, y]), x]), "join{0}(x, y, x)"),
    ("local_join_make_vector", esat.concatenate([make_vector([s, s * 2.0]), make_vector([s])]), ""),
    ("local_reduce_join", esat.concatenate([x, y]).sum(), "add(sum{0,1}(x), sum{0,1}(y))"),
    ("local_reduce_join", esat.concatenate([x, y], axis=1).max(axis=0), "join{0}(max{0}(x), max{0}(y))"),
    ("local_reduce_join", esat.concatenate([known, known], axis=0).max(axis=0), ""),
    ("local_reshape_dimshuffle", esat.reshape(esat.expand_dims(x, 1), (4, 5)), "reshape{4,5}(x, [4, 5])"),
    ("local_useless_reshape", esat.reshape(x, esat.shape(x)) * 2.0, "mul(x, dimshuffle{x,x}(2.0))"),
    ("local_reshape_to_dimshuffle", esat.reshape(v, (1, -1)), "dimshuffle{x,0}(v)"),
    ("local_reshape_lift", esat.reshape(esat.exp(x), (4, 5)), ""),
    ("local_shape_of_reshape", esat.shape(esat.reshape(x, (x.shape[1], x.shape[0])))[0] * 2, ""),
    ("local_log_of_chosen", esat.log(esat.softmax(x, axis=1)[rows, labels]), ""),
    ("local_log_of_chosen", esat.log(esat.sigmoid(v)[labels]), ""),
    ("local_log_through_views", esat.log(2.0 * esat.softmax(x, axis=1)[rows, labels]), ""),
    ("local_log_through_views", esat.log2(esat.sigmoid(v)[::-1]), ""),
    ("local_log_of_join", esat.log(esat.concatenate([esat.softmax(x, axis=1), esat.softmax(y, axis=1)])), ""),
    ("local_subtract_increments", blank - x * y, ""),
    ("local_subtract_increments", x - blank, ""),
    ("local_increments_times", y * blank, ""),
    ("local_increments_times", esat.inc_subtensor(zeros[1:3], v) * known, ""),
    ("local_sum_of_labeled", blank.sum(axis=1), ""),
    ("local_sum_of_labeled", esat.sum(blank * x, axis=1, keepdims=True), ""),
    ("local_sum_of_labeled", esat.inc_subtensor(zeros[[3, 1, 3], [0, 2, 1]], s).sum(axis=1), ""),
    ("local_sum_of_labeled", esat.inc_subtensor(esat.zeros_like(x)[every, labels], s).sum(axis=1),
     "fill(arange(0, shape_i{0}(x), 1), dimshuffle{x}(s))"),
    ("local_advanced_subtensor_lift", esat.exp(x * y)[rows, labels], ""),
    ("local_sum_of_increments", esat.sum(esat.inc_subtensor(zeros[rows, labels], s)), ""),
    ("local_sum_of_increments", esat.sum(esat.inc_subtensor(zeros[1:3], v)), ""),
    ("local_remove_useless_assert", ASSERT(x, True, s > 0.0, s > 0.0) * 2.0, ""),
    ("local_remove_all_assert", ASSERT(x, s > 0.0) * 2.0, "mul(x, dimshuffle{x,x}(2.0))"),
    ("local_inverse_to_solve", esat.linalg.inv(square) @ square.T, ""),
    ("local_inverse_to_solve", square.T @ esat.linalg.inv(square), ""),
    ("local_diagonal_lift", esat.diagonal(esat.exp(x * 2.0) + y), ""),
    ("local_diagonal_lift", esat.diagonal(x - y, -2), "sub(diagonal{-2}(x), diagonal{-2}(y))"),
    *(("local_diagonal_of_dot", esat.diagonal(x @ y.T, offset), "") for offset in (-2, 0, 1, 9)),
    ("local_diagonal_of_dot", esat.trace(x[:, :2] @ y[:2]), ""),
    ("local_dimshuffle_alloc", filled.T, "alloc(dimshuffle{1,0}(dimshuffle{x,x}(s)), 4, n)"),
    ("local_dimshuffle_alloc", op_named("alloc")(v, n, COLUMNS).dimshuffle(1, "x", 0),
     "alloc(dimshuffle{1,x,0}(dimshuffle{x,0}(v)), 4, 1, n)"),
    ("local_dimshuffle_alloc", op_named("alloc")(s, 1, n).dimshuffle(1), ""),
    ("local_merge_alloc", op_named("alloc")(op_named("alloc")(s, 1, n), 3, n),
     "alloc(dimshuffle{x,x}(s), 3, n)"),
    ("local_join_of_alloc", esat.concatenate([filled, filled, filled]), ""),
    ("local_join_of_alloc", esat.concatenate([esat.full((n, 2), s), esat.full((n, 3), s)], axis=1), ""),
    ("local_useless_inc_subtensor_alloc", esat.set_subtensor(known[1:3], op_named("alloc")(v, 2, COLUMNS)),
     "set_subtensor{1:3:1,:}(known, dimshuffle{x,0}(v))"),
    ("local_useless_inc_subtensor_alloc", esat.inc_subtensor(known[2], op_named("alloc")(s, COLUMNS)),
     "inc_subtensor{2,:}(known, dimshuffle{x}(s))"),
    ("local_adv_idx_to_slice", known[[4, 2, 0]], "subtensor{4::-2,:}(known)"),
    ("local_adv_idx_to_slice", known[[-4, 2, 3]], "subtensor{1:4:1,:}(known)"),
    ("local_subtensor_of_adv_subtensor", x[labels][1:3], ""),
    ("local_subtensor_of_adv_subtensor", x[labels][::-2, 1], ""),
    ("local_advanced_subtensor_of_dot", (x @ y.T)[labels], ""),
    ("local_advanced_subtensor_of_dot", (x @ y.T)[labels, labels], ""),
    ("local_advanced_read_of_write_constant_indices",
     esat.set_subtensor(known[[3, 0, -1]], square @ known[:3])[[3, 0, -1]], ""),
    ("local_join_subtensors", esat.concatenate([x[:2], x[2:4], x[4:]]) * 2.0, "mul(x, dimshuffle{x,x}(2.0))"),
    ("local_join_subtensors", esat.concatenate([x[:, :-3], x[:, -3:-1], x[:, -1:]], axis=1) * 2.0, ""),
    ("local_ifelse_simplify", esat.ifelse(True, x, y) * 2.0, "mul(x, dimshuffle{x,x}(2.0))"),
    ("local_ifelse_simplify", esat.ifelse(False, x, y) * 2.0, "mul(y, dimshuffle{x,x}(2.0))"),
    ("local_ifelse_simplify", esat.ifelse(s > 0.0, x, x) * 2.0, "mul(x, dimshuffle{x,x}(2.0))"),
    ("local_useless_split", Split(1, 1)(x) * 2.0, "mul(x, dimshuffle{x,x}(2.0))"),
    ("local_sort_under_reduce", esat.sum(esat.sort(x, axis=1)), "sum{0,1}(x)"),
    ("local_sort_under_reduce", esat.max(esat.sort(x, axis=0), axis=0), "max{0}(x)"),
    ("local_sum_make_vector", esat.sum(make_vector([s, s * 2.0, s + 1.0])), ""),
    ("local_sum_make_vector", esat.max(make_vector([s, s * 2.0]), keepdims=True), ""),
    ("local_useless_dimshuffle_makevector", make_vector([s]).dimshuffle("x") * 2.0,
     "mul(dimshuffle{x}(s), dimshuffle{x}(2.0))"),
    ("local_useless_specify_shape", SpecifyShape((ROWS, None))(known) * 2.0,
     "mul(known, dimshuffle{x,x}(2.0))"),
    ("local_merge_consecutive_specify_shape", SpecifyShape((None, COLUMNS))(SpecifyShape((ROWS, None))(x)),
     "specify_shape{5,4}(x)"),
    ("local_dense_from_sparse_sparse_from_dense",
     sparse.dense_from_sparse(SparseFromDense("csr")(x)) * 2.0, "mul(x, dimshuffle{x,x}(2.0))"),
    ("local_kron_dot", esat.kron(x, y).T @ (esat.arange(25) * 0.5), ""),
    ("local_kron_dot", esat.kron(square, square) @ esat.reshape(square, (9, 1)), ""),
    ("local_kron_dot", esat.kron(square, square) @ (esat.arange(9)[:, None] * v[None, :]), ""),
    ("local_kron_dot", esat.reshape(square, (1, 9)) @ esat.kron(square, square), ""),
    ("local_linalg_of_kron", esat.linalg.det(esat.kron(square, known[:2, :2])), ""),
    ("local_kron_dot", esat.kron(square, known) @ esat.kron(square, known.T), ""),
    ("local_solve_kron", esat.linalg.inv(esat.kron(square, square + 1.0)), ""),
    ("local_solve_kron", esat.linalg.inv(esat.kron(x.T @ x, square)), ""),
    ("local_solve_kron", esat.linalg.solve(esat.kron(square, known[:2, :2]), esat.arange(6) * 0.5), ""),
    ("local_solve_kron", esat.linalg.solve(esat.kron(x.T @ x, square), esat.arange(12)[:, None] * v), ""),
    ("local_solve_kron", esat.linalg.cholesky(esat.kron(square @ square.T, square.T @ square)) + 1.0, ""),
    ("local_solve_kron", esat.linalg.cholesky(esat.kron(-(square @ square.T), -(x.T @ x))) + 1.0, ""),
    ("local_linalg_of_kron", esat.linalg.slogdet(esat.kron(square, known[:2, :2]))[1], ""),
    ("local_linalg_of_kron", esat.linalg.slogdet(esat.kron(square, -square))[0], ""),
    ("local_linalg_of_kron", esat.diagonal(esat.kron(square, known[:2, :2])), ""),
    ("local_kron_of_diagonal", esat.kron(esat.diag(v), esat.diag(w)) * 2.0, ""),
    ("local_adv_idx_to_diagonal", known[np.arange(COLUMNS), np.arange(COLUMNS)], ""),
    ("local_adv_idx_to_diagonal", esat.diag(v)[every_v, every_v], "diagonal{0}(diag{0}(v))"),
    ("local_diagonal_increment", esat.inc_subtensor(square[first, first], v[:3]), ""),
    ("local_diagonal_increment", esat.inc_subtensor((square.T @ square)[first, first], s), ""),
    ("local_spectrum_of_diagonal", esat.linalg.eigvalsh(esat.diag(v)), "sort{0}(diagonal{0}(diag{0}(v)))"),
    ("local_spectrum_of_diagonal", esat.linalg.svdvals(esat.diag(v)), ""),
    ("local_spectrum_of_diagonal", esat.linalg.eigh(esat.diag(v))[0], ""),
    ("local_spectrum_of_diagonal", abs(esat.linalg.eigh(esat.diag(v))[1]), ""),
    ("local_factor_of_triangular", esat.linalg.qr(upper)[1] + 1.0, ""),
    ("local_factor_of_triangular", esat.linalg.qr(upper, "complete")[0], ""),
    ("local_factor_of_triangular", esat.linalg.qr(upper, "r"), ""),
    ("local_factor_of_triangular", esat.concatenate(esat.linalg.lu(upper)), ""),
    ("local_part_of_decomposition", esat.linalg.svd(known, False)[0] * esat.linalg.svdvals(known), ""),
    ("local_part_of_decomposition", esat.linalg.eigh(square)[1] * esat.linalg.eigvalsh(square), ""),
    ("local_part_of_decomposition", esat.linalg.qr(known)[0] @ esat.linalg.qr(known, "r"), ""),
    ("local_cholesky_pullback", esat.grad((esat.linalg.cholesky(square @ square.T) ** 3).sum(), square), ""),
    ("local_linalg_of_number", esat.linalg.solve(known[:1, :1], v[None]), ""),
    ("local_linalg_of_number", esat.linalg.inv(x[:, :, None, None][:, :, :1, :1]), ""),
    ("local_linalg_of_number", esat.linalg.det(known[:, :1, None]), ""),
    ("local_linalg_of_stretched", esat.linalg.inv(square[None]), ""),
    ("local_linalg_of_stretched", esat.linalg.slogdet(square[None, None])[1], ""),
    ("local_linalg_of_stretched", esat.linalg.svdvals(esat.stack([known, known + 1.0])[:, None]), ""),
    ("local_linalg_of_stretched", esat.linalg.solve(square, x[:, :3, None] * v), ""),
    ("local_linalg_of_stretched", esat.linalg.solve_triangular(square[None], x[:, :3, None] * v), ""),
    ("local_linalg_of_stretched", esat.linalg.solve(square[None], esat.zeros((0, 3, n))), ""),
    ("local_selection_dot", esat.eye(COLUMNS)[labels] @ known.T,
     "advanced_subtensor{array,:}(dimshuffle{1,0}(known), labels)"),
    ("local_selection_dot", known @ esat.eye(COLUMNS)[labels].T, ""),
    ("local_selection_dot", esat.eye(COLUMNS)[known_labels].T @ known, ""),
    ("local_sum_of_selection", (known * esat.eye(COLUMNS)[known_labels]).sum(axis=1), ""),
    ("local_sum_of_selection", esat.sum(esat.eye(COLUMNS)[known_labels] * known, axis=1, keepdims=True), ""),
    ("local_set_to_inc_subtensor", esat.set_subtensor(x[1:], v + x[1:]),
     "inc_subtensor{1:,:}(x, dimshuffle{x,0}(v))"),
    ("local_useless_inc_subtensor", esat.set_subtensor(zeros[1:], 0.0) + 1.0, ""),
    ("local_elemwise_fill", esat.maximum(esat.full_like(x, s) * 2, y),
     "maximum(mul(dimshuffle{x,x}(s), dimshuffle{x,x}(2.0)), y)"),
    ("local_elemwise_fill", esat.exp(fill(x, s)), ""),
    ("local_elemwise_fill", esat.where(fill(x, s) > 0, y, x), ""),
    ("local_fuse_block_diag", block_diag(block_diag(x, square), y) * 2.0,
     "mul(block_diag(x, square, y), dimshuffle{x,x}(2.0))"),
    ("local_block_diag_dot", block_diag(x, y.T) @ block_diag(y.T, x), ""),
    ("local_block_diag_dot", block_diag(x, square) @ (esat.arange(7) * 0.5), ""),
    ("local_block_diag_dot", (esat.arange(8) * 0.5) @ block_diag(x, square), ""),
    ("local_linalg_of_block_diag", esat.linalg.det(block_diag(square, square.T, square + 1.0)), ""),
    ("local_linalg_of_block_diag", esat.linalg.slogdet(block_diag(square, -square))[0], ""),
    ("local_linalg_of_block_diag", esat.linalg.slogdet(block_diag(square, square + 1.0))[1], ""),
    ("local_solve_block_diag", esat.linalg.inv(block_diag(square, square + 1.0)), ""),
    ("local_solve_block_diag", esat.linalg.cholesky(block_diag(square @ square.T, x.T @ x)), ""),
    ("local_solve_block_diag", esat.linalg.solve(block_diag(square, square.T), esat.arange(6) * 0.5), ""),
    ("local_solve_block_diag",
     esat.linalg.solve(block_diag(square, square.T), esat.arange(6)[:, None] * v), ""),
    ("local_solve_block_diag", esat.linalg.inv(in_blocks(square, x.T @ x)), ""),
    ("local_block_diag_dot", in_blocks(x, y.T) @ esat.arange(9.0), ""),
    ("local_linalg_of_block_diag", esat.linalg.det(in_blocks(square, square.T)), ""),
    ("local_linalg_of_block_diag", esat.diagonal(block_diag(square, square + 1.0)),
     "join{0}(diagonal{0}(square), diagonal{0}(add(square, dimshuffle{x,x}(1.0))))"),
    ("local_writes_to_join", written(esat.zeros(4), (slice(0, 2), w[:2]), (slice(2, 4), w[:2] * 2)), ""),
    ("local_writes_to_join", written(esat.zeros(3), (2, s), (0, s * 2), (1, w[0])), ""),
    ("local_writes_to_join", written(known, (np.s_[:, 0], x[:, 1]), (np.s_[:, 1:4], x[:, 1:])), ""),
    ("local_writes_to_join", written(square, (slice(1, None), y[:2, :3]), (-3, v[:3])), ""),
    ("local_write_by_mask", esat.set_subtensor(x[mask], x[mask] - y[mask]), "switch(gt(x, y), sub(x, y), x)"),
    ("local_write_by_mask", esat.set_subtensor(x[mask], s * x[mask] ** 2), ""),
    ("local_write_by_mask", esat.set_subtensor(x[mask], s), ""),
    ("local_write_by_mask", esat.inc_subtensor(x[mask], y[mask]), ""),
    ("local_write_by_mask", esat.set_subtensor(x[several], esat.exp(y[several]) - v), ""),
    ("local_write_by_mask", esat.inc_subtensor(x[several], esat.expand_dims(y[:, 1][several], 1)), ""),
    ("local_write_by_mask", esat.set_subtensor(x[:, v > 0], -y[:, v > 0]), ""),
    ("local_reduce_by_mask", esat.exp(x[mask] - y[mask]).sum(), ""),
    ("local_reduce_by_mask", esat.prod(x[several] + v, axis=0), ""),
    ("local_reduce_by_mask", esat.sum(x[mask], keepdims=True), ""),
    ("local_reduce_by_mask", (x[:, v > 0] * y[:, v > 0]).sum(axis=(0, 1)), ""),
    ("local_reduce_by_mask", (x[several].T * 2).sum(axis=1), ""),
    ("local_reduce_by_mask", esat.any(x[mask] > 1), ""),
    ("local_reduce_by_mask", esat.all(x[mask] > -9), ""),
    ("local_count_by_mask", x[mask].shape[0], ""),
    ("local_count_by_mask", x[:, v > 0].shape[1] + 1, ""),
]  # fmt: skip


def given(output):
    """The inputs an output depends on, and their values; one that has no value here is made up."""
    inputs = [one for one in esat.graph.inputs_of([output]) if not isinstance(one, esat.graph.Constant)]
    return inputs, [VALUES.get(one, np.ones((2,) * one.tensor_type.ndim)) for one in inputs]


@pytest.mark.parametrize(("name", "output", "text"), CASES, ids=[name for name, _, _ in CASES])
def test_what_is_left(name, output, text):
    inputs, values = given(output)
    before = FunctionGraph(inputs, [output])
    after = before.clone()
    profile = EquilibriumOptimizer([MergeOptimizer(), BY_NAME[name]]).optimize(after)
    assert profile.applied[name] > 0, f"not applied to {before}"
    (expected,) = evaluate(before.outputs, dict(zip(before.inputs, values, strict=True)))
    (found,) = evaluate(after.outputs, dict(zip(after.inputs, values, strict=True)))
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=f"{before} -> {after}")
    if text:
        assert str(after) == f"[{text}]"


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "strict"])
def test_values_in_modes(mode):
    outputs = [output for _, output, _ in CASES]
    inputs = list(dict.fromkeys(one for output in outputs for one in given(output)[0]))
    values = {one: VALUES.get(one, np.ones((2,) * one.tensor_type.ndim)) for one in inputs}
    function = esat.compile(esat.Graph(inputs, outputs), mode)
    expected = esat.evaluate(outputs, values)
    for (name, output, _), found, wanted in zip(CASES, function(*values.values()), expected, strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), name
        np.testing.assert_allclose(found, wanted, rtol=1e-10, err_msg=f"{name}: {output}")


def test_joined_rows_that_are_no_blocks_on_the_diagonal():
    """Sizes of joined rows may fit where columns of blocks do not meet, and oblong factors are singular."""
    first, second = esat.zeros((2, 3)), esat.zeros((2, 1))
    shifted = esat.block([[square[:2, :2], first], [second, square[:2], square[:2, :1]]])
    outputs = [shifted @ esat.arange(5.0), esat.linalg.det(esat.kron(known[:2, :3], known[:3, :2]) + 0.0)]
    for mode in ("fast_run", "greedy"):
        program = esat.compile(esat.Graph([square, known], outputs), mode)
        wanted = esat.evaluate(outputs, {square: VALUES[square], known: VALUES[known]})
        for found, expected in zip(program(VALUES[square], VALUES[known]), wanted, strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-12)


def test_every_optimizer_has_a_case():
    assert Counter(name for name, _, _ in CASES).keys() == BY_NAME.keys()


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_diagonals_and_selections_that_do_not_fit_are_errors(mode):
    """What would be read or added elsewhere is compared first where types do not tell."""
    wide, tall = np.ones((2, 7)), np.ones((7, 2))
    cases = [
        (x + esat.diag(v), {x: np.ones((3, 3)), v: np.ones(2)}),
        (esat.eye(5)[labels] @ x, {labels: np.array([0, 1]), x: tall}),
        (x @ esat.eye(5)[labels].T, {labels: np.array([0, 1]), x: wide}),
        (esat.eye(5)[labels].T @ x, {labels: np.array([0, 1, 2]), x: wide}),
        ((esat.eye(5)[labels] * x).sum(axis=1), {labels: np.array([0, 1]), x: wide}),
        (esat.set_subtensor(esat.ones((n, 4))[labels], 1.0), {n: np.array(2), labels: np.array([5])}),
    ]
    for output, given_values in cases:
        function = esat.compile(esat.Graph(list(given_values), [output]), mode)
        with pytest.raises(esat.EsatError):
            function(*given_values.values())


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "o2"])
def test_a_diagonal_of_one_element_is_stretched(mode):
    one = esat.vector("one", shape=(1,))
    function = esat.compile(esat.Graph([square, one], square + esat.diag(one)), mode)
    np.testing.assert_array_equal(function(VALUES[square], np.array([2.0])), VALUES[square] + 2.0)


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_masks_that_do_not_fit_are_errors(mode):
    choice = esat.matrix("choice", dtype="bool")
    outputs = [esat.set_subtensor(x[choice], x[choice] * 2), x[choice].sum()]
    for output in outputs:
        function = esat.compile(esat.Graph([x, choice], [output]), mode)
        with pytest.raises(esat.EsatError):
            function(np.ones((3, 4)), np.ones((1, 4), bool))
        with pytest.raises(esat.EsatError):
            function(np.ones((1, 4)), np.ones((3, 4), bool))


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_what_a_mask_does_not_choose_raises_nothing(mode):
    powers, choice = esat.vector("powers", dtype="int64"), esat.vector("choice", dtype="bool")
    output = esat.set_subtensor(powers[choice], 2 ** powers[choice])
    function = esat.compile(esat.Graph([powers, choice], [output]), mode)
    assert function(np.array([3, -1]), np.array([True, False])).tolist() == [8, -1]


def test_masks_are_looked_for_among_few_ops_each_seen_once():
    value = x
    for _ in range(40):
        value = value * value + value
    node = value.sum().owner
    begin = time.process_time()
    for _ in range(400):
        assert not BY_NAME["local_reduce_by_mask"].transform(node)
    assert time.process_time() - begin < 1.0
