"""The driver: one Python function a program, written out so that a call does only what it must.

It checks the arguments, looks up what their shapes decide, and runs one line a step. A line that
allocates, copies or checks stands there only where the program needs it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from esat.base.quoting import remark
from esat.base.records import record
from esat.errors import UserLine
from esat.graph import Variable
from esat.graph.calls.callers import GENERATED
from esat.phases.fusing.group import Group
from esat.runtime.entry.checks import InputCheck, OutCheck, aligned, copied, given_away, wrong_count
from esat.runtime.entry.signatures import Fact, SignatureTable
from esat.runtime.function_profile import StepProfile
from esat.runtime.printed.steps import StepWriter
from esat.runtime.printed.writer import Writer, is_tensor, targets_text, tuple_text
from esat.runtime.program import Program

ALIGNED = 256
"""The bit of ``ndarray.flags.num``."""

OPERANDS = 64
"""Operands of one expression: Python's compiler descends into each, and has a limit of its own."""
LONGEST_TITLE = 1000
"""Characters of a step's title: profiles and pages name all ops of all but the longest kernels."""

_numbers = itertools.count(1)


@record(frozen=True, eq=False, slots=True)
class Driver:
    """A program's driver, ready to be called with the program's inputs.

    Attributes
    ----------
    call
        The function.
    source
        Its text.
    filename
        The name tracebacks show for it.
    first_lines
        The number of each step's first line, ascending, and the step.
    """

    call: Callable[..., Any]
    source: str
    filename: str
    first_lines: tuple[tuple[int, Group], ...]

    def step_at(self, line: int) -> Group | None:
        """The step a line of the source belongs to."""
        found = None
        for first, group in self.first_lines:
            if first > line:
                break
            found = group
        return found


class StepWatch(Protocol):
    """Looks at each step of a call."""

    def begin(self, operands: Sequence[Any], /) -> None:
        """A step is about to run; it may overwrite its operands."""

    def end(self, number: int, results: Sequence[Any], /) -> None:
        """The step of this number has run."""


def make_driver(
    program: Program,
    table: SignatureTable,
    checks: Sequence[InputCheck],
    profile: Sequence[StepProfile] | None = None,
    dispatches: bool = False,
    watch: StepWatch | None = None,
) -> Driver:
    """Write and compile the driver of a program.

    Parameters
    ----------
    program
        What to run.
    table
        Its records by input shapes.
    checks
        One an input.
    profile
        One record a step, where to add up times; None for a driver that does not measure.
    dispatches
        Whether a record may name something else that runs for its shapes; see :class:`~.dispatch.Way`.
    watch
        Told of the operands and results of each step that runs.
    """
    writer = Writer(program.graph.inputs)
    _write_inputs(writer, program, checks)
    _write_shared(writer, program)
    _write_gifts(writer, program)
    _write_lookup(writer, program, table)
    if dispatches:
        _write_dispatch(writer, program)
    _write_buffers(writer, program)
    _write_steps(writer, program, profile, watch)
    _write_results(writer, program)
    head = ["def call(*arguments, out=None):"]
    indent = "    "
    if program.updated:
        head.append(f"    with {writer.bind('lock', program.lock)}:  # updates: one call at a time")
        indent *= 2
    source = "\n".join([*head, *(indent + line for line in writer.lines)]) + "\n"
    first_lines = tuple((before + len(head) + 1, group) for before, group in writer.marks)
    return _compile(source, writer.namespace, first_lines)


def _compile(source: str, namespace: dict[str, Any], first_lines: tuple[tuple[int, Group], ...]) -> Driver:
    """Run the source in a module of its own, whose lines tracebacks can show."""
    import linecache

    filename = f"{GENERATED}driver {next(_numbers)}>"
    module = ModuleType(f"esat_driver_{id(namespace):x}")
    module.__dict__.update(namespace)
    exec(compile(source, filename, "exec"), module.__dict__)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return Driver(module.__dict__["call"], source, filename, first_lines)


def _write_inputs(writer: Writer, program: Program, checks: Sequence[InputCheck]) -> None:
    """Unpack the arguments; what is not an array of the right dtype goes through its check."""
    inputs = program.graph.inputs
    names = [writer.names[variable] for variable in inputs]
    count_error = (
        f"{writer.bind('wrong_count', wrong_count)}({writer.bind('inputs', tuple(inputs))}, arguments)"
    )
    if not inputs:
        writer.line("if arguments:")
        writer.line(f"    raise {count_error}")
        return
    writer.line("try:")
    writer.line(f"    {targets_text(names)} = arguments")
    writer.line("except ValueError:")
    writer.line(f"    raise {count_error} from None")
    array = writer.bind("ndarray", np.ndarray)
    for name, variable, check in zip(names, inputs, checks, strict=True):
        admitted = f"{name} = {writer.bind(f'admit_{name}', check)}({name})"
        if is_tensor(variable):
            writer.line(f"if type({name}) is not {array} or {name}.dtype is not {writer.dtype(variable)}:")
            admitted = "    " + admitted
        writer.line(admitted)


