"""Executables that run what was recorded, and become ordinary ones where that is not enough."""

from __future__ import annotations

import functools
import math
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from esat.base.collection import without_collecting, without_old_objects
from esat.base.forks import GATE
from esat.base.interrupts import delayed_interrupts, handlers_reach_the_caller, raise_from_outside
from esat.base.storage import CacheWarning, DiskStore, default_directory
from esat.compilation.recorded.content import (
    NativeRecord,
    NotRecordedError,
    Shapes,
    decoded,
    encoded,
    packed,
    unpacked,
)
from esat.compilation.recorded.keys import (
    NotKeyedError,
    compiler_state,
    graph_key,
    numba_before,
    numba_state,
)
from esat.frontend.graph import Graph
from esat.graph import SharedVariable, TensorType, Variable
from esat.runtime import Executable
from esat.runtime.buffers import provide
from esat.runtime.entry.dispatch import Run
from esat.runtime.entry.layouts import contiguous_copies
from esat.runtime.executable import shared_by_name
from esat.runtime.native.shared_values import value_of, with_values

if TYPE_CHECKING:
    from esat.codegen.native_functions.native_call import NativeRecipe
    from esat.codegen.native_functions.native_plan import ArraySpecification
    from esat.runtime.entry.calls import Calls
    from esat.runtime.function_profile import Profile
    from esat.runtime.native.c_entry import CEntry

VARIABLE = "ESAT_EGRAPH_CACHE"
"""Environment variable: with the value 0 nothing that was found by search is kept or taken from disk."""
RECORDS = 4
"""Combinations of shapes that the record of a graph has functions for."""
COMPILING = 1.0
"""Seconds that several threads could have shared, after which a recorded program, which runs in one, is
compiled: what that takes with kernels on disk (0.9 s for a formula of three arrays, on a shared server)."""
_COMPILER = ("esat.compilation.pipeline", "esat.rules", "esat.classic", "esat.mode")
"""What may have been changed before the first compilation if it was imported before that."""


class Request:
    """A compilation that was asked for, and what its record is found by.

    Parameters
    ----------
    graph, mode, shapes
        As :func:`esat.compile` takes them.
    message
        What the profile calls it.
    """

    def __init__(
        self, graph: Graph, mode: str, shapes: Mapping[Variable, Sequence[int]], message: str
    ) -> None:
        self.graph, self.mode, self.shapes, self.message = graph, mode, dict(shapes), message
        self.key, self.shared = graph_key(graph, mode, shapes)

    def compiled(self, make: Callable[[Calls, Profile], Executable] = Executable) -> Executable:
        """What the compiler makes of it; the first calls are recorded."""
        from esat.compilation.pipeline import compile_as

        executable = compile_as(make, self.graph, self.mode, self.shapes, self.message)
        if type(executable) is Executable and is_unchanged():  # one that checks each call is no plain one
            _Noting(executable, self)
        return executable


def requested(
    graph: object, mode: object, shapes: Mapping[Variable, Sequence[int]], message: str
) -> Request | None:
    """The request for what may be recorded; None for all else."""
    plain = isinstance(graph, Graph) and isinstance(mode, str)
    if not plain or os.environ.get(VARIABLE) == "0" or not is_unchanged():
        return None
    try:
        return Request(graph, mode, shapes, message)  # type: ignore[arg-type]
    except (NotKeyedError, TypeError, ValueError, AttributeError):
        return None  # the compiler says what is wrong, if anything is


@functools.cache
def store() -> DiskStore:
    """Where records are."""
    return DiskStore(default_directory(), "program")


def is_unchanged() -> bool:
    """Whether the compiler is as any process has it that follows its environment.

    What is asked first decides about processes that imported the compiler before.
    """
    if not _began_plain():
        return False
    if "esat.compilation.pipeline" in sys.modules:
        return compiler_state() == _plain_state()
    return numba_before() in (None, numba_state())


@functools.cache
def _began_plain() -> bool:
    numba_before()  # which the compiler will import
    return not any(name in sys.modules for name in _COMPILER)


@functools.cache
def _plain_state() -> tuple[Any, ...]:
    return compiler_state()


def import_compiler() -> None:
    """Import the compiler, and remember what it is like before anybody can change it."""
    with delayed_interrupts(), without_collecting():
        import esat.compilation.pipeline  # noqa: F401

    if _began_plain():
        _plain_state()


