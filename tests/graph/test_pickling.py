"""Graphs travel: pickled and copied with all they hold, in this process and to another one."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from ops.size_cases import CASES

import esat
from esat.graph import FunctionGraph
from esat.graph.algorithms.traversal import toposort
from esat.graph.features import NodeFinder, ReplaceValidate
from esat.graph.op import as_variable
from esat.graph.registry import registered_ops
from esat.ops.annotations.checkpoint import Recomputation


def again(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("cases", CASES.values(), ids=CASES)
def test_every_op_comes_back(cases):
    variables = cases.inputs()
    for case, (own, _) in cases.programs.items():
        wanted = as_variable(own(*variables))
        _, found = again((variables, wanted))
        nodes, made = toposort([wanted]), toposort([found])
        assert list(map(str, made)) == list(map(str, nodes)), case
        for one, other in zip(nodes, made, strict=True):
            assert type(one.op) is type(other.op)
            # A graph in an op is equal to no copy of it.
            holds_graph = any(isinstance(part, FunctionGraph | Recomputation) for part in one.op.properties())
            assert holds_graph or one.op == other.op, case
            assert [result.type for result in one.outputs] == [result.type for result in other.outputs]
            assert one.where == other.where


def test_registered_ops_are_themselves():
    for op in registered_ops():
        assert again(op) is op
        assert copy.deepcopy(op) is op


def test_what_is_one_stays_one():
    x = esat.vector("x")
    inner = esat.exp(x)
    y, z = inner + 1, inner * 2
    a, b, c, d = again((z, x, inner, y))
    assert a.owner.inputs[0] is d.owner.inputs[0] is c
    assert c.owner.inputs == [b]
    assert a.owner.outputs == [a]
    assert (a.index, b.name) == (0, "x")


def test_nodes_with_several_results():
    x = esat.matrix("x")
    q, r = esat.linalg.qr(x)
    _, found, other = again((x, r, q))
    assert found.owner is other.owner
    assert (other.index, found.index) == (q.index, r.index)


def test_graphs_of_any_length():
    x = esat.vector("x")
    y = x
    for number in range(4000):
        y = esat.sin(y) + number % 3
    inputs, found = again(([x], y))
    assert len(toposort([found])) == len(toposort([y]))
    values = np.array([0.25, 2.0])
    expected = esat.evaluate(y, {x: values})
    np.testing.assert_array_equal(esat.evaluate(found, {inputs[0]: values}), expected)
    np.testing.assert_array_equal(esat.evaluate(copy.deepcopy(y, {id(x): x}), {x: values}), expected)


def test_constants_stay_read_only():
    found = again(esat.constant(np.arange(3.0), name="c"))
    assert not found.data.flags.writeable
    assert (found.type.shape, found.name, found.data.tolist()) == ((3,), "c", [0.0, 1.0, 2.0])


def test_shared_variables_take_their_values_along():
    x, total = esat.vector("x"), esat.shared(np.ones(2), name="total")
    graph = again(esat.Graph([x], (total * x).sum(), updates={total: total + x}))
    function = esat.compile(graph)
    assert [function(np.ones(2)).item() for _ in range(2)] == [2.0, 4.0]
    assert graph.updated[0].get_value().tolist() == [3.0, 3.0]
    assert total.get_value().tolist() == [1.0, 1.0]


def test_streams_go_on_where_they_were():
    stream = esat.random.RandomStream(3)
    drawn = esat.Graph([], stream.normal(size=(2,)))
    first = esat.compile(drawn)
    first()
    second = esat.compile(again(drawn))
    for _ in range(2):
        np.testing.assert_array_equal(first(), second())


def test_variables_of_a_function_graph_leave_it_behind():
    x = esat.vector("x")
    function = FunctionGraph([x], [esat.exp(x)])
    (inside,) = function.inputs
    assert inside.clients
    assert again(inside).clients is None


_ELSEWHERE = """
import pickle, sys
import numpy, esat
graph = pickle.load(sys.stdin.buffer)
print(*esat.compile(graph, "fast_compile")(numpy.array([0.0, 1.0])))
"""


def test_another_process_compiles_it():
    x = esat.vector("x")
    graph = esat.Graph([x], esat.grad((x**3).sum(), x))
    ran = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE], input=pickle.dumps(graph), capture_output=True, check=True
    )
    assert ran.stdout.split() == [b"0.0", b"3.0"]


def test_function_graphs_come_back_as_clones():
    x = esat.vector("x")
    function = FunctionGraph([x], [esat.exp(x) * 2], features=[ReplaceValidate(), NodeFinder()])
    for found in (again(function), copy.deepcopy(function), copy.copy(function)):
        assert str(found) == str(function)
        (input,) = found.inputs
        assert input is not function.inputs[0]
        assert input.clients
        found.attach_feature(ReplaceValidate())
        found.replace_validate(found.outputs[0], input)
        assert found.outputs == [input]
    assert len(function) == len(again(function))
