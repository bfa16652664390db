"""The machine against egglog on programs of a few lines: the same tables, whatever the room it has."""

import numpy as np
import pytest

from esat.egraph.engine import Engine
from esat.engine import matching_engine
from esat.engine.machine_program import MachineProgram
from esat.engine.matching_engine import MatchingEngine
from esat.engine.schedules import RulesetRun
from esat.engine.state import growing_arrays, memory
from esat.engine.vocabulary import UnknownFormError
from esat.errors import SaturationError
from tests.egraph.engine.states import differences, state_of

SORTS = """
(sort T) (sort MS (MultiSet T)) (sort MMS (MultiSet MS)) (sort Words (MultiSet i64)) (sort Form (Pair MS MS))
(sort FnT (UnstableFn (T) T)) (sort FnHas (UnstableFn (T) Unit)) (sort FnWord (UnstableFn (T) i64))
(sort FnMeet (UnstableFn (i64 i64) i64)) (sort FnCount (UnstableFn (MS T) i64)) (sort FnMS (UnstableFn
(T) MS))
(constructor N (i64) T) (constructor Add (T T) T) (constructor Neg (T) T) (constructor Sum (MS) T)
(ruleset a) (ruleset b)
"""

PATHS = """
(relation edge (i64 i64)) (relation path (i64 i64)) (ruleset a) (ruleset b)
(rule ((edge x y)) ((path x y)) :ruleset a :name "edge")
(rule ((path x y) (edge y z)) ((path x z)) :ruleset a :name "step")
(rule ((path x x)) ((delete (path x x))) :ruleset b :name "loop")
(rule ((edge %1 =1) (path (+ %1 0) =1)) ((path (+ =1 (* 1 100)) %1)) :ruleset b :name "odd-names")
(edge 1 2) (edge 2 3) (edge 3 1) (edge 3 4)
"""

CONGRUENCE = (
    SORTS
    + """
(function low (T) i64 :merge (min old new)) (function high (T) i64 :merge (max old new))
(rule ((= e (Add x y))) ((union e (Add y x))) :ruleset a :name "commute")
(rule ((= e (Neg (Neg x)))) ((union e x)) :ruleset a :name "twice")
(rule ((= e (N i))) ((set (low e) i) (set (high e) i)) :ruleset a :name "bounds")
(rule ((= e (Add x y)) (= i (low x)) (= j (high y)) (> j i)) ((set (low e) (+ i j))) :ruleset a :name "sum")
(rule ((= e (Neg x)) (= i (low x)) (< i 3)) ((union x (N (+ i 1))) (subsume (Neg x))) :ruleset b
      :name "chain")
(Add (N 1) (Neg (Neg (N 2)))) (Add (N 2) (N 1)) (Neg (N 1)) (Neg (Add (N 2) (N 1))) (Add (Neg (N 1)) (Neg
(N 2)))
"""
)

