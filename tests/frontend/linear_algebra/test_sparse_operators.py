"""Python's operators and methods on sparse Variables: SciPy's sparse arrays have the same."""

import operator

import numpy as np
import pytest
import scipy.sparse

import esat
from esat import sparse
from esat.errors import GraphError, ShapeError

RNG = np.random.default_rng(3)
ROWS, COLUMNS = 5, 4


def stored(rows, columns, format="csr", dtype="float64", density=0.4):
    values = np.rint(9 * RNG.standard_normal((rows, columns))) * (RNG.random((rows, columns)) < density)
    values[1] = 0  # an empty row
    return scipy.sparse.csr_array(values.astype(dtype)).asformat(format)


def compiled(inputs, result, mode="fast_run"):
    return esat.compile(esat.Graph(list(inputs), [result]), mode=mode)


def check(function, inputs, values):
    """The same function of Variables and of SciPy's and NumPy's values, in type, dtype and elements."""
    result = function(*inputs)
    with np.errstate(all="ignore"):
        wanted = function(*values)
    for mode in ("fast_run", "fast_compile"):
        found = compiled(inputs, result, mode)(*values)
        assert scipy.sparse.issparse(found) == scipy.sparse.issparse(wanted)
        dense = [value.toarray() if scipy.sparse.issparse(value) else value for value in (found, wanted)]
        assert dense[0].dtype == dense[1].dtype
        np.testing.assert_allclose(*dense, rtol=1e-6)


OF_TWO = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "matmul": lambda left, right: left @ right.T, "dot": lambda left, right: left.dot(right.T),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.parametrize("formats", [("csr", "csr"), ("csc", "csc"), ("csr", "csc"), ("csc", "csr")])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_two_sparse_matrices_give_a_sparse_one(name, formats, dtype) -> None:
    inputs = [
        sparse.SparseType(format, dtype).make_variable(letter)
        for format, letter in zip(formats, "xy", strict=True)
    ]
    check(OF_TWO[name], inputs, [stored(ROWS, COLUMNS, format, dtype) for format in formats])


WITH_DENSE = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "matmul": lambda left, right: left @ right.T,
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_DENSE)
@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_sparse_matrix_meets_a_dense_one_on_either_side(name, format, dtype, swapped) -> None:
    inputs = [sparse.SparseType(format, dtype).make_variable("x"), esat.matrix("y", dtype)]
    # Columns of a Fortran-ordered array are as far apart as its rows: neither order is assumed.
    values = [
        stored(ROWS, COLUMNS, format, dtype),
        np.asfortranarray(RNG.standard_normal((ROWS, COLUMNS)), dtype),
    ]
    if swapped:
        inputs, values = inputs[::-1], values[::-1]
    check(WITH_DENSE[name], inputs, values)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_vectors_and_numbers(format) -> None:
    x, v = sparse.SparseType(format, "float64").make_variable("x"), esat.vector("v")
    value = stored(ROWS, COLUMNS, format)
    check(lambda x, v: x @ v, [x, v], [value, RNG.standard_normal(COLUMNS)])
    check(lambda v, x: v @ x, [v, x], [RNG.standard_normal(ROWS), value])
    check(lambda x, v: x * v, [x, v], [value, RNG.standard_normal(COLUMNS)])
    for function in (
        lambda x: 2 * x, lambda x: x * 3, lambda x: x / 4, lambda x: -x, abs,
        lambda x: x**2, lambda x: x**3.0, lambda x: x.T, lambda x: x.transpose(), lambda x: x.sum(),
        lambda x: x.sum(0), lambda x: x.sum(axis=-1), lambda x: x.astype("float32"), np.abs,
    ):  # fmt: skip
        check(function, [x], [value])


def test_division_by_what_is_dense_leaves_what_is_not_stored() -> None:
    x, y = sparse.csr_matrix("x"), esat.matrix("y")
    value, divisor = stored(ROWS, COLUMNS), RNG.integers(0, 3, (ROWS, COLUMNS)).astype("float64")
    with np.errstate(all="ignore"):
        wanted = np.where(value.toarray() != 0, value.toarray() / divisor, 0)
    np.testing.assert_array_equal(compiled([x, y], x / y)(value, divisor).toarray(), wanted)
    by_columns = compiled([x, y], x / y[0])(value, divisor + 1).toarray()
    np.testing.assert_array_equal(by_columns, value.toarray() / (divisor[0] + 1))


