"""The e-graph's constructors, one for each op of the op table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from esat.egraph.matrices import FORMS
from esat.egraph.signature import PLACES_ONLY, ConstructorSignature, Signature, Typing
from esat.egraph.terms import TermGraph
from esat.graph import Op
from esat.graph.registry import registered_ops
from esat.ops.elementwise.record import Elementwise
from esat.ops.linalg.structured import PRODUCTS
from esat.ops.normalization import NORMALIZATIONS
from esat.ops.reduction import REDUCERS
from esat.ops.sparse.record import SparseOp

_SPECIAL = (
    ConstructorSignature("Cast", 1, ("i64",), "cast"),
    ConstructorSignature("DimShuffle", 1, ("i64",), "dimshuffle"),
    *(ConstructorSignature(name, 2, ("i64",), "matmul") for name in PRODUCTS),
)
_OVER_AXES = (
    *(ConstructorSignature(r.constructor, 1, ("i64",), cast(Typing, r.typing)) for r in REDUCERS),
    *(ConstructorSignature(name, 1, ("i64",), "same") for name in NORMALIZATIONS.values()),
)
# Ops whose results Python types, but which rules speak of: operands, then the op's number.
_NAMED_OPAQUE = (
    ConstructorSignature("Reshape", 2, ("i64",), "opaque"),
    ConstructorSignature("Eye", 3, ("i64",), "opaque"),
    ConstructorSignature("Tri", 3, ("i64",), "opaque"),
)


def op_signature() -> Signature:
    """The signature of all registered ops."""
    matrices = (form.record for form in FORMS)
    return Signature((*_SPECIAL, *_OVER_AXES, *_NAMED_OPAQUE, *matrices, *_records(registered_ops())))


def _records(ops: Iterable[Op]) -> Iterable[ConstructorSignature]:
    for op in ops:
        if isinstance(op, Elementwise) and op.constructor != "Fill":
            same = all(typing == "same" for typing in op.operand_typing)
            operand_dtypes = None if same else tuple(op.operand_typing)
            yield ConstructorSignature(
                op.constructor, op.arity, (), cast(Typing, op.typing), op.needs_floats, operand_dtypes
            )
        elif isinstance(op, SparseOp):
            yield _sparse_record(op)


def _sparse_record(op: SparseOp) -> ConstructorSignature:
    """Where a sparse operand gives the places only, its dtype is its own."""
    operand_dtypes = ("", *["same"] * (len(op.kinds) - 1)) if op.typing in PLACES_ONLY else None
    sorts = ("i64",) * len(op.properties())
    return ConstructorSignature(
        op.constructor, len(op.kinds), sorts, cast(Typing, op.typing), False, operand_dtypes, op.kinds
    )


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
