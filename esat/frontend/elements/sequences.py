"""Functions of samples along an axis, and of coefficients, under NumPy's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from esat.errors import CallError, DtypeError, ParameterError, ShapeError, describe
from esat.frontend.arrays.shaping import atleast_1d, concatenate, ravel
from esat.frontend.elements import reductions
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Constant, Variable
from esat.ops.arrays.creation import alloc, arange
from esat.ops.arrays.cumulative import cumsum
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of, sizes_of
from esat.ops.cast import cast
from esat.ops.control import assert_
from esat.ops.convolution import CONVOLUTION
from esat.ops.elementwise.arithmetic import sub
from esat.ops.elementwise.comparison import ne
from esat.ops.index.basic import subtensor
from esat.ops.inference.axes import normalize_axes, normalize_axis
from esat.ops.inference.promotion import common_dtype

__all__ = [
    "convolve", "correlate", "diff", "ediff1d", "gradient", "polyval", "trapezoid", "unwrap", "vander",
]  # fmt: skip

Part = Literal["full", "same", "valid"]


def convolve(a: Any, v: Any, mode: Part = "full") -> Variable:
    """The convolution ``out[k] = sum(a[i] * v[k - i])`` of two vectors.

    Parameters
    ----------
    a, v
        Vectors of ``n`` and ``m`` elements, neither 0.
    mode
        ``"full"`` gives all ``n + m - 1`` sums, ``"same"`` the ``max(n, m)`` in the middle, ``"valid"`` those
        ``max(n, m) - min(n, m) + 1`` in which each element of the shorter vector has a partner.

    Raises
    ------
    ShapeError
        For operands that are no vectors, or known to be empty.
    ParameterError
        For another ``mode``.
    """
    return _part("convolve", atleast_1d(a), atleast_1d(v), mode)


def correlate(a: Any, v: Any, mode: Part = "valid") -> Variable:
    """``sum(a[i + k] * conj(v[i]))``: the convolution of ``a`` with ``conj(v)`` backwards, see
    :func:`convolve`."""
    other = as_variable(v)
    if other.tensor_type.ndim != 1:
        raise ShapeError(describe("correlate", [as_variable(a).type, other.type], "takes two vectors"))
    other = subtensor(other, (slice(None, None, -1),))
    if other.tensor_type.kind == "c":
        other = op_named("conj")(other)
    return _part("correlate", as_variable(a), other, mode)


def _part(name: str, left: Variable, right: Variable, mode: Part) -> Variable:
    if mode not in ("full", "same", "valid"):
        raise ParameterError(describe(name, [f"mode={mode!r}"], "a mode is full, same or valid"))
    whole: Variable = CONVOLUTION(left, right)
    if mode == "full":
        return whole
    sub, floor_div = op_named("sub"), op_named("floor_div")
    sizes = size_of(left, 0), size_of(right, 0)
    longer, shorter = op_named("maximum")(*sizes), op_named("minimum")(*sizes)
    if mode == "valid":
        return subtensor(whole, (slice(sub(shorter, 1), longer),))
    if name == "convolve":
        before = floor_div(sub(shorter, 1), 2)
    else:
        # NumPy correlates the longer vector with the shorter one and reverses the result.
        swapped = op_named("lt")(*sizes)
        before = op_named("switch")(swapped, floor_div(shorter, 2), floor_div(sub(shorter, 1), 2))
    return subtensor(whole, (slice(before, op_named("add")(before, longer)),))


MOST_DIFFERENCES = 1000
"""Differences of differences: each is a step of the graph."""


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Variable:
    """Differences of neighbours along ``axis``, taken ``n`` times; of booleans, whether they differ.

    Parameters
    ----------
    prepend, append
        What stands before and after the elements: arrays of their rank, or numbers.

    Raises
    ------
    ParameterError
        For a negative ``n``.
    """
    variable = as_variable(a)
    if n == 0:
        return variable
    if not 0 <= n <= MOST_DIFFERENCES:
        reason = f"differences are not taken {n} times, but 0 to {MOST_DIFFERENCES}"
        raise ParameterError(describe("diff", [variable.type], reason))
    index = normalize_axis("diff", axis, variable.tensor_type.ndim)
    ends = [None if end is None else _end(end, variable, index) for end in (prepend, append)]
    if any(end is not None for end in ends):
        parts = [part for part in (ends[0], variable, ends[1]) if part is not None]
        variable = concatenate(parts, index)
    before = (slice(None),) * index
    op = ne if variable.tensor_type.dtype == "bool" else sub
    for _ in range(n):
        later = subtensor(variable, (*before, slice(1, None)))
        variable = op(later, subtensor(variable, (*before, slice(None, -1))))
    return variable


def _end(end: Any, variable: Variable, axis: int) -> Variable:
    """What stands at an end of an array along an axis: a number stands there in every line."""
    # A number of Python's has NumPy's own dtype here: it is put beside the elements, as an array.
    given = as_variable(end if isinstance(end, Variable) else np.asarray(end))
    if given.tensor_type.ndim:
        return given
    sizes = [1 if place == axis else size for place, size in enumerate(sizes_of(variable))]
    return alloc(given, *sizes)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Variable:
    """Differences of neighbours in the flattened array, with more elements before and after them.

    Raises
    ------
    DtypeError
        For booleans, and for numbers before and after them of another kind.
    """
    variable = as_variable(ary)
    if variable.tensor_type.kind == "b":
        raise DtypeError(describe("ediff1d", [variable.type], "booleans have no differences"))
    differences = diff(ravel(variable))
    dtype = differences.tensor_type.dtype
    for part in (to_begin, to_end):
        if part is not None and not np.can_cast(
            common_dtype("ediff1d", [as_variable(part)]), dtype, "same_kind"
        ):
            reason = f"what stands before or after differences of {dtype} cannot be {as_variable(part).type}"
            raise DtypeError(describe("ediff1d", [variable.type], reason))
    parts = [
        differences if part is differences else cast(ravel(part), dtype)
        for part in (to_begin, differences, to_end)
        if part is not None
    ]
    return concatenate(parts) if len(parts) > 1 else differences


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Variable:
    """The integral along ``axis`` of the function that is linear between the samples ``y``.

    Parameters
    ----------
    y
        The samples.
    x
        Where they were taken: a vector, or an array that broadcasts to ``y``.
    dx
        The distance of the samples, where ``x`` is not given.
    """
    samples = as_variable(y)
    index = normalize_axis("trapezoid", axis, samples.tensor_type.ndim)
    distance: Any = dx
    if x is not None:
        places = as_variable(x)
        distance = diff(places, axis=-1 if places.tensor_type.ndim == 1 else axis)
        if places.tensor_type.ndim == 1:
            distance = along(distance, index, samples.tensor_type.ndim)
    pairs = op_named("add")(_sliced(samples, index, 1, None), _sliced(samples, index, None, -1))
    return reductions.sum(op_named("div")(op_named("mul")(distance, pairs), 2.0), index)


def along(vector: Variable, axis: int, rank: int) -> Variable:
    """A vector as an array of ``rank`` axes that varies along one of them."""
    return dimshuffle(vector, [0 if place == axis else "x" for place in range(rank)])


def _sliced(variable: Variable, axis: int, start: Any, stop: Any) -> Variable:
    return subtensor(variable, (*[slice(None)] * axis, slice(start, stop)))


def unwrap(p: Any, discont: float | None = None, axis: int = -1, period: float = 2 * math.pi) -> Variable:
    """Phases with multiples of ``period`` added so that neighbours along ``axis`` differ by at most half
    of it; jumps less than ``discont``, if that is larger, stay.

    Raises
    ------
    DtypeError
        For complex numbers, and for unsigned integers with an integer period.
    """
    phases = as_variable(p)
    index = normalize_axis("unwrap", axis, phases.tensor_type.ndim)
    if phases.tensor_type.kind == "c":
        raise DtypeError(describe("unwrap", [phases.type], "takes real numbers"))
    steps = diff(phases, axis=index)
    dtype = common_dtype("unwrap", [steps, period])
    steps = cast(steps, dtype)
    whole = np.dtype(dtype).kind in "iu"
    if np.dtype(dtype).kind == "u":
        raise DtypeError(describe("unwrap", [phases.type], "unsigned integers have no negative differences"))
    half: Any = period // 2 if whole else period / 2
    eq, gt, switch = (op_named(name) for name in ("eq", "gt", "switch"))
    within = op_named("mod")(steps + half, period) - half
    if not whole or period % 2 == 0:
        within = switch(op_named("mul")(eq(within, -half), gt(steps, 0)), half, within)
    limit = period / 2 if discont is None else discont
    change = switch(op_named("lt")(op_named("abs")(steps), limit), 0, within - steps)
    first, rest = _sliced(phases, index, None, 1), _sliced(phases, index, 1, None)
    moved = op_named("add")(cast(rest, dtype), cast(cumsum(change, index), dtype))
    return concatenate([cast(first, dtype), moved], index)


def gradient(
    f: Any, *varargs: Any, axis: Any = None, edge_order: Literal[1, 2] = 1
) -> Variable | tuple[Variable, ...]:
    """Derivatives from samples: second order differences inside, one-sided ones at the ends.

    Parameters
    ----------
    f
        The samples; integers are computed in float64. Each axis needs at least ``edge_order + 1`` of them.
    varargs
        The distance of samples, by default 1; one scalar for all axes, or for each axis a scalar or a vector
        of coordinates.
    axis
        An axis, or a tuple of them; by default all.
    edge_order
        Of the differences at the ends.

    Returns
    -------
    The derivative along the axis, in the dtype of the samples; a list of them unless there is one.

    Raises
    ------
    CallError
        When the spacings are neither none nor one nor as many as the axes.
    ParameterError
        For another order.
    ShapeError
        For too few samples; at run time, where their number was not known.
    """
    samples = as_variable(f)
    rank = samples.tensor_type.ndim
    axes = normalize_axes("gradient", axis, rank)
    if isinstance(axis, (tuple, list)):
        axes = tuple(normalize_axis("gradient", one, rank) for one in axis)
    if samples.tensor_type.kind in "iu":
        samples = cast(samples, "float64")
    if samples.tensor_type.kind == "b":
        raise DtypeError(describe("gradient", [samples.type], "booleans have no differences"))
    if edge_order not in (1, 2):
        raise ParameterError(describe("gradient", [f"edge_order={edge_order}"], "an order is 1 or 2"))
    spacings = varargs or (1.0,)
    if len(spacings) == 1 and as_variable(spacings[0]).tensor_type.ndim == 0:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        reason = f"{len(varargs)} spacings for {len(axes)} axes"
        raise CallError(describe("gradient", [samples.type], reason))
    samples = _long_enough(samples, axes, edge_order + 1)
    found = [_derivative(samples, h, one, edge_order) for h, one in zip(spacings, axes, strict=True)]
    return tuple(found) if (axis is None and rank != 1) or isinstance(axis, (tuple, list)) else found[0]


def _long_enough(samples: Variable, axes: tuple[int, ...], least: int) -> Variable:
    """The samples, of which there must be so many along each of some axes."""
    sizes = [samples.tensor_type.shape[axis] for axis in axes]
    if any(size is not None and size < least for size in sizes):
        raise ShapeError(
            describe("gradient", [samples.type], f"takes at least {least} samples along an axis")
        )
    asked = [
        op_named("ge")(size_of(samples, axis), least)
        for axis, size in zip(axes, sizes, strict=True)
        if size is None
    ]
    message = f"gradient: takes at least {least} samples along an axis"
    return assert_(samples, *asked, message=message, error=ShapeError) if asked else samples


def _derivative(samples: Variable, spacing: Any, axis: int, order: int) -> Variable:
    """Along one axis; distances stay one number where the spacing is."""
    distances = as_variable(spacing)
    if distances.tensor_type.ndim == 1:
        distances = along(diff(distances), axis, samples.tensor_type.ndim)

    def part(start: int | None, stop: int | None) -> Variable:
        return _sliced(samples, axis, start, stop)

    def step(start: int | None, stop: int | None) -> Any:
        return _sliced(distances, axis, start, stop) if distances.tensor_type.ndim else spacing

    inside = _central(part(None, -2), part(1, -1), part(2, None), step(None, -1), step(1, None))
    if order == 1:
        first = (part(1, 2) - part(0, 1)) / step(0, 1)
        last = (part(-1, None) - part(-2, -1)) / step(-1, None)
    else:
        first = _one_sided(part(0, 1), part(1, 2), part(2, 3), step(0, 1), step(1, 2))
        last = -_one_sided(part(-1, None), part(-2, -1), part(-3, -2), step(-1, None), step(-2, -1))
    return cast(concatenate([first, inside, last], axis), samples.tensor_type.dtype)


def _central(before: Variable, here: Variable, after: Variable, left: Any, right: Any) -> Variable:
    """The derivative at ``here``, of second order for distances that differ as well."""
    if left is right:
        even: Variable = (after - before) / (2.0 * left)
        return even
    total = left + right
    backward = -right / (left * total) * before + (right - left) / (left * right) * here
    uneven: Variable = backward + left / (right * total) * after
    return uneven


def _one_sided(end: Variable, second: Variable, third: Variable, near: Any, far: Any) -> Variable:
    """The derivative of second order at ``end``, from there inwards."""
    total = near + far
    forward = -(2.0 * near + far) / (near * total) * end + total / (near * far) * second
    derivative: Variable = forward - near / (far * total) * third
    return derivative


def polyval(p: Any, x: Any) -> Variable:
    """The polynomial with coefficients ``p``, that of the highest power first, at ``x``, by Horner's rule.

    Raises
    ------
    ShapeError
        When ``p`` is no array whose first axis has a known size.
    """
    coefficients: Sequence[Any]
    if isinstance(p, (list, tuple)) and any(isinstance(coefficient, Variable) for coefficient in p):
        coefficients = p
    else:
        vector = as_variable(p)
        length = vector.tensor_type.shape[0] if vector.tensor_type.ndim else None
        if length is None:
            raise ShapeError(describe("polyval", [vector.type], "the number of coefficients must be known"))
        coefficients = (
            list(vector.data) if isinstance(vector, Constant) else [vector[i] for i in range(length)]
        )
    at = as_variable(x)
    value = op_named("fill")(at, cast(0, at.tensor_type.dtype))
    for coefficient in coefficients:
        value = op_named("add")(op_named("mul")(value, at), coefficient)
    result: Variable = value
    return result


def vander(x: Any, N: Any = None, increasing: bool = False) -> Variable:  # noqa: N803
    """The matrix whose columns are the powers of a vector, ``N`` of them (by default as many as elements),
    the highest first unless ``increasing``."""
    vector = as_variable(x)
    if vector.tensor_type.ndim != 1:
        raise ShapeError(describe("vander", [vector.type], "takes a vector"))
    vector = cast(vector, common_dtype("vander", [vector, np.int64(0)]))
    powers = arange(size_of(vector, 0) if N is None else N)
    column = dimshuffle(vector, (0, "x"))
    raised: Variable = op_named("pow")(column, powers if increasing else powers[::-1])
    return raised
