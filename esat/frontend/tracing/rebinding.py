"""A user's function as it is traced: with NumPy's modules exchanged for esat's.

What ``numpy.zeros`` makes is an array, which cannot hold what is computed later. So the function runs with
other globals: names of NumPy's and SciPy's modules, and of their functions, stand for those of
``esat.numpy`` and ``esat.scipy``, and functions of the user's that are reached through it are traced in the
same way. The function itself and its module are not touched.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
import types
from typing import Any

import numpy as np

from esat.frontend.tracing.builtin_type import BuiltinType
from esat.frontend.tracing.namespace import OUR_NAMES, standing_for
from esat.frontend.tracing.outside import Outside, is_users_file

_OF_NUMPY = (type(np.zeros), np.ufunc, type(np.sum), types.FunctionType)


class _Globals(dict[str, Any]):
    """The globals of a function, each exchanged as it is read."""

    def __init__(self, original: dict[str, Any], rebinder: Rebinder) -> None:
        super().__init__()
        self.original = original
        self.rebinder = rebinder
        dict.__setitem__(self, "__builtins__", rebinder.builtins)
        dict.__setitem__(self, "__name__", original.get("__name__"))

    def __getitem__(self, name: str) -> Any:
        return self.rebinder.exchanged(self.original[name], name)

    def __contains__(self, name: object) -> bool:
        return name in self.original

    def assigned(self) -> list[str]:
        """Names that the function has assigned, which its module does not see."""
        return sorted({*self.keys()} - {"__builtins__", "__name__"})

    def get(self, name: str, default: Any = None) -> Any:
        """As of a dict."""
        return self[name] if name in self.original else default


class Rebinder:
    """Exchanges what a function of a user's refers to, each thing once.

    Parameters
    ----------
    outside
        Told of what is not exchanged.
    """

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        self._functions: dict[int, tuple[Any, Any]] = {}
        self._globals: dict[int, _Globals] = {}
        self.builtins = {**vars(builtins), "__import__": self._import, "type": BuiltinType}

    def assigned(self) -> list[str]:
        """Global names that functions have assigned while they were traced."""
        return [name for names in self._globals.values() for name in names.assigned()]

    def exchanged(self, value: Any, name: str = "its code") -> Any:
        """What stands for a value in a trace, by whose name it is reached; most values are themselves."""
        if isinstance(value, types.ModuleType) and value.__name__ in OUR_NAMES:
            return importlib.import_module(OUR_NAMES[value.__name__])
        if type(value) is types.FunctionType:
            return self.function(value, name)
        if type(value) is functools.partial:
            return functools.partial(self.exchanged(value.func, name), *value.args, **value.keywords)
        if isinstance(value, _OF_NUMPY):
            module = str(getattr(value, "__module__", "") or "numpy")
            home = next((one for one in (module, "numpy", "scipy.special") if _has(one, value)), None)
            if home is not None:
                return standing_for(home, value)
        self.outside.look_at(value, name)
        return value

    def function(self, function: types.FunctionType, name: str = "its code") -> Any:
        """A function of the user's with exchanged globals, or another one as it is."""
        known = self._functions.get(id(function))
        if known is not None:
            return known[1]
        module = str(function.__module__)
        if module in OUR_NAMES or _has(module, function):
            return standing_for(module, function)
        if not is_users(function):
            self.outside.look_at(function, name)
            return function
        shared = self._globals.setdefault(id(function.__globals__), _Globals(function.__globals__, self))
        cells, later = self._cells(function)
        made = types.FunctionType(function.__code__, shared, function.__name__, function.__defaults__, cells)
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
            if not isinstance(content, (types.ModuleType, functools.partial, *_OF_NUMPY)):
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

    def methods_of(self, instance: Any) -> dict[str, Any]:
        """The methods of an object's class that are a user's, bound to the object, with exchanged globals."""
        found: dict[str, Any] = {}
        for kind in reversed(type(instance).__mro__):
            for name, value in vars(kind).items():
                if type(value) is types.FunctionType and is_users(value) and not name.startswith("__"):
                    found[name] = types.MethodType(self.function(value), instance)
                else:
                    found.pop(name, None)
        return found


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty still
        return None


def is_users(function: types.FunctionType) -> bool:
    """Whether a function is neither esat's nor of Python or an installed library."""
    return is_users_file(function.__code__.co_filename)


def _has(module: str, value: Any) -> bool:
    """Whether a module that is exchanged has a value under its name."""
    if module not in OUR_NAMES or module not in sys.modules:
        return False
    return getattr(sys.modules[module], getattr(value, "__name__", ""), None) is value
