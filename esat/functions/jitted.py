"""``esat.jit``: a function of NumPy arrays, compiled when it is called."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, cast, overload

import numpy as np

from esat.base.readable_methods import readable
from esat.errors import CallError, InputError, OptimizerError
from esat.frontend.tracing.trace import SizesAsked, ValueAsked, current_trace
from esat.frontend.tracing.trees import Exact, Structure, flatten, static
from esat.frontend.tracing.values.conditions import NumberCondition
from esat.frontend.tracing.values.convert import holds_traced
from esat.functions.call_code import NAMED, Use, all_enter, are_leaves, entry_for
from esat.functions.guards import Guard, guard_for, is_array, known_of
from esat.functions.tracebacks import shown
from esat.functions.traced_calls import on_variables, trace_call
from esat.functions.traced_programs import (
    Settings,
    Specialization,
    compile_traced,
    warn_of_numbers,
)
from esat.functions.twins import twins_of
from esat.graph.changes import tell_of_changes

Shapes = Literal["static", "symbolic"]

MOST_GUARDS = 4
"""Structures that are known by code of their own: each is asked for in turn."""
MOST_RETRACES = 64
"""Numbers of one call whose values may be asked for one after another."""

P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    f: Callable[P, R],
    *,
    static_argnames: str | Iterable[str] = (),
    mode: Any = "fast_run",
    donate: str | Iterable[str] = (),
    shapes: Shapes = "static",
) -> Jitted[P, R]: ...
@overload
def jit(
    f: None = None,
    *,
    static_argnames: str | Iterable[str] = (),
    mode: Any = "fast_run",
    donate: str | Iterable[str] = (),
    shapes: Shapes = "static",
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnames: str | Iterable[str] = (),
    mode: Any = "fast_run",
    donate: str | Iterable[str] = (),
    shapes: Shapes = "static",
) -> Any:
    """A function of NumPy arrays as compiled programs, one for each combination of dtypes and shapes.

    The function is run once with traced arrays in place of its arguments, which record what is computed. It
    may use NumPy's functions, operators and methods, assign to parts of arrays, and call functions of
    ``esat``. What it does otherwise, such as printing, happens while it is traced and not in later calls.

    Parameters
    ----------
    f
        A function whose arguments and results are arrays and numbers, also in tuples, lists, dicts,
        dataclasses and other objects. Arrays that it writes to are changed, as NumPy changes them. Python
        numbers are given to programs at run time; there is one program for each value of a number whose
        value the function asks for, as ``range(n)`` does, and of a boolean, string or None.
    static_argnames
        Names of arguments whose values are parts of programs: slices, and what is hashable, compared by
        ``==``, numbers also by their types and signs.
    mode
        How hard to optimize, as for :func:`esat.compile`.
    donate
        Names of arguments whose arrays a call may overwrite and reuse.
    shapes
        Whether programs are for arrays of one shape ("static"), or for all of one rank ("symbolic"), where
        axes of size 0 and 1 count as others and ``x.shape`` has traced numbers.

    Returns
    -------
    A :class:`Jitted`.

    Raises
    ------
    CallError
        For what is no function, or names that it has no arguments of.

    Examples
    --------
    >>> import numpy as np
    >>> @esat.jit
    ... def smooth(x, rate):
    ...     x[1:] += rate * (x[:-1] - x[1:])
    ...     return x
    >>> smooth(np.array([1.0, 2.0, 4.0]), 0.5)
    array([1. , 1.5, 3. ])
    """
    if f is None:
        return functools.partial(
            jit, static_argnames=static_argnames, mode=mode, donate=donate, shapes=shapes
        )
    if not callable(f):
        raise CallError(f"jit: a function is wanted, not {f!r}")
    if shapes not in ("static", "symbolic"):
        raise CallError(f'jit: shapes is "static" or "symbolic", not {shapes!r}')
    names = [(name,) if isinstance(name, str) else tuple(name) for name in (static_argnames, donate)]
    options = names[0], mode, names[1], shapes
    method = _method_of(f)
    if method is None:
        return make_jitted(f, *options)
    return types.MethodType(make_jitted(method.__func__, *options), method.__self__)


def _method_of(f: Any) -> types.MethodType | None:
    """A function with an object that belongs to it: a method, or what an object does when it is called."""
    if isinstance(f, types.MethodType):
        return f
    if isinstance(f, Jitted):
        return None
    called = vars(type(f)).get("__call__")
    return types.MethodType(called, f) if isinstance(called, types.FunctionType) else None


def make_jitted(
    f: Callable[..., Any], static: tuple[str, ...], mode: Any, donate: tuple[str, ...], shapes: Shapes
) -> Jitted[..., Any]:
    """The object of a function, whose class has the function's parameters."""
    signature = _signature_of(f, (*static, *donate))
    name = getattr(f, "__name__", type(f).__name__)
    # NumPy's functions are not given what stands for "no argument" in their signatures.
    is_plain = signature is not None and isinstance(f, types.FunctionType)
    options = Jitted.find, name, shapes == "symbolic"
    entry = entry_for(cast(inspect.Signature, signature), *options) if is_plain else None
    if entry is None:
        return Jitted(f, static, mode, donate, shapes, signature)
    call, use, forget = entry
    kind = type("Jitted", (Jitted,), {"__call__": call, "__doc__": Jitted.__doc__, "__module__": __name__})
    return cast(Jitted[..., Any], kind(f, static, mode, donate, shapes, signature, use, forget))


