"""What is known of the structure of a Variable's matrices from the ops that compute it.

Local optimizers ask it, and rules of ops that only Python types; all other rules ask
``esat/egraph/analyses/structure.egg``, which says more.
"""

from __future__ import annotations

from collections.abc import Iterable

from esat.classic.rules.graph_terms import same
from esat.egraph.analyses.known import has_fact
from esat.egraph.analyses.structure import relation_of
from esat.egraph.analyses.uniform import broadcast_of, value_of
from esat.egraph.language.terms import SCALAR
from esat.graph import Apply, Constant, TensorType, Variable
from esat.ops.annotations.assume import Assume
from esat.ops.arrays.diagonal import DiagonalOf
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.cast import Cast
from esat.ops.contraction import MatMul
from esat.ops.inference.structure import ZERO_PATTERNS, structure_of
from esat.ops.linalg.factor import Cholesky, CholeskyPullback
from esat.ops.linalg.inverse import Inverse

Facts = frozenset[str]

_NONE: Facts = frozenset()
_DEPTH = 8
"""Ops looked through."""
_IMPLIED = {
    "diagonal": ("lower_triangular", "upper_triangular", "tridiagonal"),
    "positive_definite": ("positive_semidefinite",),
    "positive_semidefinite": ("symmetric",),
    "symmetric": ("square",),
    "orthogonal": ("orthonormal_columns", "square"),
    "permutation": ("square",),
}
_TRANSPOSED = {"lower_triangular": "upper_triangular", "upper_triangular": "lower_triangular"}
_ONE_WAY = frozenset({"orthonormal_columns"})
"""What says nothing of a transpose."""
_INVERSES = frozenset(
    {"lower_triangular", "upper_triangular", "diagonal", "symmetric", "positive_definite", "orthogonal"}
    | {"permutation", "square"}
)
"""What inverses keep."""
_OF_PRODUCTS = ("lower_triangular", "upper_triangular", "diagonal", "orthogonal", "permutation", "square")
"""What products keep of two matrices that both have it."""
_SCALED = frozenset({*ZERO_PATTERNS, "symmetric", "square"})
"""What multiples keep, whatever the number."""
_DEFINITE = frozenset({"positive_definite", "positive_semidefinite"})


def has_structure(variable: Variable, relation: str) -> bool:
    """Whether a fact about matrices, as rules call it, is known of a Variable."""
    return any(relation_of(fact) == relation for fact in facts_of_matrix(variable))


def is_known_square(matrix: Variable) -> bool:
    """Whether a matrix is square by its type or by what computes it."""
    rows, columns = matrix.tensor_type.shape[-2:]
    return (rows is not None and rows == columns) or has_structure(matrix, "square")


def facts_of_matrix(variable: Variable, depth: int = _DEPTH) -> Facts:
    """All that is known of the structure of a Variable's matrices."""
    if isinstance(variable, Constant):
        return _closed(structure_of(variable.data)) if isinstance(variable.type, TensorType) else _NONE
    node = variable.owner
    if node is None or depth == 0 or not _is_matrix(variable):
        return _NONE
    return _closed(_facts_of_result(node, depth - 1))


def _is_matrix(variable: Variable) -> bool:
    """Whether there are two axes or more, neither of the last two of size 1 by type."""
    type = variable.type
    return isinstance(type, TensorType) and type.ndim >= 2 and 1 not in type.shape[-2:]


def _closed(facts: Iterable[str]) -> Facts:
    """Facts with all that follows from them."""
    found = set(facts)
    pending = list(found)
    while pending:
        new = set(_IMPLIED.get(pending.pop(), ())) - found
        found |= new
        pending += new
    if {"lower_triangular", "upper_triangular"} <= found:
        found.add("diagonal")
    if {"diagonal", "square"} <= found:
        found.add("symmetric")
    return frozenset(found)


