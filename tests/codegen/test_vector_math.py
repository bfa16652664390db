"""The vector functions: accuracy, special values, vectorisation, and equal values in body and remainder."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import replace

import numba
import numpy as np
import pytest
from codegen.targets import HOST
from numba.core import types

from benchmarks.vector_math import NUMPY_EQUIVALENTS, kernel
from esat.codegen import vector_math
from esat.codegen.cache import CompileOptions, KernelCache
from esat.codegen.vector_math import (
    coefficients,
    formulas,
    function_table,
    linking,
    reduction,
    shared_code,
)
from tools import vector_accuracy, vector_coefficients

NAMES = sorted(vector_math.FUNCTIONS)
FORMATS = [32, 64]
DTYPES = {32: np.float32, 64: np.float64}
NUMBA_TYPES = {32: types.float32, 64: types.float64}
LIMIT = 4.0
"""Units in the last place."""

KERNELS = KernelCache(None)

PACKED = re.compile(r"\bv?(mul|fn?m(add|sub)\d+)p[sd]\b|\bf(mul|mla|mls)\s+v\d+\.[24][sd]")
"""Multiplications of several numbers, in x86 or ARM assembly."""

ORDINARY_VALUES = [0.0, 0.25, 0.5, 1, 2, 3, 4, 10, 30, 88.5, 100, 709.9, 745.0, 1000]
EXTREME_VALUES = [5e-324, 1e-310, 1e-45, 1e-20, 1e38, 1e308, math.inf, math.nan]
SPECIAL_VALUES = np.array([*ORDINARY_VALUES, *EXTREME_VALUES])

NUMPY_FUNCTIONS = {
    **NUMPY_EQUIVALENTS,
    "log1mexp": lambda x: np.where(x > -0.5, np.log(-np.expm1(x)), np.log1p(-np.exp(x))),
}


def evaluate(name: str, bits: int, *arguments: np.ndarray) -> np.ndarray:
    out = np.empty_like(arguments[0])
    kernel(name, bits).function(out, *arguments)
    return out


def special_arguments(name: str, bits: int) -> list[np.ndarray]:
    values = np.concatenate([SPECIAL_VALUES, -SPECIAL_VALUES])
    with np.errstate(over="ignore"):
        values = values.astype(DTYPES[bits])
    if name == "gammaln":
        # SciPy calls the logarithm of gamma infinite where gamma itself overflows at denormal arguments.
        values = values[(values == 0) | (abs(values) >= np.finfo(values.dtype).tiny) | np.isnan(values)]
    if vector_math.FUNCTIONS[name].arity == 1:
        return [values]
    return [np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(values, values)]


@pytest.mark.parametrize("bits", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_accuracy(name, bits):
    arity = vector_math.FUNCTIONS[name].arity
    with np.errstate(over="ignore"):
        arguments = vector_accuracy.sample(name, DTYPES[bits], arity, 150, seed=5)
    errors = vector_accuracy.errors(name, arguments, evaluate(name, bits, *arguments))
    worst = int(np.argmax(errors))
    assert errors[worst] < LIMIT, [argument[worst] for argument in arguments]


@pytest.mark.parametrize("name", [name for name in NAMES if vector_math.FUNCTIONS[name].arity == 1])
def test_float32_over_all_magnitudes(name):
    # Every 4001st bit pattern, against the float64 function, whose own error is negligible here.
    x = np.arange(0, 2**32, 4001, dtype=np.uint64).astype(np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):  # signalling NaNs are among the patterns
        wide, values = x.astype(np.float64), evaluate(name, 32, x).astype(np.float64)
    exact = evaluate(name, 64, wide)
    in_range = np.abs(exact) <= np.finfo(np.float32).max
    np.testing.assert_array_equal(np.isnan(values), np.isnan(exact))
    assert np.all(np.isinf(values[np.abs(exact) > 3.4028236e38]))
    with np.errstate(under="ignore"):
        unit = np.spacing(np.abs(exact[in_range]).astype(np.float32)).astype(np.float64)
    assert np.max(np.abs(values[in_range] - exact[in_range]) / unit) < LIMIT


@pytest.mark.parametrize("bits", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_numpys(name, bits):
    arguments = special_arguments(name, bits)
    values = evaluate(name, bits, *arguments)
    with np.errstate(all="ignore"):
        expected = (NUMPY_FUNCTIONS.get(name) or getattr(np, name))(*arguments)
    assert expected.dtype == values.dtype
    np.testing.assert_array_equal(np.isnan(values), np.isnan(expected))
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(values[number]), np.signbit(expected[number]))
    np.testing.assert_array_equal(np.isinf(values), np.isinf(expected))
    # SciPy's own errors are larger, and it flushes some denormal results to zero.
    finite, format_ = np.isfinite(expected), np.finfo(values.dtype)
    np.testing.assert_allclose(values[finite], expected[finite], rtol=16 * format_.eps, atol=format_.tiny)


@pytest.mark.parametrize("bits", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_same_value_in_body_and_remainder(name, bits):
    arity = vector_math.FUNCTIONS[name].arity
    with np.errstate(over="ignore"):
        sample = vector_accuracy.sample(name, DTYPES[bits], arity, 20, seed=6)
    arguments = [np.concatenate(parts) for parts in zip(sample, special_arguments(name, bits), strict=True)]
    together = evaluate(name, bits, *arguments)
    single = np.empty_like(together)
    for i in range(len(single)):
        single[i : i + 1] = evaluate(name, bits, *(argument[i : i + 1] for argument in arguments))
    number = ~np.isnan(together)
    pattern = f"u{bits // 8}"
    np.testing.assert_array_equal(together[number].view(pattern), single[number].view(pattern))
    np.testing.assert_array_equal(np.isnan(single), ~number)


@pytest.mark.parametrize("bits", FORMATS)
@pytest.mark.parametrize("name", [name for name in NAMES if "sqrt" not in name])
def test_loop_is_vectorised(name, bits):
    assembly = kernel(name, bits).assembly
    if vector_math.FUNCTIONS[name].guarded:
        # The loop calls the widened function, whose address it may keep in a register.
        after = re.search(rf"^esat_{name}_float{bits}\.shared\.\w+:", assembly, re.MULTILINE)
        assert after is not None
        loop = assembly[assembly.index("kernel_") : after.start()]
        assert f"esat_{name}_float{bits}_v" in loop
    else:
        assert PACKED.search(assembly)


@pytest.mark.parametrize("name", ["exp", "sin"])
def test_formulas_are_written_once(name, monkeypatch):
    written = []

    def formula(x):
        written.append(x.format.lanes)
        return vector_math.FUNCTIONS[name].formula(x)

    counted = function_table.VectorFunction(name, 1, formula, vector_math.FUNCTIONS[name].guarded)
    monkeypatch.setattr(formulas, "FUNCTIONS", {name: counted})
    monkeypatch.setattr(formulas, "formula_library", functools.cache(formulas.formula_library.__wrapped__))
    monkeypatch.setattr(linking, "caller", functools.cache(shared_code.caller.__wrapped__))
    monkeypatch.setattr(shared_code, "_SHARED", ".counted")  # no kernel of this process has it yet
    for _ in range(2):
        compiled = kernel.__wrapped__(name, 64)
        assert len(written) == 2  # for scalars, and for the vectors of the loop
    out = np.empty(3)
    compiled.function(out, np.array([0.0, 0.5, 2.0]))
    np.testing.assert_allclose(out, getattr(np, name)([0.0, 0.5, 2.0]), rtol=1e-15)


@pytest.mark.parametrize("name", ["exp", "sin"])
def test_functions_of_numba_get_the_same_formulas(name):
    function, x = vector_math.function(name, 64), np.linspace(-30, 30, 37)

    @numba.njit
    def applied(out, x):
        for i in range(out.size):
            out[i] = function(x[i])

    out = np.empty_like(x)
    applied(out, x)
    np.testing.assert_array_equal(out, evaluate(name, 64, x))


@pytest.mark.parametrize("bits", FORMATS)
def test_variants_that_no_loop_calls_are_dropped(bits):
    source = "def kernel(out, x):\n    for i in range(out.size):\n        out[i] = function(x[i])\n"
    array = NUMBA_TYPES[bits][::1]
    environment = {"function": vector_math.function("sin", bits)}
    options = CompileOptions(HOST, noalias=("kernel",))
    compiled = KERNELS.load_or_compile(source, "kernel", types.void(array, array), environment, options)
    defined = re.findall(rf"^esat_sin_float{bits}(_v\d+)?\.shared\.\w+:", compiled.assembly, re.MULTILINE)
    assert defined.count("") == 1
    assert 1 <= len(defined) - 1 < 3
    x = np.linspace(-30, 30, 37).astype(DTYPES[bits])
    out = np.empty_like(x)
    compiled.function(out, x)
    np.testing.assert_allclose(out, np.sin(x), rtol=8 * np.finfo(x.dtype).eps)


@pytest.mark.parametrize("bits", FORMATS)
@pytest.mark.parametrize("name", ["exp", "exp2", "erfc", "cosh", "logaddexp"])
def test_powers_of_two_in_one_step_or_two(name, bits):
    assert ("vscalef" in kernel(name, bits).assembly) == HOST.scales
    assert "ldexp" not in kernel(name, bits).assembly
    with np.errstate(over="ignore"):
        sample = vector_accuracy.sample(name, DTYPES[bits], vector_math.FUNCTIONS[name].arity, 200, seed=8)
    arguments = [np.concatenate(parts) for parts in zip(sample, special_arguments(name, bits), strict=True)]
    expected, values = evaluate(name, bits, *arguments), np.empty_like(arguments[0])
    in_two_steps = kernel(name, bits, replace(HOST, scales=False))
    assert "vscalef" not in in_two_steps.assembly
    in_two_steps.function(values, *arguments)
    np.testing.assert_array_equal(values, expected)


def test_large_angles():
    # The double closest to a multiple of pi/2, and the largest, negative ones, and small ones in between.
    hard = np.array(
        [6381956970095103 * 2.0**797, -np.finfo(float).max, 2.0**20, 1.0, -(2.0**60), 1e-300, 1e22, 2.0]
    )
    for name in ("sin", "cos", "tan"):
        assert vector_accuracy.errors(name, (hard,), evaluate(name, 64, hard)).max() < LIMIT
    hard = np.array([16367173 * 2.0**72, -np.finfo(np.float32).max, 2.0**20, 1.0, 2.0**24 + 2], np.float32)
    for name in ("sin", "cos", "tan"):
        assert vector_accuracy.errors(name, (hard,), evaluate(name, 32, hard)).max() < LIMIT


@pytest.mark.parametrize("bits", FORMATS)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_angles_among_small_ones(name: str, bits: int):
    angles = np.geomspace(1e-3, 3e5, 64).astype(DTYPES[bits])
    alone = np.concatenate([evaluate(name, bits, one) for one in np.split(angles, angles.size)])
    huge = DTYPES[bits](-1e22)
    replaced = evaluate(name, bits, np.array([huge]))[0]
    for place in range(angles.size):
        expected = np.where(np.arange(angles.size) == place, replaced, alone)
        changed = np.where(np.arange(angles.size) == place, huge, angles)
        np.testing.assert_array_equal(evaluate(name, bits, changed), expected)


def test_exact_results():
    powers = np.arange(-300.0, 300.0)
    assert np.array_equal(evaluate("log10", 64, np.array([float(f"1e{p:.0f}") for p in powers])), powers)
    powers = np.arange(-1074.0, 1024.0)
    assert np.array_equal(evaluate("log2", 64, np.ldexp(1.0, powers.astype(int))), powers)
    assert np.array_equal(evaluate("exp2", 64, powers), np.ldexp(1.0, powers.astype(int)))
    integers = np.arange(-20.0, 20.0)
    assert np.array_equal(evaluate("pow", 64, integers, np.full(40, 3.0)), integers**3)
    assert np.array_equal(evaluate("cbrt", 64, integers**3), integers)


def test_arguments_are_converted():
    source = """
