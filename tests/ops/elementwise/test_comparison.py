"""Comparison of integers that have no common dtype."""

from __future__ import annotations

import numpy as np
import pytest

from esat.errors import DtypeError

from .samples import BY_NAME, DTYPES, assert_same, quietly, reference, run, special_values

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
INTEGERS = [dtype for dtype in DTYPES if np.dtype(dtype).kind in "iu"]
BOUNDS = (2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, 300, -1, -200, -(2**63), -(2**63) - 1, -(10**30))


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("signed", ["int8", "int16", "int32", "int64"])
def test_signed_against_uint64(name, signed):
    op = BY_NAME[name]
    left, right = special_values(signed)[:, None], special_values("uint64")
    exact = np.array([[reference(op)(int(a), int(b)) for b in right] for (a,) in left])
    assert_same(run(op, left, right), exact, name)
    exact = np.array([[reference(op)(int(b), int(a)) for b in right] for (a,) in left])
    assert_same(run(op, right, left), exact, name)


def test_float64_would_lose_the_difference():
    left, right = np.array([2**63 - 1]), np.array([2**63], "uint64")
    assert float(left[0]) == float(right[0])
    assert run(BY_NAME["lt"], left, right)
    assert not run(BY_NAME["eq"], left, right)


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64"])
def test_python_integers_of_any_size(name, dtype):
    op = BY_NAME[name]
    values = special_values(dtype)
    for bound in BOUNDS:
        for operands in ((values, bound), (bound, values)):
            assert_same(run(op, *operands), quietly(reference(op), *operands), (name, dtype, bound))


def test_a_bool_against_an_integer_beyond_int64():
    with pytest.raises(DtypeError, match=r"lt\(.*does not fit int64"):
        run(BY_NAME["lt"], np.array([True]), 10**30)


@pytest.mark.parametrize("name", COMPARISONS)
def test_operands_have_one_dtype(name):
    left, right = np.array([1]), np.array([1], "uint64")
    node = BY_NAME[name].make_node(left, right)
    assert [operand.tensor_type.dtype for operand in node.inputs] == ["uint64", "uint64"]
    assert node.op is BY_NAME[name]
