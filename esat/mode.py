"""Modes: how a graph is compiled, as immutable values that compose."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import IO, TYPE_CHECKING, Any, Literal, TypedDict, Unpack, get_args

from esat.base.records import record
from esat.base.spelling import suggestion
from esat.classic.documents_table import ROWS
from esat.classic.optimizers.replacement_trace import Writer
from esat.classic.rules.rule_options import RuleOptions
from esat.classic.standard import optdb
from esat.egraph.preparation.rule_database import RULES
from esat.egraph.preparation.rule_program import EngineName
from esat.errors import ModeError
from esat.extract.prices.machine import MachineProfile, machine_profile
from esat.extract.verdicts import ACCURACIES, Accuracy
from esat.graph.calls.arguments import stream_of
from esat.graph.calls.parameters import check_methods
from esat.rules.language.query import Query
from esat.rules.language.rule import SOUNDNESS_CLASSES, Soundness

if TYPE_CHECKING:
    from esat.codegen.ground.target import Target

Strategy = Literal["egraph", "greedy"]
"""How the graph is optimized: by equality saturation, or by the classic optimizers in order."""


DeviceName = Literal["cpu", "cuda", "auto"]
"""Where steps may run."""


class ModeSettings(TypedDict, total=False):
    """What keywords of :class:`Mode` take, for type checkers; its attributes say what they mean."""

    strategy: Strategy
    query: Query
    soundness: Soundness
    node_limit: int | None
    match_limit: int | None
    round_limit: int | None
    time_limit: float | None
    extract: Literal["area", "tree", "optimal"]
    accuracy: Accuracy
    regimes: bool
    debug: bool
    trace: Writer | None
    samples: tuple[Any, ...] | None
    autotune: bool
    invariants: bool
    variants: int
    threads: int | None
    engine: EngineName
    device: DeviceName
    machine: MachineProfile
    target: Target | None


@record(frozen=True, slots=True, init=False)
class Mode:
    """How to compile.

    ``Mode("fast_run")`` is a predefined mode, ``Mode("FAST_RUN")`` the same; keyword arguments change single
    settings, and :meth:`including`, :meth:`requiring` and :meth:`excluding` its query.

    Attributes
    ----------
    name
        The predefined mode it started from.
    strategy
        See :data:`Strategy`.
    query
        Which rules and optimizers of ``esat.optdb`` take part.
    soundness
        The loosest class of rules that may take part.
    node_limit
        E-nodes at which saturation stops; None: a number that grows with the graph.
    match_limit
        Matches of all rules at which saturation stops; None: a number that grows with the graph.
    round_limit
        Rounds of saturation; None: until nothing more is found.
    time_limit
        Seconds after which saturation stops; None: never. What the clock ends depends on what else the
        machine does, so it may be another program each time; the other limits end equal graphs alike.
    extract
        ``area`` (heuristic), ``tree``, or ``optimal`` (integer programming, with a time limit).
    accuracy
        What forms are chosen by before time: ``best``, the most accurate form of each value that the rules
        find; ``written``, none that is less accurate than the graph as it was written; ``ignore``, nothing.
    regimes
        Whether, where accuracy goes before time, a value that no single form computes accurately everywhere
        may be computed by two forms, and a condition on one input chooses between them. Both are computed
        everywhere, and parts that work element by element are saturated once more.
    debug
        Whether every stage is checked against the unoptimized graph, and every call for NaN and Inf.
    samples
        For debugging and autotuning: one array an input, to check stages or time programs with; by default
        they are made up.
    autotune
        Whether programs predicted to take at most 10 % longer than the best are compiled and timed, for the
        sizes that types, ``shapes=`` and shared variables tell. The winner is remembered on disk.
    invariants
        Whether results of constants and of shared variables that a function does not update are kept from
        call to call where computing them takes long; they are computed anew when these have changed. What
        constants alone make is priced as shared by many calls: ``A @ (B @ x)`` may become ``(A @ B) @ x``.
    variants
        Programs kept beside the first one, for sizes that types leave open; 0 for none. Where calls come with
        sizes for which another program of the same e-graph is predicted to be faster, and there have been
        enough of them to pay for it, that one is compiled and runs for these sizes.
    threads
        The most threads that a generated kernel may use; None for what NUMBA_NUM_THREADS and
        ``numba.set_num_threads`` say at each call, and no more than there are processors.
    trace
        Told, line by line, of each replacement that a Python optimizer or a greedy step makes, and of each
        step of saturation: ``Mode(trace=print)``.
    engine
        What runs the rules: ``esat``, its own engine, or ``egglog``, whose language they are written in and
        which runs what the other one does not know, in ten times the time.
    device
        Where steps run: ``cpu``; ``cuda``, all that can run there on the first CUDA device; ``auto``, on
        either, as is predicted to be faster for the arguments of a call, and on the processor where there is
        no device. Where there is none, debug mode takes an emulated one. That is the row ``GPU transfer`` of
        the documents' table: without it (``excluding("gpu_transfer")``) everything stays on the processor.
    machine
        Throughputs the cost model uses; by default those that ``esat.calibrate()`` stored.
    target
        What kernels are compiled for: None for this machine, tuned as ``esat.calibrate()`` measured.

    Raises
    ------
    ModeError
        For an unknown mode or setting, or a device that nothing runs on; the message names what is missing.
    """

    name: str
    strategy: Strategy
    query: Query
    soundness: Soundness
    node_limit: int | None
    match_limit: int | None
    round_limit: int | None
    time_limit: float | None
    extract: Literal["area", "tree", "optimal"]
    accuracy: Accuracy
    regimes: bool
    debug: bool
    trace: Writer | None
    samples: tuple[Any, ...] | None = field(repr=False, compare=False)
    autotune: bool
    invariants: bool
    variants: int
    threads: int | None
    engine: EngineName
    device: DeviceName
    machine: MachineProfile = field(repr=False)
    target: Target | None = field(repr=False)

    def __init__(self, name: str | Mode = "fast_run", **settings: Unpack[ModeSettings]) -> None:
        if not isinstance(name, str | Mode):
            raise ModeError(f"a mode is the name of one, or a Mode; not {name!r}")
        start = _predefined(name) if isinstance(name, str) else name._settings()
        known = set(start)
        for key in settings:
            if key not in known:
                hint = suggestion(key, known, 0.6)
                raise ModeError(f"a Mode has no setting {key!r}{hint}; it has {', '.join(sorted(known))}")
        for key, value in {**start, **settings}.items():
            if key in settings:
                _check(key, value)
            object.__setattr__(self, key, value)
        if "device" in settings and self.device == "cuda" and not self.debug:
            from esat.gpu.kernel_text.kernels import (
                usable_device,  # which nobody waits for who asks for no device
            )

            usable_device()

    def _settings(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def including(self, *tags: str) -> Mode:
        """The same mode, with what has one of the tags as well."""
        return Mode(self, query=self.query.including(*tags))

    def requiring(self, *tags: str) -> Mode:
        """The same mode, with only what has all the tags."""
        return Mode(self, query=self.query.requiring(*tags))

    def excluding(self, *tags: str) -> Mode:
        """The same mode, without what has one of the tags."""
        return Mode(self, query=self.query.excluding(*tags))

    def has(self, name: str) -> bool:
        """Whether its query selects the entry of ``optdb`` of this name."""
        return any(entry.name == name for entry in optdb.selected(self.query))

    def print_summary(self, file: IO[str] | None = None) -> None:
        """Print what takes part: the rows of the documents' table, then all optimizers in their order."""
        print("\n".join(self.summary()), file=stream_of("print_summary", file))

    def summary(self) -> list[str]:
        """Lines that :meth:`print_summary` prints."""
        lines = [f"mode {self.name}: strategy {self.strategy}, rules of class {self.soundness} or stricter"]
        lines += [f"  {row}" for row in ROWS if row.selected(self.query)]
        if self.device != "cpu":
            where = "on the CUDA device" if self.device == "cuda" else "where it is predicted to be faster"
            runs = f"what can runs {where}" if self.has("gpu_transfer") else "all stays on the processor"
            lines.append(f"device {self.device}: {runs}")
        rules = RULES.query(self.query, soundness=self.soundness).rules
        names = dict.fromkeys(rule.report_name for rule in rules)
        lines.append(f"{len(names)} rules")
        options = RuleOptions(self.soundness, (), self.machine)
        return lines + optdb.query(self.query, options=options).summary()


