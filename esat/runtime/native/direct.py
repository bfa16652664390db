"""Frequent calls of small programs as one native function, for the shapes that come again and again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from esat.base.records import record
from esat.codegen.ground.builtin_function import is_available
from esat.codegen.native_functions.native_call import NativeRecipe
from esat.codegen.threads import granted_threads, pool_address
from esat.codegen.threads.choice import ChosenCalls
from esat.graph import Constant, TensorType, Variable
from esat.graph.random_type import RandomType
from esat.runtime.buffers import Allocator, allocator, pool_of
from esat.runtime.entry.dispatch import CallsLeft, Run, Way
from esat.runtime.entry.layouts import contiguous_copies
from esat.runtime.entry.signatures import Fact, SignatureTable
from esat.runtime.loop_routine import LoopRoutine
from esat.runtime.native.native_memory import has_one_thread, made_in, returned
from esat.runtime.native.native_steps import NativeSteps, are_known, may_be_step, taken
from esat.runtime.native.native_views import Shape
from esat.runtime.native.shared_values import value_of, with_values
from esat.runtime.program import Program
from esat.runtime.threads import CallsOfShapes

CALLS = 200
"""Calls of a program after which its native function is made.

That takes two to three milliseconds and saves 0.8 us a call of a kernel, two of a product and ten of a
solution of order 8, so that it pays after 300 to 2,500 calls: a program that was called so often will be
again. With steps that take Python's way to a copy or to LAPACK there are fewer calls before.
"""
FEWEST_CALLS = 3
LARGEST = 1 << 20
"""Bytes that a call reads and writes up to which it holds the interpreter's lock."""
LARGEST_UNLOCKED = 1 << 29
"""Bytes that the steps of a call move up to which the interpreter's own work counts: a tenth of a second. No
signal is handled meanwhile."""
LARGEST_SCRATCH = 1 << 26
"""Bytes of scratch memory that a native function may keep."""
MAXIMUM_FUNCTIONS = 16
"""Combinations of shapes for which functions are made, or tried in vain, before all of them are dropped."""
LONGER = 4
"""How many times as many calls there are between functions afterwards: where shapes never come again, less
and less time is spent on them."""


class NativeFunctions:
    """The native functions of a program: one for each combination of shapes that comes often.

    The one that was made last is called first. Each calls the one before it with what it does not admit,
    which takes 30 ns, and the first one the driver. Once there are too many all are dropped: those whose
    shapes still come are made again, after more calls.

    Attributes
    ----------
    last
        What tries them; None before there are any.
    use
        Told of it.
    otherwise
        Called where no function admits the arguments.

    Parameters
    ----------
    program, table
        The program and its records.
    driver
        Runs its calls, and those that no function admits.
    """

    def __init__(self, program: Program, table: SignatureTable, driver: Run) -> None:
        self._program, self._table, self._driver = program, table, driver
        self._between = _calls_before(program)
        self._wait = CallsLeft(self._between)
        self._tried = 0
        self.otherwise: Run = self._run_otherwise
        self._made = self._first = _refuse if program.shared else self.otherwise
        self.last: Run | None = None
        self.use: Callable[[Run], None] = _nobody

    def offer(self, way: Way) -> Run | CallsLeft | None:
        """The function for these shapes, once calls are many; None where there is none."""
        if self._wait.calls > 0 or way.key not in self._table.records:
            return self._wait
        if self._tried == MAXIMUM_FUNCTIONS:
            self._drop()
        self._wait.calls = self._between
        self._tried += 1
        made = direct_call(self._program, self._table, way.key, self._made)
        if made is None:
            return None
        self._made, way.is_native = made, True
        self.last = _with_values(self._program, made, self.otherwise) if self._program.shared else made
        self.use(self.last)
        return self.last

    def _run_otherwise(self, *arguments: Any, **named: Any) -> Any:
        """What no function admits: by the driver, unless functions may admit small copies."""
        native = self.last
        copies = None if native is None else contiguous_copies(arguments, len(self._program.steps))
        if native is None or copies is None:
            return self._driver(*arguments, **named)
        return native(*copies, **named)

    def _drop(self) -> None:
        """Forget all functions."""
        self._tried, self._made = 0, self._first
        self._between = LONGER * max(self._between, CALLS)
        for known in list(self._table.records.values()):
            way = known[-2]
            if way.is_native:
                way.is_native, way.left, way.wait = False, (self,), self._wait


