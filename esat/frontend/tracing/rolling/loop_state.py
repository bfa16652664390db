"""What code that runs in a loop can see of the state of Python, to tell whether an iteration changes it.

An iteration does what its state and its number say. Where no state changes from one to the next but traced
values, all further ones do what one of them does for a number that nobody has asked for.

Code reaches attributes by their names, so that those count which are named in code that is reached itself:
a method that plots does not hide what the loops of the others do. What belongs to a library is not looked
into; it counts how often the code has referred to it.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from esat.frontend.tracing.code.branching import OWN_NAMES
from esat.frontend.tracing.code.outside import is_users_file
from esat.frontend.tracing.rolling.raised import HalfBound
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.variables import Constant, Variable

MOST_OBJECTS = 4_000
LARGEST_ARRAY = 1 << 20
"""Bytes of arrays whose contents are compared."""

_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range)
_FIXED = (np.ufunc, np.dtype, types.CodeType, types.WrapperDescriptorType,
          types.MethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
          types.ClassMethodDescriptorType, types.MethodWrapperType, type(np.sum))  # fmt: skip


_STATELESS = frozenset(
    {"_operator", "builtins", "cmath", "collections", "dataclasses", "enum", "esat", "functools", "itertools",
     "math", "numbers", "numpy", "operator", "scipy", "typing"}
)  # fmt: skip
"""Packages whose functions keep no state that a later call depends on; draws are noticed elsewhere."""
_OUTWARD = frozenset({"__import__", "compile", "eval", "exec", "globals", "input", "open", "vars"})
"""Functions of Python's that reach what is no object of the code's."""

_ANY_ATTRIBUTE = frozenset(
    {"__dict__", "__getattribute__", "asdict", "astuple", "attrgetter", "delattr", "getattr",
     "getattr_static", "getmembers", "methodcaller", "setattr", "vars"}
)  # fmt: skip
"""Names of what reaches attributes whose names do not stand in code."""

_CONTAINERS = (list, tuple, dict, set, frozenset, slice)
_CODE = (types.FunctionType, types.MethodType, functools.partial, property, staticmethod, classmethod)


class UnseenStateError(Exception):
    """Something that may keep state which cannot be seen: an iterator, an object of a library's."""


def names_in(frame: types.FrameType) -> dict[str, Any]:
    """The names of a function of the user's that stand for something."""
    return {name: value for name, value in frame.f_locals.items() if not name.startswith(OWN_NAMES)}


