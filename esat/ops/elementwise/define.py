"""Elementwise ops from outside the package."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from esat.errors import GraphError
from esat.graph.registry import register_op
from esat.ops.elementwise.code import Code
from esat.ops.elementwise.facts import NO_FACTS, Facts
from esat.ops.elementwise.record import Elementwise, Gradient
from esat.ops.promotion import Loops


def elementwise(
    name: str,
    numpy: Callable[..., Any],
    *,
    arity: int | None = None,
    code: Code | str | None = None,
    gradient: Gradient | str | None = None,
    dtypes: Loops = None,
    typing: str = "same",
    flops: float = 1.0,
    facts: Facts = NO_FACTS,
) -> Elementwise:
    """Add an elementwise op, known to every stage from now on; call it on Variables, arrays or numbers.

    Parameters
    ----------
    name
        A new name; in rules it is written in CamelCase.
    numpy
        A ufunc, or a function of arrays of equal dtype that broadcasts as ufuncs do and returns a new array.
    arity
        Number of operands; by default as many as ``numpy`` has.
    code, gradient, dtypes, typing, flops, facts
        See :class:`~esat.ops.elementwise.record.Elementwise`. Without code the op runs through ``numpy``,
        outside of fused kernels; without a gradient it cannot be differentiated.

    Raises
    ------
    GraphError
        When the name is taken, or not a name, or the number of operands cannot be told.

    Examples
    --------
    >>> softsign = elementwise(
    ...     "softsign", lambda x: x / (1 + abs(x)), code="{0} / (const(1) + absolute({0}))", dtypes=FLOATS,
    ...     gradient=lambda inputs, output, cotangent: [cotangent / (1 + abs(inputs[0])) ** 2],
    ... )
    """
    if not name.isidentifier():
        raise GraphError(f"an op cannot be named {name!r}: not an identifier")
    if typing not in ("same", "bool", "real"):
        raise GraphError(f"{name}: the dtype of the result is 'same', 'bool' or 'real', not {typing!r}")
    op = Elementwise(
        name,
        arity if arity is not None else _arity(name, numpy),
        numpy,
        code,
        gradient,
        dtypes=dtypes,
        typing=typing,
        flops=flops,
        facts=facts,
    )
    register_op(op)
    return op


def _arity(name: str, numpy: Callable[..., Any]) -> int:
    if isinstance(numpy, np.ufunc):
        return numpy.nin
    try:
        parameters = inspect.signature(numpy).parameters.values()
    except (TypeError, ValueError) as error:
        raise GraphError(f"{name}: say how many operands {numpy!r} takes (arity=...)") from error
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        raise GraphError(f"{name}: say how many operands {numpy!r} takes (arity=...)")
    return sum(parameter.kind in positional for parameter in parameters)
