"""Sparse ops against SciPy and dense NumPy, with gradients by dense operands and stored values."""

import numpy as np
import pytest
import scipy.sparse

import esat
from esat import sparse
from esat.errors import AxisError, DtypeError, GradientError, ShapeError
from esat.graph.algorithms.folding import fold
from esat.graph.op import Family
from esat.graph.sparse_type import SparseType
from esat.ops.sparse.passes import (
    SPARSE_BILINEAR,
    SQUARES_AND_BILINEAR,
    SQUARES_AND_QUADRATIC,
    USMM_PRODUCT,
    USMM_SHIFTED_PRODUCT,
)
from esat.ops.sparse.record import places
from esat.ops.sparse.sampling import LEAST_PLACES
from esat.ops.sparse.structure import VALUES_AT

RNG = np.random.default_rng(8)
DTYPES = ("float32", "float64", "complex128", "int32", "bool")
formats = pytest.mark.parametrize("format", ["csr", "csc"])


def array(*shape, dtype="float64", density=0.5):
    values = RNG.standard_normal(shape) * 3 * (RNG.random(shape) < density)
    if dtype.startswith("complex"):
        values = values * (1 + 0.5j)
    return values.astype(dtype)


def compressed(dense, format="csr"):
    return scipy.sparse.csr_array(dense) if format == "csr" else scipy.sparse.csc_array(dense)


def same(output, expected, values=None, sparse_result=False):
    """Fail unless the graph gives the dense array, as its type says."""
    result = esat.evaluate(output, values)
    assert scipy.sparse.issparse(result) == sparse_result == isinstance(output.type, SparseType)
    if sparse_result:
        assert result.format == output.type.format
        assert result.has_canonical_format
        assert output.type.filter(result) is result
        result = result.toarray()
    expected = np.asarray(expected)
    assert result.dtype == expected.dtype == np.dtype(output.type.dtype)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def of_values(matrix):
    """A function from stored values to the matrix, for differentiation by them."""
    return lambda values: sparse.with_values(matrix, values)


@formats
@pytest.mark.parametrize("dtype", DTYPES)
def test_values(format, dtype):
    dense, other = array(4, 3, dtype=dtype), array(4, 3, dtype=dtype)
    right, left = array(3, 2, dtype=dtype, density=1), array(2, 4, dtype=dtype, density=1)
    x = SparseType(format, dtype)("x")
    y = SparseType("csr", dtype)("y")
    given = {x: compressed(dense, format), y: compressed(other)}
    same(sparse.dense_from_sparse(x), dense, given)
    same(sparse.transpose(x), dense.T, given, True)
    same(sparse.to_format(x, "csc"), dense, given, True)
    same(sparse.to_format(x, "csr"), dense, given, True)
    same(sparse.dot(x, right), dense @ right, given)
    same(sparse.dot(x, right[:, 0]), dense @ right[:, 0], given)
    same(sparse.dot(left, x), left @ dense, given)
    same(sparse.dot(left[0], x), left[0] @ dense, given)
    same(sparse.dot(x, sparse.transpose(y)), dense @ other.T, given, True)
    same(sparse.add(x, y), dense + other, given, True)
    same(sparse.add(x, other), dense + other, given)
    same(sparse.mul(x, y), dense * other, given, True)
    for factor in (other, other[0], other[:, :1], np.array(2, dtype)):
        same(sparse.mul(factor, x), dense * factor, given, True)
    same(sparse.rows_scaled(x, other[:, 0]), dense * other[:, :1], given, True)
    same(sparse.columns_scaled(x, other[0]), dense * other[0], given, True)
    if dtype != "bool":
        same(sparse.sub(x, y), dense - other, given, True)
        same(sparse.sub(other, x), other - dense, given)
        same(sparse.neg(x), -dense, given, True)
        for axis in (0, 1, -1):
            same(sparse.sum(x, axis), dense.sum(axis, dtype=dtype), given)
    same(sparse.sum(x), dense.sum(), given)


