"""Rules of Householder's reflections: factors as LAPACK packs them, and products of these.

A matrix is brought to another form by one reflection ``1 - tau * v @ v.H`` for each column, whose vector
begins with a 1 that is not kept; what of it is below stands where the column has become zero. The names are
those of LAPACK's routines, whose signs these are, too. Columns are counted when the graph is built, so that
the gradients are those of the steps; JAX has none.
"""

from __future__ import annotations

from collections.abc import Iterator

from esat.errors import GraphError, describe
from esat.frontend.arrays.creation import tril, triu, zeros
from esat.frontend.arrays.shaping import broadcast_to, flip, stack
from esat.frontend.elements import elementwise as own
from esat.frontend.elements.reductions import max as largest
from esat.frontend.elements.searching import where
from esat.frontend.jax.steps import Equation, Rule
from esat.frontend.linear_algebra.matrices import diagonal
from esat.frontend.linear_algebra.norms import vector_norm
from esat.graph.variables import Variable
from esat.ops.annotations.gradients import stop_gradient
from esat.ops.arrays.creation import arange, eye
from esat.ops.arrays.view import expand_dims, swapaxes
from esat.ops.cast import cast
from esat.ops.contraction import MATMUL

MOST_REFLECTIONS = 256
"""Of 12 ops each, so that there are no more than of unrolled loops (``calls.MOST_EQUATIONS``)."""


def _places(step: Equation, count: int) -> range:
    if count > MOST_REFLECTIONS:
        reason = f"this takes {count} reflections one after another; at most {MOST_REFLECTIONS} are written"
        raise GraphError(describe("from_jax", [step.name, step.first.type], reason, step.where))
    return range(count)


def _reflection(column: Variable, place: int) -> tuple[Variable, Variable]:
    """``tau (..., 1, 1)`` and ``v (..., m, 1)`` of what makes a column ``(..., m)`` zero below a place.

    As LAPACK's ``larfg``: the element at the place becomes real, and has the other sign.
    """
    rows = arange(column.tensor_type.shape[-1])
    first = column[..., place : place + 1]
    rest = where(own.gt(rows, place), column, 0)
    real, is_complex = own.real(first), column.tensor_type.kind == "c"
    nothing = own.eq(largest(own.abs(rest), -1, keepdims=True), 0)
    if is_complex:
        nothing = own.logical_and(nothing, own.eq(own.imag(first), 0))
    kept = where(own.ge(rows, place), column, 0)
    scale = stop_gradient(where(nothing, 1, largest(own.abs(kept), -1, keepdims=True)))
    length = scale * vector_norm(kept / scale, -1, keepdims=True)
    target = own.neg(own.copysign(length, real))
    difference = where(nothing, 1, first - target)
    tau = where(nothing, 0, (target - first) / where(nothing, 1, target))
    vector = where(own.eq(rows, place), 1, rest / difference)
    return expand_dims(tau, -1), expand_dims(cast(vector, column.tensor_type.dtype), -1)


def _from_left(tau: Variable, vector: Variable, matrix: Variable) -> Variable:
    return own.sub(matrix, tau * MATMUL(vector, MATMUL(_adjoint(vector), matrix)))


def _from_right(tau: Variable, vector: Variable, matrix: Variable) -> Variable:
    return own.sub(matrix, tau * MATMUL(MATMUL(matrix, vector), _adjoint(vector)))


def _adjoint(matrix: Variable) -> Variable:
    return own.conj(swapaxes(matrix, -1, -2))


def _packed(step: Equation, matrix: Variable, below: int, both: bool) -> tuple[Variable, Variable, Variable]:
    """A matrix whose columns are zero ``below + 1`` places under the diagonal, with what stands there of the
    vectors instead; that matrix alone; and the factors.

    With ``both`` each reflection is one of the rows and of the columns, which leaves eigenvalues as they are.
    """
    *batch, rows, columns = step.shape_of(0)
    dtype = matrix.tensor_type.dtype
    count = max(rows - 1, 0) if both else min(rows, columns)
    vectors, factors = [], []
    for place in _places(step, count):
        tau, vector = _reflection(matrix[..., place], place + below)
        if both:
            matrix = _from_right(tau, vector, matrix)
        matrix = _from_left(own.conj(tau), vector, matrix)
        vectors.append(vector[..., 0])
        factors.append(tau[..., 0, 0])
    if not factors:
        return matrix, matrix, zeros((*batch, 0), dtype)
    nothing = broadcast_to(zeros((), dtype), (*batch, rows))
    whole = stack([*vectors, *[nothing] * (columns - count)], -1)
    found = triu(matrix, -below)
    return found + tril(whole, -below - 1), found, stack(factors, -1)


def _qr(step: Equation) -> list[Variable]:
    packed, _, factors = _packed(step, step.first, below=0, both=False)
    return [packed, factors]


def _hessenberg(step: Equation) -> list[Variable]:
    packed, _, factors = _packed(step, step.first, below=1, both=True)
    return [packed, factors]


def _tridiagonal(step: Equation) -> list[Variable]:
    """Of Hermitian matrices, of which one triangle is read; the other stays as it was.

    The upper triangle is the lower one of the matrix with its rows and columns in the other order.
    """
    lower = bool(step.params["lower"])
    matrix = step.first if lower else flip(step.first, (-2, -1))
    strictly, middle = tril(matrix, -1), own.real(diagonal(matrix))
    ones = eye(step.shape_of(0)[-1], dtype=middle.tensor_type.dtype)
    hermitian = strictly + _adjoint(strictly) + expand_dims(middle, -1) * ones
    packed, reduced, factors = _packed(step, hermitian, below=1, both=True)
    main, side = (own.real(diagonal(reduced, offset=offset)) for offset in (0, -1))
    found = [tril(packed) + triu(matrix, 1), main, side, factors]
    return found if lower else [flip(found[0], (-2, -1)), *(flip(one, -1) for one in found[1:])]


def _in_product(step: Equation) -> Iterator[tuple[Variable, Variable]]:
    """Factors and vectors of the reflections in a product, from the first."""
    vectors, factors = step.operands[:2]
    rows, columns = step.shape_of(0)[-2:]
    below = tril(vectors, -1) + eye(rows, columns, dtype=vectors.tensor_type.dtype)
    for place in _places(step, step.shape_of(1)[-1]):
        yield factors[..., place : place + 1, None], below[..., place : place + 1]


def _product(step: Equation) -> Variable:
    rows, columns = step.shape_of(0)[-2:]
    result = broadcast_to(eye(rows, columns, dtype=step.first.tensor_type.dtype), step.shape_of(0))
    for tau, vector in reversed([*_in_product(step)]):
        result = _from_left(tau, vector, result)
    return result


def _multiplied(step: Equation) -> Variable:
    """A matrix times a product of reflections, or its adjoint."""
    left, transposed = bool(step.params["left"]), bool(step.params["transpose"])
    result = step.operands[2]
    reflections = [*_in_product(step)]
    for tau, vector in reversed(reflections) if left != transposed else reflections:
        factor = own.conj(tau) if transposed else tau
        result = _from_left(factor, vector, result) if left else _from_right(factor, vector, result)
    return result


RULES: dict[str, Rule] = {
    "geqrf": _qr,
    "hessenberg": _hessenberg,
    "householder_product": _product,
    "ormqr": _multiplied,
    "tridiagonal": _tridiagonal,
}
