"""Products of small matrices as calls of BLAS by address: pointers, all of them known but the data's."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from esat.codegen.ground.blas_library import (
    LETTERS,
    Package,
    blas_function,
    lapack_address,
    numpy_function_address,
)
from esat.codegen.ground.machine_text import HostFunction, function_at
from esat.graph.op import Array

Argument = int | Literal["left", "right", "output"]
"""An address, or that of an operand's elements."""

_Matrix = tuple[Literal["left", "right"], int, int, tuple[int, int]]
"""Which operand, its rows, columns and strides."""


def product_pointers(
    dtype: str,
    left_shape: Sequence[int],
    left_strides: Sequence[int],
    right_shape: Sequence[int],
    right_strides: Sequence[int],
    scales: tuple[float, float] = (1.0, 0.0),
    package: Package = "scipy",
) -> tuple[int, tuple[Argument, ...], object] | None:
    """How BLAS computes ``alpha * left @ right + beta * output`` into a C-contiguous matrix.

    Parameters
    ----------
    dtype
        float32, float64, complex64 or complex128.
    left_shape, left_strides, right_shape, right_strides
        Of two matrices, strides in elements.
    scales
        ``alpha`` and ``beta``; what is in the output is not read where ``beta`` is 0.
    package
        Whose BLAS.

    Returns
    -------
    The address of a function of BLAS, what it is called with, and an owner of what these addresses point to;
    None where neither the rows nor the columns of an operand lie in one piece each, or where the package has
    another library.
    """
    (rows, inner), columns = left_shape, right_shape[1]
    left: _Matrix = ("left", rows, inner, (left_strides[0], left_strides[1]))
    right: _Matrix = ("right", inner, columns, (right_strides[0], right_strides[1]))
    numbers = RoutineNumbers(dtype, package)
    if columns == 1:
        return _matrix_vector(numbers, left, right, scales, by_column=True)
    if rows == 1:
        transposed: _Matrix = ("right", columns, inner, (right_strides[1], right_strides[0]))
        return _matrix_vector(numbers, transposed, left, scales, by_column=False)
    first, second, address = _order(right), _order(left), numbers.address("gemm")
    if first is None or second is None or address is None:
        return None
    # Row-major matrices are the transposed column-major ones, and (AB)' = B'A'.
    return (
        address,
        (
            numbers.letter("N" if first[0] == "C" else "T"),
            numbers.letter("N" if second[0] == "C" else "T"),
            *map(numbers.integer, (columns, rows, inner)),
            numbers.scalar(scales[0]),
            "right",
            numbers.integer(first[1]),
            "left",
            numbers.integer(second[1]),
            numbers.scalar(scales[1]),
            "output",
            numbers.integer(columns),
        ),
        numbers,
    )


def _matrix_vector(
    numbers: RoutineNumbers, matrix: _Matrix, vector: _Matrix, scales: tuple[float, float], by_column: bool
) -> tuple[int, tuple[Argument, ...], object] | None:
    name, rows, columns, _ = matrix
    order, address = _order(matrix), numbers.address("gemv")
    stride = vector[3][0 if by_column else 1]
    if columns == 1:
        stride = 1
    if order is None or address is None or stride < 1:
        return None
    transposed = order[0] == "C"
    sizes = (columns, rows) if transposed else (rows, columns)
    return (
        address,
        (
            numbers.letter("T" if transposed else "N"),
            *map(numbers.integer, sizes),
            numbers.scalar(scales[0]),
            name,
            numbers.integer(order[1]),
            vector[0],
            numbers.integer(stride),
            numbers.scalar(scales[1]),
            "output",
            numbers.integer(1),
        ),
        numbers,
    )


def order_in_memory(matrix: Array) -> tuple[Literal["C", "F"], int] | None:
    """Whether the rows of a matrix lie in one piece each or its columns do, and their distance in elements.

    None where neither do.
    """
    (rows, columns), (down, across), width = matrix.shape, matrix.strides, matrix.itemsize
    if down % width or across % width:
        return None
    return order_of((rows, columns), (down // width, across // width))


def _order(matrix: _Matrix) -> tuple[Literal["C", "F"], int] | None:
    return order_of(matrix[1:3], matrix[3])


def order_of(shape: Sequence[int], strides: Sequence[int]) -> tuple[Literal["C", "F"], int] | None:
    """In which order a matrix lies in memory, and the distance of its rows or columns; strides are in
    elements."""
    (rows, columns), (down, across) = shape, strides
    if (columns == 1 or across == 1) and (rows == 1 or down >= columns):
        return "C", columns if rows == 1 else down
    if (rows == 1 or down == 1) and (columns == 1 or across >= rows):
        return "F", rows if columns == 1 else across
    return None


_PRODUCTS = ("gemm", "gemv", "syrk", "trmm", "trmv", "trsm", "symv", "scal")
_LAPACK = ("trtri", "potrf", "potrs", "posv", "gesv", "getrf", "trtrs", "syevd", "gesdd", "geqrf", "orgqr")


class RoutineNumbers:
    """Owns the numbers that a package's BLAS is called with pointers to: they are in ``kept``."""

    def __init__(self, dtype: str, package: Package) -> None:
        self._dtype = dtype
        self._package = package
        self.kept: list[np.ndarray] = []

    def address(self, name: str) -> int | None:
        """The address of a function for the dtype; None where the package has another library."""
        full = LETTERS[self._dtype] + name
        return function_address(full) if self._package == "scipy" else numpy_function_address(full)

    def integer(self, value: int) -> int:
        """The address of an integer as BLAS takes it."""
        return self._keep(np.array([value], np.int32 if self._package == "scipy" else np.int64))

    def scalar(self, value: float) -> int:
        """The address of a scale."""
        return self._keep(np.array([value], self._dtype))

    def letter(self, value: str) -> int:
        """The address of a letter."""
        return self._keep(np.array([ord(value), 0], np.uint8))

    def _keep(self, array: np.ndarray) -> int:
        self.kept.append(array)
        return int(array.ctypes.data)


@functools.cache
def named_functions(package: Package) -> Mapping[int, str]:
    """The addresses of the functions that native functions call, with their names."""
    names = [letter + name for letter in "sd" for name in _PRODUCTS]
    names += [letter + name for letter in "sd" for name in _LAPACK]
    names += [letter + name for letter in "cz" for name in ("gemm", "gemv")]
    found = {name: address_named(name, package) for name in names}
    return {place: name for name, place in found.items() if place is not None}


def routine_at(address: int) -> HostFunction | tuple[Package, str] | None:
    """What a native function calls at an address: code of our own, or the package and the name of a
    function of BLAS or LAPACK; None for others."""
    function = function_at(address)
    if function is not None:
        return function
    packages: tuple[Package, ...] = ("scipy", "numpy")
    named = ((package, named_functions(package).get(address)) for package in packages)
    return next(((package, name) for package, name in named if name is not None), None)


def address_named(name: str, package: Package) -> int | None:
    """The address of a function of a package's BLAS or LAPACK; None where it has another library."""
    if name[1:] in _LAPACK:
        return lapack_address(name, package)
    return function_address(name) if package == "scipy" else numpy_function_address(name)


@functools.cache
def function_address(name: str) -> int:
    """The address of a function of SciPy's BLAS, such as ``dgemm``; all it takes are pointers."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    function: object = blas_function(name)
    return int(get(getattr(function, "_cpointer"), None))  # noqa: B009 (it is no part of the declared type)
