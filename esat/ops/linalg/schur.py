"""Schur forms of one matrix and of two, and Sylvester's equation for matrices that are in such a form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.base.scipy_extensions import lapack
from esat.errors import GradientError, MatrixShapeError, ParameterError, ShapeError, describe
from esat.graph.constants import constant
from esat.graph.op import Array, Op, Shapes, Work, check_count
from esat.graph.registry import op_named
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.creation import tri
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.inference.broadcasting import broadcast_types, equalize_ranks
from esat.ops.linalg.algebra import apply, conjugated, fold_batch, product, transposed, triangle
from esat.ops.linalg.general import HOST_ONLY, complex_dtype
from esat.ops.linalg.record import MatrixOp, Shape, batch_types, check_matrices, check_square

SORTS = ("lhp", "rhp", "iuc", "ouc")
"""Which eigenvalues come first: of the left or right half of the plane, in or out of the unit circle."""


@record(frozen=True, eq=False, repr=False)
class SchurOp(MatrixOp):
    """An op that gives Schur forms.

    They are NaN where LAPACK finds none, as for operands that are not finite.

    Attributes
    ----------
    complex
        Whether the forms of real matrices are complex, and triangular; otherwise they have a block of two
        rows for each pair of conjugate eigenvalues.
    sort
        One of :data:`SORTS`; None for LAPACK's order.
    """

    complex: bool = False
    sort: str | None = None
    host_only = HOST_ONLY

    def __post_init__(self) -> None:
        if self.sort is not None and self.sort not in SORTS:
            reason = f"sort is None or one of {', '.join(SORTS)}"
            raise ParameterError(describe(self.name, [f"sort={self.sort!r}"], reason))

    def dtype(self, inputs: Sequence[Variable]) -> str:
        """Of the forms."""
        dtype = inputs[0].tensor_type.dtype
        return complex_dtype(dtype) if self.complex else dtype

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        reason = "forms have no gradient here: eigenvalues have, and solve_sylvester"
        raise GradientError(describe(self.name, [one.type for one in node.inputs], reason, node.where))

    def __str__(self) -> str:
        words = ["complex"] * self.complex + [self.sort] * (self.sort is not None)
        return f"{self.name}{{{', '.join(map(str, words))}}}" if words else self.name


@record(frozen=True, eq=False, repr=False)
class Schur(SchurOp):
    """``a = z @ t @ z^H`` with a (quasi-)triangular ``t`` and orthonormal ``z``: LAPACK gees.

    ``(..., n, n)`` gives two of that shape.
    """

    name, constructor = "schur", "Schur"
    cubic_operations = 25.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        size = check_square(self.name, inputs[0], inputs)
        form = batch_types(inputs[0].tensor_type, (size, size)).with_dtype(self.dtype(inputs))
        return (form, form)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (matrices,) = inputs
        dtype = complex_dtype(matrices.dtype.name) if self.complex else matrices.dtype.name
        gees, first = lapack("gees", dtype), _FIRST_OF_ONE.get(self.sort or "", _none)

        def form(matrix: Array) -> tuple[Array, ...]:
            nothing = np.full(matrix.shape, np.nan, dtype)
            if not matrix.size or not np.isfinite(matrix).all():
                return nothing, nothing
            options = {"sort_t": int(self.sort is not None)}
            room = int(gees(first, matrix, lwork=-1, **options)[-2][0].real)
            triangular, *_, unitary, _, info = gees(first, matrix, lwork=room, **options)
            return (nothing, nothing) if info else (triangular, unitary)

        return _by_matrices(self, form, "(m,m)->(m,m),(m,m)", (dtype,) * 2, matrices.astype(dtype))


@record(frozen=True, eq=False, repr=False)
class GeneralizedSchur(SchurOp):
    """``a = q @ s @ z^H`` and ``b = q @ t @ z^H``: ``s``, ``t``, what eigenvalues are quotients of, ``q`` and
    ``z``, as ``scipy.linalg.ordqz`` gives them (LAPACK gges, and tgsen for an order).

    Twice ``(..., n, n)`` gives ``(..., n, n)`` four times, and after two of them ``(..., n)`` twice, complex
    numbers and divisors.
    """

    name, constructor = "ordqz", "GeneralizedSchur"
    cubic_operations = 66.0

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        operands = MatrixOp.prepare(self, inputs)
        check_count(self.name, operands, 2)
        return equalize_ranks(operands)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        sizes = {check_square(self.name, one, inputs) for one in inputs} - {None}
        if len(sizes) > 1:
            raise MatrixShapeError(
                describe(self.name, [one.type for one in inputs], "the matrices are of one size")
            )
        size, dtype = (next(iter(sizes)) if sizes else None), self.dtype(inputs)
        source = inputs[0].tensor_type.with_dtype(dtype)
        batch = _batch(self.name, inputs)
        form, values = source.with_shape((*batch, size, size)), source.with_shape((*batch, size))
        return (form, form, values.with_dtype(complex_dtype(dtype)), values, form, form)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        dtype = complex_dtype(inputs[0].dtype.name) if self.complex else inputs[0].dtype.name
        dtypes = (dtype, dtype, complex_dtype(dtype), dtype, dtype, dtype)

        def forms(left: Array, right: Array) -> tuple[Array, ...]:
            sizes = (left.shape,) * 2 + (left.shape[:1],) * 2 + (left.shape,) * 2
            nothing = tuple(np.full(size, np.nan, kind) for size, kind in zip(sizes, dtypes, strict=True))
            if not left.size or not (np.isfinite(left).all() and np.isfinite(right).all()):
                return nothing
            gges = lapack("gges", dtype)
            room = int(gges(_none, left, right, lwork=-1)[-2][0].real)
            found, info = _named(gges(_none, left, right, lwork=room)[:-2]), 0
            if self.sort is not None:
                found, info = _ordered(found, self.sort)
            return nothing if info or not np.isfinite(found[0]).all() else found

        signature = "(m,m),(m,m)->(m,m),(m,m),(m),(m),(m,m),(m,m)"
        return _by_matrices(self, forms, signature, dtypes, *(one.astype(dtype) for one in inputs))


def _named(found: Sequence[Any]) -> tuple[Array, ...]:
    """LAPACK's results without what is counted, with complex numbers for two arrays of real ones."""
    left, right, _, *values, first, second = found
    return (left, right, *_as_complex(values), first, second)


