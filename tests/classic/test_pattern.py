import numpy as np
import pytest

import esat
from esat.classic import OpRemove, OpSub, PatternSub, TopoOptimizer
from esat.errors import OptimizerError
from esat.graph import Constant, FunctionGraph
from esat.graph.registry import op_named


@pytest.fixture
def xy():
    return [esat.vector("x"), esat.vector("y")]


def optimize(output, inputs, *patterns, **options):
    graph = FunctionGraph(inputs, [output])
    TopoOptimizer(PatternSub(*patterns, **options)).optimize(graph)
    return str(graph)


def test_a_variable_matches_the_same_thing_each_time(xy):
    x, y = xy
    pattern = (esat.div, (esat.mul, "x", "y"), "y")
    assert optimize(x * y / y, xy, pattern, "x") == "[x]"
    assert optimize(x * y / x, xy, pattern, "x") == "[div(mul(x, y), x)]"


def test_equal_constants_are_the_same_thing(xy):
    x, _ = xy
    assert optimize(x * 2.0 / 2.0, [x], (esat.div, (esat.mul, "x", "y"), "y"), "x") == "[x]"
    assert optimize(x * 2.0 / 3.0, [x], (esat.div, (esat.mul, "x", "y"), "y"), "x") != "[x]"


def test_numbers_stand_for_constants(xy):
    x, _ = xy
    assert optimize(esat.pow(x, 2.0), [x], (esat.pow, "x", 2), (esat.sqr, "x")) == "[sqr(x)]"
    assert "sqr" not in optimize(esat.pow(x, 2.5), [x], (esat.pow, "x", 2), (esat.sqr, "x"))
    assert optimize(esat.sqr(x), [x], (esat.sqr, "x"), (esat.mul, 2.0, "x")).startswith("[mul(")


def test_a_variable_in_a_pattern_stands_for_itself(xy):
    x, y = xy
    graph = FunctionGraph(xy, [x + y], clone=False)
    TopoOptimizer(PatternSub((esat.add, x, "y"), (esat.exp, "y"))).optimize(graph)
    assert str(graph) == "[exp(y)]"


def test_constraints(xy):
    x, _ = xy
    constant = {"pattern": "c", "constraint": lambda variable: isinstance(variable, Constant)}
    pattern = (esat.mul, "x", constant), (esat.mul, "c", "x")
    assert optimize(esat.mul(x, esat.constant([2.0])), [x], *pattern) == "[mul([2.0], x)]"
    assert optimize(xy[0] * xy[1], xy, *pattern) == "[mul(x, y)]"
    inner = {"pattern": (esat.exp, "x"), "constraint": lambda variable: variable.tensor_type.ndim == 2}
    assert optimize(esat.log(esat.exp(x)), [x], (esat.log, inner), "x") == "[log(exp(x))]"


def test_inner_nodes_with_several_clients(xy):
    x, y = xy
    inner = x * y
    graph = FunctionGraph(xy, [inner / y, esat.exp(inner)])
    pattern = PatternSub((esat.div, (esat.mul, "x", "y"), "y"), "x", allow_multiple_clients=False)
    TopoOptimizer(pattern).optimize(graph)
    assert "div" in str(graph)
    pattern = PatternSub((esat.div, (esat.mul, "x", "y"), "y"), "x")
    TopoOptimizer(pattern).optimize(graph)
    assert "div" not in str(graph)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("x", "y", "tuple"),
        ((), "y", "tuple"),
        ((esat.exp, "x"), "y", r"uses \['y'\]"),
        ((esat.exp, ("exp", "x")), "x", "begins with an op"),
        ((esat.exp, {"pattern": "x"}), "x", "constraint"),
    ],
)
def test_malformed_patterns_are_refused(first, second, reason):
    with pytest.raises(OptimizerError, match=reason):
        PatternSub(first, second)


def test_its_name_shows_the_patterns():
    constraint = {"pattern": "y", "constraint": callable}
    pattern = PatternSub((esat.div, (esat.mul, "x", constraint), "y"), "x")
    assert str(pattern) == "div(mul(x, y subject to callable), y) -> x"


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_numbers_have_the_dtype_of_what_they_stand_beside(dtype, mode):
    pattern = PatternSub((esat.cosh, "x"), (op_named("mul"), (esat.exp, "x"), 2))
    esat.optdb["canonicalize"].register("cosh_to_exp", pattern, "fast_run")
    try:
        x = esat.tensor("x", dtype=dtype, shape=(None,))
        program = esat.compile(esat.Graph([x], [esat.cosh(x)]), mode=mode)
        assert program(np.ones(2, dtype)).dtype == dtype
    finally:
        esat.optdb["canonicalize"].remove("cosh_to_exp")


@pytest.mark.parametrize("make", [lambda: OpSub(esat.add, "mul"), lambda: OpRemove(esat.reshape)])
def test_what_is_no_op_is_refused(make):
    with pytest.raises(OptimizerError, match="is an op, as"):
        make()
