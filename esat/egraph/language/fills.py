"""Fills and constants in one form each: rules do not match what are only other ways to write them.

``(Fill x v)`` reads nothing of ``x`` but its shape, so anything of that shape serves as well: the oldest
class is kept, which an elementwise op hands down from its result to its operands until a leaf is reached.
A class whose elements all have one known value is ``(Fill x (K v d))``; what else it may be computed by is
matched no more.

Sums and products that have such a class for an element are in ``core.egg``. There zero times x is zero, but
where x divides: 0/0 is NaN. What divides behind a power, a sum over axes or a view is told here.
"""

from __future__ import annotations

from collections.abc import Iterator

from esat.egraph.language.signature import ELEMENTWISE_TYPINGS, ConstructorSignature, Signature

_OLDER = """
(rule ((= e (Fill x v)) (= e (Fill y v)) (!= x y) (= x (ordering-max x y)))
      ((subsume (Fill x v))) :ruleset esat-known :name "fill-shape-of-older")
"""
"""Of two that lend their shape to one value, the older one stays."""

_QUOTIENTS = {
    "Pow": "(= s (Pow x c)) (< (val c) 0.0)",
    "ReduceSum": "(= s (ReduceSum x m)) (= u (nary-is-quotient x))",
    "DimShuffle": "(= s (DimShuffle x p)) (= u (nary-is-quotient x))",
}
"""By constructor, when its terms divide."""


def fills_program(signature: Signature) -> str:
    """The rules as egglog text, to be loaded after the n-ary layer."""
    lines = [
        _OLDER,
        *(
            _lending_rule(f"({nary} p n)", f"(element-count {side} a)", f"{nary}-{side}")
            for nary in ("NarySum", "NaryProd")
            for side in "pn"
        ),
    ]
    for record in signature.values():
        if record.result in ELEMENTWISE_TYPINGS or record.result in ("cast", "fill"):
            lines += _lending_rules(record)
            lines += _constant_rules(record)
    for name, condition in _QUOTIENTS.items():
        if name in signature:
            lines.append(
                f"(rule ({condition}) ((set (nary-is-quotient s) ()))"
                f' :ruleset esat-index :name "{name}-is-quotient")'
            )
    return "\n".join(lines)


def _lending_rules(record: ConstructorSignature) -> Iterator[str]:
    """An operand of the shape of the result lends it."""
    for index in _arrays(record):
        yield _lending_rule(record.pattern, f"(= a a{index})", f"{record.name}-{index}")


def _lending_rule(pattern: str, operand: str, name: str) -> str:
    """An operand ``a`` of a term lends the term's shape, if it is older: so there is an end."""
    return (
        f"(rule ((= f (Fill x v)) (= x {pattern}) {operand} (= (bp a) (bp x)) (!= a x)"
        f" (= a (ordering-min a x)))"
        f" ((union f (Fill a v)) (subsume (Fill x v)))"
        f' :ruleset esat-known :name "fill-shape-of-{name}")'
    )


def _constant_rules(record: ConstructorSignature) -> Iterator[str]:
    """What has a known value is a constant in the shape of an operand."""
    if record.name == "Fill":
        return
    pattern = record.pattern
    yield (
        f"(rule ((= e {pattern}) (= v (val e)) (= -1 (bp e))) ((subsume {pattern}))"
        f' :ruleset esat-known :name "known-{record.name}")'
    )
    for index in _arrays(record):
        yield (
            f"(rule ((= e {pattern}) (= v (val e)) (!= -1 (bp e)) (= (bp a{index}) (bp e)) (= d (dt e)))"
            f" ((union e (Fill a{index} (K v d))) (subsume {pattern}))"
            f' :ruleset esat-known :name "known-{record.name}-{index}")'
        )


def _arrays(record: ConstructorSignature) -> Iterator[int]:
    """Places of operands that are arrays: a sparse matrix has no elements to fill."""
    for index in range(record.operand_count):
        if record.kinds[index : index + 1] != ("sparse",):
            yield index
