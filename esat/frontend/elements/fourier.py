"""Discrete Fourier transforms under the names of ``numpy.fft``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from esat.errors import AxisError, ParameterError, ShapeError, describe
from esat.frontend.arrays.assembling import pad
from esat.frontend.arrays.shaping import concatenate, moveaxis, roll
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import check_unmasked
from esat.graph.variables import Variable
from esat.ops.arrays.creation import arange
from esat.ops.cast import cast
from esat.ops.fourier import FFT, IFFT, RFFT
from esat.ops.fourier import irfft as _irfft
from esat.ops.index.basic import subtensor
from esat.ops.inference.axes import normalize_axis

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

Norm = Literal["backward", "ortho", "forward"] | None

_OPPOSITE: Mapping[Any, Norm] = {None: "forward", "backward": "forward", "forward": "backward"}
"""The norm of an inverse transform that divides where this one would not; "ortho" is its own."""


def fft(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> Variable:
    """``out[k] = sum(a[j] * exp(-2 pi i j k / n))`` along an axis.

    Parameters
    ----------
    a
        A Variable or array; float16, float32 and complex64 give complex64, all others complex128.
    n
        Elements that are transformed: more than there are, others being zero, or the first of them.
    axis
        The axis.
    norm
        Whether sums are divided by ``n`` in inverse transforms ("backward", or None), in forward ones
        ("forward"), or by its root in both ("ortho").

    Raises
    ------
    ShapeError
        For an axis whose size is not known, or without elements.
    AxisError
        For an axis that there is not.
    ParameterError
        For ``n`` less than 1, and another ``norm``.

    Examples
    --------
    >>> esat.fft.fft([1.0, 0.0, 0.0]).eval()
    array([1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _along("fft", as_variable(a), n, axis, norm)


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> Variable:
    """What :func:`fft` gives ``a`` of; the parameters are the same."""
    return _along("ifft", as_variable(a), n, axis, norm)


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> Variable:
    """The first ``n // 2 + 1`` frequencies of real numbers, of which :func:`fft` has the conjugates too.

    The parameters are the same.

    Raises
    ------
    DtypeError
        For complex numbers.
    """
    return _along("rfft", as_variable(a), n, axis, norm)


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> Variable:
    """The real numbers of which :func:`rfft` gives ``a``.

    Parameters
    ----------
    a, axis, norm
        As for :func:`fft`.
    n
        How many there are; by default ``2 * (m - 1)`` for ``m`` frequencies. Of float16 they are float16.
    """
    return _along("irfft", as_variable(a), n, axis, norm)


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> Variable:
    """The real frequencies of numbers whose second half is conjugate to the first, which ``a`` is.

    Parameters
    ----------
    a, axis, norm
        As for :func:`fft`.
    n
        How many frequencies there are; by default ``2 * (m - 1)`` for ``m`` numbers.

    Examples
    --------
    >>> esat.fft.hfft([1.0, 2.0, 3.0]).eval()
    array([ 8., -2.,  0., -2.])
    """
    return irfft(op_named("conj")(a), n, axis, _OPPOSITE.get(norm, norm))


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> Variable:
    """The first ``n // 2 + 1`` of the numbers of which :func:`hfft` gives ``a``, which is real.

    The parameters are those of :func:`rfft`.

    Examples
    --------
    >>> esat.fft.ihfft([8.0, -2.0, 0.0, -2.0]).eval()
    array([1.-0.j, 2.-0.j, 3.-0.j])
    """
    result: Variable = op_named("conj")(rfft(a, n, axis, _OPPOSITE.get(norm, norm)))
    return result


def _along(kind: str, operand: Variable, n: int | None, axis: int, norm: Norm) -> Variable:
    place = normalize_axis(kind, axis, operand.tensor_type.ndim)
    last = moveaxis(operand, place, -1)
    found = last.tensor_type.shape[-1]
    if found is None and (n is None or kind == "irfft"):
        if kind == "irfft":
            raise ShapeError(describe(kind, [operand.type], "the number of frequencies is not known"))
        size: Any = last.shape[-1]
    else:
        size = _checked_size(kind, found, n)
        last = _of_size(last, size // 2 + 1 if kind == "irfft" else size)
    transforms = {"fft": FFT, "ifft": IFFT, "rfft": RFFT}
    result = _irfft(last, size) if kind == "irfft" else transforms[kind](last)
    scaled = moveaxis(_scaled(kind, result, size, norm), -1, place)
    return cast(scaled, "float16") if kind == "irfft" and operand.tensor_type.dtype == "float16" else scaled


def _checked_size(kind: str, found: int | None, n: Any) -> int:
    default = 0 if found is None else 2 * (found - 1) if kind == "irfft" else found
    size = default if n is None else int(n)
    if size < 1:
        raise ParameterError(describe(kind, [f"n={size}"], "at least one element is transformed"))
    return size


def _of_size(operand: Variable, size: int) -> Variable:
    """The first elements along the last axis, or all and zeros."""
    found = operand.tensor_type.shape[-1]
    if found == size:
        return operand
    if found is not None and found < size:
        widths = [(0, 0)] * (operand.tensor_type.ndim - 1) + [(0, size - found)]
        return pad(operand, widths)
    if found is None:
        raise ShapeError(describe("fft", [operand.type], "with n, the size of the axis must be known"))
    return subtensor(operand, (Ellipsis, slice(None, size)))


def _scaled(kind: str, result: Variable, size: Any, norm: Norm) -> Variable:
    if norm not in (None, "backward", "ortho", "forward"):
        raise ParameterError(describe(kind, [f"norm={norm!r}"], "a norm is backward, ortho or forward"))
    inverse = kind.startswith("i")
    if norm in (None, "backward"):
        return result
    root = op_named("sqrt")(op_named("mul")(size, 1.0)) if isinstance(size, Variable) else math.sqrt(size)
    factor = root if norm == "ortho" else size
    operation = op_named("mul" if inverse else "div")
    if isinstance(factor, Variable):
        real = "float32" if result.tensor_type.dtype in ("complex64", "float32") else "float64"
        factor = factor.astype(real)
    scaled: Variable = operation(result, factor)
    return scaled


def _several(kind: str, a: Any, s: Any, axes: Any, norm: Norm) -> Variable:
    """A transform along several axes, one after the other; that of real numbers is along the last."""
    variable = as_variable(a)
    ndim = variable.tensor_type.ndim
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    places = [normalize_axis(kind, axis, ndim) for axis in axes]
    if not places:
        raise AxisError(describe(kind, [variable.type], "there are no axes to transform"))
    check_unmasked(s)
    sizes: Sequence[Any] = [None] * len(places) if s is None else list(s)
    if len(sizes) != len(places):
        raise ShapeError(describe(kind, [variable.type], f"{len(sizes)} sizes for {len(places)} axes"))
    each = list(zip(places, sizes, strict=True))
    inner = kind.replace("r", "")
    if kind == "rfft":
        variable = _along("rfft", variable, each[-1][1], each[-1][0], norm)
        each = each[:-1]
    last = each.pop() if kind == "irfft" else None
    for axis, size in each[::-1]:
        variable = _along(inner, variable, size, axis, norm)
    return variable if last is None else _along("irfft", variable, last[1], last[0], norm)


def fftn(a: Any, s: Any = None, axes: Any = None, norm: Norm = None) -> Variable:
    """:func:`fft` along several axes, by default all, of sizes ``s``."""
    return _several("fft", a, s, axes, norm)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Norm = None) -> Variable:
    """:func:`ifft` along several axes, by default all, of sizes ``s``."""
    return _several("ifft", a, s, axes, norm)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Norm = None) -> Variable:
    """:func:`rfft` along the last of several axes, and :func:`fft` along the others."""
    return _several("rfft", a, s, axes, norm)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Norm = None) -> Variable:
    """What :func:`rfftn` gives ``a`` of."""
    return _several("irfft", a, s, axes, norm)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Norm = None) -> Variable:
    """:func:`fft` along two axes."""
    return _several("fft", a, s, axes, norm)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Norm = None) -> Variable:
    """:func:`ifft` along two axes."""
    return _several("ifft", a, s, axes, norm)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Norm = None) -> Variable:
    """:func:`rfft` along the second of two axes, and :func:`fft` along the first."""
    return _several("rfft", a, s, axes, norm)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Norm = None) -> Variable:
    """What :func:`rfft2` gives ``a`` of."""
    return _several("irfft", a, s, axes, norm)