MULTISETS = (
    SORTS
    + """
(function count (MS T) i64 :merge (max old new)) (function word (T) i64 :merge old) (relation big (T))
(relation held (MS i64)) (function sides (T) Form :merge old) (function has (T) Unit :merge old)
(function parts (T) MS :merge old) (relation met (MS i64 i64)) (relation removed (MS MS)) (relation all
(MS T))
(rule ((= e (Sum p))) ((unstable-multiset-fill-index p (unstable-fn "count"))) :ruleset a :name "fill")
(rule ((= e (N i))) ((set (word e) (* 3 i))) :ruleset a :name "word")
(rule ((= e (N i)) (> i 2)) ((set (has e) ())) :ruleset a :name "has")
(rule ((= e (N i)) (> i 1)) ((set (parts e) (multiset-of e (N 7)))) :ruleset a :name "parts")
(rule ((= e (Sum p)) (count p x) (= w (unstable-multiset-map (unstable-fn "word") p))
       (= (multiset-length w) (multiset-length p)) (= m (unstable-multiset-reduce (unstable-fn "&") -1 w)))
      ((met p m (multiset-length w))) :ruleset a :name "meet")
(rule ((= e (Sum p)) (= k (count p x)) (= r (multiset-remove p x))) ((removed p r) (held r k)) :ruleset a
      :name "rest")
(rule ((= e (Sum p)) (count p x) (has x) (= f (unstable-multiset-filter (unstable-fn "has") p)))
      ((set (sides e) (pair f (unstable-multiset-filter-not (unstable-fn "has") p)))) :ruleset a
      :name "sides")
(rule ((= s (sides e)) (= p (pair-first s)) (= n (pair-second s)))
      ((held (multiset-sum p n) 9) (held (multiset-intersection p n) 8)) :ruleset a :name "joined")
(rule ((= e (Sum p)) (count p x) (parts x) (= m (unstable-multiset-map (unstable-fn "parts") p)))
      ((held (multiset-sum-multisets m) 5) (held (multiset-reset-counts p) 4)) :ruleset a :name "parted")
(rule ((= e (Sum p)) (= 2 (count p x)) (= q (multiset-subtract p (multiset-single x 2))))
      ((union e (Add x (Sum q))) (Sum (unstable-multiset-map (unstable-fn "Neg") q))) :ruleset b
      :name "doubled")
(rule ((= e (N 3)) (= f (N 4))) ((union e f)) :ruleset b :name "equal")
(rule ((= e (Sum p)) (count p x)) ((union e (Add x (Sum (multiset-remove p x)))) (held (multiset-of x e) 3))
      :ruleset b :name "taken-out")
(Sum (multiset-of (N 1) (N 1) (N 2) (N 3))) (Sum (multiset-of (N 4) (N 3) (N 3) (N 9))) (Sum (multiset-of
(N 4)))
(Sum (multiset-of))
"""
)

NUMBERS = """
(relation i (i64)) (relation f (f64)) (relation made (i64 i64)) (relation value (i64 f64)) (ruleset a)
(ruleset b)
(rule ((i x) (i y) (= z (+ x y))) ((made 1 z)) :ruleset a :name "add")
(rule ((i x) (i y) (= z (* x y))) ((made 2 z)) :ruleset a :name "mul")
(rule ((i x) (i y) (= z (/ x y)) (= r (% x y))) ((made 3 z) (made 4 r)) :ruleset a :name "div")
(rule ((i x) (i y) (= z (<< x y))) ((made 5 z)) :ruleset a :name "left")
(rule ((i x) (i y) (= z (>> x y))) ((made 6 z)) :ruleset a :name "right")
(rule ((i x) (> x 0) (= z (log2 x))) ((made 7 z)) :ruleset a :name "log2")
(rule ((i x) (= z (abs x)) (= n (not-i64 x))) ((made 8 z) (made 9 n)) :ruleset a :name "abs")
(rule ((i x) (i y) (= z (- x y))) ((made 10 (min z x)) (made 11 (max z y))) :ruleset a :name "sub")
(rule ((i x) (i y) (= z (^ x y)) (= o (| x y))) ((made 12 z) (made 13 (& o y))) :ruleset a :name "bits")
(rule ((f x) (f y)) ((value 1 (+ x y)) (value 2 (* x y)) (value 3 (max x y)) (value 4 (min x y)))
      :ruleset a :name "floats")
(rule ((f x) (f y) (= z (/ x y))) ((value 5 z)) :ruleset a :name "quotient")
(rule ((f x) (f y) (< x y)) ((value 6 x)) :ruleset a :name "less")
(rule ((f x) (f y) (>= x y)) ((value 7 y)) :ruleset a :name "not-less")
(rule ((f x)) ((value 8 (neg x)) (value 9 (abs x)) (made 14 (to-i64 x))) :ruleset a :name "one")
(rule ((f x) (f y) (> x 0.0)) ((value 10 (^ x y))) :ruleset a :name "power")
(rule ((i x)) ((value 11 (to-f64 x))) :ruleset a :name "float")
(i 0) (i 1) (i -7) (i 2) (i 63) (i 64) (i 9223372036854775807) (i -9223372036854775808) (i 3037000500)
(f 0.0) (f 1.5) (f -2.25) (f inf) (f NaN) (f 1e300) (f -1e-300)
"""

