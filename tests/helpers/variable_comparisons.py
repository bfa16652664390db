"""A plugin of mypy: the package's own code compares Variables by ``is``.

``==`` on Variables builds a graph. Where one is in a list or tuple, ``in``, ``index``, ``remove``, ``count``
and the comparison of two such sequences ask for the truth value of that graph. mypy knows the types, so it
finds these uses in every line of ``esat/``, run by a test or not. What it takes for ``Any`` is found by the
guard that ``conftest.py`` sets up while the tests run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mypy.errorcodes import DEPRECATED
from mypy.nodes import TypeInfo
from mypy.plugin import MethodContext, Plugin
from mypy.types import Instance, TupleType, Type, UnionType, get_proper_type

VARIABLE = "esat.graph.variables.Variable"
DEPTH = 5
_LOOKUPS = ("__contains__", "index", "remove", "count")
_SEQUENCES = (
    "list", "tuple", "deque", "Sequence", "MutableSequence", "Iterable", "Collection", "Container",
    "ValuesView",
)  # fmt: skip
_MAPPINGS = ("dict", "Mapping", "MutableMapping", "dict_values")


class VariableComparisons(Plugin):
    """Reports comparisons of Variables by value, also those that sequences make of their elements."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        name = fullname.rpartition(".")[2]
        if name in ("__eq__", "__ne__"):
            return _check_equality
        if name in _LOOKUPS and fullname.split(".")[-2] in (*_SEQUENCES, "dict_values"):
            return _check_lookup
        return None


def _check_equality(context: MethodContext) -> Type:
    operands = [context.type, *(type for group in context.arg_types for type in group)]
    if any(map(_compares_variables, operands)):
        _report(context, "Variables are compared here by value: use `is`")
    return context.default_return_type


def _check_lookup(context: MethodContext) -> Type:
    if any(map(_compares_variables, _elements(context.type))):
        _report(context, "Variables are looked up here by value: use place_of, or a set")
    return context.default_return_type


def _report(context: MethodContext, message: str) -> None:
    # Errors of no other code reach the user from within `x in y`, of which mypy tries several readings.
    context.api.fail(message, context.context, code=DEPRECATED)


def _compares_variables(type: Type, depth: int = DEPTH) -> bool:
    """Whether comparing two values of a type compares Variables, so many types deep: some are recursive."""
    proper = get_proper_type(type)
    parts: Iterator[Type] | list[Type]
    if isinstance(proper, Instance) and proper.type.has_base(VARIABLE):
        return True
    if isinstance(proper, UnionType):
        parts = proper.items
    elif isinstance(proper, Instance) and "dataclass" in proper.type.metadata:
        parts = _fields(proper.type)
    else:
        parts = _elements(proper)
    return depth > 0 and any(_compares_variables(part, depth - 1) for part in parts)


def _elements(type: Type) -> Iterator[Type]:
    """Types of what a sequence or the values of a mapping hold."""
    proper = get_proper_type(type)
    if isinstance(proper, UnionType):
        for item in proper.items:
            yield from _elements(item)
    elif isinstance(proper, TupleType):
        yield from proper.items
    elif isinstance(proper, Instance) and proper.type.name in _SEQUENCES:
        yield from proper.args
    elif isinstance(proper, Instance) and proper.type.name in _MAPPINGS:
        yield from proper.args[1:]


def _fields(info: TypeInfo) -> Iterator[Type]:
    """Types of the fields that a dataclass compares; none where the class says itself how it compares."""
    if "__eq__" in info.names and not info.names["__eq__"].plugin_generated:
        return
    for symbol in info.names.values():
        if symbol.type is not None and not isinstance(symbol.node, TypeInfo):
            yield symbol.type


def plugin(version: str) -> type[Plugin]:
    """What mypy looks for."""
    return VariableComparisons