@formats
def test_parts(format):
    dense = array(3, 4)
    matrix = compressed(dense, format)
    x = SparseType(format, "float64")("x")
    values, indices, pointers, shape = sparse.csm_properties(x)
    for part, expected in zip(
        (values, indices, pointers, shape),
        (matrix.data, matrix.indices, matrix.indptr, matrix.shape),
        strict=True,
    ):
        assert esat.evaluate(part, {x: matrix}).tolist() == list(expected)
    same(sparse.csm(values, indices, pointers, shape, format), dense, {x: matrix}, True)
    same(sparse.csm(values, indices, pointers, (3, 4), format), dense, {x: matrix}, True)
    assert sparse.csm(values, indices, pointers, (3, 4), format).type.shape == (3, 4)
    from_dense = sparse.csr_from_dense if format == "csr" else sparse.csc_from_dense
    same(from_dense(dense), dense, None, True)
    assert esat.evaluate(from_dense(dense)).nnz == np.count_nonzero(dense)
    same(sparse.structured(esat.sinh, matrix), np.sinh(dense), None, True)
    same(sparse.structured(lambda v: v > 0, matrix), dense > 0, None, True)


@formats
def test_products_at_chosen_places(format):
    pattern, left, right = array(4, 3), array(4, 70, density=1), array(70, 3, density=1)
    same(
        sparse.sampled_dot(left, right, compressed(pattern, format)),
        pattern * (left @ right),
        None,
        True,
    )
    x, y, z = array(4, 3), array(3, 2), array(4, 2)
    same(sparse.usmm(0.5, compressed(x, format), y, z), 0.5 * x @ y + z)
    same(sparse.usmm(np.float32(2), compressed(x.astype("float32")), y, z), 2 * x.astype("float32") @ y + z)
    total = np.sum(z * (x @ y))
    operands = (sparse.constant(compressed(x, format)), esat.constant(y), esat.constant(z))
    same(SPARSE_BILINEAR(*operands), total)
    same(SQUARES_AND_BILINEAR(esat.constant(-2.0), *operands), np.sum(x**2) - 2 * total)
    square = array(2, 2, density=1)
    same(
        SQUARES_AND_QUADRATIC(esat.constant(-2.0), *operands, esat.constant(square)),
        np.sum(x**2) - 2 * total + np.sum(z * (z @ square)),
    )
    operands = (esat.constant(-2.0), *operands, esat.constant(square))
    same(USMM_PRODUCT(*operands), -2 * (x @ y) + z @ square)
    same(USMM_SHIFTED_PRODUCT(*operands, esat.constant(0.5)), -2 * (x @ y) + z @ square + 0.5 * z)


