"""Reverse-mode differentiation, after Griewank and Walther, "Evaluating Derivatives", chapter 3."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, overload

from esat.errors import GradientError, describe
from esat.frontend.derivatives.stable import stable_form
from esat.graph.algorithms.traversal import toposort
from esat.graph.constants import constant
from esat.graph.op import as_variable
from esat.graph.registry import op_named, register_functions
from esat.graph.sparse_type import SparseType
from esat.graph.types import TensorType
from esat.graph.variables import Apply, Variable
from esat.ops.control import chosen
from esat.ops.index.basic import zeros_like
from esat.ops.sparse.structure import STORED_VALUES

__all__ = [
    "grad", "vjp",
]  # fmt: skip

Disconnected = Literal["raise", "zero"]


@dataclass(slots=True)
class Clock:
    """Time spent in something, added up.

    Attributes
    ----------
    seconds
        All of it, of every thread.
    """

    seconds: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time until this ends."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - begin


GRADIENT_CLOCK = Clock()
"""Time in all calls of :func:`grad` and :func:`vjp` in this process, which profiles tell."""


@overload
def grad(cost: Variable, wrt: Variable, disconnected: Disconnected = "raise") -> Variable: ...
@overload
def grad(cost: Variable, wrt: Sequence[Variable], disconnected: Disconnected = "raise") -> list[Variable]: ...
def grad(
    cost: Variable, wrt: Variable | Sequence[Variable], disconnected: Disconnected = "raise"
) -> Variable | list[Variable]:
    """The derivative of a scalar with respect to one Variable or several.

    For complex numbers the convention is JAX's: a real cost changes by ``Re(gradient * dx)``.

    Parameters
    ----------
    cost
        A float or complex scalar (rank 0).
    wrt
        Variables of float or complex dtype; they need not be inputs.
    disconnected
        What to do where the cost does not depend on a Variable: raise, or give zeros.

    Returns
    -------
    A Variable of the shape and dtype of ``wrt``, or a list of them; for a sparse matrix the vector of
    derivatives by its stored values, in the order of storage.

    Raises
    ------
    GradientError
        For a cost that is no scalar or not continuous, a Variable of integers, one the cost does not
        depend on, or an op without a gradient on the way.
    """
    if not isinstance(cost, Variable):
        raise GradientError(describe("grad", [repr(cost)], "the cost is not a Variable"))
    type = cost.tensor_type
    if type.ndim != 0:
        reason = "the cost must be a scalar; sum it, or use esat.vjp with cotangents"
        raise GradientError(describe("grad", [type], reason))
    check_continuous("the cost", cost)
    return vjp([cost], wrt, [constant(1, type.dtype)], disconnected)


@overload
def vjp(
    outputs: Sequence[Variable],
    wrt: Variable,
    cotangents: Sequence[Any],
    disconnected: Disconnected = "raise",
) -> Variable: ...
@overload
def vjp(
    outputs: Sequence[Variable],
    wrt: Sequence[Variable],
    cotangents: Sequence[Any],
    disconnected: Disconnected = "raise",
) -> list[Variable]: ...
def vjp(
    outputs: Sequence[Variable],
    wrt: Variable | Sequence[Variable],
    cotangents: Sequence[Any],
    disconnected: Disconnected = "raise",
) -> Variable | list[Variable]:
    """Vector-Jacobian products: the cotangents of ``wrt``, given those of ``outputs``.

    Parameters
    ----------
    outputs
        Variables of any rank.
    wrt, disconnected
        As for :func:`grad`.
    cotangents
        One for each output, of its dtype and rank.

    Raises
    ------
    GradientError
        As :func:`grad`, and when a cotangent does not fit its output.
    """
    single = isinstance(wrt, Variable)
    targets: list[Any] = list(wrt) if not single and isinstance(wrt, Iterable) else [wrt]
    for target in targets:
        if not isinstance(target, Variable):
            raise GradientError(describe("grad", [repr(target)], "can only differentiate by Variables"))
        check_continuous("the Variable to differentiate by", target)
    seeds = [as_variable(cotangent) for cotangent in cotangents]
    if len(seeds) != len(outputs):
        raise GradientError(f"vjp: {len(seeds)} cotangents for {len(outputs)} outputs")
    for output, seed in zip(outputs, seeds, strict=True):
        check_tangent("vjp", output, seed)
    with GRADIENT_CLOCK.running():
        connected, found = _accumulate(outputs, seeds, targets)
        results = [
            _finish(target, target in connected, found.get(target), disconnected) for target in targets
        ]
    return results[0] if single else results


def _accumulate(
    outputs: Sequence[Variable], seeds: Sequence[Variable], targets: Sequence[Variable]
) -> tuple[set[Variable], dict[Variable, Variable]]:
    """Variables among outputs and their ancestors that depend on a target or are one, with cotangents."""
    nodes = toposort(outputs)
    written = {variable for node in nodes for variable in (*node.inputs, *node.outputs)}
    dependent: set[Variable] = set(targets)
    _follow(nodes, dependent)
    found: dict[Variable, Variable] = {}
    reached: set[Variable] = set(outputs)
    for output, seed in zip(outputs, seeds, strict=True):
        _add(found, output, seed)
    for node in reversed(nodes):
        form = stable_part(node, written, targets) if found.get(node.outputs[0]) is not None else None
        if form is None:
            _pull_back(node, found, reached, dependent)
            continue
        parts = toposort([form], stop=written)
        _follow(parts, dependent)
        found[form] = found[node.outputs[0]]
        reached.add(form)
        for part in reversed(parts):
            _pull_back(part, found, reached, dependent)
    return reached.intersection(targets), found


def _follow(nodes: Sequence[Apply], dependent: set[Variable]) -> None:
    """Add the results of nodes, in topological order, that depend on what is in the set."""
    for node in nodes:
        if any(operand in dependent for operand in node.inputs):
            dependent.update(node.outputs)


def stable_part(node: Apply, written: set[Variable], targets: Collection[Variable]) -> Variable | None:
    """The form to go back through in place of what was written, unless a target stands on that way."""
    form = stable_form(node)
    if form is None:
        return None
    leaves = {operand for part in toposort([form], stop=written) for operand in part.inputs}
    inner = {operand for part in toposort(node.outputs, stop=leaves) for operand in part.inputs} - leaves
    return form if inner.isdisjoint(targets) else None


def _pull_back(
    node: Apply, found: dict[Variable, Variable], reached: set[Variable], dependent: set[Variable]
) -> None:
    """Add to the cotangents of a node's inputs what those of its outputs make of them."""
    if not reached.intersection(node.outputs):
        return
    on_the_way = [operand in dependent for operand in node.inputs]
    reached.update(operand for operand, used in zip(node.inputs, on_the_way, strict=True) if used)
    known = [found.get(output) for output in node.outputs]
    if not any(on_the_way) or all(cotangent is None for cotangent in known):
        return
    node.op.require_slopes(node, on_the_way)
    for operand, used, cotangent in zip(node.inputs, on_the_way, _pulled(node, known), strict=True):
        if used and cotangent is not None and tangent_type(operand) is not None:
            check_tangent(node.op.name, operand, cotangent, node)
            _add(found, operand, cotangent)


