"""Each scalar op: over dtypes, sizes and special values, with its gradient, and as part of others."""

import numpy as np
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise

from frontend.pytensor.peer import MODES, REFERENCE, compared, same, slopes, variable

RNG = np.random.default_rng(8)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 30.0, -30.0, 800.0, -800.0, np.inf, -np.inf, np.nan])

UNARY = {
    "abs": (pt.abs, -2, 2),
    "arccos": (pt.arccos, -0.9, 0.9),
    "arccosh": (pt.arccosh, 1.1, 4),
    "arcsin": (pt.arcsin, -0.9, 0.9),
    "arcsinh": (pt.arcsinh, -3, 3),
    "arctan": (pt.arctan, -3, 3),
    "arctanh": (pt.arctanh, -0.9, 0.9),
    "ceil": (pt.ceil, -3, 3),
    "cos": (pt.cos, -3, 3),
    "cosh": (pt.cosh, -3, 3),
    "erf": (pt.erf, -2, 2),
    "erfc": (pt.erfc, -2, 2),
    "erfcinv": (pt.erfcinv, 0.1, 1.9),
    "erfcx": (pt.erfcx, -2, 2),
    "erfinv": (pt.erfinv, -0.9, 0.9),
    "exp": (pt.exp, -2, 2),
    "exp2": (pt.exp2, -2, 2),
    "expm1": (pt.expm1, -2, 2),
    "floor": (pt.floor, -3, 3),
    "gamma": (pt.gamma, 0.2, 4),
    "gammaln": (pt.gammaln, 0.2, 9),
    "i0": (pt.i0, -2, 2),
    "i1": (pt.i1, -2, 2),
    "j0": (pt.j0, 0.1, 9),
    "j1": (pt.j1, 0.1, 9),
    "log": (pt.log, 0.1, 9),
    "log10": (pt.log10, 0.1, 9),
    "log1mexp": (pt.log1mexp, -4, -0.1),
    "log1p": (pt.log1p, -0.5, 9),
    "log2": (pt.log2, 0.1, 9),
    "neg": (pt.neg, -2, 2),
    "psi": (pt.psi, 0.2, 9),
    "reciprocal": (pt.reciprocal, 0.2, 9),
    "round": (pt.round, -3, 3),
    "round away": (lambda x: pt.round(x, mode="half_away_from_zero"), -3, 3),
    "sigmoid": (pt.sigmoid, -9, 9),
    "sign": (pt.sign, -2, 2),
    "sin": (pt.sin, -3, 3),
    "sinh": (pt.sinh, -3, 3),
    "softplus": (pt.softplus, -40, 40),
    "sqr": (pt.sqr, -3, 3),
    "sqrt": (pt.sqrt, 0.1, 9),
    "tan": (pt.tan, -1, 1),
    "tanh": (pt.tanh, -3, 3),
    "tri_gamma": (pt.tri_gamma, 0.2, 9),
    "trunc": (pt.trunc, -3, 3),
}
FOREIGN = {"i1": ("Elemwise{Ive}",), "j1": ("Elemwise{Jv}",)}
"""What PyTensor's gradients have that esat has no function for."""

BINARY = {
    "add": pt.add,
    "arctan2": pt.arctan2,
    "eq": pt.eq,
    "ge": pt.ge,
    "gt": pt.gt,
    "int_div": pt.int_div,
    "le": pt.le,
    "lt": pt.lt,
    "maximum": pt.maximum,
    "minimum": pt.minimum,
    "mod": pt.mod,
    "mul": pt.mul,
    "neq": pt.neq,
    "pow": pt.pow,
    "second": pt.second,
    "sub": pt.sub,
    "true_div": pt.true_div,
}

SHAPES = [(), (0,), (1,), (2, 3)]


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    """With its gradient, of known and unknown sizes, of nothing, of one element, and of special values."""
    function, low, high = UNARY[name]
    values = [RNG.uniform(low, high, shape) for shape in SHAPES]
    inputs = [variable(value, known=len(value.shape) == 2) for value in values]
    outputs = [function(one) for one in inputs]
    compared(inputs, [*outputs, *slopes(outputs, inputs)], values, foreign=FOREIGN.get(name, ()))
    x = pt.dvector()
    with np.errstate(all="ignore"):
        compared([x], [function(x)], [SPECIAL])


