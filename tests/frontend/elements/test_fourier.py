"""Fourier transforms: against NumPy's, their derivatives and batches, and in functions of arrays."""

from functools import partial

import numpy as np
import pytest
from oracle import agree

import esat
from esat.errors import AxisError, DtypeError, ParameterError, ShapeError
from esat.frontend.derivatives.verify_grad import verify_grad

rng = np.random.default_rng(2)
REAL = rng.normal(size=(4, 6))
COMPLEX = REAL + 1j * rng.normal(size=(4, 6))
OPTIONS = [{}, {"axis": 0}, {"n": 5}, {"n": 9, "axis": 0}, {"norm": "ortho"}, {"norm": "forward", "n": 4}]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_one_axis(name, dtype):
    ours, theirs = getattr(esat.fft, name), getattr(np.fft, name)
    x = (COMPLEX if dtype.startswith("c") else np.abs(REAL) * 3).astype(dtype)
    if name == "rfft" and dtype.startswith("c"):
        with pytest.raises(DtypeError):
            ours(x)
        return
    for options in OPTIONS:
        static = (True,) if "n" in options or name == "irfft" else (True, False)
        agree(lambda x, o=options: ours(x, **o), lambda x, o=options: theirs(x, **o), x, static=static)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_real_frequencies(dtype):
    x = (COMPLEX if dtype.startswith("c") else REAL).astype(dtype)
    for options in OPTIONS:
        for name in ("hfft",) if dtype.startswith("c") else ("hfft", "ihfft"):
            ours, theirs = (partial(getattr(module, name), **options) for module in (esat.fft, np.fft))
            agree(ours, theirs, x, static=(True,))
    if dtype.startswith("c"):
        with pytest.raises(DtypeError):
            esat.fft.ihfft(x)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "irfft2", "rfftn"])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_half_precision(name, norm):
    """NumPy has the factor of a norm in float16, too."""
    x = REAL.astype("float16")
    expected, found = getattr(np.fft, name)(x, norm=norm), getattr(esat.fft, name)(x, norm=norm).eval()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, 1e-3, 1e-3)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
def test_several_axes(name):
    ours, theirs = getattr(esat.fft, name), getattr(np.fft, name)
    x = rng.normal(size=(3, 4, 5)) + (0 if name.startswith("r") else 1j)
    for options in ({}, {"axes": (0, 2)}, {"s": (3, 6), "axes": (1, 2)}, {"norm": "ortho"}):
        agree(lambda x, o=options: ours(x, **o), lambda x, o=options: theirs(x, **o), x, static=(True,))


def test_shifts_and_frequencies():
    for axes in (None, 0, (0, 1)):
        agree(lambda x, a=axes: esat.fft.fftshift(x, a), lambda x, a=axes: np.fft.fftshift(x, a), REAL)
        agree(lambda x, a=axes: esat.fft.ifftshift(x, a), lambda x, a=axes: np.fft.ifftshift(x, a), REAL)
    for n in (1, 5, 6):
        np.testing.assert_array_equal(esat.fft.fftfreq(n, 0.1).eval(), np.fft.fftfreq(n, 0.1))
        np.testing.assert_array_equal(esat.fft.rfftfreq(n).eval(), np.fft.rfftfreq(n))


def test_what_is_refused():
    with pytest.raises(AxisError):
        esat.fft.fft(REAL, axis=2)
    with pytest.raises(ParameterError, match="n=0"):
        esat.fft.fft(REAL, n=0)
    with pytest.raises(ParameterError, match="norm"):
        esat.fft.fft(REAL, norm="best")
    with pytest.raises(ShapeError):
        esat.fft.irfft(esat.vector())
    with pytest.raises(ShapeError):
        esat.fft.fftn(REAL, s=(2, 2, 2), axes=(0, 1))


def parts(z):
    return (esat.real(z) ** 2).sum() + (esat.imag(z) ** 3).sum()


@pytest.mark.parametrize("size", [5, 6])
def test_gradients(size):
    x, y = REAL[:2, :size], np.roll(REAL, 1)[:2, :size]
    for transform in (esat.fft.fft, esat.fft.ifft):
        verify_grad(lambda a, b, f=transform: parts(f(a + 1j * b)), [x, y], tolerance=1e-5)
    verify_grad(lambda a: parts(esat.fft.rfft(a)), [x], tolerance=1e-5)
    verify_grad(
        lambda a, b: (esat.fft.irfft(a + 1j * b, n=size) ** 3).sum(), [x[:, :4], y[:, :4]], tolerance=1e-5
    )
    verify_grad(lambda a, b: (esat.fft.irfft(a + 1j * b) ** 3).sum(), [x, y], tolerance=1e-5)
    verify_grad(lambda a: parts(esat.fft.fft2(a, s=(3, 4), norm="ortho")), [x], tolerance=1e-5)


def test_in_functions_of_arrays():
    def low_pass(x):
        spectrum = np.fft.rfft(x)
        spectrum[3:] = 0
        return np.fft.irfft(spectrum, len(x))

    f = esat.jit(low_pass, mode="fast_compile")
    np.testing.assert_allclose(f(REAL[0]), low_pass(REAL[0]), atol=1e-14)
    np.testing.assert_allclose(esat.vmap(f)(REAL), [low_pass(x) for x in REAL], atol=1e-14)
    tangent = esat.jvp(f, (REAL[0],), (REAL[1],))[1]
    np.testing.assert_allclose(tangent, low_pass(REAL[1]), atol=1e-14)
