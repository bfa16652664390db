"""What rules are given of an equation of a jaxpr, and what a table of rules is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, UserLine, describe
from esat.graph.types import DTYPES
from esat.graph.variables import Variable

Inline: TypeAlias = Callable[[Any, Sequence[Variable]], list[Variable]]
"""(a jaxpr, with or without constants; its arguments) -> its results."""


@record(frozen=True)
class JaxprValue:
    """The dtype and shape of a value in a jaxpr.

    Attributes
    ----------
    dtype
        One of esat's.
    shape
        Sizes. Keys of random numbers are arrays of uint32 with one more axis, that of their words.
    is_key
        Whether it is a key of random numbers, or an array of them.
    """

    dtype: str
    shape: tuple[int, ...]
    is_key: bool = False


@record(frozen=True, eq=False)
class Equation:
    """An equation of a jaxpr whose operands are Variables.

    Attributes
    ----------
    name
        Of the primitive.
    params
        Its parameters.
    operands
        One for each argument.
    results
        What it gives, as the jaxpr says.
    used
        Which of them anything depends on.
    abstract
        What JAX says of each argument.
    where
        The user's line that asked for it.
    inline
        Runs a jaxpr among the parameters.
    """

    name: str
    params: Mapping[str, Any]
    operands: tuple[Variable, ...]
    results: tuple[JaxprValue, ...]
    used: tuple[bool, ...]
    abstract: tuple[Any, ...]
    where: UserLine | None
    inline: Inline

    @property
    def first(self) -> Variable:
        """The first operand."""
        return self.operands[0]

    def shape_of(self, place: int) -> tuple[int, ...]:
        """The sizes of an operand, all of which are known."""
        return tuple(int(size or 0) for size in self.operands[place].tensor_type.shape)


Rule: TypeAlias = Callable[[Equation], Any]
"""What builds the results of an equation: a Variable, or a sequence of as many as there are."""


def value_of(abstract: Any, where: UserLine | None = None) -> JaxprValue:
    """The dtype and shape that JAX says a value has.

    Raises
    ------
    DtypeError
        For dtypes that esat lacks, of eight bits and less among others.
    """
    if not hasattr(abstract, "dtype"):  # a token, which orders effects
        raise DtypeError(describe("from_jax", [str(abstract)], "this is no array", where))
    dtype, shape = abstract.dtype, tuple(int(size) for size in abstract.shape)
    if str(dtype).startswith("key<"):
        words = getattr(getattr(dtype, "_impl", None), "key_shape", (2,))
        return JaxprValue("uint32", (*shape, *words), True)
    try:
        known = np.dtype(dtype)
        name = "bool" if known.names == ("float0",) else known.name
    except TypeError:  # one of a package that NumPy was not told of
        name = str(dtype)
    if name not in DTYPES:
        raise DtypeError(describe("from_jax", [f"{dtype} of shape {shape}"], "esat has no such dtype", where))
    return JaxprValue(name, shape)
