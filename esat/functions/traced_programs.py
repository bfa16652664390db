"""A function traced for arguments of one structure, and the program that comes of it."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.compilation.recorded.entry_point import compile_called
from esat.errors import EsatWarning, GraphError, InputError, ParameterError
from esat.frontend.graph import Graph
from esat.frontend.tracing.trace import ValueAsked
from esat.frontend.tracing.trees import Structure, unflatten
from esat.frontend.tracing.values.conditions import NumberCondition
from esat.functions.guards import text_of
from esat.functions.paths import RunTimeCheck
from esat.functions.twins import is_same, share_elements
from esat.graph.algorithms.traversal import inputs_of
from esat.graph.calls.callers import GENERATED
from esat.graph.variables import Variable
from esat.runtime import Executable

_SCALARS = {int: "int64", float: "float64", complex: "complex128"}


@record(frozen=True)
class Settings:
    """How functions are traced and compiled.

    Attributes
    ----------
    mode
        Of compilation.
    symbolic
        Whether sizes are left open, but for those that are 0 and 1.
    name
        Of the function, for messages.
    least
        Sizes below this are not left open either; more than 2 where the function has asked for it.
    """

    mode: Any
    symbolic: bool
    name: str
    least: int = 2

    def size_kept(self, size: int) -> int | None:
        """The size of an axis if programs are for arrays of this size alone."""
        return None if self.symbolic and size >= self.least else size


_CALL = "program.entry(*arguments)"
_UNWRAPPING = {"array": "", "scalar": "[()]", "number": ".item()"}
"""Kind of a result -> what makes one of an output."""


@record(frozen=True)
class Result:
    """A leaf of what a function returns.

    Attributes
    ----------
    kind
        ``array``, ``scalar`` or ``number``, of the output at ``place``; ``argument``, the leaf at ``place``
        of the arguments itself; ``known``, a value.
    place
        Of an output, or of a leaf of the arguments.
    value
        Of what is known.
    """

    kind: str
    place: int = 0
    value: Any = None

    @property
    def text(self) -> str:
        """The expression for the value in a call, of names for outputs, leaves and results."""
        if self.kind == "argument":
            return f"leaves[{self.place}]"
        return f"output_{self.place}{_UNWRAPPING[self.kind]}"


@record(frozen=True, eq=False)
class TracedFunction:
    """What a function computes for arguments of one structure.

    Attributes
    ----------
    name
        Of the function, for messages.
    leaves
        How many leaves the arguments have.
    inputs
        Of the graph: one for each leaf that is not known.
    outputs
        Variables that are computed.
    structure
        Of what it returns.
    results
        Its leaves.
    written
        Positions of leaves of the arguments that the function writes to, with those of their new values among
        the outputs.
    checks
        Errors of the user's that a call may raise: where there are such, the last output is whether one is.
    conditions
        Of numbers, that decided.
    loops
        What became of loops of Python's, a line each.
    """

    name: str
    leaves: int
    inputs: dict[int, Variable]
    outputs: list[Variable]
    structure: Structure
    results: tuple[Result, ...]
    written: tuple[tuple[int, int], ...]
    checks: tuple[RunTimeCheck, ...] = ()
    conditions: tuple[NumberCondition, ...] = ()
    loops: tuple[str, ...] = ()

    def argument(self, place: int) -> str:
        """How messages call a leaf of the arguments."""
        return self.inputs[place].name or f"argument {place}"

    def title(self, place: int) -> str:
        """A leaf of the arguments with the function that it is one of."""
        return f"{self.name}: {self.argument(place)}"


class Taking:
    """A program that is given some of the arguments; all others have the shapes of its trace."""

    def __init__(self, executable: Executable, takes: Sequence[int], inputs: Mapping[int, Variable]) -> None:
        self.executable = executable
        self._takes = operator.itemgetter(*takes) if len(takes) > 1 else None
        self._first = takes[0]
        self._rest = [
            (place, one.tensor_type.shape) for place, one in inputs.items() if place not in set(takes)
        ]

    def entry(self, *arguments: Any) -> Any:
        for place, shape in self._rest:
            if getattr(arguments[place], "shape", ()) != shape:
                raise InputError("an argument that is not used has another shape")
        if self._takes is None:
            return self.executable.entry(arguments[self._first])
        return self.executable.entry(*self._takes(arguments))


class Checked:
    """A program whose last result says whether one of the user's checks holds."""

    def __init__(self, program: Executable | Taking, raise_first: Callable[[Sequence[Any]], None]) -> None:
        self._program = program
        self.executable = program if isinstance(program, Executable) else program.executable
        self._raise_first = raise_first

    def entry(self, *arguments: Any) -> Any:
        try:
            results = self._program.entry(*arguments)
        except InputError:  # these arrays are not its own
            raise
        except Exception:
            self._raise_first(arguments)
            raise
        if results[-1]:
            self._raise_first(arguments)
        return results


