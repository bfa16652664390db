"""Read-out of real e-graphs of the engine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from egglog.bindings import EGraph

from esat.errors import CompileError
from esat.extract.arrays import EGraphArrays
from esat.extract.readout import TableLayout, read_out
from esat.extract.verify import verify_arrays

SIGNATURE = """
(sort T) (sort MS (MultiSet T)) (sort Many (Vec T))
(constructor In (i64) T) (constructor K (f64 i64) T) (constructor Add (T T) T) (constructor Neg (T) T)
(constructor NarySum (MS MS) T) (constructor Concatenate (Many i64) T)
(constructor N (i64) T :unextractable)
(function dt (T) i64 :no-merge) (function val (T) f64 :no-merge) (function element-count (MS T) i64 :no-merge)
(relation positive (T)) (function quotient (T T) T :merge old)
(ruleset swap) (rewrite (Add a b) (Add b a) :ruleset swap)
"""
LAYOUT = TableLayout(containers={"MS": "multiset", "Many": "vector"}, not_operators=("quotient",))


def engine(text: str) -> EGraph:
    graph = EGraph()
    graph.run_program(*graph.parse_program(SIGNATURE + text))
    return graph


def arrays_of(text: str) -> EGraphArrays:
    graph = engine(text)
    arrays = read_out(graph.freeze(), graph, LAYOUT)
    verify_arrays(arrays)
    return arrays


def texts(arrays: EGraphArrays, klass: int) -> list[str]:
    return [arrays.describe(node) for node in arrays.nodes_of(klass)]


def test_e_nodes_terms_and_facts() -> None:
    arrays = arrays_of("""
        (union (N 0) (In 0)) (union (N 1) (K 2.5 10)) (union (N 3) (Add (In 0) (K 2.5 10)))
        (set (dt (In 0)) 10) (set (val (K 2.5 10)) 2.5) (positive (K 2.5 10)) (let $x (Neg (In 0)))
        (set (quotient (In 0) (In 0)) (In 0))
        (run-schedule (saturate (run swap)))
    """)
    assert arrays.operator_names == ("Add", "In", "K", "Neg")
    assert arrays.term_class.tolist() == [0, 1, -1, 2]
    assert texts(arrays, 0) == ["In(0)"]
    assert texts(arrays, 1) == ["K(2.5, 10)"]
    assert texts(arrays, 2) == ["Add(c0, c1)", "Add(c1, c0)"]
    assert texts(arrays, 3) == ["Neg(c0)"]
    assert arrays.facts["dt"] == {0: 10}
    assert arrays.facts["val"] == {1: 2.5}
    assert arrays.facts["positive"] == {1: True}
    assert "element-count" not in arrays.facts


def test_n_ary_e_nodes_list_positives_then_negatives() -> None:
    arrays = arrays_of("""
        (union (N 0) (In 0)) (union (N 1) (In 1)) (union (N 2) (In 2))
        (union (N 3) (NarySum (multiset-of (In 2) (In 0) (In 2)) (multiset-of (In 1))))
        (union (N 4) (NarySum (multiset-of) (multiset-of (In 1))))
        (union (N 5) (Concatenate (vec-of (In 2) (In 0) (In 2)) 7))
    """)
    assert texts(arrays, 3) == ["NarySum(3, c0, c2, c2, c1)"]
    assert texts(arrays, 4) == ["NarySum(0, c1)"]
    assert texts(arrays, 5) == ["Concatenate(7, c2, c0, c2)"]


def test_subsumed_e_nodes_are_marked() -> None:
    arrays = arrays_of("(union (N 0) (Add (In 0) (In 1))) (subsume (Add (In 0) (In 1)))")
    marked = [arrays.operator_of(node) for node in range(arrays.node_count) if arrays.subsumed[node]]
    assert marked == ["Add"]


def test_equal_attributes_of_different_types_stay_apart() -> None:
    arrays = arrays_of("(constructor Whole (i64) T) (constructor Real (f64) T) (Whole 1) (Real 1.0)")
    assert sorted(arrays.describe(node) for node in range(2)) == ["Real(1.0)", "Whole(1)"]


def test_an_empty_e_graph() -> None:
    arrays = arrays_of("")
    assert (arrays.node_count, arrays.class_count, len(arrays.term_class)) == (0, 0, 0)


def test_only_the_facts_asked_for() -> None:
    graph = engine("(set (dt (In 0)) 10) (set (val (In 0)) 1.0)")
    assert list(read_out(graph.freeze(), graph, TableLayout(facts=("val",))).facts) == ["val"]


def test_an_operator_over_an_unknown_sort_is_refused() -> None:
    graph = engine('(constructor Named (String) T) (Named "x")')
    with pytest.raises(CompileError, match=r"'Named' takes a 'String'"):
        read_out(graph.freeze(), graph, LAYOUT)


def test_numbers_do_not_depend_on_what_the_engine_did_before() -> None:
    text = (
        "(union (N 0) (Add (In 0) (Neg (In 1)))) (NarySum (multiset-of (In 1) (In 0)) (multiset-of (In 2)))"
    )
    graph = engine("(push) (Add (In 5) (Neg (Neg (In 6)))) (Neg (In 0)) (pop) (Neg (In 2)) (In 1)" + text)
    fresh = arrays_of(text + "(In 0) (Neg (In 2))")
    used = read_out(graph.freeze(), graph, LAYOUT)
    assert [texts(used, klass) for klass in range(used.class_count)] == [
        texts(fresh, klass) for klass in range(fresh.class_count)
    ]


SCRIPT = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from extract.test_readout import arrays_of
from extract.random_egraphs import random_costs
from esat.extract.choice.choose import choose
inputs = "".join(f"(union (N {number}) (In {number}))" for number in range(6))
sums = "(union (N 6) (Add (In 0) (Add (In 1) (Add (In 2) (In 3)))))"
sums += "(union (N 7) (Add (In 3) (Add (In 1) (In 4))))"
rule = "(rewrite (Add a (Add b c)) (Add (Add a b) c) :ruleset swap)"
arrays = arrays_of(rule + inputs + sums + "(run-schedule (repeat 4 (run swap)))")
selection = choose(arrays, random_costs(arrays, 1), arrays.term_class[6:8])
lines = [arrays.describe(node) for node in range(arrays.node_count)] + [str(selection.chosen.tolist())]
print(arrays.node_count, hashlib.sha256("|".join(lines).encode()).hexdigest())
"""


def test_every_process_reads_and_chooses_the_same() -> None:
    here = Path(__file__).parent
    printed = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(here.parent.parent)}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(here.parent)],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        printed.add(done.stdout)
    assert len(printed) == 1
    assert int(printed.pop().split()[0]) > 50
