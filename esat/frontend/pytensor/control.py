"""Rules of inner graphs, choices and assertions, and of ops that hand their operand on."""

from __future__ import annotations

from typing import Any

from esat.frontend.pytensor.steps import PyTensorStep, Rule
from esat.graph.variables import Variable
from esat.ops.annotations.assume import ASSUMABLE, assume
from esat.ops.cast import cast
from esat.ops.control import assert_, ifelse


def _inlined(step: PyTensorStep) -> list[Variable]:
    return step.inline(step.op.fgraph, step.operands)


def _choice(step: PyTensorStep) -> Any:
    condition, *values = step.operands
    count = step.op.n_outs
    return ifelse(cast(condition, "bool"), values[:count], values[count:])


def _asserted(step: PyTensorStep) -> Variable:
    """The linker raises the exception that PyTensor would, with the same text."""
    value, *conditions = step.operands
    return assert_(value, *(cast(one, "bool") for one in conditions), message=text_of_assertion(step.op))


def text_of_assertion(op: Any) -> str:
    """What esat's error of an assertion that failed says: others raise something else."""
    return f"{op.exc_type.__name__}: {op.msg}"


def _assumed(step: PyTensorStep) -> Variable:
    """What the user says of a matrix, as far as esat has a name for it."""
    facts = [key.name for key, state in step.op.assumptions if state.name == "TRUE" and key.name in ASSUMABLE]
    return assume(step.first, *facts) if facts and step.first.tensor_type.kind == "f" else step.first


def _as_operand(step: PyTensorStep) -> Variable:
    return step.first


RULES: dict[str, Rule] = {
    "CheckAndRaise": _asserted,
    "CpuContiguous": _as_operand,
    "DeepCopyOp": _as_operand,
    "IfElse": _choice,
    "OpFromGraph": _inlined,
    "ScalarFromTensor": _as_operand,
    "SpecifyAssumptions": _assumed,
    "TensorFromScalar": _as_operand,
    "TypeCastingOp": _as_operand,
    "ViewOp": _as_operand,
}
