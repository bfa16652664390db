"""The signature rules are checked against: operands, result and typing of every constructor and function.

The compiler reads the typing to decide which type guards a rule needs. `broadcast` is an egglog expression
for the broadcast word (`bp`) of the result, over the operands ``#0``, ``#1``, ...: the broadcast word of an
operand of sort T, the value of any other operand.

===============  ==================================================================================
op               record
===============  ==================================================================================
Add              ``elementwise(2)``
Lt               ``elementwise(2, dtype="bool")``
Exp              ``elementwise(1, floats=True)``
Cast             ``Operator(("T", "i64"), dtype="#1", broadcast="#0")``
ReduceSum        ``Operator(("T", "i64"), dtype="same", broadcast="(| #0 #1)")``
===============  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from esat.base.records import record
from esat.base.spelling import suggestion
from esat.rules.language.reader import Form, Sexp, head_of, read_forms
from esat.rules.language.rule import Rule, RuleFile

TENSOR = "T"
"""The sort of tensor terms."""


@record(frozen=True)
class Operator:
    """Typing of one constructor, function or relation.

    Attributes
    ----------
    operands
        Sorts, such as ``("T", "i64")``.
    result
        Sort of the result; "T" for a constructor of tensor terms, "Unit" for a relation.
    dtype
        Dtype of the result: ``same`` as that of the operands, ``bool``, ``#k`` for the value of operand k,
        or empty where it follows no such rule.
    operand_dtypes
        Per operand of sort T, in order: ``same`` for those that share one dtype (the result's, if `dtype` is
        "same"), ``bool``, or empty for any. Default: all ``same``.
    broadcast
        Expression for the broadcast word of the result (see the module); empty where there is none: then
        the rule's author answers for the shape.
    floats
        Whether the operands marked ``same`` are floats or complex numbers, never bools or integers.
    """

    operands: tuple[str, ...]
    result: str = TENSOR
    dtype: str = ""
    operand_dtypes: tuple[str, ...] | None = None
    broadcast: str = ""
    floats: bool = False

    @cached_property
    def broadcast_expression(self) -> Sexp:
        """`broadcast` as an s-expression; empty where there is none."""
        if not self.broadcast.startswith("("):
            return self.broadcast
        return read_forms(self.broadcast)[0]

    @cached_property
    def tensor_operands(self) -> tuple[int, ...]:
        """Indices of the operands of sort T."""
        return tuple(index for index, sort in enumerate(self.operands) if sort == TENSOR)

    def operand_dtype(self, tensor_index: int) -> str:
        """The dtype rule of the operand at that place among the operands of sort T."""
        return "same" if self.operand_dtypes is None else self.operand_dtypes[tensor_index]


Signature = Mapping[str, Operator]


def elementwise(
    arity: int, *, dtype: str = "same", floats: bool = False, operand_dtypes: tuple[str, ...] | None = None
) -> Operator:
    """An elementwise op: its broadcast word is the meet of its operands'."""
    broadcast = "#0"
    for index in range(1, arity):
        broadcast = f"(& {broadcast} #{index})"
    return Operator((TENSOR,) * arity, TENSOR, dtype, operand_dtypes, broadcast, floats)


def declared_signature(declarations: Iterable[Form]) -> dict[str, Operator]:
    """The constructors, functions and relations that a rule file declares; their typing is unknown."""
    found: dict[str, Operator] = {}
    for form in declarations:
        for name, operands, result in _declared_tables(form):
            if isinstance(name, str) and isinstance(result, str) and not isinstance(operands, str):
                found[name] = Operator(tuple(str(sort) for sort in operands), result)
    return found


def _declared_tables(form: Form) -> Iterator[tuple[Sexp, Sexp, Sexp]]:
    """Name, operands and result of each table that a form declares."""
    match form:
        case ("relation", name, operands, *_):
            yield name, operands, "Unit"
        case ("constructor" | "function", name, operands, result, *_):
            yield name, operands, result
        case ("datatype", sort, *variants):
            yield from ((variant[0], variant[1:], sort) for variant in variants if head_of(variant))
        case ("datatype*", *sorts):
            for one in sorts:
                if head_of(one) and head_of(one) != "sort":
                    yield from ((variant[0], variant[1:], one[0]) for variant in one[1:] if head_of(variant))


def declared_names(form: Form) -> Iterator[Sexp]:
    """What a form declares: sorts and tables. Of a ground fact there is none."""
    match form:
        case ("sort" | "datatype", name, *_):
            yield name
        case ("datatype*", *sorts):
            for one in sorts:
                if not isinstance(one, str) and one:
                    yield one[1] if one[0] == "sort" and len(one) > 1 else one[0]
    for name, _, _ in _declared_tables(form):
        yield name


_KEYWORD_FORMS = frozenset({"=", "!=", "let", "set", "union", "subsume", "delete", "panic", "unstable-fn"})
_PRIMITIVES = frozenset({"min", "max", "abs", "neg", "log2"})
"""Primitives of egglog whose names resemble those of ops."""


class _Checker:
    """Checks terms against one signature; remembers which lower-case names resemble one of its names."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.resembling: dict[str, str] = {}

    def check(self, rule: Rule, sexp: Sexp) -> None:
        if isinstance(sexp, str):
            return
        name = head_of(sexp)
        if name:
            self._check_name(rule, sexp, name)
        elif sexp:
            raise rule.error("a term begins with the name of an op", sexp)
        for operand in sexp[1:]:
            self.check(rule, operand)

    def _check_name(self, rule: Rule, sexp: Sexp, name: str) -> None:
        if name in self.signature:
            expected = len(self.signature[name].operands)
            if len(sexp) - 1 != expected:
                sorts = " ".join(self.signature[name].operands)
                raise rule.error(f"{name} takes {expected} operands ({sorts}), got {len(sexp) - 1}", sexp)
        elif name[0].isupper():
            raise rule.error(f"unknown op {name}{suggestion(name, self.signature)}", sexp)
        elif self._resembling(name):
            raise rule.error(f"unknown function {name}{self._resembling(name)}", sexp)

    def _resembling(self, name: str) -> str:
        """A suggestion, if a lower-case name is likely one of the signature's, misspelt.

        It may also be a primitive of egglog, which reports unknown ones itself.
        """
        if name not in self.resembling:
            is_keyword = name in _KEYWORD_FORMS | _PRIMITIVES or bool(suggestion(name, _KEYWORD_FORMS))
            self.resembling[name] = "" if is_keyword else suggestion(name, self.signature)
        return self.resembling[name]


def check(rules: Iterable[Rule] | RuleFile, signature: Signature) -> None:
    """Check names and operand counts of every term of the rules.

    A `RuleFile` is checked against its own declarations as well.

    Errors
    ------
    RuleError
        At the position of the first term whose op is unknown, with close matches, or has a wrong number
        of operands.
    """
    if isinstance(rules, RuleFile):
        signature = {**signature, **declared_signature(rules.declarations)}
        rules = rules.rules
    checker = _Checker(signature)
    for rule in rules:
        for form in (*rule.body, *rule.head):
            checker.check(rule, form)
