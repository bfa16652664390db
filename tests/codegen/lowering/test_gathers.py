"""Reads by index arrays as statements of kernels."""

from dataclasses import replace

import numpy as np
import pytest
from codegen.kernel_cases import check, group_of, op, run, variable
from codegen.targets import HOST

from esat.codegen import can_fuse, compile_kernel, lower, overwritable, supported
from esat.codegen.kernel.loop_ir import At, Check, LoadAt, walk
from esat.codegen.lowering.verify_kernel import verify
from esat.errors import CompileError
from esat.graph import Variable
from esat.graph.constants import constant
from esat.ops.index.advanced import advanced_subtensor
from esat.ops.reduction import MAX, SUM, reduce

RNG = np.random.default_rng(5)


def read(array: Variable, *index: object) -> Variable:
    return advanced_subtensor(array, index)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "uint64"])
@pytest.mark.parametrize("index_dtype", ["int64", "int8", "uint16", "uint64"])
def test_dtypes(dtype: str, index_dtype: str) -> None:
    x, i = variable(dtype, None), variable(index_dtype, None)
    places = np.array([3, 0, 3, 1] if index_dtype.startswith("u") else [3, 0, -1, -4], index_dtype)
    check([read(x, i)], [x, i], [RNG.integers(0, 2, 4).astype(dtype), places])


def test_index_arrays_are_broadcast_and_placed_as_numpy_places_them() -> None:
    x = variable("float64", None, None, None, None)
    i, j = variable("int64", None, 1), variable("int32", None)
    every = slice(None)
    indices = [(i, j), (every, i, j), (i, every, j), (0, every, j), (every, every, None, j, i), (j, None, 1)]
    data = [RNG.standard_normal((3, 4, 2, 5)), np.array([[0], [-2]]), np.array([1, 1, -1], np.int32)]
    check([read(x, *index) for index in indices[:4]], [x, i, j], [*data[:2], data[2] % 2])
    check([read(x, *index) for index in indices[4:]], [x, i, j], [*data[:2], data[2] % 2])


@pytest.mark.parametrize("layout", ["C", "A"])
def test_parts_are_computed_with_and_reduced_where_they_are_read(layout: str) -> None:
    x, i, y = variable("float64", None, None), variable("int64", None), variable("float64", None, None)
    part = read(x, i)
    data = [RNG.standard_normal((6, 7)), RNG.integers(-6, 6, 300), RNG.standard_normal((300, 7))]
    for output in (
        op("exp", op("mul", part, y)),
        reduce(SUM, op("mul", part, y), 1),
        reduce(SUM, part, 0),
        reduce(SUM, op("mul", part, y)),
        op("sub", part, reduce(MAX, part, 1, keepdims=True)),
    ):
        check([output], [x, i, y], data, rtol=1e-11, atol=1e-11, layout=layout)


def test_places_are_computed_where_they_are_used() -> None:
    x, i, k = variable("float32", None), variable("int64", None), variable("int64")
    wanted = op("add", read(x, op("mul", i, 2)), read(x, op("add", i, k)))
    check([wanted], [x, i, k], [RNG.standard_normal(9).astype("f4"), np.array([0, 3, -2, 4]), np.array(1)])


@pytest.mark.parametrize("outside", [4, -5, 2**40])
def test_a_kernel_leaves_before_it_writes(outside: int) -> None:
    x, i = variable("float64", 4), variable("int64", None)
    group = group_of([op("add", read(x, i), 1.0), op("add", i, 1)], [x, i])
    good = {x: np.arange(4.0), i: np.zeros(300, np.int64)}
    run(group, good)
    places = good[i].copy()
    places[299] = outside
    kernel = lower(group)
    outputs = [np.full(300, 99.0), np.full(300, 99)]
    with pytest.raises(IndexError):
        compile_kernel(kernel, HOST)(*outputs, good[x], places)
    assert (outputs[0] == 99).all()
    assert (outputs[1] == 99).all()


def test_constant_places_are_checked_when_they_are_compiled() -> None:
    static, dynamic = variable("float64", 4), variable("float64", None)
    places = constant(np.array([3, 0, -4]))
    inside = lower(group_of([read(static, places)], [static]))
    assert not any(isinstance(one, Check) for one in inside.body)
    unknown = lower(group_of([read(dynamic, places)], [dynamic]))
    assert sum(isinstance(one, Check) for one in unknown.body) == 1
    check([read(static, places)], [static], [np.arange(4.0)])
    check([read(dynamic, places)], [dynamic], [np.arange(5.0)])


def test_one_index_is_checked_and_read_once() -> None:
    x, y, i = variable("float64", None), variable("float64", None), variable("int64", None)
    kernel = lower(group_of([op("mul", read(x, i), read(x, i)), op("add", read(x, i), 1.0)], [x, i]))
    assert sum(isinstance(one, LoadAt) for one in walk(kernel.body)) == 1
    assert sum(isinstance(one, Check) for one in kernel.body) == 1
    both = lower(group_of([op("mul", read(x, i), read(y, i))], [x, y, i]))
    assert sum(isinstance(one, Check) for one in both.body) == 1  # within the shorter of the two


def test_what_kernels_do_not_read() -> None:
    x, i, mask = variable("float64", None), variable("int64", None), variable("bool", None)
    h = variable("float16", None)
    matrix = variable("float64", None, None)
    for part in (read(x, mask), read(h, i), read(matrix, slice(1, None), i)):
        assert not supported(part.owner)
    computed = op("exp", x)
    part = read(computed, i)
    assert supported(part.owner)
    assert not can_fuse([computed.owner, part.owner])


def test_what_is_read_anywhere_is_not_overwritten() -> None:
    x, i = variable("int64", None), variable("int64", None)
    kernel = lower(group_of([op("add", read(x, i), 1)], [x, i]))
    assert [kernel.operands[place] for _, place in overwritable(kernel)] == [1]


def test_malformed_kernels_are_refused() -> None:
    x, i = variable("float64", None), variable("int64", None)
    kernel = lower(group_of([read(x, i)], [x, i]))
    verify(kernel)
    *checks, check_, loop = kernel.body
    with pytest.raises(CompileError, match="behind a store"):
        verify(replace(kernel, body=(*checks, loop, check_)))
    loads = [one for one in loop.body if isinstance(one, LoadAt)]
    wrong = replace(loads[0], index=(At(loads[0].value),))
    with pytest.raises(CompileError, match="before it is defined"):
        verify(replace(kernel, body=(*checks, replace(loop, body=(wrong, *loop.body)))))
