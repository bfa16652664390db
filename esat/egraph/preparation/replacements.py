"""Rules that are read as replacements: those of ops that only Python types, and all of greedy modes.

A replacement is made in a graph, where there are no tables: conditions ask for types, values, and what is
known of a Variable from how it is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from esat.base.records import record
from esat.base.spelling import suggestion
from esat.egraph.analyses.facts import FACT_OPERATORS
from esat.egraph.language.named_ops import NamedOp, named_in, named_ops
from esat.egraph.language.op_parameters import PARTS
from esat.egraph.language.signature import Signature
from esat.egraph.preparation.rule_compiler.surface import require_bound
from esat.egraph.preparation.rule_program import signature_of_registered
from esat.rules.language.macros import MACROS
from esat.rules.language.reader import Form, Sexp, head_of, is_number, is_string, position_of, show
from esat.rules.language.replacement import Replacement, replacement_of
from esat.rules.language.rule import TYPE_FUNCTIONS, Rule
from esat.rules.language.rule_selection import RuleSelection, is_of_package
from esat.rules.language.rule_signature import Operator, declared_names, declared_signature

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
ARITHMETIC = (*"+-*&|", ">>", "<<", "min", "max", "not-i64", "to-i64", "to-f64")
"""Primitives that conditions of replacements compute with."""


def unanswered(rule: Rule) -> str:
    """Why a rule can be no replacement; empty where it can."""
    replacement = replacement_of(rule)
    if replacement is None:
        return "it says something else than that one term may stand in the place of another"
    for condition in replacement.conditions:
        asked = _unanswered(condition, replacement)
        if asked:
            return f"it asks for {asked}, which only an e-graph can tell"
    return ""


def _unanswered(condition: Sexp, replacement: Replacement) -> str:
    """What of a condition nothing but an e-graph knows."""
    name = head_of(condition)
    if name in FACT_OPERATORS:
        return ""
    if name not in COMPARISONS:
        return show(condition)
    return next((found for part in condition[1:] for found in [_unknown(part)] if found), "")


def _unknown(part: Sexp) -> str:
    """What of a side of a comparison nothing but an e-graph knows; terms are matched, or typed."""
    name = head_of(part)
    if not name or name[0].isupper() or name in TYPE_FUNCTIONS:
        return ""
    if name not in ARITHMETIC and name not in MACROS:
        return show(part)
    return next((found for inner in part[1:] for found in [_unknown(inner)] if found), "")


def opaque_rules(
    rules: Iterable[Rule], signature: Signature, declarations: Iterable[Form] = ()
) -> list[Rule]:
    """The rules that name ops which only Python types, once they are checked.

    Raises
    ------
    RuleError
        Where such a rule is no replacement, or one of its terms is none, or an op's name is declared.
    """
    named = {name: op for name, op in named_ops().items() if name not in signature}
    declarations = tuple(declarations)
    for name in (name for form in declarations for name in declared_names(form)):
        if name in named:
            reason = f"{name} is an op, which only Python types; declare another name"
            raise position_of(name).error(reason)
    check = OpaqueCheck(named, {**signature.operators, **FACT_OPERATORS, **declared_signature(declarations)})
    found = []
    for rule in rules:
        names = named_in(rule, named)
        if names:
            check.check(rule, names[0])
            found.append(rule)
    return found


def saturating(selection: RuleSelection) -> tuple[RuleSelection, list[Rule]]:
    """The rules that e-graphs are made with, and those of ops that only Python types, which are users'."""
    own = [file for file in selection.files if not is_of_package(file.file)]
    if not any(file.rules for file in own):
        return selection, []
    signature = signature_of_registered()
    names = named_ops().keys() - signature.keys()
    opaque = [rule for file in own for rule in file.rules if named_in(rule, names)]
    return selection.without(opaque) if opaque else selection, opaque


@record(frozen=True)
class OpaqueCheck:
    """Checks rules that name ops which only Python types.

    Attributes
    ----------
    named
        Such ops, by name.
    operators
        All other names, by what they take.
    """

    named: Mapping[str, NamedOp]
    operators: Mapping[str, Operator]

    def check(self, rule: Rule, name: Sexp) -> None:
        """Check a rule that has such a name in it.

        Raises
        ------
        RuleError
            Where the rule is no replacement, or one of its terms is none.
        """
        require_bound(rule)
        replacement = replacement_of(rule)
        reason = unanswered(rule)
        if not reason and replacement is not None and replacement.for_good:
            reason = "it subsumes, which only an e-graph can"
        if reason or replacement is None:
            raise rule.error(
                f"only Python types the op {name}, so its rules are replacements; {reason}", name
            )
        self._check_term(rule, replacement.pattern)
        self._check_term(rule, replacement.term)
        for condition in replacement.conditions:
            for side in condition[1:]:
                if head_of(side) in TYPE_FUNCTIONS and head_of(side[1]) in self.named:
                    raise rule.error(
                        f"only Python types {head_of(side[1])}: no condition knows its type", side
                    )
                if head_of(side)[:1].isupper():
                    self._check_term(rule, side)

    def _check_term(self, rule: Rule, term: Sexp) -> None:
        if isinstance(term, str):
            if is_number(term) or is_string(term):
                raise rule.error(f"an operand is a term, such as (K {term} (dt x)), not {term}", term)
            return
        name = head_of(term)
        if name in self.named:
            self._check_named(rule, term, self.named[name])
            return
        operator = self.operators.get(name)
        if operator is None or not name[:1].isupper():
            names = (*self.operators, *self.named)
            raise rule.error(f"an operand is a term: unknown op {name}{suggestion(name, names)}", term)
        if len(term) - 1 != len(operator.operands):
            raise rule.error(f"{name} takes {len(operator.operands)} operands, got {len(term) - 1}", term)
        for place, part in enumerate(term[1:]):
            if place in operator.tensor_operands:
                self._check_term(rule, part)
            else:
                self._check_parameter(rule, part)

    def _check_named(self, rule: Rule, term: tuple[Sexp, ...], op: NamedOp) -> None:
        if op.parameters is None:
            raise rule.error(
                f"{op.constructor}: the class {op.family.__name__} takes any number of arguments", term
            )
        first = len(term) - len(op.parameters)
        if first < 1:
            behind = ", ".join(op.parameters)
            raise rule.error(f"{op.constructor} takes operands and then {behind}", term)
        for part in term[1:first]:
            self._check_term(rule, part)
        for name, part in zip(op.parameters, term[first:], strict=True):
            self._check_parameter(rule, part, f"{name} of {op.constructor}")

    def _check_parameter(self, rule: Rule, part: Sexp, what: str = "this") -> None:
        name = head_of(part)
        if name[:1].isupper():
            raise rule.error(f"{what} is a parameter, not a term", part)
        if name in PARTS:
            counts = PARTS[name]
            if counts is not None and len(part) - 1 not in counts:
                takes = " or ".join(map(str, counts))
                raise rule.error(f"({name} ...) takes {takes} parts, got {len(part) - 1}", part)
        elif name and name not in (*ARITHMETIC, *TYPE_FUNCTIONS, *MACROS):
            raise rule.error(
                f"unknown form {name} of a parameter{suggestion(name, (*PARTS, *ARITHMETIC))}", part
            )
        if name in PARTS or name in ARITHMETIC:
            for inner in part[1:]:
                self._check_parameter(rule, inner, what)
