"""A rule as a statement about values: under these patterns and guards, these terms are equal.

A rewrite and a ``(rule ...)`` with unions say the same kind of thing; here both become patterns that bind
variables, guards, and the equalities and facts that the head claims. The type guards that the rule compiler
adds belong to the guards: where they do not hold the rule does not fire.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from esat.base.records import record
from esat.egraph.analyses.facts import FACT_OPERATORS
from esat.egraph.analyses.structure import RELATIONS
from esat.egraph.language.signature import Signature as OpSignature
from esat.egraph.preparation.rule_compiler.broadcast_words import stored_word
from esat.egraph.preparation.rule_compiler.guarding import concerns_bools, with_type_guards
from esat.egraph.preparation.rule_compiler.known_dtypes import Dtypes
from esat.egraph.preparation.rule_compiler.rule_compilation import CORE
from esat.egraph.preparation.rule_compiler.surface import GENERATED, prepare
from esat.ops.inference.structure import NUMBERS, RANGES
from esat.rules.language.reader import Form, Sexp, head_of, is_number, is_variable
from esat.rules.language.rule import Rule
from esat.rules.language.rule_signature import TENSOR, Operator, Signature, declared_signature

FACTS = (*NUMBERS, "integral", *RANGES, *RELATIONS)
"""Facts that a rule may ask of a value."""


@record(frozen=True)
class Statement:
    """What a rule says; variables begin with a question mark.

    Attributes
    ----------
    rule
        Where it comes from.
    patterns
        Pairs (variable, term): the variable's value is that of the term.
    guards
        Conditions under which the rule fires, those that the compiler adds included.
    equalities
        Pairs of terms that the head unites.
    claims
        Facts that the head states of a value, such as ``(positive ?e)``.
    unjudged
        Actions of the head that say nothing about values.
    leaves
        Variables that stand for any tensor.
    literals
        Variables that stand for numbers of the patterns: pairs (constructor, operand index) where they stand.
    dtypes
        What is known of the dtypes of its variables.
    """

    rule: Rule
    patterns: tuple[tuple[str, Sexp], ...]
    guards: tuple[Sexp, ...]
    equalities: tuple[tuple[Sexp, Sexp], ...]
    claims: tuple[Sexp, ...]
    unjudged: tuple[Sexp, ...]
    leaves: tuple[str, ...]
    literals: Mapping[str, tuple[str, int]]
    dtypes: Dtypes

    def facts_of(self, variable: str) -> frozenset[str]:
        """Facts that the guards ask of a variable."""
        return frozenset(
            head_of(guard) for guard in self.guards if head_of(guard) in FACTS and guard[1] == variable
        )

    def reads_value(self, variable: str) -> bool:
        """Whether a guard asks for the uniform value of a variable."""
        return variable in self._read

    @cached_property
    def _read(self) -> frozenset[Sexp]:
        """Variables whose uniform values guards ask for: there are guards of a million parts."""
        parts = (part for guard in self.guards for part in parts_of(guard))
        return frozenset(part[1] for part in parts if len(part) == 2 and part[0] == "val")

    def asked_word(self, variable: str) -> int | None:
        """The broadcast word that a guard says a variable has, where it is a number: -1 for one element."""
        words = (guard[1] for guard in self.guards if guard[0] == "=" and guard[2:] == (("bp", variable),))
        return next((int(str(word)) for word in words if is_number(word)), None)


def parts_of(sexp: Sexp) -> Iterator[Sexp]:
    """`sexp` and everything inside it."""
    yield sexp
    if not isinstance(sexp, str):
        for item in sexp:
            yield from parts_of(item)


def operators_for(signature: OpSignature, declarations: Iterable[Form] = ()) -> dict[str, Operator]:
    """Everything a rule may name: ops, facts, core constructors, and what its file declares."""
    return {**signature.operators, **FACT_OPERATORS, **CORE, **declared_signature(declarations)}


def statement_of(rule: Rule, operators: Signature) -> Statement:
    """Read a rule as a statement.

    Errors
    ------
    RuleError
        If the head uses an unbound variable, or the rule can never be well typed.
    """
    return _Reader(rule, operators).read()


class _Reader:
    def __init__(self, rule: Rule, operators: Signature) -> None:
        self.rule = rule
        self.operators = operators
        self.wildcards = 0
        self.classes = 0
        self.patterns: list[tuple[str, Sexp]] = []
        self.guards: list[Sexp] = []

    def read(self) -> Statement:
        surface = prepare(self.rule, self.operators)
        guarded = with_type_guards(surface)
        for fact in self.rule.body:
            self._split(self._renamed(fact))
        added = [guard for guard in guarded.guards if guard not in surface.guards]
        added += [("=", ("bp", variable), stored_word(word)) for variable, word in guarded.shape_guards]
        if not concerns_bools(surface):
            # Of bools they are "or" and "and" and no n-ary terms, so patterns of sums and products miss them.
            added += Dtypes(surface).number_guards()
        equalities, claims, unjudged = self._head()
        defined = {variable for variable, _ in self.patterns}
        leaves: dict[str, None] = {}
        literals: dict[str, tuple[str, int]] = {}
        for _, term in self.patterns:
            self._collect(term, leaves, literals)
        return Statement(
            self.rule,
            _ordered(self.patterns),
            (*self.guards, *added),
            tuple(equalities),
            tuple(claims),
            tuple(unjudged),
            tuple(name for name in leaves if name not in defined),
            literals,
            Dtypes(surface),
        )

    def _renamed(self, sexp: Sexp) -> Sexp:
        """As the compiler renames: a question mark before every variable, each wildcard another one."""
        if isinstance(sexp, str):
            if sexp == "_":
                self.wildcards += 1
                return f"{GENERATED}_{self.wildcards}"
            return f"?{sexp}" if is_variable(sexp) else str(sexp)
        if not sexp:
            return ()
        return (
            sexp[0] if isinstance(sexp[0], str) else self._renamed(sexp[0]),
            *map(self._renamed, sexp[1:]),
        )

    def _is_term(self, sexp: Sexp) -> bool:
        name = head_of(sexp)
        operator = self.operators.get(name)
        return bool(name) and name[0].isupper() and (operator is None or operator.result == TENSOR)

    def _fresh(self) -> str:
        name = f"{GENERATED}class{self.classes}"
        self.classes += 1
        return name

    def _split(self, fact: Sexp) -> None:
        if self._is_term(fact):
            self.patterns.append((self._fresh(), fact))
            return
        terms = [part for part in fact[1:] if self._is_term(part)] if head_of(fact) == "=" else []
        if not terms:
            self.guards.append(fact)
            return
        others = [part for part in fact[1:] if part not in terms]
        named = others[0] if others and isinstance(others[0], str) and others[0].startswith("?") else None
        variable = str(named) if named is not None else self._fresh()
        self.patterns.extend((variable, term) for term in terms)
        self.guards.extend(("=", variable, other) for other in others if other is not named)

    def _head(self) -> tuple[list[tuple[Sexp, Sexp]], list[Sexp], list[Sexp]]:
        bound: dict[str, Sexp] = {}
        equalities: list[tuple[Sexp, Sexp]] = []
        claims: list[Sexp] = []
        unjudged: list[Sexp] = []
        for action in self.rule.head:
            resolved = _substituted(self._renamed(action), bound)
            match head_of(resolved):
                case "let":
                    bound[str(self._renamed(action[1]))] = resolved[2]
                case "union":
                    equalities.append((resolved[1], resolved[2]))
                case "set" if head_of(resolved[1]) in ("dt", "bp", "val"):
                    claims.append(("=", resolved[1], resolved[2]))
                case name if name in FACTS:
                    claims.append(resolved)
                case "subsume":
                    pass
                case _:
                    unjudged.append(resolved)
        return equalities, claims, unjudged

    def _collect(self, term: Sexp, leaves: dict[str, None], literals: dict[str, tuple[str, int]]) -> None:
        """Note the variables among the operands of a term of a pattern."""
        operator = self.operators.get(head_of(term))
        for index, operand in enumerate(term[1:]):
            if not isinstance(operand, str):
                self._collect(operand, leaves, literals)
            elif not operand.startswith("?"):
                continue
            elif operator is None or operator.operands[index] == TENSOR:
                leaves.setdefault(operand)
            else:
                literals.setdefault(operand, (head_of(term), index))


def _ordered(patterns: list[tuple[str, Sexp]]) -> tuple[tuple[str, Sexp], ...]:
    """Patterns in an order in which each class is matched before the patterns that use it."""
    waiting = list(patterns)
    ordered: list[tuple[str, Sexp]] = []
    while waiting:
        for pattern in waiting:
            others = {variable for variable, _ in waiting if variable != pattern[0]}
            if not others.intersection(part for part in parts_of(pattern[1]) if isinstance(part, str)):
                break
        else:
            pattern = waiting[0]
        waiting.remove(pattern)
        ordered.append(pattern)
    return tuple(ordered)


def _substituted(sexp: Sexp, bound: Mapping[str, Sexp]) -> Sexp:
    if isinstance(sexp, str):
        return bound.get(sexp, sexp)
    return tuple(_substituted(part, bound) for part in sexp) if bound else sexp
