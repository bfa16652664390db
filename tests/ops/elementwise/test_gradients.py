"""Gradients: against finite differences, and where there is a choice the one that is documented."""

from __future__ import annotations

import numpy as np
import pytest

from esat.errors import GradientError
from esat.frontend.derivatives.gradient import grad, vjp
from esat.frontend.derivatives.verify_grad import verify_grad
from esat.graph.algorithms.evaluate import evaluate
from esat.ops.reduction import SUM, reduce
from esat.ops.table import ELEMENTWISE

from .samples import BY_NAME, ONCE, ranges, variable

SMOOTH = [
    op
    for op in ELEMENTWISE
    if callable(op.gradient) and op.name not in ("switch", "imag", "angle", "sign", *ONCE)
]
ZERO = [op for op in ELEMENTWISE if op.gradient == "zero"]
UNORDERED = ("maximum", "minimum", "fmax", "fmin", "clip")
COMPLEX = [op for op in SMOOTH if op.admits("complex128") and op.name not in (*UNORDERED, "digamma")]
smooth_ops = pytest.mark.parametrize("op", SMOOTH, ids=lambda op: op.name)
SHAPES = ((2, 1), (1, 3), ())


def points(op, shapes=SHAPES, dtype="float64"):
    rng = np.random.default_rng(3)
    return [
        np.asarray(rng.uniform(*r, shape)).astype(dtype) for r, shape in zip(ranges(op), shapes, strict=False)
    ]


@smooth_ops
def test_against_differences_with_broadcasting(op):
    if op.name == "copysign":
        first, second = points(op)
        verify_grad(lambda x: op(x, second), [first], tolerance=1e-5)
        return
    if op.parameters:
        *fixed, last = points(op)
        verify_grad(lambda x: op(*fixed, x), [last], tolerance=1e-5)
        return
    if op.name == "fill":
        verify_grad(lambda value: op(np.zeros((2, 3)), value), [np.ones((2, 1))])
        return
    verify_grad(op, points(op))
    for operands in (points(op, [(3,)] * 3), points(op, [()] * 3), points(op, [(0, 2)] * 3)):
        verify_grad(op, operands)


@smooth_ops
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_gradients_keep_the_dtype(op, dtype):
    operands = [variable(array) for array in points(op, dtype=dtype)]
    output = op(*operands)
    continuous = (
        [1] if op.name == "fill" else [0] if op.name == "copysign" else range(op.parameters, op.arity)
    )
    wrt = [operands[position] for position in continuous]
    for gradient, operand in zip(grad(reduce(SUM, output), wrt), wrt, strict=True):
        assert gradient.tensor_type.dtype == operand.tensor_type.dtype == dtype
        assert gradient.tensor_type.broadcastable == operand.tensor_type.broadcastable


@smooth_ops
def test_second_derivatives(op):
    """The gradient is itself differentiable wherever the function is."""
    operands = points(op, [(2,)] * 3)
    if op.name in ("gammainc", "gammaincc", "betainc", "gammaincinv", "gammainccinv", "betaincinv"):
        inputs = [variable(array) for array in operands]
        by_parameter = grad(reduce(SUM, op(*inputs)), inputs[0])
        with pytest.raises(GradientError, match="no second derivatives"):
            grad(reduce(SUM, by_parameter), inputs[0])
        return

    if op.parameters:
        *fixed, last = operands
        verify_grad(lambda x: grad(reduce(SUM, op(*fixed, x)), x), [last], tolerance=1e-5)
        return

    def first_derivative(*variables):
        gradient = grad(reduce(SUM, op(*variables)), variables[0], disconnected="zero")
        # Where it is constant, it depends on them all the same.
        return sum((0.0 * variable for variable in variables), gradient)

    verify_grad(first_derivative, operands, tolerance=1e-5)


@pytest.mark.parametrize("op", [op for op in SMOOTH if op.parameters], ids=lambda op: op.name)
def test_unknown_derivatives_are_errors(op):
    *fixed, last = (variable(array) for array in points(op, [(3,)] * op.arity))
    cost = reduce(SUM, op(*fixed, last) + sum(fixed))
    for parameter in fixed:
        with pytest.raises(GradientError, match=rf"{op.name}\(.*is not known; .*stop_gradient"):
            grad(cost, parameter)
    assert grad(cost, last).tensor_type.shape == (3,)


@pytest.mark.parametrize("op", COMPLEX, ids=lambda op: op.name)
def test_complex_gradients(op):
    rng = np.random.default_rng(5)
    operands = [
        rng.uniform(0.3, 0.8, 3) + 1j * rng.uniform(0.2, 0.6, 3) * sign
        for _, sign in zip(range(op.arity), (1, -1), strict=False)
    ]
    if op.name == "fill":
        verify_grad(lambda value: op(np.zeros(3), value), operands[:1])
    else:
        verify_grad(op, operands, tolerance=1e-5)


