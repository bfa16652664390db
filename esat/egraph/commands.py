"""Commands of egglog in the form in which it takes them soonest.

egglog finds out what a command is by trying one kind after the other, and describes each failure. A schedule
parsed from text is of the last kind, and so are its parts: that takes longer than running a rule set that has
nothing to match. The same schedule in egglog's own terms, without positions in a text, takes half as long.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from esat.egraph.bindings import native_module
from esat.rules.reader import Sexp, read_forms

REPETITIONS = 8
"""Times that ``saturate`` repeats in one command: a rule without end may double the e-graph each time."""

WITH_FUEL = "(run-with "

_RUN = re.compile(r"\((run|run-with \S+) \{(.*?)\}\)")
_STEP = re.compile(r"\(saturate \(run \{.*?\}\)\)|\(run \{.*?\}\)")
_SATURATING = "(saturate "


def quicker(command: Any) -> Any:
    """The same command, or one that does the same; one with schedulers is left as it is."""
    native = native_module()
    if not isinstance(command, native.UserDefined) or command.name != "run-schedule":
        return command
    schedule = _sequence(command.args)
    return command if schedule is None else native.RunSchedule(schedule)


def _sequence(expressions: Sequence[Any]) -> Any:
    """The schedule of several run one after the other; None where one has no form but text."""
    steps = [_schedule(expression) for expression in expressions]
    if any(step is None for step in steps):
        return None
    native = native_module()
    return steps[0] if len(steps) == 1 else native.Sequence(native.PanicSpan(), steps)


def _schedule(expression: Any) -> Any:
    native = native_module()
    if not isinstance(expression, native.Call):
        return None
    match expression.name, expression.args:
        case "run", [native.Var() as ruleset]:
            return native.Run(native.PanicSpan(), native.RunConfig(ruleset.name, None))
        case "seq", expressions:
            return _sequence(expressions)
        case "saturate", expressions:
            repeated = _sequence(expressions)
            return None if repeated is None else native.Saturate(native.PanicSpan(), repeated)
    return None


@lru_cache(maxsize=1024)
def scheduled(program: str, names: tuple[tuple[str, str], ...]) -> Any:
    """The command that runs a schedule with names of rule sets in braces, several where they run as one.

    Runs of rule sets without members are left out, and what unites but one thing is that thing: a run that
    has nothing to do takes its time. What is saturated is repeated :data:`REPETITIONS` times at most, so that
    no rule keeps the command for ever: see :func:`unfinished`.

    Parameters
    ----------
    program
        ``(run {name ...})``, ``(saturate (run {name ...}))`` and ``(seq ...)`` of such.
    names
        What stands in braces, and the rule sets that take its places; empty for one without members.
    """
    native = native_module()
    schedule = _filled(_read(program), dict(names))
    return native.RunSchedule(native.Sequence(native.PanicSpan(), []) if schedule is None else schedule)


@lru_cache(maxsize=256)
def _read(program: str) -> Sexp:
    """A schedule's form, with names without their braces."""
    (form,) = read_forms(program.replace("{", "").replace("}", ""))
    return form


def _filled(form: Sexp, names: dict[str, str]) -> Any:
    """The schedule that a form stands for; None for one that runs nothing."""
    native = native_module()
    assert isinstance(form, tuple)
    kind, *operands = form
    if kind == "run":
        name = names[" ".join(map(str, operands))]
        return native.Run(native.PanicSpan(), native.RunConfig(name, None)) if name else None
    steps = [step for step in (_filled(operand, names) for operand in operands) if step is not None]
    if not steps:
        return None
    one = steps[0] if len(steps) == 1 else native.Sequence(native.PanicSpan(), steps)
    return one if kind == "seq" else native.Repeat(native.PanicSpan(), REPETITIONS, one)


def filled(program: str, names: Mapping[str, str]) -> str:
    """A program as text, with rule sets in the places of names in braces; some stand for none."""
    return _RUN.sub(lambda run: f"({run[1]} {names[run[2]]})" if names[run[2]] else "(seq)", program)


def unfinished(program: str, names: Mapping[str, str], changed: Sequence[bool]) -> str:
    """What is left to run of a program: what was repeated as often as it may be, and all behind it.

    Parameters
    ----------
    program, names
        As of :func:`scheduled`.
    changed
        Whether each iteration of the command changed anything.

    Returns
    -------
    str
        A program; empty if the command did all.
    """
    if _SATURATING not in program:
        return ""
    if len(changed) < REPETITIONS:
        return ""
    changes = iter(changed)
    steps = _STEP.findall(program)
    for place, step in enumerate(steps):
        if not names[step[step.index("{") + 1 : step.index("}")]]:
            continue
        if not step.startswith(_SATURATING):
            next(changes)
        elif all(next(changes) for _ in range(REPETITIONS)):
            return f"(seq {' '.join(steps[place:])})"
    return ""
