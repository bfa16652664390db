"""What a traced function reads that is another in every call: random numbers, the time, the system's entropy.

A program would repeat for ever what was read while it was traced. NumPy's functions are refused under their
names (:mod:`esat.frontend.tracing.values.creation`); but a generator may be reached by any way, and code
that is not exchanged draws by NumPy's own functions. So the states of NumPy's own generator, and of all that
can be reached from what the function refers to, are compared before and after; what Python's ``random`` and
``time`` give out is seen by a profiler. Both begin where a function refers to something else than numbers,
arrays, functions of the user's and what is exchanged, so that most traces do without; the profiler, which
makes traces three times as long, only where that is a library's, or names something that could be meant.
"""

from __future__ import annotations

import gc
import os
import pickle
import random
import sys
import threading
import time
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from esat.errors import EsatWarning, InputError, UserLine
from esat.frontend.tracing.trace import current_trace
from esat.graph.calls.callers import is_own, libraries

MOST_OBJECTS = 20_000
"""Objects that are looked at for generators: a module of a thousand functions has some thousand."""
LOOKS, SECONDS_BETWEEN_LOOKS = 50, 0.005
"""For how long to look whether other threads draw, before an error: a busy machine runs each for some
milliseconds in turn."""

_Generators = (np.random.Generator, np.random.RandomState, np.random.BitGenerator)
_ELSEWHERE = (str, bytes, int, float, complex, type(None), np.ndarray, np.generic, np.dtype)
_CALLED = (types.BuiltinFunctionType, types.FunctionType, type)
_PLAIN_MODULES = frozenset(
    {"abc", "cmath", "collections", "copy", "dataclasses", "enum", "functools", "itertools", "math",
     "operator", "sys", "types", "typing", "warnings"}
)  # fmt: skip
_CLOCKS = {
    getattr(time, name): f"time.{name}"
    for name in ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
                 "process_time", "process_time_ns", "localtime", "gmtime", "strftime", "ctime")
}  # fmt: skip
_NOW = {"now": "datetime.now", "utcnow": "datetime.utcnow", "today": "date.today"}

_NAMES = frozenset(
    {"default_rng", "RandomState", "Generator", "SeedSequence", "MT19937", "PCG64", "PCG64DXSM", "Philox",
     "SFC64", "random", "Random", "SystemRandom", "secrets", "urandom", "uuid", "uuid1", "uuid4", "datetime",
     "date", *_NOW, *(name.removeprefix("time.") for name in _CLOCKS.values())}
)  # fmt: skip
"""Names in code that may read what the profiler tells of."""

REASON = (
    "it would be drawn once, while the function is traced, and be the same in every call; draw from "
    "an esat.random.RandomStream, or pass the numbers as arguments"
)


def is_plain(value: Any) -> bool:
    """Whether nothing can be reached from a value but numbers, texts and the package itself."""
    if isinstance(value, _ELSEWHERE):
        return not isinstance(value, np.ndarray) or value.dtype.kind != "O"
    if isinstance(value, types.ModuleType):
        return value.__name__ in _PLAIN_MODULES or _is_ours(value.__name__)
    if isinstance(value, (tuple, list, set, frozenset)):
        return len(value) <= 100 and all(isinstance(one, _ELSEWHERE) for one in value)
    if isinstance(value, dict):
        return len(value) <= 100 and all(isinstance(one, _ELSEWHERE) for one in value.values())
    if isinstance(value, _CALLED):
        module = str(value.__module__)
        return module in _PLAIN_MODULES or module == "builtins" or _is_ours(module) or _is_numpys(module)
    return _is_ours(type(value).__module__)


def _is_ours(module: str) -> bool:
    return module == "esat" or module.startswith("esat.")


def _is_numpys(module: str) -> bool:
    return (module == "numpy" or module.startswith("numpy.")) and not module.startswith("numpy.random")


