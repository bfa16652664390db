"""Assumptions: what the user knows of a value and the compiler cannot find out."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from esat.base.records import record
from esat.base.spelling import suggestion
from esat.errors import DtypeError, GraphError, ShapeError, describe
from esat.graph.op import Array, Family, Op, as_variable
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.inference.structure import NUMBERS, REAL_STRUCTURES, SQUARE_STRUCTURES, STRUCTURES

ASSUMABLE = (*STRUCTURES, *NUMBERS)
"""What :func:`assume` takes."""


@record(frozen=True, eq=False, repr=False)
class Assume(Op):
    """The operand itself, of which facts are declared to be true.

    In the e-graph it is its operand, which has the facts; nothing of it is left in a compiled program.

    Attributes
    ----------
    facts
        Names out of :data:`ASSUMABLE`, sorted.
    """

    facts: tuple[str, ...]
    name, constructor, family = "assume", "Assume", Family.VIEW
    view_map = MappingProxyType({0: (0,)})
    is_free = True

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        (operand,) = inputs
        type = operand.type
        if not isinstance(type, TensorType):
            raise DtypeError(describe(str(self), [type], "assumptions are about arrays"))
        for fact in self.facts:
            self._check(fact, type)
        return (type,)

    def _check(self, fact: str, type: TensorType) -> None:
        if (fact in NUMBERS or fact in REAL_STRUCTURES) and type.kind != "f":
            raise DtypeError(describe(str(self), [type], f"only arrays of real floats are called {fact}"))
        if fact in STRUCTURES and type.ndim < 2:
            raise ShapeError(describe(str(self), [type], f"only matrices are called {fact}"))
        if fact in SQUARE_STRUCTURES and None not in type.shape[-2:] and type.shape[-1] != type.shape[-2]:
            raise ShapeError(describe(str(self), [type], f"only square matrices are called {fact}"))

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (inputs[0],)

    def linear_in(self, count: int) -> range:
        return range(1)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        return tuple(self.make_node(*inputs).outputs)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        return [cotangents[0]]

    def __str__(self) -> str:
        return f"{self.name}{{{', '.join(self.facts)}}}"


def assume(operand: Any, *facts: str) -> Variable:
    """The operand, with the promise that facts are true of its value in every call.

    The compiler uses what it is told, and checks nothing: a promise that is not kept makes results wrong.
    Debug mode checks every promise, and names the line where it was given.

    Parameters
    ----------
    operand
        A Variable or array.
    *facts
        Of the matrices in the last two axes: ``"diagonal"``, ``"lower_triangular"``, ``"upper_triangular"``,
        ``"tridiagonal"``, ``"full_lower_triangle"`` (without zeros there), ``"symmetric"``,
        ``"skew_symmetric"``, ``"positive_definite"``, ``"positive_semidefinite"``, ``"orthogonal"``,
        ``"orthonormal_columns"``, ``"permutation"``, ``"square"``. Of every element:
        ``"positive"``, ``"nonnegative"``, ``"negative"``, ``"nonpositive"``, and ``"finite"``:
        neither infinite nor NaN.

    Returns
    -------
    A Variable of the same type. What is computed from it is known to have what follows; the operand itself
    has the facts too, for it has the same value.

    Raises
    ------
    GraphError
        For an unknown name, or none.
    ShapeError, DtypeError
        For a fact that no value of the operand's type has: matrices have two axes, symmetric ones are square,
        definite and orthogonal ones hold real floats.
    """
    variable = as_variable(operand)
    if not facts:
        raise GraphError(describe("assume", [variable.type], "nothing is assumed"))
    for fact in facts:
        if fact not in ASSUMABLE:
            hint = suggestion(str(fact), ASSUMABLE) or f"; known are {', '.join(ASSUMABLE)}"
            raise GraphError(describe("assume", [variable.type], f"{fact!r} is no known fact{hint}"))
    result: Variable = Assume(tuple(sorted(set(facts))))(variable)
    return result
