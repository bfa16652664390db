"""Factorizations and systems of equations as steps of native functions.

They are the calls of LAPACK that NumPy and SciPy make, so that results have the same bits, with memory that
is ready before the first call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from esat.codegen.ground.blas_library import Package, lapack_address
from esat.codegen.matmul.lapack import SHARED_FROM, WOKEN_FROM
from esat.codegen.matmul.small_products import RoutineNumbers
from esat.codegen.native_plan import DeterminantStep, MoveStep, Place, RoutineStep, Step
from esat.graph import Apply, Variable
from esat.ops.linalg.factor import Cholesky
from esat.ops.linalg.inverse import Determinant
from esat.ops.linalg.solve import CholeskySolve, SolveTriangular
from esat.runtime.native_memory import NativeMemory, NoNativeFormError, has_one_thread
from esat.runtime.native_views import NativeView

LARGEST_BATCH = 32
"""Matrices of a batch, each of which has steps of its own."""


class _Library:
    """LAPACK of NumPy or SciPy for one step: its functions, numbers, and threads.

    A step that may refuse values is part of a native function only while nothing lasting has changed.
    """

    def __init__(self, memory: NativeMemory, node: Apply, package: Package, functions: Sequence[str]) -> None:
        matrix = node.inputs[0]
        # NumPy computes float32 in float64.
        if matrix.tensor_type.dtype not in ("float64", "float32")[: 1 + (package == "scipy")]:
            raise NoNativeFormError
        self.memory, self.package = memory, package
        self.dtype = matrix.tensor_type.numpy_dtype
        self.numbers = RoutineNumbers(self.dtype.name, package)
        memory.kept.append(self.numbers)
        letter = "s" if self.dtype.itemsize == 4 else "d"
        found = {name: lapack_address(letter + name, package) for name in functions}
        self.addresses = {name: address for name, address in found.items() if address is not None}
        shapes = [memory.shape(one) for one in (*node.inputs, *node.outputs)]
        if len(self.addresses) < len(found) or any(0 in shape for shape in shapes):
            raise NoNativeFormError
        work = max(rows * columns * min(rows, columns) for *_, rows, columns in shapes[: len(node.inputs)])
        if work >= SHARED_FROM and not has_one_thread(memory.program):
            raise NoNativeFormError  # it has the library's threads
        if work >= WOKEN_FROM:
            memory.keep_alone(package)
        memory.refuses()

    def integers(self, *values: int) -> list[Place]:
        """Integers as the library takes them."""
        return [Place("fixed", self.numbers.integer(value)) for value in values]

    def letters(self, text: str) -> list[Place]:
        """Letters, one a place."""
        return [Place("fixed", self.numbers.letter(letter)) for letter in text]

    def room(self, count: int) -> Place:
        """Room for integers that the library returns."""
        return self.memory.written(np.zeros(count, np.int32 if self.package == "scipy" else np.int64))

    def step(self, name: str, pointers: Sequence[Place], info: Place, refuses: bool = True) -> RoutineStep:
        """A call whose last argument is ``info``."""
        refusal = (info, 32 if self.package == "scipy" else 64) if refuses else None
        return RoutineStep(self.addresses[name], (*pointers, info), refusal)

    def column_major(self, view: NativeView) -> tuple[NativeView, list[Step]]:
        """A copy of a matrix in Fortran's order."""
        copy = self.memory.scratch(view.shape, self.dtype, "F")
        return copy, self.memory.move(copy, view, self.dtype)