PROGRAMS = {"paths": PATHS, "congruence": CONGRUENCE, "multisets": MULTISETS, "numbers": NUMBERS}
SATURATED = RulesetRun(("a",), is_saturated=True)
SCHEDULES = [
    "(run-schedule (saturate (run a)))",
    "(run-schedule (run a) (run b))",
    "(run-schedule (saturate (saturate (run a)) (run b)))",
    "(run-schedule (run b) (saturate (seq (run a) (run b))))",
]


def run(engine, text: str, schedules: list[str]):
    engine.load(text)
    for schedule in schedules:
        engine.execute(schedule)
    return engine


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_tables_are_those_of_egglog(program: str, schedule: str) -> None:
    own = run(MatchingEngine(), PROGRAMS[program], [schedule, SCHEDULES[2]])
    reference = run(Engine(), PROGRAMS[program], [schedule, SCHEDULES[2]])
    assert sum(own.sizes().values()) > 10
    assert not differences(state_of(reference, own.vocabulary), state_of(own, own.vocabulary))


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"ids": 8, "cells": 16, "plans": 8, "matches": 4, "scratch": 2, "rules": 8, "schedule": 64}
    monkeypatch.setattr(growing_arrays, "_SIZES", {**growing_arrays._SIZES, **sizes})


@pytest.mark.parametrize("program", PROGRAMS)
def test_arrays_grow_without_a_trace(
    program: str, little_room: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = run(MatchingEngine(), PROGRAMS[program], SCHEDULES)
    monkeypatch.undo()
    large = run(MatchingEngine(), PROGRAMS[program], SCHEDULES)
    assert len(small.arrays.memory.cells) < len(large.arrays.memory.cells)
    assert tables(small) == tables(large)


def tables(engine: MatchingEngine):
    return {name: table.rows for name, table in engine.freeze().functions.items()}


@pytest.mark.parametrize("program", ["paths", "congruence", "multisets"])
def test_the_machine_runs_as_python(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = run(MatchingEngine(), PROGRAMS[program], SCHEDULES)
    monkeypatch.setattr(growing_arrays, "compiled", growing_arrays.interpreted)
    with np.errstate(all="ignore"):
        interpreted = run(MatchingEngine(), PROGRAMS[program], SCHEDULES)
    assert tables(compiled) == tables(interpreted)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_was_kept_is_the_one_that_was_read(program: str) -> None:
    kept = MachineProgram.decoded(MatchingEngine.program_of([PROGRAMS[program]]).encoded())
    expected = tables(run(MatchingEngine(), PROGRAMS[program], SCHEDULES))
    for _ in range(2):
        assert tables(run(MatchingEngine.begin(kept), "", SCHEDULES)) == expected


def test_rules_come_to_those_of_a_program() -> None:
    more = '(relation other (i64 i64)) (rule ((edge x y)) ((other x y)) :ruleset a :name "other")'
    kept = MatchingEngine.program_of([PATHS])
    both = MatchingEngine.program_of([more], kept)
    assert tables(run(MatchingEngine.begin(both), "", SCHEDULES)) == tables(
        run(MatchingEngine(), PATHS + more, SCHEDULES)
    )
    assert "other" not in MatchingEngine.begin(kept).sizes()


def test_a_rule_with_more_matches_than_its_limit_is_left_out() -> None:
    engine = run(MatchingEngine(), PATHS, [])
    outcome = engine.run_schedule(engine.schedule([RulesetRun(("a",), limit=3)]))
    assert outcome.updated
    assert outcome.left_out == {"edge"}
    assert engine.sizes()["path"] == 0
    outcome = engine.run_schedule(engine.schedule([RulesetRun(("a",), limit=4)]))
    assert outcome.matches == {"edge": 4}
    assert not outcome.left_out
    assert engine.sizes()["path"] == 4


def test_a_run_ends_when_it_has_had_its_matches() -> None:
    engine = run(MatchingEngine(), PATHS, [])
    steps = engine.schedule([SATURATED])
    outcome = engine.run_schedule(steps, 5)
    assert outcome.exceeded
    assert sum(outcome.matches.values()) <= 5
    assert 4 <= engine.sizes()["path"] < 12
    assert not engine.run_schedule(steps).exceeded
    assert engine.sizes()["path"] == 12


def test_what_was_found_before_a_limit_is_not_lost() -> None:
    engine = run(MatchingEngine(), PATHS, [])
    engine.load('(relation other (i64 i64)) (rule ((edge x y)) ((other x y)) :ruleset a :name "other")')
    steps = engine.schedule([RulesetRun(("a",))])
    assert engine.run_schedule(steps, 5).exceeded
    assert (engine.sizes()["path"], engine.sizes()["other"]) == (4, 0)
    engine.run_schedule(steps)
    assert (engine.sizes()["path"], engine.sizes()["other"]) == (8, 4)


def test_growth_and_long_runs_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """(sort T) (constructor N (i64) T) (ruleset a) (N 0)
    (rule ((= e (N i)) (< i 5000)) ((N (+ i 1))) :ruleset a :name "next")"""
    counts = []
    for _ in range(2):
        engine = run(MatchingEngine(), text, [])
        outcome = engine.run_schedule(engine.schedule([SATURATED]))
        while outcome.is_unfinished:
            counts.append(engine.sizes()["N"])
            outcome = engine.go_on()
        assert engine.sizes()["N"] == 5001
        monkeypatch.setattr(matching_engine, "_PAUSE", 2_000)
    assert counts[0] == 2003  # growth from one term
    assert len(counts) > 3  # pauses


def test_a_plan_is_given_up_where_it_looks_at_too_many_rows() -> None:
    text = """(sort T) (constructor N (i64) T) (relation holds (T T)) (relation from (T T))
    (relation to (T T)) (relation same (T T)) (ruleset a)
    (rule ((holds p h) (holds q h) (from p r) (to r q)) ((same p q)) :ruleset a :name "same") """
    # At first each value is held once, and many rows are from each: it is best to join what holds the same.
    rows = [f"(holds (N {-i}) (N {i})) (to (N {-i}) (N {-i}))" for i in range(1, 100)]
    rows += [f"(from (N {-i}) (N {-j}))" for i in range(1, 50) for j in range(1, 20)]
    engine = run(MatchingEngine(), text + " ".join(rows), [])
    steps = engine.schedule([RulesetRun(("a",))])
    engine.run_schedule(steps)
    found = engine.sizes()["same"]
    # Then all hold the same, and there is one row from each.
    size = 300
    engine.load(
        " ".join(f"(holds (N {i}) (N 0)) (from (N {i}) (N {i})) (to (N {i}) (N {i}))" for i in range(size))
    )
    engine.run_schedule(steps)
    assert (found, engine.sizes()["same"]) == (19, 19 + size)
    assert engine.arrays.memory.state[memory.VISITED] < size**2 // 4


def test_values_that_contradict_each_other_end_it() -> None:
    engine = MatchingEngine()
    engine.load("(function f (i64) i64 :no-merge) (set (f 1) 2)")
    with pytest.raises(SaturationError, match="Illegal merge attempted for function f"):
        engine.execute("(set (f 1) 3)")
    with pytest.raises(SaturationError, match="of no use"):
        engine.execute("(set (f 1) 2)")


@pytest.mark.parametrize(
    "text",
    [
        "(sort S (Map i64 i64))",
        "(function f (i64) String :no-merge)",
        "(function f (i64) i64 :merge (+ old new))",
        '(relation r (i64)) (ruleset a) (rule ((r x)) ((panic "no")) :ruleset a)',
        "(relation r (i64)) (ruleset a) (rule ((r x) (= y (count-matches x x))) ((r y)) :ruleset a)",
        "(function f (i64) i64 :no-merge) (ruleset a) (rule ((f x)) ((set (f 1) (f 2))) :ruleset a)",
        "(extract 1)",
    ],
)
def test_what_it_does_not_know_is_refused(text: str) -> None:
    with pytest.raises(UnknownFormError):
        MatchingEngine().load(text)
