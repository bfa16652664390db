"""Every op against NumPy's or SciPy's function, over dtypes, special values and shapes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from esat.errors import DtypeError, EsatError, ShapeError
from esat.ops.table import ELEMENTWISE

from .samples import (
    BY_NAME,
    DTYPES,
    REAL_ONLY,
    TESTED_APART,
    all_ops,
    assert_same,
    quietly,
    ranges,
    reference,
    run,
    special_values,
    variable,
)

WEAK = (0, 1, 2, 2.5, 1j)


def grid(op, dtype: str) -> list[np.ndarray]:
    """Operands that pair every special value with every other, one axis an operand."""
    values = special_values(dtype)
    if op.arity == 1:
        return [values]
    if op.name == "polygamma":
        return [np.arange(3).astype(dtype)[:, None], np.abs(values[np.isfinite(values)])]
    if op.name == "pow" and np.dtype(dtype).kind == "i":
        return [values[:, None], np.abs(values)[np.abs(values) >= 0]]
    operands = [values[:, None], values]
    if op.arity == 3:
        third = values[:: max(1, len(values) // 5)]
        first = values != 0 if op.name == "switch" else values
        operands = [first[:, None, None], values[:, None], third]
    return operands


@all_ops
def test_special_values(op):
    function = reference(op)
    if function is None:
        return
    taken = 0
    for dtype in DTYPES:
        operands = grid(op, dtype)
        expected = quietly(function, *operands)
        if isinstance(expected, TypeError):
            with pytest.raises(DtypeError, match=rf"{op.name}\(.*{dtype}"):
                run(op, *operands)
            assert op.admits(dtype) is None
            continue
        taken += 1
        assert_same(run(op, *operands), expected, (op.name, dtype))
    assert taken


@all_ops
def test_mixed_dtypes(op):
    function = reference(op)
    if function is None or op.arity == 1 or op.name == "polygamma":
        return
    for dtypes in itertools.product(DTYPES, repeat=2):
        operands = [np.array([0, 1, 3], dtype) for dtype in dtypes]
        if op.name in REAL_ONLY and any(dtype.startswith("complex") for dtype in dtypes):
            with pytest.raises(DtypeError, match=op.name):
                run(op, *operands)
            continue
        if op.arity == 3:
            operands.insert(0, operands[0] != 0 if op.name == "switch" else operands[0])
        expected = quietly(function, *operands)
        if isinstance(expected, TypeError):
            with pytest.raises(DtypeError, match=op.name):
                run(op, *operands)
        else:
            assert_same(run(op, *operands), expected, (op.name, dtypes))


@all_ops
def test_weak_python_numbers(op):
    function = reference(op)
    # SciPy's functions take a Python number for a float64; ours keep the dtype of the array, as NumPy's do.
    if function is None or op.arity != 2 or op.name in ("polygamma", "xlogy"):
        return
    for dtype, number in itertools.product(DTYPES, WEAK):
        array = np.array([1, 0, 3], dtype)
        is_complex = dtype.startswith("complex") or isinstance(number, complex)
        for operands in ((array, number), (number, array)):
            if op.name in REAL_ONLY and is_complex:
                with pytest.raises(DtypeError, match=op.name):
                    run(op, *operands)
                continue
            expected = quietly(function, *operands)
            if isinstance(expected, TypeError):
                with pytest.raises(DtypeError, match=op.name):
                    run(op, *operands)
            else:
                assert_same(run(op, *operands), expected, (op.name, dtype, number))


SHAPES = (
    ((), ()), ((3,), ()), ((), (2, 3)), ((2, 1), (1, 3)), ((4, 1, 3), (2, 1)), ((0,), (1,)), ((0, 3), (3,)),
    ((1, 0), (2, 1)), ((1, 1), (1,)), ((2, 3), (2, 3)),
)  # fmt: skip


@all_ops
@pytest.mark.parametrize("known_sizes", [True, False])
def test_shapes(op, known_sizes):
    function = reference(op)
    dtype = next(name for name in ("float64", "int64", "bool") if op.admits(name) is not None)
    rng = np.random.default_rng(7)
    for pair in SHAPES:
        shapes = [*pair, pair[0]][: op.arity]
        arrays = [np.asarray(rng.integers(1, 4, shape)).astype(dtype) for shape in shapes]
        inputs = [variable(array, known_sizes) for array in arrays]
        node = op.make_node(*inputs)
        assert len({operand.tensor_type.ndim for operand in node.inputs}) == 1
        assert node.outputs[0].tensor_type.ndim == max(map(len, shapes))
        result = run(op, *arrays)
        assert result.shape == np.broadcast_shapes(*shapes)
        if function is not None:
            if op.name == "switch":
                arrays[0] = arrays[0] != 0
            assert_same(result, quietly(function, *arrays), (op.name, shapes))


def test_sizes_that_do_not_match():
    left, right = variable(np.zeros((2, 3))), variable(np.zeros((2, 4)))
    with pytest.raises(ShapeError, match=r"mul\(.*axis 1"):
        BY_NAME["mul"](left, right)
    with pytest.raises(ShapeError, match=r"mul\(.*\(2, 3\)"):
        BY_NAME["mul"].perform([np.zeros((2, 3)), np.zeros((2, 4))])


@all_ops
def test_the_number_of_operands(op):
    operands = "1 operand" if op.arity == 1 else f"{op.arity} operands"
    with pytest.raises(EsatError, match=f"{op.name}.*takes {operands}, not {op.arity + 1}"):
        op(*[1.0] * (op.arity + 1))


@all_ops
def test_results_are_new_arrays(op):
    dtype = next(name for name in ("float64", "int64", "bool") if op.admits(name) is not None)
    operands = [np.ones(3, "bool" if typing == "bool" else dtype) for typing in op.operand_typing]
    (result,) = op.perform(operands)
    assert not any(np.shares_memory(result, operand) for operand in operands)


# ---- ops that NumPy and SciPy do not have, or not in all dtypes


def test_fill():
    fill = BY_NAME["fill"]
    model = np.zeros((2, 3), "int8")
    assert_same(
        run(fill, model, np.float32(2.5) * np.ones(3, "float32")), np.full((2, 3), 2.5, "float32"), "fill"
    )
    assert_same(run(fill, model, np.array(True)), np.ones((2, 3), bool), "fill")
    assert_same(run(fill, np.zeros((2, 0), "float32"), 1), np.ones((2, 0), "float32"), "fill")
    assert_same(run(fill, model, 7), np.full((2, 3), 7, "int8"), "fill")
    assert run(fill, model, 0.5).dtype == "float64"
    with pytest.raises(DtypeError, match="does not fit int8"):
        run(fill, model, 300)


OWN = [op for op in ELEMENTWISE if reference(op) is None and op.name not in TESTED_APART]


@pytest.mark.parametrize("op", OWN, ids=lambda op: op.name)
def test_own_ops_are_their_definition_in_a_wider_format(op):
    define = op.numpy if op.wide is None else op.wide
    rng = np.random.default_rng(17)
    for dtype in ("float16", "float32", "float64"):
        operands = [rng.uniform(low, high, 200).astype(dtype) for low, high in ranges(op)]
        expected = quietly(define, *[operand.astype(np.longdouble) for operand in operands])
        actual = run(op, *operands)
        assert actual.dtype == dtype
        assert np.isfinite(actual).all()
        units = 8 * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(actual, expected.astype(dtype), rtol=units, atol=units, err_msg=dtype)


EXACT = {
    "sigmoid": ("1 / (1 + exp(-x))", lambda mp, x: 1 / (1 + mp.exp(-x))),
    "softplus": ("log(1 + exp(x))", lambda mp, x: mp.log(1 + mp.exp(x))),
    "log1mexp": ("log(1 - exp(x))", lambda mp, x: mp.log(1 - mp.exp(x))),
    "log_cosh": ("log(cosh(x))", lambda mp, x: mp.log(mp.cosh(x))),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_against_many_digits(name, dtype):
    import mpmath

    points = np.array([-80, -20, -5, -1, -0.7, -0.69, -0.1, -1e-3, -1e-7], dtype)
    if name != "log1mexp":
        points = np.concatenate([points, -points, np.zeros(1, dtype)])
    points = points[points != 0] if name == "log1mexp" else points
    with mpmath.workdps(60):
        expected = np.array([float(EXACT[name][1](mpmath, mpmath.mpf(float(x)))) for x in points])
    actual = run(BY_NAME[name], points)
    assert actual.dtype == dtype
    limits = np.finfo(dtype)
    np.testing.assert_allclose(
        actual, expected, rtol=4 * float(limits.eps), atol=float(limits.smallest_subnormal)
    )


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("sigmoid", {-np.inf: 0.0, np.inf: 1.0}),
        ("softplus", {-np.inf: 0.0, np.inf: np.inf}),
        ("log1mexp", {-np.inf: 0.0, 0.0: -np.inf, 1.0: np.nan}),
        ("log_cosh", {-np.inf: np.inf, 0.0: 0.0, np.inf: np.inf}),
    ],
)
def test_limits(name, limits):
    points = np.array([*limits, np.nan])
    np.testing.assert_array_equal(run(BY_NAME[name], points), [*limits.values(), np.nan])
    assert run(BY_NAME[name], np.array([3], "int8")).dtype == "float16"
    with pytest.raises(DtypeError, match=f"{name}.*complex64"):
        run(BY_NAME[name], np.zeros(1, "complex64"))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_powers_minus_one(dtype):
    """SciPy's function in its dtype, but NumPy's power where that or an operand is infinite."""
    import mpmath
    import scipy.special

    values = special_values(dtype)
    bases, exponents = values[:, None], values
    actual = run(BY_NAME["powm1"], bases, exponents)
    scipys = quietly(scipy.special.powm1, bases, exponents)
    powers = quietly(np.power, bases.astype(scipys.dtype), exponents.astype(scipys.dtype))
    infinite = np.isinf(powers) | np.isinf(bases) | np.isinf(exponents)
    rounding = 4 * float(np.finfo(scipys.dtype).eps)
    assert actual.dtype == scipys.dtype
    np.testing.assert_allclose(actual, np.where(infinite, powers - 1, scipys), rtol=rounding)
    for operands in ((1 + 2.0**-9, 3.0), (1 - 2.0**-10, -0.5), (0.3, 2.0**-14), (7.0, -(2.0**-12))):
        base, exponent = np.array(operands, dtype)
        with mpmath.workdps(60):
            expected = float(mpmath.mpf(float(base)) ** mpmath.mpf(float(exponent)) - 1)
        result = run(BY_NAME["powm1"], np.asarray(base), np.asarray(exponent))
        np.testing.assert_allclose(result, expected, rtol=rounding)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_compound_interest_less_one(dtype):
    """No worse than the power where that is not near one, or where there is no logarithm."""
    import mpmath

    rates = np.array([2.0**-10, -(2.0**-9), 0.0, -1.0, -3.0, 7.0, 0.5, 2.0**-6, -1.5], dtype)
    times = np.array([12.0, 3.0, 5.0, 2.0, 3.0, 3.0, -4.0, 0.5, 0.5], dtype)
    with mpmath.workdps(60):
        pairs = [(mpmath.mpf(float(x)), mpmath.mpf(float(y))) for x, y in zip(rates, times, strict=True)]
        expected = [float((1 + x) ** y - 1) for x, y in pairs[:-1]]
    actual = run(BY_NAME["compoundm1"], rates, times)
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual, [*expected, np.nan], rtol=4 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_differences_of_exponentials(dtype):
    import mpmath

    first = np.array([2.0**-9, 5.0, 5.0, -0.3, -9.0, 3.0], dtype)
    second = np.array([0.0, 5 - 2.0**-7, -5.0, 0.3, -9.0, 3 + 2.0**-8], dtype)
    with mpmath.workdps(60):
        expected = [
            float(mpmath.exp(float(x)) - mpmath.exp(float(y))) for x, y in zip(first, second, strict=True)
        ]
    actual = run(BY_NAME["expdiff"], first, second)
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual, expected, rtol=4 * float(np.finfo(dtype).eps))
    limits = run(
        BY_NAME["expdiff"], np.array([np.inf, -np.inf, np.nan, -np.inf]), np.array([1.0, 0, 0, -np.inf])
    )
    np.testing.assert_array_equal(limits, [np.inf, -1, np.nan, 0])


def test_zero_keeps_its_sign():
    zeros = np.array([0.0, -0.0])
    for name in (
        "neg",
        "positive",
        "sqrt",
        "cbrt",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "sin",
        "tanh",
        "copy",
        "expm1",
    ):
        expected = quietly(reference(BY_NAME[name]), zeros)
        np.testing.assert_array_equal(
            np.signbit(run(BY_NAME[name], zeros)), np.signbit(expected), err_msg=name
        )
