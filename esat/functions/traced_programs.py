"""A function traced for arguments of one structure, and the program that comes of it."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.errors import EsatError, EsatWarning, GraphError, InputError, ParameterError
from esat.frontend.graph import Graph
from esat.frontend.tracing.arrays import TracedArray
from esat.frontend.tracing.convert import call_adapted
from esat.frontend.tracing.layouts import KnownLayout, MemoryLayout, example_of, layout_key
from esat.frontend.tracing.numbers import TracedNumber
from esat.frontend.tracing.outside import Outside
from esat.frontend.tracing.rebinding import Rebinder
from esat.frontend.tracing.trace import Trace, ValueAsked, tracing
from esat.frontend.tracing.trees import Structure, flatten, static_values, unflatten
from esat.functions.guards import builder_for
from esat.functions.twins import is_same, share_elements
from esat.graph.tracing import Traced as Standing
from esat.graph.tracing import adapting
from esat.graph.traversal import inputs_of
from esat.graph.types import TensorType
from esat.graph.variables import Variable
from esat.recorded.entry_point import compile_called
from esat.records import record
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

    def of(self, outputs: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """The value in a call."""
        if self.kind == "array":
            return outputs[self.place]
        if self.kind == "scalar":
            return outputs[self.place][()]
        if self.kind == "number":
            return outputs[self.place].item()
        if self.kind == "argument":
            return leaves[self.place]
        return self.value.copy() if isinstance(self.value, np.ndarray) else self.value


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
    """

    name: str
    leaves: int
    inputs: dict[int, Variable]
    outputs: list[Variable]
    structure: Structure
    results: tuple[Result, ...]
    written: tuple[tuple[int, int], ...]

    def argument(self, place: int) -> str:
        """How messages call a leaf of the arguments."""
        return self.inputs[place].name or f"argument {place}"

    def title(self, place: int) -> str:
        """A leaf of the arguments with the function that it is one of."""
        return f"{self.name}: {self.argument(place)}"


