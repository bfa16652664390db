"""Prices of all e-nodes at once are those of each by itself, and of the plan that is built."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esat
from benchmarks.saturation import perceptron, random_chains
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.schedule import Budgets
from esat.extract.prices.class_values import class_values, term_values
from esat.extract.prices.cost import INVERSE_SUM, CostModel
from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.nary import Shape, plan_product, plan_sum
from esat.extract.prices.pricing import node_costs, term_costs
from esat.extract.prices.value import IMPOSSIBLE, Value
from esat.graph import FunctionGraph
from esat.graph.registry import op_named
from esat.graph.types import DTYPE_NUMBER
from esat.optimize.equality.search import saturated
from esat.rules import RULES
from esat.rules.language.query import Query

F64 = DTYPE_NUMBER["float64"]
SHAPES: list[Shape] = [(), (300.0, 40.0), (1.0, 40.0), (300.0, 1.0)]


def powers() -> FunctionGraph:
    """Products with repeated factors, quotients, transposed operands and a sparse shape or two."""
    x, y, v = esat.matrix("x"), esat.matrix("y"), esat.vector("v")
    outputs = [
        x * x * y / (v * v * v),
        x * y.T + y.T + y.T,
        esat.concatenate([x, y, x]),
        (x @ y).sum(axis=0) / v,
    ]
    return FunctionGraph([x, y, v], outputs)


@pytest.mark.parametrize(
    "graph", [powers(), perceptron(2), random_chains(120)], ids=["powers", "mlp", "chains"]
)
def test_each_e_node_has_the_price_it_would_have_alone(graph: FunctionGraph) -> None:
    terms = encode(graph)
    found, _report = saturated(terms, program_for(RULES.query(Query(include=("fast_run",)))), Budgets())
    arrays = found.arrays
    values = class_values(arrays, terms)
    alone = CostModel(MachineProfile(), terms.opaque)
    expected = []
    for node in range(arrays.node_count):
        identities = arrays.operands_of(node).tolist()
        operands, result = [values[klass] for klass in identities], values[int(arrays.class_of[node])]
        if result is None or None in operands:
            expected.append(IMPOSSIBLE)
            continue
        name, attributes = arrays.operator_of(node), arrays.attributes_of(node)
        expected.append(alone.price(name, attributes, operands, result, identities))
    costs = node_costs(arrays, values, CostModel(MachineProfile(), terms.opaque))
    np.testing.assert_array_equal(costs, expected)
    assert len(set(expected)) > 10


def test_terms_are_priced_as_e_nodes_are() -> None:
    terms = encode(powers())
    values = term_values(terms)
    model = CostModel(MachineProfile(), terms.opaque)
    alone = [
        model.price(
            term.constructor, term.attributes, [values[n] for n in term.operands], value, term.operands
        )
        for term, value in zip(terms.terms, values, strict=True)
    ]
    assert term_costs(terms, values, model).tolist() == alone


@given(
    kinds=st.lists(st.tuples(st.sampled_from(SHAPES), st.integers(0, 1)), min_size=1, max_size=8),
    data=st.data(),
    constructor=st.sampled_from(["NarySum", "NaryProd"]),
)
@settings(max_examples=150, deadline=None)
def test_a_sum_or_product_costs_what_the_ops_of_its_plan_cost(
    kinds: list[tuple[Shape, int]], data: st.DataObject, constructor: str
) -> None:
    model = CostModel(MachineProfile())
    positives = data.draw(st.integers(0, len(kinds)))
    shapes = [shape for shape, _number in kinds]
    names = [SHAPES.index(shape) * 2 + number for shape, number in kinds]
    steps = (
        plan_sum(shapes, positives) if constructor == "NarySum" else plan_product(names, shapes, positives)
    )
    result = Value(max(shapes, key=len), F64)
    built = [
        model.step_seconds(step.op, step.shape, F64, step.exponent)
        if step.exponent
        else model.price(op_named(step.op).constructor, (), [], Value(step.shape, F64))
        for step in steps
    ]
    priced = model.price(constructor, (positives,), [Value(shape, F64) for shape in shapes], result, names)
    more = INVERSE_SUM if positives == 0 and len(kinds) > 1 else 1.0
    assert priced == pytest.approx(more * sum(built), rel=1e-12)


def test_the_order_of_operands_does_not_matter() -> None:
    model = CostModel(MachineProfile())
    values = [Value(shape, F64) for shape in ((64.0, 1.0), (1.0, 64.0), (64.0, 64.0), (64.0, 1.0))]
    result = Value((64.0, 64.0), F64)
    prices = {
        model.price("NaryProd", (4,), [values[i] for i in order], result, order)
        for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1])
    }
    assert len(prices) == 1
