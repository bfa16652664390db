"""Rules of symbolic ops, whose graph esat has as one op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esat.frontend.elements import elementwise as own
from esat.frontend.elements.reductions import logsumexp
from esat.frontend.pytensor.steps import PyTensorStep, Rule
from esat.graph.variables import Variable
from esat.ops.cast import cast
from esat.ops.normalization import log_softmax, softmax


def _along_axes(function: Callable[..., Any]) -> Rule:
    """A function of one array, along the op's axes."""

    def rule(step: PyTensorStep) -> Any:
        return function(cast(step.first, step.dtype), axis=step.op.axis)

    return rule


def _xlogy(step: PyTensorStep) -> Variable:
    x, y = (cast(one, step.dtype) for one in step.operands)
    return own.xlogy(x, y)


RULES: dict[str, Rule] = {
    "LogSoftmax": _along_axes(log_softmax),
    "LogSumExp": _along_axes(logsumexp),
    "Softmax": _along_axes(softmax),
    "XLogY": _xlogy,
}