def _as_complex(values: Sequence[Array]) -> tuple[Array, Array]:
    if len(values) == 2:
        return values[0], values[1]
    real, imaginary, divisors = values
    joined: Array = np.empty(real.shape, complex_dtype(real.dtype.name))
    joined.real, joined.imag = real, imaginary
    return joined, divisors


def _ordered(found: tuple[Array, ...], sort: str) -> tuple[tuple[Array, ...], int]:
    """Generalized forms with some eigenvalues first, and whether LAPACK failed at it."""
    left, right, above, below, first, second = found
    tgsen = lapack("tgsen", left)
    room = 1 if left.dtype.kind == "c" else 4 * len(left) + 16
    selected = _FIRST_OF_TWO[sort](above, below)
    left, right, *values, first, second, _, _, _, _, info = tgsen(
        selected, left, right, first, second, ijob=0, lwork=room, liwork=1
    )
    return (left, right, *_as_complex(values), first, second), int(info)


def _none(*_: Any) -> None:
    """No eigenvalue comes before the others."""


_FIRST_OF_ONE: dict[str, Callable[..., Any]] = {
    "lhp": lambda x, y=0.0: x.real < 0.0,
    "rhp": lambda x, y=0.0: x.real >= 0.0,
    "iuc": lambda x, y=0.0: abs(x + y * 1j) <= 1.0,
    "ouc": lambda x, y=0.0: abs(x + y * 1j) > 1.0,
}
"""What ``scipy.linalg.schur`` takes first, of real and imaginary part or of a complex number."""


def _quotient(above: Array, below: Array) -> Array:
    """Eigenvalues; NaN, which no comparison takes, where they are infinite or undefined."""
    finite = below != 0
    return np.where(finite, above / np.where(finite, below, 1), np.nan)


_FIRST_OF_TWO: dict[str, Callable[[Array, Array], Array]] = {
    "lhp": lambda above, below: _quotient(above, below).real < 0.0,
    "rhp": lambda above, below: _quotient(above, below).real > 0.0,
    "iuc": lambda above, below: np.abs(_quotient(above, below)) < 1.0,
    "ouc": lambda above, below: (np.abs(_quotient(above, below)) > 1.0) | ((below == 0) & (above != 0)),
}
"""What ``scipy.linalg.ordqz`` takes first."""


@record(frozen=True, eq=False, repr=False)
class SylvesterOp(MatrixOp):
    """An op that solves ``a @ x + x @ b = c``.

    Operands ``(..., m, m)``, ``(..., n, n)`` and ``(..., m, n)`` of one dtype; batches broadcast.
    """

    host_only = HOST_ONLY

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        operands = MatrixOp.prepare(self, inputs)
        check_count(self.name, operands, 3)
        check_matrices(self.name, operands)
        return equalize_ranks(operands)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        left, right = (check_square(self.name, one, inputs) for one in inputs[:2])
        sides = inputs[2].tensor_type
        rows, columns = sides.shape[-2:]
        if (None not in (left, rows) and left != rows) or (None not in (right, columns) and right != columns):
            reason = f"matrices of {left} and of {right} rows do not fit one of shape ({rows}, {columns})"
            raise ShapeError(describe(self.name, [one.type for one in inputs], reason))
        size = (left if rows is None else rows, right if columns is None else columns)
        return (sides.with_shape((*_batch(self.name, inputs), *size)),)

    def linear_in(self, count: int) -> range:
        return range(2, 3)

    def by_operands(self, node: Apply, back: Variable) -> list[Variable]:
        """Cotangents of all operands, of that of the last one: Kao and Hennequin (2020), "Automatic
        differentiation of Sylvester, Lyapunov, and algebraic Riccati equations", equations 10 and 11."""
        solution = transposed(node.outputs[0])
        return [-product(back, solution), -product(solution, back), back]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        *batch, rows, columns = outputs[0]
        flops = float(np.prod(batch)) * rows * columns * (rows + columns)
        return Work(flops=flops, bytes=general.bytes, calls=1)