def _facts_of_result(node: Apply, depth: int) -> Iterable[str]:
    op, operands = node.op, node.inputs
    if isinstance(op, Assume):
        return facts_of_matrix(operands[0], depth).union(op.facts)
    if isinstance(op, Cast):
        return facts_of_matrix(operands[0], depth) & {*ZERO_PATTERNS, "symmetric"}
    if isinstance(op, DimShuffle):
        facts = facts_of_matrix(operands[0], depth) if op.is_transpose else _NONE
        return {_TRANSPOSED.get(fact, fact) for fact in facts - _ONE_WAY}
    if isinstance(op, Inverse):
        return facts_of_matrix(operands[0], depth) & _INVERSES
    if isinstance(op, MatMul):
        return _of_product(node, depth)
    if op.name in ("add", "sub", "neg", "mul", "div"):
        return _of_elementwise(node, depth)
    if op.name in ("fill", "switch"):
        return {"square"} if any("square" in facts_of_matrix(one, depth) for one in operands) else _NONE
    return _made_so(node)


def _made_so(node: Apply) -> Iterable[str]:
    """Of ops whose results have a structure, whatever their operands."""
    op = node.op
    if isinstance(op, DiagonalOf):
        return _of_diagonal_matrix(node) if not op.offset else _NONE
    if isinstance(op, Cholesky):
        return ("upper_triangular" if op.upper else "lower_triangular", "square")
    if isinstance(op, CholeskyPullback):
        return ("symmetric",)
    if op.name == "tri":
        offset = value_of(node.inputs[2])
        return ("full_lower_triangle",) if offset is not None and offset >= 0 else _NONE
    return _of_identity(node) if op.name == "eye" and value_of(node.inputs[2]) == 0 else _NONE


def _of_diagonal_matrix(node: Apply) -> Iterable[str]:
    facts = ["diagonal", "square"]
    for sign, fact in (("positive", "positive_definite"), ("nonnegative", "positive_semidefinite")):
        if has_fact(node.inputs[0], sign) and node.outputs[0].tensor_type.kind == "f":
            facts.append(fact)
    return facts


def _of_identity(node: Apply) -> Iterable[str]:
    rows, columns, _ = node.inputs
    if not same(rows, columns):
        return ("diagonal",)
    return ("diagonal", "permutation", *["positive_definite"] * (node.outputs[0].tensor_type.kind == "f"))


def _of_product(node: Apply, depth: int) -> Iterable[str]:
    left, right = node.inputs
    both = facts_of_matrix(left, depth) & facts_of_matrix(right, depth)
    facts = [fact for fact in _OF_PRODUCTS if fact in both]
    middle = _between_transposes(left, right)
    if middle is None:
        return facts
    inner = _closed(["positive_semidefinite"]) if middle is left else facts_of_matrix(middle, depth)
    kept = ["symmetric"] * ("symmetric" in inner)
    if "positive_semidefinite" in inner and node.outputs[0].tensor_type.kind == "f":
        kept.append("positive_semidefinite")
    return [*facts, *kept]


def _between_transposes(left: Variable, right: Variable) -> Variable | None:
    """What stands between a matrix and its transpose in a product: the matrix itself where nothing does."""
    if _are_transposes(left, right):
        return left
    node = left.owner
    if node is not None and isinstance(node.op, MatMul) and _are_transposes(node.inputs[0], right):
        return node.inputs[1]
    node = right.owner
    if node is not None and isinstance(node.op, MatMul) and _are_transposes(left, node.inputs[1]):
        return node.inputs[0]
    return None


def _are_transposes(one: Variable, other: Variable) -> bool:
    return any(
        node is not None
        and isinstance(node.op, DimShuffle)
        and node.op.is_transpose
        and same(node.inputs[0], of)
        for node, of in ((one.owner, other), (other.owner, one))
    )


def _of_elementwise(node: Apply, depth: int) -> Iterable[str]:
    if len(node.inputs) == 1:
        return facts_of_matrix(node.inputs[0], depth) & _SCALED
    left, right = node.inputs
    name = node.op.name
    if name in ("mul", "div"):
        for matrix, number in ((left, right), (right, left)):
            if broadcast_of(number) == SCALAR and (name == "mul" or number is right):
                kept = _SCALED | (_DEFINITE if has_fact(number, "positive") else _NONE)
                return facts_of_matrix(matrix, depth) & kept
        return _NONE
    if broadcast_of(left) != broadcast_of(right):
        return _NONE
    ours, theirs = facts_of_matrix(left, depth), facts_of_matrix(right, depth)
    facts = ours & theirs & _SCALED
    if name == "add" and "positive_semidefinite" in ours & theirs:
        definite = "positive_definite" in ours | theirs
        return facts | {"positive_definite" if definite else "positive_semidefinite"}
    return facts
