"""The table of op records by name, filled once by ``esat.ops.table`` and by users' own ops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from esat.base.spelling import suggestion
from esat.errors import GraphError

if TYPE_CHECKING:
    from esat.graph.op import Op

_OPS: dict[str, Op] = {}
_BY_CONSTRUCTOR: dict[str, Op] = {}
_FUNCTIONS: dict[str, Callable[..., Any]] = {}
_PUBLIC: set[str] = set()
_OWN: set[str] = set()


def register_op(op: Op) -> Op:
    """Enter an op under its name and return it. Raises GraphError when the name is taken."""
    known = _OPS.get(op.name)
    if known is not None and known is not op:
        raise GraphError(f"an op named {op.name!r} is registered already: {known!r}")
    if _BY_CONSTRUCTOR.get(op.constructor, op) is not op:
        raise GraphError(f"the e-graph constructor {op.constructor!r} of {op.name!r} is taken")
    _OPS[op.name] = _BY_CONSTRUCTOR[op.constructor] = op
    return op


def op_named(name: str) -> Op:
    """The op registered under ``name``. Raises GraphError, with close matches, for an unknown one."""
    try:
        return _OPS[name]
    except KeyError:
        raise GraphError(f"no op named {name!r}{suggestion(name, _OPS)}") from None


def op_constructed(constructor: str) -> Op | None:
    """The registered op that terms of a constructor stand for, if there is one."""
    return _BY_CONSTRUCTOR.get(constructor)


def is_registered(op: Op) -> bool:
    """Whether the op is the one registered under its name."""
    return _OPS.get(op.name) is op


def register_functions(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Enter the functions that methods of Variables call, by the methods' names."""
    _FUNCTIONS.update(functions)


def reserve_names(names: Iterable[str]) -> None:
    """Say which names functions of the package have, so that ops of users are not named so.

    Ops that are registered by then are the package's own.
    """
    _PUBLIC.update(names)
    _OWN.update(_OPS)


def is_of_package(op: Op) -> bool:
    """Whether the op is one that the package itself registered."""
    return op.name in _OWN and is_registered(op)


def is_public(name: str) -> bool:
    """Whether a function of the package has that name."""
    return name in _PUBLIC


def function_named(name: str) -> Callable[..., Any]:
    """The function behind a method of Variables. Raises GraphError before ``esat`` has been imported."""
    try:
        return _FUNCTIONS[name]
    except KeyError:
        raise GraphError(f"no function stands behind the method {name!r}; import esat first") from None


def registered_ops() -> tuple[Op, ...]:
    """All registered ops, in order of registration."""
    return tuple(_OPS.values())
