"""Rules of primitives that few programs have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.frontend.arrays.assembling import unstack
from esat.frontend.arrays.indexing import take_along_axis
from esat.frontend.elements import elementwise as own
from esat.frontend.elements.bits import bitwise_count
from esat.frontend.elements.searching import where
from esat.frontend.jax.steps import Equation, Rule
from esat.frontend.linear_algebra.eigenvalues import eig, eigvals
from esat.frontend.linear_algebra.linalg_functions import cholesky, solve
from esat.graph.variables import Variable
from esat.ops.arrays.creation import eye
from esat.ops.arrays.sorting import argsort
from esat.ops.arrays.view import expand_dims, swapaxes
from esat.ops.cast import cast
from esat.ops.contraction import MATMUL

# ---- bits of integers


def _as_unsigned(x: Variable) -> Variable:
    return cast(x, x.tensor_type.dtype.removeprefix("u").replace("int", "uint"))


def _ones(step: Equation) -> Variable:
    return bitwise_count(_as_unsigned(step.first))


def _leading_zeros(step: Equation) -> Variable:
    """As many as the bits that are not below the highest one."""
    bits = _as_unsigned(step.first)
    width = bits.tensor_type.numpy_dtype.itemsize * 8
    shift = 1
    while shift < width:
        bits = own.bitwise_or(bits, own.right_shift(bits, shift))
        shift *= 2
    return own.sub(width, cast(bitwise_count(bits), "int64"))


def _high_product(step: Equation) -> Variable:
    """The upper half of the bits of products, of which 64 bits are computed by halves of the factors."""
    x, y = step.operands
    dtype = x.tensor_type.dtype
    width = x.tensor_type.numpy_dtype.itemsize * 8
    if width < 64:
        wide = "uint64" if x.tensor_type.kind == "u" else "int64"
        return cast(own.right_shift(own.mul(cast(x, wide), cast(y, wide)), width), dtype)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b = _as_unsigned(x), _as_unsigned(y)
    (a1, a0), (b1, b0) = ((own.right_shift(one, half), own.bitwise_and(one, low)) for one in (a, b))
    middle = a1 * b0 + own.right_shift(a0 * b0, half)
    other = a0 * b1 + own.bitwise_and(middle, low)
    high = a1 * b1 + own.right_shift(middle, half) + own.right_shift(other, half)
    if x.tensor_type.kind == "i":
        nothing = np.uint64(0)
        high = high - where(own.lt(x, 0), b, nothing) - where(own.lt(y, 0), a, nothing)
    return cast(high, dtype)


# ---- linear algebra


def _eig(step: Equation) -> list[Variable]:
    params = step.params
    if params["compute_left_eigenvectors"]:
        raise DtypeError(describe(step.name, [step.first.type], "has no left eigenvectors here", step.where))
    return list(eig(step.first)) if params["compute_right_eigenvectors"] else [eigvals(step.first)]


def _tridiagonal(step: Equation) -> Variable:
    """The system as one with a matrix of all elements."""
    below, middle, above, sides = step.operands
    size = step.shape_of(1)[-1]
    ones = eye(size, dtype=middle.tensor_type.dtype)
    matrix = expand_dims(middle, -1) * ones
    if size > 1:
        lower = eye(size, size, -1, middle.tensor_type.dtype)
        upper = eye(size, size, 1, middle.tensor_type.dtype)
        matrix = matrix + expand_dims(below, -1) * lower + expand_dims(above, -1) * upper
    return solve(matrix, sides)


def _updated(step: Equation) -> Variable:
    """The upper factor of ``r.T @ r + outer(w, w)``."""
    factor, vector = step.operands
    whole = MATMUL(swapaxes(factor, -1, -2), factor) + expand_dims(vector, -1) * expand_dims(vector, -2)
    return cholesky(whole, upper=True)


def _symmetric_product(step: Equation) -> Variable:
    matrix, other = step.operands
    product = MATMUL(matrix, swapaxes(matrix, -1, -2))
    return own.add(step.params["alpha"] * product, step.params["beta"] * other)


# ---- others


def _largest(step: Equation) -> list[Variable]:
    """All are looked at: no approximation is made."""
    params = step.params
    axis = int(params["reduction_dimension"]) % step.first.tensor_type.ndim
    order = argsort(own.neg(step.first) if params["is_max_k"] else step.first, axis)
    chosen = order[(*[slice(None)] * axis, slice(int(params["k"])))]
    return [take_along_axis(step.first, chosen, axis), chosen]


def _unstacked(step: Equation) -> list[Variable]:
    return list(unstack(step.first, int(step.params["axis"])))


_TERMS = 9
"""Terms of a sum before the rest of it is taken for an integral."""
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _zeta(step: Equation) -> Variable:
    """Hurwitz's zeta function by the formula of Euler and Maclaurin; Johansson (2015), "Rigorous
    high-precision computation of the Hurwitz zeta function and its derivatives"."""
    s, q = step.operands
    total: Any = own.pow(q, -s)
    for place in range(1, _TERMS):
        total = total + own.pow(q + place, -s)
    end = q + _TERMS
    power = own.pow(end, -s)
    total = total + power * end / (s - 1) + power / 2
    factor = s / end
    for place, number in enumerate(_BERNOULLI, 1):
        total = total + number / math.factorial(2 * place) * factor * power
        factor = factor * (s + (2 * place - 1)) * (s + 2 * place) / (end * end)
    poles = own.bitwise_and(own.le(q, 0), own.eq(q, own.floor(q)))
    undefined = own.bitwise_and(own.le(q, 0), own.ne(s, own.floor(s)))
    total = where(poles, math.inf, where(undefined, math.nan, total))
    return where(own.eq(s, 1), math.inf, where(own.lt(s, 1), math.nan, total))


RULES: dict[str, Rule] = {
    "approx_top_k": _largest,
    "bessel_i0e": lambda step: own.i0e(step.first),
    "bessel_i1e": lambda step: own.i1e(step.first),
    "cholesky_update": _updated,
    "clz": _leading_zeros,
    "eig": _eig,
    "mulhi": _high_product,
    "population_count": _ones,
    "symmetric_product": _symmetric_product,
    "tridiagonal_solve": _tridiagonal,
    "unstack": _unstacked,
    "zeta": _zeta,
}
