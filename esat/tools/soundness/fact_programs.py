"""Facts about matrices, tried on programs: of each op, with operands of which each fact is assumed.

The rules that derive them stand in the n-ary layer (``structure.egg``, ``numbers.egg``), whose language no
sampler of single rules reads. So programs are saturated whose operands have the facts, and the oracle
compares every fact and every e-node with values that were made to have them, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np

from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import RuleProgram
from esat.egraph.saturation.schedule import Budgets
from esat.errors import DebugError, EsatError
from esat.graph import FunctionGraph, TensorType, Variable
from esat.graph.registry import function_named, op_named
from esat.ops.annotations.assume import Assume
from esat.ops.arrays.diagonal import DiagonalOf
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.cast import cast
from esat.ops.contraction import MATMUL, swap_last_axes
from esat.ops.inference.structure import NUMBERS, STRUCTURES
from esat.ops.linalg.inverse import DETERMINANT, INVERSE
from esat.ops.linalg.solve import SOLVE
from esat.ops.normalization import log_softmax, softmax
from esat.ops.reduction import MAX, MIN, PROD, SUM, Reduction
from esat.optimize.equality.search import saturated
from esat.phases.assumptions import satisfying
from esat.tools.soundness.oracle import EGraphChecker, checker_of

SIZE = 4
NOTHING = "any"
"""Of an operand of which nothing is assumed."""
BUDGETS = Budgets(nodes=2000, rounds=3)

Build = Callable[..., Variable]


def _programs() -> Mapping[str, tuple[int, Build]]:
    """Name -> how many matrices are taken, and what is made of them."""
    add, sub, mul, div = (op_named(name) for name in ("add", "sub", "mul", "div"))
    transposed = swap_last_axes
    return {
        "a.T": (1, transposed),
        "-a": (1, op_named("neg")),
        "inv(a)": (1, INVERSE),
        "a @ a": (1, lambda a: MATMUL(a, a)),
        "a @ a.T": (1, lambda a: MATMUL(a, transposed(a))),
        "a.T @ a": (1, lambda a: MATMUL(transposed(a), a)),
        "a + a.T": (1, lambda a: add(a, transposed(a))),
        "a * a": (1, lambda a: mul(a, a)),
        "exp(a)": (1, op_named("exp")),
        "abs(a)": (1, op_named("abs")),
        "sqrt(a)": (1, op_named("sqrt")),
        "det(a)": (1, DETERMINANT),
        "a @ b": (2, MATMUL),
        "b @ a @ b.T": (2, lambda a, b: MATMUL(MATMUL(b, a), transposed(b))),
        "a + b": (2, add),
        "a - b": (2, sub),
        "a * b": (2, mul),
        "a / b": (2, div),
        "solve(a, b)": (2, SOLVE),
        "inv(a) @ b": (2, lambda a, b: MATMUL(INVERSE(a), b)),
        "diag(diag(a)) @ b": (2, lambda a, b: MATMUL(DiagonalOf()(function_named("diagonal")(a)), b)),
    }


def _programs_of_numbers() -> Mapping[str, tuple[int, Build]]:
    """Likewise, of what structure of matrices says nothing about; who takes a size wants to know of signs."""
    absolute, exp = op_named("abs"), op_named("exp")
    return {
        "abs(prod(a))": (1, lambda a: absolute(Reduction(PROD, (1,), keepdims=True)(a))),
        "abs(sum(a))": (1, lambda a: absolute(Reduction(SUM, (1,), keepdims=True)(a))),
        "abs(max(a))": (1, lambda a: absolute(Reduction(MAX, (1,), keepdims=True)(a))),
        "abs(min(a))": (1, lambda a: absolute(Reduction(MIN, (1,), keepdims=True)(a))),
        "abs(softmax(a))": (1, lambda a: absolute(softmax(a, 1))),
        "abs(log_softmax(a))": (1, lambda a: absolute(log_softmax(a, 1))),
        "abs(a[:, None])": (1, lambda a: absolute(dimshuffle(a, (0, "x", 1)))),
        "abs of a as float32": (1, lambda a: absolute(cast(a, "float32"))),
        "floor of a as int64 and back": (1, lambda a: op_named("floor")(cast(cast(a, "int64"), "float64"))),
        "abs(a**3)": (1, lambda a: absolute(op_named("pow")(a, 3.0))),
        "abs(a + b)": (2, lambda a, b: absolute(a + b)),
        "abs(a * b)": (2, lambda a, b: absolute(a * b)),
        "abs(a / b)": (2, lambda a, b: absolute(a / b)),
        "2*a - 3*a + 1 - 4": (1, lambda a: 2.0 * a - 3.0 * a + 1.0 - 4.0),
        "(a - 2) - (b - 5)": (2, lambda a, b: (a - 2.0) - (b - 5.0)),
        "3*a / (2*b)": (2, lambda a, b: 3.0 * a / (2.0 * b)),
        "a*b - 2*a + b*b": (2, lambda a, b: a * b - 2.0 * a + b * b),
        "-(a - b) * -2 * b / a": (2, lambda a, b: -(a - b) * -2.0 * b / a),
        "exp(a) * exp(b) / exp(a + b)": (2, lambda a, b: exp(a) * exp(b) / exp(a + b)),
    }


def check_facts(
    program: RuleProgram, facts: tuple[str, ...] = (*STRUCTURES, *NUMBERS)
) -> tuple[int, list[str]]:
    """Saturate programs of matrices with all facts; how many there were, and what is wrong, each named.

    Parameters
    ----------
    program
        The rules.
    facts
        Which facts are assumed, of each operand alone.
    """
    count, wrong = 0, []
    for name, inputs, output in _cases(facts):
        graph = FunctionGraph(inputs, [output])
        checker = _checker(graph)
        if not checker.samples:
            continue
        terms = encode(graph)
        found, saturation = saturated(terms, program, BUDGETS, check_types=True)
        count += 1
        try:
            checker.check_egraph(found.arrays, terms, program, saturation)
        except DebugError as error:
            wrong.append(f"{name}: {error}")
    return count, wrong


def _checker(graph: FunctionGraph) -> EGraphChecker:
    """On numbers of both signs, where the graph takes them; on positive ones elsewhere."""
    generator = np.random.default_rng(0)
    numbers = [generator.normal(size=(SIZE, SIZE)) for _ in graph.inputs]
    try:
        return checker_of(graph, satisfying(graph, numbers), exact=False)
    except EsatError:
        return checker_of(graph, None, exact=False)


def _cases(facts: tuple[str, ...]) -> Iterator[tuple[str, list[Variable], Variable]]:
    type = TensorType("float64", shape=(SIZE, SIZE))
    numbers = tuple(fact for fact in facts if fact in NUMBERS)
    programs = [(facts, *one) for one in _programs().items()]
    programs += [(numbers, *one) for one in _programs_of_numbers().items()]
    for known, name, (count, build) in programs:
        for assumed in product((*known, NOTHING), repeat=count):
            inputs = [type.make_variable(letter) for letter in "ab"[:count]]
            operands = [
                one if fact == NOTHING else Assume((fact,))(one)
                for fact, one in zip(assumed, inputs, strict=True)
            ]
            try:
                yield f"{name} of {' and '.join(assumed)}", inputs, build(*operands)
            except EsatError:
                continue  # no fact of such an operand
