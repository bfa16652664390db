"""Saturation: what it finds, in what time, and how time and memory grow.

Run ``python -m benchmarks.saturation``. All rules that come with esat are on. The first rows time saturation
alone; those from a graph to a decoded graph are all of an optimization: encoding, loading, saturation,
read-out, extraction and decoding.
Every figure stands beside what it must reach; a row that misses its target is marked.
"""

from __future__ import annotations

import gc
import math
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import esat
from esat.egraph.engine import Engine
from esat.egraph.language.encode import encode
from esat.egraph.language.loader import flatten, load
from esat.egraph.preparation.prepare import prepared, prepared_engine
from esat.egraph.preparation.rule_program import RuleProgram, program_for
from esat.egraph.saturation.saturate import saturate
from esat.egraph.saturation.saturation_report import SaturationReport
from esat.egraph.saturation.schedule import Budgets
from esat.graph import FunctionGraph, TensorType, Variable, toposort
from esat.graph.registry import registered_ops
from esat.optimize.equality.optimizer import optimize
from esat.rules import RULES
from esat.rules.language.query import Query

MATRIX = TensorType("float64", shape=(None, None))
ROW = TensorType("float64", shape=(1, None))
SCALAR = TensorType("float64", shape=())
OPS = {op.constructor: op for op in registered_ops()}


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure, what it must reach, and whether it did."""

    case: str
    figure: str
    target: str
    reached: bool


class Builder:
    """Builds graphs of float64 matrices."""

    def __init__(self) -> None:
        self.inputs: list[Variable] = []

    def input(self, type: TensorType = MATRIX) -> Variable:
        self.inputs.append(type.make_variable(f"x{len(self.inputs)}"))
        return self.inputs[-1]

    def op(self, constructor: str, *operands: Variable | float) -> Variable:
        result = OPS[constructor](*operands)
        assert isinstance(result, Variable)
        return result

    def chain(self, constructor: str, operands: list[Variable]) -> Variable:
        result = operands[0]
        for operand in operands[1:]:
            result = self.op(constructor, result, operand)
        return result

    def graph(self, *roots: Variable) -> FunctionGraph:
        return FunctionGraph(self.inputs, list(roots), clone=False)


def sum_of(count: int) -> FunctionGraph:
    build = Builder()
    return build.graph(build.chain("Add", [build.input() for _ in range(count)]))


def far_cancellation(count: int) -> FunctionGraph:
    """A sum with one term twice, far apart, once negative."""
    build = Builder()
    terms = [build.input() for _ in range(count - 1)]
    return build.graph(build.op("Sub", build.chain("Add", terms), terms[count // 3]))


def expanded_product(size: int) -> FunctionGraph:
    """The expanded product of two sums, with the product itself."""
    build = Builder()
    left, right = ([build.input() for _ in range(size)] for _ in range(2))
    expanded = build.chain("Add", [build.op("Mul", a, b) for a in left for b in right])
    factored = build.op("Mul", build.chain("Add", left), build.chain("Add", right))
    return build.graph(expanded, factored)


def polynomial(degree: int) -> FunctionGraph:
    """A polynomial as a sum of powers, with its Horner form."""
    build = Builder()
    x = build.input()
    coefficients = [build.input(SCALAR) for _ in range(degree + 1)]
    powers = [build.chain("Mul", [c, *[x] * k]) for k, c in enumerate(coefficients)]
    expanded = build.chain("Add", powers)
    horner = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        horner = build.op("Add", build.op("Mul", horner, x), coefficient)
    return build.graph(expanded, horner)


def perceptron(layers: int) -> FunctionGraph:
    """A multilayer perceptron with its gradient step, as back-propagation writes it."""
    build = Builder()
    op, x, y = build.op, build.input(), build.input()
    rate, decay, one, zero = 0.01, 1e-4, 1.0, 0.0
    hidden, weights, biases = [x], [], []
    for layer in range(layers):
        weights.append(build.input())
        biases.append(build.input(ROW))
        z = op("Add", esat.matmul(hidden[-1], weights[-1]), biases[-1])
        if layer % 3 == 0:
            hidden.append(op("Tanh", z))
        elif layer % 3 == 1:
            hidden.append(op("Div", one, op("Add", one, op("Exp", op("Neg", z)))))
        else:
            hidden.append(op("Maximum", z, zero))
    loss = esat.sum(op("Mul", y, op("Log", hidden[-1])))
    outputs = [op("Neg", loss)]
    slope = op("Sub", hidden[-1], y)
    for layer in reversed(range(layers)):
        gradient = op("Add", esat.matmul(hidden[layer].T, slope), op("Mul", decay, weights[layer]))
        outputs.append(op("Sub", weights[layer], op("Mul", rate, gradient)))
        outputs.append(op("Sub", biases[layer], op("Mul", rate, esat.sum(slope, axis=0, keepdims=True))))
        if layer == 0:
            break
        back, value = esat.matmul(slope, weights[layer].T), hidden[layer]
        if (layer - 1) % 3 == 0:
            slope = op("Mul", back, op("Sub", one, op("Mul", value, value)))
        elif (layer - 1) % 3 == 1:
            slope = op("Mul", back, op("Mul", value, op("Sub", one, value)))
        else:
            slope = op("Switch", op("Lt", zero, value), back, zero)
    return build.graph(*outputs)


def random_chains(size: int, seed: int = 0) -> FunctionGraph:
    """Long random chains of arithmetic that share their parts, at least ``size`` nodes."""
    chooser = random.Random(seed)
    build = Builder()
    leaves = [build.input() for _ in range(20)] + [build.input(ROW) for _ in range(5)]
    pool, outputs = list(leaves), []
    nodes = 0
    while nodes < size:
        kind = chooser.choice(["Add", "Mul", "mixed"])
        x = chooser.choice(pool)
        for _ in range(chooser.randint(3, 30)):
            op = kind if kind != "mixed" else chooser.choice(["Add", "Mul", "Sub", "Div"])
            x = build.op(op, x, chooser.choice(pool if chooser.random() < 0.4 else leaves))
            nodes += 1
            if chooser.random() < 0.1:
                nodes += 1
                x = build.op(chooser.choice(["Exp", "Tanh", "Neg", "Sqr", "Log"]), x)
        pool.append(x)
        outputs.append(x)
    used = {id(variable) for node in toposort(outputs) for variable in node.inputs}
    return build.graph(*(output for output in outputs if id(output) not in used))


@dataclass(frozen=True)
class Outcome:
    """One run: seconds of each stage and of all, and whether what should be equal was found to be."""

    stages: dict[str, float]
    total: float
    report: SaturationReport
    found: bool = True


def run(program: RuleProgram, graph: FunctionGraph, equal: bool = False) -> Outcome:
    """Load, saturate and freeze one graph; ``equal``: all outputs should be one class in the end."""
    begun = time.perf_counter()
    terms = encode(graph)
    engine = prepared_engine(program, terms)
    load(engine, terms, flatten(terms, program.strict))
    report = saturate(engine, prepared(program).schedule_for(terms), Budgets(), program.constructors)
    frozen = engine.freeze()
    total = time.perf_counter() - begun
    found = not equal or len(_classes(engine, frozen, terms.roots)) == 1
    return Outcome({"saturate": report.seconds}, total, report, found)


def _classes(engine: Engine, frozen: object, numbers: tuple[int, ...]) -> set[int]:
    rows = frozen.functions["N"].rows  # type: ignore[attr-defined]
    classes = {engine.values.value_to_i64(row.inputs[0]): hash(row.output) for row in rows}
    return {classes[number] for number in numbers}


def compile_graph(program: RuleProgram, graph: FunctionGraph) -> Outcome:
    """All of an optimization, from the graph to the decoded graph."""
    stages: dict[str, float] = {}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        stages[name] = stages.get(name, 0.0) + time.perf_counter() - begun

    begun = time.perf_counter()
    _, report = optimize(graph, program, Budgets(), stage=stage)
    total = time.perf_counter() - begun
    assert report.saturation is not None
    return Outcome(stages, total, report.saturation)


def best(repeat: int, runs: Callable[[], Outcome]) -> Outcome:
    return min((runs() for _ in range(repeat)), key=lambda outcome: outcome.total)


def small_rows(program: RuleProgram) -> Iterator[Row]:
    for count, limit in ((12, 5.0), (200, 10.0)):
        outcome = best(3, lambda count=count: run(program, sum_of(count)))  # type: ignore[misc]
        milliseconds = outcome.stages["saturate"] * 1e3
        linear = outcome.report.nodes <= 3 * count and outcome.report.complete
        figure = f"{milliseconds:.1f} ms, {outcome.report.nodes} e-nodes"
        yield Row(
            f"sum of {count} distinct terms, saturated",
            figure,
            f"{limit:g} ms",
            linear and milliseconds < limit,
        )
    outcome = best(3, lambda: run(program, far_cancellation(200)))
    yield _found("cancel two far terms of a 200-term sum", outcome, 20.0, outcome.report.complete)
    for case, graph in (
        ("4x4 expanded product to two factors", expanded_product(4)),
        ("polynomial of degree 6 to Horner form", polynomial(6)),
    ):
        outcome = best(3, lambda graph=graph: run(program, graph, equal=True))  # type: ignore[misc]
        yield _found(case, outcome, 40.0, outcome.found)


def _found(case: str, outcome: Outcome, limit: float, found: bool) -> Row:
    milliseconds = outcome.stages["saturate"] * 1e3
    verdict = "found" if found else "not found"
    return Row(
        case, f"{verdict}, {milliseconds:.1f} ms", f"found, {limit:g} ms", found and milliseconds < limit
    )


def perceptron_rows(program: RuleProgram) -> Iterator[Row]:
    for layers, limit in ((4, 0.1), (17, 0.3), (41, 0.6), (82, 1.5)):
        graph = perceptron(layers)
        outcome = best(3, lambda graph=graph: compile_graph(program, graph))  # type: ignore[misc]
        case = f"MLP + gradient, {len(graph)} nodes, graph to decoded graph"
        yield Row(case, _timing(outcome), f"{limit:g} s", outcome.total < limit)


def _timing(outcome: Outcome) -> str:
    parts = ", ".join(f"{name} {seconds * 1e3:.0f}" for name, seconds in outcome.stages.items())
    return f"{outcome.total:.3f} s ({parts} ms), {outcome.report.nodes} e-nodes, {outcome.report.stop_reason}"


def chain_rows(program: RuleProgram) -> Iterator[Row]:
    seconds: dict[int, float] = {}
    for size in (500, 1000, 2000, 5000):
        graph = random_chains(size)
        outcome = best(2, lambda graph=graph: compile_graph(program, graph))  # type: ignore[misc]
        seconds[size] = outcome.total
        case = f"random chains, {len(graph)} nodes, graph to decoded graph"
        yield Row(case, _timing(outcome), "4 s", outcome.total < 4.0)
    exponent = math.log(seconds[5000] / seconds[500]) / math.log(10.0)
    yield Row("random chains, growth exponent from 500 to 5000", f"{exponent:.2f}", "1.3", exponent <= 1.3)


def resident_megabytes() -> float:
    """Present resident memory; peak memory where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
        return pages * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def repetition_rows(program: RuleProgram, count: int = 500) -> Iterator[Row]:
    graphs = [perceptron(layers) for layers in (3, 4, 5)]
    seconds, megabytes = [], []
    for number in range(count):
        begun = time.perf_counter()
        compile_graph(program, graphs[number % len(graphs)])
        seconds.append(time.perf_counter() - begun)
        if number in (50, count - 1):
            gc.collect()
            megabytes.append(resident_megabytes())
    growth = megabytes[1] / megabytes[0]
    yield Row(
        f"{count} compilations: memory against the 50th",
        f"{growth:.2f}x ({megabytes[0]:.0f} to {megabytes[1]:.0f} MB)",
        "1.3x",
        growth <= 1.3,
    )
    early, late = sorted(seconds[50:150])[50], sorted(seconds[-100:])[50]
    yield Row(
        f"{count} compilations: median time, last 100 against the 50th to 150th",
        f"{late / early:.2f}x ({early * 1e3:.1f} to {late * 1e3:.1f} ms)",
        "no slow-down (1.1x)",
        late <= 1.1 * early,
    )


def main() -> int:
    """Print the table; the number of rows that missed their target."""
    begun = time.perf_counter()
    program = program_for(RULES.query(Query(include=("fast_run",))))
    compiled = time.perf_counter()
    compile_graph(program, perceptron(2))
    ready = time.perf_counter()
    print(f"compile rules {compiled - begun:.3f} s, load them and run once {ready - compiled:.3f} s")
    missed = 0
    for rows in (small_rows, perceptron_rows, chain_rows, repetition_rows):
        for row in rows(program):
            missed += not row.reached
            print(f"{'  ' if row.reached else '! '}{row.case:58s} {row.figure:70s} {row.target}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main() > 0)
