"""Which loops ask for half vectors, and that LLVM hears it. Values are for the tests of lowering."""

import re

import pytest
from codegen.kernel_cases import group_of, op, variable
from codegen.targets import HOST, host_with
from numba.core import types

from esat.codegen import cache, lower, print_kernel
from esat.codegen.cache.compiled_kernel import compile_kernel
from esat.codegen.ground.target import Target
from esat.codegen.llvm.vector_width import half_vectors
from esat.codegen.printing.shared_loops import print_parallel_source
from esat.graph import Variable
from esat.ops.reduction import SUM, reduce

X, Y = variable("float64", None, None), variable("float64", None, None)
ROW, COLUMN = variable("float64", 1, None), variable("float64", None, 1)
SHORT, WHOLE = variable("float32", None, None), variable("int64", None, None)


TARGETS = {
    "halves": host_with(64),
    "whole vectors": host_with(64, memory_vector_bytes=64),
    "no longer ones": host_with(32),
}


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Target:
    return TARGETS[request.param]


def scaled_twice(x: Variable) -> Variable:
    return op("mul", op("add", op("mul", op("add", x, 0.5), x), 1.5), x)


@pytest.mark.parametrize(
    ("output", "inputs", "asks"),
    [
        (op("add", op("mul", X, Y), X), [X, Y], True),
        (op("mul", op("add", X, ROW), 2.0), [X, ROW], True),
        (op("add", SHORT, SHORT), [SHORT], True),
        (op("neg", X), [X], True),
        # What is read is small: the row stays in the first-level cache.
        (op("add", ROW, COLUMN), [ROW, COLUMN], False),
        (scaled_twice(X), [X], False),
        (op("div", X, Y), [X, Y], False),
        (op("exp", X), [X], False),
        (op("lt", X, Y), [X, Y], False),
        (op("add", WHOLE, WHOLE), [WHOLE], False),
        (op("sub", X, reduce(SUM, X, 1, keepdims=True)), [X], False),
    ],
)
def test_loops_that_wait_for_memory_ask_for_half_vectors(
    output: Variable, inputs: list[Variable], asks: bool, target: Target
) -> None:
    kernel = lower(group_of([output], inputs))
    asks = asks and target is TARGETS["halves"]
    assert ("half_vectors()" in print_kernel(kernel, target)) == asks
    for streams in (False, True):
        printed = print_parallel_source(kernel, target, "C", True, streams)
        assert printed is not None
        assert ("half_vectors()" in printed.text) == (asks and not streams)


@pytest.mark.parametrize(
    ("operand", "inputs", "asks"),
    [
        (X, [X], True),
        (op("sqr", op("sub", X, Y)), [X, Y], True),
        (op("mul", SHORT, SHORT), [SHORT], True),
        (scaled_twice(X), [X], False),
        (op("exp", X), [X], False),
        (WHOLE, [WHOLE], False),
    ],
)
def test_large_sums_that_wait_for_memory_ask_for_half_vectors(
    operand: Variable, inputs: list[Variable], asks: bool, target: Target
) -> None:
    kernel = lower(group_of([reduce(SUM, operand)], inputs))
    printed = print_parallel_source(kernel, target, "C", True, False)
    assert printed is not None
    assert ("half_vectors()" in printed.text) == (asks and target is TARGETS["halves"])
    # Small ones are near.
    assert "half_vectors()" not in print_kernel(kernel, target)


def scaled(key: str, line: str, target: Target) -> cache.CompiledKernel:
    """A compiled loop, behind a line of its own."""
    text = f"def kernel(x, y):\n    {line}\n    for i in range(x.shape[0]):\n        y[i] = x[i] * 2.0\n"
    array = types.Array(types.float64, 1, "C")
    options = cache.CompileOptions(target, noalias=("kernel",))
    names = {"half_vectors": half_vectors}
    return compile_kernel(key * 64, text, "kernel", types.void(array, array), names, options)


def width(compiled: cache.CompiledKernel) -> set[str]:
    return set(re.findall(r'"prefer-vector-width"="(\d+)"', compiled.code.llvm))


def test_llvm_hears_of_half_vectors() -> None:
    compiled = scaled("1", "half_vectors()", host_with(64))
    assert "256" in width(compiled)
    assert "zmm" not in compiled.assembly


@pytest.mark.parametrize("preferred", [32, 64])
def test_llvm_hears_of_whole_vectors(preferred: int) -> None:
    target = host_with(64, preferred_vector_bytes=preferred)
    compiled = scaled("2", "pass", target)
    assert width(compiled) == ({"512"} if preferred == 64 else set())
    if preferred == HOST.vector_bytes == 64:
        assert "zmm" in compiled.assembly
    assert "zmm" not in scaled("4", "half_vectors()", target).assembly
    assert width(scaled("5", "pass", host_with(32))) == set()