class Specialization:
    """A compiled function for arguments of one structure.

    Attributes
    ----------
    executable
        What runs; None where nothing depends on the arguments.
    for_twins
        What runs instead where an array that is written to is given twice.
    simple
        Whether a call is one of the executable with all leaves in order, and its result that array.
    """

    def __init__(self, traced: TracedFunction, executable: Executable | None, takes: tuple[int, ...]) -> None:
        self.executable = executable
        self.for_twins: Callable[[Sequence[Any]], Any] | None = None
        self._traced = traced
        self._takes = takes
        self._build = builder_for(traced.structure)
        self._single = len(traced.outputs) == 1
        first = traced.results[0] if len(traced.results) == 1 else None
        self.simple = (
            first is not None
            and first.kind == "array"
            and traced.structure == ("traced",)
            and takes == tuple(range(traced.leaves))
            and not traced.written
            and self._single
        )

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Run it, and write to arguments what the function writes to them."""
        if self.simple and self.executable is not None:
            return self.executable(*leaves)
        traced = self._traced
        outputs: Any = ()
        if self.executable is not None:
            if (
                traced.written
                and _writes_to_twins(traced, leaves, self._takes)
                and self.for_twins is not None
            ):
                return self.for_twins(leaves)
            outputs = self.executable(*[leaves[place] for place in self._takes])
            outputs = (outputs,) if self._single else outputs
        for place, output in traced.written:
            value = outputs[output]
            # Results are on the device if any argument is.
            plain = isinstance(leaves[place], np.ndarray) and not isinstance(value, np.ndarray)
            leaves[place][...] = value.get() if plain else value
        results = [result.of(outputs, leaves) for result in traced.results]
        return unflatten(traced.structure, iter(results)) if self._build is None else self._build(results)


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
        if not target.flags.writeable:
            raise ParameterError(
                f"{traced.title(place)} is written to, and assignment destination is read-only"
            )
        for other in read_or_written:
            if (
                other != place
                and isinstance(leaves[other], np.ndarray)
                and share_elements(target, leaves[other])
            ):
                if not is_same(target, leaves[other]):
                    reason = f"is written to, and shares memory with {traced.argument(other)}; pass a copy"
                    raise InputError(f"{traced.title(place)} {reason}")
                twins = True
    return twins


def variable_for(leaf: Any, structure: Structure, settings: Settings) -> Variable | None:
    """The input that stands for a leaf of the arguments."""
    tag = structure[0]
    if tag == "array":
        _, dtype, shape = structure
        return TensorType(dtype, shape=tuple(map(settings.size_kept, shape))).make_variable()
    if tag == "scalar":
        return TensorType(structure[1], shape=()).make_variable()
    if tag == "number":
        return TensorType(_SCALARS[structure[1]], shape=()).make_variable()
    return None


def standing_for(
    leaf: Any, structure: Structure, variable: Variable | None, place: int, known: frozenset[int]
) -> Any:
    """What a traced function is given for a leaf of the arguments.

    Parameters
    ----------
    leaf, structure, variable, place
        The leaf, its structure, the input that stands for it, and its position.
    known
        Positions of numbers whose values, and of arrays whose memory order is part of the program.
    """
    if variable is None:
        return leaf
    if structure[0] == "number":
        return TracedNumber(variable, structure[1])
    return TracedArray(
        variable, is_scalar=structure[0] == "scalar", layout=_layout_of(leaf, variable, place, place in known)
    )


def _layout_of(leaf: Any, variable: Variable, place: int, known: bool) -> MemoryLayout:
    """How an argument lies in memory; as long as that is not asked for, in C order."""
    sizes = variable.tensor_type.shape
    shape: Any = None if None in sizes else sizes
    assumed = frozenset() if known else frozenset((place,))
    if known and layout_key(leaf) != "C":
        example = example_of(leaf.shape, leaf.dtype, leaf.strides, leaf.flags.writeable)
        return MemoryLayout(shape, leaf.dtype, found=KnownLayout(example, leaf.flags.c_contiguous, assumed))
    return MemoryLayout(shape, variable.dtype, assumed=assumed)


def leaf_structures(structure: Structure) -> Iterator[Structure]:
    """The parts of a structure that are leaves, in order."""
    if structure[0] in ("array", "scalar", "number", "traced"):
        yield structure
    elif structure[0] != "static":
        for part in structure[-1]:
            yield from leaf_structures(part)


@contextmanager
def in_trace(trace: Trace) -> Iterator[None]:
    """Let functions of esat and traced objects know that a function is traced."""
    with tracing(trace), adapting(call_adapted):
        try:
            yield
        finally:
            trace.has_ended = True


def trace_call(
    function: Callable[..., Any],
    structure: Structure,
    leaves: Sequence[Any],
    known: frozenset[int],
    settings: Settings,
    argument_leaves: Mapping[str, range] = MappingProxyType({}),
    twins: Sequence[tuple[int, int]] = (),
) -> TracedFunction:
    """Run a function with traced objects in place of the leaves of its arguments.

    Parameters
    ----------
    function
        Of what the structure describes: positional arguments and keywords.
    structure, leaves
        Of the arguments.
    known
        Positions of numbers whose values, and of arrays whose memory order is part of the program.
    settings
        How to trace.
    argument_leaves
        Name of an argument -> its leaves: inputs are called as the user calls them.
    twins
        Positions of arrays that are the same as others, with those of the others.

    Raises
    ------
    ValueAsked
        When the function asks for the value of another number, or does what hangs on the memory order of
        another array.
    SizesAsked
        When it takes a slice that has one element of larger arrays.
    EsatError
        When it asks for what only a call can know, or changes its arguments but for writing to arrays.
    """
    parts = list(leaf_structures(structure))
    variables = [
        None if place in known and part[0] == "number" else variable_for(leaf, part, settings)
        for place, (leaf, part) in enumerate(zip(leaves, parts, strict=True))
    ]
    _name(variables, argument_leaves)
    inputs = {place: variable for place, variable in enumerate(variables) if variable is not None}
    for place, _ in twins:
        del inputs[place]
    numbers = {variable: place for place, variable in inputs.items() if parts[place][0] == "number"}
    rebinder = Rebinder(Outside(settings.name))
    given = settings.name, numbers, rebinder.exchanged, rebinder.outside.watch
    trace = Trace(*given, arrays=frozenset(inputs.values()), least=settings.least)
    originals: list[tuple[Any, dict[str, Any]]] = []

    def made(instance: Any) -> None:
        if hasattr(instance, "__dict__"):
            originals.append((instance, rebinder.methods_of(instance)))

    with rebinder.outside.watching(), in_trace(trace):
        each = zip(leaves, parts, variables, range(len(parts)), strict=True)
        stands = [standing_for(*one, known) for one in each]
        for place, first in twins:
            stands[place] = stands[first]
        arguments, keywords = given = unflatten(structure, iter(stands), made)
        before: list[Any] = []
        whole = flatten(given, before)
        for instance, methods in originals:
            instance.__dict__.update(methods)
        for value in static_values(structure):
            rebinder.outside.look_at(value, "an argument")
        returned = _returned(rebinder.exchanged(function), arguments, keywords)
        for instance, methods in originals:
            for name, method in methods.items():
                if instance.__dict__.get(name) is method:
                    del instance.__dict__[name]
        if rebinder.assigned():
            names = ", ".join(rebinder.assigned())
            raise GraphError(
                f"{settings.name} assigns the global {names}, which a program cannot do; return it"
            )
        after: list[Any] = []
        if flatten(given, after) != whole or any(map(operator.is_not, after, before)):
            raise GraphError(f"{settings.name} {_CHANGES}")
        return _results(settings.name, returned, inputs, stands)


def _name(variables: Sequence[Variable | None], argument_leaves: Mapping[str, range]) -> None:
    """Give inputs the names that the user calls them by."""
    for argument, places in argument_leaves.items():
        for number, variable in enumerate(variables[places.start : places.stop]):
            if variable is not None:
                variable.name = argument if len(places) == 1 else f"{argument}[{number}]"


_CHANGES = (
    "changes a list, dict or object among its arguments, which a program cannot do for the caller; return "
    "the new values"
)


def _returned(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """What a function returns. Where NumPy hides our error behind one of its own, ours is raised."""
    try:
        return function(*arguments, **keywords)
    except (TypeError, ValueError) as error:
        if isinstance(error.__cause__, EsatError) and not isinstance(error, EsatError):
            raise error.__cause__ from None
        raise


def on_variables(
    function: Callable[..., Any], structure: Structure, leaves: Sequence[Any], settings: Settings
) -> Any:
    """What a function returns for Variables among its arguments: Variables, in place of arrays.

    Raises
    ------
    GraphError
        When it writes to one of them.
    """
    rebinder = Rebinder(Outside(settings.name))
    trace = Trace(settings.name, {}, rebinder.exchanged, rebinder.outside.watch)
    with rebinder.outside.watching(), in_trace(trace):
        stands = [
            TracedArray(leaf, is_scalar=getattr(leaf.type, "ndim", None) == 0)
            if isinstance(leaf, Variable)
            else leaf
            for leaf in leaves
        ]
        arguments, keywords = unflatten(structure, iter(stands))
        returned = _returned(rebinder.exchanged(function), arguments, keywords)
        if any(type(stand) is TracedArray and stand.version for stand in stands):
            raise GraphError(
                f"{settings.name} writes to an argument, and a Variable cannot be changed; return it"
            )
        results: list[Any] = []
        whole = flatten(returned, results, "the result")
        return unflatten(whole, iter([_variable_of(leaf) for leaf in results]))


def _variable_of(leaf: Any) -> Any:
    return leaf.variable if isinstance(leaf, Standing) else leaf


def _results(name: str, returned: Any, inputs: dict[int, Variable], stands: Sequence[Any]) -> TracedFunction:
    leaves: list[Any] = []
    structure = flatten(returned, leaves, "the result")
    outputs: list[Variable] = []

    def output(variable: Variable) -> int:
        outputs.append(variable)
        return len(outputs) - 1

    written: list[tuple[int, int]] = []
    for place in inputs:
        stand = stands[place]
        if type(stand) is TracedArray and stand.version > 0:
            written.append((place, output(stand.variable)))
    changed = {id(stands[place]): place for place, _ in written}
    results = []
    for leaf in leaves:
        if id(leaf) in changed:
            results.append(Result("argument", changed[id(leaf)]))
        elif type(leaf) is TracedNumber:
            results.append(Result("number", output(leaf.variable)))
        elif type(leaf) is TracedArray and isinstance(leaf.value, Variable):
            results.append(Result("scalar" if leaf.is_scalar else "array", output(leaf.variable)))
        elif isinstance(leaf, Variable):
            results.append(Result("array", output(leaf)))
        else:
            value = leaf.value if type(leaf) is TracedArray else leaf
            results.append(Result("known", value=value.copy() if isinstance(value, np.ndarray) else value))
    given = len(stands), inputs, outputs
    return TracedFunction(name, *given, _as_traced(structure), tuple(results), tuple(written))


def _as_traced(structure: Structure) -> Structure:
    """The structure of a result, in which leaves of all kinds are alike."""
    if structure[0] in ("array", "scalar", "number"):
        return ("traced",)
    if structure[0] in ("static", "traced"):
        return structure
    return (*structure[:-1], tuple(map(_as_traced, structure[-1])))


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
    donate = [traced.inputs[place] for place in donated if place in takes]
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