def _write_shared(writer: Writer, program: Program) -> None:
    for variable in program.shared:
        storage = writer.bind(f"{writer.names[variable]}_storage", variable)
        value = "own_value()" if variable in program.overwritten else "look()"
        writer.line(f"{writer.names[variable]} = {storage}.{value}")


def _write_gifts(writer: Writer, program: Program) -> None:
    """Make sure that arguments that will be overwritten can be, and are no part of any other argument."""
    arrays = [variable for variable in (*program.graph.inputs, *program.shared) if is_tensor(variable)]
    for variable in program.graph.inputs:
        if variable in program.overwritten and is_tensor(variable):
            name = writer.names[variable]
            others = [writer.names[other] for other in arrays if other is not variable]
            checked = f"{writer.bind('given_away', given_away)}({', '.join([name, *others])})"
            writer.line(f"{name} = {checked}")


def _write_lookup(writer: Writer, program: Program, table: SignatureTable) -> None:
    """Find what the shapes decide."""
    read = {variable for call in program.kernels.values() for variable in call.inputs}
    # What is overwritten is contiguous and aligned already.
    flagged = [writer.names[v] for v in program.leaves if v in read and v not in program.overwritten]
    if flagged:
        for start in range(0, len(flagged), OPERANDS):
            some = " & ".join(f"{name}.flags.num" for name in flagged[start : start + OPERANDS])
            writer.line(f"flags {'&' * (start > 0)}= {some}")
        copies = [f"{writer.bind('aligned', aligned)}({name})" for name in flagged]
        writer.line(f"if not flags & {ALIGNED}:")
        writer.line(f"    {', '.join(flagged)} = {', '.join(copies)}")
    writer.line(f"key = {tuple_text([f'{writer.names[variable]}.shape' for variable in program.leaves])}")
    known = writer.bind("signature", table.records.get)
    add = writer.bind("new_signature", table.add)
    targets = [*map(writer.fact, program.record_facts), "way", "frames"]
    writer.line(f"{targets_text(targets)} = {known}(key) or {add}(key)")


def _write_dispatch(writer: Writer, program: Program) -> None:
    """Count the call where something is still to be decided, and let something else run where it was."""
    names = [writer.names[variable] for variable in program.graph.inputs]
    writer.line("run = way.run if way.wait is None else way.count()")
    writer.line("if run is not None:")
    plain, placed = ", ".join(names), ", ".join([*names, "out=out"])
    writer.line(f"    return run({plain}) if out is None else run({placed})")


def _write_buffers(writer: Writer, program: Program) -> None:
    """Find a frame of scratch buffers that no other call uses, and check the arrays given for outputs."""
    _write_out_check(writer, program)
    if program.memory.scratch:
        writer.line("try:")
        writer.line("    buffers = frames.idle.pop()")
        writer.line("except IndexError:")
        writer.line("    buffers = frames.make()")
        writer.line(f"{targets_text([writer.names[v] for v in program.memory.scratch])} = buffers")


def _write_out_check(writer: Writer, program: Program) -> None:
    """Check the arrays given for outputs before anything has happened."""
    count = len(program.graph.outputs) - len(program.updated)
    outputs = program.graph.outputs[:count]
    bases = {place: variable for variable, place in program.result_places.items()}
    known, told = [], frozenset(program.record_facts)
    for place, output in enumerate(outputs):
        fact: Fact = ("shape", bases.get(place, output))
        known.append(writer.fact(fact) if fact in told else "None")
    others = [writer.names[v] for v in (*program.graph.inputs, *program.shared) if is_tensor(v)]
    check = writer.bind("check_out", OutCheck([output.type for output in outputs]))
    writer.line("if out is not None:")
    writer.line(f"    {check}(out, {tuple_text(known)}, {tuple_text(others)})")


def _write_steps(
    writer: Writer, program: Program, profile: Sequence[StepProfile] | None, watch: StepWatch | None
) -> None:
    steps = StepWriter(program, writer)
    scratch = frozenset(program.memory.scratch)
    clock = writer.bind("now", time.perf_counter) if profile is not None else ""
    if profile is not None:
        writer.line(f"start = {clock}()")
    for number, (group, ended) in enumerate(zip(program.steps, program.releases(), strict=True)):
        writer.marks.append((len(writer.lines), group))
        writer.line(f"# {number}: {title(group)}")
        steps.write_checks_ahead(group)
        with _guarded(writer, group, scratch):
            if group.guard:
                error = writer.fact(("error", group.outputs[0]))
                writer.line(f"if {error} is not None:")
                writer.line(f"    raise {error}.with_traceback(None)")
            if watch is not None:
                watched = writer.bind("watch", watch)
                operands = [writer.operand(variable) for variable in group.inputs]
                writer.line(f"{watched}.begin({tuple_text(operands)})")
            steps.write(number, group)
            if watch is not None:
                results = [writer.operand(output) for output in group.outputs]
                writer.line(f"{watched}.end({number}, {tuple_text(results)})")
            if profile is not None:
                threads = _threads_text(writer, program, number, group)
                _write_measuring(
                    writer, group, clock, writer.bind(f"step_{number}", profile[number]), threads
                )
        if ended:
            writer.line(f"del {', '.join(writer.names[variable] for variable in ended)}")


