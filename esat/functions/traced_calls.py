"""A function run with traced objects in place of its arguments: along one way, or all that values choose."""

from __future__ import annotations

import inspect
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.errors import EsatError, GraphError, UserLine
from esat.frontend.tracing.code.outside import Outside
from esat.frontend.tracing.code.rebinding import Rebinder
from esat.frontend.tracing.path import NotChosen, Path, TracedInFull
from esat.frontend.tracing.rolling.iterated import told_loops
from esat.frontend.tracing.texts import require_known_text
from esat.frontend.tracing.trace import Trace, tracing
from esat.frontend.tracing.trees import Structure, flatten, static_values, unflatten
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.conditions import NumberCondition
from esat.frontend.tracing.values.convert import as_symbol, call_adapted
from esat.frontend.tracing.values.layouts import KnownLayout, MemoryLayout, example_of, layout_key
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.functions.paths import Returned, merged_paths
from esat.functions.traced_programs import Result, Settings, TracedFunction, leaf_structures
from esat.graph.algorithms.traversal import inputs_of
from esat.graph.tracing import Traced as Standing
from esat.graph.tracing import adapting
from esat.graph.types import TensorType
from esat.graph.variables import Variable

_SCALARS = {int: "int64", float: "float64", complex: "complex128"}


MOST_FIRST = 2
"""First steps of a loop that are traced by themselves, where the others hand on other things."""


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


@contextmanager
def in_trace(trace: Trace) -> Iterator[None]:
    """Let functions of esat and traced objects know that a function is traced."""
    with tracing(trace), adapting(call_adapted):
        yield


@contextmanager
def ending(traces: list[Trace]) -> Iterator[None]:
    """At the end, traced objects of some traces stand for nothing any more."""
    try:
        yield
    finally:
        for trace in traces:
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

    def stood_for() -> list[Any]:
        each = zip(leaves, parts, variables, range(len(parts)), strict=True)
        stands = [standing_for(*one, known) for one in each]
        for place, first in twins:
            stands[place] = stands[first]
        return stands

    def run(path: Path) -> Returned:
        rebinder = Rebinder(Outside(settings.name))
        trace = Trace(settings.name, numbers, rebinder.called, rebinder.outside.watch, rebinder.outside.made,
                      path=path, leaves=leaves, conditions=conditions, skips=skips and not is_debug,
                      may_end=skips, arrays=frozenset(inputs.values()), least=settings.least,
                      unchosen=unchosen, first=first)  # fmt: skip
        traces.append(trace)
        with rebinder.outside.watching(), in_trace(trace):
            return _run(settings.name, function, structure, stood_for(), rebinder, tuple(argument_leaves))

    conditions: list[NumberCondition] = []
    traces: list[Trace] = []
    is_debug = bool(getattr(settings.mode, "debug", str(settings.mode).lower() == "debug"))
    skips, unchosen, first = True, dict[UserLine, str](), defaultdict[UserLine, list[str]](list)
    with ending(traces):
        while True:
            try:
                returned, checks, failed = merged_paths(settings.name, run, set(inputs.values()))
                _refuse_lost(returned, failed, traces)
                break
            except TracedInFull:
                if not skips:
                    raise
                skips = False
            except NotChosen as error:
                if error.is_first and len(first[error.line]) < MOST_FIRST:
                    first[error.line].append(error.reason)
                    continue
                if error.line in unchosen:
                    raise GraphError(f"{settings.name}: {error.reason}, at line {error.line[1]}") from None
                unchosen[error.line] = error.reason
            del conditions[:]
        traced = _results(settings.name, returned.value, inputs, returned.stands)
    outputs = traced.outputs if failed is None else [*traced.outputs, failed]
    loops = dict.fromkeys(one for trace in traces for one in told_loops(trace))
    return replace(traced, outputs=outputs, checks=checks, conditions=tuple(conditions), loops=tuple(loops))


def _run(
    name: str,
    function: Callable[..., Any],
    structure: Structure,
    stands: list[Any],
    rebinder: Rebinder,
    names: Sequence[str],
) -> Returned:
    """Call a function with what stands for the leaves of its arguments, which have these names."""
    instances: list[Any] = []
    arguments, keywords = unflatten(structure, iter(stands), instances.append)
    before = [_leaves_of(value) for value in (*arguments, *keywords.values())]
    for value in static_values(structure):
        rebinder.outside.look_at(value, "an argument")
    with ExitStack() as bound:
        for instance in instances:
            bound.enter_context(rebinder.bound_methods(instance))
        returned = _returned(rebinder.called(function), arguments, keywords)
    for value in static_values(flatten(returned, [])):
        require_known_text(value)
    if rebinder.assigned():
        names = ", ".join(rebinder.assigned())
        line = rebinder.line_of(rebinder.assigned()[0])
        place = "" if line is None else f"\n  at {line[0]}:{line[1]}"
        raise GraphError(f"{name} assigns the global {names}, which a program cannot do; return it{place}")
    for number, (value, known) in enumerate(zip((*arguments, *keywords.values()), before, strict=True)):
        found = _leaves_of(value)
        if found[0] != known[0] or any(map(operator.is_not, found[1], known[1])):
            argument = names[number] if number < len(names) else f"argument {number + 1}"
            kind = type(value).__name__
            reason = "the caller would not see it, since a program returns new values"
            code = getattr(inspect.unwrap(function), "__code__", None)
            place = "" if code is None else f"\n  at {code.co_filename}:{code.co_firstlineno}"
            advice = "change a copy, and return it"
            raise GraphError(f"{name} changes the {kind} {argument}: {reason}; {advice}{place}")
    return Returned(returned, stands)


def _refuse_lost(returned: Returned, failed: Variable | None, traces: Sequence[Trace]) -> None:
    """Raise TracedInFull where something depends on a value that is not known after a loop."""
    lost = set[Variable]().union(*(trace.lost for trace in traces))
    if lost:
        leaves = [*_leaves_of(returned.value)[1], *returned.stands]
        held = [as_symbol(one) for one in leaves if isinstance(one, (TracedArray, TracedNumber))]
        if not lost.isdisjoint(inputs_of([*held, *([] if failed is None else [failed])])):
            raise TracedInFull


def _leaves_of(value: Any) -> tuple[Structure, list[Any]]:
    leaves: list[Any] = []
    return flatten(value, leaves), leaves


def _name(variables: Sequence[Variable | None], argument_leaves: Mapping[str, range]) -> None:
    """Give inputs the names that the user calls them by."""
    for argument, places in argument_leaves.items():
        for number, variable in enumerate(variables[places.start : places.stop]):
            if variable is not None:
                variable.name = argument if len(places) == 1 else f"{argument}[{number}]"


def _returned(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """What a function returns. Where NumPy hides our error behind one of its own, ours is raised."""
    try:
        return function(*arguments, **keywords)
    except (TypeError, ValueError) as error:
        if isinstance(error.__cause__, EsatError) and not isinstance(error, EsatError):
            raise error.__cause__.with_traceback(error.__traceback__) from None
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
    trace = Trace(settings.name, {}, rebinder.called, rebinder.outside.watch, rebinder.outside.made)
    with rebinder.outside.watching(), in_trace(trace), ending([trace]):
        stands = [
            TracedArray(leaf, is_scalar=getattr(leaf.type, "ndim", None) == 0)
            if isinstance(leaf, Variable)
            else leaf
            for leaf in leaves
        ]
        arguments, keywords = unflatten(structure, iter(stands))
        returned = _returned(rebinder.called(function), arguments, keywords)
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