class Outside:
    """Watches what one trace reads from outside.

    Parameters
    ----------
    name
        Of the function that is traced.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._states: dict[int, tuple[Any, str, bytes]] = {}
        self._seen: dict[int, Any] = {}
        self._told: set[str] = set()
        self._entropy: UserLine | None = None
        self._profiler: Any = None
        self._profiles = False
        self._seeding = False

    def look_at(self, value: Any, name: str) -> None:
        """See to it that draws are noticed which are made by something that a function refers to."""
        if is_plain(value) or id(value) in self._seen:
            return
        if isinstance(value, (types.ModuleType, *_CALLED)) and not _is_users_module(_module_of(value)):
            self.watch()
        self._note(np.random.mtrand._rand, "numpy.random")
        for found in self._generators_in(value):
            self._note(found, name)

    def noting(self, factory: Callable[..., Any]) -> Callable[..., Any]:
        """A function that makes generators, whose draws repeat as they do in every call: they have seeds."""

        def make(*arguments: Any, **keywords: Any) -> Any:
            self._seeding = any(one is not None for one in (*arguments, *keywords.values()))
            try:
                made = factory(*arguments, **keywords)
            finally:
                self._seeding = False
            self.made(made)
            return made

        return make

    def made(self, generator: Any) -> None:
        """Tell of a generator that the function makes itself."""
        self._seen[id(generator)] = generator

    def watch(self) -> None:
        """Notice what is read from now on."""
        self._note(np.random.mtrand._rand, "numpy.random")
        if self._profiles:
            return
        self._profiles = True
        self._profiler = sys.getprofile()
        if self._profiler is None or isinstance(self._profiler, (types.FunctionType, types.MethodType)):
            sys.setprofile(self._profile)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """For the length of a trace. Generators that were drawn from are as before afterwards.

        Raises
        ------
        InputError
            For draws that a program would repeat.
        """
        try:
            yield
        finally:
            if self._profiles and sys.getprofile() == self._profile:
                sys.setprofile(self._profiler)
            drawn = [(one, name, state) for one, name, state in self._states.values() if _state(one) != state]
            is_certain = not drawn or self._is_certain(drawn)
            for one, _, state in drawn if is_certain else ():
                _set_state(one, state)
        if self._entropy is not None:
            raise self._error("a generator of random numbers without a seed", self._entropy)
        if drawn and is_certain:
            one, name, _ = drawn[0]
            raise self._error(
                f"a {type(one).__name__}, which is reached by {name}", _users_line(sys._getframe())
            )
        if drawn:
            self._tell("a random number, by this function or by another thread")

    def _error(self, drawn_from: str, where: UserLine | None) -> InputError:
        place = "" if where is None else f"\n  at {where[0]}:{where[1]}"
        return InputError(f"{self._name} draws from {drawn_from}: {REASON}{place}")

    def _is_certain(self, drawn: list[tuple[Any, str, bytes]]) -> bool:
        """Whether it was not another thread that draws all the time: none does while we wait."""
        if threading.active_count() == 1:
            return True
        before = [_state(one) for one, _, _ in drawn]
        for _ in range(LOOKS):
            time.sleep(SECONDS_BETWEEN_LOOKS)
            if before != [_state(one) for one, _, _ in drawn]:
                return False
        return True

    def _note(self, generator: Any, name: str) -> None:
        self._states.setdefault(id(generator), (generator, name, _state(generator)))

    def _generators_in(self, value: Any) -> Iterator[Any]:
        """All that can be reached, but through what belongs to libraries."""
        left = [value]
        while left and len(self._seen) < MOST_OBJECTS:
            one = left.pop()
            if id(one) in self._seen or type(one) in weakref.ProxyTypes or isinstance(one, _ELSEWHERE):
                continue
            self._seen[id(one)] = one
            if isinstance(one, _Generators):
                yield one
            elif isinstance(one, random.Random):
                self.watch()
            elif isinstance(one, types.FunctionType):
                if is_users_file(one.__code__.co_filename):
                    left += self._referred_to(one)
                elif not _is_known(str(one.__module__)):
                    self.watch()
            elif isinstance(one, (types.ModuleType, type)):
                name = one.__name__ if isinstance(one, types.ModuleType) else one.__module__
                if _is_users_module(sys.modules.get(name)):
                    left += vars(one).values()
                elif not _is_known(name):
                    self.watch()
            elif not _is_ours(type(one).__module__):
                left += gc.get_referents(one)
        if left:
            self.watch()

    def _referred_to(self, function: types.FunctionType) -> list[Any]:
        codes, names = [function.__code__], set[str]()
        while codes:
            code = codes.pop()
            names.update(code.co_names)
            codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        if not names.isdisjoint(_NAMES):
            self.watch()
        # What it refers to under such a name is told of when it is used.
        kept = [name for name in names if name in function.__globals__ and name not in _NAMES]
        found = [function.__globals__[name] for name in kept]
        return [*found, function.__defaults__, function.__kwdefaults__, *(function.__closure__ or ())]

    def _profile(self, frame: types.FrameType, event: str, argument: Any) -> None:
        if self._profiler is not None:
            self._profiler(frame, event, argument)
        if self._seeding or event != "c_call" or is_own(frame.f_code.co_filename):
            return
        if current_trace() is None:  # an exception has cut off the end of the trace
            sys.setprofile(self._profiler)
            return
        owner = getattr(argument, "__self__", None)
        if isinstance(owner, random.Random):
            self._tell("a random number of Python's", frame)
        elif argument in _CLOCKS:
            # Libraries look at the clock for themselves, to log and to show how far they are.
            if is_users_file(frame.f_code.co_filename):
                self._tell(_CLOCKS[argument], frame)
        elif isinstance(owner, type) and argument.__name__ in _NOW and owner.__module__ == "datetime":
            self._tell(_NOW[argument.__name__], frame)
        elif argument is os.urandom and frame.f_code.co_name == "getrandbits":
            # NumPy's generators take their seeds so; what else asks for random bits is not repeated either.
            if frame.f_back is not None and not _may_be_seeded(frame.f_back):
                self._entropy = self._entropy or _users_line(frame.f_back)
        elif argument is os.urandom:
            self._tell("os.urandom", frame)

    def _tell(self, what: str, frame: types.FrameType | None = None) -> None:
        """Warn, once for each kind of thing in a trace."""
        if what in self._told:
            return
        self._told.add(what)
        line = None if frame is None else _users_line(frame)
        place = "" if line is None else f"\n  at {line[0]}:{line[1]}"
        warnings.warn(
            f"{self._name} reads {what} while it is traced: all calls of the program have the one that was "
            f"read then; pass it as an argument{place}",
            EsatWarning,
            stacklevel=2,
        )


def _module_of(value: Any) -> Any:
    return value if isinstance(value, types.ModuleType) else sys.modules.get(str(value.__module__))


def _is_known(module: str) -> bool:
    """Whether what a module draws is noticed by names in code, or by states."""
    top = module.partition(".")[0]
    return top in ("numpy", "scipy", "esat") or top in sys.stdlib_module_names


def _is_users_module(module: Any) -> bool:
    if not isinstance(module, types.ModuleType) or _is_known(module.__name__):
        return False
    return is_users_file(getattr(module, "__file__", None) or "")


def is_users_file(file: str) -> bool:
    """Whether the code of a file is neither esat's nor of Python or an installed library."""
    return not is_own(file) and not file.startswith(libraries())


def _may_be_seeded(frame: types.FrameType) -> bool:
    """Whether a frame makes a ``RandomState`` of some seed now, which takes entropy first all the same."""
    arguments = frame.f_code.co_code[frame.f_lasti + 1]
    return "RandomState" in frame.f_code.co_names and arguments > 0


def _users_line(frame: types.FrameType | None) -> UserLine | None:
    while frame is not None and not is_users_file(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _state(generator: Any) -> bytes:
    if isinstance(generator, np.random.RandomState):
        return pickle.dumps(generator.get_state(legacy=False))
    bits = generator.bit_generator if isinstance(generator, np.random.Generator) else generator
    return pickle.dumps(bits.state)


def _set_state(generator: Any, state: bytes) -> None:
    found = pickle.loads(state)
    if isinstance(generator, np.random.RandomState):
        generator.set_state(found)
        return
    bits = generator.bit_generator if isinstance(generator, np.random.Generator) else generator
    bits.state = found