class Unwrapped:
    """A program whose results are put together to what a function returns; ``text`` does so, in which
    ``program`` is called with ``arguments``."""

    def __init__(self, program: Executable | Taking | Checked, text: str) -> None:
        self.executable = program if isinstance(program, Executable) else program.executable
        self.entry: Callable[..., Any] = eval(f"lambda program: lambda *arguments: {text}")(program)


class Specialization:
    """A compiled function for arguments of one structure.

    Attributes
    ----------
    executable
        What runs; None where nothing depends on the arguments.
    loops
        What became of loops of Python's, a line each.
    for_twins
        What runs instead where an array that is written to is given twice.
    direct
        What is entered with all leaves in order and returns what the function does, where that is the outputs
        of the program in order; else None.
    """

    def __init__(self, traced: TracedFunction, executable: Executable | None, takes: tuple[int, ...]) -> None:
        self.executable = executable
        self.loops = traced.loops
        self.for_twins: Callable[[Sequence[Any]], Any] | None = None
        self._traced = traced
        self._takes = takes
        self._run = self._written_code()
        self.direct: Executable | Taking | Checked | Unwrapped | None = None
        every = tuple(range(traced.leaves))
        text = None if traced.written or executable is None else _returned(traced)
        if text and executable and (takes == every or (takes and _has_known_sizes(traced, every))):
            taken = executable if takes == every else Taking(executable, takes, traced.inputs)
            entered = Checked(taken, self._raise_first) if traced.checks else taken
            self.direct = entered if text == _CALL else Unwrapped(entered, text)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Run it, and write to arguments what the function writes to them."""
        if self.executable is not None and self.direct is self.executable:
            return self.executable(*leaves)
        if (
            self._traced.written
            and _writes_to_twins(self._traced, leaves, self._takes)
            and self.for_twins is not None
        ):
            return self.for_twins(leaves)
        return self._run(leaves)

    def _written_code(self) -> Callable[[Sequence[Any]], Any]:
        """What runs it, written for the leaves that it takes and for what the function returns."""
        traced, names = self._traced, dict[str, Any](execute=self.executable, put=_put)
        lines = []
        if self.executable is not None:
            given = ", ".join(f"leaves[{place}]" for place in self._takes)
            outputs = [f"output_{place}" for place in range(len(traced.outputs))]
            names["raise_first"] = self._raise_first
            # An error of a step may be one of what the user's code does not come to.
            lines += [
                "try:",
                f"    {', '.join(outputs)} = execute({given})",
                "except Exception:",
                "    raise_first(leaves)",
                "    raise",
            ]
            if traced.checks:
                lines += [f"if {outputs[-1]}: raise_first(leaves)"]
        lines += [f"put(leaves[{place}], output_{output})" for place, output in traced.written]
        texts = []
        for number, result in enumerate(traced.results):
            is_array = isinstance(result.value, np.ndarray)
            names[f"known_{number}"] = result.value
            known = f"known_{number}" + ".copy()" * is_array
            texts.append(known if result.kind == "known" else result.text)
        built = text_of(traced.structure, iter(texts))
        if built is None:
            names |= {"unflatten": unflatten, "structure": traced.structure}
            built = f"unflatten(structure, iter([{', '.join(texts)}]))"
        body = "".join(f"    {line}\n" for line in (*lines, f"return {built}"))
        exec(compile(f"def run(leaves):\n{body}", f"{GENERATED}results>", "exec"), names)
        run: Callable[[Sequence[Any]], Any] = names["run"]
        return run

    def _raise_first(self, leaves: Sequence[Any]) -> None:
        """Raise the first of the user's errors that a call leads to."""
        values = {
            variable: leaves[place].get()
            if hasattr(leaves[place], "__cuda_array_interface__")
            else leaves[place]
            for place, variable in self._traced.inputs.items()
        }
        for check in self._traced.checks:
            check.raise_if_so(values)


