"""Functions of LAPACK as steps of native functions, and loops over batches of matrices."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from esat.codegen.ground.blas_library import Package, lapack_address
from esat.codegen.matmul.lapack import SHARED_FROM, WOKEN_FROM
from esat.codegen.matmul.small_products import RoutineNumbers
from esat.codegen.native_functions.native_plan import MoveStep, Part, Place, RepeatedSteps, RoutineStep, Step
from esat.graph import Apply, Variable
from esat.ops.linalg.record import MatrixOp
from esat.runtime.native.native_memory import NativeMemory, NoNativeFormError, has_one_thread
from esat.runtime.native.native_views import NativeView


class LapackStep:
    """LAPACK of NumPy or SciPy for one step: its functions, numbers, and threads.

    A step that may refuse values is part of a native function only while nothing lasting has changed.

    Attributes
    ----------
    dtype
        Of the numbers that the library gets. As NumPy does, its own computes float32 in float64.
    widens
        Whether operands and results have another dtype.

    Parameters
    ----------
    widens
        Whether SciPy's computes float32 in float64, too.
    """

    def __init__(
        self,
        memory: NativeMemory,
        node: Apply,
        package: Package,
        functions: Sequence[str],
        widens: bool = False,
    ) -> None:
        variables = (*node.inputs, *node.outputs)
        dtypes = {one.tensor_type.dtype for one in variables}
        if len(dtypes) > 1 or not dtypes <= {"float32", "float64"}:
            raise NoNativeFormError
        self.memory, self.package = memory, package
        self.dtype = node.inputs[0].tensor_type.numpy_dtype
        self.widens = self.dtype.itemsize == 4 and (widens or package == "numpy")
        if self.widens:
            self.dtype = np.dtype(np.float64)
        self.numbers = RoutineNumbers(self.dtype.name, package)
        memory.kept.append(self.numbers)
        letter = "s" if self.dtype.itemsize == 4 else "d"
        found = {name: lapack_address(letter + name, package) for name in functions}
        self.addresses = {name: address for name, address in found.items() if address is not None}
        shapes = [memory.shape(one) for one in variables]
        if len(self.addresses) < len(found) or any(0 in shape for shape in shapes):
            raise NoNativeFormError
        work = max(rows * columns * min(rows, columns) for *_, rows, columns in shapes[: len(node.inputs)])
        if work >= SHARED_FROM and not has_one_thread(memory.program):
            raise NoNativeFormError  # it has the library's threads
        if work >= WOKEN_FROM or (isinstance(node.op, MatrixOp) and node.op.wakes):
            memory.keep_alone(package)
        memory.refuses()

    def integers(self, *values: int) -> list[Place]:
        """Integers as the library takes them."""
        return [Place("fixed", self.numbers.integer(value)) for value in values]

    def letters(self, text: str) -> list[Place]:
        """Letters, one a place."""
        return [Place("fixed", self.numbers.letter(letter)) for letter in text]

    @property
    def integer(self) -> type[np.signedinteger[Any]]:
        """The library's integers."""
        return np.int32 if self.package == "scipy" else np.int64

    def room(self, count: int, dtype: Any = None) -> Place:
        """Room for what the library returns: integers, unless another dtype is given."""
        return self.memory.written(np.zeros(count, dtype or self.integer))

    def workspaces(
        self, name: str, pointers: Sequence[Place], dtypes: Sequence[Any], last: Sequence[Place] = ()
    ) -> list[Place]:
        """Workspaces of the sizes that a function asks for, each with its length after it.

        Parameters
        ----------
        pointers
            What the function takes before its workspaces.
        dtypes
            Of the workspaces.
        last
            What it takes after them, before ``info``.
        """
        unread = np.zeros(1)
        known = [
            one.number + one.offset if one.kind == "fixed" else unread.ctypes.data
            for one in (*pointers, *last)
        ]
        sizes = [np.zeros(1, dtype) for dtype in dtypes]
        asked, info = np.array([-1], self.integer), np.zeros(1, self.integer)
        pairs = [address for one in sizes for address in (one.ctypes.data, asked.ctypes.data)]
        arguments = [*known[: len(pointers)], *pairs, *known[len(pointers) :], info.ctypes.data]
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arguments))(self.addresses[name])
        function(*arguments)
        counts = [max(1, int(one[0])) for one in sizes]
        rooms = [self.room(count, dtype) for count, dtype in zip(counts, dtypes, strict=True)]
        lengths = self.integers(*counts)
        return [place for pair in zip(rooms, lengths, strict=True) for place in pair]

    def step(self, name: str, pointers: Sequence[Place], info: Place, refuses: bool = True) -> RoutineStep:
        """A call whose last argument is ``info``."""
        refusal = (info, 32 if self.package == "scipy" else 64) if refuses else None
        return RoutineStep(self.addresses[name], (*pointers, info), refusal)

    def operand(self, variable: Variable) -> tuple[NativeView, list[Step]]:
        """An operand in the library's dtype."""
        view = self.memory.view(variable)
        if not self.widens:
            return view, []
        wide = self.memory.scratch(view.shape, self.dtype)
        return wide, self.memory.convert(wide, view)

    def result(self, variable: Variable) -> tuple[NativeView, list[Step]]:
        """Where a result is to be made, and what has to be done afterwards."""
        target = self.memory.target(variable)
        if not self.widens:
            return target, []
        wide = self.memory.scratch(target.shape, self.dtype)
        return wide, self.memory.convert(target, wide)

    def matrices(
        self, node: Apply, steps: Callable[..., list[Step]], ranks: Sequence[int] | None = None
    ) -> list[Step]:
        """As :func:`matrices`, in the library's dtype."""
        operands, results = list(map(self.operand, node.inputs)), list(map(self.result, node.outputs))
        views = [view for view, _ in (*operands, *results)]
        before, after = ([step for _, some in places for step in some] for places in (operands, results))
        return [*before, *_matrices(self.memory, views, len(node.inputs), steps, ranks), *after]

    def column_major(self, view: NativeView) -> tuple[NativeView, list[Step]]:
        """A copy of a matrix in Fortran's order."""
        copy = self.memory.scratch(view.shape, self.dtype, "F")
        return copy, self.memory.move(copy, view, self.dtype)

    def part(self, target: NativeView, source: NativeView, part: Part) -> MoveStep:
        """A copy of a triangle of a matrix."""
        strides = target.byte_strides, source.byte_strides
        return MoveStep(target.place, source.place, self.dtype, target.shape, *strides, part=part)


