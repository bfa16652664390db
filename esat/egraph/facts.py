"""Facts about values that rules may ask for, as egglog text generated from the op table.

``(positive x)``, ``(nonnegative x)``, ``(negative x)``, ``(nonpositive x)``
    The sign of every element, NaN aside; positive and negative over the reals.
``(integral x)``
    Every finite element is an integer.
``(lossless a b)``
    Every value of dtype ``a`` is a value of dtype ``b``.
``(identity-word p)``
    The permutation word ``p`` changes nothing.
``(lower-triangular a)``, ``(symmetric a)``, ...
    Structure of matrices: :mod:`esat.egraph.structure`.
``(float-dtype d)``, ``(complex-dtype d)``, ``(integer-dtype d)``
    Kinds of dtypes; ``float-dtype`` means the real floats.

A fact flows through every equality: whatever a rule unites must be equal where the fact is used.
So none is derived from the assumption that an op did not fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import numpy as np

from esat.egraph.structure import STRUCTURE_OPERATORS
from esat.graph.registry import registered_ops
from esat.graph.types import DTYPES, MAXIMUM_RANK
from esat.ops.elementwise.facts import ANY
from esat.ops.elementwise.record import Elementwise
from esat.rules.macros import permutation_word
from esat.rules.signature import Operator

SIGNS = ("positive", "nonnegative", "negative", "nonpositive")
FACT_OPERATORS = {
    **{name: Operator(("T",), "Unit") for name in (*SIGNS, "integral")},
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


def facts_program() -> str:
    """Declarations, tables and propagation rules of all facts."""
    lines = [f"(relation {name} (T))" for name in (*SIGNS, "integral")]
    lines += [
        "(relation lossless (i64 i64))",
        "(relation identity-word (i64))",
        "(relation float-dtype (i64))",
        "(relation complex-dtype (i64))",
    ]
    lines += _tables()
    lines += _value_rules()
    lines += _rule(["(positive e)"], "nonnegative", "positive-is-nonnegative")
    lines += _rule(["(negative e)"], "nonpositive", "negative-is-nonpositive")
    for op in registered_ops():
        if isinstance(op, Elementwise):
            lines += _op_rules(op)
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
    for number, (given, result) in enumerate(op.facts.signs):
        orders = sorted(set(permutations(given))) if op.facts.commutative else [given]
        for order, signs in enumerate(orders):
            conditions = [
                f"({sign} {operand})" for sign, operand in zip(signs, operands, strict=True) if sign != ANY
            ]
            name = f"sign-{op.constructor}-{number}-{order}"
            lines += _rule([term, guard, *conditions], result, name)
    return lines
