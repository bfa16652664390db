"""Sizes of axes as facts, and the rules that need to know which are equal.

``(dim x i)`` is the size of axis ``i`` of ``x``, a term of sort ``Dim``: ``(DK n)`` where it is known, or
``(Size t i)``, the size of axis ``i`` of the loaded term ``t``. Equal sizes are one class. Only axes that are
not of size 1 by type have one, so sizes pass through broadcasting as they are. The loader says the sizes of
loaded terms; rules propagate them to terms made by rules.

Operands of one op are taken to agree: where they do not, the graph raises an error when it runs, and so does
whatever is equal to it only if they agree.

Nothing is said, and nothing costs time, before ``(sizes/wanted)`` holds: when there are sums of terms, and
sums over axes.
"""

from __future__ import annotations

from collections.abc import Iterator

from esat.egraph.engine import split_forms
from esat.egraph.language.signature import ELEMENTWISE_TYPINGS, ConstructorSignature, Signature

_DECLARATIONS = """
(sort Dim)
(constructor DK (i64) Dim)
(constructor Size (i64 i64) Dim)
(constructor SizePair (Dim Dim) Dim)
(constructor dim (T i64) Dim :unextractable)
(constructor extent (T i64) Dim :unextractable)   ; of the axes of a mask together: one, or a pair
(relation sizes/added ())
(relation sizes/summed ())
(relation sizes/wanted ())
(relation axis-number (i64))
"""

_RULES = """
(rule ((= e (NarySum p n))) ((sizes/added)) :ruleset esat-known :name "sizes-added")
(rule ((= s (ReduceSum x m))) ((sizes/summed)) :ruleset esat-known :name "sizes-summed")
(rule ((sizes/added) (sizes/summed)) ((sizes/wanted)) :ruleset esat-known :name "sizes-wanted")
(rule ((sizes/wanted) (= e (DimShuffle x p)) (axis-number j) (< j (& 15 (>> p 36)))
       (= i (& 15 (>> p (* 4 j)))) (= n (dim x i)))
      ((union (dim e j) n)) :ruleset esat-known :name "dim-DimShuffle")
(rule ((sizes/wanted) (= e (MatMul x y r)) (= n (dim x i)) (< i (- r 1))) ((union (dim e i) n))
      :ruleset esat-known :name "dim-MatMul-left")
(rule ((sizes/wanted) (= e (MatMul x y r)) (= n (dim y i)) (!= i (- r 2))) ((union (dim e i) n))
      :ruleset esat-known :name "dim-MatMul-right")
(rule ((sizes/wanted) (= s (ReduceSum x m)) (= k (& m (not-i64 (bp x)))) (> k 0) (= i (log2 k)) (= k (<< 1 i))
       (= n (dim x i)))
      ((union (extent x m) n)) :ruleset esat-known :name "extent-one-axis")
(rule ((sizes/wanted) (= s (ReduceSum x m)) (= k (& m (not-i64 (bp x)))) (> k 0) (= j (log2 k))
       (= rest (- k (<< 1 j))) (> rest 0) (= i (log2 rest)) (= rest (<< 1 i)) (= a (dim x i)) (= b (dim x j)))
      ((union (extent x m) (SizePair a b))) :ruleset esat-known :name "extent-two-axes")
"""

_SUMS_AT_ONCE = """
(function KEY/argument (i64 i64 Dim i64 T) T :merge old)
(function KEY/has (i64 i64 Dim i64 T) Unit :merge old)
(rule (SUMMAND (= size (extent x m)) (= w (bp x)))
      ((set (KEY/argument m q size w s) x) (set (KEY/has m q size w s) ()))
      :ruleset esat-known :name "KEY")
(rule ((= e (NarySum p n)) (element-count SIDE s) (= x (KEY/argument m q size w s)) (KEY/has m q size w s)
       (= above (unstable-multiset-filter (unstable-fn "KEY/has" m q size w) p))
       (= below (unstable-multiset-filter (unstable-fn "KEY/has" m q size w) n))
       (> (multiset-length (multiset-sum above below)) 1)
       (= p1 (unstable-multiset-map (unstable-fn "KEY/argument" m q size w) above))
       (= n1 (unstable-multiset-map (unstable-fn "KEY/argument" m q size w) below))
       (= p2 (unstable-multiset-filter-not (unstable-fn "KEY/has" m q size w) p))
       (= n2 (unstable-multiset-filter-not (unstable-fn "KEY/has" m q size w) n)))
      ((let inner (NarySum p1 n1)) (need-type inner) (set (flatten-budget inner) 64)
       (union e (NarySum (multiset-insert p2 TOGETHER) n2)))
      :ruleset esat-lift :name "add-of-KEY-SIDE")
"""
"""sum(x) + sum(y) = sum(x + y) over the same axes of the same sizes, all such summands at once.

Equal masks alone say nothing: axis 0 may have 64 elements in x and 128 in y.
"""

_SUMMANDS = {
    "sums": ("(= s (ReduceSum x m)) (= q 0)", "(ReduceSum inner m)"),
    "views": ("(= s (DimShuffle (ReduceSum x m) q))", "(DimShuffle (ReduceSum inner m) q)"),
}
"""Sums that keep their axes, and those that drop or permute them: facts of a summand, and the result."""


def dims_program(signature: Signature) -> str:
    """Declarations and rules, to be loaded after the layer of n-ary sums and products."""
    lines = [_DECLARATIONS, *(f"(axis-number {axis})" for axis in range(8))]
    for record in signature.values():
        lines += _rules(record)
    for nary in ("NarySum", "NaryProd"):
        for side in ("p", "n"):
            lines.append(
                f"(rule ((sizes/wanted) (= e ({nary} p n)) (element-count {side} s) (= size (dim s i)))"
                f' ((union (dim e i) size)) :ruleset esat-known :name "dim-{nary}#{side}")'
            )
    lines.append(_RULES)
    for key, (summand, together) in _SUMMANDS.items():
        text = _SUMS_AT_ONCE.replace("KEY", key).replace("SUMMAND", summand).replace("TOGETHER", together)
        *head, rule = (form.text for form in split_forms(text))
        lines += [*head, *(rule.replace("SIDE", side) for side in ("p", "n"))]
    return "\n".join(lines)


def _rules(record: ConstructorSignature) -> Iterator[str]:
    """Rules that propagate sizes from a term's operands to the term."""
    if record.result in (*ELEMENTWISE_TYPINGS, "cast", "fill"):
        condition = ""
    elif record.result in ("reduce", "argreduce"):
        condition = " (= 0 (& 1 (>> w0 i)))"
    else:
        return
    for operand in range(record.operand_count):
        yield (
            f"(rule ((sizes/wanted) (= e {record.pattern}) (= size (dim a{operand} i)){condition})"
            f' ((union (dim e i) size)) :ruleset esat-known :name "dim-{record.name}#{operand}")'
        )