def _check(setting: str, value: object) -> None:
    """Raise ModeError for a setting with a value that it cannot have."""
    if setting == "threads" and (value is not None and (type(value) is not int or value < 1)):
        raise ModeError(f"a kernel runs in one thread or more, or None; not in {reprlib.repr(value)}")
    if setting == "accuracy" and not _is_one_of(*ACCURACIES)(value):
        raise ModeError(f"accuracy={reprlib.repr(value)}: it is 'best', 'written' or 'ignore'")
    if setting == "device":
        _check_device(value)
    fits, wanted = _KINDS.get(setting, (lambda _: True, ""))
    if not fits(value):
        raise ModeError(f"the setting {setting} of a Mode is {wanted}, not {reprlib.repr(value)}")


def _check_device(value: object) -> None:
    """Raise ModeError for a device that there is not."""
    if not _is_one_of(*get_args(DeviceName))(value):
        names = ", ".join(map(repr, get_args(DeviceName)))
        raise ModeError(f"device={reprlib.repr(value)}: steps run on one of {names}")


def _is_limit(value: object) -> bool:
    return value is None or (type(value) in (int, float) and float(str(value)) >= 0)


def _is_target(value: object) -> bool:
    if value is None:
        return True
    from esat.codegen.ground.target import Target  # with which the code generator is imported

    return isinstance(value, Target)