@pytest.mark.parametrize("name", ["imag", "angle"])
def test_parts_of_complex_numbers(name):
    verify_grad(BY_NAME[name], [np.array([0.5 + 1j, -2 - 0.3j])])
    x = variable(np.array([1.0, 2.0]))
    assert evaluate(vjp([BY_NAME[name](x)], x, [np.ones(2)]), {x: np.array([1.0, 2.0])}).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("name", "reason"), [("sign", "no complex derivative"), ("digamma", "for real numbers only")]
)
def test_no_gradient_for_complex_numbers(name, reason):
    z = variable(np.ones(2, "complex128"))
    with pytest.raises(GradientError, match=rf"{name}\(vector\(complex128.*{reason}") as caught:
        vjp([BY_NAME[name](z)], z, [np.ones(2, "complex128")])
    assert "test_gradients.py" in str(caught.value)


@pytest.mark.parametrize("op", [*ZERO, BY_NAME["sign"]], ids=lambda op: op.name)
def test_zero_gradients(op):
    if op.admits("float64") != "float64":
        return
    operands = [variable(np.ones(2)) for _ in range(op.arity)]
    node = op.make_node(*operands)
    cotangent = variable(np.ones(2, node.outputs[0].tensor_type.dtype))
    assert node.op.vjp(node, [cotangent]) == [None] * op.arity


def test_integers_have_no_cotangent():
    n = variable(np.arange(3))
    node = BY_NAME["mul"].make_node(n, n)
    assert node.op.vjp(node, [node.outputs[0]]) == [None, None]


def test_switch():
    condition = np.array([True, False])
    verify_grad(lambda a, b: BY_NAME["switch"](condition, a, b), [np.ones((3, 1)), np.zeros(2)])


def parts(name, *values):
    """The gradient of the sum of the op's results by each operand, at scalars."""
    arrays = [np.array(value, float) for value in values]
    inputs = [variable(array) for array in arrays]
    gradients = grad(BY_NAME[name](*inputs), inputs, disconnected="zero")
    return [float(g) for g in evaluate(gradients, dict(zip(inputs, arrays, strict=True)))]


NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "at", "expected"),
    [
        ("maximum", (1, 1), [0.5, 0.5]),
        ("minimum", (2, 2), [0.5, 0.5]),
        ("maximum", (3, 1), [1, 0]),
        ("minimum", (3, 1), [0, 1]),
        ("fmax", (1, NAN), [1, 0]),
        ("fmin", (NAN, 1), [0, 1]),
        ("fmax", (2, 2), [0.5, 0.5]),
        ("clip", (1, 1, 3), [1, 0, 0]),
        ("clip", (3, 1, 3), [1, 0, 0]),
        ("clip", (0, 1, 3), [0, 1, 0]),
        ("clip", (4, 1, 3), [0, 0, 1]),
        ("clip", (2, 3, 1), [0, 0, 1]),
        ("clip", (0, 3, 1), [0, 0, 1]),
        ("abs", (0,), [0]),
        ("hypot", (0, 0), [0, 0]),
        ("pow", (0, 2), [0, 0]),
        ("pow", (0, 0), [0, 0]),
        ("pow", (2, 0), [0, np.log(2)]),
        ("logaddexp", (-np.inf, 0), [0, 1]),
        ("logaddexp", (np.inf, 0), [1, 0]),
        ("logaddexp2", (3, -np.inf), [1, 0]),
        ("i1", (0,), [0.5]),
        ("j1", (0,), [0.5]),
        ("arctan2", (0, 1), [1, 0]),
        ("copysign", (2, -1), [-1, 0]),
        ("xlogy", (0, 2), [np.log(2), 0]),
    ],
)
def test_at_corners(name, at, expected):
    np.testing.assert_allclose(parts(name, *at), expected, rtol=1e-15)


@pytest.mark.parametrize("exponent", [2, -1, 0, 0.5, 3.0])
def test_constant_exponents(exponent):
    base = variable(np.ones(3))
    gradient = grad(reduce(SUM, BY_NAME["pow"](base, exponent)), base)
    at = np.array([0.5, 2.0, 3.0])
    np.testing.assert_allclose(evaluate(gradient, {base: at}), exponent * at ** (exponent - 1.0), rtol=1e-14)


def test_negative_base_of_a_constant_power():
    base = variable(np.ones(1))
    gradient = grad(reduce(SUM, BY_NAME["pow"](base, 3)), base)
    assert evaluate(gradient, {base: np.array([-2.0])}) == 12
