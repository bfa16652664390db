"""Phases after the choice: seconds of work in place, of fusion and of the memory plan, by size of the graph.

Run ``python -m benchmarks.phases``. ``writes`` is a chain of inc_subtensor, each written over the one before
it, with readers of earlier values in between; ``elementwise`` a chain of random elementwise ops and sums;
``users`` the first with a user's local optimizer that works in place, which the destroy handler checks at
each single replacement.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import time
from collections.abc import Callable
from math import log

import esat
from esat import codegen
from esat.base.collection import without_old_objects
from esat.classic import TopoOptimizer, local_optimizer
from esat.graph import Apply, FunctionGraph, Variable
from esat.ops.index.basic import IncSubtensor
from esat.phases.fusing.fusion import fuse
from esat.phases.memory.destroy import DestroyHandler
from esat.phases.memory.effects import Permissions
from esat.phases.memory.inplace import work_in_place
from esat.phases.memory.memory_plan import plan_memory
from esat.phases.shape_values import ShapeFacts

TARGET_SECONDS = 1.0
"""For work in place on 10,000 nodes."""

TARGET_EXPONENT = 1.3


def writes(nodes: int) -> FunctionGraph:
    """Two nodes in five write to a part of the result before them; the others read earlier results."""
    rng = random.Random(0)
    x = esat.vector("x")
    chain = [x]
    for number in range(2 * nodes // 5):
        chain.append(esat.inc_subtensor(chain[-1][number % 7 :], 1.0))
    readers = [rng.choice(chain[1:-1]).sum() for _ in range(nodes // 5)]
    return FunctionGraph([x], [chain[-1], *readers])


def elementwise(nodes: int) -> FunctionGraph:
    """Elementwise ops on recent results, and a sum over an axis now and then."""
    rng = random.Random(0)
    x = esat.matrix("x")
    values = [x]
    while len(values) < nodes:
        one, other = rng.choice(values[-5:]), rng.choice(values[-5:])
        kind = rng.random()
        if kind < 0.1:
            values.append(one - other.sum(axis=0))
        else:
            values.append(esat.tanh(one) if kind < 0.5 else one + other)
    return FunctionGraph([x], values[-3:])


@local_optimizer([IncSubtensor])
def in_place(node: Apply) -> list[Variable] | bool:
    """A user's optimizer: each write where it stands."""
    if node.op.destroy_map:
        return False
    made = dataclasses.replace(node.op, inplace=True).make_node(*node.inputs)
    return list(made.outputs)


def users(graph: FunctionGraph) -> object:
    """Replace each write, if the destroy handler lets it."""
    graph.attach_feature(DestroyHandler())
    return TopoOptimizer(in_place, revisit=False).optimize(graph)


def plan(graph: FunctionGraph) -> object:
    """Fusion and the memory plan."""
    return plan_memory(fuse(graph, codegen), graph, ShapeFacts(graph))


CASES: dict[str, tuple[Callable[[int], FunctionGraph], Callable[[FunctionGraph], object], int]] = {
    "in place: writes": (writes, lambda graph: work_in_place(graph, Permissions()), 10_000),
    "fusion: elementwise": (elementwise, lambda graph: fuse(graph, codegen), 5_000),
    "fusion and memory plan: writes": (writes, plan, 5_000),
    "in place, users' optimizer: writes": (writes, users, 10_000),
}


def seconds(
    build: Callable[[int], FunctionGraph], run: Callable[[FunctionGraph], object], nodes: int
) -> float:
    """The best of three runs, each on a graph of its own."""
    best = float("inf")
    for _ in range(3):
        graph = build(nodes)
        begin = time.process_time()
        with without_old_objects():  # as in compilation
            run(graph)
        best = min(best, time.process_time() - begin)
    return best


def main() -> int:
    """Print one line a case; the number of targets missed."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    missed = 0
    print(f"{'':38s}{'nodes':>8s}{'seconds':>10s}{'exponent':>10s}")
    for name, (build, run, nodes) in CASES.items():
        quarter, whole = (seconds(build, run, count) for count in (nodes // 4, nodes))
        exponent = log(whole / quarter) / log(4)
        print(f"{name:38s}{len(build(nodes)):8d}{whole:10.3f}{exponent:10.2f}", flush=True)
        if nodes == 10_000:
            missed += (whole > TARGET_SECONDS) + (exponent > TARGET_EXPONENT)
    print(f"target: {TARGET_SECONDS:g} s for 10,000 nodes in place, exponent {TARGET_EXPONENT:g}")
    return missed


if __name__ == "__main__":
    sys.exit(main() > 0)
