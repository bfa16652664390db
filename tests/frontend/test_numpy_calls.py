"""NumPy's functions and operators of arrays, given Variables."""

import operator

import numpy as np
import pytest
from oracle import agree
from scipy import special

import esat
from esat.errors import CallError, DtypeError

X = np.array([[0.5, -1.25, 2.0], [3.0, 0.25, -0.5]])
N = np.array([[5, 3, 2], [7, 1, 12]])
UFUNCS = sorted({getattr(np, name).__name__ for name in dir(np) if isinstance(getattr(np, name), np.ufunc)})
MISSING = ["frexp", "isnat", "ldexp", "spacing"]
MATRICES = ["matmul", "matvec", "vecdot", "vecmat"]


@pytest.mark.parametrize("name", [name for name in UFUNCS if name not in (*MISSING, *MATRICES)])
def test_ufuncs_are_the_functions_of_their_names(name):
    ufunc = getattr(np, name)
    takes_floats = any(loop.startswith("d" * ufunc.nin) for loop in ufunc.types)
    operands = [np.abs(X) / 4 if takes_floats else N, np.abs(X[::-1]) + 1 if takes_floats else N[::-1]]
    agree(ufunc, ufunc, *operands[: ufunc.nin])
    if ufunc.nin == 2:
        agree(lambda x: ufunc(operands[0], x), lambda x: ufunc(operands[0], x), operands[1])
        agree(lambda x: ufunc(x, operands[1]), lambda x: ufunc(x, operands[1]), operands[0])


@pytest.mark.parametrize("name", MATRICES)
def test_products_of_matrices(name):
    ufunc = getattr(np, name, None)
    if ufunc is None:
        assert name in ("matvec", "vecmat"), "NumPy 2.1 has none"
        return
    shapes = {
        "matmul": ((2, 3), (3, 4)),
        "matvec": ((2, 3), (3,)),
        "vecdot": ((3,), (3,)),
        "vecmat": ((2,), (2, 3)),
    }
    agree(ufunc, ufunc, *(np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape) for shape in shapes[name]))


ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
COMPARING = ("lt", "le", "gt", "ge", "eq", "ne")
BITS = ("and_", "or_", "xor", "lshift", "rshift")
OPERATORS = {name: getattr(operator, name) for name in (*ARITHMETIC, *COMPARING, *BITS)}


@pytest.mark.parametrize("name", [*OPERATORS, "divmod"])
def test_an_array_or_a_scalar_of_numpy_on_the_left(name):
    function = OPERATORS.get(name, divmod)
    dtypes = (
        ("int8", "int64", "uint8")
        if name in ("and_", "or_", "xor", "lshift", "rshift")
        else ("int8", "float32")
    )
    for dtype in dtypes:
        left, right = np.array([[5, 3], [2, 7]], dtype), np.array([[1, 3], [2, 2]], "int16")
        agree(lambda x, left=left: function(left, x), lambda x, left=left: function(left, x), right)
        if name != "matmul":
            agree(
                lambda x, left=left: function(left[0, 0], x),
                lambda x, left=left: function(left[0, 0], x),
                right,
            )


FUNCTIONS = {
    "sum": lambda x: [np.sum(x), np.sum(x, axis=0), np.sum(x, 1, keepdims=True)],
    "mean and var": lambda x: [np.mean(x, 0), np.var(x, axis=1, ddof=1)],
    "where": lambda x: [np.where(x > 0, x, 0.0)],
    "concatenate": lambda x: [np.concatenate([x, X]), np.stack([x, x], axis=-1), np.vstack((X, x))],
    "shapes": lambda x: [np.transpose(x), np.reshape(x, (3, 2)), np.ravel(x), np.squeeze(x[:1], axis=0)],
    "like": lambda x: [np.zeros_like(x), np.ones_like(x, dtype="int8"), np.full_like(x, 3)],
    "order": lambda x: [np.sort(x), np.argmax(x, axis=1), np.cumsum(x), np.clip(x, 0, 1)],
    "products": lambda x: [
        np.dot(x, X.T),
        np.einsum("ij,ij->i", x, x),
        np.tensordot(x, X),
        np.outer(x[0], x[1]),
    ],
    "linear algebra": lambda x: [np.linalg.norm(x), np.linalg.det(x @ x.T), np.trace(x)],
    "options": lambda x: [np.einsum("ij,kj->ik", x, x, optimize=True), np.clip(x, a_min=0, a_max=1)],
    "sizes": lambda x: [np.size(x), np.size(x, 1), np.size(x, axis=-2)],
    "nothing for arrays": lambda x: [np.isclose(x, x), np.nan_to_num(x), np.round(x, 1), np.diff(x)],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_functions_are_those_of_their_names(name):
    agree(FUNCTIONS[name], FUNCTIONS[name], X)


def test_functions_of_scipy():
    agree(special.erf, special.erf, X)
    agree(lambda x: special.xlogy(np.abs(X), x), lambda x: special.xlogy(np.abs(X), x), np.abs(X))


x, y = esat.vector("x"), esat.vector("y")
own = np.frompyfunc(lambda a: a, 1, 1)
REFUSED = {
    r"numpy\.exp\(x, out=\.\.\.\): an array cannot hold a Variable": lambda: np.exp(x, out=np.zeros(3)),
    r"numpy\.add\(float64 of shape \(3,\), x, out=\.\.\.\)": lambda: operator.iadd(np.zeros(3), x),
    r"numpy\.add\(x, 1, where=\.\.\.\): Variables take no where": lambda: np.add(
        x, 1, where=np.ones(3, bool)
    ),
    r"numpy\.exp\(x, dtype=\.\.\.\): Variables take no dtype": lambda: np.exp(x, dtype="float32"),
    r"numpy\.add\.reduce\(x\): .*; use esat\.sum": lambda: np.add.reduce(x),
    r"numpy\.ldexp\(x, 3\): .*; esat has no ldexp": lambda: np.ldexp(x, 3),
    r"numpy\.trim_zeros\(x\): .*; esat has no trim_zeros": lambda: np.trim_zeros(x),
    r"numpy\.extract\(gt\.0, x\): .*; esat has no extract": lambda: np.extract(x > 0, x),
    r"this one is unknown here": lambda: own(x),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_only_arrays_can_do_is_named(message):
    with pytest.raises(DtypeError, match=message):
        REFUSED[message]()


def test_parameters_that_are_lacking_are_named():
    lacks = r"numpy\.sum\(x, out=\.\.\.\): esat's sum: .*'out'; it takes \(a.*, axis"
    with pytest.raises(CallError, match=lacks):
        np.sum(x, out=np.ones(()))
    with pytest.raises(CallError, match=r"numpy\.concatenate\(\[x, y\], out=\.\.\.\): .*'out'"):
        np.concatenate([x, y], out=np.zeros(6))


def test_what_is_missing_is_missing():
    assert [name for name in UFUNCS if not callable(getattr(esat, name, None))] == MISSING