def taken(name, dtype):
    """Whether PyTensor has an op of this dtype."""
    try:
        UNARY[name][0](pt.vector(dtype=dtype))
    except (TypeError, NotImplementedError):
        return False
    return True


DTYPES = [(n, d) for n in UNARY for d in ("float32", "int8", "uint16", "int64", "bool") if taken(n, d)]


@pytest.mark.parametrize(("name", "dtype"), DTYPES)
def test_unary_of_other_dtypes(name, dtype):
    function, low, high = UNARY[name]
    value = np.asarray(RNG.uniform(low, high, 7)).astype(dtype)
    x = pt.vector(dtype=dtype)
    outputs = [function(x)]
    narrow = outputs[0].dtype in ("float16", "float32")  # in which the two round differently
    with np.errstate(all="ignore"):
        compared([x], outputs, [value], modes=("ESAT",), tolerance=2e-3 if narrow else 1e-11)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    """Of arrays that broadcast, with gradients."""
    function = BINARY[name]
    values = [RNG.uniform(0.2, 3, shape) for shape in ((2, 3), (1, 3), (), (0, 3))]
    inputs = [variable(value) for value in values]
    pairs = [(0, 1), (1, 0), (0, 2), (2, 2), (3, 1)]
    outputs = [function(inputs[left], inputs[right]) for left, right in pairs]
    real = [one for one in outputs if one.dtype == "float64"]
    compared(inputs, [*outputs, *(slopes(real, inputs[:3]) if real else [])], values)
    x, y = pt.dmatrix(), pt.dmatrix()
    with np.errstate(all="ignore"):
        left, right = (np.ascontiguousarray(one) for one in np.meshgrid(SPECIAL, SPECIAL))
        compared([x, y], [function(x, y)], [left, right])


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    "dtypes",
    [("int8", "int8"), ("int32", "uint8"), ("float32", "int16"), ("int64", "float64"), ("uint64", "uint8")],
)
def test_binary_of_other_dtypes(name, dtypes):
    values = [RNG.integers(1, 5, 6).astype(dtype) for dtype in dtypes]
    inputs = [variable(value) for value in values]
    outputs = [BINARY[name](*inputs)]
    narrow = outputs[0].dtype in ("float16", "float32")
    compared(inputs, outputs, values, modes=("ESAT",), tolerance=1e-3 if narrow else 1e-11)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64"])
def test_bits(dtype):
    values = [RNG.integers(0, 2 if dtype == "bool" else 100, 6).astype(dtype) for _ in range(2)]
    x, y = map(variable, values)
    compared([x, y], [x & y, x | y, x ^ y, ~x], values)


def test_three_operands():
    values = [RNG.uniform(-2, 2, (3, 4)), RNG.uniform(-1, 0, (1, 4)), RNG.uniform(0, 1, (3, 1))]
    x, low, high = map(variable, values)
    outputs = [
        pt.clip(x, low, high),
        pt.clip(x, high, low),
        pt.switch(x > 0, low, high),
        pt.switch(x, 1.0, high),
    ]
    compared([x, low, high], [*outputs, *slopes(outputs, [x, low, high])], values)
    nan = [np.array([[np.nan, 1.0, -1.0, 0.0]]), values[1], np.array([[np.nan]])]
    inputs = [variable(one) for one in nan]
    compared(inputs, [pt.clip(*inputs), pt.switch(inputs[0], *inputs[1:])], nan)


