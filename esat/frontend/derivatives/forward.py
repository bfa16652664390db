"""Forward-mode differentiation, after Griewank and Walther, "Evaluating Derivatives", chapter 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esat.errors import GradientError
from esat.frontend.derivatives.gradient import check_continuous, check_tangent, stable_part, tangent_type, vjp
from esat.graph.algorithms.copying import clone
from esat.graph.algorithms.traversal import ancestors, toposort
from esat.graph.op import as_variable
from esat.graph.registry import register_functions
from esat.graph.sparse_type import SparseType
from esat.graph.variables import Apply, Variable
from esat.ops.index.basic import zeros_like
from esat.ops.sparse.structure import STORED_VALUES


def push_forward(
    outputs: Sequence[Variable], wrt: Sequence[Variable], tangents: Sequence[Any]
) -> list[Variable]:
    """Jacobian-vector products: the tangents of outputs, given those of Variables they depend on.

    Parameters
    ----------
    outputs
        Variables of any rank.
    wrt
        Variables of float or complex dtype; they need not be inputs.
    tangents
        One for each of ``wrt``, of its dtype and rank.

    Raises
    ------
    GradientError
        For Variables that are not continuous, a tangent that does not fit, or an op without a gradient on
        the way.
    """
    if len(wrt) != len(tangents):
        raise GradientError(f"jvp: {len(tangents)} tangents for {len(wrt)} Variables")
    found: dict[Variable, Variable] = {}
    for variable, given in zip(wrt, tangents, strict=True):
        check_continuous("the Variable to differentiate by", variable)
        found[variable] = as_variable(given)
        check_tangent("jvp", variable, found[variable])
    targets = set(wrt)
    nodes = toposort(outputs)
    written = {variable for node in nodes for variable in (*node.inputs, *node.outputs)}
    for node in nodes:
        _push(node, written, targets, found)
    results = []
    for output in outputs:
        check_continuous("the result", output)
        tangent = found.get(output)
        results.append(zero_tangent(output) if tangent is None else tangent)
    return results


def _push(
    node: Apply, written: set[Variable], targets: set[Variable], found: dict[Variable, Variable]
) -> None:
    """Add the tangents of a node's outputs, those that have one."""
    if all(found.get(operand) is None for operand in node.inputs):
        return
    form = stable_part(node, written, targets)
    parts = [node] if form is None else toposort([form], stop=written)
    for part in parts:
        given = [found.get(operand) for operand in part.inputs]
        if all(tangent is None for tangent in given):
            continue
        for output, tangent in zip(part.outputs, part.op.jvp(part, given), strict=True):
            if tangent is not None and output not in targets:
                check_tangent(part.op.name, output, tangent, part)
                found[output] = tangent
    if form is not None and form in found and node.outputs[0] not in targets:
        found[node.outputs[0]] = found[form]


def zero_tangent(variable: Variable) -> Variable:
    """The tangent of what does not change."""
    return zeros_like(STORED_VALUES(variable) if isinstance(variable.type, SparseType) else variable)


def transposed_vjp(node: Apply, tangents: Sequence[Variable | None]) -> list[Variable | None]:
    """Tangents of a node's outputs by its gradient alone, which is linear in the cotangents.

    The transpose of a linear map is its own gradient: what ``cotangents -> vjp`` is for the inputs' tangents
    as cotangents is the map from tangents of inputs to those of outputs.
    """
    types = [tangent_type(output) for output in node.outputs]
    seeds = [None if type is None else type.make_variable() for type in types]
    pulled = node.op.vjp(node, seeds)
    pairs = [
        (part, tangent)
        for part, tangent in zip(pulled, tangents, strict=True)
        if part is not None and tangent is not None
    ]
    wanted = [seed for seed in seeds if seed is not None]
    if not pairs or not wanted:
        return [None] * len(node.outputs)
    parts = vjp([part for part, _ in pairs], wanted, [tangent for _, tangent in pairs], "zero")
    # A linear map has one derivative everywhere: nothing is left of the seeds but shapes, for which zeros do.
    zeros = {
        seed: zero_tangent(output)
        for seed, output in zip(seeds, node.outputs, strict=True)
        if seed is not None
    }
    reads = {*zeros}.intersection(ancestors(parts))
    results = iter(clone(parts, zeros)[0] if reads else parts)
    return [None if seed is None else next(results) for seed in seeds]


register_functions(
    {"push_forward": push_forward, "transposed_vjp": transposed_vjp, "zero_tangent": zero_tangent}
)