@formats
def test_gradients(format):
    matrix, other = compressed(array(4, 3), format), compressed(array(4, 3))
    values, make = matrix.data, of_values(matrix)
    right, left = array(3, 2, density=1), array(2, 4, density=1)
    esat.verify_grad(lambda v: sparse.dense_from_sparse(make(v)), [values])
    esat.verify_grad(lambda v, d: sparse.dot(make(v), d), [values, right])
    esat.verify_grad(lambda v, d: sparse.dot(d, make(v)), [values, left])
    esat.verify_grad(lambda v: sparse.stored_values(sparse.transpose(make(v))) ** 2, [values])
    for target in ("csr", "csc"):
        esat.verify_grad(lambda v, t=target: sparse.stored_values(sparse.to_format(make(v), t)), [values])

    def dense(matrix):
        return sparse.dense_from_sparse(matrix)

    remade = of_values(other)
    two = [values, other.data]
    esat.verify_grad(lambda v, w: dense(sparse.dot(sparse.transpose(make(v)), remade(w))), two)
    esat.verify_grad(lambda v, w: dense(sparse.add(make(v), remade(w))), two)
    esat.verify_grad(lambda v, w: dense(sparse.sub(make(v), remade(w))) ** 2, two)
    esat.verify_grad(lambda v, w: dense(sparse.mul(make(v), remade(w))), two)
    esat.verify_grad(lambda v, w: sparse.dot(make(v), right) * dense(remade(w)).sum(), two)
    for factor in (array(4, 3), array(3), array(4, 1), np.array(2.0)):
        esat.verify_grad(lambda v, d: dense(sparse.mul(make(v), d)), [values, factor])
    for axis in (None, 0, 1):
        esat.verify_grad(lambda v, a=axis: sparse.sum(make(v), a) ** 2, [values])
    esat.verify_grad(lambda v: dense(sparse.structured(esat.exp, make(v))), [values])
    esat.verify_grad(
        lambda a, b, v: dense(sparse.sampled_dot(a, b, make(v))), [array(4, 2), array(2, 3), values]
    )
    esat.verify_grad(
        lambda a, v, y, z: sparse.usmm(a, make(v), y, z), [np.array(0.5), values, right, array(4, 2)]
    )
    sums = [values, right, array(4, 2)]
    esat.verify_grad(lambda v, y, z: SPARSE_BILINEAR(make(v), y, z), sums)
    esat.verify_grad(lambda a, v, y, z: SQUARES_AND_BILINEAR(a, make(v), y, z), [np.array(0.5), *sums])
    square = array(2, 2, density=1)
    esat.verify_grad(
        lambda a, v, y, z, s: SQUARES_AND_QUADRATIC(a, make(v), y, z, s), [np.array(0.5), *sums, square]
    )
    esat.verify_grad(lambda a, v, y, z, s: USMM_PRODUCT(a, make(v), y, z, s), [np.array(0.5), *sums, square])
    esat.verify_grad(
        lambda a, v, y, z, s, b: USMM_SHIFTED_PRODUCT(a, make(v), y, z, s, b),
        [np.array(0.5), *sums, square, np.array(0.3)],
    )
    esat.verify_grad(lambda d: dense(sparse.csr_from_dense(d)) ** 2, [array(3, 2, density=1)])
    esat.verify_grad(lambda v, d: sparse.dot(make(v), d), [values * (1 + 1j), right * (1 - 2j)])
    parts = [esat.constant(part.astype("int64")) for part in (matrix.indices, matrix.indptr)]
    esat.verify_grad(lambda v: dense(sparse.csm(v, *parts, (4, 3), format)) ** 2, [values])


def test_gradients_do_not_forget_places_where_values_cancel():
    ones = compressed(np.ones((1, 2)))
    esat.verify_grad(
        lambda v, w: sparse.dense_from_sparse(
            sparse.add(sparse.with_values(ones, v), sparse.with_values(ones, w))
        ),
        [np.ones(2), -np.ones(2)],
    )
    column = compressed(np.ones((2, 1)))
    product = lambda v, w: sparse.dot(sparse.with_values(ones, v), sparse.with_values(column, w))
    esat.verify_grad(
        lambda v, w: sparse.dense_from_sparse(product(v, w)), [np.ones(2), np.array([1.0, -1.0])]
    )
    assert esat.evaluate(product(np.ones(2), np.array([1.0, -1.0]))).nnz == 1


def test_gradient_by_a_sparse_input():
    x, d = sparse.csr_matrix("x"), esat.matrix("d")
    cost = (sparse.dot(x, d) ** 2).sum()
    by_x, by_d = esat.grad(cost, [x, d])
    dense, right = array(4, 3), array(3, 2)
    given = {x: compressed(dense), d: right}
    expected = 2 * (dense @ right) @ right.T
    np.testing.assert_allclose(esat.evaluate(by_x, given), expected[dense != 0])
    np.testing.assert_allclose(esat.evaluate(by_d, given), 2 * dense.T @ dense @ right)
    same(sparse.with_values(x, by_x), np.where(dense != 0, expected, 0), given, True)
    zero = esat.grad(d.sum(), x, disconnected="zero")
    assert esat.evaluate(zero, given).tolist() == [0] * np.count_nonzero(dense)
    with pytest.raises(GradientError, match="dtype int64, which has no derivatives"):
        esat.grad(cost, sparse.csr_matrix(dtype="int64"))


