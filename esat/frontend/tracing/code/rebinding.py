"""A user's code as it is traced: with NumPy's modules exchanged for esat's.

What ``numpy.zeros`` makes is an array, which cannot hold what is computed later. So a function runs with
other globals: names of NumPy's, SciPy's and ``math``'s modules, and of their functions, stand for those of
``esat.numpy`` and ``esat.scipy``, and functions of the user's that are reached through it are traced in the
same way. What it reaches otherwise, by attributes of modules and objects, in containers, as methods and
classes, is exchanged as it is called: its text is compiled anew with that question in each call
(:mod:`esat.frontend.tracing.code.sources`). Functions, classes, objects and modules themselves are not
touched.
"""

from __future__ import annotations

import builtins
import dis
import functools
import importlib
import random
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

import numpy as np

from esat.errors import DtypeError, TracingError, UserLine, describe
from esat.frontend.tracing.code.branching import BOUND, BRANCHES, ENDED_LOOP, OPERANDS, OPPOSITE, UNBOUND
from esat.frontend.tracing.code.builtin_functions import (
    CALLED_BUILTINS,
    NAMED_BUILTINS,
    counterpart_of_builtin,
    place_in_list,
)
from esat.frontend.tracing.code.distributions import frozen, method_of_distribution
from esat.frontend.tracing.code.mathematics import counterpart_of_math, math_module
from esat.frontend.tracing.code.namespace import (
    CLASSES,
    OUR_NAMES,
    counterpart,
    scalar_of_type,
    ufunc_of_lists,
)
from esat.frontend.tracing.code.outside import Outside, is_users_file
from esat.frontend.tracing.code.sources import (
    CALLED,
    FAILS,
    ITEM,
    ITERATED,
    MAY_FAIL,
    OPERATION,
    READ,
    SLICE,
    STORE,
    asking,
)
from esat.frontend.tracing.code.user_objects import UserObjects
from esat.frontend.tracing.raising import PendingErrors
from esat.frontend.tracing.rolling.branches import Operands, branches, opposite
from esat.frontend.tracing.rolling.ended_loop import EndedLoop
from esat.frontend.tracing.rolling.iterated import LOOPED, rolled
from esat.frontend.tracing.rolling.loop_state import is_librarys
from esat.frontend.tracing.rolling.program_state import UNBOUND as UNBOUND_NAME
from esat.frontend.tracing.rolling.raised import bound
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import holds_traced, holds_unknown
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.calls.callers import user_line

_CALLING = (map, filter, functools.reduce, functools.partial)
"""Functions of Python's that call what they are given first."""


class _Globals(dict[str, Any]):
    """The globals of a function, each exchanged as it is read.

    Attributes
    ----------
    library_reads
        How often functions of the trace have read what belongs to a library that may keep state.
    """

    def __init__(self, original: dict[str, Any], rebinder: Rebinder) -> None:
        super().__init__()
        self.original = original
        self.rebinder = rebinder
        dict.__setitem__(self, "__builtins__", rebinder.builtins)
        dict.__setitem__(self, "__name__", original.get("__name__"))

    @property
    def library_reads(self) -> int:
        return self.rebinder.library_reads

    def __getitem__(self, name: str) -> Any:
        value = self.original[name]
        self.rebinder.library_reads += is_librarys(value)
        return self.rebinder.exchanged(value, name)

    def __contains__(self, name: object) -> bool:
        return name in self.original

    def assigned(self) -> list[str]:
        """Names that the function has assigned, which its module does not see."""
        return sorted(name for name in self.keys() if not (name.startswith("__") and name.endswith("__")))

    def get(self, name: str, default: Any = None) -> Any:
        """As of a dict."""
        return self[name] if name in self.original else default


