"""How rules name ops that only Python types: by their operands, then what their class makes them with.

``(Sort x 0)`` is what ``Sort("sort", "Sort", 0)`` makes of ``x``: one of name and constructor says the other,
and whether an op works in place is no matter of rules. Such ops are opaque in the e-graph: rules of them
are replacements (:mod:`esat.egraph.preparation.replacements`), which Python makes.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from esat.base.records import record
from esat.graph import Op
from esat.rules.language.reader import Sexp, head_of, subforms
from esat.rules.language.rule import Rule

_IDENTITY = ("name", "constructor")
_IN_PLACE = ("inplace", "in_place")
_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@record(frozen=True, slots=True)
class NamedOp:
    """The ops that a name of rules stands for.

    Attributes
    ----------
    constructor
        The name.
    family
        Their class.
    given
        Arguments that the name decides.
    parameters
        Names of the arguments that rules give, which are attributes of the ops; None where the class takes
        any number of arguments.
    """

    constructor: str
    family: type[Op]
    given: Mapping[str, str]
    parameters: tuple[str, ...] | None

    def values(self, op: Op) -> tuple[object, ...] | None:
        """What an op was made with; None for one that works in place, or does not keep all of it."""
        if self.missing(op) or any(getattr(op, flag, False) is True for flag in _IN_PLACE):
            return None
        return tuple(getattr(op, name) for name in self.parameters or ())

    def missing(self, op: Op) -> str:
        """What keeps rules from looking into an op; empty where nothing does."""
        if self.parameters is None:
            return f"the class {self.family.__name__} takes any number of arguments"
        lost = (name for name in self.parameters if not hasattr(op, name))
        return next(
            (f"ops of the class {self.family.__name__} have no attribute {name}" for name in lost), ""
        )

    def make(self, values: Sequence[object]) -> Op:
        """The op of these parameters."""
        assert self.parameters is not None
        return self.family(**self.given, **dict(zip(self.parameters, values, strict=True)))


def op_name(op: Op) -> NamedOp:
    """How rules name an op."""
    family: Any = type(op)
    return _named(family, op.constructor)


def named_ops() -> dict[str, NamedOp]:
    """All names of ops that classes have, those that users defined included; of two classes the later one."""
    families: Iterator[Any] = _families(Op)
    return {name: _named(family, name) for family in families for name in _constructors(family)}


def named_in(rule: Rule, names: Iterable[str]) -> list[Sexp]:
    """Where a rule names one of these ops: the names, as they stand in its text."""
    known = frozenset(names)
    forms = (form for part in (*rule.body, *rule.head) for form in subforms(part))
    return [form[0] for form in forms if head_of(form) in known]


def _families(family: type[Op]) -> Iterator[type[Op]]:
    for own in family.__subclasses__():
        yield own
        yield from _families(own)


def _constructors(family: type[Op]) -> tuple[str, ...]:
    own = getattr(family, "constructor", "")
    return (*family.variants, *((own,) if isinstance(own, str) and own else ()))


@lru_cache(maxsize=512)
def _named(family: Any, constructor: str) -> NamedOp:
    arguments = _arguments(family)
    known = {"name": family.variants.get(constructor, ""), "constructor": constructor}
    given = {name: known[name] for name in _IDENTITY if name in (arguments or ())}
    if arguments is None:
        return NamedOp(constructor, family, given, None)
    chosen = tuple(name for name in arguments if name not in (*_IDENTITY, *_IN_PLACE))
    return NamedOp(constructor, family, given, chosen)


def _arguments(family: type[Op]) -> list[str] | None:
    """Names of what a class makes its ops with; None where that may be anything."""
    if is_dataclass(family):
        return [part.name for part in fields(family) if part.init]
    parameters = list(inspect.signature(family).parameters.values())
    return None if any(one.kind not in _KINDS for one in parameters) else [one.name for one in parameters]
