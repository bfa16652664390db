"""How ops stand in the e-graph: the one table of constructors, and of the ops behind them.

A term's attributes are numbers, so that rules can make new ones: the number of a `Cast`'s dtype, the word of
a `DimShuffle`, the mask of the axes of a reduction (which keeps them) or a normalization, the number of axes
of the operands of a product; for functions of matrices see :mod:`esat.egraph.analyses.matrices`. An op
without a form here is opaque: rules know it only by its place in a table of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from esat.base.records import record
from esat.egraph.analyses.matrices import FORMS as MATRIX_FORMS
from esat.egraph.analyses.matrices import matrix_term
from esat.egraph.language.signature import PLACES_ONLY, ConstructorSignature, Typing
from esat.egraph.language.terms import RankedOp, dtype_number
from esat.graph import Apply, Op
from esat.graph.registry import op_constructed, registered_ops
from esat.graph.types import DTYPES
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.cast import Cast
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.linalg.structured import PRODUCTS
from esat.ops.normalization import NORMALIZATIONS, Normalization
from esat.ops.reduction import REDUCERS, Reducer, Reduction
from esat.ops.sparse.products import SparseSum
from esat.ops.sparse.record import SparseOp
from esat.rules.language.macros import permutation_axes, permutation_input_rank, permutation_word

Numbers = Sequence[int | float]
Ranks = Sequence[int]


@record(frozen=True)
class TermForm:
    """One constructor, and the ops that it stands for.

    Attributes
    ----------
    record
        What the e-graph knows of the constructor.
    op
        The op of a term's attributes and operands of such ranks, and the ranks that these must have. Scalars
        have rank 0.
    """

    record: ConstructorSignature
    op: Callable[[Numbers, Ranks], RankedOp]


def op_of(
    constructor: str, attributes: Numbers, ranks: Ranks, opaque: Sequence[RankedOp] = ()
) -> RankedOp | None:
    """The op of a term; None for a leaf, an n-ary sum or product, an output, and a mark of the e-graph's.

    Parameters
    ----------
    constructor, attributes
        The term's.
    ranks
        Number of axes of each operand; 0 for scalars, whatever they have.
    opaque
        The ops that the last attributes of opaque terms refer to.
    """
    form = _FORMS.get(constructor)
    if form is not None:
        return form.op(attributes, ranks)
    op = op_constructed(constructor)
    if isinstance(op, Elementwise):
        return RankedOp(op, (max(ranks, default=0),) * len(ranks))
    if isinstance(op, SparseOp) and op.kinds:
        return _sparse(op, attributes)
    number = int(attributes[-1]) if attributes else -1
    return opaque[number] if 0 <= number < len(opaque) else None


def term_of(node: Apply, broadcast: Sequence[int]) -> tuple[str, tuple[int, ...]] | None:
    """Constructor and attributes of the term of a node, whose operands are that of the term; None if opaque.

    Parameters
    ----------
    node
        The node, with one output unless it is a function of matrices.
    broadcast
        Broadcast words of its operands.
    """
    op = node.op
    if isinstance(op, Elementwise):
        return op.constructor, ()
    if isinstance(op, SparseOp):
        return (op.constructor, _properties(op)) if op.kinds else None
    if op.constructor in PRODUCTS:
        return op.constructor, (node.inputs[0].tensor_type.ndim,)
    if isinstance(op, Cast):
        return "Cast", (dtype_number(op.dtype),)
    if isinstance(op, DimShuffle):
        return "DimShuffle", (permutation_word(op.order, op.input_rank),)
    if isinstance(op, Normalization) or (isinstance(op, Reduction) and op.keepdims):
        return op.constructor, (mask_of(op.axes),)
    return matrix_term(node, broadcast)


def mask_of(axes: Iterable[int]) -> int:
    """Axes as the bits of one number."""
    return sum(1 << axis for axis in axes)


def signatures() -> Iterable[ConstructorSignature]:
    """Records of the constructors of all ops, those that users registered included."""
    yield from (form.record for form in _FORMS.values())
    for op in registered_ops():
        if isinstance(op, Elementwise) and op.constructor != "Fill":
            same = all(typing == "same" for typing in op.operand_typing)
            dtypes = None if same else tuple(op.operand_typing)
            typing = cast(Typing, op.typing)
            yield ConstructorSignature(op.constructor, op.arity, (), typing, op.needs_floats, dtypes)
        elif isinstance(op, SparseOp):
            yield _sparse_record(op)


def _cast(attributes: Numbers, ranks: Ranks) -> RankedOp:
    return RankedOp(Cast(DTYPES[int(attributes[0])]), (None,))


def _dimshuffle(attributes: Numbers, ranks: Ranks) -> RankedOp:
    word = int(attributes[0])
    rank = permutation_input_rank(word)
    return RankedOp(DimShuffle(permutation_axes(word), rank), (rank,))


def _product(op: Op) -> Callable[[Numbers, Ranks], RankedOp]:
    return lambda attributes, ranks: RankedOp(op, (int(attributes[0]),) * 2)


def _over_axes(make: Callable[[tuple[int, ...]], Op]) -> Callable[[Numbers, Ranks], RankedOp]:
    def over_axes(attributes: Numbers, ranks: Ranks) -> RankedOp:
        mask = int(attributes[0])
        axes = tuple(axis for axis in range(mask.bit_length()) if mask >> axis & 1)
        return RankedOp(make(axes), (max(ranks[0], mask.bit_length()),))

    return over_axes


def _reducing(reducer: Reducer) -> Callable[[tuple[int, ...]], Op]:
    return lambda axes: Reduction(reducer, axes, keepdims=True)


def _normalizing(name: str, constructor: str) -> Callable[[tuple[int, ...]], Op]:
    return lambda axes: Normalization(name, constructor, axes)


def _matrices(make: Callable[..., Op], operands: int) -> Callable[[Numbers, Ranks], RankedOp]:
    def of_matrices(attributes: Numbers, ranks: Ranks) -> RankedOp:
        *numbers, rank = map(int, attributes)
        return RankedOp(make(*numbers), (rank,) * operands)

    return of_matrices


def _sparse(op: SparseOp, attributes: Numbers) -> RankedOp:
    made = SparseSum(int(attributes[0])) if isinstance(op, SparseSum) else op
    return RankedOp(made, tuple(None if kind == "sparse" else kind for kind in op.kinds))


def _properties(op: SparseOp) -> tuple[int, ...]:
    return tuple(int(str(part)) for part in op.properties())


def _sparse_record(op: SparseOp) -> ConstructorSignature:
    """Where a sparse operand gives the places only, its dtype is its own."""
    dtypes = ("", *["same"] * (len(op.kinds) - 1)) if op.typing in PLACES_ONLY else None
    sorts = ("i64",) * len(op.properties())
    typing = cast(Typing, op.typing)
    return ConstructorSignature(op.constructor, len(op.kinds), sorts, typing, False, dtypes, op.kinds)


def _one_number(name: str, operands: int, typing: str) -> ConstructorSignature:
    return ConstructorSignature(name, operands, ("i64",), cast(Typing, typing))


_FORMS = {
    form.record.name: form
    for form in (
        TermForm(_one_number("Cast", 1, "cast"), _cast),
        TermForm(_one_number("DimShuffle", 1, "dimshuffle"), _dimshuffle),
        *(TermForm(_one_number(name, 2, "matmul"), _product(op)) for name, op in PRODUCTS.items()),
        *(TermForm(_one_number(r.constructor, 1, r.typing), _over_axes(_reducing(r))) for r in REDUCERS),
        *(
            TermForm(_one_number(constructor, 1, "same"), _over_axes(_normalizing(name, constructor)))
            for name, constructor in NORMALIZATIONS.items()
        ),
        *(TermForm(one.record, _matrices(one.make, one.record.operand_count)) for one in MATRIX_FORMS),
    )
}