class LoopState:
    """The state that a frame's code reaches, at one moment.

    Parameters
    ----------
    frame
        Of the function that has the loop.
    names
        Its names, and what they stand for.
    before
        The state of the iteration before; None at first.
    whole
        Whether all attributes count, whatever their names are.

    Attributes
    ----------
    seen
        A value that is equal for equal states.
    traced
        The traced objects in it, which stay as long as this is there.
    objects
        All other objects in it that may change.

    Raises
    ------
    UnseenStateError
        Where not all of it can be seen.
    """

    def __init__(
        self, frame: types.FrameType, names: Mapping[str, Any], before: LoopState | None, whole: bool = False
    ) -> None:
        self.traced: dict[int, Any] = {}
        self._before = {} if before is None else before.traced  # whose identities are no others' so long
        self._known = {one: place for place, one in enumerate(self._before)}
        self._numbers: dict[int, int] = {}
        self.objects: list[Any] = []
        self._asked: set[str] = set()
        self._any = whole
        self._holders: list[tuple[Mapping[str, Any], set[str]]] = []
        self.seen = (
            tuple((name, self._of(value)) for name, value in sorted(names.items())),
            self._globals(frame.f_code, frame.f_globals),
            tuple(self._attributes()),
            getattr(frame.f_globals, "library_reads", 0),
        )

    @property
    def moved(self) -> set[int]:
        """The identities of traced objects that were there before under another name."""
        places = enumerate(self.traced)
        return {one for place, one in places if self._known.get(one, place) != place}

    def _globals(self, code: types.CodeType, names: Any) -> Any:
        original = getattr(names, "original", names)
        looked_up = dict.fromkeys(_names_of(code))
        self._asked.update(looked_up, _texts_of(code))  # READ(x, "name") stands for x.name in exchanged code
        self._any = self._any or not _ANY_ATTRIBUTE.isdisjoint(looked_up)
        read = [name for name in looked_up if name in original]
        if any(name in _OUTWARD and name not in original for name in looked_up):
            raise UnseenStateError("code that eval, exec or the like reach")
        values = ((name, original[name]) for name in read)
        return tuple((name, id(one) if is_librarys(one) else self._of(one)) for name, one in values)

    def _named(self, values: Mapping[str, Any]) -> Any:
        """Attributes, which are looked at where code names them."""
        self._holders.append((values, set()))
        return tuple(values)

    def _attributes(self) -> Iterator[Any]:
        """All that code names. What is looked at may be code, which names further ones."""
        is_new = True
        while is_new:
            is_new = False
            for place, (values, known) in enumerate(self._holders):
                for name in [one for one in values if one not in known]:
                    if self._any or name in self._asked or name.startswith("__"):
                        is_new = True
                        known.add(name)
                        yield place, name, self._of(values[name])

    def _of(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return kind, value
        if kind is TracedArray or kind is TracedNumber:
            return self._of_traced(value)
        if isinstance(value, np.generic):
            return kind, value.tobytes()
        if kind is HalfBound:
            return kind, self._of(value.value), self._of(value.is_bound)
        if id(value) in self._numbers:
            return "again", self._numbers[id(value)]
        self._numbers[id(value)] = len(self._numbers)
        self.objects.append(value)
        if len(self._numbers) > MOST_OBJECTS:
            raise UnseenStateError(f"more than {MOST_OBJECTS} objects")
        return self._of_object(kind, value)

    def _of_traced(self, value: Any) -> Any:
        """What Python can tell of a traced object; whether it was there before, or where it was first met."""
        number = ("kept", self._known[id(value)]) if id(value) in self._known else ("new", 0)
        if id(value) in self.traced and number[0] == "new":
            number = ("new", [*self.traced].index(id(value)) + 1)
        self.traced.setdefault(id(value), value)
        held: Any = value.cached if type(value) is TracedArray else value.variable
        if held is None:
            return number, value.key is None
        if not isinstance(held, Variable):
            return number, value.is_scalar, held.dtype, held.shape, held.tobytes()
        if isinstance(held, Constant):
            return number, held.type, held.data.tobytes()
        return number, held.type, value.kind if type(value) is TracedNumber else value.is_scalar

    def _of_object(self, kind: type, value: Any) -> Any:
        if kind in _CONTAINERS:
            return kind, self._of_parts(kind, value)
        if kind in _CODE:
            return self._of_code(kind, value)
        if kind is np.ndarray:
            if value.nbytes > LARGEST_ARRAY or value.dtype.hasobject:
                raise UnseenStateError("a large array, or one of objects")
            return id(value), value.dtype.str, value.shape, value.tobytes()
        if isinstance(value, types.ModuleType) and not _is_stateless(value.__name__):
            if not is_users_file(getattr(value, "__file__", None) or ""):
                raise UnseenStateError(f"the module {value.__name__}")
            own = {name: one for name, one in vars(value).items() if not name.startswith("__")}
            return id(value), self._named(own)
        if isinstance(value, type):
            return self._of_class(value)
        if kind is types.BuiltinFunctionType:
            return self._of_builtin(value)
        if isinstance(value, Variable | types.ModuleType) or kind in _FIXED:
            return id(value)
        if all(base is object or _is_plain_class(base) for base in kind.__mro__):
            self.objects.append(vars(value))
            return id(value), [self._of(base) for base in kind.__mro__[:-1]], self._named(vars(value))
        raise UnseenStateError(f"an object of class {kind.__name__}")

    def _of_parts(self, kind: type, value: Any) -> Any:
        if kind is dict:
            return tuple((self._of(key), self._of(one)) for key, one in value.items())
        if kind is slice:
            return tuple(map(self._of, (value.start, value.stop, value.step)))
        found = tuple(map(self._of, value))
        return frozenset(found) if kind in (set, frozenset) else found

    def _of_code(self, kind: type, value: Any) -> Any:
        if kind is types.FunctionType:
            return self._of_function(value)
        names = ("__func__", "__self__", "func", "args", "keywords", "fget", "fset")
        return tuple(self._of(getattr(value, name, None)) for name in names)

    def _of_builtin(self, function: types.BuiltinFunctionType) -> Any:
        """A function in C, or a method of an object, whose state counts."""
        owner = function.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            if not _is_stateless(str(function.__module__)) or function.__name__ in _OUTWARD:
                raise UnseenStateError(f"what {function.__name__} keeps")
            return id(function)
        return function.__name__, self._of(owner)

    def _of_function(self, function: types.FunctionType) -> Any:
        if not is_users_file(function.__code__.co_filename):
            if not _is_stateless(str(function.__module__)):
                raise UnseenStateError(f"what {function.__qualname__} keeps")
            return id(function)
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(self._of(cell.cell_contents))
            except ValueError:  # empty still
                cells.append(None)
        defaults = self._of((function.__defaults__, function.__kwdefaults__, vars(function)))
        return (
            id(function.__code__),
            tuple(cells),
            defaults,
            self._globals(function.__code__, function.__globals__),
        )

    def _of_class(self, kind: type) -> Any:
        if not _is_plain_class(kind):
            if not _is_stateless(kind.__module__):
                raise UnseenStateError(f"the class {kind.__name__}")
            return id(kind)
        own = {name: one for name, one in vars(kind).items() if name not in _OF_CLASSES}
        return id(kind), self._named(own)


_OF_CLASSES = ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__")


def _is_plain_class(kind: type) -> bool:
    """Whether instances of a class have what their attributes hold, and nothing else."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    is_users = file is not None and is_users_file(file)
    return type(kind) is type and is_users and "__slots__" not in vars(kind)


def is_librarys(value: Any) -> bool:
    """Whether a value is a module, function or class of a library's that may keep state of its own."""
    if isinstance(value, types.ModuleType):
        file = getattr(value, "__file__", None)
        return not (_is_stateless(value.__name__) or (file is not None and is_users_file(file)))
    if isinstance(value, types.FunctionType):
        is_other = not is_users_file(value.__code__.co_filename)
    elif isinstance(value, type):
        file = getattr(sys.modules.get(value.__module__), "__file__", None)
        is_other = file is not None and not is_users_file(file)
    else:
        return False
    return is_other and not _is_stateless(str(value.__module__))


def _is_stateless(module: str) -> bool:
    return module.partition(".")[0] in _STATELESS


def _texts_of(code: types.CodeType) -> Iterator[str]:
    """Texts in code, and in code within it, that may be names of attributes."""
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, types.CodeType):
            yield from _texts_of(constant)


def _names_of(code: types.CodeType) -> list[str]:
    """Names that code, and code within it, may look up."""
    found = [*code.co_names]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _names_of(constant)
    return found