def test_empty_and_single_places():
    for shape in ((0, 3), (3, 0), (1, 1), (3, 3)):
        dense = np.zeros(shape)
        for format in ("csr", "csc"):
            matrix = compressed(dense, format)
            same(sparse.add(matrix, matrix), dense, None, True)
            same(sparse.mul(matrix, np.ones(shape)), dense, None, True)
            same(sparse.mul(matrix, compressed(np.ones(shape))), dense, None, True)
            same(sparse.dot(matrix, np.ones((shape[1], 2))), dense @ np.ones((shape[1], 2)))
            same(sparse.sum(matrix, 0), dense.sum(0))
            same(
                sparse.sampled_dot(np.ones((shape[0], 0)), np.ones((0, shape[1])), matrix), dense, None, True
            )


def test_stored_values_are_read_in_place_and_returned_as_a_copy():
    x = sparse.csr_matrix("x")
    values = sparse.stored_values(x)
    matrix = scipy.sparse.random_array((30, 20), density=0.3, format="csr", rng=np.random.default_rng(0))
    kept = matrix.data.copy()
    returned, doubled = esat.compile(esat.Graph([x], [values, values * 2]))(matrix)
    assert not np.shares_memory(returned, matrix.data)
    np.testing.assert_array_equal(returned, kept)
    np.testing.assert_array_equal(doubled, 2 * kept)
    np.testing.assert_array_equal(matrix.data, kept)
    unaligned = np.empty(kept.nbytes + 1, np.uint8)[1:].view(kept.dtype)
    unaligned[:] = kept
    matrix.data = unaligned
    (found,) = sparse.stored_values(x).owner.op.perform([matrix])
    assert found.flags.aligned
    np.testing.assert_array_equal(found, kept)


def test_values_are_made_canonical_and_arguments_stay_as_they_are():
    repeated = scipy.sparse.csr_array(([1.0, 2.0, 3.0], [2, 0, 2], [0, 3]), shape=(1, 3))
    x = sparse.csr_matrix("x")
    assert esat.evaluate(sparse.stored_values(x), {x: repeated}).tolist() == [2, 4]
    assert repeated.nnz == 3
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.coo_array, scipy.sparse.csc_matrix):
        same(sparse.dense_from_sparse(x), np.eye(2), {x: kind(np.eye(2))})
    same(sparse.dense_from_sparse(x), np.eye(2), {x: compressed(np.eye(2, dtype="float32"))})


def test_constants_and_shared_variables():
    matrix = compressed(array(3, 4))
    fixed = sparse.constant(matrix)
    assert fixed.type == SparseType("csr", "float64", (3, 4))
    assert str(fixed) == "<constant csr(float64, shape=(3, 4))>"
    with pytest.raises(ValueError, match="read-only"):
        fixed.data.data[0] = 1
    w = sparse.shared(matrix, name="w")
    y = sparse.dot(w, np.ones(4))
    before = esat.evaluate(y)
    matrix.data[:] = 0
    np.testing.assert_array_equal(esat.evaluate(y), before)
    w.set_value(matrix)
    assert not esat.evaluate(y).any()
    assert sparse.shared(matrix, shape=(3, 4)).type.shape == (3, 4)
    node = sparse.dot(fixed, np.ones(4)).owner.inputs[0].owner
    assert node.op.family is Family.SPARSE
    assert fold(node, node.inputs) is None


def test_graphs_with_sparse_variables():
    x, d = sparse.csr_matrix("x"), esat.matrix("d")
    w = sparse.shared(compressed(np.eye(3)), name="w")
    new = sparse.mul(w, 2.0)
    graph = esat.Graph([x, d], sparse.dot(sparse.add(x, w), d), updates={w: new}).function_graph()
    assert len(graph.clone()) == len(graph)
    text = esat.debugprint(graph, file="str")
    assert "sparse_add <csr(float64)>" in text
    assert "w <csr(float64)>" in text
    graph.validate()
    with pytest.raises(esat.GraphError, match="types differ"):
        graph.replace(graph.inputs[0], d)