@record(frozen=True, eq=False, repr=False)
class Sylvester(SylvesterOp):
    """``x`` with ``a @ x + x @ b = c``, by Schur forms: ``scipy.linalg.solve_sylvester``."""

    name, constructor = "solve_sylvester", "Sylvester"

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        *matrices, sides = inputs
        (first, left), (second, right) = (SCHUR.perform([matrix]) for matrix in matrices)
        turned = left.conj().swapaxes(-1, -2) @ sides @ right
        (solution,) = TRIANGULAR_SYLVESTER.perform([first, second, turned])
        return (left @ solution @ right.conj().swapaxes(-1, -2),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None, None]
        back = apply(self, *map(transposed, node.inputs[:2]), cotangent)
        found = self.by_operands(node, back)
        return [fold_batch(*pair) for pair in zip(found, node.inputs, strict=True)]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        one = SylvesterOp.work(self, inputs, outputs, itemsizes)
        batch = float(np.prod(outputs[0][:-2]))
        forms = 25.0 * batch * sum(float(shape[-1]) ** 3 for shape in inputs[:2])
        return Work(flops=one.flops + forms, bytes=one.bytes, calls=1)


@record(frozen=True, eq=False, repr=False)
class TriangularSylvester(SylvesterOp):
    """:class:`Sylvester` for ``a`` and ``b`` in Schur's form (LAPACK trsyl), times the number by which LAPACK
    keeps the solution from overflow.

    What is below a triangle, of real matrices below their blocks, is not read.

    Attributes
    ----------
    adjoint
        Whether to solve with the adjoints of ``a`` and ``b`` instead.
    """

    adjoint: bool = False
    name, constructor = "triangular_sylvester", "TriangularSylvester"

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        dtype = inputs[2].dtype
        trsyl = lapack("trsyl", dtype)
        form = "N" if not self.adjoint else "C" if dtype.kind == "c" else "T"

        def solved(left: Array, right: Array, sides: Array) -> Array:
            if not sides.size:
                return sides
            result, scale, _ = trsyl(left, right, sides, trana=form, tranb=form)
            return np.asarray(result * scale, dtype)

        return _by_matrices(self, solved, "(m,m),(n,n),(m,n)->(m,n)", (dtype.name,), *inputs)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """By the elements that are read."""
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None, None]
        left, right, sides = node.inputs
        other = TriangularSylvester(not self.adjoint)
        back = conjugated(apply(other, left, right, conjugated(cotangent)))
        first, second, third = self.by_operands(node, back)
        if self.adjoint:
            first, second = conjugated(transposed(first)), conjugated(transposed(second))
        return [
            fold_batch(_read(first, left), left),
            fold_batch(_read(second, right), right),
            fold_batch(third, sides),
        ]

    def __str__(self) -> str:
        return f"{self.name}{{adjoint}}" if self.adjoint else self.name


def _read(by_matrix: Variable, matrix: Variable) -> Variable:
    """Of a cotangent the elements that are read of a matrix: of a real one also those below the diagonal that
    are not 0, and make two rows a block."""
    upper = triangle(by_matrix, lower=False)
    if matrix.tensor_type.kind == "c":
        return upper
    rank = matrix.tensor_type.ndim
    size = size_of(matrix, rank - 1)
    next_below = tri(size, size, -1, "int8") - tri(size, size, -2, "int8")
    block = apply(op_named("mul"), matrix, dimshuffle(next_below, (*["x"] * (rank - 2), 0, 1)))
    zero = constant(0, matrix.tensor_type.dtype)
    return apply(op_named("switch"), apply(op_named("ne"), block, zero), by_matrix, upper)


def _batch(name: str, inputs: Sequence[Variable]) -> Shape:
    """The shape of a batch of matrices."""
    types = [one.tensor_type for one in inputs]
    return broadcast_types(name, [one.with_shape(one.shape[:-2]) for one in types])


def _by_matrices(
    op: MatrixOp, function: Callable[..., Any], signature: str, dtypes: Sequence[str], *arrays: Array
) -> tuple[Array, ...]:
    """The results of a function for each of broadcast batches of matrices."""
    each = np.vectorize(function, otypes=list(dtypes), signature=signature)
    found = op.call(each, *arrays)
    return tuple(found) if isinstance(found, tuple) else (found,)


SCHUR = Schur()
SYLVESTER = Sylvester()
TRIANGULAR_SYLVESTER = TriangularSylvester()
