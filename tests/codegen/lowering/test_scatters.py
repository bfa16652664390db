"""Writes to parts that index arrays choose, as statements of kernels."""

import numpy as np
import pytest
from codegen.kernel_cases import check, group_of, op, run, variable
from codegen.targets import HOST

from esat.codegen import (
    can_fuse,
    compile_kernel,
    lower,
    overwritable,
    overwrite,
    supported,
    without_copies,
)
from esat.codegen.kernel.loop_ir import Check, Loop, Scatter, Store, walk
from esat.codegen.kernel.partition import partition
from esat.graph import Variable
from esat.graph.identity import place_of
from esat.ops.index.advanced import AdvancedIncSubtensor, AdvancedSetSubtensor, advanced_subtensor
from esat.ops.reduction import SUM, reduce

RNG = np.random.default_rng(6)


def read(array: Variable, *index: object) -> Variable:
    return advanced_subtensor(array, index)


def added(array: Variable, value: object, *index: object) -> Variable:
    node = read(array, *index).owner
    return AdvancedIncSubtensor(node.op.entries)(array, value, *node.inputs[1:])


def put(array: Variable, value: object, *index: object) -> Variable:
    node = read(array, *index).owner
    return AdvancedSetSubtensor(node.op.entries)(array, value, *node.inputs[1:])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint16", "bool"])
def test_duplicates_are_added_and_the_last_value_stays(dtype: str) -> None:
    x, i, y = variable(dtype, None), variable("int64", None), variable(dtype, None)
    data = [RNG.integers(0, 2, 4).astype(dtype), RNG.integers(-4, 4, 50)]
    data.append((RNG.standard_normal(50) * 3).astype("int64").astype(dtype))
    check([added(x, y, i), put(x, y, i)], [x, i, y], data)


def test_parts_lie_as_numpy_has_them() -> None:
    x = variable("float64", None, None, None)
    i, j = variable("int64", None, 1), variable("int32", None)
    every = slice(None)
    indices = [(i, j), (every, i, j), (i, every, j), (0, every, j), (j, None, 1)]
    data = [RNG.standard_normal((3, 4, 3)), np.array([[0], [-2]]), np.array([1, 1, -1], np.int32)]
    for number, index in enumerate(indices):
        shape = data[0][
            tuple(
                data[(index_ is j and 2) or 1] if isinstance(index_, Variable) else index_ for index_ in index
            )
        ].shape
        y = variable("float64", *[None] * len(shape))
        value = RNG.standard_normal(shape)
        make = added if number % 2 else put
        check([make(x, y, *index)], [x, i, j, y], [*data, value])


def test_values_are_stretched() -> None:
    x, i = variable("float64", None, None), variable("int64", None)
    row, k = variable("float64", None), variable("float64")
    data = [RNG.standard_normal((5, 4)), np.array([0, -1, 0]), RNG.standard_normal(4), np.array(0.5)]
    check([added(x, row, i), added(x, k, i), put(x, k, slice(None), i)], [x, i, row, k], data)


def test_values_are_computed_where_they_are_written() -> None:
    x, y, i = variable("float64", None, None), variable("float64", None, None), variable("int64", None)
    value = op("mul", read(y, i), 2.0)
    group = group_of([added(x, value, i)], [x, y, i])
    assert can_fuse(group.nodes)
    check(list(group.outputs), [x, y, i], [np.zeros((5, 3)), RNG.standard_normal((5, 3)), np.arange(-5, 5)])
    assert not can_fuse(group_of([added(x, op("exp", read(y, i)), i)], [x, y, i]).nodes)
    assert not can_fuse(group_of([added(op("neg", x), y, i)], [x, y, i]).nodes)
    assert not can_fuse(group_of([reduce(SUM, added(x, y, i), 0)], [x, y, i]).nodes)