def cholesky(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.linalg.cholesky``, of the transpose for upper factors."""
    assert isinstance(node.op, Cholesky)
    library = _Library(memory, node, "numpy", ["potrf"])
    info = library.room(1)
    steps: list[Step] = []
    for matrix, target in _matrices(memory, [node.inputs[0], node.outputs[0]]):
        upper = node.op.upper
        factor, copies = library.column_major(_transposed(matrix) if upper else matrix)
        size = library.integers(_rows(matrix))
        pointers = [*library.letters("L"), *size, factor.place, *size]
        source = _transposed(factor) if upper else factor
        part = MoveStep(
            target.place,
            source.place,
            library.dtype,
            target.shape,
            target.byte_strides,
            source.byte_strides,
            part="upper" if upper else "lower",
        )
        steps += [*copies, library.step("potrf", pointers, info), part]
    return steps


def solved(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.linalg.solve``."""
    library = _Library(memory, node, "numpy", ["gesv"])
    steps: list[Step] = []
    for matrix, sides, target in _matrices(memory, [*node.inputs, node.outputs[0]]):
        steps += _system(library, matrix, sides, target)
    return steps


def inverse(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.linalg.inv``: a system with the columns of the identity."""
    library = _Library(memory, node, "numpy", ["gesv"])
    size = memory.shape(node.inputs[0])[-1]
    place = memory.fixed(np.eye(size, dtype=library.dtype))
    identity = NativeView(place, (size, size), (size, 1), library.dtype.itemsize)
    steps: list[Step] = []
    for matrix, target in _matrices(memory, [node.inputs[0], node.outputs[0]]):
        steps += _system(library, matrix, identity, target)
    return steps


def _system(library: _Library, matrix: NativeView, sides: NativeView, target: NativeView) -> list[Step]:
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
    library = _Library(memory, node, "scipy", ["trtrs"])
    info = library.room(1)
    steps: list[Step] = []
    for matrix, sides, target in _matrices(memory, [*node.inputs, node.outputs[0]]):
        lower, transpose, stored = op.lower, op.transpose, matrix
        if not _transposed(matrix).is_contiguous:  # SciPy lets LAPACK see the transpose
            if not matrix.is_contiguous:
                stored = memory.scratch(matrix.shape, library.dtype)
                steps += memory.move(stored, matrix, library.dtype)
            lower, transpose = not lower, not transpose
        form = "L" if lower else "U", "T" if transpose else "N", "U" if op.unit_diagonal else "N"
        steps += _in_place(library, "trtrs", "".join(form), stored, sides, target, info)
    return steps


def factor_solved(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``scipy.linalg.cho_solve``."""
    assert isinstance(node.op, CholeskySolve)
    library = _Library(memory, node, "scipy", ["potrs"])
    info = library.room(1)
    steps: list[Step] = []
    for factor, sides, target in _matrices(memory, [*node.inputs, node.outputs[0]]):
        stored, copies = factor, list[Step]()
        if not _transposed(factor).is_contiguous:
            stored, copies = library.column_major(factor)
        form = "L" if node.op.lower else "U"
        steps += [*copies, *_in_place(library, "potrs", form, stored, sides, target, info)]
    return steps


def _in_place(
    library: _Library,
    name: str,
    form: str,
    matrix: NativeView,
    sides: NativeView,
    target: NativeView,
    info: Place,
) -> list[Step]:
    """A routine that overwrites right sides in Fortran's order by solutions."""
    memory = library.memory
    if target.shape[1] == 1:
        right, copies = target, memory.move(target, sides, library.dtype)
    else:
        right, copies = library.column_major(sides)
    size, count = library.integers(*target.shape)
    pointers = [*library.letters(form), size, count, matrix.place, size, right.place, size]
    steps = [*copies, library.step(name, pointers, info)]
    return steps if right is target else [*steps, *memory.move(target, right, library.dtype)]


def determinant(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.linalg.slogdet`` and ``numpy.linalg.det``, which take no matrix for wrong."""
    library = _Library(memory, node, "numpy", ["getrf"])
    outputs = [memory.target(output) for output in node.outputs]
    steps: list[Step] = []
    for number, (matrix,) in enumerate(_matrices(memory, [node.inputs[0]])):
        factors, copies = library.column_major(matrix)
        size = library.integers(_rows(matrix))
        pivots, info = library.room(_rows(matrix)), library.room(1)
        places = [output.moved(number).place for output in outputs]
        sign = None if isinstance(node.op, Determinant) else places[0]
        steps += [
            *copies,
            library.step("getrf", [*size, *size, factors.place, *size, pivots], info, refuses=False),
            DeterminantStep(factors.place, _rows(matrix), pivots, info, sign, places[-1], library.dtype),
        ]
    return steps


def _rows(matrix: NativeView) -> int:
    return matrix.shape[0]


def _transposed(matrix: NativeView) -> NativeView:
    return replace(matrix, shape=matrix.shape[::-1], strides=matrix.strides[::-1])


def _matrices(memory: NativeMemory, variables: Sequence[Variable]) -> Iterator[list[NativeView]]:
    """The matrices of batches, which are broadcast to that of the last variable, a result or the only one."""
    views = [memory.view(variable) for variable in variables[:-1]]
    last = variables[-1]
    views.append(memory.view(last) if len(variables) == 1 else memory.target(last))
    batch = views[-1].shape[:-2]
    if int(np.prod(batch, dtype=np.int64)) > LARGEST_BATCH:
        raise NoNativeFormError
    stretched = []
    for view in views:
        missing = len(batch) + 2 - len(view.shape)
        padded = replace(view, shape=(1,) * missing + view.shape, strides=(0,) * missing + view.strides)
        stretched.append(padded.stretched((*batch, *view.shape[-2:])))
    for place in np.ndindex(*batch):
        found = []
        for view in stretched:
            steps = sum(index * stride for index, stride in zip(place, view.strides, strict=False))
            inner = view.moved(steps)
            found.append(replace(inner, shape=view.shape[-2:], strides=view.strides[-2:]))
        yield found