def test_empty_matrices() -> None:
    x, y = sparse.csr_matrix("x"), esat.matrix("y")
    for shape in ((0, 3), (3, 0), (0, 0)):
        value, dense = scipy.sparse.csr_array(shape), np.ones(shape)
        check(lambda x, y: x @ y.T, [x, y], [value, dense])
        check(lambda x, y: x * y, [x, y], [value, dense])
        check(lambda x, y: x - y, [x, y], [value, dense])


def test_arrays_and_sparse_matrices_of_scipys_are_operands_too() -> None:
    x, y = sparse.csr_matrix("x"), esat.matrix("y")
    value, other = stored(ROWS, COLUMNS), stored(ROWS, COLUMNS)
    dense = RNG.standard_normal((ROWS, COLUMNS))
    check(lambda x: dense + x, [x], [value])
    check(lambda x: dense.T @ x, [x], [value])
    check(lambda x: dense * x, [x], [value])
    check(lambda x: x * other, [x], [value])
    check(lambda x: other - x, [x], [value])
    check(lambda y: y @ other, [y], [dense.T])
    check(lambda y: other + y, [y], [dense])


def test_a_sign_that_changes_nothing() -> None:
    x, value = sparse.csr_matrix("x"), stored(ROWS, COLUMNS)
    np.testing.assert_array_equal(compiled([x], +x)(value).toarray(), value.toarray())


def test_what_the_type_tells() -> None:
    x = sparse.csc_matrix("x", "float32")
    assert (x.dtype, x.ndim) == ("float32", 2)
    np.testing.assert_array_equal(compiled([x], x.shape)(stored(ROWS, COLUMNS, "csc", "float32")), (5, 4))


def test_gradients_flow_through_operators() -> None:
    x, u = sparse.csr_matrix("x"), esat.matrix("u")
    value, factor = stored(ROWS, COLUMNS), RNG.standard_normal((COLUMNS, 3))
    cost = esat.sum((x @ u) ** 2) + esat.sum((2 * x * u[:, 0]).sum(1) ** 2)
    found = compiled([x, u], esat.grad(cost, u))(value, factor)
    dense = value.toarray()
    wanted = 2 * dense.T @ dense @ factor
    wanted[:, 0] += 8 * dense.T @ (dense @ factor[:, 0])
    np.testing.assert_allclose(found, wanted)


def test_the_low_rank_gradient_written_with_operators_never_makes_the_matrix_dense() -> None:
    x, u, v = sparse.csr_matrix("x"), esat.matrix("u"), esat.matrix("v")
    function = compiled([x, u, v], u @ (v.T @ v) - x @ v + 0.1 * u)
    value, first, second = (
        stored(ROWS, COLUMNS),
        RNG.standard_normal((ROWS, 2)),
        RNG.standard_normal((COLUMNS, 2)),
    )
    wanted = (first @ second.T - value.toarray()) @ second + 0.1 * first
    np.testing.assert_allclose(function(value, first, second), wanted)
    ops = [node.op.name for step in function.steps for node in step.nodes]
    assert "usmm_shifted_product" in ops
    assert "dense_from_sparse" not in ops


REFUSED = {
    "add": lambda x: x + 1, "sub": lambda x: 1 - x, "div": lambda x: 2 / x, "pow": lambda x: x**0,
    "gt": lambda x: x > 0, "floor_div": lambda x: x // 2, "getitem": lambda x: x[0],
    "sum": lambda x: x.sum(keepdims=True), "mean": lambda x: x.mean(), "exp": np.exp,
    "transpose": lambda x: x.transpose(1, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_sparse_must_be_asked_for_and_the_line_is_named(name) -> None:
    line = REFUSED[name].__code__.co_firstlineno if name != "exp" else None
    with pytest.raises(GraphError, match=rf"^{name}\(csr|^{name}\(int, csr") as caught:
        REFUSED[name](sparse.csr_matrix("x"))
    assert "dense_from_sparse" in str(caught.value)
    where = "test_sparse_operators.py" + ("" if line is None else f":{line}")
    assert where in str(caught.value)


def test_a_quotient_of_sparse_matrices_is_refused() -> None:
    x = sparse.csr_matrix("x")
    with pytest.raises(GraphError, match=r"^div\(csr\(float64\), csr\(float64\)\)"):
        x / x


def test_sizes_that_do_not_fit_are_refused_while_building() -> None:
    x, y = sparse.csr_matrix("x", shape=(3, 4)), esat.matrix("y", shape=(3, 4))
    with pytest.raises(ShapeError):
        x @ y
    with pytest.raises(ShapeError):
        x + sparse.csr_matrix("z", shape=(4, 3))
