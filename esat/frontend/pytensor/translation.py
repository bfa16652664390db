"""A PyTensor graph as one of esat's: node by node, by the table of rules.

Inner graphs, of OpFromGraph and Composite among others, become part of the graph around them. Large
constants become further inputs, so that programs do not depend on their values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant as PyTensorConstant

from esat.errors import EsatError, GraphError, UserLine, describe
from esat.frontend.linear_algebra.sparse import to_format
from esat.frontend.pytensor.choices import Switches
from esat.frontend.pytensor.control import text_of_assertion
from esat.frontend.pytensor.foreign import TranslationReport, foreign
from esat.frontend.pytensor.steps import NoRuleError, PyTensorStep, Rule, label
from esat.frontend.pytensor.types import constant_of, is_dense
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.calls.callers import built_for, is_own, libraries
from esat.graph.constants import constant
from esat.graph.sparse_type import SparseType
from esat.graph.types import TensorType
from esat.graph.variables import Constant, Variable
from esat.ops.cast import cast
from esat.ops.control import specify_shape

LARGEST_CONSTANTS = 1 << 19
"""Bytes of constants that are known to the program; others are arguments. Programs with more than twice as
many are not recorded on disk."""
SMALL = 64
"""Elements of constants, and of what is computed of them, up to which it is computed at once."""


class PyTensorTranslation:
    """Builds the nodes of PyTensor graphs from Variables.

    Parameters
    ----------
    rules
        Name of a class of ops, or of a random variable -> what builds its results. Where a class has no rule,
        that of the nearest class that it extends is taken.
    strict
        Whether an op without a rule is an error; otherwise PyTensor's own code runs it, as a step.
    careful
        Whether to build what costs more and takes all that PyTensor does: values that are written and turn
        out to have one element along an axis are stretched, solutions of singular systems are NaN, and what
        users' ops declare of sizes is not believed.

    Attributes
    ----------
    arguments
        Large constants, each a further input of the graph and its value.
    raises
        Texts of failed assertions -> the class and the message of the exception that PyTensor raises.
    """

    def __init__(self, rules: Mapping[str, Rule], strict: bool = False, careful: bool = False) -> None:
        self._rules = rules
        self._strict = strict
        self._careful = careful
        self._choices = Switches()
        self._constants: dict[Any, Variable | None] = {}
        self._bytes = 0
        self._counted = 0
        self._foreign: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}
        self.arguments: list[tuple[Variable, Any]] = []
        self.raises: dict[str, tuple[type[Exception], str]] = {}

    @property
    def report(self) -> TranslationReport:
        """Which ops PyTensor runs."""
        return TranslationReport(self._counted, dict(self._foreign), dict(self._reasons))

    def run(self, fgraph: Any, operands: Sequence[Any]) -> list[Any]:
        """The outputs of a graph of PyTensor's.

        Parameters
        ----------
        fgraph
            A FunctionGraph.
        operands
            One for each of its inputs.

        Raises
        ------
        GraphError
            In strict mode, for an op without a rule: the message names it and the user's line.
        """
        known: dict[Any, Any] = dict(zip(fgraph.inputs, operands, strict=True))
        for node in fgraph.toposort():
            given = [self._read(known, variable) for variable in node.inputs]
            known.update(zip(node.outputs, self.node(node, given), strict=True))
        return [self._read(known, variable) for variable in fgraph.outputs]

    def node(self, node: Any, operands: Sequence[Any]) -> list[Any]:
        """The results of one node."""
        step = PyTensorStep(node.op, node, tuple(operands), line_of(node), self.run, self.node, self._careful)
        rule = self._rule_of(node.op)
        before = self._counted, self._foreign.copy()
        self._counted += 1
        try:
            if rule is None:
                raise NoRuleError("it has no rule")
            with built_for(step.where):
                return self._built(rule, step)
        except EsatError as error:
            if isinstance(error, StrictError):
                raise
            self._counted, self._foreign = before[0] + 1, before[1]
            return self._by_pytensor(step, error)

    def _built(self, rule: Rule, step: PyTensorStep) -> list[Any]:
        return self._choices.results(step, lambda operands: self._by_rule(rule, step, operands))

    def _by_rule(self, rule: Rule, step: PyTensorStep, operands: Sequence[Any]) -> list[Any]:
        step = replace(step, operands=tuple(operands))
        found = rule(step)
        results = [found] if isinstance(found, Variable) else list(found)
        outputs = step.node.outputs
        if hasattr(step.op, "exc_type"):
            self.raises.setdefault(text_of_assertion(step.op), (step.op.exc_type, step.op.msg))
        return _computed(step, [_fitted(step, *pair) for pair in zip(results, outputs, strict=True)])

    def _by_pytensor(self, step: PyTensorStep, error: EsatError) -> list[Any]:
        name = label(step.op)
        reason = str(error) if isinstance(error, NoRuleError) else f"{type(error).__name__}: {error}"
        shown = [str(variable.type) for variable in step.node.inputs]
        if self._strict:
            advice = 'mode="ESAT" runs it by PyTensor'
            raise StrictError(describe(name, shown, f"{reason}; {advice}", step.where)) from error
        try:
            with built_for(step.where):
                results = foreign(step)
        except NoRuleError as missing:
            raise GraphError(describe(name, shown, str(missing), step.where)) from error
        self._foreign[name] += 1
        self._reasons.setdefault(name, reason)
        return results

    def _rule_of(self, op: Any) -> Rule | None:
        names = [one.__name__ for one in type(op).__mro__]
        if "RandomVariable" in names:
            names = [op.name]
        elif type(op).__module__.startswith("pytensor.sparse"):  # where names are those of dense ops
            names = [f"sparse.{name}" for name in names]
        return next((self._rules[name] for name in names if name in self._rules), None)

    def _read(self, known: Mapping[Any, Any], variable: Any) -> Any:
        if variable in known:
            return known[variable]
        if not isinstance(variable, PyTensorConstant):
            shared = " (a shared variable)" if hasattr(variable, "get_value") else ""
            raise GraphError(f"from_pytensor: no input gives the value of {variable}{shared}")
        if variable not in self._constants:
            self._constants[variable] = self._constant(variable)
        return self._constants[variable]

    def _constant(self, variable: Any) -> Variable | None:
        made = constant_of(variable)
        if not isinstance(made, Constant) or not isinstance(made.data, np.ndarray):
            return made
        if self._bytes + made.data.nbytes <= LARGEST_CONSTANTS:
            self._bytes += made.data.nbytes
            return made
        argument = made.type.make_variable(variable.name)
        self.arguments.append((argument, made.data))
        return argument


class StrictError(GraphError):
    """An op without a rule where all are asked to have one."""


def _fitted(step: PyTensorStep, variable: Any, wanted: Any) -> Any:
    """A result in the dtype that PyTensor has it in; axes of size 1 are known to be so."""
    if not is_dense(wanted):
        sparse = isinstance(variable.type, SparseType) and variable.type.format != wanted.type.format
        return to_format(variable, wanted.type.format) if sparse else variable
    type = variable.tensor_type
    shape = getattr(wanted.type, "shape", ())
    if type.ndim != len(shape):
        reason = f"the rule of {label(step.op)} gives {type} where PyTensor has {wanted.type}"
        raise GraphError(
            describe("from_pytensor", [one.type for one in step.node.inputs], reason, step.where)
        )
    # Eigenvectors of complex matrices are said to be real in PyTensor: their imaginary parts are not dropped.
    same = type.dtype == wanted.type.dtype or (
        type.kind == "c" and label(step.op).strip("}").endswith("Eigh")
    )
    fitted = variable if same else cast(variable, wanted.type.dtype)
    sizes = zip(type.shape, shape, strict=True)
    ones = [1 if own is None and size == 1 else None for own, size in sizes]
    return specify_shape(fitted, ones) if 1 in ones else fitted


def _computed(step: PyTensorStep, results: list[Any]) -> list[Any]:
    """Results as constants, where they depend on small constants alone: axes, sizes and modes among them."""
    given = [*step.operands, *results]
    if not all(isinstance(one, Constant) for one in step.operands) or all(
        isinstance(one, Constant) for one in results
    ):
        return results
    if not all(isinstance(one.type, TensorType) for one in given) or sum(map(_elements, given)) > SMALL:
        return results
    try:
        values = evaluate(results)
    except EsatError:  # it belongs to the time at which the program runs
        return results
    return [constant(value, one.tensor_type.dtype) for value, one in zip(values, results, strict=True)]


def _elements(variable: Variable) -> float:
    shape = variable.tensor_type.shape
    return math.inf if None in shape else math.prod(size or 0 for size in shape)


def line_of(node: Any) -> UserLine | None:
    """The line of the user's that built a node: the innermost that is neither a library's nor ours."""
    found: UserLine | None = None
    for variable in node.outputs:
        for trace in getattr(variable.tag, "trace", None) or ():
            for entry in reversed(trace):
                file, line = entry[0], entry[1]
                if is_own(file):
                    continue
                if not file.startswith(libraries()):
                    return file, line
                found = found or (file, line)
    return found
