"""Functions that networks are built of, beyond those of NumPy; each composed of ops that are stable."""

from __future__ import annotations

import math
from typing import Any

from esat.errors import DtypeError, describe
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import normalize_dtype
from esat.graph.variables import Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.cast import cast
from esat.ops.inference.promotion import resolve_dtype, special

__all__ = ["elu", "gelu", "leaky_relu", "log_sigmoid", "logit", "one_hot", "relu", "silu", "softsign"]


def relu(x: Any) -> Variable:
    """``maximum(x, 0)``."""
    return _apply("maximum", x, 0)


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Variable:
    """``x`` where it is not negative, ``negative_slope * x`` where it is."""
    variable = as_variable(x)
    return _apply("switch", _apply("ge", variable, 0), variable, _apply("mul", variable, negative_slope))


def elu(x: Any, alpha: float = 1.0) -> Variable:
    """``x`` where it is positive, ``alpha * (exp(x) - 1)`` where it is not.

    Source: D.-A. Clevert, T. Unterthiner, S. Hochreiter, "Fast and accurate deep network learning by
    exponential linear units", 2016.
    """
    variable = as_variable(x)
    # Of positive numbers the exponential is not used, and must not overflow: its gradient would be NaN.
    below = _apply("mul", _apply("expm1", _apply("minimum", variable, 0)), alpha)
    return _apply("switch", _apply("gt", variable, 0), variable, below)


def silu(x: Any) -> Variable:
    """``x * sigmoid(x)``, also called swish."""
    variable = as_variable(x)
    return _apply("mul", variable, _apply("sigmoid", variable))


def gelu(x: Any, approximate: bool = False) -> Variable:
    """``x * ndtr(x)``, or its approximation by tanh.

    Source: D. Hendrycks and K. Gimpel, "Gaussian error linear units", 2016.
    """
    variable = as_variable(x)
    if not approximate:
        share = _apply("ndtr", variable)
        half = variable.tensor_type.dtype == "float16"
        return _apply("mul", variable, cast(share, "float16") if half else share)
    inner = math.sqrt(2 / math.pi) * (variable + 0.044715 * variable**3)
    return _apply("mul", variable, 0.5 * (1 + _apply("tanh", inner)))


def softsign(x: Any) -> Variable:
    """``x / (1 + abs(x))``."""
    variable = as_variable(x)
    return _apply("div", variable, 1 + _apply("abs", variable))


def log_sigmoid(x: Any) -> Variable:
    """``log(sigmoid(x))``, without overflow: ``-softplus(-x)``."""
    return _apply("neg", _apply("softplus", _apply("neg", as_variable(x))))


def logit(x: Any) -> Variable:
    """The inverse of sigmoid, ``log(x / (1 - x))``, in the dtypes of SciPy, which has no float16."""
    variable = as_variable(x)
    variable = cast(variable, resolve_dtype("logit", special("logit"), (variable.tensor_type.numpy_dtype,)))
    return _apply("sub", _apply("log", variable), _apply("log1p", _apply("neg", variable)))


def one_hot(labels: Any, num_classes: Any, dtype: Any = "float64") -> Variable:
    """For each integer a vector with 1 at its place and zeros elsewhere, along a new last axis.

    Parameters
    ----------
    labels
        Integers; those that are no place give zeros only.
    num_classes
        The length of the vectors.
    dtype
        Of the result.

    Raises
    ------
    DtypeError
        When the labels are no integers.
    """
    variable = as_variable(labels)
    if variable.tensor_type.kind not in "iu":
        raise DtypeError(describe("one_hot", [variable.type], "labels are integers"))
    column = dimshuffle(variable, (*range(variable.tensor_type.ndim), "x"))
    return cast(_apply("eq", column, arange(num_classes)), normalize_dtype(dtype))


def _apply(name: str, *operands: Any) -> Variable:
    result: Variable = op_named(name)(*operands)
    return result