class RecordedExecutable(Executable):
    """An Executable whose calls run what was recorded. Asked for more, it is compiled, and is a plain one."""

    def __init__(self, request: Request, records: Sequence[NativeRecord]) -> None:
        self._request = request
        self._records: dict[Shapes | None, NativeRecord] = {one.shapes: one for one in records}
        self._made: dict[Shapes | None, Callable[..., Any]] = {}
        self._lock = threading.RLock()
        self.entry = self._find

    def __getattr__(self, name: str) -> Any:
        """What the compiler knows, once it has compiled the graph."""
        if name.startswith("__") or name in ("_request", "_records", "_made", "_lock"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._compile()
        return getattr(self, name)

    @property
    def _results(self) -> int:
        return len(self._request.graph.outputs)

    @property
    def shared(self) -> Mapping[str, SharedVariable]:
        """As :attr:`Executable.shared`, which needs no compiler."""
        return shared_by_name(self._request.graph)

    def _c_entry(self, arguments: Sequence[Any]) -> CEntry:
        found = self._records.get(self._shapes(arguments))
        if found is None or found.shared:  # as for what the compiler makes, which says what is wrong
            self._compile()
            return self.c_entry(*arguments)
        from esat.runtime.native.c_entry import entry_of_recipe

        return entry_of_recipe(decoded(found.recipe, found.code), arguments)

    def _compile(self) -> None:
        """Become what the compiler makes."""
        lock, request = self._lock, self._request
        with handlers_reach_the_caller(), GATE.busy(), lock:
            if type(self) is RecordedExecutable:
                import_compiler()
                request.compiled(self._become)

    def _become(self, calls: Calls, profile: Profile) -> Executable:
        # Attributes stay until the constructor replaces them: other threads may call meanwhile.
        self.__class__ = Executable  # type: ignore[assignment]
        Executable.__init__(self, calls, profile)
        return self

    def _compiled(self, *arguments: Any, out: Any = None) -> Any:
        self._compile()
        return self.entry(*arguments) if out is None else self.entry(*arguments, out=out)

    def _find(self, *arguments: Any, out: Any = None) -> Any:
        """Run what is recorded for the shapes of the arguments; compile where nothing is."""
        shapes = self._shapes(arguments)
        made = self._made.get(shapes)
        if made is None:
            with handlers_reach_the_caller(), GATE.busy(), self._lock:
                made = self._function(shapes)
                if made is not None and type(self) is RecordedExecutable:
                    self.entry = made
        if made is None:
            return self._compiled(*arguments, out=out)
        return made(*arguments) if out is None else made(*arguments, out=out)

    def _otherwise(self, refused: Shapes, recipe: NativeRecipe, *arguments: Any, out: Any = None) -> Any:
        """Run what the function for some shapes did not, for want of memory for its results or otherwise."""
        shapes = self._shapes(arguments)
        is_wrong = shapes in (refused, None) and not _provided(recipe.outputs)
        copies = contiguous_copies(arguments, len(recipe.steps)) if is_wrong else None
        if copies is not None:
            arguments, is_wrong = copies, False
        return (self._compiled if is_wrong else self._find)(*arguments, out=out)

    def _shapes(self, arguments: Sequence[Any]) -> Shapes | None:
        own = shapes_of(arguments)
        return None if own is None else (*own, *_shapes_of_values(self._request.shared))

    def _function(self, shapes: Shapes | None) -> Callable[..., Any] | None:
        """The native function that is recorded for some shapes, made when it is first asked for."""
        made, found = self._made.get(shapes), self._records.get(shapes)
        if made is None and found is not None and shapes is not None:
            try:
                with without_old_objects():
                    self._made[shapes] = made = self._native(found, shapes)
            except Exception as error:  # whatever is wrong with a record, the compiler makes another
                raise_from_outside(error)
                message = f"a recorded program cannot be used, and is compiled: {error}"
                warnings.warn(message, CacheWarning, stacklevel=4)
                del self._records[shapes]
        return made

    def _native(self, found: NativeRecord, shapes: Shapes) -> Callable[..., Any]:
        request, recipe = self._request, decoded(found.recipe, found.code)
        _provided(recipe.outputs)
        otherwise = functools.partial(self._otherwise, shapes, recipe)
        shared = [request.shared[number] for number, _ in found.shared]
        made = recipe.function(_refuse if shared else otherwise)
        if shared:
            lock = GATE.lock() if found.updates else nullcontext()
            values = [
                value_of(variable, is_overwritten)
                for variable, (_, is_overwritten) in zip(shared, found.shared, strict=True)
            ]
            made = with_values(len(request.graph.inputs), values, lock, made, otherwise)
        if found.wait is None:
            return made
        return _Counted(found.wait, made, self._compiled)  # which looks for a better program then


def _provided(outputs: Sequence[ArraySpecification]) -> bool:
    """Provide memory for all results; whether some of them had none."""
    pooled = [(one.bases, one) for one in outputs if one.bases is not None]
    added = [provide(bases, math.prod(one.shape) * one.dtype.itemsize) for bases, one in pooled]
    return any(added)


class _Counted:
    """Runs one function for so many calls, and another one from then on."""

    __slots__ = ("_calls", "_run", "_then")

    def __init__(self, calls: int, run: Run, then: Run) -> None:
        self._calls, self._run, self._then = calls, run, then

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        self._calls -= 1
        run = self._run if self._calls >= 0 else self._then
        return run(*arguments) if out is None else run(*arguments, out=out)


def shapes_of(arguments: Sequence[Any]) -> Shapes | None:
    """The shapes of arrays and numbers; None where there is something else among them."""
    shapes: list[tuple[int, ...]] = []
    for one in arguments:
        if type(one) is np.ndarray:
            shapes.append(one.shape)
        elif isinstance(one, int | float | complex | np.generic):
            shapes.append(())
        else:
            return None
    return tuple(shapes)


def _shapes_of_values(variables: Iterable[SharedVariable]) -> Shapes:
    """The shapes of the arrays among the values of shared variables: states of generators have none."""
    return tuple(one.look().shape for one in variables if isinstance(one.type, TensorType))


def _refuse(*_arguments: Any, **_named: Any) -> Any:
    return NotImplemented


class _Noting:
    """Stands before an Executable's entry for its first call, whose function it records.

    Parameters
    ----------
    executable
        What the compiler made.
    request
        What of.
    """

    def __init__(self, executable: Executable, request: Request) -> None:
        self._executable, self._request = executable, request
        self._entry = executable.entry
        executable.entry = self

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        results = self._entry(*arguments) if out is None else self._entry(*arguments, out=out)
        if self._executable.entry is self:
            self._executable.entry = self._entry
        with handlers_reach_the_caller(), GATE.busy():
            self._note(arguments)
        return results

    def _note(self, arguments: Sequence[Any]) -> None:
        given = shapes_of(arguments)
        if given is None:
            return
        from esat.runtime.native.direct import recipe_in_one_thread, seconds_that_threads_share

        calls = self._executable._calls
        program = calls.program
        numbers = {variable: number for number, variable in enumerate(self._request.shared)}
        if any(variable not in numbers for variable in program.shared):
            return
        own = (*given, *_shapes_of_values(program.shared))
        known = calls.table.records.get(own)
        wait = None if known is None else calls.dispatch.calls_to_wait(known[-2])
        recipe = None if wait is None else recipe_in_one_thread(program, calls.table, own)
        if wait is None or recipe is None:
            return
        seconds = seconds_that_threads_share(program, calls.table, own)
        if seconds > 0.0:
            wait = min(wait or sys.maxsize, max(1, int(COMPILING / seconds)))
        shapes = (*given, *_shapes_of_values(self._request.shared))
        shared = tuple((numbers[one], one in program.overwritten) for one in program.shared)
        try:
            content, code = encoded(recipe)
        except NotRecordedError:
            return
        updates = bool(program.updated)
        made = NativeRecord(shapes, shared, updates, None if wait == 0 else wait, content, code)
        others = store().load(self._request.key, unpacked) or ()
        kept = [one for one in others if one.shapes != shapes][-RECORDS + 1 :]
        store().save(self._request.key, packed([*kept, made]))


def recorded(request: Request) -> Executable | None:
    """The Executable of what is recorded; None where nothing is."""
    records = store().load(request.key, unpacked)
    return RecordedExecutable(request, records) if records else None
