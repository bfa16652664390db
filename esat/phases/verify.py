"""Checks of what the next stage relies on."""

from __future__ import annotations

from esat.errors import CompileError
from esat.graph import Constant, Family, FunctionGraph, SharedVariable, Variable
from esat.phases.group import FusionPlan, Group
from esat.phases.shape_values import ShapeFacts


def verify_fusion(plan: FusionPlan, graph: FunctionGraph) -> None:
    """Raise CompileError unless the plan computes the graph.

    Every node is in exactly one group, or idle; every group's inputs are the graph's, Constants, shared
    variables, or outputs of earlier groups; what is read outside a group is among its outputs; no
    view is an output of a kernel; and the outputs of the graph are covered.
    """
    available: set[Variable] = {*graph.inputs, *ShapeFacts(graph).decided}
    placed = {id(node) for node in plan.idle}
    for group in plan.groups:
        _verify_group(group, available)
        for node in group.nodes:
            if id(node) in placed:
                raise CompileError(f"fusion: {node} is in more than one group")
            placed.add(id(node))
        available.update(group.outputs)
    missing = [node for node in graph.toposort() if id(node) not in placed]
    if missing or len(placed) != len(graph.toposort()):
        raise CompileError(f"fusion: {len(placed)} nodes are in groups; not in any: {missing[:3]}")
    for output in graph.outputs:
        if output not in available and not isinstance(output, (Constant, SharedVariable)):
            raise CompileError(f"fusion: no group computes the graph's output {output}")


def _verify_group(group: Group, available: set[Variable]) -> None:
    if group.kind not in ("kernel", "library", "view") or not group.nodes:
        raise CompileError(f"fusion: malformed group {group}")
    if group.kind != "kernel" and len(group.nodes) != 1:
        raise CompileError(f"fusion: {group} has {len(group.nodes)} nodes; only kernels have several")
    known = set(group.inputs)
    for variable in group.inputs:
        if variable not in available and not isinstance(variable, (Constant, SharedVariable)):
            raise CompileError(f"fusion: {group} reads {variable} before it is computed")
    for node in group.nodes:
        for variable in node.inputs:
            if variable not in known:
                raise CompileError(f"fusion: {group} computes {node} before its operand {variable}")
        known.update(node.outputs)
    computed = {output for node in group.nodes for output in node.outputs}
    for output in group.outputs:
        if output not in computed:
            raise CompileError(f"fusion: {group} does not compute its output {output}")
        if group.kind == "kernel" and output.owner is not None and output.owner.op.family is Family.VIEW:
            raise CompileError(f"fusion: {group} would have to write its view {output} to memory")