def matrices(
    memory: NativeMemory,
    node: Apply,
    steps: Callable[..., list[Step]],
    ranks: Sequence[int] | None = None,
) -> list[Step]:
    """What a node does with each matrix of its batches.

    Parameters
    ----------
    steps
        Gives the steps for one of each operand and each result, as views.
    ranks
        How many last axes of each of these are no batch's; two of all where they are not given.
    """
    views = [memory.view(one) for one in node.inputs] + [memory.target(one) for one in node.outputs]
    return _matrices(memory, views, len(node.inputs), steps, ranks)


def _matrices(
    memory: NativeMemory,
    views: Sequence[NativeView],
    first: int,
    steps: Callable[..., list[Step]],
    ranks: Sequence[int] | None,
) -> list[Step]:
    """What is done with each matrix of operands and, from the ``first`` view on, of results."""
    numbers = [2] * len(views) if ranks is None else ranks
    batch = views[first].shape[: len(views[first].shape) - numbers[first]]
    return each(memory, views, numbers, batch, steps)


def each(
    memory: NativeMemory,
    views: Sequence[NativeView],
    numbers: Sequence[int],
    batch: Sequence[int],
    steps: Callable[..., list[Step]],
) -> list[Step]:
    """What is done with each element of batches, which are broadcast to the axes of ``batch``.

    ``numbers`` says how many last axes of each view are no batch's.
    """
    if int(np.prod(batch, dtype=np.int64)) == 1:
        return steps(*(element(view, rank) for view, rank in zip(views, numbers, strict=True)))
    cursors, elements = [], []
    for view, rank in zip(views, numbers, strict=True):
        missing = len(batch) + rank - len(view.shape)
        padded = replace(view, shape=(1,) * missing + view.shape, strides=(0,) * missing + view.strides)
        strides = padded.stretched((*batch, *padded.shape[len(batch) :])).byte_strides[: len(batch)]
        one = element(view, rank)
        if any(strides):
            number = memory.choice()
            cursors.append((number, view.place, strides))
            one = replace(one, place=Place("chosen", number), within=view)
        elements.append(one)
    return [RepeatedSteps(tuple(batch), tuple(cursors), tuple(steps(*elements)))]


def element(view: NativeView, rank: int) -> NativeView:
    """The first matrix of a batch."""
    batch = len(view.shape) - rank
    return replace(view, shape=view.shape[batch:], strides=view.strides[batch:])


def transposed(matrix: NativeView) -> NativeView:
    """A matrix with its axes exchanged."""
    return replace(matrix, shape=matrix.shape[::-1], strides=matrix.strides[::-1])
