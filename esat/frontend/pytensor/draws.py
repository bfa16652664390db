"""Rules of random variables: those that are a method of NumPy's generators, drawn in the same order.

Others PyTensor draws, from a copy of the same generator: streams are PyTensor's either way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esat.frontend.elements import random
from esat.frontend.pytensor.steps import NoRuleError, PyTensorStep, Rule


def _drawn(draw: Callable[..., random.Draw]) -> Rule:
    """The state after a draw, and the sample; a size is None, or a vector of known length."""

    def rule(step: PyTensorStep) -> Any:
        state, size, *parameters = step.operands
        if size is None:
            return draw(state, *parameters)
        rank = step.node.inputs[1].type.shape[0]
        if rank is None:
            raise NoRuleError("a size of unknown length")
        return draw(state, *parameters, size=tuple(size[place] for place in range(rank)))

    return rule


RULES: dict[str, Rule] = {
    "beta": _drawn(random.beta),
    "binomial": _drawn(random.binomial),
    "exponential": _drawn(random.exponential),
    "gamma": _drawn(random.gamma),
    "geometric": _drawn(random.geometric),
    "integers": _drawn(random.integers),
    "laplace": _drawn(random.laplace),
    "logistic": _drawn(random.logistic),
    "normal": _drawn(random.normal),
    "poisson": _drawn(random.poisson),
    "uniform": _drawn(random.uniform),
}
