"""What rules are given of a node of a PyTensor graph, and what a table of rules is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from esat.base.records import record
from esat.errors import GraphError, UserLine
from esat.graph.variables import Constant, Variable


class NoRuleError(GraphError):
    """A node that has no form in esat: the op itself, an option of it, or a type. PyTensor runs it."""


@record(frozen=True, eq=False)
class PyTensorStep:
    """A node of a PyTensor graph whose operands are Variables.

    Attributes
    ----------
    op
        PyTensor's op.
    node
        PyTensor's node.
    operands
        One for each of its inputs; None where an input is no array, as a size that is None.
    where
        The user's line that built it.
    inline
        Gives the results of a graph of PyTensor's, an inner one of the op, for operands.
    translate
        Gives the results of another node of PyTensor's for operands.
    careful
        Whether to build what costs more and takes all that PyTensor does: values that are written and turn
        out to have one element along an axis are stretched, solutions of singular systems are NaN, and what
        users' ops declare of sizes is not believed.
    """

    op: Any
    node: Any
    operands: tuple[Any, ...]
    where: UserLine | None
    inline: Callable[[Any, Sequence[Variable]], list[Variable]]
    translate: Callable[[Any, Sequence[Any]], list[Variable]]
    careful: bool = False

    @property
    def first(self) -> Variable:
        """The first operand."""
        operand: Variable = self.operands[0]
        return operand

    @property
    def dtype(self) -> str:
        """Of the first result."""
        return str(self.node.outputs[0].type.dtype)


Rule: TypeAlias = Callable[[PyTensorStep], Any]
"""What builds the results of a node: a Variable, or a sequence of as many as there are."""


def number_of(operand: Any) -> int | None:
    """The value of a scalar operand that is a constant; None for all others."""
    if isinstance(operand, Constant) and operand.tensor_type.ndim == 0:
        return int(operand.data)
    return None


def label(op: Any) -> str:
    """What reports and errors call an op: its class, and what it applies element by element or matrix by
    matrix."""
    kind = type(op).__name__
    inner = getattr(op, "scalar_op", None) or getattr(op, "core_op", None)
    if inner is not None:
        return f"{kind}{{{label(inner)}}}"
    name = getattr(op, "name", None)
    return f"RandomVariable{{{name}}}" if kind.endswith("RV") and name else kind
