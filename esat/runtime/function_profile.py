"""Profiles: where the time of a compilation, and of the compiled program, went."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from esat.base.interrupts import deliver_now
from esat.base.progress import compiling, tell
from esat.base.stages import STAGES, Phase
from esat.classic.profile import OptimizerProfile
from esat.graph.calls.arguments import instance_of
from esat.graph.calls.parameters import broke_off

_PHASE_TITLES: dict[Phase, str] = {
    "optimizer": "esat Optimizer time",
    "linker": "esat Linker time (includes kernel generation/compiling)",
}


@dataclass(slots=True)
class StepProfile:
    """What one step of a program took, over all measured calls.

    Attributes
    ----------
    name
        The step's kind and ops.
    nodes
        Number of graph nodes in it.
    calls
        How often it ran.
    seconds
        Time in it.
    bytes
        Bytes of the arrays it read and wrote.
    threads
        The most threads that a generated kernel ran in.
    """

    name: str
    nodes: int = 1
    calls: int = 0
    seconds: float = 0.0
    bytes: int = 0
    threads: int = 1

    def add(self, seconds: float, bytes: int, threads: int = 1) -> None:
        """Count one run."""
        self.threads = max(self.threads, threads)
        self.calls += 1
        self.seconds += seconds
        self.bytes += bytes

    @property
    def bandwidth(self) -> float:
        """Bytes a second; 0 where nothing was measured."""
        return self.bytes / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class Profile:
    """Times of one compiled function; printing it gives them in the documents' format.

    Attributes
    ----------
    message
        What was compiled, usually the user's file and line.
    stages
        Stage of compilation -> seconds, in the order in which the stages ran. A stage that ran
        twice has the sum.
    phases
        The phase each stage belongs to.
    nodes_before, nodes_after
        Number of Apply nodes in the graph given and in the optimized one.
    steps
        The program's steps, with their times where calls were measured.
    calls, call_seconds
        Number of measured calls, and the time in them.
    details
        Further lines, each with the stage they explain.
    optimizer
        What each optimizer did; printing it gives the documents' detailed profile.
    gradient_seconds
        Time in all calls of ``esat.grad`` and ``esat.vjp`` before the compilation, for any function; it is
        no part of the compile time.
    """

    message: str = ""
    stages: dict[str, float] = field(default_factory=dict)
    phases: dict[str, Phase] = field(default_factory=dict)
    nodes_before: int = 0
    nodes_after: int = 0
    steps: list[StepProfile] = field(default_factory=list)
    calls: int = 0
    call_seconds: float = 0.0
    details: list[tuple[str, str]] = field(default_factory=list)
    optimizer: OptimizerProfile | None = None
    gradient_seconds: float = 0.0
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=100), repr=False, compare=False)
    _running: list[list[float]] = field(default_factory=list, repr=False, compare=False)
    _last: tuple[str, float] | None = field(default=None, repr=False, compare=False)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Time all that is done: until this ends, each stage begins where the one before it ended.

        So what is done between two stages counts as part of the later, and at the end of the last one.
        """
        self._last = ("", time.perf_counter())
        try:
            with compiling(self.message):
                yield
        finally:
            name, ended = self._last
            if name:
                self.stages[name] += time.perf_counter() - ended
            self._last = None

    @contextmanager
    def stage(self, name: str, phase: Phase = "optimizer", *, reads: bool = False) -> Iterator[None]:
        """Time a stage: ``with profile.stage("saturate"): ...``; ``reads`` says that it reads arguments.

        A stage inside another counts for itself alone: the times of all stages add up to the total. The phase
        is that of :data:`~esat.base.stages.STAGES`; what has another name is a part of ``phase``.
        """
        self.stages.setdefault(name, 0.0)
        self.phases.setdefault(name, STAGES[name].phase if name in STAGES else phase)
        outermost = not self._running
        start = self._last[1] if outermost and self._last else time.perf_counter()
        inner = [0.0]
        self._running.append(inner)
        tell(name)
        try:
            yield
            deliver_now()
        except Exception as error:
            if not reads:
                broke_off(name, error)
            raise
        finally:
            end = time.perf_counter()
            self._running.pop()
            self.stages[name] += end - start - inner[0]
            if self._running:
                self._running[-1][0] += end - start
            elif self._last:
                self._last = (name, end)

    @property
    def compile_seconds(self) -> float:
        """Time of all stages together."""
        return sum(self.stages.values())

    def add_call(self, seconds: float) -> None:
        """Count one measured call."""
        instance_of("add_call", "seconds", seconds, float)
        self.calls += 1
        self.call_seconds += seconds
        self._recent.append(seconds)

    @property
    def typical_call_seconds(self) -> float:
        """The median of the last hundred calls; the first three do not count where there are more."""
        recent = [*self._recent]
        counted = sorted(recent[3:] if 3 < self.calls <= len(recent) else recent)
        return counted[len(counted) // 2]

    def phase_seconds(self, phase: Phase) -> float:
        """Time of the stages of one phase."""
        instance_of("phase_seconds", "phase", phase, str)
        return sum(seconds for name, seconds in self.stages.items() if self.phases[name] == phase)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data, for storing and comparing."""
        return {
            "message": self.message,
            "compile_seconds": self.compile_seconds,
            "gradient_seconds": self.gradient_seconds,
            "stages": dict(self.stages),
            "nodes": {"before": self.nodes_before, "after": self.nodes_after},
            "calls": self.calls,
            "call_seconds": self.call_seconds,
            "optimizer": None if self.optimizer is None else self.optimizer.as_dict(),
            "steps": [
                {
                    "name": step.name,
                    "nodes": step.nodes,
                    "calls": step.calls,
                    "seconds": step.seconds,
                    "bytes": step.bytes,
                    "bandwidth": step.bandwidth,
                    "threads": step.threads,
                }
                for step in self.steps
            ],
        }

    def __str__(self) -> str:
        lines = ["Function profiling", "=================="]
        if self.message:
            lines.append(f"  Message: {self.message}")
        measured = "" if self.calls else " (counted after measure())"
        lines.append(
            f"  Time in {self.calls} calls to Executable.__call__: {self.call_seconds:.6e}s{measured}"
        )
        lines.append(f"  Total compile time: {self.compile_seconds:.6e}s")
        lines.append(
            f"    Number of Apply nodes: {self.nodes_after} (before optimization: {self.nodes_before})"
        )
        for phase, title in _PHASE_TITLES.items():
            lines += self._phase_lines(phase, title)
        lines.append(f"  Time in all call to esat.grad() {self.gradient_seconds:.6e}s")
        if self.calls:
            lines += ["", *self.step_lines()]
        return "\n".join(lines)

    def _phase_lines(self, phase: Phase, title: str) -> list[str]:
        lines = [f"    {title}: {self.phase_seconds(phase):.6e}s"]
        if phase == "optimizer" and self.optimizer is not None:
            lines.append(f"       esat validate time: {self.optimizer.validate_seconds:.6e}s")
        for name, seconds in self.stages.items():
            if self.phases[name] == phase:
                lines.append(f"       {name} time: {seconds:.6e}s")
                lines += [f"          {text}" for stage, text in self.details if stage == name]
        return lines

    def step_lines(self) -> list[str]:
        """One line a step, those that took most time first."""
        lines = [
            "Steps",
            "-----",
            "  <% time> <sum %> <seconds> <time per call> <#call> <bytes> <GB/s> <#apply> <step>",
        ]
        total = sum(step.seconds for step in self.steps) or 1.0
        running = 0.0
        for step in sorted(self.steps, key=lambda step: -step.seconds):
            running += step.seconds
            each = step.seconds / step.calls if step.calls else 0.0
            threads = f" [{step.threads} threads]" if step.threads > 1 else ""
            lines.append(
                f"  {step.seconds / total:6.1%} {running / total:6.1%} {step.seconds:9.3e}s {each:9.3e}s"
                f" {step.calls:6d} {step.bytes:11d} {step.bandwidth / 1e9:7.2f} {step.nodes:4d}"
                f"   {step.name}{threads}"
            )
        return lines
