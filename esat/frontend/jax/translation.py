"""A jaxpr as a graph: equation by equation, by the table of rules.

Only attributes of jaxprs are read, and nothing of JAX is imported. What depends on constants alone and is
small is computed at once, so that loops know their bounds and choices what is chosen.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from esat.errors import GraphError, UserLine, describe
from esat.frontend.arrays.shaping import stack
from esat.frontend.jax.steps import Equation, JaxprValue, Rule, value_of
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.calls.callers import built_for, is_own
from esat.graph.constants import constant
from esat.graph.types import TensorType
from esat.graph.variables import Constant, Variable
from esat.ops.cast import cast
from esat.ops.control import specify_shape

SMALL = 64
"""Elements of a result of constants up to which it is computed at once."""

_REASONS = {
    "geqp3": ": columns change places by their values; qr without pivoting is there",
    "pure_callback": ": it calls a function of Python's; give its results as an argument",
    "io_callback": ": it calls a function of Python's; give its results as an argument",
    "random_gamma": ": it draws until a number is accepted; give the draws as an argument",
    "scaled_dot": ": it multiplies in bfloat16, a dtype that esat lacks",
    "schur": ": no Schur form is there, and none has a gradient; eig and eigh are there",
}
"""Why a primitive that users may meet has no rule, and what there is instead."""


class Translation:
    """Runs jaxprs on Variables.

    Parameters
    ----------
    rules
        Name of a primitive -> what builds its results.
    """

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules
        self.seen: set[str] = set()

    def run(self, jaxpr: Any, operands: Sequence[Variable], where: UserLine | None = None) -> list[Variable]:
        """The results of a jaxpr.

        Parameters
        ----------
        jaxpr
            One with its constants (``ClosedJaxpr``), or without any.
        operands
            One for each of its arguments.
        where
            The user's line that asked for it; JAX forgets those of functions that it has traced before.

        Raises
        ------
        GraphError
            For a primitive that has no rule: the message names it, and the line that asked for it.
        """
        consts = getattr(jaxpr, "consts", ())
        body = getattr(jaxpr, "jaxpr", jaxpr)
        known: dict[Any, Variable] = {}
        for variable, value in zip(body.constvars, consts, strict=True):
            known[variable] = constant_of(value)
        known.update(zip(body.invars, operands, strict=True))
        for equation, used in _needed(body):
            given = [_read(known, one) for one in equation.invars]
            step = self._step(equation, used, given, line_of(equation) or where)
            known.update(zip(equation.outvars, self._results(step), strict=True))
        return [_read(known, one) for one in body.outvars]

    def _step(
        self, equation: Any, used: tuple[bool, ...], operands: Sequence[Variable], where: UserLine | None
    ) -> Equation:
        results = tuple(value_of(one.aval, where) for one in equation.outvars)
        abstract = tuple(one.aval for one in equation.invars)
        name, params = equation.primitive.name, equation.params
        inline = partial(self.run, where=where)
        return Equation(name, params, tuple(operands), results, used, abstract, where, inline)

    def _results(self, step: Equation) -> list[Variable]:
        rule = self._rules.get(step.name)
        if rule is None:
            shown = [f"{one.type}" for one in step.operands]
            reason = f"no rule is known for JAX's primitive {step.name!r}{_REASONS.get(step.name, '')}"
            raise GraphError(describe("from_jax", shown, reason, step.where))
        self.seen.add(step.name)
        with built_for(step.where):
            found = _by_words(rule, step) if _moves_keys(step) else rule(step)
            made = [found] if isinstance(found, Variable) else list(found)
            fitted = [_fitted(step, *pair) for pair in zip(made, step.results, strict=True)]
        return _computed(step, fitted)


def _needed(body: Any) -> list[tuple[Any, tuple[bool, ...]]]:
    """The equations that results depend on, and which of their results are used."""
    wanted = {one for one in body.outvars if not _is_literal(one)}
    found = []
    for equation in reversed(body.eqns):
        used = tuple(one in wanted for one in equation.outvars)
        if any(used):
            found.append((equation, used))
            wanted.update(one for one in equation.invars if not _is_literal(one))
    return found[::-1]


def _is_literal(variable: Any) -> bool:
    return hasattr(variable, "val")


def _read(known: Mapping[Any, Variable], variable: Any) -> Variable:
    if not _is_literal(variable):
        return known[variable]
    return cast(constant(np.asarray(variable.val)), value_of(variable.aval).dtype)


def constant_of(value: Any) -> Variable:
    """A constant of a jaxpr: an array of JAX's or NumPy's, or a number."""
    if str(getattr(value, "dtype", "")).startswith("key<"):
        value = value._base_array
    return constant(np.asarray(value))


def _fitted(step: Equation, variable: Variable, wanted: JaxprValue) -> Variable:
    """A result in the dtype that the jaxpr has it in, and of its shape."""
    type = variable.tensor_type
    fits = type.ndim == len(wanted.shape) and all(
        own in (None, size) for own, size in zip(type.shape, wanted.shape, strict=True)
    )
    if not fits:
        reason = f"the rule of {step.name!r} gives {type} where JAX has {wanted.dtype} of {wanted.shape}"
        raise GraphError(describe("from_jax", [one.type for one in step.operands], reason, step.where))
    fitted = variable if type.dtype == wanted.dtype else cast(variable, wanted.dtype)
    return fitted if None not in type.shape else specify_shape(fitted, wanted.shape)


def _computed(step: Equation, results: list[Variable]) -> list[Variable]:
    """Results as constants, where they depend on constants alone and are small."""
    elements = sum(math.prod(value.shape) for value in step.results)
    if elements > SMALL or not all(isinstance(one, Constant) for one in step.operands):
        return results
    if all(isinstance(one, Constant) for one in results):
        return results
    return [
        constant(np.asarray(value), one.tensor_type.dtype)
        for one, value in zip(results, evaluate(results), strict=True)
    ]


# ---- keys of random numbers, which are arrays of words


_MOVES = frozenset(
    {"broadcast_in_dim", "concatenate", "copy", "dynamic_slice", "gather", "reshape", "select_n", "slice",
     "squeeze", "transpose"}
)  # fmt: skip


def _moves_keys(step: Equation) -> bool:
    """Whether an equation about arrays of any kind is one about keys."""
    return step.results[0].is_key and step.name in _MOVES


def _by_words(rule: Rule, step: Equation) -> list[Variable]:
    """The rule for each word of the keys, put together again."""
    count = step.results[0].shape[-1]
    is_key = [one.tensor_type.dtype == "uint32" and one.tensor_type.ndim > 0 for one in step.operands]
    parts = []
    for word in range(count):
        operands = [one[..., word] if flag else one for one, flag in zip(step.operands, is_key, strict=True)]
        results = tuple(JaxprValue(value.dtype, value.shape[:-1]) for value in step.results)
        found = rule(
            Equation(step.name, step.params, tuple(operands), results, step.used, (), step.where, step.inline)
        )
        parts.append([found] if isinstance(found, Variable) else list(found))
    return [stack(words, -1) for words in zip(*parts, strict=True)]


# ---- lines


def line_of(equation: Any) -> UserLine | None:
    """The line of the user's that an equation comes from: the innermost that is neither JAX's nor ours."""
    traceback = getattr(getattr(equation, "source_info", None), "traceback", None)
    for frame in getattr(traceback, "frames", ()):
        parts = frame.file_name.replace(os.sep, "/").split("/")
        if not {"jax", "jaxlib"}.intersection(parts) and not is_own(frame.file_name):
            return frame.file_name, frame.line_num
    return None


def input_for(value: JaxprValue, name: str | None = None) -> Variable:
    """An input of a graph for an argument of a jaxpr."""
    return TensorType(value.dtype, shape=value.shape).make_variable(name)
