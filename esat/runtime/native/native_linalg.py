"""Factorizations and systems of equations as steps of native functions.

They are the calls of LAPACK that NumPy and SciPy make, so that results have the same bits, with memory that
is ready before the first call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from esat.codegen.native_functions.native_plan import DeterminantStep, Part, Place, Step
from esat.graph import Apply
from esat.ops.linalg.factor import CholeskyFactor, blocks_from_the_end
from esat.ops.linalg.inverse import Determinant, TriangularInverse
from esat.ops.linalg.packed_factors import PackedSolve
from esat.ops.linalg.solve import CholeskySolve, SolveTriangular
from esat.ops.linalg.substitution import BY_ROWS_FROM
from esat.runtime.native.native_blas import BlasNumbers
from esat.runtime.native.native_lapack import LapackStep, transposed
from esat.runtime.native.native_memory import NativeMemory
from esat.runtime.native.native_triangles import is_read_by_columns
from esat.runtime.native.native_views import NativeView


def cholesky(memory: NativeMemory, node: Apply) -> list[Step]:
    """By LAPACK's potrf, of the transpose, in the place of the result."""
    assert isinstance(node.op, CholeskyFactor)
    part: Part = "upper" if node.op.upper else "lower"
    library = LapackStep(memory, node, "scipy", ["potrf"], widens=True)
    info = library.room(1)

    def factored(matrix: NativeView, target: NativeView) -> list[Step]:
        return [library.part(target, matrix, part), _factorization(library, target, part, info)]

    return library.matrices(node, factored)


def _factorization(library: LapackStep, matrix: NativeView, part: Part, info: Place) -> Step:
    """Of a positive definite matrix by rows, from one of its triangles, in its place."""
    size = library.integers(_rows(matrix))
    letters = library.letters("L" if part == "upper" else "U")
    return library.step("potrf", [*letters, *size, matrix.place, *size], info)


def cholesky_pulled_back(memory: NativeMemory, node: Apply) -> list[Step]:
    """By BLAS, block by block, as the op's Python does."""
    library = LapackStep(memory, node, "scipy", ["trtrs"])
    info = library.room(1)

    def pulled_back(factor: NativeView, cotangent: NativeView, target: NativeView) -> list[Step]:
        size = _rows(factor)
        stored, steps = _in_c_order(library, factor)
        rest, blas = memory.scratch(target.shape, library.dtype), BlasNumbers(memory, target)
        count, none = library.integers(size, 0)
        check = [*library.letters("UNN"), count, none, stored.place, count, target.place, count]
        steps += [
            library.step("trtrs", check, info),  # no right sides: looks for zeros on the diagonal
            library.part(rest, cotangent, "lower"),
            blas.step("scal", "", size * size, 0.5, rest.place, 1),
        ]

        def block(matrix: NativeView, rows: tuple[int, int], columns: tuple[int, int]) -> NativeView:
            return matrix.section(0, *rows).section(1, *columns)

        def subtract(left: NativeView, right: NativeView, result: NativeView, letter: str = "N") -> None:
            """``result -= left @ right``, of parts of matrices; of the left one the transpose at T."""
            inner, (rows, columns) = right.shape[0], result.shape
            numbers = (columns, rows, inner, -1.0, right.place, size, left.place, size, 1.0)
            if result.size and inner:
                steps.append(blas.step("gemm", f"N{letter}", *numbers, result.place, size))

        for begin, end in blocks_from_the_end(size):
            before, own, after = (0, begin), (begin, end - begin), (end, size - end)
            middle, below, left = (block(rest, *place) for place in ((own, own), (after, own), (own, before)))
            diagonal, found = block(stored, own, own), block(target, own, own)
            width, height = own[1], after[1]
            operands = (1.0, diagonal.place, size)
            if height:
                steps.append(blas.step("trsm", "LUNN", width, height, *operands, below.place, size))
            subtract(below, block(stored, own, before), block(rest, after, before))
            subtract(below, block(stored, after, own), middle, "T")
            triangle = memory.scratch((width, width), library.dtype)
            steps += [
                library.part(triangle, middle, "lower"),
                blas.step("trmm", "RUTN", width, width, *operands, triangle.place, width),
                library.part(found, triangle, "lower"),
                blas.step("scal", "", width, 0.5, found.place, size + 1),
                blas.step("trsm", "RUTN", width, width, *operands, found.place, size),
                blas.step("trsm", "LUNN", width, width, *operands, found.place, size),
                *memory.move(triangle, found, library.dtype),
                *memory.move(found, transposed(triangle), library.dtype, adds=True),
                *memory.move(block(target, after, own), below, library.dtype),
                *memory.move(block(target, own, after), transposed(below), library.dtype),
            ]
            subtract(below, block(stored, after, before), left, "T")
            subtract(found, block(stored, own, before), left)
        return steps

    return library.matrices(node, pulled_back)