def fftfreq(n: int, d: float = 1.0, device: Any = None) -> Variable:
    """The frequencies of :func:`fft` of ``n`` numbers that are ``d`` apart."""
    return _frequencies("fftfreq", n, d, concatenate([arange(0, (n + 1) // 2), arange(-(n // 2), 0)]))


def rfftfreq(n: int, d: float = 1.0, device: Any = None) -> Variable:
    """The frequencies of :func:`rfft` of ``n`` numbers that are ``d`` apart."""
    return _frequencies("rfftfreq", n, d, arange(0, n // 2 + 1))


def _frequencies(name: str, n: int, d: float, numbers: Variable) -> Variable:
    if not isinstance(n, int | np.integer) or n < 1:
        raise ParameterError(describe(name, [f"n={n!r}"], "a number of elements, at least 1, is wanted"))
    result: Variable = op_named("mul")(numbers, 1.0 / (n * d))
    return result


def fftshift(x: Any, axes: Any = None) -> Variable:
    """Frequency zero moved to the middle, along axes, by default all."""
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: Any, axes: Any = None) -> Variable:
    """Frequency zero moved from the middle to the front, along axes, by default all."""
    return _shifted("ifftshift", x, axes, -1)


def _shifted(name: str, x: Any, axes: Any, sign: int) -> Variable:
    variable = as_variable(x)
    ndim = variable.tensor_type.ndim
    wanted = range(ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    for axis in wanted:
        place = normalize_axis(name, axis, ndim)
        size = variable.tensor_type.shape[place]
        half = variable.shape[place] // 2 if size is None else size // 2
        variable = roll(variable, sign * half, place)
    return variable
