"""Facts about values that rules may ask for, as egglog text generated from the op table.

``(positive x)``, ``(nonnegative x)``, ``(negative x)``, ``(nonpositive x)``
    The sign of every element, NaN aside; positive and negative over the reals.
``(integral x)``
    Every finite element is an integer.
``(exponential x)``, ``(overflows x)``, ``(vanishes x)``
    The logarithm is better computed otherwise than from the number: :mod:`esat.egraph.analyses.numbers`.
``(finite x)``
    No element is infinite or NaN. Derived only where something asks: ``finite/wanted``.
``(lossless a b)``
    Every value of dtype ``a`` is a value of dtype ``b``.
``(identity-word p)``
    The permutation word ``p`` changes nothing.
``(lower-triangular a)``, ``(symmetric a)``, ...
    Structure of matrices: :mod:`esat.egraph.analyses.structure`.
``(float-dtype d)``, ``(complex-dtype d)``, ``(integer-dtype d)``
    Kinds of dtypes; ``float-dtype`` means the real floats.

A fact flows through every equality: whatever a rule unites must be equal where the fact is used.
So none is derived from the assumption that an op did not fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import numpy as np

from esat.egraph.analyses.numbers import range_declarations
from esat.egraph.analyses.structure import STRUCTURE_OPERATORS
from esat.egraph.language.signature import FOLDING
from esat.graph.registry import registered_ops
from esat.graph.types import DTYPES, MAXIMUM_RANK
from esat.ops.elementwise.records.facts import ANY, FINITE
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.inference.structure import NUMBERS, RANGES
from esat.rules.language.macros import permutation_word
from esat.rules.language.rule_signature import Operator

FACTS = (*NUMBERS, "integral")
FINITE_WANTED = "finite/wanted"
"""Holds where something asks what is finite."""
_FLOATS = tuple(name for name in DTYPES if np.dtype(name).kind == "f")
_LARGEST = float(np.finfo(np.float64).max)
FACT_OPERATORS = {
    **{name: Operator(("T",), "Unit") for name in (*FACTS, *RANGES)},
    "lossless": Operator(("i64", "i64"), "Unit"),
    "identity-word": Operator(("i64",), "Unit"),
    "float-dtype": Operator(("i64",), "Unit"),
    "complex-dtype": Operator(("i64",), "Unit"),
    "integer-dtype": Operator(("i64",), "Unit"),
    **STRUCTURE_OPERATORS,
}
"""What the rule compiler must know of these relations."""

_VALUE_SIGNS = {
    "positive": "(> v 0.0)",
    "nonnegative": "(>= v 0.0)",
    "negative": "(< v 0.0)",
    "nonpositive": "(<= v 0.0)",
}


def facts_program(strict: bool = False, finite: bool = False) -> str:
    """Declarations, tables and propagation rules of all facts.

    Parameters
    ----------
    strict
        Whether differences are ops of two operands, of which rules ask whether they cancel.
    finite
        Whether it is wanted in every graph what is finite: where rules of users ask for it.
    """
    lines = [f"(relation {name} (T))" for name in FACTS] + range_declarations()
    lines += [
        "(relation lossless (i64 i64))",
        "(relation identity-word (i64))",
        "(relation float-dtype (i64))",
        "(relation complex-dtype (i64))",
    ]
    lines += _tables()
    lines += _value_rules()
    lines += _finite_rules(strict, finite)
    lines += _rule(["(positive e)"], "nonnegative", "positive-is-nonnegative")
    lines += _rule(["(negative e)"], "nonpositive", "negative-is-nonpositive")
    for op in registered_ops():
        if isinstance(op, Elementwise):
            lines += _op_rules(op)
            lines += _exact_values(op)
    return "\n".join(lines)


def _rule(body: Iterable[str], fact: str, name: str) -> list[str]:
    return [f'(rule ({" ".join(body)}) (({fact} e)) :ruleset esat-facts :name "fact-{name}")']


def _tables() -> list[str]:
    lines = [
        f"(lossless {source} {target})"
        for source, source_name in enumerate(DTYPES)
        for target, target_name in enumerate(DTYPES)
        if lossless(source_name, target_name)
    ]
    lines += [f"(identity-word {permutation_word(tuple(range(rank)))})" for rank in range(MAXIMUM_RANK + 1)]
    for number, name in enumerate(DTYPES):
        kind = np.dtype(name).kind
        if kind in "fc":
            lines.append(f"({'float' if kind == 'f' else 'complex'}-dtype {number})")
    return lines


def lossless(source: str, target: str) -> bool:
    """Whether every value of one dtype is a value of the other."""
    return _range(source, target) and np.can_cast(source, target)


def _range(source: str, target: str) -> bool:
    kind, wanted = np.dtype(source).kind, np.dtype(target).kind
    if kind in "iu" and wanted in "fc":
        bits = np.iinfo(source).bits - (kind == "i")
        return bool(bits <= np.finfo(target).nmant + 1)
    return True


def _value_rules() -> list[str]:
    known = "(= v (val e)) (= d (dt e))"
    lines: list[str] = []
    for fact, condition in _VALUE_SIGNS.items():
        for kind in ("float-dtype", "integer-dtype"):
            lines += _rule([known, condition, f"({kind} d)"], fact, f"{fact}-{kind}-value")
    lines += _rule(["(= d (dt e))", "(integer-dtype d)"], "integral", "integral-dtype")
    for number, name in enumerate(DTYPES):
        if np.dtype(name).kind == "u":
            lines += _rule([f"(= {number} (dt e))"], "nonnegative", f"nonnegative-{name}")
    return lines


def _finite_rules(strict: bool, always: bool) -> list[str]:
    """Where it is asked what is finite, and what is so without any operand that is known to be.

    Graphs that do not ask load none of it, nor the rules that read it.
    """
    asking = ["(Isfinite x)", "(Isnan x)", "(Isinf x)", "(Eq x x)", "(Ne x x)"]
    asking += ["(Sub x x)"] * strict + ["(In x)"] * always
    lines = [f"(relation {FINITE_WANTED} ())"]
    for pattern in asking:
        name = pattern[1:].split()[0]
        options = f':ruleset esat-facts :name "fact-finite-asked-{name}"'
        lines.append(f"(rule ((= e {pattern})) (({FINITE_WANTED})) {options})")

    def rule(name: str, *body: str) -> None:
        lines.extend(_rule([f"({FINITE_WANTED})", *body], FINITE, f"finite-{name}"))

    rule("value", "(= v (val e)) (= d (dt e)) (float-dtype d)", f"(<= (abs v) {_LARGEST!r})")
    cast = "(= e (Cast x d)) (float-dtype d) (= w (dt x))"
    for number, name in enumerate(DTYPES):
        kind = np.dtype(name).kind
        if kind == "f":
            rule(f"from-{name}", cast, f"(= w {number}) (finite x) (lossless {number} d)")
        if kind in "biu":
            targets = [DTYPES.index(target) for target in _FLOATS if never_overflows(name, target)]
            rule(f"from-{name}", cast, f"(= w {number}) (<= {min(targets)} d)")
    for view in ("(DimShuffle x p)", "(ReduceMax x p)", "(ReduceMin x p)", "(Softmax x p)"):
        rule(view[1:].split()[0], f"(= e {view}) (finite x) (float-dtype (dt x))")
    return lines


def never_overflows(source: str, target: str) -> bool:
    """Whether every integer of a dtype is finite as a float of another."""
    limits = [0, 1] if source == "bool" else [np.iinfo(source).min, np.iinfo(source).max]
    with np.errstate(over="ignore"):
        return bool(np.all(np.isfinite(np.array(limits, source).astype(target))))


def _exact_values(op: Elementwise) -> list[str]:
    """Values of functions that are exact, such as log 1 = 0.

    A term that is 0 without being known to be would be added to others without end.
    """
    function = op.numpy
    if op.typing != "same" or op.constructor in FOLDING:
        return []
    if not isinstance(function, np.ufunc) or "d->d" not in function.types:
        return []
    lines = []
    for point in (0.0, 1.0):
        with np.errstate(all="ignore"):
            number = float(function(point))
        if np.isfinite(number) and (2 * number).is_integer() and not (number == 0.0 and np.signbit(number)):
            lines.append(
                f"(rule ((= e ({op.constructor} x)) (= {point} (val x)) (= d (dt e)) (float-dtype d))"
                f' ((set (val e) {number})) :ruleset esat-fold :name "value-{op.constructor}-{point:.0f}")'
            )
    return lines


def _op_rules(op: Elementwise) -> list[str]:
    """What an op's record says about its result; such claims are made for real floats only."""
    operands = [f"a{index}" for index in range(op.arity)]
    term = f"(= e ({op.constructor} {' '.join(operands)}))"
    guard = f"(= d (dt {operands[-1]})) (float-dtype d)"
    always = {
        "positive": op.facts.positive,
        "nonnegative": op.facts.nonnegative,
        "nonpositive": op.facts.nonpositive,
        "integral": op.facts.integral,
    }
    lines: list[str] = []
    for fact, holds in always.items():
        if holds:
            lines += _rule([term, guard], fact, f"{fact}-{op.constructor}")
    for number, (given, result) in enumerate(op.sign_rules):
        orders = sorted(set(permutations(given))) if op.facts.commutative else [given]
        for order, signs in enumerate(orders):
            conditions = [
                f"({sign} {operand})" for sign, operand in zip(signs, operands, strict=True) if sign != ANY
            ]
            name = f"sign-{op.constructor}-{number}-{order}"
            lines += _rule([term, guard, *conditions], result, name)
    return lines
