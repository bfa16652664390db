"""Elementwise ops from outside the package."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from esat.errors import GraphError
from esat.graph.registry import is_public, register_op
from esat.graph.types import DTYPES
from esat.ops.elementwise.records.code import Code
from esat.ops.elementwise.records.facts import NO_FACTS, Facts
from esat.ops.elementwise.records.record import ZERO, Elementwise, Gradient
from esat.ops.elementwise.records.templates import check_code
from esat.ops.inference.promotion import Loops, SciPyLoops

MOST_OPERANDS = 32
"""As NumPy's ufuncs have at most."""

TERM_LANGUAGE = frozenset(
    [
        "Array", "Cast", "CholeskySolve", "Diag", "Diagonal", "DimShuffle", "Eigh", "Eye", "FnCommon",
        "FnCount", "FnFactors", "FnForm", "FnHas", "FnHasFactor", "FnMeet", "FnSide", "FnStaying",
        "FnSupport", "FnTerm", "FnValue", "FnWord", "Form", "Forms", "In", "InvTriangular", "K", "LU",
        "Line", "MS", "MultisetOfMS", "N", "NaryProd", "NarySum", "Output", "PackedSolve", "QR",
        "Reshape", "SVD", "SolveSemidefinite", "SolveTriangular", "SupersededNaryProd",
        "SupersededNarySum", "T", "Tri", "Values", "Whiten", "Words",
    ]
)  # fmt: skip
"""What the language of rules means by these names."""


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
        See :class:`~esat.ops.elementwise.records.record.Elementwise`. Without code the op runs through
        ``numpy``, outside of fused kernels; without a gradient it cannot be differentiated.

    Raises
    ------
    GraphError
        When the name is taken, by an op or by a function of esat's, or not a name; when the number of
        operands cannot be told, the code is no template, or another argument is not what an op has.

    Examples
    --------
    >>> soft_example = esat.elementwise(
    ...     "soft_example", lambda x: x / (1 + abs(x)), code="{0} / (const(1) + absolute({0}))",
    ...     dtypes=("float32", "float64"),
    ...     gradient=lambda inputs, output, cotangent: [cotangent / (1 + abs(inputs[0])) ** 2],
    ... )
    >>> esat.evaluate(soft_example([1.0, -3.0]))
    array([ 0.5 , -0.75])
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise GraphError(f"an op cannot be named {name!r}: not an identifier")
    if is_public(name):
        raise GraphError(f"an op cannot be named {name!r}: esat has a function of that name")
    given = {"numpy": numpy, "arity": arity, "code": code, "gradient": gradient}
    _check(name, given | {"dtypes": dtypes, "typing": typing, "flops": flops, "facts": facts})
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
    if op.constructor in TERM_LANGUAGE:
        raise GraphError(f"an op cannot be named {name!r}: in rules {op.constructor} means something else")
    check_code(name, op.code if isinstance(op.code, Code) else None, op.arity)
    register_op(op)
    return op


def _check(name: str, values: Mapping[str, object]) -> None:
    """Raise GraphError for an argument that is not of the kind it should be."""
    dtypes, flops, arity, gradient = (values[key] for key in ("dtypes", "flops", "arity", "gradient"))
    loops = isinstance(dtypes, tuple) and bool(dtypes) and all(one in DTYPES for one in dtypes)
    demands = (
        ("numpy", "a function of arrays", callable(values["numpy"])),
        (
            "arity",
            "a number from 1 on",
            arity is None or (type(arity) is int and 1 <= arity <= MOST_OPERANDS),
        ),
        ("code", "text, a Code, or None", isinstance(values["code"], str | Code | None)),
        ("gradient", "a function, 'zero', or None", callable(gradient) or gradient in (None, ZERO)),
        (
            "dtypes",
            "a ufunc, a tuple of dtypes, or None",
            loops or isinstance(dtypes, np.ufunc | SciPyLoops | None),
        ),
        ("typing", "'same', 'bool' or 'real'", values["typing"] in ("same", "bool", "real")),
        ("flops", "a number from 0 on", type(flops) in (int, float) and 0 <= float(str(flops)) < math.inf),
        ("facts", "Facts", isinstance(values["facts"], Facts)),
    )
    for argument, wanted, is_met in demands:
        if not is_met:
            raise GraphError(f"{name}: {argument} is {wanted}, not {values[argument]!r}")


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
