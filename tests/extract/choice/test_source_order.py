"""Sums and products that rules left alone are computed as the user wrote them, to the last bit."""

import numpy as np
import pytest

import esat
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import RuleProgram, program_for
from esat.egraph.saturation.saturate import Budgets
from esat.extract.choice import source_order
from esat.extract.prices.nary import plan_product, plan_sum, plan_written
from esat.graph import FunctionGraph, Variable
from esat.graph.algorithms.evaluate import evaluate
from esat.optimize.equality.optimizer import optimize
from esat.rules import RULES
from esat.rules.language.query import Query

MATRIX, COLUMN, SCALAR = (3.0, 4.0), (3.0, 1.0), ()


@pytest.fixture(scope="module")
def program() -> RuleProgram:
    return program_for(RULES.query(Query(include=("fast_run",))))


def optimized(program: RuleProgram, inputs: list[Variable], *outputs: Variable) -> FunctionGraph:
    return optimize(FunctionGraph(inputs, outputs), program, Budgets())[0]


def computed(graph: FunctionGraph, values: list[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return evaluate(graph.outputs, dict(zip(graph.inputs, values, strict=True)))


def extreme(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Values of very different sizes, of either sign, that differ in every bit."""
    return rng.normal(size=shape) * 10.0 ** rng.choice([-20, 0, 20], size=shape)


def grown(rng: np.random.Generator, leaves: list[Variable], ops: str) -> Variable:
    """A random tree over the leaves, each used once."""
    pool = list(leaves)
    while len(pool) > 1:
        left, right = (pool.pop(rng.integers(len(pool))) for _ in range(2))
        match rng.choice(list(ops)):
            case "+":
                pool.append(left + right)
            case "-":
                pool.append(left - right)
            case "*":
                pool.append(left * right)
            case _:
                pool.append(-left - right)
    return pool[0]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("ops", ["+-", "+-n", "*"])
def test_what_no_rule_rewrites_is_computed_as_written(program: RuleProgram, ops: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = [esat.matrix(f"x{number}") for number in range(rng.integers(3, 9))]
    output = grown(rng, inputs, ops)
    values = [extreme(rng, (3, 4)) for _ in inputs]
    (wanted,) = computed(FunctionGraph(inputs, [output]), values)
    (result,) = computed(optimized(program, inputs, output), values)
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("place", range(6))
def test_one_quotient_stays_where_it_was(program: RuleProgram, place: int) -> None:
    x, y, z, u = inputs = [esat.matrix(name) for name in "xyzu"]
    output = [
        (x / y) * (z * u),
        (x * y) / (z * u),
        x * ((y / z) * u),
        (x * (y * z)) / u,
        x / (y * (z * u)),
        ((x / y) * z) * u,
    ][place]
    values = [extreme(np.random.default_rng(place), (50, 4)) for _ in inputs]
    (wanted,) = computed(FunctionGraph(inputs, [output]), values)
    (result,) = computed(optimized(program, inputs, output), values)
    np.testing.assert_array_equal(result, wanted)


def test_an_inner_sum_stays_where_the_rest_was_rewritten(program: RuleProgram) -> None:
    x, m, y, z = inputs = [esat.matrix(name) for name in "xmyz"]
    output = ((x - m) + y) + (z - y)  # y cancels
    values = [np.full((2, 2), 1e20), np.full((2, 2), 1e20), np.ones((2, 2)), np.full((2, 2), 0.5)]
    (result,) = computed(optimized(program, inputs, output), values)
    np.testing.assert_array_equal(result, 0.5)


def test_an_inner_sum_of_another_place_stays(program: RuleProgram) -> None:
    x, m, y = inputs = [esat.matrix(name) for name in "xmy"]
    output = esat.exp(x - m) * esat.exp(y)  # one exponential of a sum that nobody wrote
    values = [np.full((2, 2), 1e20), np.full((2, 2), 1e20), np.ones((2, 2))]
    result = optimized(program, inputs, output)
    assert [str(node.op) for node in result.toposort()].count("exp") == 1
    np.testing.assert_array_equal(computed(result, values)[0], np.exp(1.0))


def test_a_shared_inner_sum_is_found_where_it_was_opened(program: RuleProgram) -> None:
    x, m, y = inputs = [esat.matrix(name) for name in "xmy"]
    centred = x - m
    outputs = [centred + y, esat.tanh(centred - y)]
    values = [np.full((2, 2), 1e20), np.full((2, 2), 1e20), np.ones((2, 2))]
    first, second = computed(optimized(program, inputs, *outputs), values)
    np.testing.assert_array_equal(first, 1.0)
    np.testing.assert_array_equal(second, np.tanh(-1.0))


def huge() -> np.ndarray:
    return np.array([[1e20, 1e20, 3e19], [-4e20, 2e20, 1e20]])


def top(x: Variable) -> Variable:
    return esat.max(x, axis=1, keepdims=True)


CENTRED = {
    "column and matrix": lambda x, y: (x - top(x)) + y,
    "matrix and column": lambda x, y: y + (x - esat.max(x, axis=1, keepdims=True)),
    "subtracted": lambda x, y: y - (x - esat.max(x, axis=1, keepdims=True)),
    "scalar and matrix": lambda x, y: (x - esat.max(x)) + y,
    "scalar and row": lambda x, y: (x - esat.max(x)) + esat.sum(y, axis=0, keepdims=True),
    "column and row": lambda x, y: (x - top(x)) + esat.sum(y, axis=0, keepdims=True),
    "scalar and scalar": lambda x, y: (x - esat.max(x)) + y[0, 0],
    "column and column": lambda x, y: (x - top(x)) + esat.sum(y, axis=1, keepdims=True),
    "constant": lambda x, y: (x - top(x)) + 1.5 * y[0, 0] + 1.0,
    "exponential": lambda x, y: esat.exp((x - top(x)) + y),
    "normalized": lambda x, y: (x - top(x)) - esat.log(esat.sum(esat.exp(y))),
}
"""Huge values that cancel, and small ones beside them: of one shape, or as broadcasting may reorder them."""


@pytest.mark.parametrize("name", CENTRED)
def test_what_is_small_survives_huge_values_that_cancel(name: str) -> None:
    x, y = esat.matrix("x"), esat.matrix("y")
    output = CENTRED[name](x, y)
    values = huge(), np.array([[1.0, -2.0, 0.25], [0.5, 3.0, -0.125]])
    (wanted,) = evaluate([output], dict(zip([x, y], values, strict=True)))
    result = esat.compile(esat.Graph([x, y], [output]))(*values)
    np.testing.assert_allclose(result, wanted, rtol=1e-12)


def test_log_softmax_of_centred_values_keeps_its_small_values() -> None:
    x, m = esat.matrix("x"), esat.matrix("m")
    centred = x - m
    output = centred - esat.log(esat.sum(esat.exp(centred), axis=1, keepdims=True))
    values = huge(), np.broadcast_to(huge().max(axis=1, keepdims=True), (2, 3))
    (wanted,) = evaluate([output], dict(zip([x, m], values, strict=True)))
    result = esat.compile(esat.Graph([x, m], [output]))(*values)
    np.testing.assert_allclose(result, wanted, rtol=1e-12)


def test_integers_take_the_cheapest_order(program: RuleProgram) -> None:
    x, m = esat.matrix("x", dtype="int64"), esat.scalar("m", dtype="int64")
    n = esat.scalar("n", dtype="int64")
    nodes = optimized(program, [x, m, n], (x - m) + n).toposort()
    sums = [node.outputs[0].tensor_type for node in nodes if str(node.op) in ("add", "sub")]
    assert [all(type.broadcastable) for type in sums] == [True, False]


def test_what_cancels_exactly_still_does(program: RuleProgram) -> None:
    x, y = inputs = [esat.matrix(name) for name in "xy"]
    assert len(optimized(program, inputs, (x + y) - x, x).toposort()) == 0  # class `real`: y alone


def test_a_plan_without_joins_is_the_plain_one() -> None:
    shapes = [SCALAR, MATRIX, COLUMN, MATRIX, SCALAR]
    assert plan_written("NarySum", range(5), shapes, 3, ()) == plan_sum(shapes, 3)
    assert plan_written("NaryProd", [1, 2, 3, 2, 1], shapes, 3, ()) == plan_product(
        [1, 2, 3, 2, 1], shapes, 3
    )


def test_joins_that_cost_more_are_refused() -> None:
    # (matrix + scalar) + scalar against matrix + (scalar + scalar), and the join of both
    steps = plan_written("NarySum", range(3), [MATRIX, SCALAR, SCALAR], 3, [(0, 1), (3, 2)])
    assert steps == plan_sum([MATRIX, SCALAR, SCALAR], 3)
    # x / y / z is two divisions, x / (y * z) one; a power is cheaper by squares
    assert plan_written("NaryProd", range(3), [MATRIX] * 3, 1, [(0, 1), (3, 2)]) == (
        plan_product(range(3), [MATRIX] * 3, 1)
    )
    joins = [(0, 1), (4, 2), (5, 3)]
    assert len(plan_written("NaryProd", [7] * 4, [MATRIX] * 4, 4, joins)) == 2


def test_a_difference_is_turned_around_rather_than_negated() -> None:
    (step,) = plan_written("NarySum", range(2), [MATRIX] * 2, 1, [(1, 0)])
    assert (step.op, step.left, step.right) == ("sub", 0, 1)


def test_what_was_written_before_the_operands_is_not_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []
    pair = source_order._Index._pair

    def counted(index: source_order._Index, number: int) -> object:
        looked_at.append(number)
        return pair(index, number)

    monkeypatch.setattr(source_order._Index, "_pair", counted)
    counts = []
    for steps in (20, 40):
        begin = state = esat.vector("begin")
        for _ in range(steps):
            state = state + esat.sin(state)
        terms = encode(FunctionGraph([begin], [state]))
        sines = [number for number, term in enumerate(terms.terms) if term.constructor == "Sin"]
        sums = [number for number, term in enumerate(terms.terms) if term.constructor == "Add"]
        written = source_order.WrittenSums(terms, list(range(len(terms.terms))), [-1] * len(terms.terms))
        looked_at.clear()
        for place in range(3, steps):  # three operands that nobody added up
            written.joins("NarySum", sums[place], sines[place - 2 : place + 1], 3)
        counts.append(len(looked_at))
    assert counts[1] <= 2.5 * counts[0], counts