def kernel(out, x):
    for i in range(out.size):
        out[i] = exp(x[i])
"""
    environment = {"exp": vector_math.function("exp", 64)}
    signature = types.void(types.float64[::1], types.int32[::1])
    compiled = KERNELS.load_or_compile(source, "kernel", signature, environment)
    out = np.empty(9)
    compiled.function(out, np.arange(9, dtype=np.int32))
    np.testing.assert_allclose(out, np.exp(np.arange(9)), rtol=1e-15)


def test_function_table():
    assert vector_math.function("exp", 64) is vector_math.function("exp", 64)
    assert vector_math.function("exp", 64).__qualname__ == "exp_float64"
    with pytest.raises(KeyError):
        vector_math.function("no such function", 64)
    assert set(vector_accuracy.references()) == set(NAMES)


def test_coefficients_are_what_the_generator_writes():
    namespace: dict[str, object] = {}
    exec(vector_coefficients.module_text(), namespace)
    names = [name for name in namespace if name.isupper()]
    assert len(names) > 15
    for name in names:
        assert namespace[name] == getattr(coefficients, name), name


def reduction_kernel(step: str, bits: int):
    type_ = NUMBA_TYPES[bits]
    source = f"""
def kernel(x, start):
    result = start
    for i in range(x.size):
        result = {step}
    return result