def _pulled(node: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
    """The cotangents of a node's inputs, those of a branch of ``ifelse`` only where it is taken."""
    choice = chosen(cotangents)
    if choice is None:
        return node.op.vjp(node, cotangents)
    parts = _pulled(node, choice.values)
    return [choice.otherwise_zeros(*pair) for pair in zip(parts, node.inputs, strict=True)]


def _add(found: dict[Variable, Variable], variable: Variable, cotangent: Variable) -> None:
    known = found.get(variable)
    found[variable] = cotangent if known is None else _sum(variable, known, cotangent)


def _sum(variable: Variable, *cotangents: Variable) -> Variable:
    choice = chosen(cotangents)
    if choice is not None:
        left, right = choice.values
        if left is not None and right is not None:
            result = choice.otherwise_zeros(_sum(variable, left, right), variable)
            if result is not None:
                return result
    added: Variable = op_named("add")(*cotangents)
    return added


def _finish(
    target: Variable, connected: bool, cotangent: Variable | None, disconnected: Disconnected
) -> Variable:
    if not connected and disconnected != "zero":
        reason = f'the cost does not depend on {target}; pass disconnected="zero" to get zeros'
        raise GradientError(describe("grad", [target.type], reason))
    if cotangent is not None:
        return cotangent
    return zeros_like(STORED_VALUES(target) if isinstance(target.type, SparseType) else target)


def tangent_type(variable: Variable) -> TensorType | None:
    """The type of a variable's cotangent; None where it has no derivatives."""
    type = variable.type.values if isinstance(variable.type, SparseType) else variable.type
    return type if isinstance(type, TensorType) and type.kind in "fc" else None


def check_continuous(role: str, variable: Variable) -> None:
    """Raise GradientError for a variable that has no derivatives."""
    if tangent_type(variable) is None:
        dtype = getattr(variable.type, "dtype", None)
        kind = f"type {variable.type}" if dtype is None else f"dtype {dtype}"
        reason = f"{role} has {kind}, which has no derivatives"
        raise GradientError(describe("grad", [variable.type], reason))


def check_tangent(name: str, variable: Variable, cotangent: Variable, node: Apply | None = None) -> None:
    """Raise GradientError unless a tangent or cotangent fits its variable."""
    wanted, given = tangent_type(variable), cotangent.tensor_type
    if wanted is None or (wanted.dtype == given.dtype and _sizes_fit(wanted, given)):
        return
    reason = f"its gradient has type {given} for an operand of type {wanted}"
    raise GradientError(describe(name, [wanted, given], reason, node.where if node is not None else None))


def _sizes_fit(left: TensorType, right: TensorType) -> bool:
    return left.ndim == right.ndim and all(
        None in pair or pair[0] == pair[1] for pair in zip(left.shape, right.shape, strict=True)
    )


register_functions({"tangent_type": tangent_type, "vjp": vjp})