def triangular_inverse(memory: NativeMemory, node: Apply) -> list[Step]:
    """By LAPACK's trtri, of the transpose, in the place of the result."""
    assert isinstance(node.op, TriangularInverse)
    part: Part = "lower" if node.op.lower else "upper"
    letters = "UN" if node.op.lower else "LN"
    library = LapackStep(memory, node, "scipy", ["trtri"])
    info = library.room(1)

    def inverted(matrix: NativeView, target: NativeView) -> list[Step]:
        size = library.integers(_rows(matrix))
        pointers = [*library.letters(letters), *size, target.place, *size]
        return [library.part(target, matrix, part), library.step("trtri", pointers, info)]

    return library.matrices(node, inverted)


def solved(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.linalg.solve``."""
    library = LapackStep(memory, node, "numpy", ["gesv"])
    return library.matrices(node, lambda *views: _system(library, *views))


def semidefinite_solved(memory: NativeMemory, node: Apply) -> list[Step]:
    """By Cholesky's factors; where there are none the driver repeats the call, by LU."""
    library = LapackStep(memory, node, "scipy", ["posv", "potrf"], widens=True)
    info = library.room(1)

    def solved_one(matrix: NativeView, sides: NativeView, target: NativeView) -> list[Step]:
        factor, copies = library.column_major(transposed(matrix))
        if target.shape[1] < BY_ROWS_FROM:
            return [*copies, *_in_place(library, "posv", "L", factor, sides, target, info)]
        steps = [*copies, _factorization(library, factor, "upper", info)]
        steps += memory.move(target, sides, library.dtype)
        return [*steps, *_by_rows(memory, factor, target), *_by_rows(memory, factor, target, transpose=True)]

    return _solutions(library, node, solved_one)


def whitened(memory: NativeMemory, node: Apply) -> list[Step]:
    """By Cholesky's factors; where there are none the driver repeats the call, by eigenvectors."""
    library = LapackStep(memory, node, "scipy", ["potrf", "trtrs"], widens=True)
    info = library.room(1)

    def whitened_one(matrix: NativeView, sides: NativeView, target: NativeView) -> list[Step]:
        factor, copies = library.column_major(transposed(matrix))
        steps = [*copies, _factorization(library, factor, "upper", info)]
        if target.shape[1] < BY_ROWS_FROM:
            return [*steps, *_in_place(library, "trtrs", "LNN", factor, sides, target, info)]
        return [*steps, *memory.move(target, sides, library.dtype), *_by_rows(memory, factor, target)]

    return _solutions(library, node, whitened_one)


def inverse(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.linalg.inv``: a system with the columns of the identity."""
    library = LapackStep(memory, node, "numpy", ["gesv"])
    size = memory.shape(node.inputs[0])[-1]
    place = memory.fixed(np.eye(size, dtype=library.dtype))
    identity = NativeView(place, (size, size), (size, 1), library.dtype.itemsize)
    return library.matrices(node, lambda matrix, target: _system(library, matrix, identity, target))


def _system(library: LapackStep, matrix: NativeView, sides: NativeView, target: NativeView) -> list[Step]:
    memory = library.memory
    left, copies = library.column_major(matrix)
    if target.shape[1] == 1:
        right = target
        copies = [*copies, *memory.move(target, sides, library.dtype)]
    else:
        right, more = library.column_major(sides)
        copies = [*copies, *more]
    size, count = library.integers(*target.shape)
    pivots, info = library.room(target.shape[0]), library.room(1)
    pointers = [size, count, left.place, size, pivots, right.place, size]
    steps = [*copies, library.step("gesv", pointers, info)]
    return steps if right is target else [*steps, *memory.move(target, right, library.dtype)]


def triangular_solved(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``scipy.linalg.solve_triangular``."""
    op = node.op
    assert isinstance(op, SolveTriangular)
    library = LapackStep(memory, node, "scipy", ["trtrs"])
    info = library.room(1)

    def solved_one(matrix: NativeView, sides: NativeView, target: NativeView) -> list[Step]:
        lower, transpose, stored, steps = op.lower, op.transpose, matrix, list[Step]()
        if not transposed(matrix).is_contiguous:  # SciPy lets LAPACK see the transpose
            stored, steps = _in_c_order(library, matrix)
            lower, transpose = not lower, not transpose
        letters = "L" if lower else "U", "T" if transpose else "N", "U" if op.unit_diagonal else "N"
        form = "".join(letters)
        if target.shape[1] < BY_ROWS_FROM:
            return [*steps, *_in_place(library, "trtrs", form, stored, sides, target, info)]
        # Without right sides LAPACK only tells whether there is a zero on the diagonal.
        size, none = library.integers(_rows(matrix), 0)
        pointers = [*library.letters(form), size, none, stored.place, size, target.place, size]
        steps += [library.step("trtrs", pointers, info), *memory.move(target, sides, library.dtype)]
        return [*steps, *_by_rows(memory, stored, target, op.lower, op.transpose, op.unit_diagonal)]

    return _solutions(library, node, solved_one)


def factor_solved(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``scipy.linalg.cho_solve``."""
    op = node.op
    assert isinstance(op, CholeskySolve)
    library = LapackStep(memory, node, "scipy", ["potrs"])
    info = library.room(1)

    def solved_one(factor: NativeView, sides: NativeView, target: NativeView) -> list[Step]:
        stored, copies, lower = factor, list[Step](), op.lower
        if factor.is_contiguous:  # by rows: the transpose is by columns, and the other triangle
            lower = not lower
        elif not transposed(factor).is_contiguous:
            stored, copies = library.column_major(factor)
        if target.shape[1] >= BY_ROWS_FROM:
            steps = [*copies, *memory.move(target, sides, library.dtype)]
            for transpose in (not op.lower, op.lower):
                steps += _by_rows(memory, stored, target, op.lower, transpose)
            return steps
        return [*copies, *_in_place(library, "potrs", "L" if lower else "U", stored, sides, target, info)]

    return _solutions(library, node, solved_one)


def packed_factors(memory: NativeMemory, node: Apply) -> list[Step]:
    """By LAPACK's getrf, in the place of the result."""
    library = LapackStep(memory, node, "scipy", ["getrf"])
    info = library.room(1)

    def factored(matrix: NativeView, target: NativeView) -> list[Step]:
        size = _rows(matrix)
        columns = transposed(target.section(0, 0, size))
        order, pivots = library.integers(size), _pivots(library, size)
        pointers = [*order, *order, columns.place, *order, pivots.place]
        steps = [*memory.move(columns, matrix, library.dtype), library.step("getrf", pointers, info)]
        return [*steps, *memory.convert(target.section(0, size, 1), pivots, np.int32)]

    return library.matrices(node, factored)


def packed_solved(memory: NativeMemory, node: Apply) -> list[Step]:
    """By LAPACK's getrs."""
    op = node.op
    assert isinstance(op, PackedSolve)
    library = LapackStep(memory, node, "scipy", ["getrs"])
    info = library.room(1)

    def solved_one(factors: NativeView, sides: NativeView, target: NativeView) -> list[Step]:
        factors, steps = _in_c_order(library, factors)
        size = factors.shape[1]
        columns, pivots = factors.section(0, 0, size), _pivots(library, size)
        steps += memory.convert(pivots, factors.section(0, size, 1), np.int32)
        letter = "T" if op.transpose else "N"
        return [*steps, *_in_place(library, "getrs", letter, columns, sides, target, info, [pivots.place])]

    return _solutions(library, node, solved_one)


def _pivots(library: LapackStep, size: int) -> NativeView:
    """Room for the integers that say which rows were exchanged."""
    return NativeView(library.room(size, np.int32), (1, size), (size, 1), 4)


def _solutions(library: LapackStep, node: Apply, solved: Callable[..., list[Step]]) -> list[Step]:
    """Solutions for each matrix of a batch; few columns of one stay by columns, as LAPACK gives them, if no
    reader minds."""
    memory, result = library.memory, node.outputs[0]
    shape = memory.shape(result)
    by_rows = len(shape) > 2 or 1 in shape or shape[1] >= BY_ROWS_FROM or library.widens
    if by_rows or not is_read_by_columns(memory.program, result):
        return library.matrices(node, solved)
    target = memory.scratch(shape, result.tensor_type.numpy_dtype, "F")
    memory.define(result, target)
    return solved(*map(memory.view, node.inputs), target)


def _in_place(
    library: LapackStep,
    name: str,
    form: str,
    matrix: NativeView,
    sides: NativeView,
    target: NativeView,
    info: Place,
    pivots: Sequence[Place] = (),
) -> list[Step]:
    """A routine that overwrites right sides in Fortran's order by solutions."""
    memory = library.memory
    if target.shape[1] == 1 or transposed(target).is_contiguous:
        right, copies = target, memory.move(target, sides, library.dtype)
    else:
        right, copies = library.column_major(sides)
    size, count = library.integers(*target.shape)
    pointers = [*library.letters(form), size, count, matrix.place, size, *pivots, right.place, size]
    steps = [*copies, library.step(name, pointers, info)]
    return steps if right is target else [*steps, *memory.move(target, right, library.dtype)]


def _by_rows(
    memory: NativeMemory,
    matrix: NativeView,
    target: NativeView,
    lower: bool = True,
    transpose: bool = False,
    unit_diagonal: bool = False,
) -> list[Step]:
    """As :func:`~esat.ops.linalg.substitution.substituted`, in the place of the right sides."""
    if not transposed(matrix).is_contiguous:
        lower, transpose = not lower, not transpose
    form = "R", "L" if lower else "U", "N" if transpose else "T", "U" if unit_diagonal else "N"
    size, count = target.shape
    arguments = (count, size, 1.0, matrix.place, size, target.place, count)
    return [BlasNumbers(memory, target).step("trsm", "".join(form), *arguments)]


def determinant(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.linalg.slogdet`` and ``numpy.linalg.det``, which take no matrix for wrong."""
    library = LapackStep(memory, node, "numpy", ["getrf"])
    alone = isinstance(node.op, Determinant)

    def found(matrix: NativeView, *results: NativeView) -> list[Step]:
        factors, copies = library.column_major(matrix)
        size = library.integers(_rows(matrix))
        pivots, info = library.room(_rows(matrix)), library.room(1)
        sign = None if alone else results[0].place
        return [
            *copies,
            library.step("getrf", [*size, *size, factors.place, *size, pivots], info, refuses=False),
            DeterminantStep(
                factors.place, _rows(matrix), pivots, info, sign, results[-1].place, library.dtype
            ),
        ]

    return library.matrices(node, found, (2, *(0 for _ in node.outputs)))


def _in_c_order(library: LapackStep, matrix: NativeView) -> tuple[NativeView, list[Step]]:
    """A matrix by rows, and the steps that copy it if it has another order."""
    if matrix.is_contiguous:
        return matrix, []
    copy = library.memory.scratch(matrix.shape, library.dtype)
    return copy, library.memory.move(copy, matrix, library.dtype)


def _rows(matrix: NativeView) -> int:
    return matrix.shape[0]
