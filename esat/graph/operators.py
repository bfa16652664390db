"""Python's operators on Variables, as one table of op names.

``==`` and ``!=`` compare the elements, as NumPy's do, and hashing is that of identity: Variables are keys of
dictionaries and elements of sets, which ask for identity first and for equality only where two hashes are the
same. Whether two Variables are the same node of a graph is asked by ``is``. So that no comparison is silently
false, the truth value of one is an error, except within optimizers: see :func:`comparing_nodes`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

from esat.errors import DtypeError, EsatError, describe
from esat.graph.calls.callers import user_line
from esat.graph.registry import function_named, op_named
from esat.graph.scoped import Block, Scoped
from esat.graph.sparse_type import holds_sparse

if TYPE_CHECKING:
    from esat.graph.variables import Variable

Asked: TypeAlias = WeakValueDictionary[int, "Variable"]
"""Comparisons of two Variables, by their identity."""

_asked = Scoped[Asked]("asked")


def comparing_nodes() -> Block[Asked]:
    """Within, ``if y == a:`` asks whether two Variables are the same node, as optimizers of Theano's do.

    The comparison itself is elementwise still, so that optimizers can build graphs of it; only its truth
    value, an error elsewhere, is that of ``y is a``.
    """
    return _asked.set(WeakValueDictionary())


def same_node(comparison: Operators) -> bool | None:
    """The truth value of ``y == a`` or ``y != a`` within :func:`comparing_nodes`; None where it has none."""
    asked = _asked.get()
    found = None if asked is None else asked.get(id(comparison))
    if found is not comparison or found is None or found.owner is None:
        return None
    node = found.owner
    # Operands that were converted first are Variables of their own, as two of different types are anyway.
    left, right = node.inputs
    return (left is right) is (node.op.name == "eq")


def _compare(name: str, left: Any, right: Any) -> Any:
    if right is None:
        reason = "None is no number; whether there is a Variable is asked by `x is None`"
        raise DtypeError(describe(name, [left.type, right], reason, user_line()))
    asked = _asked.get()
    if asked is None or not isinstance(right, Operators):
        return _apply(name, left, right)
    try:
        result = _apply(name, left, right)
    except EsatError:  # shapes, or types, that do not compare
        return (left is right) is (name == "eq")
    asked[id(result)] = result
    return result


def _apply(name: str, *operands: Any) -> Variable:
    is_sparse = any(map(holds_sparse, operands))
    operation = partial(function_named("sparse_operation"), name) if is_sparse else op_named(name)
    result: Variable = operation(*operands)
    return result


class Operators:
    """The arithmetic a Variable takes part in."""

    __slots__ = ()

    type: Any

    __array_priority__ = 1000

    def __add__(self, other: Any) -> Variable:
        return _apply("add", self, other)

    def __radd__(self, other: Any) -> Variable:
        return _apply("add", other, self)

    def __sub__(self, other: Any) -> Variable:
        return _apply("sub", self, other)

    def __rsub__(self, other: Any) -> Variable:
        return _apply("sub", other, self)

    def __mul__(self, other: Any) -> Variable:
        return _apply("mul", self, other)

    def __rmul__(self, other: Any) -> Variable:
        return _apply("mul", other, self)

    def __truediv__(self, other: Any) -> Variable:
        return _apply("div", self, other)

    def __rtruediv__(self, other: Any) -> Variable:
        return _apply("div", other, self)

    def __floordiv__(self, other: Any) -> Variable:
        return _apply("floor_div", self, other)

    def __rfloordiv__(self, other: Any) -> Variable:
        return _apply("floor_div", other, self)

    def __mod__(self, other: Any) -> Variable:
        return _apply("mod", self, other)

    def __rmod__(self, other: Any) -> Variable:
        return _apply("mod", other, self)

    def __pow__(self, other: Any) -> Variable:
        if type(other) is int and other == 2 and self.type.dtype == "bool":
            # As NumPy's operator: it squares, and the square of a boolean is int8, where its power is int64.
            return _apply("sqr", self)
        return _apply("pow", self, other)

    def __rpow__(self, other: Any) -> Variable:
        return _apply("pow", other, self)

    def __divmod__(self, other: Any) -> tuple[Variable, Variable]:
        return _apply("floor_div", self, other), _apply("mod", self, other)

    def __rdivmod__(self, other: Any) -> tuple[Variable, Variable]:
        return _apply("floor_div", other, self), _apply("mod", other, self)

    def __neg__(self) -> Variable:
        return _apply("neg", self)

    def __pos__(self) -> Variable:
        return _apply("positive", self)

    def __abs__(self) -> Variable:
        return _apply("abs", self)

    def __eq__(self, other: object) -> Variable:  # type: ignore[override]
        result: Variable = _compare("eq", self, other)
        return result

    def __ne__(self, other: object) -> Variable:  # type: ignore[override]
        result: Variable = _compare("ne", self, other)
        return result

    __hash__ = object.__hash__

    def __lt__(self, other: Any) -> Variable:
        return _apply("lt", self, other)

    def __le__(self, other: Any) -> Variable:
        return _apply("le", self, other)

    def __gt__(self, other: Any) -> Variable:
        return _apply("gt", self, other)

    def __ge__(self, other: Any) -> Variable:
        return _apply("ge", self, other)

    def __and__(self, other: Any) -> Variable:
        return _apply("bitwise_and", self, other)

    def __rand__(self, other: Any) -> Variable:
        return _apply("bitwise_and", other, self)

    def __or__(self, other: Any) -> Variable:
        return _apply("bitwise_or", self, other)

    def __ror__(self, other: Any) -> Variable:
        return _apply("bitwise_or", other, self)

    def __xor__(self, other: Any) -> Variable:
        return _apply("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> Variable:
        return _apply("bitwise_xor", other, self)

    def __invert__(self) -> Variable:
        return _apply("invert", self)

    def __lshift__(self, other: Any) -> Variable:
        return _apply("left_shift", self, other)

    def __rlshift__(self, other: Any) -> Variable:
        return _apply("left_shift", other, self)

    def __rshift__(self, other: Any) -> Variable:
        return _apply("right_shift", self, other)

    def __rrshift__(self, other: Any) -> Variable:
        return _apply("right_shift", other, self)