_Guards: TypeAlias = list[tuple[Guard, Specialization]]


class _Kept:
    """The programs of a function, all of which were compiled with the same rules and optimizers.

    Attributes
    ----------
    programs
        By structures of arguments and values of numbers that are asked for.
    direct
        Those of calls in which no number's value is asked for: looking them up takes one hash.
    guards
        Some of those, with code that knows their structures.
    """

    __slots__ = ("direct", "guards", "programs")

    def __init__(self) -> None:
        self.programs: dict[Any, Specialization] = {}
        self.direct: dict[Structure, Specialization] = {}
        self.guards: _Guards = []


class Jitted(Generic[P, R]):
    """A function with compiled programs; see :func:`jit`.

    Attributes
    ----------
    programs
        Structure of arguments -> the Executable that runs for them, None where nothing is left to compute.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        static: tuple[str, ...],
        mode: Any,
        donate: tuple[str, ...],
        shapes: Shapes,
        signature: inspect.Signature | None,
        use: Use | None = None,
        forget: Callable[[], None] | None = None,
    ) -> None:
        functools.update_wrapper(self, f, updated=())
        self._function = f
        self._options = static, mode, donate, shapes
        name = getattr(f, "__qualname__", None) or type(f).__name__
        self._settings = Settings(mode, shapes == "symbolic", name.replace("<locals>.", ""))
        self._signature, self._use, self._forget = signature, use, forget
        parameters = [] if signature is None else list(signature.parameters.values())
        self._names = [one.name for one in parameters if one.kind is not one.VAR_POSITIONAL]
        self._places = len(parameters) if all(one.kind in NAMED for one in parameters) else -1
        self._static, self._donate = frozenset(static), frozenset(donate)
        self._lock = threading.RLock()
        self.clear()
        tell_of_changes(self)

    def clear(self) -> None:
        """Forget all programs."""
        self._known: dict[Structure, frozenset[int]] = {}
        self._conditions: dict[Structure, tuple[NumberCondition, ...]] = {}
        self._last: Specialization | None = None
        self.forget_programs()

    def forget_programs(self) -> None:
        """Compile anew from now on, as after a change of rules or optimizers."""
        self._kept = _Kept()
        if self._forget is not None:
            self._forget()

    # ---- calls

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """The function's result for arrays; within a traced function, a part of that.

        Raises
        ------
        EsatError
            A subclass: for arguments of other kinds, and for what the function does that cannot be traced.
        """
        result: R = self.find(arguments, keywords)
        return result

    def find(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call the program for the arguments, which is made if there is none yet."""
        trace = current_trace()
        if trace is not None:
            return trace.exchange(self._function)(*arguments, **keywords)
        try:
            return self._found(arguments, keywords)
        except Exception as error:
            raise shown(error, self._settings.name)  # noqa: B904 - the same error

    def _found(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if not keywords:
            for guard, program in self._kept.guards:
                found = guard(arguments)
                if found is not None:
                    return program(found)
        structure, leaves, places = self._structure(arguments, keywords)
        if any(type(leaf) is not np.ndarray and holds_traced(leaf) for leaf in leaves):
            return on_variables(self._function, structure, leaves, self._settings)
        program = self._program_for(structure, leaves, places)
        given = (*arguments, *keywords.values())
        plain = self._use is not None and program.direct and self._kept.direct.get(structure) is program
        if plain and all_enter(structure, given, self._settings):
            self._use(program.direct, *given)  # type: ignore[misc]
            if self._forget is not None and self._kept.direct.get(structure) is not program:
                self._forget()  # rules have changed meanwhile
        return program(leaves)

    def _structure(
        self, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[Structure, list[Any], dict[str, range]]:
        """The arguments of a call as structure and leaves, and which leaves those of a name have."""
        is_bound = not keywords and (len(arguments) == self._places or not (self._static or self._donate))
        if self._signature is not None and not is_bound:
            bound = self._signature.bind(*arguments, **keywords)
            arguments, keywords = bound.args, bound.kwargs
        names = self._names
        leaves: list[Any] = []
        places: dict[str, range] = {}
        parts: list[Structure] = []
        for place, value in enumerate(arguments):
            name = names[place] if place < len(names) else f"argument {place}"
            parts.append(self._part(name, value, leaves, places))
        named = tuple(self._part(name, keywords[name], leaves, places) for name in keywords)
        structure = ("tuple", tuple, (("tuple", tuple, tuple(parts)), ("dict", dict, tuple(keywords), named)))
        return structure, leaves, places

    def _part(self, name: str, value: Any, leaves: list[Any], places: dict[str, range]) -> Structure:
        if name in self._static:
            try:
                return static(value)
            except TypeError:
                reason = f"a {type(value).__name__} is not hashable, as values of static_argnames are"
                raise InputError(f"{self._settings.name}: {name}: {reason}; {_remedy(value)}") from None
        begin = len(leaves)
        part = flatten(value, leaves, (self._settings.name, ": {}", name))
        places[name] = range(begin, len(leaves))
        return part

    def _call_with_twins(self, structure: Structure, places: dict[str, range], leaves: Sequence[Any]) -> Any:
        """Call the program for arguments of which one that is written to is given twice."""
        return self._program_for(structure, list(leaves), places, twins_of(leaves))(leaves)

    def _program_for(
        self,
        structure: Structure,
        leaves: list[Any],
        places: dict[str, range],
        twins: tuple[tuple[int, int], ...] = (),
    ) -> Specialization:
        kept = self._kept
        program = None if twins else kept.direct.get(structure)
        if program is not None:
            return program
        program = kept.programs.get(self._key(structure, leaves, twins))
        if program is not None:
            return program
        with self._lock:
            donated = [place for name in self._donate for place in places.get(name, ())]
            for _ in range(MOST_RETRACES):
                known = self._known.get(structure, frozenset())
                program = kept.programs.get(self._key(structure, leaves, twins))
                if program is not None:
                    return program
                try:
                    given = structure, leaves, known, self._settings, places, twins
                    traced = trace_call(self._function, *given)
                except ValueAsked as asked:
                    warn_of_numbers(asked, structure, self._settings)
                    self._known[structure] = known | asked.leaves
                    continue
                except SizesAsked as asked:
                    self._settings = replace(self._settings, least=asked.least)
                    continue
                before = self._conditions.get(structure, ())
                new = tuple(one for one in traced.conditions if one not in before)
                self._conditions[structure] = (*before, *new)
                program = compile_traced(traced, self._settings, donated, self._place())
                kept.programs[self._key(structure, leaves, twins)] = program
                self._last = program
                if twins:
                    return program
                program.for_twins = functools.partial(self._call_with_twins, structure, places)
                if not known and not self._conditions[structure]:
                    kept.direct[structure] = program
                conditions = [(one, one.outcome(leaves)) for one in traced.conditions]
                self._add_guard(kept.guards, structure, known_of(leaves, known), conditions, program)
                return program
        raise CallError(f"{self._settings.name}: it asks for the values of too many numbers")

    def _key(self, structure: Structure, leaves: list[Any], twins: tuple[tuple[int, int], ...]) -> Any:
        """What programs are found by: the structure, with sizes left open or not, values of known numbers,
        memory orders of known arrays, and how conditions of numbers are."""
        known = self._known.get(structure, frozenset())
        values = tuple(
            (place, one if is_array(leaves[place]) else Exact(one))
            for place, one in known_of(leaves, known).items()
        )
        outcomes = tuple(one.outcome(leaves) for one in self._conditions.get(structure, ()))
        opened = _open(structure, self._settings) if self._settings.symbolic else structure
        return opened, values, outcomes, twins

    def _place(self) -> str:
        """The function's name, file and line, where it has code in Python."""
        code = getattr(inspect.unwrap(self._function), "__code__", None)
        place = "" if code is None else f" at {code.co_filename}:{code.co_firstlineno}"
        return f"{self._settings.name}{place}"

    def _add_guard(
        self,
        guards: _Guards,
        structure: Structure,
        known: dict[int, Any],
        conditions: Sequence[tuple[NumberCondition, bool | None]],
        program: Specialization,
    ) -> None:
        """Let calls of this structure be known by code that is written for it."""
        if len(guards) == MOST_GUARDS:
            return
        is_entered = program.direct and not (known or conditions) and are_leaves(structure)
        if self._use is None or not is_entered:
            guard = guard_for(structure, known, conditions)
            if guard is not None:
                guards.append((guard, program))

    # ---- what is known of it

    @property
    def programs(self) -> dict[Any, Any]:
        """Structure of arguments -> the Executable that runs for them."""
        return {key: program.executable for key, program in self._kept.programs.items()}

    @property
    def options(self) -> dict[str, Any]:
        """The options it was made with, as :func:`jit` takes them."""
        return dict(zip(("static_argnames", "mode", "donate", "shapes"), self._options, strict=True))

    @property
    def report(self) -> Any:
        """What the optimizer did for the program that was compiled last."""
        return self.latest.report

    def source(self) -> str:
        """The source of the program that was compiled last."""
        return str(self.latest.source())

    @readable
    def explain(self, limit: int = 3, share: float = 0.01) -> Any:
        """Why the program that was compiled last is what it is, as by ``Executable.explain``; and which of
        its loops became one op, or why they were unrolled."""
        return replace(self.latest.explain(limit, share), loops=self._last.loops)  # type: ignore[union-attr]

    @property
    def profile(self) -> Any:
        """Times of the program that was compiled last; of its calls after ``measure()``."""
        return self.latest.profile

    def measure(self, on: bool = True) -> None:
        """Switch measuring of calls and steps on or off, for the program that was compiled last."""
        self.latest.measure(on)

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write a page about the program that was compiled last; see :func:`esat.save_html`."""
        self.latest.save_html(path)

    @property
    def latest(self) -> Any:
        """The Executable that was compiled last.

        Raises
        ------
        OptimizerError
            Before the first call.
        """
        if self._last is None or self._last.executable is None:
            raise OptimizerError(f"{self._settings.name} has no compiled program yet; call it first")
        return self._last.executable

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        """Pickled by name, where its name leads to it, as functions are; or as the function and its
        options."""
        module, name = getattr(self, "__module__", None), getattr(self, "__qualname__", None)
        found: Any = inspect.sys.modules.get(module)  # type: ignore[attr-defined]
        for part in str(name).split("."):
            found = getattr(found, part, None)
        if found is self:
            return name
        return make_jitted, (self._function, *self._options)

    def __repr__(self) -> str:
        return f"<jitted {self._settings.name}, {len(self._kept.programs)} programs>"


def _remedy(value: Any) -> str:
    """What to write in place of a static value that may change."""
    if isinstance(value, (np.ndarray, dict)):
        return "leave it out of static_argnames: arrays, and numbers in dicts, are arguments as they are"
    if isinstance(value, (list, set)):
        return f"pass a {'tuple' if isinstance(value, list) else 'frozenset'}"
    return "give its class __hash__ and __eq__, or pass what the function needs of it"


def _open(structure: Structure, settings: Settings) -> Structure:
    if structure[0] == "array":
        return ("array", structure[1], tuple(map(settings.size_kept, structure[2])))
    if structure[0] in ("scalar", "number", "traced", "static"):
        return structure
    return (*structure[:-1], tuple(_open(part, settings) for part in structure[-1]))


def _signature_of(f: Callable[..., Any], names: tuple[str, ...]) -> inspect.Signature | None:
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        signature = None
    takes_any = signature is not None and any(
        one.kind is one.VAR_KEYWORD for one in signature.parameters.values()
    )
    for name in names:
        if signature is None or (name not in signature.parameters and not takes_any):
            known = ", ".join(() if signature is None else signature.parameters)
            raise CallError(f"jit: the function has no argument {name!r}; it has ({known})")
    return signature


__all__ = ["Jitted", "jit"]