def _threads_text(writer: Writer, program: Program, number: int, group: Group) -> str:
    """The number of threads that a step runs in."""
    call = program.kernels.get(group)
    if call is None or call.threaded is None:
        return "1"
    threaded = writer.bind(f"kernel_{number}_in_threads", call.threaded)
    return f"{threaded}.used if {writer.fact(('large', group.outputs[0]))} else 1"


def _write_measuring(writer: Writer, group: Group, clock: str, record: str, threads: str) -> None:
    moved_by = () if group.kind == "view" else (*group.inputs, *group.outputs)
    arrays = [variable for variable in moved_by if is_tensor(variable)]
    moved = tuple_text([f"{writer.operand(variable)}.nbytes" for variable in arrays])
    writer.line(f"stop = {clock}()")
    # Bound, for an array may be called like a function of Python's: results of sums are.
    writer.line(f"{record}.add(stop - start, {writer.bind('total', sum)}({moved}), {threads})")
    writer.line(f"start = {clock}()")


def _guarded(writer: Writer, group: Group, scratch: AbstractSet[Variable]) -> AbstractContextManager[None]:
    """The place of a step that runs under conditions only.

    Where it does not run, its results are None, or scratch with anything in it.
    """
    if not group.guard:
        return nullcontext()
    for output in group.outputs:
        if output not in scratch:
            writer.line(f"{writer.names[output]} = None")
    tests = [
        " and ".join(("" if one.value else "not ") + writer.operand(one.scalar) for one in path)
        for path in group.guard
    ]
    return writer.block(f"if {' or '.join(tests)}:")


def _write_results(writer: Writer, program: Program) -> None:
    """Return the outputs; what shows memory that someone else may see is copied."""
    count = len(program.graph.outputs) - len(program.updated)
    given: set[Variable] = set()
    texts = []
    for number, output in enumerate(program.graph.outputs):
        roots = program.roots(output)
        text = writer.operand(output)
        if not program.is_owned(output) or not given.isdisjoint(roots):
            text = f"{text}.copy()" if is_tensor(output) else f"{writer.bind('copied', copied)}({text})"
        if number < count or program.is_in_place(program.updated[number - count], output) == "never":
            given |= roots
        texts.append(text)
    results = texts[0] if count == 1 else tuple_text(texts[:count])
    if program.memory.scratch:
        writer.line("frames.idle.append(buffers)")
    if program.updated:
        writer.line(f"results = {results}")
        _write_updates(writer, program, texts[count:])
        results = "results"
    writer.line(f"return {results}")


def _write_updates(writer: Writer, program: Program, texts: Sequence[str]) -> None:
    """Store new values: all are there before the first one is stored."""
    count = len(program.graph.outputs) - len(program.updated)
    stored: list[tuple[str, str, str]] = []
    for variable, value, text in zip(program.updated, program.graph.outputs[count:], texts, strict=True):
        certainty = program.is_in_place(variable, value)
        if certainty == "always":
            continue
        storage = writer.bind(f"{writer.names[variable]}_storage", variable)
        condition = ""
        if certainty == "usually":
            condition = f"if {writer.operand(value)} is not {writer.names[variable]}: "
        stored.append((condition, storage, text))
    if not stored:
        return
    if all(not condition for condition, _, _ in stored):
        names = [writer.names.distinct("new") for _ in stored]
        writer.line(f"{targets_text(names)} = {tuple_text([text for _, _, text in stored])}")
        stored = [("", storage, name) for (_, storage, _), name in zip(stored, names, strict=True)]
    for condition, storage, text in stored:
        writer.line(f"{condition}{storage}.give_value({text})")


def step_name(program: Program, number: int) -> str:
    """The name under which the driver calls a step: of a kernel, a routine, or the op's own method."""
    group = program.steps[number]
    if group.kind == "kernel":
        return f"kernel_{number}"
    return f"{'routine' if group.nodes[0] in program.routines else 'perform'}_{number}"


def title(group: Group) -> str:
    """What a step computes and where the user wrote it, on one line of printable characters."""
    ops = ", ".join(str(node.op) for node in group.nodes)
    where = group.nodes[-1].where
    # Of a transfer the op says where it leads.
    side = " on the device" if group.side == "device" and group.kind != "transfer" else ""
    return f"{group.kind}{side}: {remark(ops, LONGEST_TITLE)}{_place(where)}"


def _place(where: UserLine | None) -> str:
    return "" if where is None else f"  ({remark(where[0].rpartition('/')[2])}:{where[1]})"
