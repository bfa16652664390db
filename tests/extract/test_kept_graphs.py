"""Saturated e-graphs that other processes kept on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from caches import with_rules

import esat
from esat.base.storage import CacheWarning, DiskStore
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.schedule import Budgets
from esat.errors import CompileError
from esat.extract import kept_graphs
from esat.extract.kept_graphs import KeptGraphs, graph_key
from esat.graph.algorithms.evaluate import evaluate
from esat.optimize import saturation
from esat.optimize.equality.optimizer import optimize
from esat.optimize.equality.search import EqualitySearch, saturated
from esat.rules import RULES
from esat.rules.language.query import Query


@pytest.fixture
def graphs(tmp_path: Path) -> KeptGraphs:
    return KeptGraphs(DiskStore(tmp_path / "cache", "egraph"))


@pytest.fixture
def program():
    return program_for(RULES.query(Query(include=("fast_run",))))


def a_graph(factor: float = 2.0):
    x, y, w = esat.matrix("x"), esat.vector("y"), esat.matrix("w")
    p = esat.sigmoid(x @ w @ y)
    loss = -(y * esat.log(p) + factor * esat.log(1 - p)).mean()
    return esat.Graph([x, y, w], [loss, esat.grad(loss, w)]).function_graph()


def test_what_is_loaded_is_what_was_saved(graphs, program):
    terms = encode(a_graph())
    found, report = saturated(terms, program, Budgets(), kept=graphs)
    again, same = saturated(terms, program, Budgets(), kept=graphs)
    assert same == report
    for name in (*kept_graphs._INDICES, "subsumed"):
        before, after = getattr(found.arrays, name), getattr(again.arrays, name)
        assert after.dtype == before.dtype
        np.testing.assert_array_equal(after, before)
    assert again.arrays.attribute_values == found.arrays.attribute_values
    assert [list(map(type, row)) for row in again.arrays.attribute_values] == [
        list(map(type, row)) for row in found.arrays.attribute_values
    ]
    assert again.arrays.facts == found.arrays.facts


@pytest.mark.parametrize("kept", [(True, True, True), (True, False, False), (True, True, False)])
def test_a_search_goes_on_from_what_is_on_disk(tmp_path, program, kept):
    """It finds the same as one that ran all of it, wherever the other process ended."""
    x, y = esat.vector("x"), esat.vector("y")
    graph = esat.Graph([x, y], [esat.exp(x) * y + y]).function_graph()
    (x, y), (root,) = graph.inputs, graph.outputs
    claims = [(root, y * (esat.exp(x) + 1.0)), (esat.exp(x), esat.sqrt(esat.exp(2.0 * x)))]
    told = [encode(graph, claims[:count]) for count in range(3)]
    stores = [KeptGraphs(DiskStore(tmp_path / str(number), "egraph")) for number in range(2)]

    def found(store: KeptGraphs, count: int):
        search = EqualitySearch(program, Budgets(), kept=store)
        return [search.saturated(terms) for terms in told[:count]]

    whole = found(stores[0], 3)
    assert [one is not None for one in whole] == [True, False, True]
    found(stores[1], sum(kept))
    again = found(stores[1], 3)
    assert [one is not None for one in again] == [True, False, True]
    np.testing.assert_array_equal(whole[-1][0].arrays.class_of, again[-1][0].arrays.class_of)
    assert whole[-1][0].arrays.operands.tolist() == again[-1][0].arrays.operands.tolist()
    assert whole[-1][1].rounds == again[-1][1].rounds


def test_the_same_program_is_chosen(graphs, program):
    results = []
    for _ in range(2):
        stages: list[str] = []
        graph, report = optimize(a_graph(), program, Budgets(), stage=_noting(stages), kept=graphs)
        results.append(
            (
                [str(node) for node in graph.toposort()],
                report.cost_after,
                report.rules,
                report.e_nodes,
                str(report.explain()),
            )
        )
        last = stages
    assert results[0] == results[1]
    assert "saturate" not in last
    assert "load rules" not in last


def _noting(stages: list[str]):
    def stage(name: str):
        stages.append(name)
        return warnings.catch_warnings()  # any context manager

    return stage


def test_the_key_covers_all_that_the_engine_is_told(program):
    strict = program_for(RULES.query(Query(include=("fast_run",))), strict=True)
    fewer = program_for(RULES.query(Query(include=("fast_run",), exclude=("log1p",))))
    reworded = RULES.read('(rewrite (Tanh (Neg x)) (Neg (Tanh x)) :name "kept-test")')
    same_name = RULES.read('(rewrite (Sinh (Neg x)) (Neg (Sinh x)) :name "kept-test")')
    users = [
        program_for(RULES.query(Query(include=("fast_run",)), extra=[file])) for file in (reworded, same_name)
    ]
    terms = encode(a_graph())
    keys = [graph_key(one, Budgets(), ["a", "b"], terms) for one in (program, strict, fewer, *users)]
    keys.append(graph_key(program, Budgets(rounds=1), ["a", "b"], terms))
    keys.append(graph_key(program, Budgets(), ["ab"], terms))
    assert len(set(keys)) == len(keys)


def _part_set(shape: int | None, part: slice):
    x = esat.tensor("x", dtype="float64", shape=(shape,))
    return [x], esat.set_subtensor(x[part], 7.0)


def _sum_of_join(axis: int):
    x, y = esat.matrix("x"), esat.matrix("y")
    return [x, y], esat.concatenate([x, y], axis=axis).sum()


def _length(axis: int):
    x = esat.matrix("x")
    return [x], x.sum() / x.shape[axis]


def _scaled_twice(factor: complex):
    z, by = esat.tensor("z", dtype="complex128", shape=(3,)), esat.constant(np.full(3, factor))
    return [z], z * by * by


@pytest.mark.parametrize(
    ("build", "cases"),
    [
        (_part_set, [(None, slice(None, None, -1)), (None, slice(0, 2, 2)), (5, slice(5)), (None, slice(5))]),
        (_sum_of_join, [(0,), (1,)]),
        (_length, [(0,), (1,)]),
        (_scaled_twice, [(1j,), (2j,), (0.5 + 1j,)]),
    ],
)
def test_programs_that_the_algebra_alone_tells_apart(build, cases, graphs, program):
    for case in (*cases, *cases):
        inputs, output = build(*case)
        graph = esat.Graph(inputs, [output]).function_graph()
        result, _ = optimize(graph, program, Budgets(), kept=graphs)
        given = [np.arange(1.0, 1 + 5**v.ndim).reshape((5,) * v.ndim) for v in inputs]
        given = [array[: v.type.shape[0]].astype(v.dtype) for array, v in zip(given, inputs, strict=True)]
        found = evaluate(result.outputs[0], dict(zip(result.inputs, given, strict=True)))
        wanted = evaluate(output, dict(zip(inputs, given, strict=True)))
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=str(case))


def test_what_the_clock_decided_is_not_kept(graphs, program, tmp_path):
    saturated(encode(a_graph()), program, Budgets(seconds=1e-4), kept=graphs)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_warning_about_endless_rules_comes_each_time(graphs):
    endless = RULES.read('(rewrite (Exp x) (Exp (Add x (Exp x))) :name "kept-endless")')
    program = program_for(RULES.query(Query(include=("fast_run",)), extra=[endless]))
    x = esat.vector("x")
    for _ in range(2):
        terms = encode(esat.Graph([x], [esat.exp(x)]).function_graph())
        with pytest.warns(esat.EsatWarning, match="kept-endless"):
            saturated(terms, program, Budgets(rounds=2), kept=graphs)


def test_damage_is_found_and_repaired(graphs, program, tmp_path):
    terms = encode(a_graph())
    found, _ = saturated(terms, program, Budgets(), kept=graphs)
    (path,) = (tmp_path / "cache").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(bytes(content))
    with pytest.warns(CacheWarning, match="made again"):
        again, _ = saturated(terms, program, Budgets(), kept=graphs)
    np.testing.assert_array_equal(again.arrays.operands, found.arrays.operands)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saturated(terms, program, Budgets(), kept=graphs)


def test_indices_out_of_range_are_refused(program):
    found, report = saturated(encode(a_graph()), program, Budgets())
    head, _, body = kept_graphs._encoded(found.arrays, report).partition(b"\n")
    data = json.loads(head)
    assert kept_graphs._decoded(memoryview(head + b"\n" + body))[1] == report
    data["operator_names"] = data["operator_names"][:-1]
    damaged = json.dumps(data).encode() + b"\n" + body
    with pytest.raises(CompileError, match="inconsistent"):
        kept_graphs._decoded(memoryview(damaged))


WORKER = """
import esat, numpy as np
x, y = esat.vector("x"), esat.vector("y")
f = esat.compile(esat.Graph([x, y], [esat.log(1 + x) * y + y * esat.exp(-x)]))
values = np.linspace(0.1, 2.0, 5), np.arange(5.0)
assert np.allclose(f(*values), np.log1p(values[0]) * values[1] + values[1] * np.exp(-values[0]), rtol=1e-14)
assert "log1p" in f.report.rules
print("saturate" in f.profile.stages, len(f.explain().parts) > 0, f.profile.optimizer is not None)
"""


def test_the_next_process_does_not_saturate(tmp_path):
    root = Path(__file__).parents[2]
    environment = {
        **os.environ,
        "ESAT_CACHE_DIR": str(with_rules(tmp_path / "cache")),
        "PYTHONPATH": str(root),
    }
    environment.pop("ESAT_EGRAPH_CACHE", None)
    command = [sys.executable, "-c", WORKER]
    shown = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert shown == [["True", "True", "True"], ["False", "True", "True"]]


def test_debugging_saturates_always(monkeypatch):
    asked = []
    monkeypatch.setattr(saturation, "kept_graphs", lambda: asked.append(True))
    x = esat.vector("x")
    graph = esat.Graph([x], [esat.exp(x) + 1])
    esat.compile(graph, "debug")
    assert not asked
    esat.compile(graph)
    assert asked
