"""Eigenvectors, singular values, and the factors of QR and LU as steps of native functions.

They are the calls of LAPACK that NumPy and SciPy make, with workspaces of the sizes that it asks for.
"""

from __future__ import annotations

import numpy as np

from esat.codegen.native_functions.native_plan import PermutationStep, Step
from esat.graph import Apply
from esat.ops.linalg.factor import LU, QR
from esat.ops.linalg.spectral import SVD, Eigenvalues, Eigenvectors
from esat.runtime.native.native_lapack import LapackStep
from esat.runtime.native.native_memory import NativeMemory
from esat.runtime.native.native_views import NativeView


def eigenvectors(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.linalg.eigh``, and as ``numpy.linalg.eigvalsh`` for values alone."""
    op = node.op
    assert isinstance(op, Eigenvectors | Eigenvalues)
    library = LapackStep(memory, node, "numpy", ["syevd"])
    info = library.room(1)

    def found(matrix: NativeView, values: NativeView, *vectors: NativeView) -> list[Step]:
        factor, copies = library.column_major(matrix)
        size = library.integers(matrix.shape[0])
        letters = library.letters("V" if vectors else "N"), library.letters(op.triangle)
        pointers = [*letters[0], *letters[1], *size, factor.place, *size, values.place]
        pointers += library.workspaces("syevd", pointers, (library.dtype, library.integer))
        steps = [*copies, library.step("syevd", pointers, info)]
        for one in vectors:
            steps += memory.move(one, factor, library.dtype)
        return steps

    return library.matrices(node, found, (2, 1, 2)[: 1 + len(node.outputs)])


def singular_values(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.linalg.svd``, with vectors and without."""
    library = LapackStep(memory, node, "numpy", ["gesdd"])
    info = library.room(1)
    kind = "N"
    if isinstance(node.op, SVD):
        kind = "A" if node.op.full_matrices else "S"

    def found(matrix: NativeView, *results: NativeView) -> list[Step]:
        source, steps = library.column_major(matrix)
        rows, columns = matrix.shape
        values, vectors = results[0], list[NativeView]()
        if kind != "N":
            left, values, right = results
            vectors = [memory.scratch(one.shape, library.dtype, "F") for one in (left, right)]
        height = library.integers(rows)
        places = [(one.place, *library.integers(one.shape[0])) for one in vectors]
        if not places:
            places = [(library.room(1, library.dtype), *library.integers(size)) for size in (rows, 1)]
        pointers = [*library.letters(kind), *height, *library.integers(columns), source.place, *height]
        pointers += [values.place, *places[0], *places[1]]
        integers = library.room(8 * min(rows, columns))
        pointers += library.workspaces("gesdd", pointers, (library.dtype,), (integers,))
        steps.append(library.step("gesdd", [*pointers, integers], info))
        for target, one in zip(results[::2] if vectors else (), vectors, strict=True):
            steps += memory.move(target, one, library.dtype)
        return steps

    return library.matrices(node, found, (2, 1) if kind == "N" else (2, 2, 1, 2))


def orthogonal_factors(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.linalg.qr``."""
    assert isinstance(node.op, QR)
    library = LapackStep(memory, node, "numpy", ["geqrf", "orgqr"])
    info = library.room(1)

    def found(matrix: NativeView, *results: NativeView) -> list[Step]:
        rows, columns = matrix.shape
        middle = min(rows, columns)
        triangle = results[-1]
        width = results[0].shape[1] if len(results) > 1 else 0
        # Room for columns of the orthogonal factor that the matrix does not have.
        factor = memory.scratch((rows, max(width, columns)), library.dtype, "F")
        within = factor.section(1, 0, columns)
        steps = memory.move(within, matrix, library.dtype)
        sizes = dict(zip((rows, columns, middle), library.integers(rows, columns, middle), strict=True))
        scales = library.room(middle, library.dtype)
        pointers = [sizes[rows], sizes[columns], factor.place, sizes[rows], scales]
        pointers += library.workspaces("geqrf", pointers, (library.dtype,))
        steps.append(library.step("geqrf", pointers, info, refuses=False))
        steps.append(library.part(triangle, factor.section(0, 0, triangle.shape[0]), "upper"))
        if width:
            pointers = [
                sizes[rows],
                *library.integers(width),
                sizes[middle],
                factor.place,
                sizes[rows],
                scales,
            ]
            pointers += library.workspaces("orgqr", pointers, (library.dtype,))
            steps.append(library.step("orgqr", pointers, info, refuses=False))
            steps += memory.move(results[0], factor.section(1, 0, width), library.dtype)
        return steps

    return library.matrices(node, found)


def triangular_factors(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``scipy.linalg.lu``."""
    assert isinstance(node.op, LU)
    library = LapackStep(memory, node, "scipy", ["getrf"])
    info = library.room(1)

    def found(
        matrix: NativeView, permutation: NativeView, lower: NativeView, upper: NativeView
    ) -> list[Step]:
        rows, columns = matrix.shape
        middle = min(rows, columns)
        factors, steps = library.column_major(matrix)
        height, width = library.integers(rows, columns)
        pivots, order = library.room(middle), library.room(rows, np.int64)
        pointers = [height, width, factors.place, height, pivots]
        return [
            *steps,
            library.step("getrf", pointers, info, refuses=False),
            library.part(lower, factors.section(1, 0, middle), "unit lower"),
            library.part(upper, factors.section(0, 0, middle), "upper"),
            PermutationStep(permutation.place, rows, pivots, middle, order, library.dtype),
        ]

    return library.matrices(node, found)
