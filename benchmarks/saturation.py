"""Saturation: what it finds, in what time, and how time and memory grow.

Run ``python -m benchmarks.saturation``. Graphs are term DAGs; times are load + saturation + read-out of
the e-graph with all rules that come with esat, or with the n-ary core alone where the row says so.
Every figure stands beside what it must reach; a row that misses its target is marked.
"""

from __future__ import annotations

import gc
import math
import random
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from esat.egraph.engine import Engine
from esat.egraph.loader import flatten, load_text
from esat.egraph.prepare import Program, prepared_engine, program_for
from esat.egraph.report import SaturationReport
from esat.egraph.saturate import Budgets, Schedule, saturate
from esat.egraph.terms import SCALAR, TermBuilder, TermGraph, TermType
from esat.errors import EsatWarning
from esat.graph.types import DTYPE_NUMBER
from esat.rules import RULES
from esat.rules.macros import permutation_word
from esat.rules.query import Query

FLOAT64 = DTYPE_NUMBER["float64"]
MATRIX = TermType(FLOAT64, 4)
ROW = TermType(FLOAT64, 5)


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure, what it must reach, and whether it did."""

    case: str
    figure: str
    target: str
    reached: bool


class Builder:
    """Builds term DAGs of float64 matrices."""

    def __init__(self) -> None:
        self.builder = TermBuilder()
        self.inputs = 0

    def input(self, type: TermType = MATRIX) -> int:
        self.inputs += 1
        return self.builder.add("In", (), (self.inputs - 1,), type)

    def constant(self, value: float) -> int:
        return self.builder.add("K", (), (value, FLOAT64), TermType(FLOAT64, SCALAR, (), value))

    def op(self, constructor: str, *operands: int) -> int:
        """An elementwise op; comparisons give bools."""
        broadcast = -1
        for operand in operands:
            broadcast &= self.builder.types[operand].broadcast
        dtype = DTYPE_NUMBER["bool"] if constructor == "Lt" else FLOAT64
        return self.builder.add(constructor, operands, (), TermType(dtype, broadcast))

    def chain(self, constructor: str, operands: list[int]) -> int:
        result = operands[0]
        for operand in operands[1:]:
            result = self.op(constructor, result, operand)
        return result

    def matmul(self, left: int, right: int) -> int:
        return self.builder.add("MatMul", (left, right), (2,), MATRIX)

    def transposed(self, operand: int) -> int:
        return self.builder.add("DimShuffle", (operand,), (permutation_word((1, 0)),), MATRIX)

    def total(self, operand: int, mask: int, type: TermType) -> int:
        return self.builder.add("ReduceSum", (operand,), (mask,), type)

    def graph(self, *roots: int) -> TermGraph:
        return TermGraph(tuple(self.builder.terms), tuple(self.builder.types), roots)


def sum_of(count: int) -> TermGraph:
    build = Builder()
    return build.graph(build.chain("Add", [build.input() for _ in range(count)]))


def far_cancellation(count: int) -> TermGraph:
    """A sum with one term twice, far apart, once negative."""
    build = Builder()
    terms = [build.input() for _ in range(count - 1)]
    return build.graph(build.op("Sub", build.chain("Add", terms), terms[count // 3]))


def expanded_product(size: int) -> tuple[TermGraph, int, int]:
    """The expanded product of two sums, with the product itself; the numbers of both."""
    build = Builder()
    left, right = ([build.input() for _ in range(size)] for _ in range(2))
    expanded = build.chain("Add", [build.op("Mul", a, b) for a in left for b in right])
    factored = build.op("Mul", build.chain("Add", left), build.chain("Add", right))
    return build.graph(expanded, factored), expanded, factored


def polynomial(degree: int) -> tuple[TermGraph, int, int]:
    """A polynomial as a sum of powers, with its Horner form; the numbers of both."""
    build = Builder()
    x = build.input()
    coefficients = [build.input(TermType(FLOAT64, SCALAR)) for _ in range(degree + 1)]
    powers = [build.chain("Mul", [c, *[x] * k]) for k, c in enumerate(coefficients)]
    expanded = build.chain("Add", powers)
    horner = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        horner = build.op("Add", build.op("Mul", horner, x), coefficient)
    return build.graph(expanded, horner), expanded, horner


def perceptron(layers: int) -> TermGraph:
    """A multilayer perceptron with its gradient step, as back-propagation writes it."""
    build = Builder()
    op, x, y = build.op, build.input(), build.input()
    rate, decay, one, zero = (build.constant(value) for value in (0.01, 1e-4, 1.0, 0.0))
    hidden, weights, biases = [x], [], []
    for layer in range(layers):
        weights.append(build.input())
        biases.append(build.input(ROW))
        z = op("Add", build.matmul(hidden[-1], weights[-1]), biases[-1])
        if layer % 3 == 0:
            hidden.append(op("Tanh", z))
        elif layer % 3 == 1:
            hidden.append(op("Div", one, op("Add", one, op("Exp", op("Neg", z)))))
        else:
            hidden.append(op("Maximum", z, zero))
    loss = build.total(op("Mul", y, op("Log", hidden[-1])), 3, TermType(FLOAT64, SCALAR))
    outputs = [op("Neg", loss)]
    slope = op("Sub", hidden[-1], y)
    for layer in reversed(range(layers)):
        gradient = op(
            "Add", build.matmul(build.transposed(hidden[layer]), slope), op("Mul", decay, weights[layer])
        )
        outputs.append(op("Sub", weights[layer], op("Mul", rate, gradient)))
        outputs.append(op("Sub", biases[layer], op("Mul", rate, build.total(slope, 1, ROW))))
        if layer == 0:
            break
        back, value = build.matmul(slope, build.transposed(weights[layer])), hidden[layer]
        if (layer - 1) % 3 == 0:
            slope = op("Mul", back, op("Sub", one, op("Mul", value, value)))
        elif (layer - 1) % 3 == 1:
            slope = op("Mul", back, op("Mul", value, op("Sub", one, value)))
        else:
            slope = op("Switch", op("Lt", zero, value), back, zero)
    return build.graph(*outputs)


def random_chains(size: int, seed: int = 0) -> TermGraph:
    """Long random chains of arithmetic that share their parts, at least ``size`` terms."""
    chooser = random.Random(seed)
    build = Builder()
    leaves = [build.input() for _ in range(20)] + [build.input(ROW) for _ in range(5)]
    pool, outputs = list(leaves), []
    while len(build.builder.terms) < size:
        kind = chooser.choice(["Add", "Mul", "mixed"])
        x = chooser.choice(pool)
        for _ in range(chooser.randint(3, 30)):
            op = kind if kind != "mixed" else chooser.choice(["Add", "Mul", "Sub", "Div"])
            x = build.op(op, x, chooser.choice(pool if chooser.random() < 0.4 else leaves))
            if chooser.random() < 0.1:
                x = build.op(chooser.choice(["Exp", "Tanh", "Neg", "Sqr", "Log"]), x)
        pool.append(x)
        outputs.append(x)
    return build.graph(*outputs[-8:])


@dataclass(frozen=True)
class Outcome:
    """One run: seconds of loading, of saturation, and of all with the read-out."""

    load: float
    saturate: float
    total: float
    report: SaturationReport
    found: bool


def run(
    program: Program, graph: TermGraph, equal: tuple[int, int] | None = None, core: bool = False
) -> Outcome:
    """Load, saturate and freeze one graph; ``equal``: two terms that should be one class in the end."""
    schedule = Schedule() if core else program.schedule
    with prepared_engine(program, graph) as engine:
        begun = time.perf_counter()
        for text in load_text(graph, flatten(graph, program.strict)):
            engine.execute(text)
        loaded = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EsatWarning)
            report = saturate(engine, schedule, Budgets(), program.constructors)
        frozen = engine.freeze()
        ended = time.perf_counter()
        found = equal is None or _one_class(engine, frozen, *equal)
    return Outcome(loaded - begun, report.seconds, ended - begun, report, found)


def _one_class(engine: Engine, frozen: object, left: int, right: int) -> bool:
    rows = frozen.functions["N"].rows  # type: ignore[attr-defined]
    classes = {engine.values.value_to_i64(row.inputs[0]): hash(row.output) for row in rows}
    return classes[left] == classes[right]


def best(repeat: int, runs: Callable[[], Outcome]) -> Outcome:
    return min((runs() for _ in range(repeat)), key=lambda outcome: outcome.total)


def small_rows(program: Program) -> Iterator[Row]:
    for count, limit in ((12, 5.0), (200, 10.0)):
        outcome = best(3, lambda count=count: run(program, sum_of(count)))  # type: ignore[misc]
        milliseconds = outcome.saturate * 1e3
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
    for case, build, size in (
        ("4x4 expanded product to two factors", expanded_product, 4),
        ("polynomial of degree 6 to Horner form", polynomial, 6),
    ):
        graph, expanded, wanted = build(size)
        outcome = best(3, lambda graph=graph, pair=(expanded, wanted): run(program, graph, pair))  # type: ignore[misc]
        yield _found(case, outcome, 40.0, outcome.found)


def _found(case: str, outcome: Outcome, limit: float, found: bool) -> Row:
    milliseconds = outcome.saturate * 1e3
    verdict = "found" if found else "not found"
    return Row(
        case, f"{verdict}, {milliseconds:.1f} ms", f"found, {limit:g} ms", found and milliseconds < limit
    )


def perceptron_rows(program: Program) -> Iterator[Row]:
    for layers, limit in ((4, 0.1), (17, 0.3), (41, 0.6), (82, 1.5)):
        graph = perceptron(layers)
        outcome = best(2, lambda graph=graph: run(program, graph))  # type: ignore[misc]
        yield Row(
            f"MLP + gradient, {len(graph.terms)} terms",
            _timing(outcome),
            f"{limit:g} s with extraction",
            outcome.total < limit,
        )


def _timing(outcome: Outcome) -> str:
    return (
        f"{outcome.total:.3f} s (load {outcome.load:.3f}, saturate {outcome.saturate:.3f}), "
        f"{outcome.report.nodes} e-nodes, {outcome.report.stop_reason}"
    )


def chain_rows(program: Program) -> Iterator[Row]:
    for core in (True, False):
        name = "core alone" if core else "all rules"
        seconds: dict[int, float] = {}
        for size in (500, 1000, 2000, 5000):
            graph = random_chains(size)
            outcome = run(program, graph, core=core)
            seconds[size] = outcome.total
            if size == 5000:
                yield Row(
                    f"random chains, {len(graph.terms)} terms, {name}",
                    _timing(outcome),
                    "4 s",
                    outcome.total < 4.0,
                )
        exponent = math.log(seconds[5000] / seconds[500]) / math.log(10.0)
        yield Row(f"growth exponent, 500 to 5000 terms, {name}", f"{exponent:.2f}", "1.3", exponent <= 1.3)


def resident_megabytes() -> float:
    """Present resident memory; peak memory where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
        return pages * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def repetition_rows(program: Program, count: int = 500) -> Iterator[Row]:
    graphs = [perceptron(layers) for layers in (3, 4, 5)]
    seconds, megabytes = [], []
    for number in range(count):
        begun = time.perf_counter()
        run(program, graphs[number % len(graphs)])
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
    run(program, perceptron(2))
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
