"""The e-graph's constructors, one for each op of the op table."""

from __future__ import annotations

from esat.egraph.language.forms import signatures
from esat.egraph.language.signature import ConstructorSignature, Signature
from esat.egraph.language.terms import TermGraph
from esat.graph import Op

# Ops whose results Python types, but which rules speak of: operands, then the op's number.
_NAMED_OPAQUE = (
    ConstructorSignature("Reshape", 2, ("i64",), "opaque"),
    ConstructorSignature("Eye", 3, ("i64",), "opaque"),
    ConstructorSignature("Tri", 3, ("i64",), "opaque"),
)
OPAQUE = frozenset(record.name for record in _NAMED_OPAQUE)
"""Their names: in rules the last parameter stands for the op itself."""


def op_signature() -> Signature:
    """The signature of all registered ops."""
    return Signature((*_NAMED_OPAQUE, *signatures()))


def undeclared_constructors(graph: TermGraph, signature: Signature) -> list[ConstructorSignature]:
    """Constructors of a graph's terms that the signature lacks: ops that no rule speaks of."""
    known = {*signature, "NarySum", "NaryProd"}
    found: dict[str, ConstructorSignature] = {}
    for term in graph.terms:
        if term.constructor not in known:
            sorts = ("i64",) * len(term.attributes)
            record = ConstructorSignature(term.constructor, len(term.operands), sorts)
            found.setdefault(term.constructor, record)
    return list(found.values())


def opaque_constructor(op: Op, operand_count: int) -> str:
    """The constructor of an op without a form of its own.

    Ops that take any number of operands need one constructor for each number.
    """
    named = {record.name: record.operand_count for record in _NAMED_OPAQUE}
    return (
        op.constructor if named.get(op.constructor) == operand_count else f"{op.constructor}_{operand_count}"
    )
