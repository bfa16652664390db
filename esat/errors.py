"""The EsatError family and the one formatter of its messages.

Every error a user can cause says four things: the op, the shapes and dtypes that met there,
the reason, and the line of the user's own code that built the node.
"""

from __future__ import annotations

from collections.abc import Iterable

from numpy.exceptions import AxisError as NumpyAxisError
from numpy.linalg import LinAlgError

UserLine = tuple[str, int]
"""File name and line number of the user's code that built a node."""


class CallLine(tuple[str, int]):
    """A user's line, and the function of esat that was called there: an ``einsum`` builds other ops."""

    called: str

    def __new__(cls, line: UserLine, called: str = "") -> CallLine:
        """The line of a call of ``called``."""
        made = super().__new__(cls, line)
        made.called = called
        return made

    def __reduce__(self) -> tuple[type[CallLine], tuple[UserLine, str]]:
        return CallLine, ((self[0], self[1]), self.called)


class EsatError(Exception):
    """Base of every error esat raises on purpose."""


class GraphError(EsatError, ValueError):
    """A malformed graph: a cycle, a Constant as input, an unused or missing input."""


class CycleError(GraphError):
    """A graph, or a replacement in it, that depends on itself."""


class DestroyError(GraphError):
    """A graph whose ops overwrite what is still needed, or what they must not overwrite."""


class DtypeError(EsatError, TypeError):
    """Operands whose dtypes an op does not take."""


class TracingError(DtypeError):
    """A value that Python asks for while a function is traced, and that only a call of it can know."""


class TracedAttributeError(TracingError, AttributeError):
    """An attribute that a Variable, or an array or number of a traced function, does not have."""


class ShapeError(EsatError, ValueError):
    """Operands whose ranks or sizes do not fit, found while building or while running."""


class AxisError(ShapeError, NumpyAxisError):
    """An axis out of range, repeated, or not an integer; as NumPy's, an IndexError and a ValueError."""


class IndexingError(ShapeError, IndexError):
    """An index out of range, found while building or while running."""


class StatedShapeError(ShapeError, AssertionError):
    """A value without the sizes that a graph states of it; an AssertionError too, as PyTensor's."""


class LinearAlgebraError(EsatError, LinAlgError):
    """A matrix that an op cannot take: singular, not positive definite, or one it does not converge on."""


class MatrixShapeError(ShapeError, LinearAlgebraError):
    """Operands that are no matrices, or not square, where an op takes such; a LinAlgError as NumPy's."""


class CallError(EsatError, TypeError):
    """A call with parameters that a function does not have, or without those it needs."""


class ParameterError(EsatError, ValueError):
    """A parameter with a value it cannot have: of a distribution, outside the domain, found while running."""


class AssertionFailed(EsatError, AssertionError):  # noqa: N818 - it says what happened
    """A condition the user's graph states is false at run time."""


class InputError(EsatError, TypeError):
    """Arguments of a compiled function with the wrong count, dtype, rank or size."""


class GradientError(EsatError, ValueError):
    """A gradient that is not defined: a vector-valued cost, an op without a gradient."""


class ModeError(EsatError, ValueError):
    """An unknown mode, or options that do not go together."""


class OptimizerError(EsatError, ValueError):
    """A wrong registration in, or query of, the optimizer database."""


class CompileError(EsatError, RuntimeError):
    """A stage of compilation found its own invariants broken; the message names the stage."""


class DeviceError(EsatError, RuntimeError):
    """A device that cannot be used any more, or that a program's values were lost with."""


class DeviceMemoryError(DeviceError, MemoryError):
    """A device without room for a step's arrays, after all unused memory was given back.

    Attributes
    ----------
    needed, free
        Bytes.
    step
        What needed them.
    """

    def __init__(self, message: str, needed: int = 0, free: int = 0, step: str = "") -> None:
        super().__init__(message)
        self.needed = needed
        self.free = free
        self.step = step


class DebugError(EsatError, AssertionError):
    """What debug mode found: a stage that changed a result, NaN or Inf, an undeclared effect of an op."""


class EmulationError(CompileError):
    """A printed kernel did, in the emulator, what no device allows or gives a lasting meaning to.

    Attributes
    ----------
    family
        Of the kernel: ``flat``, ``rows``...
    line
        Of the kernel's text, counted from 1; 0 where none can be named.
    block, thread
        Where it happened, or None.
    """

    def __init__(
        self, reason: str, family: str = "", line: int = 0, text: str = "", block: int | None = None,
        thread: int | None = None,
    ) -> None:  # fmt: skip
        self.reason, self.family, self.line, self.block, self.thread = reason, family, line, block, thread
        self.text = text
        where = f"kernel {family}" if family else "kernel"
        where += f", line {line}" if line else ""
        where += f", block {block}" if block is not None else ""
        where += f", thread {thread}" if thread is not None else ""
        lines = text.splitlines()
        shown = f"\n  {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""
        super().__init__(f"{where}: {reason}{shown}")

    def __reduce__(self) -> tuple[type[EmulationError], tuple[object, ...]]:
        return EmulationError, (self.reason, self.family, self.line, self.text, self.block, self.thread)


class SaturationError(CompileError):
    """The e-graph engine refused a program or broke off; the e-graph is discarded."""


class EsatWarning(UserWarning):
    """Base of every warning esat issues."""


class RuleError(EsatError, ValueError):
    """A rule that cannot be read, compiled or applied.

    Attributes
    ----------
    file, line, column
        Where the rule stands; ``line`` and ``column`` count from 1 and are 0 where unknown.
    """

    def __init__(self, message: str, file: str = "", line: int = 0, column: int = 0) -> None:
        self.reason = message
        self.file = file
        self.line = line
        self.column = column
        position = ":".join(str(part) for part in (file, line, column) if part)
        super().__init__(f"{position}: {message}" if position else message)


def describe(op: str, operands: Iterable[object], reason: str, where: UserLine | None = None) -> str:
    """The message of an error at one op.

    Parameters
    ----------
    op
        Name of the op.
    operands
        The types that met there, as they should be shown.
    reason
        Why this does not work, as one clause.
    where
        The user's line that built the node, if known; the message begins with the function called there, if
        that is another.
    """
    shown = ", ".join(map(_text, operands))
    message = f"{op}({shown}): {reason}"
    called = getattr(where, "called", op)
    if called != op:
        message = f"{called}: {message}"
    if where is not None:
        message += f"\n  at {where[0]}:{where[1]}"
    return message


def sizes_differ(sizes: Iterable[int | None], axis: int) -> str:
    """The reason where several sizes meet along an axis; those that are not known are left out."""
    known = sorted({size for size in sizes if size is not None})
    return f"sizes {' and '.join(map(str, known))} of axis {axis} do not match"


def _text(operand: object) -> str:
    """An operand as text; the kind alone of lists within lists that are too deep for Python to print."""
    try:
        return str(operand)
    except RecursionError:
        return type(operand).__name__
