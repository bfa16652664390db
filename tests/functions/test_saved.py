"""``esat.save`` and ``esat.load``: functions come back with their shared values; files can do no harm."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from ops.size_cases import CASES

import esat
from esat.functions import saved
from esat.graph.algorithms.traversal import toposort
from esat.graph.op import as_variable
from esat.ops.annotations.gradients import without_gradients

X = np.array([[0.25, 1.0, -2.0], [3.0, 0.5, 1.5]])


def step(mode="fast_run", **options):
    x, w = esat.matrix("x"), esat.shared(np.array([1.0, 2.0, 3.0]), name="w")
    graph = esat.Graph([x], [esat.exp(x @ w).sum(), esat.sin(x)], updates={w: w * 0.5})
    return esat.compile(graph, mode, **options)


def changed(path, edit):
    """The file with another header."""
    with np.load(path) as content:
        arrays = dict(content)
    header = json.loads(arrays.pop("esat").tobytes())
    edit(header)
    np.savez(path, esat=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "debug", "o3"])
def test_functions_come_back_with_their_values(tmp_path, mode):
    function = step(mode)
    function(X)
    esat.save(tmp_path / "step.npz", function)
    function(X)
    again = esat.load(tmp_path / "step.npz")
    assert list(again.shared) == ["w"]
    np.testing.assert_array_equal(again.shared["w"].get_value(), [0.5, 1.0, 1.5])
    for result, wanted in zip(again(X), (np.exp(X @ [0.5, 1.0, 1.5]).sum(), np.sin(X)), strict=True):
        np.testing.assert_allclose(result, wanted)
    np.testing.assert_array_equal(again.shared["w"].get_value(), function.shared["w"].get_value())


def test_shapes_and_donated_inputs_come_back(tmp_path):
    x, y = esat.vector("x"), esat.matrix("y")
    function = esat.compile(esat.Graph([x, y], esat.tanh(y @ x)), shapes={y: (300, 40), x: (40,)}, donate=[x])
    esat.save(tmp_path / "f.npz", function)
    again = esat.load(tmp_path / "f.npz")
    assert [str(one) for one in again.donated] == ["x"]
    assert again.report.cost_after == function.report.cost_after


def test_streams_go_on_where_they_were(tmp_path):
    stream = esat.random.RandomStream(seed=3)
    draw = esat.compile(esat.Graph([], stream.normal(size=(4,))))
    draw()
    esat.save(tmp_path / "draw.npz", draw)
    wanted = [draw(), draw()]
    again = esat.load(tmp_path / "draw.npz")
    np.testing.assert_array_equal([again(), again()], wanted)


def test_loops_come_back(tmp_path):
    x = esat.vector("x")
    last, _ = esat.scan(lambda carry, one: (esat.tanh(carry + one), carry), esat.constant(0.0), x)
    function = esat.compile(esat.Graph([x], last))
    esat.save(tmp_path / "loop.npz", function)
    values = np.linspace(-1, 1, 9)
    np.testing.assert_array_equal(esat.load(tmp_path / "loop.npz")(values), function(values))


def test_another_process_loads_it(tmp_path):
    function = step()
    esat.save(tmp_path / "step.npz", function)
    program = (
        "import sys, esat, numpy as np; f = esat.load(sys.argv[1]);"
        "f(np.ones((1, 3))); print(f.shared['w'].get_value().tolist())"
    )
    run = [sys.executable, "-c", program, str(tmp_path / "step.npz")]
    assert subprocess.run(run, check=True, capture_output=True, text=True).stdout == "[0.5, 1.0, 1.5]\n"


@pytest.mark.parametrize("cases", CASES.values(), ids=CASES)
def test_every_op_comes_back(cases, tmp_path):
    variables = cases.inputs()
    for name, (own, _) in cases.programs.items():
        (wanted,) = without_gradients([as_variable(own(*variables))])
        graph = esat.Graph(variables, wanted, on_unused_input="ignore")
        writer = saved._Writer()
        content = json.loads(json.dumps(writer.graph(graph)))
        (found,) = saved._Reader(writer.arrays).graph(content).outputs
        nodes, made = toposort([wanted]), toposort([found])
        assert list(map(str, made)) == list(map(str, nodes)), name
        assert [node.outputs[0].type for node in made] == [node.outputs[0].type for node in nodes], name


def test_what_is_no_plain_data_is_refused(tmp_path):
    path, x = tmp_path / "f.npz", esat.vector("x")
    with pytest.raises(esat.InputError, match=r"of a jitted function, `function.latest`"):
        esat.save(path, np.sum)
    with pytest.raises(esat.InputError, match="is no compiled function"):
        esat.save(path, esat.jit(lambda x: x + 1))
    rules = '(rewrite (Tanh (Neg x)) (Neg (Tanh x)) :ruleset mine :name "mine")'
    ruled = esat.compile(esat.Graph([x], esat.tanh(-x)), rules=["(ruleset mine :tags (fast_run))" + rules])
    with pytest.raises(esat.GraphError, match="rules of yours"):
        esat.save(path, ruled)
    assert not path.exists()


def test_a_mode_of_ones_own_is_asked_for(tmp_path):
    function = step(esat.Mode("fast_run", variants=0))
    esat.save(tmp_path / "f.npz", function)
    with pytest.raises(esat.InputError, match="mode="):
        esat.load(tmp_path / "f.npz")
    np.testing.assert_array_equal(esat.load(tmp_path / "f.npz", mode="greedy")(X)[1], np.sin(X))


class Runs:
    """What pickle runs when it reads it."""

    def __reduce__(self):
        return exec, ("raise SystemExit('the file was run')",)


HOSTILE = {
    "a module": {"module": "os", "class": "system", "fields": {}},
    "a class elsewhere": {"module": "esat.ops.cast", "class": "TensorType", "fields": {}},
    "no record": {"module": "esat.ops.control", "class": "EsatError", "fields": {}},
    "a function": {"module": "esat.ops.cast", "constant": "cast"},
    "source text": {"module": "esat.ops.cast", "class": "Cast", "fields": {"dtype": "__import__('os')"}},
    "a line break": {"module": "esat.ops.cast", "class": "Cast", "fields": {"dtype": "float64\nx"}},
    "another field": {"module": "esat.ops.cast", "class": "Cast", "fields": {"dtype": "int32", "x": 1}},
    "no dtype": {"module": "esat.ops.cast", "class": "Cast", "fields": {"dtype": "float63"}},
    "an unknown op": {"named": "system"},
    "no op": {"float": "0x1p0"},
    "a number": 7,
    "nothing": None,
}


@pytest.mark.parametrize("op", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_refused(tmp_path, op):
    path = tmp_path / "f.npz"
    esat.save(path, step())

    def edit(header):
        next(line for line in header["graph"]["nodes"] if "op" in line)["op"] = op

    changed(path, edit)
    with pytest.raises(esat.GraphError, match=r"esat\.load\(.*f\.npz"):
        esat.load(path)


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "f.npz"
    esat.save(path, step())
    whole = path.read_bytes()
    for content in (b"", b"no file of ours", whole[: len(whole) // 2], pickle.dumps(Runs())):
        path.write_bytes(content)
        with pytest.raises(esat.GraphError, match=r"esat\.load"):
            esat.load(path)
    np.savez(path, esat=np.array([Runs()], object))
    with pytest.raises(esat.GraphError, match="damaged"):
        esat.load(path)
    path.write_bytes(whole)
    changed(path, lambda header: header.update(format=2))
    with pytest.raises(esat.GraphError, match="format 2"):
        esat.load(path)
    path.write_bytes(whole)
    changed(path, lambda header: header["graph"].update(outputs=[99]))
    with pytest.raises(esat.GraphError, match="damaged"):
        esat.load(path)
    with pytest.raises(FileNotFoundError):
        esat.load(tmp_path / "nothing.npz")


def test_shared_variables_are_those_that_were_written_in_order():
    """Also one that optimization leaves nothing of, and ones without a name or with the name of another."""
    x, w, other = esat.vector("x"), esat.shared(2.0, name="w"), esat.shared(3.0, name="w")
    gone, unnamed = esat.shared(5.0, name="gone"), esat.shared(4.0)
    graph = esat.Graph([x], x * w + gone * 0 + unnamed, updates={other: other + w})
    found = esat.compile(graph).shared
    assert {name: float(one.get_value()) for name, one in found.items() if one.name != "w"} == {
        "gone": 5.0, next(name for name in found if name.startswith("shared") and found[name] is unnamed): 4.0
    }  # fmt: skip
    assert found["w"] is other
    assert [*esat.compile(graph).shared] == [*found]
    assert len(found) == 4
