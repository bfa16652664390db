"""The normal form in which the compiler reads a rule.

Variables are renamed (``x`` -> ``?x``): no function or global begins with a question mark, so a rule may
use any name. Squares become products. The body is split into patterns (a variable and the term it matches)
and guards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count

from esat.base.records import record
from esat.egraph.preparation.rule_compiler.families import (
    FAMILY_OF,
    PRODUCT,
    family_of,
    flatten,
    occurrences,
    simplified,
    without_squares,
)
from esat.rules.language.reader import Sexp, head_of, is_variable
from esat.rules.language.rule import Rule
from esat.rules.language.rule_signature import TENSOR, Signature

GENERATED = "?%"
"""How the variables that the compiler adds begin."""

Pattern = tuple[str, Sexp]
"""A variable and the term that its class contains."""


@record(frozen=True)
class SurfaceRule:
    """A rule with renamed variables, split into patterns, guards and actions.

    Attributes
    ----------
    rule
        Where it comes from.
    patterns, guards, head
        The facts that match terms, all other facts, and the actions.
    shape_guards
        Pairs (variable, expression): the rule fires only if the broadcast word of the variable's class equals
        the expression.
    binary_heads
        Canonical forms of AC terms of the head whose operands' dtypes are unknown: built from binary nodes.
    negated
        A variable whose negative is no sum of both signs
        (:mod:`esat.egraph.preparation.rule_compiler.signs`).
    signature
        Operators in scope.
    """

    rule: Rule
    patterns: tuple[Pattern, ...]
    guards: tuple[Sexp, ...]
    head: tuple[Sexp, ...]
    signature: Signature
    shape_guards: tuple[tuple[str, Sexp], ...] = ()
    binary_heads: frozenset[Sexp] = frozenset()
    negated: str = ""

    def is_term(self, sexp: Sexp) -> bool:
        """Whether `sexp` is a constructor application of the tensor sort."""
        return _is_term(sexp, self.signature)

    def matched_occurrences(self, variable: str) -> int:
        """How often `variable` occurs in the patterns, as a class or as an operand."""
        return sum((name == variable) + occurrences(term, variable) for name, term in self.patterns)

    def is_linear(self, sexp: Sexp) -> bool:
        """Whether `sexp` is a variable that occurs exactly once in the patterns, as an operand."""
        return (
            isinstance(sexp, str)
            and sexp.startswith("?")
            and self.matched_occurrences(sexp) == 1
            and all(name != sexp for name, _ in self.patterns)
        )

    def is_read(self, variable: str) -> bool:
        """Whether a guard needs the class of `variable` itself, not just its type."""
        return any(reads_class(guard, variable) for guard in self.guards)

    def is_replaceable(self, pattern: Pattern) -> bool:
        """Whether a sub-group that matches `pattern` may be replaced inside a larger group.

        It may if all that happens to the class is that the head unites it with something.
        """
        variable, term = pattern
        if not family_of(term) or self.matched_occurrences(variable) != 1 or self.is_read(variable):
            return False
        return all(_only_unites(action, variable) for action in self.head)


def _only_unites(action: Sexp, variable: str) -> bool:
    found = occurrences(action, variable)
    return not found or (head_of(action) == "union" and variable in action[1:] and found == 1)


def reads_class(sexp: Sexp, variable: str) -> bool:
    """Whether `variable` occurs in `sexp` outside ``(bp variable)`` and ``(dt variable)``."""
    if isinstance(sexp, str):
        return sexp == variable
    if head_of(sexp) in ("bp", "dt") and len(sexp) == 2:
        return _reads_class_for_type(sexp[1], variable)
    return any(reads_class(part, variable) for part in sexp)


def _reads_class_for_type(term: Sexp, variable: str) -> bool:
    if isinstance(term, str):
        return False
    if family_of(term):
        # The type of an AC term is computed from its operands' types.
        return any(_reads_class_for_type(operand, variable) for operand in term[1:])
    return any(reads_class(operand, variable) for operand in term[1:])


def _is_term(sexp: Sexp, signature: Signature) -> bool:
    name = head_of(sexp)
    if not name or is_variable(sexp):
        return False
    if name in FAMILY_OF:
        return True
    if name in signature:
        # A function such as `has` may also return the tensor sort; constructors are capitalised.
        return signature[name].result == TENSOR and name[0].isupper()
    return name[0].isupper()


def renamer() -> Callable[[Sexp], Sexp]:
    """Prefixes variables with a question mark; every wildcard becomes a variable of its own."""
    wildcards = count(1)

    def rename(sexp: Sexp) -> Sexp:
        if isinstance(sexp, str):
            if sexp == "_":
                return f"{GENERATED}_{next(wildcards)}"
            return f"?{sexp}" if is_variable(sexp) else str(sexp)
        if not sexp:
            return ()
        return (sexp[0] if isinstance(sexp[0], str) else rename(sexp[0]), *map(rename, sexp[1:]))

    return rename


def prepare(rule: Rule, signature: Signature, keep_squares: bool = False) -> SurfaceRule:
    """The normal form of `rule`; with `keep_squares` a square stays the op that it is.

    Errors
    ------
    RuleError
        If the head uses a variable that nothing binds. (egglog would not notice: a type guard binds it.)
    """
    require_bound(rule)
    rename = renamer()
    body: list[Sexp] = [rename(fact) for fact in rule.body]
    head = tuple(rename(action) for action in rule.head)
    if not keep_squares:
        body, head = [without_squares(fact) for fact in body], tuple(map(without_squares, head))
    patterns: list[Pattern] = []
    guards: list[Sexp] = []
    fresh = (f"{GENERATED}class{index}" for index in count(1))
    for fact in body:
        _split(fact, signature, patterns, guards, fresh)
    return SurfaceRule(rule, tuple(patterns), tuple(guards), head, signature)


def require_bound(rule: Rule) -> None:
    """Raise a RuleError if the head uses a variable that nothing binds."""
    bound = {str(name) for fact in rule.body for name in _variables(fact)}
    for action in rule.head:
        for name in _variables(action):
            if head_of(action) == "let" and name == action[1]:
                bound.add(str(name))
            elif name not in bound:
                raise rule.error(f"the variable {name} is not bound by the left side", name)


def _variables(sexp: Sexp) -> Iterator[str]:
    """Every occurrence of a variable as the user wrote it, positions included."""
    if isinstance(sexp, str):
        if is_variable(sexp):
            yield sexp
    else:
        for part in sexp[1:] if head_of(sexp) else sexp:
            yield from _variables(part)


def _split(
    fact: Sexp, signature: Signature, patterns: list[Pattern], guards: list[Sexp], fresh: Iterable[str]
) -> None:
    """Add `fact` to the patterns or to the guards."""
    if _is_term(fact, signature):
        patterns.append((next(iter(fresh)), fact))
        return
    terms = [part for part in fact[1:] if _is_term(part, signature)] if head_of(fact) == "=" else []
    if not terms:
        guards.append(fact)
        return
    others = [part for part in fact[1:] if part not in terms]
    named = others[0] if others and isinstance(others[0], str) and others[0].startswith("?") else None
    variable = named if isinstance(named, str) else next(iter(fresh))
    patterns.extend((variable, term) for term in terms)
    guards.extend(("=", variable, other) for other in others if other is not named)


def simplify(surface: SurfaceRule) -> SurfaceRule:
    """`surface` with the patterns and the head written as the n-ary layer stores such terms."""
    patterns = tuple((variable, simplified(term)) for variable, term in surface.patterns)
    return replace(surface, patterns=patterns, head=tuple(map(simplified, surface.head)))


def with_bases(surface: SurfaceRule) -> SurfaceRule:
    """`surface` with a guard on the bases of powers that are factors: that they are no exponentials.

    A power of ``e^x`` is an exponential, and products have those in one normal form. As powers of ``e^x``, of
    ``e^2x`` and of all others that there are, a product has a form for each way to write a number as a sum.
    """
    factors = (
        factor
        for _, term in surface.patterns
        if family_of(term) == PRODUCT
        for factor in flatten(term).operands
    )
    bases = dict.fromkeys(factor[1] for factor in factors if head_of(factor) == "Pow")
    guards = (("=", "0", ("power-base", base)) for base in bases if isinstance(base, str))
    return replace(surface, guards=(*surface.guards, *guards))