def test_of_orders():
    values = [RNG.uniform(0.5, 3, 5), RNG.uniform(0.5, 3, 5), RNG.uniform(0.1, 0.9, 5)]
    a, b, x = map(variable, values)
    outputs = [
        pt.gammainc(a, x),
        pt.gammaincc(a, x),
        pt.betainc(a, b, x),
        pt.polygamma(2, a),
        pt.special.xlogy(a, b),
        pt.special.xlog1py(a, b),
        pt.special.xlogy(0, x),
    ]
    compared([a, b, x], outputs, values)
    compared([a, b, x], slopes(outputs[:2], [x]), values)


def test_sums_of_exponentials():
    values = [RNG.normal(size=(2, 3)) * 100, RNG.normal(size=3) * 100]
    x, y = map(variable, values)
    output = pt.logaddexp(x, y)
    compared([x, y], [output, *slopes([output], [x, y])], values)
    infinite = [np.array([np.inf, -np.inf, -np.inf]), np.array([1.0, -np.inf, 2.0])]
    x, y = map(variable, infinite)
    compared([x, y], [pt.logaddexp(x, y)], infinite)


def test_special_functions_of_several_operands():
    values = [RNG.uniform(0.5, 3, 5), RNG.uniform(0.1, 0.9, 5)]
    a, x = map(variable, values)
    outputs = [
        pt.gammaincinv(a, x),
        pt.gammainccinv(a, x),
        pt.betaincinv(a, a, x),
        pt.jv(a, x),
        pt.ive(a, x),
        pt.kve(a, x),
        pt.hyp2f1(a, a, 2 * a, x / 2),
        pt.owens_t(a, x),
    ]
    foreign = ["Elemwise{Hyp2F1}"]
    compared([a, x], outputs, values, foreign=foreign)
    compared([a, x], slopes([outputs[-1]], [a, x]), values)


def test_complex_numbers():
    values = [RNG.normal(size=4) + 1j * RNG.normal(size=4), RNG.normal(size=4)]
    z, x = map(variable, values)
    outputs = [
        z + x,
        z * z,
        z / x,
        -z,
        pt.real(z),
        pt.imag(z),
        pt.conj(z),
        pt.abs(z),
        pt.exp(z),
        pt.complex(x, x),
        pt.sqrt(z),
        pt.sqr(z),
        pt.eq(z, x),
        z.sum(),
        pt.switch(x > 0, z, x),
    ]
    compared([z, x], outputs, values)


@pytest.mark.parametrize("target", ["bool", "int8", "uint8", "int64", "float32", "float64", "complex128"])
def test_casts(target):
    values = [np.array([0.0, 1.7, 3.2, 100.0]), np.array([0, 1, -3, 100]), np.array([True, False])]
    inputs = [variable(one) for one in values]
    compared(inputs, [one.astype(target) for one in inputs], values)


def test_composites_are_their_parts():
    """Outputs of a composite that do not depend on all of its operands have the shape of all."""
    x, y = ps.float64("x"), ps.float64("y")
    op = Elemwise(Composite([x, y], [ps.exp(x) * y + 2, x + 1, ps.constant(3.0)]))
    values = [RNG.normal(size=(2, 3)), RNG.normal(size=(1, 3))]
    inputs = [variable(one) for one in values]
    compared(inputs, op(*inputs), values)
    compared(inputs[::-1], op(*inputs[::-1]), values[::-1])


def test_numbers_are_numbers():
    """Scalars of PyTensor's that are no arrays, in and out."""
    x, y = ps.float64("x"), ps.int64("y")
    outputs = [ps.exp(x) * y, y + 1, ps.switch(ps.gt(x, 0), x, -x)]
    expected = pytensor.function([x, y], outputs, mode=REFERENCE)(0.5, 3)
    for mode in MODES:
        found = pytensor.function([x, y], outputs, mode=mode)(0.5, 3)
        assert [type(one) for one in found] == [type(one) for one in expected]
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_arrays_of_unknown_size_do_not_broadcast():
    x, y = pt.dvector(), pt.dvector()
    function = pytensor.function([x, y], x + y, mode="ESAT")
    same([function(np.ones(3), np.ones(3))], [np.full(3, 2.0)])
    with pytest.raises(ValueError, match="sizes"):
        function(np.ones(3), np.ones(1))
