"""Arrays with the values that matter, by dtype, and NumPy's function for every op."""

from __future__ import annotations

import numpy as np
import pytest

from esat.graph.algorithms.evaluate import evaluate
from esat.graph.op import Array
from esat.graph.types import DTYPES, TensorType
from esat.graph.variables import Variable
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.table import ELEMENTWISE, register_all

register_all()

BY_NAME: dict[str, Elementwise] = {op.name: op for op in ELEMENTWISE}
all_ops = pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)

OTHER_NAMES = {
    "sub": "subtract", "mul": "multiply", "div": "true_divide", "floor_div": "floor_divide", "mod": "mod",
    "neg": "negative", "sqr": "square", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal", "pow": "power", "switch": "where",
}  # fmt: skip
OTHERWISE = ("fill", "softplus", "log1mexp", "powm1")
"""Ops that differ from what NumPy or SciPy, or some version of it, has of their name."""
REAL_ONLY = frozenset(["jv", "yv", "iv", "ive", "kv", "kve"])
"""Functions of which SciPy has others of a real order and a complex argument."""
ONCE = ("gammainc_by_order", "betainc_by_first", "betainc_by_second")
"""Derivatives that have none themselves."""
TESTED_APART = ("fill", "powm1", "compoundm1", "expdiff", *ONCE)
"""Ops of our own whose tests are not generated: their own definition is no better in a wider format."""

_RANGES: dict[str, tuple[tuple[float, float], ...]] = {
    "log1mexp": ((-3, -0.2),),
    "erfcinv": ((0.1, 1.9),),
    "log1p": ((-0.8, 3),),
    "gamma": ((0.3, 3),),
    "gammaln": ((0.3, 3),),
    "loggamma": ((0.3, 3),),
    "beta": ((0.3, 3), (0.3, 3)),
    "digamma": ((0.5, 3),),
    "polygamma": ((2, 2), (0.5, 3)),
    "betaincinv": ((0.5, 3), (0.5, 3), (0.1, 0.9)),
    "gammaincinv": ((0.5, 3), (0.1, 0.9)),
    "gammainccinv": ((0.5, 3), (0.1, 0.9)),
    "pow": ((0.3, 2), (-2, 2)),
    "powm1": ((0.3, 2), (-2, 2)),
    "compoundm1": ((-0.7, 1), (-2, 2)),
    "xlogy": ((-2, 2), (0.3, 3)),
    "reciprocal": ((0.4, 3),),
    "div": ((-2, 2), (0.5, 3)),
    "mod": ((3.1, 3.8), (2.1, 2.9)),
    "fmod": ((-3.8, -3.1), (2.1, 2.9)),
    "clip": ((-2, 2), (-1.1, -0.9), (0.9, 1.1)),
    "cbrt": ((0.3, 2),),
    "copysign": ((0.3, 2), (-2, -1)),
    "abs": ((0.2, 2),),
    "tan": ((-1.2, 1.2),),
    "arctan2": ((0.3, 2), (-2, 2)),
}
"""Where ops with poles or kinks inside of a range, or with operands of several kinds, are smooth."""
_TRIED = ((-2.0, 2.0), (0.2, 3.0), (1.2, 4.0), (-0.9, 0.9), (0.1, 0.9))


def ranges(op: Elementwise, first: tuple[tuple[float, float], ...] = ()) -> tuple[tuple[float, float], ...]:
    """Where the op is smooth, for each operand: the first range in which it is finite everywhere."""
    if op.name in _RANGES:
        return _RANGES[op.name]
    for low, high in (*first, *_TRIED):
        line = np.linspace(low, high, 50)
        finite = op.admits("float64") is None or np.isfinite(quietly(op.numpy, *[line] * op.arity)).all()
        if finite:
            return ((low, high),) * op.arity
    raise AssertionError(f"{op.name} is finite in none of {_TRIED}: say in _RANGES where it is smooth")


def reference(op: Elementwise):
    """What NumPy or SciPy calls the op, found apart from its record; None for ops of our own."""
    import scipy.special

    if op.name in OTHERWISE:
        return None
    name = OTHER_NAMES.get(op.name, op.name)
    numpys, scipys = getattr(np, name, None), getattr(scipy.special, name, None)
    if numpys is None or (isinstance(scipys, np.ufunc) and not isinstance(numpys, np.ufunc)):
        return None if scipys is None else lambda *operands: _scipy(op, operands)
    return numpys


def _scipy(op: Elementwise, operands):
    """SciPy's function. Its polygamma computes parts in the dtype of the order: it is asked in one dtype."""
    import scipy.special

    if op.name == "polygamma" and any(operand.dtype != np.float32 for operand in operands):
        operands = [operand.astype(np.float64, casting="safe") for operand in operands]
    return getattr(scipy.special, op.name)(*operands)


def special_values(dtype: str) -> Array:
    """A vector of the values where functions of this dtype go wrong."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        limits = np.iinfo(dtype)
        values = {
            limits.min,
            limits.min + 1,
            limits.max // 2,
            limits.max - 1,
            limits.max,
            0,
            1,
            2,
            3,
            7,
            31,
            64,
        }
        values |= {-1, -2, -7} if kind == "i" else set()
        return np.array(sorted(values), dtype)
    if kind == "f":
        limits = np.finfo(dtype)
        magnitudes = [0, limits.smallest_subnormal, limits.tiny, limits.eps, 0.3, 0.5, 1, 1.5, 2, 2.5, 3, 7]
        magnitudes += [20.25, 100, limits.max, np.inf]
        return np.array([np.nan, *magnitudes, *(-value for value in map(float, magnitudes))], dtype)
    parts = (-np.inf, -1.5, -0.0, 0.0, 0.5, 2.0, np.nan)
    return np.array([complex(real, imaginary) for real in parts for imaginary in parts], dtype)


def variable(array: Array, known_sizes: bool = True) -> Variable:
    """An input for the array: of its shape, or with unknown sizes where they are not 1."""
    shape = array.shape if known_sizes else tuple(1 if size == 1 else None for size in array.shape)
    return Variable(TensorType(array.dtype, shape=shape))


def run(op, *operands) -> Array:
    """The op applied to arrays as inputs and to Python numbers as they are, evaluated with NumPy."""
    inputs = [variable(value) if isinstance(value, np.ndarray) else value for value in operands]
    output = op(*inputs)
    result = evaluate(
        output, {v: a for v, a in zip(inputs, operands, strict=True) if isinstance(v, Variable)}
    )
    assert result.dtype == output.tensor_type.numpy_dtype
    assert output.tensor_type.admits_shape(result.shape)
    return result


def quietly(function, *operands):
    """Call without floating-point warnings; a TypeError is returned, not raised."""
    with np.errstate(all="ignore"):
        try:
            return np.asarray(function(*operands))
        except (TypeError, OverflowError) as error:
            return error


def assert_same(actual: Array, expected: Array, context: object) -> None:
    """Equal dtype, shape and values, NaN to NaN."""
    assert actual.dtype == expected.dtype, (context, actual.dtype, expected.dtype)
    np.testing.assert_array_equal(actual, expected, err_msg=str(context))


__all__ = [
    "BY_NAME",
    "DTYPES",
    "all_ops",
    "assert_same",
    "quietly",
    "ranges",
    "reference",
    "run",
    "special_values",
    "variable",
]
