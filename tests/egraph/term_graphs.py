"""Hand-made term DAGs and a signature for the tests of the e-graph layer."""

import functools
import random

import numpy as np

from esat.egraph.engine import AnyEngine
from esat.egraph.language.loader import flatten
from esat.egraph.language.loader import load as load_plan
from esat.egraph.language.signature import ConstructorSignature, Signature
from esat.egraph.language.term_rows import ROW_TABLES
from esat.egraph.language.terms import SCALAR, TermBuilder, TermGraph, TermType, broadcast_word
from esat.egraph.preparation.core import core_program
from esat.egraph.saturation.saturate import saturate
from esat.egraph.saturation.schedule import Budgets, Schedule
from esat.engine.matching_engine import MatchingEngine
from esat.graph.types import DTYPES

SIGNATURE = Signature(
    [
        *(ConstructorSignature(name, 2, (), "same") for name in ("Add", "Sub", "Mul", "Maximum", "Minimum")),
        ConstructorSignature("Div", 2, (), "same", floats=True),
        *(ConstructorSignature(name, 1, (), "same") for name in ("Neg", "Sqr")),
        *(ConstructorSignature(name, 1, (), "same", floats=True) for name in ("Exp", "Log", "Tanh")),
        ConstructorSignature("Abs", 1, (), "real"),
        ConstructorSignature("Lt", 2, (), "bool"),
        ConstructorSignature("Switch", 3, (), "same", operand_dtypes=("bool", "same", "same")),
        ConstructorSignature("Cast", 1, ("i64",), "cast"),
        ConstructorSignature("DimShuffle", 1, ("i64",), "dimshuffle"),
        ConstructorSignature("ReduceSum", 1, ("i64",), "reduce"),
        ConstructorSignature("ArgMax", 1, ("i64",), "argreduce"),
        ConstructorSignature("MatMul", 2, ("i64",), "matmul"),
    ]
)
CONSTRUCTORS = (*SIGNATURE, "NarySum", "NaryProd")


class GraphBuilder:
    """Builds a TermGraph of elementwise ops; every input has a concrete array."""

    def __init__(self, seed: int = 0):
        self.builder = TermBuilder()
        self.arrays: list[np.ndarray] = []
        self.random = np.random.default_rng(seed)

    def input(self, dtype: str = "float64", shape: tuple[int, ...] = (3, 5)) -> int:
        if dtype == "bool":
            data = self.random.integers(0, 2, shape).astype(bool)
        elif dtype.startswith(("int", "uint")):
            bounds = np.iinfo(dtype)
            data = self.random.integers(bounds.min, bounds.max, shape, dtype=dtype, endpoint=True)
        else:
            data = self.random.uniform(0.5, 1.5, shape).astype(dtype)
        self.arrays.append(data)
        broadcast = broadcast_word([size == 1 for size in shape])
        return self.builder.add("In", (), (len(self.arrays) - 1,), TermType(DTYPES.index(dtype), broadcast))

    def constant(self, value: float, dtype: str = "float64") -> int:
        number = DTYPES.index(dtype)
        return self.builder.add("K", (), (float(value), number), TermType(number, SCALAR, (), float(value)))

    def op(self, constructor: str, *operands: int, dtype: str | None = None) -> int:
        types = [self.builder.types[operand] for operand in operands]
        broadcast = -1
        for type in types:
            broadcast &= type.broadcast
        number = types[-1].dtype if dtype is None else DTYPES.index(dtype)
        return self.builder.add(constructor, operands, (), TermType(number, broadcast))

    def chain(self, constructor: str, operands: list[int]) -> int:
        result = operands[0]
        for operand in operands[1:]:
            result = self.op(constructor, result, operand)
        return result

    def dtype(self, number: int) -> str:
        return DTYPES[self.builder.types[number].dtype]

    def graph(self, *roots: int) -> TermGraph:
        return TermGraph(
            tuple(self.builder.terms), tuple(self.builder.types), roots, (None,) * len(self.arrays)
        )


def rules_engine(strict: bool = False, kind: type[AnyEngine] = MatchingEngine) -> AnyEngine:
    engine = kind()
    engine.load(SIGNATURE.program)
    engine.load(ROW_TABLES)
    engine.load(core(strict))
    return engine


@functools.cache
def core(strict: bool) -> str:
    return core_program(SIGNATURE, strict)


def load(engine: AnyEngine, graph: TermGraph, strict: bool = False) -> None:
    load_plan(engine, graph, flatten(graph, strict))


def saturated(graph: TermGraph, strict: bool = False, budgets: Budgets | None = None):
    """The engine after saturation of the graph by the core, and the report."""
    engine = rules_engine(strict)
    load(engine, graph, strict)
    return engine, saturate(engine, Schedule(), budgets or Budgets(), CONSTRUCTORS)


def holds(engine: AnyEngine, left: str, right: str) -> bool:
    """Whether two expressions are equal in the e-graph; both must be in it."""
    name = f"test-{len(engine.sizes())}"
    engine.execute(f"(relation {name} (i64)) (ruleset {name}-rules)")
    engine.execute(f'(rule ((= {left} {right})) (({name} 1)) :ruleset {name}-rules :name "{name}")')
    engine.execute(f"(run {name}-rules 1)")
    return engine.sizes()[name] == 1


def random_polynomial(seed: int, dtype: str, size: int = 25) -> tuple[GraphBuilder, TermGraph]:
    """Random sums and products over few leaves of mixed ranks, so that much cancels and collects."""
    chooser = random.Random(seed)
    build = GraphBuilder(seed)
    shapes = [(3, 5), (1, 5), (3, 1), (), (3, 5)]
    floating = dtype.startswith(("float", "complex"))
    pool = [build.input(dtype, shape) for shape in shapes]
    pool += [build.constant(value, dtype) for value in (0, 1, 2, 3)]
    if not dtype.startswith("uint"):
        pool.append(build.constant(-2, dtype))
    ops = ["Add", "Sub", "Mul", "Neg", "Sqr", "Add", "Sub", "Mul", "Maximum"] + ["Div"] * (2 * floating)
    for _ in range(size):
        op = chooser.choice(ops)
        count = 1 if op in ("Neg", "Sqr") else 2
        pool.append(
            build.op(
                op, *(chooser.choice(pool[-12:] if chooser.random() < 0.7 else pool) for _ in range(count))
            )
        )
    return build, build.graph(*pool[-4:])
