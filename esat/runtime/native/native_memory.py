"""Where the values of a native function are, and the memory that it has of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from esat.base.records import record
from esat.codegen.ground.blas_library import Package, thread_functions
from esat.codegen.ground.movement import AXES, can_move, collapsed
from esat.codegen.native_functions.native_plan import ArraySpecification, MoveStep, Place, Step
from esat.codegen.threads import configured_threads
from esat.graph import Constant, TensorType, Variable
from esat.graph.random_type import RandomType
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.view import Reshape
from esat.runtime.entry.signatures import SignatureTable
from esat.runtime.native.native_views import NativeView, Shape, contiguous
from esat.runtime.program import Program


class NoNativeFormError(Exception):
    """A step cannot be part of a native function for these shapes; the program stays with its driver."""


def returned(program: Program) -> tuple[Variable, ...]:
    """The outputs that a call returns: without the new values of shared variables."""
    outputs = program.graph.outputs
    return tuple(outputs[: len(outputs) - len(program.updated)])


def has_one_thread(program: Program) -> bool:
    """Whether no call of a program may use several threads."""
    return program.threads == 1 or (program.threads is None and configured_threads() == 1)


def made_in(program: Program, output: Variable) -> Variable:
    """The result in whose buffer an output stands, under another shape perhaps."""
    base = base_of(program, output)
    node = base.owner
    if node is not None:
        if isinstance(node.op, DimShuffle):
            kept = [axis for axis in node.op.order if axis != "x"]
            if kept == sorted(kept):
                return made_in(program, node.inputs[0])
        if isinstance(node.op, Reshape):
            return made_in(program, node.inputs[0])
    return base


def base_of(program: Program, variable: Variable) -> Variable:
    """The result in whose buffer a result stands."""
    while True:
        below = program.memory.taken.get(variable)
        if below is None:
            below = _overwritten(variable)
        if below is None:
            return variable
        variable = below


def _overwritten(variable: Variable) -> Variable | None:
    """What a result stands in the place of, because its op works in place."""
    node = variable.owner
    if node is None or variable.index is None:
        return None
    places = node.op.destroy_map.get(variable.index, ())
    return node.inputs[places[0]] if places else None


def _moved(
    target: NativeView,
    source: NativeView,
    dtype: np.dtype[Any],
    adds: bool = False,
    converted: np.dtype[Any] | None = None,
) -> MoveStep:
    axes = zip(target.shape, target.byte_strides, source.byte_strides, strict=True)
    by_memory = sorted(axes, key=lambda axis: -abs(axis[1]))  # what lies in one piece is moved at once
    sizes, near, far = collapsed(*zip(*by_memory, strict=True)) if by_memory else ((), (), ())
    if len(sizes) > AXES:
        raise NoNativeFormError
    return MoveStep(target.place, source.place, dtype, sizes, near, far, adds, converted=converted)


@record(frozen=True, eq=False)
class Inside:
    """Where a program runs that is a step of a loop.

    Attributes
    ----------
    around
        The memory of the program that has the loop.
    inputs, outputs
        Where its arguments are, and where its results go. The latter are places of nothing else.
    """

    around: NativeMemory
    inputs: Sequence[Place]
    outputs: Sequence[Place]


class NativeMemory:
    """Places of the values of a program for one combination of shapes.

    Parameters
    ----------
    shapes, values
        The shapes of all variables, and the values of those that shapes decide.
    frame
        Scratch arrays, which are the function's from now on.
    unlocked
        Whether other Python threads run while steps do.
    inside
        Of a program that is a step of a loop: where it runs.

    Attributes
    ----------
    libraries
        Of libraries that must have one thread while steps run, what tells and what sets their threads.
    kept, changing
        Owners of code and numbers, and arrays that each call writes before it reads them.
    own_bytes
        Bytes of memory that was made besides the frame.
    handed
        Tables that one loop hands to another, which changes them where they are: in memory of their own.
    steps_inside
        Gives the steps of another program, for the shapes of a key of its table, as those of a loop.
    """

    steps_inside: Callable[[Program, SignatureTable, tuple[Shape, ...], Inside], list[Step]]

    def __init__(
        self,
        program: Program,
        shapes: Mapping[Variable, Shape],
        values: Mapping[Variable, Any],
        frame: Sequence[np.ndarray[Any, Any]],
        unlocked: bool = False,
        inside: Inside | None = None,
    ) -> None:
        self.program = program
        self.shapes = shapes
        self.values = {variable: np.ascontiguousarray(value) for variable, value in values.items()}
        self.unlocked = unlocked
        self.around = None if inside is None else inside.around
        self.kept: list[object] = [tuple(self.values.values())]
        self.changing: list[np.ndarray[Any, Any]] = list(frame)
        self.libraries: dict[tuple[int, int], None] = {}
        self.own_bytes = 0
        self.handed: dict[Variable, NativeView] = {}
        self.leaves = (*program.graph.inputs, *program.shared)
        self._places: dict[Variable, Place] = {}
        self._views: dict[Variable, NativeView] = {}
        self._fresh = frozenset(program.memory.fresh)
        self._lasting = False
        self._choices = 0
        given = [Place("input", number) for number in range(len(self.leaves))]
        self.outputs = [Place("output", number) for number in range(len(returned(program)))]
        if inside is not None:
            given, self.outputs = list(inside.inputs), list(inside.outputs)
        self._places.update(zip(self.leaves, given, strict=True))
        for variable, array in (*self.values.items(), *zip(program.memory.scratch, frame, strict=True)):
            self._places[variable] = Place("fixed", int(array.ctypes.data))
        self._own = {int(array.ctypes.data) for array in frame}
        self._place_results()

    def _place_results(self) -> None:
        """Let results be made where they are returned, if nothing else has the same memory."""
        made = {output for group in self.program.steps for output in group.outputs}
        for number, output in enumerate(returned(self.program)):
            base = made_in(self.program, output)
            if base in made and base not in self._places and self._size(base) == self._size(output):
                self._places[base] = self.outputs[number]

    def _size(self, variable: Variable) -> int:
        return int(np.prod(self.shape(variable), dtype=np.int64))

    # ---- what is there

    def shape(self, variable: Variable) -> Shape:
        """The shape of a variable."""
        if isinstance(variable, Constant):
            return tuple(np.shape(variable.data))
        if variable not in self.shapes:
            raise NoNativeFormError
        return self.shapes[variable]

    def specification(self, variable: Variable) -> ArraySpecification:
        """A variable as an argument or a result; for the state of a generator, where that is."""
        if isinstance(variable.type, RandomType):
            return ArraySpecification(np.dtype(np.int64), (1,))
        return ArraySpecification(variable.tensor_type.numpy_dtype, self.shape(variable))

    def view(self, variable: Variable) -> NativeView:
        """Where the elements of a variable are."""
        known = self._views.get(variable)
        if known is None and isinstance(variable.type, RandomType):
            return NativeView(self._place(base_of(self.program, variable)), (1,), (1,), 8)
        if known is None:
            if not isinstance(variable.type, TensorType):
                raise NoNativeFormError
            base = base_of(self.program, variable)
            if base in self._views and base is not variable:
                known = self._views[base]
                if known.shape != self.shape(variable):
                    known = self._in_order(known).reshaped(self.shape(variable))
            else:
                known = self._whole(self._place(base), variable)
            self._views[variable] = known
        return known

    def _in_order(self, view: NativeView) -> NativeView:
        if not view.is_contiguous:
            raise NoNativeFormError
        return view

    def _whole(self, place: Place, variable: Variable) -> NativeView:
        shape = self.shape(variable)
        view = NativeView(place, shape, contiguous(shape), variable.tensor_type.numpy_dtype.itemsize)
        return replace(view, alone=True) if place.kind == "chosen" and place in self.outputs else view

    def _place(self, base: Variable) -> Place:
        if base not in self._places:
            if isinstance(base, Constant):
                self._places[base] = self.fixed(np.ascontiguousarray(base.data))
            elif base in self._fresh:  # of which a part is returned
                array = np.empty(self.shape(base), base.tensor_type.numpy_dtype)
                self._places[base] = self.written(array)
            else:
                raise NoNativeFormError
        return self._places[base]

    def define(self, variable: Variable, view: NativeView) -> None:
        """Say where the elements of a result are."""
        self._views[variable] = view

    def forget(self, variables: Sequence[Variable]) -> None:
        """Say that it is not known where results are, after all."""
        for variable in variables:
            self._views.pop(variable, None)

    # ---- memory

    def fixed(self, array: np.ndarray[Any, Any]) -> Place:
        """The place of numbers that are known."""
        self.kept.append(array)
        return Place("fixed", int(array.ctypes.data))

    def written(self, array: np.ndarray[Any, Any]) -> Place:
        """The place of what each call writes before it reads it."""
        self.changing.append(array)
        self.own_bytes += array.nbytes
        self._own.add(int(array.ctypes.data))
        return Place("fixed", int(array.ctypes.data))

    def scratch(self, shape: Shape, dtype: np.dtype[Any], order: str = "C") -> NativeView:
        """Memory that a step writes before it or a later one reads it; in C or in Fortran order, the latter
        for matrices."""
        place = self.written(np.empty(shape, dtype))
        strides = contiguous(shape)
        if order == "F":
            strides = (*contiguous(shape)[:-2], 1, shape[-2])
        return NativeView(place, shape, strides, dtype.itemsize)

    def target(self, variable: Variable) -> NativeView:
        """C-contiguous memory for a result that a step makes."""
        if variable not in self._views:
            place = self._places.get(variable)
            if place is None:
                dtype = variable.tensor_type.numpy_dtype
                place = self._places[variable] = self.scratch(self.shape(variable), dtype).place
            self._views[variable] = self._whole(place, variable)
        return self._views[variable]

    def hand_on(self, variable: Variable, view: NativeView | None = None) -> bool:
        """Have a result in memory of its own, or where a view is, unless it is made where it is returned."""
        if self._places.get(made_in(self.program, variable)) in self.outputs:
            return False
        if view is None:
            view = self.scratch(self.shape(variable), variable.tensor_type.numpy_dtype)
        self.handed[variable] = self._views[variable] = view
        return True

    def choice(self) -> int:
        """The number of a new choice."""
        if self.around is not None:
            return self.around.choice()
        self._choices += 1
        return self._choices

    # ---- steps

    def move(
        self, target: NativeView, source: NativeView, dtype: np.dtype[Any], adds: bool = False
    ) -> list[Step]:
        """Elements to a place of the same shape, by way of a copy where the two overlap."""
        if not can_move(dtype, adds):
            raise NoNativeFormError
        if not source.size:
            return []
        steps: list[Step] = []
        if target.may_overlap(source):
            copy = self.scratch(source.shape, dtype)
            steps.append(_moved(copy, source, dtype))
            source = copy
        return [*steps, _moved(target, source, dtype, adds)]

    def convert(
        self, target: NativeView, source: NativeView, narrow: type[np.generic] = np.float32
    ) -> list[Step]:
        """Numbers of float32 or int32 to a place of float64 elsewhere, of the same shape, or the other way
        round."""
        double = np.dtype(np.float64)
        other = np.dtype(narrow)
        dtypes = (other, double) if target.itemsize == 4 else (double, other)
        return [_moved(target, source, dtypes[0], converted=dtypes[1])]

    def in_order(self, variable: Variable) -> tuple[NativeView, list[Step]]:
        """A variable in C order, and the steps that copy it if it has another one."""
        view = self.view(variable)
        if view.is_contiguous:
            return view, []
        dtype = variable.tensor_type.numpy_dtype
        copy = self.scratch(view.shape, dtype)
        return copy, self.move(copy, view, dtype)

    def overwritable(self, variable: Variable) -> tuple[NativeView, list[Step]]:
        """A variable where a step may change it: itself, or a copy if its memory is not the program's."""
        view = self.view(variable)
        repeated = any(
            stride == 0 and size > 1 for size, stride in zip(view.shape, view.strides, strict=True)
        )
        if self._is_own(view.place) and not repeated:
            return view, []
        dtype = variable.tensor_type.numpy_dtype
        copy = self.scratch(view.shape, dtype)
        return copy, self.move(copy, view, dtype)

    def _is_own(self, place: Place) -> bool:
        """Whether the program may change what is there."""
        if place.kind == "input":
            return self.leaves[place.number] in self.program.overwritten
        if place.kind == "fixed" and place.number in self._own:
            return True
        return replace(place, offset=0) in [replace(one, offset=0) for one in self.outputs]

    def keep_alone(self, package: Package) -> None:
        """See to it that a library has one thread while steps run.

        A function that gives up the lock cannot tell the library, which others use meanwhile: where there are
        several threads, the step is the driver's.
        """
        if not self.may_keep_alone(package):
            raise NoNativeFormError
        functions = thread_functions(package)
        if functions is not None:
            self.libraries[functions] = None

    def may_keep_alone(self, package: Package) -> bool:
        """Whether :meth:`keep_alone` lets the step be part of the function."""
        return not self.unlocked or (has_one_thread(self.program) and thread_functions(package) is not None)

    def take(self, inner: NativeMemory) -> None:
        """Have what a program inside needs: code, numbers and memory."""
        self.kept += inner.kept
        self.changing += inner.changing
        self.libraries.update(inner.libraries)
        self.own_bytes += inner.own_bytes

    def refuses(self) -> None:
        """A step may refuse values, so that the driver repeats the call: nothing lasting has changed yet."""
        if self._lasting:
            raise NoNativeFormError
        if self.around is not None:
            self.around.refuses()

    def changes_lasting(self) -> None:
        """What a step has changed outlives the call."""
        self._lasting = True
