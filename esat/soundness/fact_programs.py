"""Facts about matrices, tried on programs: of each op, with operands of which each fact is assumed.

The rules that derive them stand in the n-ary layer (``structure.egg``, ``numbers.egg``), whose language no
sampler of single rules reads. So programs are saturated whose operands have the facts, and the oracle
compares every fact and every e-node with values that were made to have them, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

from esat.egraph.encode import encode
from esat.egraph.rule_program import RuleProgram
from esat.egraph.schedule import Budgets
from esat.errors import DebugError, EsatError
from esat.graph import FunctionGraph, TensorType, Variable
from esat.graph.registry import function_named, op_named
from esat.ops.assume import Assume
from esat.ops.contraction import MATMUL, swap_last_axes
from esat.ops.diagonal import DiagonalOf
from esat.ops.linalg.inverse import DETERMINANT, INVERSE
from esat.ops.linalg.solve import SOLVE
from esat.ops.structure import NUMBERS, STRUCTURES
from esat.optimize.optimizer import saturated
from esat.soundness.egraph_checker import checker_of

SIZE = 4
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
        checker = checker_of(graph, None, exact=False)
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


def _cases(facts: tuple[str, ...]) -> Iterator[tuple[str, list[Variable], Variable]]:
    type = TensorType("float64", shape=(SIZE, SIZE))
    for name, (count, build) in _programs().items():
        for assumed in product(facts, repeat=count):
            inputs = [type.make_variable(letter) for letter in "ab"[:count]]
            operands = [Assume((fact,))(one) for fact, one in zip(assumed, inputs, strict=True)]
            try:
                yield f"{name} of {' and '.join(assumed)}", inputs, build(*operands)
            except EsatError:
                continue  # no fact of such an operand