def _put(target: Any, value: Any) -> None:
    """Write to an argument; results are on the device if any argument is."""
    is_plain = isinstance(target, np.ndarray) and not isinstance(value, np.ndarray)
    target[...] = value.get() if is_plain else value


def _returned(traced: TracedFunction) -> str | None:
    """The text of what a function returns, by a call of its program; None where that is not all outputs in
    order, in nothing but containers."""
    count = len(traced.outputs) - bool(traced.checks)
    if [one.place if one.kind in _UNWRAPPING else -1 for one in traced.results] != list(range(count)):
        return None
    found = _CALL if count == 1 else "found"
    each = [found] if len(traced.outputs) == 1 else [f"{found}[{place}]" for place in range(count)]
    unwrapped = [one + _UNWRAPPING[result.kind] for one, result in zip(each, traced.results, strict=True)]
    text = text_of(traced.structure, iter(unwrapped))
    return text if text is None or count == 1 else f"(found := {_CALL}, {text})[1]"


def _has_known_sizes(traced: TracedFunction, leaves: Sequence[int]) -> bool:
    """Whether all leaves of the arguments are arrays of sizes that are part of the program."""
    inputs = traced.inputs
    return all(place in inputs and None not in inputs[place].tensor_type.shape for place in leaves)


def _writes_to_twins(traced: TracedFunction, leaves: Sequence[Any], takes: Sequence[int]) -> bool:
    """Whether an array that a call writes to is given twice.

    Raises
    ------
    InputError
        Where one shares some of its memory with another argument.
    ParameterError
        Where one is read-only.
    """
    read_or_written = {*takes, *(place for place, _ in traced.written)}
    twins = False
    for place, _ in traced.written:
        target = leaves[place]
        if not isinstance(target, np.ndarray):
            continue
        flags = target.flags
        owns = flags.owndata
        if not flags.writeable:
            raise ParameterError(
                f"{traced.title(place)} is written to, and assignment destination is read-only"
            )
        for number in read_or_written:
            other = leaves[number]
            if number == place or not isinstance(other, np.ndarray):
                continue
            if owns and other is not target and other.flags.owndata:  # each has memory of its own
                continue
            if share_elements(target, other):
                if not is_same(target, other):
                    reason = f"is written to, and shares memory with {traced.argument(number)}; pass a copy"
                    raise InputError(f"{traced.title(place)} {reason}")
                twins = True
    return twins


def leaf_structures(structure: Structure) -> Iterator[Structure]:
    """The parts of a structure that are leaves, in order."""
    if structure[0] in ("array", "scalar", "number", "traced"):
        yield structure
    elif structure[0] != "static":
        for part in structure[-1]:
            yield from leaf_structures(part)


def compile_traced(
    traced: TracedFunction, settings: Settings, donated: Sequence[int], message: str
) -> Specialization:
    """The program of a traced function, as recorded or by the compiler; ``message`` names it in profiles."""
    if not traced.outputs:
        return Specialization(traced, None, ())
    used = set(inputs_of(traced.outputs))
    free = used - set(traced.inputs.values())
    names = ", ".join(str(leaf) for leaf in free if type(leaf) is Variable)
    if names:
        raise GraphError(f"{settings.name} uses the Variable {names}, which is no argument of it")
    takes = tuple(place for place, variable in traced.inputs.items() if variable in used)
    inputs = [traced.inputs[place] for place in takes]
    # Errors of the user's are told of the arguments as they were given.
    donate = [traced.inputs[place] for place in donated if place in takes and not traced.checks]
    outputs: Any = traced.outputs[0] if len(traced.outputs) == 1 else traced.outputs
    executable = compile_called(message, Graph(inputs, outputs), settings.mode, donate=tuple(donate))
    return Specialization(traced, executable, takes)


def warn_of_numbers(asked: ValueAsked, structure: Structure, settings: Settings) -> None:
    """Warn where a function is compiled anew for each value of a float."""
    parts = list(leaf_structures(structure))
    if all(parts[place][0] == "array" or parts[place][1] is int for place in asked.leaves):
        return
    place = "" if asked.where is None else f"\n  at {asked.where[0]}:{asked.where[1]}"
    warnings.warn(
        f"{settings.name} is compiled anew for each value of a number, since its value is asked for; NumPy's "
        "functions in place of those of math, and numpy.where in place of if, do not ask; to have it so "
        f"without this warning, name the argument in static_argnames{place}",
        EsatWarning,
        stacklevel=4,
    )
