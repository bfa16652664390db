"""Functions of loops that numba's pipeline for kernels compiles, against the same Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from codegen.targets import HOST
from numba.core import types
from numba.core.registry import cpu_target
from numba.core.runtime import _nrt_python, rtsys

from esat.codegen.cache import CompileOptions, KernelCache
from esat.codegen.loop_compiler.contexts import RememberingTypes
from esat.errors import CompileError

LINE, STRIDED_LINE = types.float64[::1], types.float64[:]
TABLE, STRIDED_TABLE = types.float64[:, ::1], types.float64[:, :]
FLAGS, SCALAR = types.boolean[::1], types.Array(types.float64, 0, "C")

ELEMENTS = """
def kernel(out, x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[-1 - i] += x[i, j] * x[-1 - i, 0]
"""
UNSIGNED = """
def kernel(out, x):
    for i in range(uintp(x.shape[0])):
        for j in range(x.shape[1]):
            out[uintp(i)] = x[uintp(i), j] ** 2
"""
LATEST = """
def kernel(out, x):
    last = 0.0
    for i in range(x.shape[0]):
        row = 1.0
        for j in range(x.shape[1]):
            if x[i, j] > 0.5:
                last = x[i, j]
            row *= last - 0.5
        out[i] = row
    out[0] += last
"""
VIEWS = """
def kernel(out, x):
    for i in range(x.shape[0]):
        row = x[i]
        for value in row[1:]:
            out[i] += value
"""
OWN_MEMORY = """
def kernel(out, x):
    for i in range(x.shape[0]):
        line = empty(x.shape[1])
        for j in range(x.shape[1]):
            line[j] = x[i, j]
        other = line
        out[i] = other[0] + other[-1]
"""
OTHER_ARRAY = """
def kernel(out, x):
    source = x
    for i in range(x.shape[0]):
        if i == 1:
            source = x[::-1]
        out[i] = source[i, 0]
"""


def compiled(source: str, *kinds: Any) -> Any:
    environment = {"uintp": types.uintp, "empty": np.empty}
    options = CompileOptions(HOST, noalias=("kernel",))
    return KernelCache(None).load_or_compile(source, "kernel", types.void(*kinds), environment, options)


def plain(source: str) -> Callable[..., Any]:
    names = {"uintp": int, "empty": np.empty}
    exec(source, names)
    return names["kernel"]


@pytest.mark.parametrize(
    ("source", "strided"),
    [
        *itertools.product((ELEMENTS, UNSIGNED, LATEST, VIEWS, OWN_MEMORY), (False, True)),
        (OTHER_ARRAY, False),  # both of its arrays are of one type
    ],
)
def test_elements_and_variables(source, strided):
    kernel = compiled(source, STRIDED_LINE if strided else LINE, STRIDED_TABLE)
    step = -2 if strided else 1
    x = np.random.default_rng(0).random((10, 6))[::2, ::step]
    expected, found = np.ones(5 * abs(step))[::step], np.ones(5 * abs(step))[::step]
    plain(source)(expected, x)
    kernel(found, x)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_contiguous_tables():
    kernel = compiled(ELEMENTS, LINE, TABLE)
    x = np.random.default_rng(0).random((5, 3))
    expected, found = np.ones(5), np.ones(5)
    plain(ELEMENTS)(expected, x)
    kernel(found, x)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_booleans_and_arrays_without_axes():
    text = "def kernel(out, x, y):\n for i in range(x.size):\n  out[i] = x[i] > y[()]\n  y[()] += 1.0\n"
    kernel = compiled(text, FLAGS, LINE, SCALAR)
    out, y = np.zeros(4, bool), np.array(0.0)
    kernel(out, np.array([0.5, 0.5, 2.5, 3.0]), y)
    assert out.tolist() == [True, False, True, False]
    assert y == 4.0


def test_references_are_counted_where_memory_is_taken():
    """Nothing of what a kernel allocates is left when it has run, and nothing is given up before."""
    kernel = compiled(OWN_MEMORY, LINE, TABLE)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        kernel(np.ones(5), np.ones((5, 3)))
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == 5
    assert after.free - before.free == 5
    assert "NRT_" in kernel.assembly


@pytest.mark.parametrize("source", [ELEMENTS, LATEST])
def test_references_are_not_counted_elsewhere(source):
    assert "NRT_" not in compiled(source, LINE, STRIDED_TABLE).assembly


def test_errors_of_types_are_those_of_numba():
    for _ in range(2):  # what failed once is not remembered
        with pytest.raises(CompileError, match="No implementation of function"):
            compiled("def kernel(out, x):\n out[0] = x * out\n", LINE, types.none)


class Counting:
    """A context of types that counts what it is asked."""

    def __init__(self) -> None:
        self.original = cpu_target.typing_context
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    def resolve_function_type(self, *arguments: Any) -> Any:
        self.asked += 1
        return self.original.resolve_function_type(*arguments)


def test_types_are_asked_for_once():
    compiled(ELEMENTS, LINE, TABLE)  # numba fills its tables
    counting = Counting()
    context = RememberingTypes(counting)
    product = context.resolve_value_type(np.multiply)
    for arguments, asked in [((types.float64,) * 2, 1), ((types.float64, types.float32), 2)]:
        for _ in range(3):
            found = context.resolve_function_type(product, arguments, {})
            assert found.return_type == types.float64
            assert counting.asked == asked
    for _ in range(3):
        assert context.resolve_setitem(LINE, types.int64, types.float64).args[0] == LINE
        assert context.resolve_static_getitem(types.UniTuple(types.int64, 2), 1).return_type == types.int64
    assert counting.asked == 4


def test_literals_are_not_kept():
    counting = Counting()
    context = RememberingTypes(counting)
    function = context.resolve_value_type(range)
    for _ in range(2):
        context.resolve_function_type(function, (types.literal(3),), {})
    assert counting.asked == 2
