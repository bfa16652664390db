"""What matrix functions refuse, when the graph is built and when it runs."""

import numpy as np
import pytest

import esat
from esat import linalg
from esat.errors import AxisError, DtypeError, LinearAlgebraError, ParameterError, ShapeError
from esat.graph.op import Family
from esat.graph.registry import op_named

SQUARE = (linalg.inv, linalg.det, linalg.slogdet, linalg.cholesky, linalg.eigh, linalg.eigvalsh, linalg.expm)


@pytest.mark.parametrize("function", SQUARE, ids=lambda function: function.__name__)
def test_matrices_must_be_square(function):
    with pytest.raises(ShapeError, match=r"3 rows and 2 columns is not square"):
        function(esat.matrix(shape=(3, 2)))
    with pytest.raises(ShapeError, match="takes matrices"):
        function(esat.vector())
    x = esat.matrix("x")
    with pytest.raises(ShapeError, match=r"test_errors.py"):
        esat.evaluate(function(x), {x: np.ones((3, 2))})


def test_singular_and_indefinite_matrices():
    x = esat.matrix("x")
    singular = np.ones((2, 2))
    for output in (
        linalg.inv(x),
        linalg.solve(x, np.ones(2)),
        linalg.cholesky(x - 3.0),
        linalg.solve_triangular(x - 1.0, np.ones(2)),
    ):
        with pytest.raises(LinearAlgebraError, match=r"float64 of shape \(2, 2\).*\n  at .*test_errors.py"):
            esat.evaluate(output, {x: singular})
    assert issubclass(LinearAlgebraError, np.linalg.LinAlgError)
    with pytest.raises(LinearAlgebraError, match="converge"):
        esat.evaluate(linalg.svdvals(x), {x: np.full((2, 2), np.nan)})


def test_systems_must_fit():
    with pytest.raises(ShapeError, match="3 equations do not fit right sides of 2 rows"):
        linalg.solve(esat.matrix(shape=(3, 3)), esat.matrix(shape=(2, 2)))
    with pytest.raises(ShapeError, match="do not match"):
        linalg.solve(esat.tensor(shape=(2, 3, 3)), esat.tensor(shape=(4, 3, 1)))
    x, b = esat.matrix("x"), esat.matrix("b")
    for solve in (linalg.solve, linalg.solve_triangular, lambda x, b: linalg.cho_solve((x, True), b)):
        with pytest.raises(ShapeError):
            esat.evaluate(solve(x, b), {x: np.eye(3), b: np.ones((2, 1))})


def test_dtypes_and_options():
    with pytest.raises(DtypeError, match="float16"):
        linalg.inv(esat.matrix(dtype="float16"))
    x = esat.matrix("x")
    for build in (
        lambda: linalg.qr(x, "raw"),
        lambda: linalg.eigh(x, "X"),
        lambda: linalg.norm(x, "max"),
        lambda: linalg.norm(x, "fro", 0),
        lambda: linalg.solve_triangular(x, x, trans="X"),
        lambda: linalg.pinv(x, 0.1, rtol=0.1),
        lambda: linalg.matrix_rank(x, 0.1, rtol=0.1),
    ):
        with pytest.raises(ParameterError):
            build()
    with pytest.raises(DtypeError):
        linalg.matrix_power(x, 0.5)
    with pytest.raises(AxisError):
        linalg.norm(esat.tensor3(), 2)
    for build in (
        lambda: linalg.lstsq(esat.vector(), x),
        lambda: linalg.multi_dot([x]),
        linalg.block_diag,
        lambda: linalg.block_diag(esat.tensor3()),
    ):
        with pytest.raises(ShapeError):
            build()


def test_ops_are_library_calls_and_have_costs():
    for name in ("solve", "inv", "det", "slogdet", "cholesky", "expm"):
        op = op_named(name)
        assert op.family is Family.LIBRARY
        shapes = [(5, 100, 100)] * 2
        operands = shapes if name == "solve" else shapes[:1]
        small = op.work([(10, 10)] * len(operands), [(10, 10)], [8] * (len(operands) + 1))
        large = op.work(operands, [(5, 100, 100)], [8] * (len(operands) + 1))
        assert large.flops == pytest.approx(5000 * small.flops)
        assert small.calls == 1


def test_text_names_the_form():
    x = esat.matrix("x")
    assert str(linalg.solve_triangular(x, x, "T", True, True).owner.op) == (
        "solve_triangular{lower, transpose, unit_diagonal}"
    )
    assert str(linalg.qr(x)[0].owner) == "qr{reduced}(x)"
    assert linalg.inv(x).owner.op == linalg.inv(esat.matrix()).owner.op
    assert linalg.cholesky(x).owner.op != linalg.cholesky(x, upper=True).owner.op