"""
    environment = {name: getattr(reduction, name) for name in re.findall(r"[a-z_]+(?=\()", step)}
    return KERNELS.load_or_compile(source, "kernel", type_(type_[::1], type_), environment)


@pytest.mark.parametrize("bits", FORMATS)
@pytest.mark.parametrize(
    ("step", "start", "function"),
    [
        ("reassociating_add(result, x[i])", 0.0, np.sum),
        ("reassociating_multiply_add(result, x[i], x[i])", 0.0, lambda x: np.sum(x * x)),
        ("maximum(result, x[i])", -math.inf, np.max),
        ("minimum(result, x[i])", math.inf, np.min),
    ],
)
def test_reductions(step, start, function, bits):
    compiled = reduction_kernel(step, bits)
    x = (1 + np.random.default_rng(3).normal(size=1003) / 100).astype(DTYPES[bits])
    exact = function(x.astype(np.float64))
    assert compiled.function(x, start) == pytest.approx(exact, rel=1e-12 if bits == 64 else 1e-5)
    assert compiled.function(x[:0], start) == start
    x[501] = np.nan
    assert np.isnan(compiled.function(x, start))
    if "reassociating" in step:
        assert re.search(r"(add|mul|fmadd\d+)p[sd]|f(add|mul|mla)\s+v", compiled.assembly)


def test_extrema_of_zeros_and_infinities():
    larger = reduction_kernel("maximum(result, x[i])", 64).function
    smaller = reduction_kernel("minimum(result, x[i])", 64).function
    zeros = np.array([-0.0, 0.0, -0.0])
    assert not np.signbit(larger(zeros, -0.0))
    assert np.signbit(smaller(zeros, 0.0))
    assert larger(np.array([1.0, math.inf]), -math.inf) == math.inf
    assert smaller(np.array([1.0, -math.inf]), math.inf) == -math.inf
