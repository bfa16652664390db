"""Functions of matrices in the e-graph: their properties are numbers, so that rules can make new ones.

A term's attributes are the op's properties, in the order below, then the number of axes of its operands::

    (Solve a b r)  (SolveSemidefinite a b r)  (Inv a r)  (Expm a r)  (InvTriangular a lower r)  (Det a r)
    (Output (SlogDet a r) k)  (Diagonal a r)  (Diag v 1)  (NormalMatMul a x 2)  (Cholesky a upper r)
    (SolveTriangular a b form r)  (CholeskySolve c b lower r)  (Whiten a b r)  (CholeskyPullback c x r)
    (PackedLU a r)  (PackedSolve f b transpose r)
    (Output (QR a mode r) k)  (Output (LU a r) k)  (Output (SVD a full r) k)  (Output (Eigh a upper r) k)

``upper``, ``lower``, ``full`` and ``transpose`` are 0 or 1; ``mode`` is 0 for reduced, 1 for complete, 2
for r alone. ``form`` is 1 for a lower triangle, plus 2 to solve with its transpose, plus 4 for ones on its
diagonal.
`Diagonal` and `Diag` stand for the main diagonal only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from esat.base.records import record
from esat.egraph.language.result_shapes import EXPECTED, of_matrices
from esat.egraph.language.signature import ConstructorSignature, Typing
from esat.egraph.language.terms import SCALAR, broadcast_word
from esat.graph import Apply, Op, TensorType
from esat.ops.arrays.diagonal import Diagonal, DiagonalOf
from esat.ops.linalg.factor import LU, QR, Cholesky, CholeskyPullback, QRMode
from esat.ops.linalg.functions import Exponential
from esat.ops.linalg.inverse import Determinant, Inverse, SignLogDeterminant, TriangularInverse
from esat.ops.linalg.normal import NormalProduct
from esat.ops.linalg.packed_factors import PackedLU, PackedSolve
from esat.ops.linalg.solve import CholeskySolve, SemidefiniteSolve, Solve, SolveTriangular
from esat.ops.linalg.spectral import SVD, Eigenvectors
from esat.ops.linalg.whitening import Whiten

Shape = tuple[float, ...]
_QR_MODES: tuple[QRMode, ...] = ("reduced", "complete", "r")


@record(frozen=True)
class MatrixForm:
    """How one kind of op stands in the e-graph.

    Attributes
    ----------
    op
        The kind.
    record
        Its constructor.
    numbers
        The properties of an op of this kind as numbers; None for one that has no form.
    make
        The op of such numbers.
    """

    op: type[Op]
    record: ConstructorSignature
    numbers: Callable[[Any], tuple[int, ...] | None]
    make: Callable[..., Op]


def _form(
    op: type[Op],
    operands: int,
    typing: Typing,
    numbers: Callable[[Any], tuple[int, ...] | None] = lambda _: (),
    make: Callable[..., Op] | None = None,
    count: int = 0,
) -> MatrixForm:
    sorts = ("i64",) * (count + 1)
    floats = op not in (Diagonal, DiagonalOf)
    record = ConstructorSignature(op().constructor, operands, sorts, typing, floats)
    return MatrixForm(op, record, numbers, op if make is None else make)


FORMS = (
    _form(Inverse, 1, "square"),
    _form(
        TriangularInverse,
        1,
        "square",
        lambda op: (int(op.lower),),
        lambda lower: TriangularInverse(lower=bool(lower)),
        1,
    ),
    _form(Exponential, 1, "square"),
    _form(Determinant, 1, "determinant"),
    _form(SignLogDeterminant, 1, "determinant"),
    _form(Cholesky, 1, "square", lambda op: (int(op.upper),), lambda upper: Cholesky(bool(upper)), 1),
    _form(Solve, 2, "system"),
    _form(SemidefiniteSolve, 2, "system"),
    _form(Whiten, 2, "system"),
    _form(NormalProduct, 2, "system"),
    _form(CholeskyPullback, 2, "square_system"),
    _form(
        SolveTriangular,
        2,
        "system",
        lambda op: (op.lower + 2 * op.transpose + 4 * op.unit_diagonal,),
        lambda form: SolveTriangular(bool(form & 1), bool(form & 2), bool(form & 4)),
        1,
    ),
    _form(
        CholeskySolve, 2, "system", lambda op: (int(op.lower),), lambda lower: CholeskySolve(bool(lower)), 1
    ),
    _form(PackedLU, 1, "square"),
    _form(
        PackedSolve,
        2,
        "system",
        lambda op: (int(op.transpose),),
        lambda transpose: PackedSolve(bool(transpose)),
        1,
    ),
    _form(Diagonal, 1, "diagonal", lambda op: None if op.offset else ()),
    _form(DiagonalOf, 1, "from_diagonal", lambda op: None if op.offset else ()),
    _form(QR, 1, "opaque", lambda op: (_QR_MODES.index(op.mode),), lambda mode: QR(_QR_MODES[mode]), 1),
    _form(LU, 1, "opaque"),
    _form(SVD, 1, "opaque", lambda op: (int(op.full_matrices),), lambda full: SVD(bool(full)), 1),
    _form(
        Eigenvectors,
        1,
        "opaque",
        lambda op: (int(op.triangle == "U"),),
        lambda upper: Eigenvectors("U" if upper else "L"),
        1,
    ),
)
_BY_OP = {form.op: form for form in FORMS}
BY_CONSTRUCTOR = {form.record.name: form for form in FORMS}


def matrix_term(node: Apply, broadcast: Sequence[int]) -> tuple[str, tuple[int, ...]] | None:
    """Constructor and attributes of a node's term; None for one that has no such form.

    Nor has one whose result is known to have an axis of size 1 where its operands' types do not show it: in
    the e-graph types follow from those of the operands.

    Parameters
    ----------
    node
        The node.
    broadcast
        Broadcast words of its operands.
    """
    form = _BY_OP.get(type(node.op))
    numbers = None if form is None else form.numbers(node.op)
    if form is None or numbers is None:
        return None
    attributes = (*numbers, node.inputs[0].tensor_type.ndim)
    type_ = node.outputs[0].type
    if not isinstance(type_, TensorType):
        return None
    # Axes of size 1 go from the operands to the result as other sizes do.
    shapes = [() if word == SCALAR else _flagged(word) for word in broadcast]
    expected = matrix_shape(form.record.name, attributes, shapes)
    if expected is not None:
        flags = [size == 1.0 for size in expected]
        if broadcast_word(flags) != broadcast_word(type_.broadcastable):
            return None
    return form.record.name, attributes


def _flagged(word: int) -> Shape:
    """A shape with a size of 1 where a broadcast word has it, and of 2 elsewhere."""
    return tuple(1.0 if word >> axis & 1 else 2.0 for axis in range(word.bit_length() - 1))


def matrix_shape(constructor: str, attributes: Sequence[Any], operands: Sequence[Shape]) -> Shape | None:
    """Shape of a term, from those of its operands (empty for one element); None where it is not told."""
    typing = BY_CONSTRUCTOR[constructor].record.result
    return None if typing == "opaque" else of_matrices(typing, operands, int(attributes[-1]), EXPECTED)
