"""``scipy.signal``, ``scipy.ndimage`` and the cosine transforms of ``scipy.fft``: sums of neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.errors import CallError, ShapeError, describe
from esat.frontend.arrays.assembling import pad
from esat.frontend.arrays.shaping import concatenate, flip, moveaxis
from esat.frontend.elements import fourier
from esat.frontend.elements import sequences as own
from esat.frontend.linear_algebra.linalg_functions import solve_triangular
from esat.frontend.linear_algebra.linear import tensordot
from esat.frontend.scipy_functions.linalg import toeplitz
from esat.graph.calls.callers import user_line
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.cast import cast

LARGEST_GATHERED = 128
"""Elements of a kernel up to which all neighbours of an element are gathered; for larger ones the transform
of the whole is taken, whose work hangs less on the kernel."""
_PADDING = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "nearest": "edge", "mirror": "reflect",
    "constant": "constant", "grid-constant": "constant", "wrap": "wrap", "grid-wrap": "wrap",
}  # fmt: skip
"""Modes of ``scipy.ndimage`` -> of ``numpy.pad``."""


def _sizes(name: str, variable: Variable) -> tuple[int, ...]:
    sizes = [size for size in variable.tensor_type.shape if size is not None]
    if len(sizes) != variable.ndim:
        reason = "sizes that are not known do not tell the neighbours of elements"
        raise ShapeError(describe(name, [variable.type], reason, user_line()))
    return tuple(sizes)


def _floating(variable: Variable) -> Variable:
    return variable if variable.tensor_type.kind in "fc" else cast(variable, "float64")


def _windows(name: str, values: Variable, kernel: Variable) -> Variable:
    """Sums of products of a kernel with all of its neighbours in an array, where it lies within that."""
    sizes, widths = _sizes(name, values), _sizes(name, kernel)
    counts = [size - width + 1 for size, width in zip(sizes, widths, strict=True)]
    rank = len(sizes)
    places = []
    for axis, (count, width) in enumerate(zip(counts, widths, strict=True)):
        along = np.arange(count)[:, None] + np.arange(width)
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = count, width
        places.append(along.reshape(shape))
    gathered = values[tuple(places)]
    axes = list(range(rank, 2 * rank)), list(range(rank))
    return tensordot(gathered, kernel, axes)


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Variable:
    """The convolution of two arrays of one rank, as ``scipy.signal.convolve``."""
    left, right = as_variable(in1), as_variable(in2)
    if left.ndim != right.ndim:
        raise ShapeError(describe("convolve", [left.type, right.type], "the ranks differ", user_line()))
    if mode not in ("full", "same", "valid"):
        raise CallError(
            describe("convolve", [f"mode={mode!r}"], "full, same and valid are modes", user_line())
        )
    if left.ndim == 0:
        return left * right
    sizes, widths = _sizes("convolve", left), _sizes("convolve", right)
    if left.ndim == 1 and method != "fft":
        found = own.convolve(left, right)
    elif method == "fft" or math.prod(widths) > LARGEST_GATHERED:
        found = _by_transform(left, right, sizes, widths)
    else:
        padded = pad(left, [(width - 1, width - 1) for width in widths])
        found = _windows("convolve", padded, flip(right))
    return _centered(found, sizes, widths, mode)


def _by_transform(left: Variable, right: Variable, sizes: Sequence[int], widths: Sequence[int]) -> Variable:
    full = [size + width - 1 for size, width in zip(sizes, widths, strict=True)]
    axes = list(range(len(full)))
    one, other = _floating(left), _floating(right)
    if "c" in (one.tensor_type.kind, other.tensor_type.kind):
        return fourier.ifftn(fourier.fftn(one, full, axes) * fourier.fftn(other, full, axes), full, axes)
    return fourier.irfftn(fourier.rfftn(one, full, axes) * fourier.rfftn(other, full, axes), full, axes)


def _centered(found: Variable, sizes: Sequence[int], widths: Sequence[int], mode: str) -> Variable:
    """The part of a whole convolution that a mode asks for."""
    if mode == "full":
        return found
    index = []
    for size, width in zip(sizes, widths, strict=True):
        wanted = size if mode == "same" else abs(size - width) + 1
        begin = (size + width - 1 - wanted) // 2
        index.append(slice(begin, begin + wanted))
    result: Variable = found[tuple(index)]
    return result


def fftconvolve(in1: Any, in2: Any, mode: str = "full") -> Variable:
    """The convolution of two arrays by their transforms, as ``scipy.signal.fftconvolve``."""
    return convolve(in1, in2, mode, "fft")


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Variable:
    """The convolution with the conjugate of an array backwards, as ``scipy.signal.correlate``."""
    other = as_variable(in2)
    return convolve(
        in1, flip(op_named("conj")(other) if other.tensor_type.kind == "c" else other), mode, method
    )


def lfilter(b: Any, a: Any, x: Any, axis: int = -1) -> Variable:
    """``a[0] y[n] + a[1] y[n - 1] + ... = b[0] x[n] + b[1] x[n - 1] + ...``, as ``scipy.signal.lfilter``.

    What is fed back is the solution of a triangular system of as many equations as there are samples.
    """
    signal = moveaxis(_floating(as_variable(x)), axis, -1)
    size = _sizes("lfilter", signal)[-1]
    forward, back = (as_variable(one).reshape((-1,)) for one in (b, a))
    first = back[0]
    summed = tensordot(signal, _banded(forward / first, size), ([-1], [1]))
    if _sizes("lfilter", back)[0] > 1:
        columns = moveaxis(summed, -1, 0)
        flat = solve_triangular(_banded(back / first, size), columns.reshape((size, -1)), lower=True)
        summed = moveaxis(flat.reshape(columns.tensor_type.shape), 0, -1)
    return moveaxis(summed, -1, axis)


def _banded(coefficients: Variable, size: int) -> Variable:
    """The lower triangular matrix that sums each element with those before it."""
    count = _sizes("lfilter", coefficients)[0]
    column = coefficients[:size]
    if count < size:
        column = concatenate([column, np.zeros(size - count)])
    return toeplitz(column, np.zeros(size))


# ---- images


def _of_image(
    name: str, input: Any, weights: Any, mode: Any, cval: float, origin: Any, flipped: bool
) -> Variable:
    image, kernel = as_variable(input), as_variable(weights)
    if image.ndim != kernel.ndim:
        raise ShapeError(describe(name, [image.type, kernel.type], "the ranks differ", user_line()))
    widths = _sizes(name, kernel)
    origins = [origin] * image.ndim if isinstance(origin, (int, np.integer)) else list(origin)
    if flipped:
        kernel = flip(kernel)
        origins = [-one - (width % 2 == 0) for one, width in zip(origins, widths, strict=True)]
    befores = [width // 2 + one for one, width in zip(origins, widths, strict=True)]
    padding = [(before, width - 1 - before) for before, width in zip(befores, widths, strict=True)]
    values = _floating(image)
    found = _windows(name, _padded(name, values, padding, mode, cval), _floating(kernel))
    return cast(found, image.dtype)


def _padded(name: str, image: Variable, padding: list[tuple[int, int]], mode: Any, cval: float) -> Variable:
    if mode not in _PADDING:
        reason = f"mode={mode!r} is not known; {', '.join(_PADDING)} are"
        raise CallError(describe(name, [image.type], reason, user_line()))
    options = {"constant_values": cval} if _PADDING[mode] == "constant" else {}
    border: Any = _PADDING[mode]
    return pad(image, padding, border, **options)


def _image_correlate(
    input: Any, weights: Any, mode: str = "reflect", cval: float = 0.0, origin: Any = 0
) -> Variable:
    return _of_image("correlate", input, weights, mode, cval, origin, flipped=False)


def _image_convolve(
    input: Any, weights: Any, mode: str = "reflect", cval: float = 0.0, origin: Any = 0
) -> Variable:
    return _of_image("convolve", input, weights, mode, cval, origin, flipped=True)


def _along(weights: Any, axis: int, rank: int) -> Variable:
    shape = [1] * rank
    shape[axis] = -1
    return as_variable(weights).reshape(tuple(shape))


def _correlate1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Variable:
    image = as_variable(input)
    return _along_one(image, weights, axis, mode, cval, origin, flipped=False)


def _convolve1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Variable:
    image = as_variable(input)
    return _along_one(image, weights, axis, mode, cval, origin, flipped=True)


def _along_one(
    image: Variable, weights: Any, axis: int, mode: str, cval: float, origin: int, flipped: bool
) -> Variable:
    origins = [0] * image.ndim
    origins[axis] = origin
    kernel = _along(weights, axis, image.ndim)
    if not flipped:
        return _of_image("correlate1d", image, kernel, mode, cval, origins, flipped=False)
    # Axes of one element have no other way round.
    width = _sizes("convolve1d", kernel)[axis]
    origins[axis] = -origin - (width % 2 == 0)
    return _of_image("convolve1d", image, flip(kernel, axis), mode, cval, origins, flipped=False)


def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    mode: Any = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    radius: Any = None,
) -> Variable:
    """An image blurred along each axis, as ``scipy.ndimage.gaussian_filter``. Widths must be known."""
    image = as_variable(input)
    each = [np.broadcast_to(one, image.ndim).tolist() for one in (sigma, order)]
    modes = [mode] * image.ndim if isinstance(mode, str) else list(mode)
    radii = [radius] * image.ndim if radius is None or np.ndim(radius) == 0 else list(radius)
    found = image
    for axis, options in enumerate(zip(*each, modes, radii, strict=True)):
        if options[0] > 1e-15:  # as SciPy
            width, degree, border, half = options
            found = gaussian_filter1d(found, width, axis, degree, border, cval, truncate, half)
    return found


def gaussian_filter1d(
    input: Any,
    sigma: float,
    axis: int = -1,
    order: int = 0,
    mode: str = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    radius: int | None = None,
) -> Variable:
    """An image blurred along one axis, as ``scipy.ndimage.gaussian_filter1d``."""
    import scipy.ndimage

    half = int(truncate * float(sigma) + 0.5) if radius is None else int(radius)
    impulse = np.zeros(2 * half + 1)
    impulse[half] = 1.0
    # The weights are what SciPy makes of an impulse.
    weights = scipy.ndimage.gaussian_filter1d(impulse, sigma, order=order, mode="constant", radius=half)
    return _correlate1d(input, weights[::-1], axis, mode, cval)


# ---- transforms


def _cosines(name: str) -> Callable[..., Variable]:
    def transform(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: Any = None) -> Variable:
        import scipy.fft

        values = moveaxis(_floating(as_variable(x)), axis, -1)
        size = _sizes(name, values)[-1]
        count = size if n is None else int(n)
        matrix = getattr(scipy.fft, name)(np.eye(count), type=type, norm=norm, axis=0)
        values = values[..., :count]
        dtype = values.tensor_type.dtype
        kernel = matrix[:, : min(size, count)].astype(
            "float32" if dtype in ("float32", "complex64") else "float64"
        )
        return moveaxis(tensordot(values, kernel, ([-1], [1])), -1, axis)

    transform.__name__ = name
    transform.__doc__ = f"As ``scipy.fft.{name}``, as a product with a matrix."
    return transform


_SIGNAL: dict[str, Callable[..., Any]] = {
    "convolve": convolve, "fftconvolve": fftconvolve, "correlate": correlate, "lfilter": lfilter,
}  # fmt: skip
_IMAGES: dict[str, Callable[..., Any]] = {
    "convolve": _image_convolve, "correlate": _image_correlate, "convolve1d": _convolve1d,
    "correlate1d": _correlate1d, "gaussian_filter": gaussian_filter, "gaussian_filter1d": gaussian_filter1d,
}  # fmt: skip


def _older(name: str) -> Callable[..., Any]:
    """A transform of ``scipy.fftpack``, whose sizes are called ``shape``."""

    def transform(x: Any, shape: Any = None, axes: Any = None) -> Variable:
        result: Variable = getattr(fourier, name)(x, shape, axes)
        return result

    transform.__name__ = name
    transform.__doc__ = f"As ``scipy.fftpack.{name}``."
    return transform


FUNCTIONS = {
    **{f"scipy.signal.{name}": function for name, function in _SIGNAL.items()},
    **{f"scipy.ndimage.{name}": function for name, function in _IMAGES.items()},
    **{f"scipy.fft.{name}": _cosines(name) for name in ("dct", "idct", "dst", "idst")},
    **{f"scipy.fftpack.{name}": _cosines(name) for name in ("dct", "dst")},
    **{f"scipy.fftpack.{name}": getattr(fourier, name) for name in ("fft", "ifft", "fftshift", "ifftshift")},
    **{f"scipy.fftpack.{name}n": _older(f"{name}n") for name in ("fft", "ifft")},
    **{f"scipy.fftpack.{name}2": _older(f"{name}n") for name in ("fft", "ifft")},
}
