"""The layer of n-ary sums and products: ``core.egg``, expanded, and its bridges to binary ops.

Associativity and commutativity are no rules here: sums and products are pairs of multisets.
``core.egg`` says what holds of them; this module fills in its mirrored forms, and adds the rules that
lead from the binary ops a signature has to their n-ary forms and back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources

from esat.egraph.engine import split_forms
from esat.egraph.language.dtype_tables import expand_arithmetic, ring_facts
from esat.egraph.language.signature import Signature
from esat.egraph.preparation.rule_program import SUPERSEDED
from esat.rules.language.reader import Sexp, read_forms, show

KINDS = (
    {
        "NARY": "NarySum",
        "SUPERSEDED": f"{SUPERSEDED}NarySum",
        "FORM": "sum",
        "UNIT": "0.0",
        "ISUNIT": "nary-is-zero",
        "OPERATOR": "+",
        # Where one constant is lost beside the other, it is missing where that one cancels.
        "FOLDS": "(folded-sum u v a b)",
        "CANCELLABLE": "",
    },
    {
        "NARY": "NaryProd",
        "SUPERSEDED": f"{SUPERSEDED}NaryProd",
        "FORM": "product",
        "UNIT": "1.0",
        "ISUNIT": "nary-is-one",
        "OPERATOR": "*",
        # A product of constants may underflow, or lose digits: below the least normal number, which is four
        # by the largest. Integers are 0, or 1 and more.
        "FOLDS": "(>= (* (abs u) u-high) 3.9)",
        "CANCELLABLE": (
            '(= 0 (multiset-length (unstable-multiset-filter (unstable-fn "nary-is-zero") common)))'
        ),
    },
)
"""What the placeholders of ``core.egg`` stand for in rules on sums and in rules on products."""

LIFTS = {
    "Add": ("ring-dtype", "(NarySum (multiset-of a b) (multiset-of))"),
    "Sub": ("ring-dtype", "(NarySum (multiset-of a) (multiset-of b))"),
    "Neg": ("ring-dtype", "(NarySum (multiset-of) (multiset-of a))"),
    "Mul": ("ring-dtype", "(NaryProd (multiset-of a b) (multiset-of))"),
    "Sqr": ("ring-dtype", "(NaryProd (multiset-of a a) (multiset-of))"),
    "Div": ("field-dtype", "(NaryProd (multiset-of a) (multiset-of b))"),
    "Reciprocal": ("field-dtype", "(NaryProd (multiset-of (K 1.0 d)) (multiset-of a))"),
}
"""Constructor -> dtypes for which it is an n-ary term, and that term."""

_INSTEAD = {
    "p": "(multiset-insert (multiset-remove p c) w) n",
    "n": "p (multiset-insert (multiset-remove n c) w)",
}
"""The sides of a term in which ``w`` took the place of an element ``c``."""

LARGEST_EXPONENT = 64
"""Powers up to here are products of equal factors, which share what they have in common with others."""

POWER = (
    "(rule ((= e (Pow a b)) (= v (val b)) (= k (to-i64 v)) (= v (to-f64 k)) (>= k 2)"
    f" (<= k {LARGEST_EXPONENT}) (= d (dt a)) (= d (dt e)) (ring-dtype d) (= (bp a) (bp e)))"
    " ((union e (NaryProd (multiset-single a k) (multiset-of))) (set (flatten-budget e) 64))"
    ' :ruleset esat-lift :name "lift-Pow")'
)

BASES = (
    '(rule ((= e (Pow x y))) ((set (power-base x) 0)) :ruleset esat-index :name "base-of-power")',
    "(rule ((= e (Pow x y)) (= x (Exp z))) ((set (power-base x) 1))"
    ' :ruleset esat-index :name "base-of-power#exponential")',
)
"""What rules about powers ask of bases, see ``with_bases`` of ``rule_compiler.surface``."""

_REPLACED = {"p": "(multiset-insert others total) n", "n": "p (multiset-insert others total)"}
"""The sides of a product of which one side became ``others`` and ``total``."""

_PAIR = "(= {} (multiset-pick-max {})) (= {} (multiset-pick-max (multiset-remove {} {})))"
_TWO = "(= 2 (multiset-length p)) (= 0 (multiset-length n)) " + _PAIR.format("x", "p", "y", "p", "x")
_ONE_EACH = (
    "(= 1 (multiset-length p)) (= 1 (multiset-length n))"
    " (= x (multiset-pick-max p)) (= y (multiset-pick-max n))"
)

VIEWS = {
    "Add": ("NarySum", _TWO, "(Add x y)"),
    "Sub": ("NarySum", _ONE_EACH, "(Sub x y)"),
    "Neg": (
        "NarySum",
        "(= 0 (multiset-length p)) (= 1 (multiset-length n)) (= y (multiset-pick-max n))",
        "(Neg y)",
    ),
    "Mul": ("NaryProd", _TWO, "(Mul x y)"),
    "Sqr": ("NaryProd", _TWO + " (= x y)", "(Sqr x)"),
    "Div": ("NaryProd", _ONE_EACH, "(Div x y)"),
    "Reciprocal": ("NaryProd", _ONE_EACH + " (= 1.0 (val x)) (= -1 (bp x))", "(Reciprocal y)"),
}
"""Constructor -> the n-ary term it is a view of, the facts that bind its operands, and itself."""

_FLATTENED = (
    '(= above (unstable-multiset-map (unstable-fn "{f}") {p}))'
    ' (= below (unstable-multiset-map (unstable-fn "{f}") {n}))'
    ' (= {p2} (multiset-sum (unstable-multiset-filter-not (unstable-fn "has-{f}") {p}) (multiset-sum'
    ' (multiset-sum-multisets (unstable-multiset-map (unstable-fn "pair-first") above))'
    ' (multiset-sum-multisets (unstable-multiset-map (unstable-fn "pair-second") below)))))'
    ' (= {n2} (multiset-sum (unstable-multiset-filter-not (unstable-fn "has-{f}") {n}) (multiset-sum'
    ' (multiset-sum-multisets (unstable-multiset-map (unstable-fn "pair-second") above))'
    ' (multiset-sum-multisets (unstable-multiset-map (unstable-fn "pair-first") below)))))'
)
_FLATTENED_CALL = re.compile(r"\(flattened (\S+) (\S+) (\S+) (\S+) (\S+)\)")

_REDUCED = (
    "(= 0 (multiset-length (multiset-intersection {p} {n})))"
    ' (= constants (unstable-multiset-filter (unstable-fn "nary-is-constant") (multiset-sum {p} {n})))'
    " (<= (multiset-length constants) 1)"
    ' (= units (multiset-length (unstable-multiset-filter (unstable-fn "{is_unit}") constants)))'
    " (= 0 (* units (- (multiset-length {p}) 1)))"
)
_REDUCED_CALL = re.compile(r"\(reduced (\S+) (\S+) (\S+)\)")
"""Whether reduction would leave a term as it is: what it would make of the others is there, but retired."""


def core_program(signature: Signature, strict: bool = False) -> str:
    """The layer's rules as egglog text, to be loaded after ``signature.program``.

    Parameters
    ----------
    signature
        Only ops it has are bridged.
    strict
        Leave floating-point sums and products alone: over floats the layer is of soundness class ``real``.
    """
    source = resources.files("esat.egraph.preparation").joinpath("core.egg").read_text(encoding="utf-8")
    forms = [mirrored for form in split_forms(source) for mirrored in _mirrored(form.text)]
    return "\n".join(
        [
            "(relation ring-dtype (i64))",
            "(relation field-dtype (i64))",
            ring_facts(strict),
            *(_expand_actions(_expand_facts(form)) for form in forms),
            *_lifting_rules(signature),
            *_viewing_rules(signature),
        ]
    )


def _mirrored(form: str) -> Iterator[str]:
    """The forms one form of the file stands for (see its head)."""
    kinds: Sequence[Mapping[str, str]] = KINDS if re.search(r"\b(NARY|FORM|SUPERSEDED)\b", form) else [{}]
    for kind in kinds:
        text = form
        for placeholder, value in kind.items():
            text = re.sub(rf"\b{placeholder}\b", value, text)
        if "SIDE" not in text:
            yield text
            continue
        for side in ("p", "n"):
            sided = text.replace("SIDE", side).replace("REPLACED", _REPLACED[side])
            sided = sided.replace("INSTEAD", _INSTEAD[side])
            yield re.sub(r':name "([^"]*)"', rf':name "\1#{side}"', sided)


def _expand_facts(form: str) -> str:
    form = _FLATTENED_CALL.sub(
        lambda match: _FLATTENED.format(p2=match[1], n2=match[2], p=match[3], n=match[4], f=match[5]), form
    )
    form = _REDUCED_CALL.sub(lambda match: _REDUCED.format(p=match[1], n=match[2], is_unit=match[3]), form)
    return expand_arithmetic(form)


def _expand_actions(form: str) -> str:
    """A form in which ``replace`` and ``retire`` are what they stand for."""
    if not any(f"({name} " in form for name in ("replace", "retire", "shorten")):
        return form
    ((_, body, actions, *options),) = read_forms(form)
    expanded = " ".join(text for action in actions for text in _expand_action(action))
    return f"(rule {show(body)} ({expanded}) {' '.join(map(show, options))})"


def _expand_action(action: Sexp) -> Iterator[str]:
    match action:
        case ("replace", old_class, old, new):
            yield f"(union {show(old_class)} {show(new)})"
            yield from _expand_action(("retire", old, new))
        case ("shorten", old_class, (nary, p, n), new):
            old = f"({nary} {show(p)} {show(n)})"
            yield f"(union {show(old_class)} {show(new)})"
            yield f"(subsume {old})"
            yield f"(set ({nary}-retired {show(p)} {show(n)}) ())"
        case ("retire", (nary, p, n), (_, new_p, new_n)):
            sides = [show(side) for side in (p, n, new_p, new_n)]
            yield f"({nary}-line {sides[0]} {sides[1]}) ({nary}-line {sides[2]} {sides[3]})"
            yield f"(set ({nary}-replaced {' '.join(sides)}) ())"
        case _:
            yield show(action)


def _lifting_rules(signature: Signature) -> Iterator[str]:
    for name, (dtypes, nary) in LIFTS.items():
        if name not in signature:
            continue
        binary = signature[name].operand_count == 2
        operands, same = ("a b", "(= d (dt b))") if binary else ("a", "")
        yield (
            f"(rule ((= e ({name} {operands})) (= d (dt a)) {same} ({dtypes} d)) ((union e {nary}))"
            f' :ruleset esat-lift :name "lift-{name}")'
        )
    if "Pow" in signature:
        yield POWER
        yield from BASES


def _viewing_rules(signature: Signature) -> Iterator[str]:
    for name, (nary, facts, view) in VIEWS.items():
        if name in signature:
            yield (
                f"(rule ((= e ({nary} p n)) {facts}) ((union e {view}))"
                f' :ruleset esat-view :name "view-{name}")'
            )
