"""Conditions that have names, types that right sides ask for, and ops that rules do not look into."""

import re

import numpy as np
import pytest

import esat
from esat.compilation.optimizing import optimize_graph, rule_options, rule_texts
from esat.graph import FunctionGraph
from esat.rules import read_rules
from esat.runtime.function_profile import Profile

MODES = ["fast_run", "greedy"]


class Rescale(esat.Op):
    """Rows divided by their largest magnitude: an op of a user, typed by Python."""

    name, constructor, family = "rescale", "Rescale", esat.Family.LIBRARY

    def infer_types(self, inputs):
        return (inputs[0].type,)

    def perform(self, inputs):
        return (inputs[0] / np.abs(inputs[0]).max(axis=-1, keepdims=True),)


def text(mode, output, rules):
    """The optimized graph, by rules that are no equations, so that nothing else finds what they say."""
    inputs = [one for one in esat.graph.inputs_of([output]) if not isinstance(one, esat.graph.Constant)]
    chosen = esat.Mode(mode, accuracy="ignore")
    options = rule_options(chosen, rule_texts([rules]), ())
    return str(optimize_graph(FunctionGraph(inputs, [output]), chosen, options, Profile(), None)[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("condition", ["(real-valued x)", "(<= (dt x) 11)", "(< (dt x) 12)"])
def test_dtypes_are_compared(mode, condition):
    rule = f'(rewrite (Erf (Sin x)) (Sin x) :when ({condition}) :name "mine")'
    rule += f'(rewrite (Exp (Sin x)) (Sin x) :when ({condition}) :name "theirs")'
    assert text(mode, esat.erf(esat.sin(esat.vector("x"))), rule) == "[sin(x)]"
    assert text(mode, esat.exp(esat.sin(esat.vector("z", dtype="complex128"))), rule) == "[exp(sin(z))]"


@pytest.mark.parametrize("mode", MODES)
def test_axes_of_size_one(mode):
    rule = '(rewrite (Maximum (Erf x) (ReduceMax y m)) (Sin x) :when ((one-along m x)) :name "mine")'
    row, matrix = esat.tensor("r", shape=(1, None)), esat.matrix("m")
    columns, rows = (esat.max(matrix, axis=axis, keepdims=True) for axis in (0, 1))
    assert text(mode, esat.maximum(esat.erf(row), columns), rule) == "[sin(r)]"
    assert "erf" in text(mode, esat.maximum(esat.erf(matrix), columns), rule)
    assert "erf" in text(mode, esat.maximum(esat.erf(row), rows), rule)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", ["rewrite", "rule"])
def test_right_sides_ask_for_types(mode, form):
    made = "(Mul (Sin x) (K 3.0 (dt x)))"
    rule = {
        "rewrite": f'(rewrite (Erf (Sin x)) {made} :name "mine")',
        "rule": f'(rule ((= e (Erf (Sin x)))) ((union e {made})) :name "mine")',
    }[form]
    for dtype in ("float32", "float64"):
        x = esat.vector("x", dtype=dtype)
        found = text(mode, esat.erf(esat.sin(x)), rule)
        assert "sin(x)" in found
        assert not {"erf", "cast"} & set(re.findall(r"\w+", found))


def test_what_right_sides_ask_is_a_fact_under_a_name_that_is_free():
    (rule,) = read_rules("(rewrite (Erf dt-of-x) (Add x (K 1.0 (dt x))) :when ((= x (Sin dt-of-x))))").rules
    assert rule.body[2:] == (("=", "dt-of-x_", ("dt", "x")),)
    assert rule.head == (("union", "root", ("Add", "x", ("K", "1.0", "dt-of-x_"))),)


@pytest.mark.parametrize("mode", MODES)
def test_rules_see_what_goes_into_ops_that_only_python_types(mode):
    rule = '(rewrite (Erf (Sin x)) (Sin x) :name "mine")'
    m = esat.matrix("m")
    assert text(mode, Rescale()(esat.erf(esat.sin(m))), rule) == "[rescale(sin(m))]"
    assert text(mode, esat.erf(esat.sin(Rescale()(m))), rule) == "[sin(rescale(m))]"
    assert text(mode, esat.erf(esat.sin(m[1:, 0])), rule) == "[sin(subtensor{1:,0}(m))]"
