"""The function that a call of a jitted function enters: one with its parameters, written for it.

Looking up which program runs takes a few hundred nanoseconds if anything is done in general: arguments
packed and unpacked, keys made of shapes. So the text names the parameters, which Python then binds, and
compares their kinds, dtypes of arrays and types of numbers, with those of the program that runs most; that
program looks at the shapes itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.base.quoting import remark
from esat.errors import InputError
from esat.frontend.tracing.trees import Structure
from esat.functions.traced_programs import Settings
from esat.graph.calls.callers import GENERATED
from esat.runtime import Executable
from esat.runtime.executable import located_error

Slow = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
Use = Callable[..., None]

_SURPLUS = """
        if more:
            surplus(more)"""
_SIZES = {True: " and 1 not in {0}.shape and 0 not in {0}.shape", False: ""}
NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

_TEXT = """\
def make(ndarray, InputError, slow, defaults, failed, surplus):
    first = None
    {kinds} = {nones}
    programs = {{}}

    def __call__(self{parameters}):{surplus}
        if {same_kinds}:
            try:
                return first.entry({names})
            except InputError:
                pass
            except Exception as error:
                failed(first, error)
        found = programs.get(({key}))
        if found is not None:
            try:
                return found.entry({names})
            except InputError:
                pass
            except Exception as error:
                failed(found, error)
        return slow(self, ({positional}), {{{keywords}}})

    def use(program{parameters_plain}):
        nonlocal first, {kinds}
        if not programs:
            first, {kinds} = program, {their_kinds}
        elif {same_kinds}:
            {kinds} = {nones}
        programs[{key}] = program

    def clear():
        nonlocal first, {kinds}
        programs.clear()
        first, {kinds} = None, {nones}

    return __call__, use, clear
"""
_KIND = "({0}.dtype if type({0}) is ndarray{1} else type({0}))"
_KEY = "({0}.dtype, {0}.shape) if type({0}) is ndarray{1} else type({0})"


def entry_for(
    signature: inspect.Signature, slow: Slow, name: str, symbolic: bool = False
) -> tuple[Callable[..., Any], Use, Callable[[], None]] | None:
    """A method ``__call__`` for functions of a signature.

    Parameters
    ----------
    signature
        Of the function.
    slow
        Called with the object, arguments and keywords where no program is known for them.
    name
        Of the function, for tracebacks.
    symbolic
        Whether a program is for arrays of all shapes, but for sizes of 0 and 1: these are not looked up.

    Returns
    -------
    The method; a function that is told of a program for arrays and numbers, and of these; and one to forget
    all of them.
    None for functions of any number of arguments, or of none.
    """
    known = list(signature.parameters.values())
    sorts = {one.kind for one in known}
    if not known or inspect.Parameter.VAR_POSITIONAL in sorts or inspect.Parameter.VAR_KEYWORD in sorts:
        return None
    if any(one.name in _TAKEN or one.name.startswith(_NUMBERED) for one in known):
        return None
    names = [one.name for one in known]
    kinds = [f"{_NUMBERED}{place}" for place in range(len(names))]
    sizes = _SIZES[symbolic]
    theirs = [_KIND.format(name, sizes.format(name)) for name in names]
    text = _TEXT.format(
        kinds=", ".join(kinds),
        nones=", ".join(["None"] * len(names)),
        parameters=_parameters(known),
        surplus=_SURPLUS,
        parameters_plain="".join(f", {name}" for name in names),
        same_kinds=" and ".join(f"{one} is {kind}" for one, kind in zip(theirs, kinds, strict=True)),
        their_kinds=", ".join(theirs),
        names=", ".join(names),
        key=", ".join(_KEY.format(name, sizes.format(name)) for name in names),
        positional="".join(f"{one.name}, " for one in known if one.kind in NAMED),
        keywords=", ".join(f"{one.name!r}: {one.name}" for one in known if one.kind not in NAMED),
    )
    namespace: dict[str, Any] = {}
    exec(compile(text, f"{GENERATED}call of {remark(name)}>", "exec"), namespace)
    defaults = [one.default for one in known]
    made: tuple[Callable[..., Any], Use, Callable[[], None]] = namespace["make"](
        np.ndarray, InputError, slow, defaults, _failed, _surplus(name, known)
    )
    made[0].__qualname__ = name
    return made


_NUMBERED = "kind_"
_TAKEN = frozenset(
    {"self", "more", "surplus", "ndarray", "InputError", "slow", "defaults", "failed", "first", "programs",
     "found", "error", "program", "make", "use", "clear", "__call__", "type", "Exception"}
)  # fmt: skip


def _parameters(known: list[inspect.Parameter]) -> str:
    """Parameters as they stand in a definition, behind ``self``."""
    text = ""
    before: inspect.Parameter | None = None
    for place, one in enumerate(known):
        if before is not None and before.kind is one.POSITIONAL_ONLY and one.kind is not one.POSITIONAL_ONLY:
            text += ", /"
        if one.kind is one.KEYWORD_ONLY and (before is None or before.kind is not one.KEYWORD_ONLY):
            text += ", *more"
        text += f", {one.name}" + ("" if one.default is one.empty else f"=defaults[{place}]")
        before = one
    if before is not None and before.kind is before.POSITIONAL_ONLY:
        text += ", /"
    return text if known[-1].kind is inspect.Parameter.KEYWORD_ONLY else f"{text}, *more"


def _surplus(name: str, known: list[inspect.Parameter]) -> Callable[[tuple[Any, ...]], None]:
    """What raises Python's error of too many arguments: of a method, Python would count ``self``."""
    places = [one for one in known if one.kind in NAMED]
    least = sum(one.default is one.empty for one in places)
    count = str(len(places)) if least == len(places) else f"from {least} to {len(places)}"
    noun = "argument" if count == "1" else "arguments"

    def raise_error(more: tuple[Any, ...]) -> None:
        given = len(places) + len(more)
        raise TypeError(f"{name}() takes {count} positional {noun} but {given} were given")

    return raise_error


def _failed(program: Any, error: Exception) -> None:
    """Raise the error of a call with the user's line of the step that raised it, if a step did."""
    executable = program if isinstance(program, Executable) else program.executable
    located = located_error(executable, error)
    raise located from (None if located is error else error)


_LEAVES = frozenset({"array", "number", "scalar"})


def are_leaves(structure: Structure) -> bool:
    """Whether all arguments are arrays and numbers, which a method is written for."""
    return all(part[0] in _LEAVES for part in _parts(structure))


def all_enter(structure: Structure, given: Sequence[Any], settings: Settings) -> bool:
    """Whether arguments are numbers and arrays, with a program for such shapes: these, or all without sizes
    0 and 1."""
    parts = _parts(structure)
    return (
        are_leaves(structure)
        and len(parts) == len(given)
        and all(part[0] != "array" or _is_open(one, settings) for part, one in zip(parts, given, strict=True))
    )


def _parts(structure: Structure) -> list[Structure]:
    return [part for group in structure[2] for part in group[-1]]


def _is_open(array: Any, settings: Settings) -> bool:
    if type(array) is not np.ndarray or not settings.symbolic:
        return type(array) is np.ndarray
    return settings.least == 2 and 0 not in array.shape and 1 not in array.shape
