"""cuBLAS called directly: what it is told, by a library on the host that does what cuBLAS would."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import shutil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from esat.gpu import blas
from esat.gpu.blas import Cublas, CublasError
from esat.gpu.device import Device
from tests.gpu.programs import numbers

TYPES = {"S": (np.float32, ctypes.c_float), "D": (np.float64, ctypes.c_double)}


class HostLibrary:
    """Functions of cuBLAS on the host's memory, by columns as cuBLAS reads it."""

    def __init__(self) -> None:
        self.status = 0
        for letter in TYPES:
            setattr(self, f"cublas{letter}gemm_v2", self._function(self._one, letter))
            setattr(self, f"cublas{letter}gemmStridedBatched", self._function(self._many, letter))
        self.cublasSetStream_v2 = self._function(lambda *_: 0, "")

    def _function(self, run: Any, letter: str) -> Any:
        class Function:
            argtypes: Any = None

            def __call__(self, *arguments: Any) -> int:
                return int(run(letter, *arguments))

        return Function()

    def _one(self, letter: str, _: Any, ta: int, tb: int, m: int, n: int, k: int, *rest: Any) -> int:
        alpha, a, lda, b, ldb, beta, c, ldc = rest
        dtype, scalar = TYPES[letter]
        x = _by_columns(a, (k, m) if ta else (m, k), lda, dtype)
        y = _by_columns(b, (n, k) if tb else (k, n), ldb, dtype)
        z = _by_columns(c, (m, n), ldc, dtype)
        factors = [ctypes.cast(one, ctypes.POINTER(scalar)).contents.value for one in (alpha, beta)]
        product = (x.T if ta else x) @ (y.T if tb else y)
        z[...] = factors[0] * product + (factors[1] * z if factors[1] else 0)
        return self.status

    def _many(self, letter: str, handle: Any, ta: int, tb: int, m: int, n: int, k: int, *rest: Any) -> int:
        alpha, a, lda, step_a, b, ldb, step_b, beta, c, ldc, step_c, count = rest
        width = np.dtype(TYPES[letter][0]).itemsize
        for place in range(count):
            moved = [start + place * step * width for start, step in ((a, step_a), (b, step_b), (c, step_c))]
            x, y, z = moved
            self._one(letter, handle, ta, tb, m, n, k, alpha, x, lda, y, ldb, beta, z, ldc)
        return self.status


def _by_columns(address: int, shape: tuple[int, int], leading: int, dtype: Any) -> Any:
    rows, columns = shape
    assert leading >= rows
    count = leading * (columns - 1) + rows
    width = np.dtype(dtype).itemsize
    memory = np.frombuffer((ctypes.c_char * (count * width)).from_address(address), dtype)
    return np.lib.stride_tricks.as_strided(memory, shape, (width, leading * width))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> HostLibrary:
    """What stands for cuBLAS."""
    found = HostLibrary()
    monkeypatch.setattr(blas, "_loaded", lambda: found)
    return found


@pytest.fixture
def cublas(library: HostLibrary, stand_in: Device) -> Cublas:
    """cuBLAS on the stand-in's arrays."""
    stand_in.arrays.cuda.device = SimpleNamespace(get_cublas_handle=lambda: 1)
    return Cublas(stand_in.arrays)


def _forms(matrix: Any) -> list[Any]:
    """The same matrix in several layouts."""
    wide = np.zeros((matrix.shape[0], matrix.shape[1] + 3), matrix.dtype)
    wide[:, : matrix.shape[1]] = matrix
    return [matrix, np.asfortranarray(matrix), wide[:, : matrix.shape[1]], wide.T.copy()[: matrix.shape[1]].T]


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1), (1, 7, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_all_layouts(cublas: Cublas, stand_in: Device, shape: Any, dtype: str) -> None:
    m, k, n = shape
    wrap = type(stand_in.upload(np.zeros(1)))
    a, b, c = (
        numbers(m, k, dtype=dtype),
        numbers(k, n, seed=1, dtype=dtype),
        numbers(m, n, seed=2, dtype=dtype),
    )
    for left in _forms(a):
        for right in _forms(b):
            out = c.copy()
            assert cublas.multiply(wrap(left), wrap(right), wrap(out), -0.5, 2.0)
            np.testing.assert_allclose(out, 2 * c - 0.5 * (a @ b), rtol=1e-5, atol=1e-5)


def test_batches_and_what_is_repeated_in_them(cublas: Cublas, stand_in: Device) -> None:
    wrap = type(stand_in.upload(np.zeros(1)))
    a, b = numbers(6, 3, 4), numbers(6, 4, 5, seed=1)
    turned = b.transpose(0, 2, 1).copy().transpose(0, 2, 1)
    for left, right in ((a, b), (a[:1], b), (a, b[:1]), (a[::2], b[::2]), (a, turned)):
        out = np.full((max(len(left), len(right)), 3, 5), np.nan, "f")
        assert cublas.multiply(wrap(left), wrap(right), wrap(out))
        np.testing.assert_allclose(out, left @ right, rtol=1e-5, atol=1e-5)


def test_what_cublas_does_not_take_is_left_to_cupy(cublas: Cublas, stand_in: Device) -> None:
    wrap = type(stand_in.upload(np.zeros(1)))
    out = np.zeros((3, 3), "f")
    square = numbers(3, 3)
    assert not cublas.multiply(wrap(square.astype("d")), wrap(square), wrap(out))
    assert not cublas.multiply(wrap(square.astype("i4")), wrap(square.astype("i4")), wrap(out.astype("i4")))
    assert not cublas.multiply(wrap(numbers(6, 6)[::2, ::2]), wrap(square), wrap(out))
    assert not cublas.multiply(wrap(numbers(3, 0)), wrap(numbers(0, 3)), wrap(out))
    assert not cublas.multiply(wrap(square[::-1]), wrap(square), wrap(out))


def test_an_error_of_cublas_is_told(cublas: Cublas, library: HostLibrary, stand_in: Device) -> None:
    wrap = type(stand_in.upload(np.zeros(1)))
    library.status = 13
    with pytest.raises(CublasError, match=r"a product of \(3, 3\) and \(3, 3\): status 13"):
        cublas.multiply(wrap(numbers(3, 3)), wrap(numbers(3, 3)), wrap(np.zeros((3, 3), "f")))


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 200, 7), (300, 2, 1), (64, 1000, 64)])
def test_products_of_a_device(device: Device, shape: Any) -> None:
    m, k, n = shape
    a, b = numbers(m, k), numbers(k, n, seed=1)
    left, right = device.upload(a), device.upload(np.ascontiguousarray(b.T)).T
    np.testing.assert_allclose(device.download(device.product(left, right)), a @ b, rtol=1e-4, atol=1e-4)
    target = device.upload(np.ones((m, n), "f"))
    device.add_product(target, 0.5, left, right, 2.0)
    np.testing.assert_allclose(device.download(target), 2 + 0.5 * (a @ b), rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not hasattr(os, "RTLD_NOLOAD"), reason="the system cannot say what is loaded")
def test_no_library_is_taken_but_the_one_that_is_loaded(tmp_path, monkeypatch):
    """There may be several versions on a machine, and handles are those of the one that cupy loaded."""
    copy = shutil.copy(_ctypes.__file__, tmp_path / "libcopy.so")
    monkeypatch.setattr(blas, "_NAMES", (str(copy),))
    with pytest.raises(OSError, match="is loaded"):
        blas._loaded()
    ctypes.CDLL(str(copy))
    assert blas._loaded()._name == str(copy)
