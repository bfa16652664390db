"""Extraction: how close the choice comes to the proven optimum, and what it costs.

Run ``python -m benchmarks.extraction``. Each graph is saturated with all rules that come with esat; then the
same e-graph and the same costs go to the tree extractor, to the greedy-DAG extractor that is usual in
equality saturation, to esat's own and, for the optimum, to the integer program (HiGHS). Costs are shown
against the optimum, or against the integer program's lower bound where it proved none in time.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

import numpy as np

import esat
from benchmarks.saturation import random_chains
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.schedule import Budgets
from esat.errors import EsatWarning
from esat.extract.choice.choose import choose
from esat.extract.extraction import SaturatedGraph, extract
from esat.extract.prices.class_values import Hints
from esat.extract.prices.cost import CostModel
from esat.extract.prices.expected_shapes import hints_of
from esat.extract.prices.machine import machine_profile
from esat.graph import FunctionGraph
from esat.optimize.equality.search import saturated
from esat.rules import RULES
from esat.rules.language.query import Query

TARGET_RATIO = 1.01
TARGET_SHARE = 0.05


@dataclass(frozen=True)
class Row:
    """One graph: seconds of the choices, of saturation and of extraction."""

    name: str
    e_nodes: int
    tree: float
    greedy: float
    area: float
    optimum: float
    proven: bool
    saturation: float
    loading: float
    extraction: float
    integer_program: float


Case = tuple[FunctionGraph, tuple[tuple[int, ...], ...]]
"""A graph, and the shapes of its inputs where the types leave them open."""


def training_step(*sizes: int, batch: int = 64) -> Case:
    """A perceptron's step of gradient descent with momentum and weight decay."""
    rng = np.random.default_rng(0)
    images, classes = esat.matrix("images"), esat.matrix("classes")
    pairs = list(pairwise(sizes))
    weights = [esat.shared(rng.normal(size=pair), name="w") for pair in pairs]
    biases = [esat.shared(np.zeros(pair[1]), name="b") for pair in pairs]
    layer = images
    for weight, bias in list(zip(weights, biases, strict=True))[:-1]:
        layer = esat.tanh(layer @ weight + bias)
    scores = layer @ weights[-1] + biases[-1]
    loss = -(classes * esat.log(esat.softmax(scores, axis=1))).sum(axis=1).mean()
    cost = loss + 1e-4 * sum(((weight**2).sum() for weight in weights), esat.constant(0.0))
    parameters = [parameter for pair in zip(weights, biases, strict=True) for parameter in pair]
    updates = {}
    for parameter, gradient in zip(parameters, esat.grad(cost, parameters), strict=True):
        velocity = esat.shared(np.zeros_like(parameter.get_value()), name="v")
        step = 0.9 * velocity - 0.1 * gradient
        updates[velocity], updates[parameter] = step, parameter + step
    graph = esat.Graph([images, classes], [cost], updates=updates).function_graph()
    return graph, ((batch, sizes[0]), (batch, sizes[-1]))


def shared_sums(variables: int, outputs: int) -> Case:
    """Sums of random subsets of variables, each under an exponential."""
    rng = random.Random(variables)
    inputs = [esat.matrix(f"x{number}") for number in range(variables)]
    results = []
    for _ in range(outputs):
        first, *rest = rng.sample(inputs, rng.randint(3, variables - 1))
        results.append(esat.exp(sum(rest, first)))
    return FunctionGraph(inputs, results), ()


def sums_of_products(variables: int, outputs: int) -> Case:
    """Random sums of products of a few variables, each under a tangent: much to factor, in many ways."""
    rng = random.Random(outputs)
    inputs = [esat.matrix(f"x{number}") for number in range(variables)]
    results = []
    for _ in range(outputs):
        products = []
        for _ in range(rng.randint(2, 4)):
            product = rng.choice(inputs)
            for factor in rng.sample(inputs, rng.randint(1, 2)):
                product = product * factor
            products.append(product)
        results.append(esat.tanh(sum(products[1:], products[0])))
    return FunctionGraph(inputs, results), ()


def product_chains(length: int, outputs: int) -> Case:
    """Overlapping chains of matrix products with sizes from 8 to 512."""
    rng = random.Random(length)
    sizes = [rng.choice([8, 16, 32, 64, 128, 256, 512]) for _ in range(length + 1)]
    factors = [esat.tensor(f"x{number}", shape=pair) for number, pair in enumerate(pairwise(sizes))]
    results = []
    for number in range(outputs):
        first = 0 if number == 0 else rng.randint(0, length - 3)
        last = length if number == 0 else rng.randint(first + 2, length)
        product = factors[first]
        for factor in factors[first + 1 : last]:
            product = product @ factor
        results.append(product)
    return FunctionGraph(factors, results), ()