def test_errors():
    x = sparse.csr_matrix("x", shape=(3, 4))
    for build in (
        lambda: sparse.dot(x, esat.matrix(shape=(3, 3))),
        lambda: sparse.dot(x, x),
        lambda: sparse.add(x, sparse.transpose(x)),
        lambda: sparse.mul(x, np.ones((4, 3))),
        lambda: sparse.usmm(1.0, x, np.ones((4, 2)), np.ones((4, 2))),
        lambda: SPARSE_BILINEAR(x, *map(esat.constant, (np.ones((4, 2)), np.ones((4, 2))))),
        lambda: SPARSE_BILINEAR(x, *map(esat.constant, (np.ones((3, 2)), np.ones((3, 2))))),
        lambda: sparse.sampled_dot(np.ones((3, 2)), np.ones((3, 4)), x),
        lambda: sparse.csr_from_dense(esat.vector()),
        lambda: sparse.with_values(x, np.ones((2, 2))),
    ):
        with pytest.raises(ShapeError):
            build()
    for build in (
        lambda: sparse.dot(esat.matrix(), esat.matrix()),
        lambda: sparse.csr_matrix(dtype="float16"),
        lambda: SPARSE_BILINEAR(sparse.csr_matrix(dtype="int64"), *map(esat.constant, ([[1]], [[1]]))),
        lambda: sparse.constant(np.eye(2)),
        lambda: SparseType("coo", "float64"),
        lambda: x.type.filter(np.eye(3)),
        lambda: sparse.csr_matrix(dtype="int32").type.filter(compressed(np.eye(2))),
    ):
        with pytest.raises(DtypeError):
            build()
    with pytest.raises(AxisError):
        sparse.sum(x, 2)
    with pytest.raises(ShapeError):
        x.type.filter(compressed(np.eye(3)))
    y = sparse.csr_matrix("y")
    for output, value in (
        (sparse.dot(y, np.ones((3, 2))), np.ones((2, 2))),
        (sparse.add(y, sparse.constant(compressed(np.eye(3)))), np.ones((2, 2))),
        (sparse.mul(y, np.ones((4, 4))), np.ones((4, 3))),
        (sparse.with_values(y, np.ones(3)), np.ones((2, 2))),
        (sparse.csm(np.ones(2), [1, 0], [0, 2], (1, 2)), None),
        (sparse.csm(np.ones(2), [0, 5], [0, 2], (1, 2)), None),
    ):
        with pytest.raises(ShapeError, match=r"\n  at .*test_sparse\.py"):
            esat.evaluate(output, None if value is None else {y: compressed(value)})


@pytest.mark.parametrize("formats", ["csr csr", "csr csc", "csc csr", "csc csc"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_at_many_places(formats, dtype):
    """So many that they are found by a compiled merge, not by search."""
    shape = (90, 180)
    pattern, source = (
        compressed(array(*shape, dtype=dtype, density=density), format)
        for density, format in zip((0.7, 0.6), formats.split(), strict=True)
    )
    assert pattern.nnz + source.nnz >= LEAST_PLACES
    x, y = SparseType(pattern.format, dtype)("x"), SparseType(source.format, dtype)("y")
    rows, columns = places(pattern)
    same(VALUES_AT(x, y), source.toarray()[rows, columns], {x: pattern, y: source})
    nothing = compressed(np.zeros(shape, dtype), source.format)
    same(VALUES_AT(x, y), np.zeros(pattern.nnz, dtype), {x: pattern, y: nothing})


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_sizes_of_what_comes_from_sparse_matrices_alone(mode: str) -> None:
    matrix = esat.sparse.csr_matrix("matrix")
    x = esat.matrix("x")
    product, values = esat.sparse.dot(matrix, x), esat.sparse.stored_values(matrix)
    outputs = [product - esat.mean(product, axis=0), esat.mean(values), esat.zeros_like(product)]
    function = esat.compile(esat.Graph([matrix, x], outputs), mode)
    for rows, columns in ((5, 4), (3, 7)):
        given = scipy.sparse.csr_array(np.arange(float(rows * columns)).reshape(rows, columns) % 3)
        dense = np.linspace(0.0, 1.0, columns * 2).reshape(columns, 2)
        centred, mean, zeros = function(given, dense)
        wanted = given @ dense
        np.testing.assert_allclose(centred, wanted - wanted.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(mean, given.data.mean())
        np.testing.assert_array_equal(zeros, np.zeros_like(wanted))
