"""Loops over whole vectors, and what is left over."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from codegen.kernel_cases import group_of, op, variable
from codegen.targets import host_with

from esat.codegen import cache, lower
from esat.codegen.cache.compiled_kernel import CompiledKernel
from esat.codegen.compile import signature_of
from esat.codegen.ground.target import Target
from esat.codegen.kernel.access import takes_whole_vectors
from esat.codegen.kernel.collapse import collapse
from esat.codegen.kernel.loop_ir import Kernel
from esat.codegen.kernel.overwriting import overwrite
from esat.codegen.printing.printer import ENTRY, print_source
from esat.graph import Variable
from esat.ops.reduction import SUM, reduce

KERNELS = cache.KernelCache(None)
SIZES = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100]
BEYOND = 70
SCALAR_MULTIPLICATION = re.compile(r"\bvf?n?m(?:ul|add|sub)\d*s[sd]\b")
Compile = Callable[[Kernel], CompiledKernel]


def compiled_for(target: Target) -> Compile:
    """What compiles kernels here, each once."""

    def compiled(kernel: Kernel) -> CompiledKernel:
        printed, signature = print_source(kernel, target, "C", comments=False), signature_of(kernel, "C")
        options = cache.CompileOptions(target, noalias=(ENTRY,))
        return KERNELS.load_or_compile(printed.text, ENTRY, signature, printed.environment, options)

    return compiled


@pytest.fixture(params=[32, 64], ids=["vectors of 32 bytes", "of 64 bytes"])
def compiled(request: pytest.FixtureRequest) -> Compile:
    """The same where several vectors take turns."""
    return compiled_for(host_with(request.param))


def lowered(outputs: list[Variable], inputs: list[Variable]) -> Kernel:
    return lower(group_of(outputs, inputs))


def values_of(kernel: CompiledKernel, arrays: list[np.ndarray], dtypes: list[str]) -> list[np.ndarray]:
    """What a kernel computes; the memory beyond its results must stay as it was."""
    shape = arrays[0].shape
    memory = [np.ones(arrays[0].size + BEYOND, dtype) for dtype in dtypes]
    results = [one[: arrays[0].size].reshape(shape) for one in memory]
    kernel(*results, *arrays)
    for one in memory:
        assert np.all(one[arrays[0].size :] == 1)
    return results


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sizes(compiled: Compile, dtype: str) -> None:
    x, y = variable(dtype, None), variable(dtype, None)
    kernel = compiled(lowered([op("add", op("exp", x), y), op("tanh", y)], [x, y]))
    first, second = np.random.default_rng(0).normal(size=(2, SIZES[-1])).astype(dtype)
    whole = values_of(kernel, [first, second], [dtype, dtype])
    limit = 16 * np.finfo(dtype).eps
    np.testing.assert_allclose(whole[0], np.exp(first) + second, rtol=limit, atol=limit)
    np.testing.assert_allclose(whole[1], np.tanh(second), rtol=limit)
    for size in SIZES:
        results = values_of(kernel, [first[:size].copy(), second[:size].copy()], [dtype, dtype])
        np.testing.assert_array_equal(results[0], whole[0][:size])
        np.testing.assert_array_equal(results[1], whole[1][:size])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (5, 7), (4, 16), (3, 2, 9)])
def test_matrices(compiled: Compile, shape: tuple[int, ...]) -> None:
    x, scale = variable("float64", *[None] * len(shape)), variable("float64")
    kernel = compiled(lowered([op("mul", op("sin", x), scale)], [x, scale]))
    values, factor = np.random.default_rng(1).normal(size=shape), np.array(2.5)
    result = np.empty(shape)
    kernel(result, values, factor)
    np.testing.assert_allclose(result, np.sin(values) * 2.5, rtol=1e-15)


@pytest.mark.parametrize("size", SIZES)
def test_several_dtypes(compiled: Compile, size: int) -> None:
    single, whole, flag = variable("float32", None), variable("int64", None), variable("bool", None)
    result = op("exp", op("mul", op("add", single, whole), flag))
    kernel = compiled(lowered([result, op("lt", single, whole)], [single, whole, flag]))
    generator = np.random.default_rng(2)
    arrays = [
        generator.normal(size=size).astype("float32"),
        generator.integers(-3, 3, size),
        generator.random(size) < 0.5,
    ]
    values = values_of(kernel, arrays, [result.type.dtype, "bool"])
    np.testing.assert_allclose(values[0], np.exp((arrays[0] + arrays[1]) * arrays[2]), rtol=1e-14)
    np.testing.assert_array_equal(values[1], arrays[0] < arrays[1])


@pytest.mark.parametrize("size", SIZES)
def test_in_place(compiled: Compile, size: int) -> None:
    x, y = variable("float64", None), variable("float64", None)
    kernel = compiled(overwrite(lowered([op("add", op("exp", x), y)], [x, y]), 0, 0))
    memory = np.linspace(-1.0, 1.0, size + BEYOND)
    expected, other = memory.copy(), np.linspace(2.0, 3.0, size)
    expected[:size] = np.exp(memory[:size]) + other
    kernel(memory[:size], other)
    np.testing.assert_allclose(memory, expected, rtol=1e-15)


@pytest.mark.parametrize("size", SIZES)
def test_scalars_beside_vectors(compiled: Compile, size: int) -> None:
    """A scalar is written also where no elements are."""
    x, b = variable("float64", None), variable("float64")
    scale = op("exp", b)
    kernel = compiled(lowered([op("mul", op("log", x), scale), op("add", scale, b)], [x, b]))
    numbers, found, scalar = np.linspace(1.0, 2.0, size), np.empty(size), np.array(np.nan)
    kernel(found, scalar, numbers, np.array(-1.0))
    np.testing.assert_allclose(found, np.log(numbers) * np.exp(-1.0), rtol=1e-14)
    np.testing.assert_allclose(scalar, np.exp(-1.0) - 1.0, rtol=1e-14)


@pytest.mark.parametrize("size", SIZES)
def test_scalar_in_place(compiled: Compile, size: int) -> None:
    """What is left over reads the scalar as it was."""
    x, a, b = variable("float64", None), variable("float64"), variable("float64")
    kernel = compiled(overwrite(lowered([op("add", op("log", x), a), op("exp", b)], [x, a, b]), 1, 1))
    numbers, found, scalar = np.linspace(1.0, 2.0, size), np.empty(size), np.array(0.25)
    kernel(found, scalar, numbers, np.array(-1.0))
    np.testing.assert_allclose(found, np.log(numbers) + 0.25, rtol=1e-15)
    np.testing.assert_allclose(scalar, np.exp(-1.0), rtol=1e-15)


def test_machine_code_has_no_loop_for_what_is_left_over(compiled: Compile) -> None:
    x = variable("float64", None)
    assert not SCALAR_MULTIPLICATION.search(compiled(lowered([op("exp", x)], [x])).assembly)
    left_to_llvm = compiled_for(host_with(64, interleave_count=0))
    assert SCALAR_MULTIPLICATION.search(left_to_llvm(lowered([op("expm1", x)], [x])).assembly)


def test_what_pads_vectors_is_shared_by_loops_of_arrays_alike(compiled: Compile) -> None:
    x, y, single = variable("float64", None), variable("float64", None), variable("float32", None)

    def padding_of(output: Variable, inputs: list[Variable]) -> set[str]:
        called = compiled(lowered([output], inputs)).code.shared
        return {name for name in called if name.startswith("esat_whole_vectors_")}

    of_two = padding_of(op("mul", op("exp", x), y), [x, y])
    assert len(of_two) == 1
    assert padding_of(op("add", op("tanh", y), op("sin", x)), [x, y]) == of_two
    others = [padding_of(op("tanh", one), [one]) for one in (x, single)]
    assert len(of_two.union(*others)) == 3


VECTOR, MATRIX, ROW = variable("float64", None), variable("float64", None, None), variable("float64", 1, None)
SCALAR = variable("float64")


@pytest.mark.parametrize(
    ("output", "inputs", "expected"),
    [
        (op("exp", VECTOR), [VECTOR], True),
        (op("exp", MATRIX), [MATRIX], True),
        (op("add", op("exp", MATRIX), SCALAR), [MATRIX, SCALAR], True),
        (op("mul", VECTOR, VECTOR), [VECTOR], False),
        (op("add", op("exp", MATRIX), ROW), [MATRIX, ROW], False),
        (reduce(SUM, op("exp", VECTOR), 0), [VECTOR], False),
    ],
)
def test_which_kernels(output: Variable, inputs: list[Variable], expected: bool) -> None:
    assert takes_whole_vectors(collapse(lowered([output], inputs))) == expected
