"""Assumptions after they have served: none is left in a program, and debug mode checks all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from esat.errors import AssertionFailed, describe
from esat.graph import FunctionGraph, Variable
from esat.graph.algorithms.evaluate import computed, evaluate
from esat.ops.annotations.assume import Assume
from esat.ops.inference.structure import holds, shaped


def remove_assumptions(graph: FunctionGraph) -> None:
    """Put the operands of assumptions in their place. Saturation has done so; classic optimizers have not."""
    for node in graph.toposort():
        if isinstance(node.op, Assume):
            graph.replace(node.outputs[0], node.inputs[0], "remove_assumptions")


def check_assumptions(graph: FunctionGraph, known: Mapping[Variable, Any]) -> None:
    """Raise AssertionFailed, naming the user's line, unless all that is assumed is true of the values.

    Parameters
    ----------
    graph
        As the user wrote it.
    known
        Values of its inputs.
    """
    nodes = [node for node in graph.toposort() if isinstance(node.op, Assume)]
    values = computed(graph.outputs, known) if nodes else {}
    for node in nodes:
        if node.outputs[0] not in values:
            continue  # in a branch that is not taken
        value = evaluate(node.inputs[0], values)
        assert isinstance(node.op, Assume)
        for fact in node.op.facts:
            if not holds(fact, value):
                shown = f"{value.dtype.name} of shape {np.shape(value)}"
                raise AssertionFailed(describe("assume", [shown], f"the value is not {fact}", node.where))


def satisfying(graph: FunctionGraph, sample: list[Any]) -> list[Any]:
    """A sample of a graph's inputs, moved to where what is assumed of the inputs themselves holds."""
    places = {variable: place for place, variable in enumerate(graph.inputs)}
    facts: dict[int, list[str]] = {}
    for node in graph.toposort():
        if isinstance(node.op, Assume):
            source = node.inputs[0]
            while source.owner is not None and isinstance(source.owner.op, Assume):
                source = source.owner.inputs[0]
            if source in places:
                facts.setdefault(places[source], []).extend(node.op.facts)
    return [shaped(value, facts[place]) if place in facts else value for place, value in enumerate(sample)]