def _is_one_of(*values: object) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str | bool | None) and value in values


_LIMIT = (_is_limit, "a number from 0 on, or None")
_FLAG = (lambda value: isinstance(value, bool), "True or False")
_KINDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "name": (lambda value: isinstance(value, str), "text"),
    "strategy": (_is_one_of(*get_args(Strategy)), " or ".join(map(repr, get_args(Strategy)))),
    "query": (lambda value: isinstance(value, Query), "a Query"),
    "soundness": (_is_one_of(*SOUNDNESS_CLASSES), " or ".join(map(repr, SOUNDNESS_CLASSES))),
    "node_limit": _LIMIT,
    "match_limit": _LIMIT,
    "round_limit": _LIMIT,
    "time_limit": _LIMIT,
    "extract": (_is_one_of("area", "tree", "optimal"), "'area', 'tree' or 'optimal'"),
    "engine": (_is_one_of(*get_args(EngineName)), " or ".join(map(repr, get_args(EngineName)))),
    "debug": _FLAG,
    "regimes": _FLAG,
    "trace": (lambda value: value is None or callable(value), "a function of lines, or None"),
    "samples": (lambda value: value is None or isinstance(value, tuple | list), "a list of values, or None"),
    "autotune": _FLAG,
    "invariants": _FLAG,
    "variants": (lambda value: isinstance(value, int) and value >= 0, "a number from 0 on"),
    "machine": (lambda value: isinstance(value, MachineProfile), "what esat.calibrate() returns"),
    "target": (_is_target, "a Target, or None"),
}
"""What settings can be, and how messages say so."""

_DEFAULTS: Mapping[str, Any] = {
    "strategy": "egraph",
    "query": Query(["fast_run"]),
    "soundness": "real",
    "node_limit": None,
    "match_limit": None,
    "round_limit": None,
    "time_limit": None,
    "extract": "area",
    "accuracy": "best",
    "regimes": False,
    "debug": False,
    "trace": None,
    "samples": None,
    "autotune": False,
    "invariants": True,
    "variants": 8,
    "threads": None,
    "engine": "esat",
    "device": "cpu",
    "target": None,
}

_FAST_COMPILE: Mapping[str, Any] = {"strategy": "greedy", "query": Query(["fast_compile"])}

_PREDEFINED: Mapping[str, Mapping[str, Any]] = {
    "fast_run": {},
    "fast_compile": _FAST_COMPILE,
    "o1": _FAST_COMPILE,
    "o2": {"strategy": "greedy", "query": Query(["fast_compile", "fusion"])},
    "o3": {"query": Query(["fast_run"], exclude=["inplace"])},
    "o4": {},
    "Stabilization": {"strategy": "greedy", "query": Query(["stabilize"])},
    "unsafe": {"query": Query(["fast_run", "unsafe"], exclude=["inplace"]), "soundness": "unsafe"},
    "greedy": {"strategy": "greedy"},
    "strict": {"soundness": "exact"},
    "debug": {"debug": True},
}

predefined_optimizers: Mapping[str, Query] = {
    name: settings.get("query", _DEFAULTS["query"]) for name, settings in _PREDEFINED.items()
}
"""Name of each predefined mode -> its query, for ``optdb.query(predefined_optimizers["o2"])``."""


def mode_names() -> tuple[str, ...]:
    """Names of the predefined modes."""
    return tuple(_PREDEFINED)


def _predefined(name: str) -> dict[str, Any]:
    known = {predefined.lower(): predefined for predefined in _PREDEFINED}
    if name.lower() not in known:
        hint = suggestion(name.lower(), _PREDEFINED, 0.6)
        raise ModeError(f"no mode is named {name!r}{hint}; there are {', '.join(_PREDEFINED)}")
    name = known[name.lower()]
    return {"name": name, **_DEFAULTS, "machine": machine_profile(), **_PREDEFINED[name]}


check_methods(Mode)
