"""Python's operators and the methods of Variables where an operand is a sparse matrix.

They mean what they mean for SciPy's sparse arrays: ``@`` is the product of matrices, ``*`` and ``/`` go
element by element and keep what is stored, ``+`` and ``-`` give a dense matrix unless both are sparse. A
result of which no element need be 0 (``x + 1``, ``2 / x``, ``x > 0``) has to be asked for as a dense one.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from esat.errors import GraphError, describe
from esat.frontend.linear_algebra import sparse
from esat.graph.calls.callers import user_line
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Constant, Variable


def sparse_operation(name: str, *operands: Any, **options: Any) -> Variable:
    """Apply an operator, a method or a ufunc of NumPy's to operands of which one is sparse at least.

    Parameters
    ----------
    name
        As esat's function is called, or the ufunc.
    operands
        Variables, sparse matrices of SciPy's, and what makes dense constants.

    Raises
    ------
    GraphError
        Where sparse matrices have no such operation, or its result would not be sparse; the message names
        the user's line.
    """
    operation = _OPERATIONS.get(name)
    result: Any = NotImplemented if operation is None else operation(*operands, **options)
    if isinstance(result, Variable):
        return result
    found = sparse.as_sparse(next(operand for operand in operands if sparse.is_sparse(operand)))
    reason = (
        f"{found} is a {found.type}, not a tensor; what sparse matrices have is in esat.sparse, "
        f"dense_from_sparse among it, and structured, which applies a function to what is stored"
    )
    raise GraphError(describe(name, map(_type_of, operands), reason, user_line()))


def _type_of(operand: Any) -> Any:
    return operand.type if isinstance(operand, Variable) else type(operand).__name__


def _sum_of(function: Callable[[Any, Any], Variable]) -> Callable[[Any, Any], Any]:
    """``+`` or ``-``: of a sparse matrix and a scalar they would be dense, though nothing asked for that."""

    def apply(left: Any, right: Any) -> Any:
        for operand in (left, right):
            if not sparse.is_sparse(operand) and not as_variable(operand).tensor_type.ndim:
                return NotImplemented
        return function(left, right)

    return apply


def _divide(left: Any, right: Any) -> Any:
    if not sparse.is_sparse(left) or sparse.is_sparse(right):
        return NotImplemented
    return sparse.div(left, right)


def _power(matrix: Any, exponent: Any) -> Any:
    """Only a positive power of 0 is known to be 0."""
    number = exponent.data if isinstance(exponent, Constant) else exponent
    if isinstance(number, np.ndarray) and not number.ndim:
        number = number[()]
    if not isinstance(number, Real) or not float(number) > 0:
        return NotImplemented
    return sparse.structured(lambda values: values**exponent, matrix)


def _of_values(name: str) -> Callable[[Any], Variable]:
    """An elementwise op of one operand that makes 0 of 0."""
    return lambda matrix: sparse.structured(op_named(name), matrix)


def _transpose(matrix: Any, axes: Any = None) -> Any:
    return sparse.transpose(matrix) if axes is None else NotImplemented


def _sum(matrix: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    if dtype is not None or keepdims or not isinstance(axis, int | None):
        return NotImplemented
    return sparse.sum(matrix, axis)


def _cast(matrix: Any, dtype: Any) -> Variable:
    return sparse.structured(lambda values: values.astype(dtype), matrix)


def _shape(matrix: Any) -> Variable:
    return sparse.csm_properties(matrix)[-1]


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": _sum_of(sparse.add), "sub": _sum_of(sparse.sub), "subtract": _sum_of(sparse.sub),
    "mul": sparse.mul, "multiply": sparse.mul, "div": _divide, "divide": _divide, "true_divide": _divide,
    "pow": _power, "power": _power, "matmul": sparse.dot, "dot": sparse.dot,
    "neg": sparse.neg, "negative": sparse.neg, "positive": _of_values("positive"),
    "abs": _of_values("abs"), "absolute": _of_values("abs"), "sqr": _of_values("sqr"),
    "transpose": _transpose, "matrix_transpose": _transpose, "sum": _sum, "cast": _cast, "shape": _shape,
}  # fmt: skip
"""By the name of an op, of a method's function, or of NumPy's ufunc; each may return NotImplemented."""