class Rebinder:
    """Exchanges what a function of a user's refers to and calls, each thing once.

    Parameters
    ----------
    outside
        Told of what is not exchanged.
    """

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        self.library_reads = 0
        self._functions: dict[int, tuple[Any, Any]] = {}
        self._globals: dict[int, _Globals] = {}
        self._objects = objects = UserObjects(self._own)
        self._makers: dict[type, Any] = {}
        errors = PendingErrors()
        self.builtins = {
            **vars(builtins), **NAMED_BUILTINS,
            "__import__": self._import, CALLED: self.called, READ: objects.read, STORE: objects.store,
            ITEM: objects.item,
            OPERATION: objects.operation, ITERATED: self.iterated, SLICE: slice,
            MAY_FAIL: errors.may_fail, FAILS: errors.fails,
            BRANCHES: branches, OPERANDS: Operands, OPPOSITE: opposite, UNBOUND: UNBOUND_NAME,
            ENDED_LOOP: EndedLoop, BOUND: bound,
        }  # fmt: skip

    def assigned(self) -> list[str]:
        """Global names that functions have assigned while they were traced."""
        return [name for names in self._globals.values() for name in names.assigned()]

    def line_of(self, name: str) -> UserLine | None:
        """A line at which a function assigns to a global name."""
        codes = [made.__code__ for _, made in self._functions.values() if type(made) is types.FunctionType]
        stores = (
            (code.co_filename, one.positions.lineno or 0)
            for code in codes
            for one in dis.get_instructions(code)
            if one.opname == "STORE_GLOBAL" and one.argval == name and one.positions is not None
        )
        return next(stores, None)

    def exchanged(self, value: Any, name: str = "its code") -> Any:
        """What stands for a value in a trace, by whose name it is reached; most values are themselves."""
        if isinstance(value, types.ModuleType):
            if value.__name__ in OUR_NAMES:
                return importlib.import_module(OUR_NAMES[value.__name__])
            if value.__name__ == "math":
                return math_module()
        if type(value) is functools.partial:
            return functools.partial(self.exchanged(value.func, name), *value.args, **value.keywords)
        found = counterpart(counterpart_of_builtin(counterpart_of_math(value)))
        if found is not value:
            return found
        if type(value) is types.FunctionType:
            return self.function(value, name)
        self.outside.look_at(value, name)
        return value

    # ---- what is called, and what is read

    def called(self, value: Any) -> Any:
        """What is called where a user's code calls a value."""
        kind = type(value)
        if any(value is one for one in _CALLING):
            return lambda function, *rest, **named: value(self.called(function), *rest, **named)
        if kind is types.MethodType:
            return self._method(value)
        if kind is TracedArray or kind is TracedNumber:
            reason = "an array is no function: x[place] takes an element, and a * (b + c) multiplies"
            raise DtypeError(describe("call", [], reason, user_line()))
        if isinstance(value, type):
            return self._class(value)
        if kind is np.ufunc:
            return functools.partial(ufunc_of_lists, value)
        if kind is functools._lru_cache_wrapper:
            return self._cached(value)
        if kind.__module__.partition(".")[0] == "numba":
            return self._compiled_by_numba(value)
        owner = getattr(value, "__self__", None) if kind is types.BuiltinFunctionType else None
        if owner is not None and not isinstance(owner, types.ModuleType):
            return self._builtin_method(value, owner)
        call = None if kind is types.FunctionType else self._objects.method(kind, "__call__")
        if call is not None:
            self.outside.look_at(value, "a call")
            return types.MethodType(call, value)
        return frozen(self.exchanged(value, "a call"))

    def _compiled_by_numba(self, value: Any) -> Any:
        """The function of Python's that numba compiles, for traced arguments."""
        plain = getattr(value, "py_func", None)

        def call(*arguments: Any, **named: Any) -> Any:
            if not holds_traced((arguments, named)):
                return value(*arguments, **named)
            if type(value).__name__ != "CPUDispatcher" or type(plain) is not types.FunctionType:
                reason = (
                    f"a {type(value).__name__} of numba takes arrays, which have no values while a function "
                    "is traced; call a function in Python, or one that numba.njit has decorated"
                )
                raise TracingError(describe(_name_of(value), [], reason, user_line()))
            return self.function(plain)(*arguments, **named)

        return call

    def _cached(self, value: Any) -> Any:
        """A function with a cache: its own one where that cannot come to hold traced values, else one of the
        trace. Traced arguments are no keys; with them the function is called."""
        known = self._functions.get(id(value))
        if known is None:
            inner = value.__wrapped__
            run = self.called(inner)
            is_local = getattr(inner, "__closure__", None) is not None
            looked_up = functools.lru_cache(maxsize=None)(run) if is_local else value

            def call(*arguments: Any, **named: Any) -> Any:
                traced = holds_traced((arguments, named))
                return (run if traced else looked_up)(*arguments, **named)

            known = self._functions[id(value)] = value, call
        return known[1]

    def iterated(self, value: Any, target: str | None = None, loop: EndedLoop | None = None) -> Any:
        """What a loop of a user's code goes through, and the variable of a statement that has one."""
        values = self._objects.iterated(value)
        return rolled(values, target) if loop is None else loop.iterated(values, target)

    def _builtin_method(self, method: Any, owner: Any) -> Any:
        if isinstance(owner, _DRAWING):
            self.outside.look_at(owner, "a call")
        if type(owner) is list and method.__name__ == "index":
            return functools.partial(place_in_list, owner)
        if type(owner) is np.ndarray and method.__name__ not in _WRITING_METHODS:
            return functools.partial(_method_of_array, method)
        return counterpart(method)

    def _method(self, method: types.MethodType) -> Any:
        standing = method_of_distribution(counterpart(method))
        if standing is not method:
            return standing
        self.outside.look_at(method.__self__, "a call")
        if not _is_users_own(method.__func__):
            return method
        return types.MethodType(self.function(method.__func__), method.__self__)

    def _class(self, kind: type) -> Any:
        """What makes an instance of a class: by exchanged functions, if it has such."""
        standing = CALLED_BUILTINS.get(kind) or LOOPED.get(kind) or CLASSES.get(kind)
        if standing is not None:
            return standing
        made = self._makers.get(kind)
        if made is None:
            made = self._makers[kind] = self._maker(kind)
        return made

    def _maker(self, kind: type) -> Any:
        if issubclass(kind, np.generic):
            return functools.partial(scalar_of_type, kind)
        new, init = kind.__new__, kind.__init__
        if type(kind).__call__ is not type.__call__ or not (_is_users_own(new) or _is_users_own(init)):
            self.outside.look_at(kind, "a call")
            return self.outside.noting(kind) if issubclass(kind, _DRAWING) else kind

        def make(*arguments: Any, **keywords: Any) -> Any:
            given: Any = (arguments, keywords) if new is not object.__new__ else ((), {})
            made = self.called(new)(kind, *given[0], **given[1])
            if isinstance(made, kind):
                with self.bound_methods(made, "__post_init__"):  # of dataclasses, whose text is not there
                    self.called(init)(made, *arguments, **keywords)
            return made

        return make

    def _own(self, function: Any) -> Any:
        """What is called in place of a function of the user's; None of all else."""
        return self.function(function) if _is_users_own(function) else None

    # ---- functions

    def function(self, function: types.FunctionType, name: str = "its code") -> Any:
        """A function of the user's with exchanged globals, or another one as it is."""
        known = self._functions.get(id(function))
        if known is not None:
            return known[1]
        if not is_users(function):
            self.outside.look_at(function, name)
            return function
        shared: Any = function.__globals__
        if isinstance(shared, _Globals) and shared.rebinder is self:  # made by an exchanged function
            return function
        shared = self._globals.setdefault(id(shared), _Globals(shared, self))
        cells, later = self._cells(function)
        code = asking(function.__code__) or function.__code__
        cells = _in_order(code, function.__code__, cells)
        made = types.FunctionType(code, shared, function.__name__, function.__defaults__, cells)
        self._functions[id(function)] = (function, made)  # before its cells, which may hold itself
        for cell, held, content in later:
            cell.cell_contents = self.exchanged(content, held)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.outside.look_at(default, f"a default of {function.__name__}")
        made.__kwdefaults__ = function.__kwdefaults__
        made.__qualname__ = function.__qualname__
        made.__dict__.update(function.__dict__)
        return made

    def _cells(
        self, function: types.FunctionType
    ) -> tuple[tuple[types.CellType, ...] | None, list[tuple[types.CellType, str, Any]]]:
        """The cells of a function, new ones for functions and modules, with their names and what these hold.

        Others are shared with the function, since they may change.
        """
        if function.__closure__ is None:
            return None, []
        cells: list[types.CellType] = []
        later: list[tuple[types.CellType, str, Any]] = []
        for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
            content = _content(cell)
            if not isinstance(content, _HELD):
                self.outside.look_at(content, name)
                cells.append(cell)
                continue
            cells.append(types.CellType())
            later.append((cells[-1], name, content))
        return tuple(cells), later

    def _import(self, name: str, *rest: Any, **named: Any) -> Any:
        """``import`` within the function."""
        found = builtins.__import__(name, *rest, **named)
        return self.exchanged(found) if isinstance(found, types.ModuleType) else found

    @contextmanager
    def bound_methods(self, instance: Any, *names: str) -> Iterator[None]:
        """Let an object have exchanged methods of its own, for code that cannot be asked what it calls.

        Parameters
        ----------
        instance
            An object that nobody else has.
        names
            Of methods; by default all methods of the user's whose text is not there.
        """
        own: dict[str, Any] = getattr(instance, "__dict__", {})
        found = self._methods_of(instance, names)
        own.update(found)
        yield
        for name, method in found.items():
            if own.get(name) is method:
                del own[name]

    def _methods_of(self, instance: Any, names: tuple[str, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for kind in reversed(type(instance).__mro__):
            for name, value in vars(kind).items():
                wanted = name in names if names else not name.startswith("__")
                if wanted and _is_users_own(value) and (names or asking(value.__code__) is None):
                    found[name] = types.MethodType(self.function(value), instance)
                else:
                    found.pop(name, None)
        return found


_DRAWING = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
_HELD = (types.ModuleType, functools.partial, type(np.zeros), type(np.sum), types.FunctionType,
         types.BuiltinFunctionType)  # fmt: skip


def _in_order(code: types.CodeType, other: types.CodeType, cells: Any) -> Any:
    """Cells of another code's names in the order of a code's."""
    if cells is None or code is other:
        return cells
    by_name = dict(zip(other.co_freevars, cells, strict=True))
    return tuple(by_name[name] for name in code.co_freevars)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty still
        return None


def is_users(function: types.FunctionType) -> bool:
    """Whether a function is neither esat's nor of Python or an installed library."""
    return is_users_file(function.__code__.co_filename)


_WRITING_METHODS = frozenset(
    {"fill", "itemset", "partition", "put", "resize", "setfield", "setflags", "sort"}
)


def _method_of_array(method: Any, *arguments: Any, **named: Any) -> Any:
    """A method of an array of NumPy's: that of a traced one, where it is given something traced."""
    if holds_unknown((arguments, named)):
        return getattr(TracedArray(method.__self__), method.__name__)(*arguments, **named)
    return method(*arguments, **named)


def _name_of(value: Any) -> str:
    return str(getattr(value, "__name__", type(value).__name__))


def _is_users_own(value: Any) -> TypeGuard[types.FunctionType]:
    """Whether a value is a function of the user's in Python."""
    return type(value) is types.FunctionType and is_users(value)
