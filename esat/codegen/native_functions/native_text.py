"""The steps of a native function as LLVM's text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esat.codegen.ground.builtin_function import (
    INTERRUPTED,
    OUT_OF_BOUNDS,
    BodyWriter,
    pointer,
    python_function,
)
from esat.codegen.ground.movement import (
    AXES,
    all_true_function,
    collapsed,
    determinant_function,
    move_function,
    permutation_function,
    triangle_function,
)
from esat.codegen.native_functions.native_plan import (
    ArraySpecification,
    CheckStep,
    ChoiceStep,
    DeterminantStep,
    GuardedSteps,
    KernelStep,
    LoopControl,
    MoveStep,
    PermutationStep,
    Place,
    PlaceStep,
    PythonStep,
    RepeatedSteps,
    RoutineStep,
    Step,
)

DONE, REFUSED = 0, OUT_OF_BOUNDS
"""What ``%status`` holds at the end, unless a kernel failed: a step refused its values, or none did; or a
handler of a signal has raised an error."""
STEPS_BETWEEN_SIGNALS = 1 << 18
"""Steps of a loop after which handlers of signals run: tens of milliseconds of the fastest ones."""


class NativeStepWriter(BodyWriter):
    """Writes steps. ``%status`` is a word of the function, whose block ``ended`` comes after the steps.

    Attributes
    ----------
    starts
        Kind and number of a place -> where its elements are; of those that are chosen, the word that tells.
    gives_up_lock
        Whether steps run without the interpreter's lock: ``%state`` has what gets it back.
    calls_interpreter
        Whether loops ask the interpreter for signals.
    """

    calls_interpreter = True

    def __init__(self) -> None:
        super().__init__()
        self.gives_up_lock = False
        self.starts: dict[tuple[str, int], str] = {}

    def prepare_steps(self, steps: Sequence[Step]) -> None:
        """What comes first of all in the function."""
        self.line("%status = alloca i32")
        self.line(f"store i32 {DONE}, ptr %status")
        self._prepare_choices(steps)

    def _prepare_choices(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, GuardedSteps | RepeatedSteps):
                self._prepare_choices(step.steps)
            if isinstance(step, ChoiceStep | PlaceStep):
                self.starts["chosen", step.number] = self.value("alloca ptr")
            elif isinstance(step, RepeatedSteps):
                handed = () if step.control is None else step.control.handed
                for number, *_ in (*step.cursors, *handed):
                    self.starts["chosen", number] = self.value("alloca ptr")

    def run_steps(self, steps: Sequence[Step]) -> None:
        """Write all steps, and begin the block after them."""
        self._write(steps)
        self.line("br label %ended")
        self.begin("ended")

    def _write(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, KernelStep):
                self._call_kernel(step)
            elif isinstance(step, RoutineStep):
                self._call_routine(step)
            elif isinstance(step, MoveStep):
                self._move(step)
            elif isinstance(step, CheckStep):
                arguments = f"ptr {self.address(step.place)}, i64 {step.count}"
                self._go_on_if(self.value(f"call i1 {pointer(all_true_function())}({arguments})"))
            elif isinstance(step, DeterminantStep):
                self._determinant(step)
            elif isinstance(step, PermutationStep):
                self._permutation(step)
            elif isinstance(step, PythonStep):
                self._call_python(step)
            elif isinstance(step, ChoiceStep):
                condition = self._bool(step.condition)
                places = ", ".join(f"ptr {self.address(place)}" for place in (step.then, step.otherwise))
                found = self.value(f"select i1 {condition}, {places}")
                self.line(f"store ptr {found}, ptr {self.starts['chosen', step.number]}")
            elif isinstance(step, PlaceStep):
                self._find_place(step)
            elif isinstance(step, RepeatedSteps) and step.control is not None:
                self._loop(step, step.control)
            elif isinstance(step, RepeatedSteps):
                self._repeat(step, [self.address(place) for _, place, _ in step.cursors])
            else:
                self._guarded(step)

    def address(self, place: Place) -> str:
        """A place as an operand."""
        if place.kind == "fixed":
            return pointer(place.number + place.offset)
        base = self.starts[place.kind, place.number]
        if place.kind == "chosen":
            base = self.value(f"load ptr, ptr {base}")
        return self.value(f"getelementptr i8, ptr {base}, i64 {place.offset}") if place.offset else base

    def _go_on_if(self, condition: str) -> None:
        """End with nothing done where a condition does not hold; steps after that are left out."""
        goes_on, refused = self.name("fine"), self.name("refused")
        self.line(f"br i1 {condition}, label %{goes_on}, label %{refused}")
        self.begin(refused)
        self.line(f"store i32 {REFUSED}, ptr %status")
        self.line("br label %ended")
        self.begin(goes_on)

    def _find_place(self, step: PlaceStep) -> None:
        found = self.address(step.base)
        for place, dtype, size, stride in step.indices:
            bits = 8 * dtype.itemsize
            index = self.value(f"load i{bits}, ptr {self.address(place)}")
            if bits < 64:
                index = self.value(f"{'sext' if dtype.kind == 'i' else 'zext'} i{bits} {index} to i64")
            if dtype.kind == "i":
                from_end = self.value(f"add i64 {index}, {size}")
                negative = self.value(f"icmp slt i64 {index}, 0")
                index = self.value(f"select i1 {negative}, i64 {from_end}, i64 {index}")
            self._go_on_if(self.value(f"icmp ult i64 {index}, {size}"))
            moved = self.value(f"mul i64 {index}, {stride}")
            found = self.value(f"getelementptr i8, ptr {found}, i64 {moved}")
        self.line(f"store ptr {found}, ptr {self.starts['chosen', step.number]}")

    def _bool(self, place: Place) -> str:
        return self.value(f"icmp ne i8 {self.value(f'load i8, ptr {self.address(place)}')}, 0")

    def _guarded(self, step: GuardedSteps) -> None:
        """Conditions that are not computed are some bools, beside others that do not hold then."""
        found = []
        for path in step.alternatives:
            joint = "true"
            for place, wanted in path:
                one = self._bool(place)
                one = one if wanted else self.value(f"xor i1 {one}, true")
                joint = self.value(f"and i1 {joint}, {one}")
            found.append(joint)
        either = found[0]
        for one in found[1:]:
            either = self.value(f"or i1 {either}, {one}")
        runs, after = self.name("runs"), self.name("after")
        self.line(f"br i1 {either}, label %{runs}, label %{after}")
        self.begin(runs)
        self._write(step.steps)
        self.line(f"br label %{after}")
        self.begin(after)

    def _repeat(self, step: RepeatedSteps, places: Sequence[str], axis: int = 0) -> None:
        """One loop in another; ``places`` is where cursors are at the start of this one."""
        if 0 in step.sizes:  # loops end where they have run
            return
        if axis == len(step.sizes):
            for (number, *_), place in zip(step.cursors, places, strict=True):
                self.line(f"store ptr {place}, ptr {self.starts['chosen', number]}")
            self._write(step.steps)
            return
        before, again, after = (self.name(name) for name in ("before", "again", "after"))
        next_label = self.name("once_more")
        index, following = (f"%{self.name(name)}" for name in ("index", "following"))
        self.line(f"br label %{before}")
        self.begin(before)
        self.line(f"br label %{again}")
        self.begin(again)
        self.line(f"{index} = phi i64 [ 0, %{before} ], [ {following}, %{next_label} ]")
        inner = []
        for (_, _, strides), place in zip(step.cursors, places, strict=True):
            moved = self.value(f"mul i64 {index}, {strides[axis]}")
            inner.append(self.value(f"getelementptr i8, ptr {place}, i64 {moved}"))
        self._repeat(step, inner, axis + 1)
        self.line(f"br label %{next_label}")
        self.begin(next_label)
        self.line(f"{following} = add i64 {index}, 1")
        self.line(
            f"br i1 {self.value(f'icmp eq i64 {following}, {step.sizes[axis]}')},"
            f" label %{after}, label %{again}"
        )
        self.begin(after)

    def _loop(self, step: RepeatedSteps, control: LoopControl) -> None:
        """A loop along one axis, which may end before its size, and hands places on."""
        starts = [self.address(place) for _, place, _ in step.cursors]
        for number, place, _ in control.handed:
            self.line(f"store ptr {self.address(place)}, ptr {self.starts['chosen', number]}")
        limit = str(step.sizes[0])
        if control.limit is not None:
            told = self.value(f"load i64, ptr {self.address(control.limit)}")
            fewer = self.value(f"icmp slt i64 {told}, {limit}")
            limit = self.value(f"select i1 {fewer}, i64 {told}, i64 {limit}")
        before, again, runs, after = (self.name(name) for name in ("before", "again", "runs", "after"))
        ends = self.name("ends")
        index, following = (f"%{self.name(name)}" for name in ("index", "following"))
        self.line(f"br label %{before}")
        self.begin(before)
        self.line(f"br label %{again}")
        self.begin(again)
        self.line(f"{index} = phi i64 [ 0, %{before} ], [ {following}, %{ends} ]")
        goes_on = self.value(f"icmp slt i64 {index}, {limit}")
        if control.condition is not None:
            goes_on = self.value(f"and i1 {goes_on}, {self._bool(control.condition)}")
        self.line(f"br i1 {goes_on}, label %{runs}, label %{after}")
        self.begin(runs)
        at = index
        if control.reverse:
            at = self.value(f"sub i64 {self.value(f'sub i64 {limit}, 1')}, {index}")
        for (number, _, (stride,)), start in zip(step.cursors, starts, strict=True):
            moved = self.value(f"mul i64 {at}, {stride}")
            there = self.value(f"getelementptr i8, ptr {start}, i64 {moved}")
            self.line(f"store ptr {there}, ptr {self.starts['chosen', number]}")
        self._write(step.steps)
        if self.calls_interpreter and step.sizes[0] > STEPS_BETWEEN_SIGNALS:
            self._handle_signals(index)
        found = [self.value(f"load ptr, ptr {self.starts['chosen', one]}") for *_, one in control.handed]
        for (number, *_), one in zip(control.handed, found, strict=True):
            self.line(f"store ptr {one}, ptr {self.starts['chosen', number]}")
        self.line(f"br label %{ends}")
        self.begin(ends)
        self.line(f"{following} = add i64 {index}, 1")
        self.line(f"br label %{again}")
        self.begin(after)
        if control.count is not None:
            self.line(f"store i64 {index}, ptr {self.address(control.count)}")

    def _handle_signals(self, index: str) -> None:
        """Let handlers of signals run now and then, and end where one raises an error."""
        asks, raised, goes_on = (self.name(name) for name in ("asks", "raised", "goes_on"))
        left = self.value(f"and i64 {index}, {STEPS_BETWEEN_SIGNALS - 1}")
        is_time = self.value(f"icmp eq i64 {left}, {STEPS_BETWEEN_SIGNALS - 1}")
        self.line(f"br i1 {is_time}, label %{asks}, label %{goes_on}")
        self.begin(asks)
        found = self._with_lock(f"call i32 {python_function('PyErr_CheckSignals')}()")
        is_quiet = self.value(f"icmp eq i32 {found}, 0")
        self.line(f"br i1 {is_quiet}, label %{goes_on}, label %{raised}")
        self._end_with_error(raised)
        self.begin(goes_on)

    def _with_lock(self, call: str) -> str:
        """The result of a call of the interpreter."""
        if self.gives_up_lock:
            self.line(f"call void {python_function('PyEval_RestoreThread')}(ptr %state)")
        found = self.value(call)
        if self.gives_up_lock:
            self.value(f"call ptr {python_function('PyEval_SaveThread')}()")  # the state is the same
        return found

    def _end_with_error(self, label: str) -> None:
        """A block that ends the steps, where the interpreter has an error that was raised."""
        self.begin(label)
        self.line(f"store i32 {INTERRUPTED}, ptr %status")
        self.line("br label %ended")

    def _call_python(self, step: PythonStep) -> None:
        """Tell arrays where their elements are, call the function, and let them stand for nothing again."""
        pointers = step.function.pointers
        for place, (word, _) in zip(step.places, pointers, strict=True):
            self.line(f"store ptr {self.address(place)}, ptr {pointer(word)}")
        # The result is True or False, which other references keep alive.
        called = f"{python_function('PyObject_CallNoArgs')}(ptr {pointer(id(step.function))})"
        found = self._with_lock(f"call ptr {called}")
        for word, idle in pointers:
            self.line(f"store ptr {pointer(idle)}, ptr {pointer(word)}")
        raised, returned = self.name("raised"), self.name("returned")
        self.line(f"br i1 {self.value(f'icmp eq ptr {found}, null')}, label %{raised}, label %{returned}")
        self._end_with_error(raised)
        self.begin(returned)
        self._go_on_if(self.value(f"icmp eq ptr {found}, {pointer(id(True))}"))

    def _call_routine(self, step: RoutineStep) -> None:
        arguments = [f"ptr {self.address(place)}" for place in step.pointers]
        arguments += [f"i64 {number}" for number in step.integers]
        called = f"{pointer(step.address)}({', '.join(arguments)})"
        if step.returns_status:
            found = self.value(f"call i32 {called}")
            raised = self.value(f"icmp eq i32 {found}, {INTERRUPTED}")
            status = self.value(f"select i1 {raised}, i32 {INTERRUPTED}, i32 {REFUSED}")
            self.line(f"store i32 {status}, ptr %status")
            self.require([self.value(f"icmp eq i32 {found}, 0")], "ended")
            self.line(f"store i32 {DONE}, ptr %status")
        else:
            self.line(f"call void {called}")
        if step.refusal is not None:
            place, bits = step.refusal
            found = self.value(f"load i{bits}, ptr {self.address(place)}")
            self._go_on_if(self.value(f"icmp eq i{bits} {found}, 0"))

    def _move(self, step: MoveStep) -> None:
        target, source = self.address(step.target), self.address(step.source)
        if step.part != "all":
            numbers = (*step.sizes, *step.target_strides, *step.source_strides)
            integers = ", ".join(f"i64 {number}" for number in numbers)
            function = pointer(triangle_function(step.dtype, step.part))
            self.line(f"call void {function}(ptr {target}, ptr {source}, {integers})")
            return
        axes = collapsed(step.sizes, step.target_strides, step.source_strides)
        itemsize = step.dtype.itemsize
        copies = not step.adds and step.converted is None
        if copies and axes[1] == axes[2] and axes[1] in ((), (itemsize,)):
            count = axes[0][0] * itemsize if axes[0] else itemsize
            self.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {count}, i1 false)")
            return
        empty = [*axes[0], itemsize, itemsize] if not axes[0] else []
        padded = [
            [filler] * (AXES - len(values)) + list(values)
            for values, filler in zip(axes, (1, 0, 0), strict=True)
        ]
        if empty:  # one element: the loop for those that follow each other
            padded[1][-1] = itemsize
            padded[2][-1] = (step.converted or step.dtype).itemsize
        integers = ", ".join(f"i64 {number}" for values in padded for number in values)
        function = pointer(move_function(step.dtype, step.adds, step.converted))
        self.line(f"call void {function}(ptr {target}, ptr {source}, {integers})")

    def _determinant(self, step: DeterminantStep) -> None:
        sign = "null" if step.sign is None else self.address(step.sign)
        others = [self.address(place) for place in (step.factors, step.pivots, step.info, step.logarithm)]
        factors, pivots, info, logarithm = others
        arguments = f"ptr {factors}, i64 {step.rows}, ptr {pivots}, ptr {info}, ptr {sign}, ptr {logarithm}"
        self.line(f"call void {pointer(determinant_function(step.dtype))}({arguments})")

    def _permutation(self, step: PermutationStep) -> None:
        target, pivots, order = map(self.address, (step.target, step.pivots, step.order))
        arguments = f"ptr {target}, i64 {step.rows}, ptr {pivots}, i64 {step.count}, ptr {order}"
        self.line(f"call void {pointer(permutation_function(step.dtype))}({arguments})")

    def _call_kernel(self, step: KernelStep) -> None:
        """By numba's convention: where results and errors would go, then each array's fields one by one."""
        arguments = ["ptr %nothing", "ptr %nothing"]
        for place, array in step.arrays:
            itemsize = array.dtype.itemsize
            strides = array.strides if array.strides is not None else contiguous_strides(array)
            count = array_bytes(array) // itemsize
            arguments += ["ptr null", "ptr null", f"i64 {count}", f"i64 {itemsize}"]
            arguments.append(f"ptr {self.address(place)}")
            arguments += [f"i64 {size}" for size in array.shape]
            arguments += [f"i64 {stride}" for stride in strides]
        arguments += [f"i64 {number}" for number in step.integers]
        status = self.value(f"call i32 {pointer(step.address)}({', '.join(arguments)})")
        self.line(f"store i32 {status}, ptr %status")
        # Steps after one that failed would read what it has not written.
        self.require([self.value(f"icmp eq i32 {status}, 0")], "ended")


def contiguous_strides(array: ArraySpecification) -> tuple[int, ...]:
    """Bytes from element to element along each axis of C-contiguous elements."""
    strides = [array.dtype.itemsize]
    for size in reversed(array.shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides[: len(array.shape)])


def array_bytes(array: ArraySpecification) -> int:
    """Bytes of all elements."""
    return int(np.prod(array.shape, dtype=np.int64)) * array.dtype.itemsize