@pytest.mark.parametrize("index_dtype", ["int64", "int32", "uint8"])
def test_what_is_written_is_stored_in_the_same_loop(index_dtype: str) -> None:
    """Reads, results and writes by one index: it is checked once, and read once more."""
    x, z, y = (variable("float64", None) for _ in range(3))
    i = variable(index_dtype, None)
    value = op("sub", y, op("mul", read(x, i), read(z, i)))
    twice = op("mul", value, 2.0)
    outputs = [value, twice, added(x, twice, i), put(z, value, i)]
    kernel = lower(group_of(outputs, [x, z, y, i]))
    loops = [one for one in kernel.body if isinstance(one, Loop)]
    (writing,) = [loop for loop in loops if any(isinstance(one, Scatter) for one in loop.body)]
    assert sum(isinstance(one, Store) for one in writing.body) == 2
    assert sum(bool(loop.accumulators) for loop in loops) == 1
    lowest = 0 if index_dtype == "uint8" else -5
    for low in {0, lowest}:
        places = RNG.integers(low, 5, 40).astype(index_dtype)
        data = [RNG.standard_normal(7), RNG.standard_normal(5), RNG.standard_normal(40), places]
        check(outputs, [x, z, y, i], data)
    for wrong in (5, 6) if index_dtype == "uint8" else (5, 6, -6, -7):  # of seven elements, and of five
        places[-1] = wrong
        results = [np.full(size, 99.0) for size in (40, 40, 7, 5)]
        given = dict(zip((x, z, y, i), data, strict=True))
        group = group_of(outputs, [x, z, y, i])
        with pytest.raises(IndexError):
            compile_kernel(kernel, HOST)(*results, *(given[group.inputs[place]] for place in kernel.operands))
        assert all((one == 99).all() for one in results)


def test_a_dying_array_is_written_in_place() -> None:
    x, i, y = variable("float64", None, None), variable("int64", None), variable("float64", None, None)
    group = group_of([added(x, y, i)], [x, y, i])
    kernel = lower(group)
    assert (0, kernel.operands.index(0)) in overwritable(kernel)
    assert all(kernel.operands[place] == 0 for _, place in overwritable(kernel))
    inside = without_copies(overwrite(kernel, 0, kernel.operands.index(0)))
    assert not any(isinstance(one, Store) for one in walk(inside.body))
    held, value, places = RNG.standard_normal((4, 3)), RNG.standard_normal((6, 3)), RNG.integers(-4, 4, 6)
    wanted = held.copy()
    np.add.at(wanted, places, value)
    given = {x: held, i: places, y: value}
    compile_kernel(inside, HOST)(held, *(given[group.inputs[place]] for place in inside.operands))
    np.testing.assert_array_equal(held, wanted)


def test_several_arrays_are_written_in_place() -> None:
    x, y, i = variable("float64", None), variable("float64", None), variable("int64", None)
    v = variable("float64", None)
    group = group_of([added(x, v, i), added(y, op("mul", v, v), i)], [x, y, i, v])
    kernel = lower(group)
    for number in range(2):
        kernel = overwrite(kernel, number, kernel.operands.index(place_of((x, y)[number], group.inputs)))
    kernel = without_copies(kernel)
    assert sum(isinstance(one, Scatter) for one in walk(kernel.body)) == 2
    held, values, places = np.zeros((2, 5)), RNG.standard_normal(9), RNG.integers(-5, 5, 9)
    given = {i: places, v: values}
    compile_kernel(kernel, HOST)(*held, *(given[group.inputs[place]] for place in kernel.operands))
    for array, power in zip(held, (1, 2), strict=True):
        np.testing.assert_allclose(array, np.bincount(places % 5, values**power, minlength=5), rtol=1e-13)


def test_what_does_not_fit_is_found_before_anything_is_written() -> None:
    x, i, y = variable("float64", None, None), variable("int64", None), variable("float64", None, None)
    group = group_of([put(x, y, i)], [x, y, i])
    kernel = lower(group)
    assert sum(isinstance(one, Check) for one in kernel.body) == 3
    compiled, target = compile_kernel(kernel, HOST), np.zeros((4, 3))
    good = {x: target, i: np.zeros(6, np.int64), y: np.ones((6, 3))}
    for wrong in ({i: np.array([0, 1, 2, 3, 0, 4])}, {y: np.ones((5, 3))}, {y: np.ones((6, 2))}):
        output = np.full((4, 3), 99.0)
        given = good | wrong
        with pytest.raises(IndexError):
            compiled(output, *(given[group.inputs[place]] for place in kernel.operands))
        assert (output == 99).all()
    np.testing.assert_array_equal(run(group, good)[0], [[1] * 3, [0] * 3, [0] * 3, [0] * 3])


def test_parts_are_written_by_one_thread() -> None:
    x, i, y = variable("float64", None), variable("int64", None), variable("float64", None)
    parts = partition(lower(group_of([added(x, y, i)], [x, y, i])))
    scattering = [one for one in parts if isinstance(one, Loop)]
    assert len(scattering) == 1
    assert any(isinstance(one, Scatter) for one in scattering[0].body)


def test_what_kernels_do_not_write() -> None:
    x, y, mask = variable("float64", None), variable("float64", None), variable("bool", None)
    i = variable("int64", None)
    assert supported(added(x, y, i).owner)
    assert not supported(put(x, y, mask).owner)
    assert not supported(AdvancedSetSubtensor(read(x, i).owner.op.entries, inplace=True)(x, y, i).owner)
