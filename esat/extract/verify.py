"""Verifiers: what the stages after extraction rely on."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np

from esat.errors import CompileError
from esat.extract.arrays import EGraphArrays, FloatArray, IntArray
from esat.extract.choice.selection import Selection


def topological_classes(arrays: EGraphArrays, chosen: IntArray, roots: Sequence[int] | IntArray) -> list[int]:
    """The classes a selection computes, operands before users.

    Raises
    ------
    CompileError
        A needed class has no chosen e-node, or the selection is cyclic.
    """
    start, children = arrays.operand_lists
    choice = chosen.tolist()
    order: list[int] = []
    done: set[int] = set()
    open_classes: set[int] = set()
    pending = [int(root) for root in reversed(list(roots))]
    while pending:
        klass = pending[-1]
        if klass in done:
            pending.pop()
        elif klass in open_classes:
            pending.pop()
            open_classes.remove(klass)
            done.add(klass)
            order.append(klass)
        else:
            node = choice[klass]
            if node < 0:
                raise CompileError(f"extraction: class {klass} is needed and nothing was chosen for it")
            open_classes.add(klass)
            below = [
                child for child in reversed(children[start[node] : start[node + 1]]) if child not in done
            ]
            for child in below:
                if child in open_classes:
                    raise CompileError(
                        f"extraction: class {klass} depends on itself through {arrays.describe(node)}"
                    )
            pending += below
    return order


def verify_selection(
    arrays: EGraphArrays,
    costs: Sequence[float] | FloatArray,
    roots: Sequence[int] | IntArray,
    selection: Selection,
) -> None:
    """Check a selection: complete, acyclic, e-nodes of their own classes, nothing superfluous, cost as
    stated.

    Raises
    ------
    CompileError
        Naming the class at fault.
    """
    chosen = selection.chosen
    if chosen.shape != (arrays.class_count,):
        raise CompileError(
            f"extraction: {arrays.class_count} classes, but a selection of shape {chosen.shape}"
        )
    live = np.flatnonzero(chosen >= 0)
    if len(live) and chosen.max() >= arrays.node_count:
        raise CompileError("extraction: a chosen e-node does not exist")
    astray = live[arrays.class_of[chosen[live]] != live]
    if len(astray):
        raise CompileError(f"extraction: class {astray[0]} was given an e-node of another class")
    needed = topological_classes(arrays, chosen, roots)
    if len(needed) != len(live):
        raise CompileError(f"extraction: {len(live) - len(needed)} classes were chosen that no root needs")
    total = fsum(np.asarray(costs, np.float64)[chosen[live]].tolist())
    if total != selection.cost:
        raise CompileError(f"extraction: the selection costs {total} s, not {selection.cost} s as stated")
    if selection.lower_bound > selection.cost:
        raise CompileError(
            f"extraction: the bound {selection.lower_bound} s exceeds the cost {selection.cost} s"
        )


def verify_arrays(arrays: EGraphArrays) -> None:
    """Check the shape and index ranges of an e-graph's arrays.

    Raises
    ------
    CompileError
        Naming the array at fault.
    """
    nodes, classes = arrays.node_count, arrays.class_count
    indices = (
        ("operator", arrays.operator, nodes, len(arrays.operator_names)),
        ("class_of", arrays.class_of, nodes, classes),
        ("attribute", arrays.attribute, nodes, len(arrays.attribute_values)),
        ("operands", arrays.operands, int(arrays.operand_start[-1]), classes),
    )
    for name, vector, length, limit in indices:
        if vector.shape != (length,) or (length and not 0 <= vector.min() <= vector.max() < limit):
            raise CompileError(f"read-out: {name} has a wrong length or an index out of range")
    for name, starts, rows in (
        ("operand_start", arrays.operand_start, nodes),
        ("class_start", arrays.class_start, classes),
    ):
        if starts.shape != (rows + 1,) or starts[0] != 0 or (np.diff(starts) < 0).any():
            raise CompileError(f"read-out: {name} is no row index")
    if (np.diff(arrays.class_of) < 0).any() or arrays.class_start[-1] != nodes:
        raise CompileError("read-out: e-nodes are not sorted by class")
    if len(arrays.term_class) and not -1 <= arrays.term_class.min() <= arrays.term_class.max() < classes:
        raise CompileError("read-out: a term has a class out of range")
