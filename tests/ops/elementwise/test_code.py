"""The scalar code of every op, read as Python over NumPy scalars, against the op's NumPy function."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from esat.ops.elementwise.records.code import (
    CODE_DTYPES,
    SCALAR_HELPERS,
    SCIPY_FUNCTIONS,
    TEMPLATE_NAMES,
    VECTOR_MATH,
    Code,
    anything,
    expression,
    floats,
    integers,
    numbers,
)
from esat.ops.table import ELEMENTWISE

from .samples import all_ops, run, special_values


def _pow(x, y):
    # A scalar exponent takes NumPy's path through sqrt, which differs for (-inf) ** 0.5.
    return np.power(np.array([x, x]), np.array([y, y]))[0]


_RENAMED = {
    "pow": _pow, "integer_power": np.power, "shift_left": np.left_shift, "shift_right": np.right_shift,
    "floor_divide": np.floor_divide, "remainder": np.remainder,
    "wrapping_add": np.add, "wrapping_sub": np.subtract, "wrapping_mul": np.multiply,
    "fused_multiply_add": lambda factor, other, addend: factor * other + addend,
    "multiply_add": lambda factor, other, addend: factor * other + addend,
    "select": lambda condition, first, second: first if condition else second,
}  # fmt: skip
# Composites round differently from NumPy's one call.
TOLERANCE = {
    "log_cosh": 4,
    "logaddexp2": 4,
    "hypot": 4,
    "ndtr": 8,
    "xlogy": 2,
    "pow": 2,
    "cosm1": 8,
    "rad2deg": 2,
    "deg2rad": 2,
}


def namespace() -> dict[str, object]:
    import scipy.special

    from .samples import BY_NAME

    found: dict[str, object] = {}
    for name in TEMPLATE_NAMES:
        if name in _RENAMED:
            found[name] = _RENAMED[name]
        elif name in SCIPY_FUNCTIONS:
            found[name] = getattr(scipy.special, name)
        elif name in ("sigmoid", "softplus", "log1mexp", "log_cosh"):
            found[name] = lambda x, name=name: BY_NAME[name].numpy(np.asarray(x))[()]
        else:
            found[name] = getattr(np, name, None) or getattr(scipy.special, name)
    found["bool"] = np.bool_
    return found


@all_ops
def test_code_computes_what_numpy_does(op):
    names = namespace()
    for dtype in CODE_DTYPES:
        source = op.source(dtype)
        if source is None:
            continue
        if op.admits(dtype) != dtype and op.typing != "fill":
            assert op.name in ("floor", "ceil", "trunc"), "code for a dtype that operands never have"
            continue  # NumPy 2.0 casts integers to floats there
        values = special_values(dtype)[::2] if op.arity == 3 else special_values(dtype)
        columns = [np.array([False, True]) if typing == "bool" else values for typing in op.operand_typing]
        points = list(itertools.product(*columns))
        operands = [np.array(column, values.dtype) for column in zip(*points, strict=True)]
        operands = [
            o.astype(t) if t == "bool" else o for o, t in zip(operands, op.operand_typing, strict=True)
        ]
        (expected,) = op.perform(operands)
        compiled = compile(source.format(*[f"x{i}" for i in range(op.arity)]), op.name, "eval")
        with np.errstate(all="ignore"):
            scalars = [
                eval(compiled, names, {f"x{i}": v for i, v in enumerate(point)})
                for point in zip(*operands, strict=True)
            ]
            actual = np.array([np.asarray(scalar).astype(expected.dtype) for scalar in scalars])
        if expected.dtype.kind == "f":
            ulps = TOLERANCE.get(op.name, 0) * np.finfo(dtype).eps
            # The terms of log2(2**x + 2**y) cancel near zero, in NumPy's own function too.
            absolute = np.finfo(dtype).eps if op.name == "logaddexp2" else 0
            np.testing.assert_allclose(
                actual, expected, rtol=ulps, atol=absolute, err_msg=f"{op.name} {dtype}"
            )
        else:
            np.testing.assert_array_equal(actual, expected, err_msg=f"{op.name} {dtype}")


def test_templates_use_the_names_they_may():
    used: set[str] = set()
    for op in ELEMENTWISE:
        for dtype in CODE_DTYPES:
            used |= set(re.findall(r"[A-Za-z_]\w*", op.source(dtype) or ""))
    used -= {"True", "False", "not", "and", "or", "e"}
    assert used <= TEMPLATE_NAMES, sorted(used - TEMPLATE_NAMES)
    used |= {"fused_multiply_add", "multiply_add"}  # of powers, and of complex numbers
    unused = (VECTOR_MATH | SCIPY_FUNCTIONS.keys() | SCALAR_HELPERS) - used
    assert not unused, sorted(unused)


@all_ops
def test_no_code_for_dtypes_without_kernels(op):
    assert op.source("float16") is None
    assert op.source("complex128") is None


def test_templates_by_kind():
    code = Code("a", "b", "c", "d")
    assert [code.template(d) for d in ("float32", "int8", "uint64", "bool")] == ["a", "b", "c", "d"]
    assert floats("a") == Code(floating="a")
    assert integers("a", boolean="b") == Code(None, "a", "a", "b")
    assert numbers("a", floating="b") == Code("b", "a", "a")
    assert anything("a") == Code("a", "a", "a", "a")


@pytest.mark.parametrize(
    ("template", "dtype", "source"),
    [
        ("const(1) / {0}", "float32", "float32(1) / {0}"),
        ("const(1e-3) + const(-2.5)", "float64", "float64(1e-3) + float64(-2.5)"),
        ("{0} + {1}", "int8", "{0} + {1}"),
    ],
)
def test_literals(template, dtype, source):
    assert expression(template, dtype) == source


def test_literals_do_not_widen():
    from .samples import BY_NAME

    assert run(BY_NAME["reciprocal"], np.ones(2, "float32")).dtype == "float32"
    assert BY_NAME["reciprocal"].source("float32") == "float32(1) / {0}"
