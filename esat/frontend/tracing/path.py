"""The way through a function that a trace takes, and what ends a trace that is begun anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from esat.errors import TracingError, UserLine
from esat.graph.variables import Variable


class TracedInFull(BaseException):
    """A loop of which iterations were skipped, and should not have been: the function is traced anew."""


class NotChosen(BaseException):
    """No program can choose between the branches at a line, for a reason: they are traced one at a time.

    Attributes
    ----------
    is_first
        Whether the line is that of a loop whose first step may be the only one of its kind.
    """

    def __init__(self, line: UserLine, reason: str, is_first: bool = False) -> None:
        super().__init__(reason)
        self.line, self.reason, self.is_first = line, reason, is_first


@dataclass(slots=True)
class PathDecision:
    """A value that decided in Python which code is traced, where only a call can know it.

    Attributes
    ----------
    condition
        A scalar of dtype bool.
    outcome
        What it was taken for.
    refusal
        The error where no program can choose.
    line
        Of the user's, that asked.
    breaks
        Whether it is that of all steps of a loop, which is left where it is true.
    """

    condition: Variable
    outcome: bool
    refusal: TracingError
    line: UserLine | None
    breaks: bool = False


@dataclass(slots=True)
class ErrorCheck:
    """An error that the function raises where a condition holds.

    Attributes
    ----------
    condition
        A scalar of dtype bool; None where the decisions before it alone lead to the error.
    error
        What is raised.
    depth
        How many decisions came before.
    """

    condition: Variable | None
    error: Exception
    depth: int


@dataclass(slots=True)
class Path:
    """One way through a function, of those that values of arrays decide between.

    Attributes
    ----------
    forced
        What the first decisions are taken for, and their lines; later ones are false.
    decisions, checks
        In the order in which the function came to them.
    texts
        What stands for values in texts -> the value and how it is written.
    written
        The same, and what stood in texts of loops that nothing but printing can come to see.
    batching
        Whether a function of one element of a batch is traced, which decides nothing for all of them.
    lines
        Those at which something was decided.
    breaks
        Which of the forced decisions are those of all steps of a loop.
    of_step, leaves
        Decisions of the present step of such a loop, None outside of one; and what they are taken for.
    failed
        Whether a loop was left that has to be traced in full.
    choices, half_bound
        Lines of conditions of which both branches are being traced; names that stand for nothing after them,
        and what is raised where one of them is looked at.
    failing
        How many of the checks are a part of what :func:`esat.frontend.tracing.rolling.raised.fails_before`
        has said, and that.
    asked
        The last error of asking for a value that is not known, which a library may have hidden.
    """

    forced: tuple[tuple[bool, UserLine | None], ...] = ()
    decisions: list[PathDecision] = field(default_factory=list)
    checks: list[ErrorCheck] = field(default_factory=list)
    texts: dict[str, tuple[Variable, str]] = field(default_factory=dict)
    written: dict[str, Variable] = field(default_factory=dict)
    batching: bool = False
    lines: set[UserLine | None] = field(default_factory=set)
    breaks: frozenset[int] = frozenset()
    of_step: list[PathDecision] | None = None
    leaves: bool = False
    failed: bool = False
    choices: list[UserLine] = field(default_factory=list)
    half_bound: dict[str, NotChosen] = field(default_factory=dict)
    failing: tuple[int, Any] = (0, None)
    asked: TracingError | None = None

    def placed(self, begin: tuple[int, int, int], place: Callable[[list[Variable]], list[Variable]]) -> None:
        """Replace the conditions, and values in texts, that came after some point."""
        stated: list[PathDecision | ErrorCheck] = [*self.decisions[begin[0] :], *self.checks[begin[1] :]]
        stated = [one for one in stated if one.condition is not None]
        texts = list(self.texts)[begin[2] :]
        variables = [one.condition for one in stated if one.condition is not None]
        variables += [self.texts[text][0] for text in texts]
        if not variables:
            return
        found = iter(place(variables))
        for one in stated:
            one.condition = next(found)
        for text in texts:
            self.texts[text] = next(found), self.texts[text][1]

    def point(self) -> tuple[int, int, int]:
        """Where the function is."""
        return len(self.decisions), len(self.checks), len(self.texts)

    def drop_texts(self, begin: tuple[int, int, int]) -> None:
        """Let texts since some point count as printed where no check has been stated that could show them."""
        if len(self.checks) == begin[1]:
            for text in list(self.texts)[begin[2] :]:
                del self.texts[text]
