"""Rules of linear algebra and of Fourier transforms."""

from __future__ import annotations

from esat.errors import DtypeError, describe
from esat.frontend.arrays.assembling import pad
from esat.frontend.arrays.creation import tril, triu
from esat.frontend.arrays.indexing import set_subtensor
from esat.frontend.arrays.shaping import stack
from esat.frontend.elements import fourier
from esat.frontend.elements.reductions import argmax
from esat.frontend.elements.searching import where
from esat.frontend.jax.steps import Equation, Rule
from esat.frontend.linear_algebra import eigenvalues
from esat.frontend.linear_algebra import linalg_functions as linalg
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.view import swapaxes
from esat.ops.cast import cast


def _cholesky(step: Equation) -> Variable:
    return linalg.cholesky(step.first)


def _triangular(step: Equation) -> Variable:
    params, (matrix, sides) = step.params, step.operands
    lower, transposed = bool(params["lower"]), bool(params["transpose_a"])
    if params["conjugate_a"]:
        matrix = op_named("conj")(matrix)
    from_right = not params["left_side"]
    if from_right:
        sides, transposed = swapaxes(sides, -1, -2), not transposed
    unit = bool(params["unit_diagonal"])
    found = linalg.solve_triangular(matrix, sides, 1 if transposed else 0, lower, unit)
    return swapaxes(found, -1, -2) if from_right else found


def _lu(step: Equation) -> list[Variable]:
    """Both factors in one matrix, the exchanges of rows, and the order that they lead to."""
    *_, rows, columns = step.shape_of(0)
    permutation, lower, upper = linalg.lu(step.first)
    least = min(rows, columns)
    batch = [(0, 0)] * (step.first.tensor_type.ndim - 2)
    below = pad(tril(lower, -1), [*batch, (0, 0), (0, columns - least)])
    above = pad(triu(upper), [*batch, (0, rows - least), (0, 0)])
    order = argmax(permutation, axis=-2)
    exchanges = _exchanges(order, least) if step.used[1] else order[..., :least]
    return [below + above, exchanges, order]


def _exchanges(order: Variable, count: int) -> Variable:
    """The row that each row changes places with, one after another, so that rows come into an order."""
    size = int(order.tensor_type.shape[-1] or 0)
    standing = cast(arange(size), "int64") + order * 0
    found = []
    for place in range(count):
        wanted = order[..., place : place + 1]
        where_it_is = argmax(op_named("eq")(standing, wanted), axis=-1)
        found.append(where_it_is)
        leaving = standing[..., place : place + 1]
        standing = where(op_named("eq")(standing, wanted), leaving, standing)
        standing = set_subtensor(standing[..., place : place + 1], wanted)
    return stack(found, -1)


def _permutation(step: Equation) -> Variable:
    """The order of rows after exchanges one after another."""
    exchanges = step.first
    size = int(step.params["permutation_size"])
    order = cast(arange(size), "int64") + exchanges[..., :1] * 0
    numbers = arange(size)
    for place in range(int(exchanges.tensor_type.shape[-1] or 0)):
        other = op_named("eq")(numbers, exchanges[..., place : place + 1])
        there = cast(where(other, order, 0), "int64").sum(axis=-1, keepdims=True)
        order = where(other, order[..., place : place + 1], order)
        order = set_subtensor(order[..., place : place + 1], there)
    return order


def _eigh(step: Equation) -> list[Variable]:
    if step.params.get("subset_by_index") is not None:
        raise _without_option(step, "subset_by_index")
    values, vectors = eigenvalues.eigh(step.first, "L" if step.params["lower"] else "U")
    return [vectors, values]


def _svd(step: Equation) -> list[Variable]:
    if step.params.get("subset_by_index") is not None:
        raise _without_option(step, "subset_by_index")
    if not step.params["compute_uv"]:
        return [linalg.svdvals(step.first)]
    left, values, right = linalg.svd(step.first, bool(step.params["full_matrices"]))
    return [values, left, right]


def _qr(step: Equation) -> list[Variable]:
    if step.params.get("pivoting"):
        raise _without_option(step, "pivoting")
    return list(linalg.qr(step.first, "complete" if step.params["full_matrices"] else "reduced"))


def _without_option(step: Equation, option: str) -> DtypeError:
    return DtypeError(describe(step.name, [step.first.type], f"has no {option} here", step.where))


def _transform(step: Equation) -> Variable:
    kind = step.params["fft_type"]
    name = str(getattr(kind, "name", kind)).rpartition(".")[2].lower()
    lengths = tuple(int(size) for size in step.params["fft_lengths"])
    axes = tuple(range(-len(lengths), 0))
    transform = {"fft": fourier.fftn, "ifft": fourier.ifftn, "rfft": fourier.rfftn, "irfft": fourier.irfftn}
    return transform[name](step.first, lengths, axes)


RULES: dict[str, Rule] = {
    "cholesky": _cholesky,
    "eigh": _eigh,
    "fft": _transform,
    "lu": _lu,
    "lu_pivots_to_permutation": _permutation,
    "qr": _qr,
    "svd": _svd,
    "triangular_solve": _triangular,
}