CASES: dict[str, Callable[[], Case]] = {
    "digits step (64-128-64-10)": lambda: training_step(64, 128, 64, 10),
    "MLP step 784-256-10": lambda: training_step(784, 256, 10),
    "MLP step, 5 layers of 100": lambda: training_step(100, 100, 100, 100, 100, 10, batch=32),
    "MLP step, 9 layers of 50": lambda: training_step(*[50] * 9, 10, batch=128),
    "random chains, 500 terms": lambda: (random_chains(500), ()),
    "random chains, 2000 terms": lambda: (random_chains(2000), ()),
    "shared sums, 8 variables": lambda: shared_sums(8, 8),
    "shared sums, 12 variables": lambda: shared_sums(12, 16),
    "sums of products, 6 x 8": lambda: sums_of_products(6, 8),
    "sums of products, 8 x 16": lambda: sums_of_products(8, 16),
    "product chain of 8, 4 outputs": lambda: product_chains(8, 4),
    "product chain of 15, 6 outputs": lambda: product_chains(15, 6),
    "product chain of 30, 11 outputs": lambda: product_chains(30, 11),
}


def saturate(build: Callable[[], Case]) -> tuple[SaturatedGraph, Hints, float, float]:
    """A saturated case; seconds of saturation, and of loading and reading out beside it."""
    graph, shapes = build()
    terms = encode(graph)
    program = program_for(RULES.query(Query(include=("fast_run",))))
    begin = time.perf_counter()
    found, report = saturated(terms, program, Budgets())
    loading = time.perf_counter() - begin - report.seconds
    return found, hints_of(terms, shapes), report.seconds, loading


def greedy_dag(graph: SaturatedGraph, costs: np.ndarray) -> float:
    """Seconds of the choice by egg's greedy-DAG extractor: bottom up, each class with the set it needs."""
    arrays = graph.arrays
    operands = [sorted(set(arrays.operands_of(node).tolist())) for node in range(arrays.node_count)]
    known: dict[int, tuple[float, dict[int, float]]] = {}
    changed = True
    while changed:
        changed = False
        for node in range(arrays.node_count):
            klass = int(arrays.class_of[node])
            if not np.isfinite(costs[node]) or any(operand not in known for operand in operands[node]):
                continue
            needed: dict[int, float] = {}
            for operand in operands[node]:
                needed.update(known[operand][1])
            if klass in needed:
                continue
            needed[klass] = float(costs[node])
            total = sum(needed.values())
            if klass not in known or total < known[klass][0] * (1.0 - 1e-12):
                known[klass] = total, needed
                changed = True
    union: dict[int, float] = {}
    for root in graph.roots:
        for klass, cost in known[root][1].items():
            union[klass] = min(cost, union.get(klass, cost))
    return sum(union.values())


def measure(name: str, build: Callable[[], Case], limit: float) -> Row:
    """All extractors on one case."""
    saturate(build)  # rules and kernels are loaded
    graph, hints, saturation, loading = saturate(build)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        # A new model: one that knows the prices already would be faster than a compilation is.
        found = extract(graph, CostModel(machine_profile(), graph.terms.opaque), hints)
        times.append(time.perf_counter() - begin)
    area, costs = found.selection, found.costs + found.penalties
    tree = choose(graph.arrays, costs, graph.roots, method="tree")
    begin = time.perf_counter()
    optimal = choose(graph.arrays, costs, graph.roots, method="optimal", time_limit=limit)
    took = time.perf_counter() - begin
    proven = optimal.gap < 1e-6
    return Row(
        name,
        graph.arrays.node_count,
        tree.cost,
        greedy_dag(graph, costs),
        area.cost,
        optimal.cost if proven else optimal.lower_bound,
        proven,
        saturation,
        loading,
        min(times),
        took,
    )


def main() -> int:
    """Print the table; how many of the two targets are missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each integer program")
    options = parser.parse_args()
    warnings.simplefilter("ignore", EsatWarning)
    print(
        f"{'':34s}{'e-nodes':>8s}{'optimum':>12s}{'tree':>8s}{'greedy':>8s}{'esat':>8s}"
        f"{'extract':>11s}{'of saturation':>15s}{'program':>10s}"
    )
    rows = []
    for name, build in CASES.items():
        row = measure(name, build, options.limit)
        rows.append(row)
        ratios = "".join(f"{cost / row.optimum:8.4f}" for cost in (row.tree, row.greedy, row.area))
        mark = " " if row.proven else ">"
        print(
            f"{name:34s}{row.e_nodes:8d}{mark}{row.optimum * 1e6:8.1f} us{ratios}"
            f"{row.extraction * 1e3:8.1f} ms{row.extraction / row.saturation:14.1%}"
            f"{row.integer_program:8.2f} s",
            flush=True,
        )
    proven = [row for row in rows if row.proven]
    means = [
        exp(sum(log(getattr(row, kind) / row.optimum) for row in proven) / len(proven))
        for kind in ("tree", "greedy", "area")
    ]
    share = sum(row.extraction for row in rows) / sum(row.saturation for row in rows)
    whole = sum(row.extraction for row in rows) / sum(row.saturation + row.loading for row in rows)
    print(
        f"geometric mean over the {len(proven)} proven optima: tree {means[0]:.4f}, greedy {means[1]:.4f},"
        f" esat {means[2]:.4f} (target {TARGET_RATIO})"
    )
    print(
        f"extraction takes {share:.1%} of saturation (target {TARGET_SHARE:.0%}),"
        f" {whole:.1%} of loading, saturation and read-out"
    )
    return (means[2] > TARGET_RATIO) + (share > TARGET_SHARE)


if __name__ == "__main__":
    sys.exit(main() > 0)