def _nobody(_function: Run) -> None:
    pass


def _calls_before(program: Program) -> int:
    """How many calls the driver runs before the native function is made: none of a loop, of many steps."""
    if has_loops(program):
        return 0
    through_python = sum(
        group.kind == "library" and group.nodes[0] not in program.routines for group in program.steps
    )
    return max(FEWEST_CALLS, CALLS // (1 + through_python))


def has_loops(program: Program) -> bool:
    """Whether a program has loops, which the driver would run step by step: nothing that can be avoided sends
    a call there, such as that no memory of an earlier result is free."""
    return any(isinstance(routine, LoopRoutine) for routine in program.routines.values())


def may_be_direct(program: Program) -> bool:
    """Whether calls of a program could be native: each of its steps has a native form.

    Shared variables may be read, and updated where their new values take their places.
    """
    states = {variable for variable in program.shared if isinstance(variable.type, RandomType)}
    arrays = {*program.graph.inputs, *program.shared, *returned(program)} - states
    if not is_available() or not all(isinstance(variable.type, TensorType) for variable in arrays):
        return False
    if not states <= program.overwritten:
        return False
    if not program.overwritten <= set(program.shared) or not program.graph.outputs:
        return False
    values = program.graph.outputs[len(returned(program)) :]
    in_place = map(program.is_in_place, program.updated, values)
    if any(certainty == "never" for certainty in in_place):
        return False
    return all(may_be_step(program, group) for group in program.steps)


def direct_call(
    program: Program, table: SignatureTable, key: tuple[Shape, ...], otherwise: Run
) -> Run | None:
    """The native function of a program for the shapes of a key with a record; None where it would not pay.

    It takes the values of shared variables after the arguments.
    """
    making = _making(program, table, key)
    if making is None:
        return None

    def native(threads: int, otherwise: Run) -> Run | None:
        recipe = making.recipe(threads)
        return None if recipe is None else recipe.function(otherwise)

    if making.large and not has_one_thread(program):
        return _chosen(program, making.large, native, otherwise)
    return native(1, otherwise)


def recipe_in_one_thread(
    program: Program, table: SignatureTable, key: tuple[Shape, ...], must_pay: bool = True
) -> NativeRecipe | None:
    """What a native function of a program does for the shapes of a key; None if there is none.

    It need not pay where the caller has no other way: then it may be so large that no signal is handled for
    long, and keep much scratch memory, and libraries may use threads of their own.
    """
    if not may_be_direct(program) or key not in table.records:
        return None
    making = _making(program if must_pay else replace(program, threads=1), table, key, must_pay)
    return None if making is None else making.recipe(1)


def seconds_that_threads_share(program: Program, table: SignatureTable, key: tuple[Shape, ...]) -> float:
    """Seconds of a call in one thread for the shapes of a key that several threads could share."""
    large = _large(dict(zip(program.record_facts, table.records[key], strict=False)))
    return 0.0 if has_one_thread(program) else sum(calls.seconds for calls in large.values())


@record(frozen=True, eq=False)
class _Making:
    """What decides about native functions of a program for some shapes.

    Attributes
    ----------
    large
        First result of a kernel -> its calls, where several threads could share its work.
    recipe
        What the function does in so many threads; it has a frame of its own.
    """

    large: Mapping[Variable, CallsOfShapes]
    recipe: Callable[[int], NativeRecipe | None]


def _making(
    program: Program, table: SignatureTable, key: tuple[Shape, ...], must_pay: bool = True
) -> _Making | None:
    """How native functions are made for the shapes of a key, which has a record; None if none would pay."""
    known = table.records[key]
    facts = dict(zip(program.record_facts, known, strict=False))
    if any(value for (kind, _), value in facts.items() if kind == "error"):
        return None
    shapes, frames = table.shapes(key), known[-1]
    if not are_known(program, shapes):
        return None
    scratch = frames.plan.peak_bytes
    unlocked = _bytes_from_outside(program, shapes) + scratch > LARGEST
    is_large = _bytes_moved(program, shapes) > LARGEST_UNLOCKED or scratch > LARGEST_SCRATCH
    if must_pay and unlocked and is_large:
        return None
    results = returned(program)
    values = {variable: value for (kind, variable), value in facts.items() if kind == "value"}
    new = {variable: value for (kind, variable), value in facts.items() if kind == "new"}
    kept = [
        None if has_loops(program) else _kept_memory(output, new.get(made_in(program, output)), shapes)
        for output in results
    ]
    large = _large(facts)

    def recipe(threads: int) -> NativeRecipe | None:
        frame = taken(frames)  # of each its own: several Python threads may call both at once
        return NativeSteps(program, shapes, values, frame, kept, unlocked, large, threads).recipe()

    return _Making(large, recipe)


def _large(facts: Mapping[Fact, Any]) -> dict[Variable, CallsOfShapes]:
    """First result of a kernel that several threads could share -> its calls."""
    return {variable: value for (kind, variable), value in facts.items() if kind == "large" and value}


def _chosen(
    program: Program,
    large: Mapping[Variable, CallsOfShapes],
    native: Callable[[int, Run], Run | None],
    otherwise: Run,
) -> Run | None:
    """What calls the native function for one thread, or the one for several, whichever is faster."""
    threads = granted_threads(program.threads)
    alone = native(1, _refuse) if threads > 1 else None
    if alone is None:
        return None

    @functools.cache
    def made() -> tuple[Run | None, int]:
        return native(threads, _refuse), pool_address(threads)

    def together(granted: int, *arguments: Any, **named: Any) -> Any:
        run, pool = made()
        if run is None or granted != threads or pool_address(threads) != pool:  # a fork has another one
            return NotImplemented
        return run(*arguments, **named)

    noted, first = program.threaded[next(iter(large))], min(calls.calls_alone for calls in large.values())
    return ChosenCalls(program.threads, alone, together, noted, otherwise, first)


def _bytes_from_outside(program: Program, shapes: Mapping[Variable, Shape]) -> int:
    """Bytes that a call reads of what it does not make, and that it returns."""
    working = [group for group in program.steps if group.kind != "view"]
    made = {output for group in working for output in group.outputs}
    read = {variable for group in working for variable in group.reads if variable not in made}
    return sum(_bytes(variable, shapes) for variable in (*read, *returned(program)))


def _bytes_moved(program: Program, shapes: Mapping[Variable, Shape]) -> int:
    """Bytes that the steps of a call read and write, one after the other."""
    working = [group for group in program.steps if group.kind != "view"]
    return sum(_bytes(variable, shapes) for group in working for variable in (*group.reads, *group.outputs))


def _refuse(*_arguments: Any, **_named: Any) -> Any:
    """Stands for the driver in native functions that a function calls: it says that nothing was done."""
    return NotImplemented


def _kept_memory(
    output: Variable, driver: Allocator | None, shapes: Mapping[Variable, Shape]
) -> np.ndarray[Any, Any] | None:
    """The bases in which an output may be made: the driver's, if its allocator makes arrays of this size."""
    if isinstance(output, Constant):
        return None
    own = allocator(shapes[output], output.tensor_type.numpy_dtype)
    pools = [pool for pool in map(pool_of, (driver or own, own)) if pool is not None]
    return next((pool.bases for pool in pools if pool.size == _bytes(output, shapes)), None)


def _with_values(program: Program, made: Run, otherwise: Run) -> Run:
    """A native function that takes shared values after the arguments, as one of the arguments alone."""
    lock = program.lock if program.updated else nullcontext()
    values = [value_of(variable, variable in program.overwritten) for variable in program.shared]
    return with_values(len(program.graph.inputs), values, lock, made, otherwise)


def _bytes(variable: Variable, shapes: Mapping[Variable, Shape]) -> int:
    """Bytes of an argument or a result; none of a constant, which is part of the program."""
    if isinstance(variable, Constant) or not isinstance(variable.type, TensorType):
        return 0
    return int(np.prod(shapes[variable], dtype=np.int64)) * variable.type.numpy_dtype.itemsize
