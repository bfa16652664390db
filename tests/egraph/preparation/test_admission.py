"""Users' texts of rules: refused whole where they are wrong, and gone whole when they are removed."""

import time
import tracemalloc
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import esat
from esat.base.storage import DiskStore
from esat.compilation.optimizing import optimize_graph, rule_options, rule_texts
from esat.egraph.preparation import admission
from esat.egraph.preparation.admission import MOST_ELEMENTS, MOST_FACTS
from esat.errors import EsatError, EsatWarning, RuleError
from esat.frontend.graph import Graph
from esat.graph import FunctionGraph
from esat.mode import Mode
from esat.rules import RULES, RuleDatabase, read_forms
from esat.rules.language.query import Query
from esat.rules.language.reader import MOST_NESTED
from esat.runtime.function_profile import Profile
from tests.egraph.rule_mutants import mutants

x, y = esat.vector("x"), esat.vector("y")


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    for file in reversed(RULES.users_files()):
        RULES.remove(file.file)


def optimized(mode: str = "fast_run", rules: str = "") -> FunctionGraph:
    graph = FunctionGraph([x, y], [esat.exp(x) * (x + y) - esat.sin(-y), esat.log(esat.exp(y) * 2.0)])
    chosen = Mode(mode)
    options = rule_options(chosen, rule_texts([rules] if rules else ()), ())
    return optimize_graph(graph, chosen, options, Profile(), None)[0]


REFUSED = {
    "operands": ("(rewrite (Exp x y) x)", (1, 10), "Exp takes 1 operands"),
    "an unknown op": ("\n (rewrite (Exq x) x)", (2, 11), r"unknown op Exq \(did you mean"),
    "a lower-case op": ("(rewrite (Exp x) (exp x))", (1, 18), r"unknown function exp \(did you mean Exp\?"),
    "an unknown fact": ("(rewrite (Exp x) x :when ((positiv x)))", (1, 27), "did you mean positive"),
    "an unbound variable": ("(rewrite (Exp x) (Add x z))", (1, 25), "z is not bound"),
    "a sort": ("(rewrite (Exp x) (Mul x 2.0))", (1, 25), "2.0 to have type T"),
    "a sort of a guard": ("(rewrite (Exp x) x :when ((= (val x) 1)))", (1, 30), "val to have type f64"),
    "a sort in an equation that is dropped": ("(rewrite (Add x 1.0) (Add 1.0 x))", (1, 17), "type T"),
    "numbers": ("(1 2 3)", (1, 1), "unknown form 1"),
    "an option": ("(set-option a 1)", (1, 1), "is a command"),
    "the package's function": ("(function Add (T T) T :merge new)", (1, 11), "Add is used by the package"),
    "the package's constructor": ("(constructor Exp (T) T)", (1, 14), "Exp is used by the package"),
    "parameters of an op": (
        "(rewrite (Exp (Split x)) x)",
        (1, 15),
        "Split takes operands and then axis, parts",
    ),
    "an op declared": ("(constructor Join (T) T)", (1, 14), "Join is an op, which only Python types"),
    "a name of a condition": ("(relation real-valued (T))", (1, 11), "real-valued is used by the package"),
    "operands of a condition": (
        "(rewrite (Exp x) (Neg x) :when ((real-valued x x)))",
        (1, 33),
        "the condition real-valued takes 1 operands, got 2",
    ),
    "a type of what is not bound": ("(rewrite (Exp x) (Fill x (K 1.0 (dt y))))", (1, 37), "y is not bound"),
    "the package's variable": ("(relation e (T))", (1, 11), "e is used by the package"),
    "a primitive": ("(function max (i64 i64) i64 :merge old)", (1, 11), "max is used by the package"),
    "a datatype": ("(datatype Mine (Exp T))", (1, 17), "Exp is used by the package"),
    "a renamed variable": ("(relation ?x (T))", (1, 11), "begins with a letter"),
    "an op of any number of operands": ("(constructor Stack_2 (T T) T)", (1, 14), "ends in a number"),
    "an undefined sort": ("(relation mine (Mine))", (1, 1), "Undefined sort Mine"),
    "a sort that makes others ambiguous": (
        "(sort F (UnstableFn (T) T))",
        (1, 1),
        "rules of the package mean",
    ),
    "a name twice": ("(relation mine (T))\n(function mine (T) i64 :no-merge)", (2, 11), "declared already"),
    "a global": ("(let $one (K 1.0 11))", (1, 1), "terms of one graph"),
    "an equality": ("(union (In 0) (In 1))", (1, 1), "terms of one graph"),
    "a type": ("(set (dt (In 0)) 3)", (1, 1), "dt is the package's"),
    "a table of the package": ("(lossless 1 2)", (1, 1), "lossless is the package's"),
    "a misspelt table": ("(relation mine (i64)) (mime 1)", (1, 23), "mime"),
    "a panic": ('(rule ((= e (Exp x))) ((panic "no")))', (1, 24), "panic is no action"),
    "a deletion": ("(rule ((= e (Exp x))) ((delete (Exp x))))", (1, 24), "delete is no action"),
    "tables of the layer": ("(rule ((= e (Exp x))) ((set (flatten-budget e) 9)))", (1, 24), "rules set dt"),
    "no facts": ("(rule () ((positive (In 0))))", (1, 1), "no term of the graph"),
    "an ungrounded variable": ("(rule ((= x z)) ((positive x)))", (1, 11), "ungrounded"),
    "strings that look like forms": ('(rewrite (Exp x) x :when ((= x "(")))', (1, 32), "a string in a rule"),
    "names that look like actions": (
        '(rewrite (Exp x) x :name "(delete (x")',
        (1, 26),
        "beginning of an action",
    ),
    "rule sets of the compiler": ("(ruleset algebra-expanding)", (1, 10), "does not end in"),
    "a surrogate": ("(rewrite (Exp x)\n  \ud800)", (2, 3), "cannot be encoded"),
    "depth": (
        "(rewrite " + "(Exp " * 70 + "x" + ")" * 70 + " x)",
        (1, 10 + 5 * (MOST_NESTED - 1)),
        "nested more",
    ),
    "many facts": (
        "(rule (" + " ".join(f"(= e{i} (Exp x{i}))" for i in range(MOST_FACTS)) + ") ((positive e0)))",
        (1, 1),
        "the most are",
    ),
    "a long sum": (
        "(rewrite " + "(Add (Exp x) " * MOST_ELEMENTS + "(Exp x)" + ")" * MOST_ELEMENTS + " x)",
        (1, 10),
        "operands; the most are",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused_where_it_stands_and_nothing_of_it_stays(name: str) -> None:
    text, place, reason = REFUSED[name]
    before = RULES.query(Query(["fast_run"])).digest
    with pytest.raises(RuleError, match=reason) as refused:
        RULES.add(text)
    assert (refused.value.line, refused.value.column) == place
    with pytest.raises(RuleError, match=reason):
        RULES.read(text)
    assert not RULES.users_files()
    assert RULES.query(Query(["fast_run"])).digest == before


def test_a_text_is_added_whole_or_not_at_all() -> None:
    with pytest.raises(RuleError, match="unknown op Exq"):
        RULES.add('(relation mine (T)) (rewrite (Exp x) x :name "good") (rewrite (Exq x) x)')
    RULES.add('(relation mine (T)) (rewrite (Tanh (Exp x)) x :name "good")')


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "strict"])
def test_rules_of_one_compilation_are_checked_in_every_mode(mode: str) -> None:
    with pytest.raises(RuleError, match=r"<rules \d+>:1:25: .*2.0 to have type T"):
        optimized(mode, "(rewrite (Exp x) (Mul x 2.0))")
    with pytest.raises(RuleError, match="unknown op Exq"):
        optimized(mode, "(rewrite (Exq x) x)")


def test_texts_of_one_compilation_may_use_what_the_ones_before_declare() -> None:
    declared, using = "(relation mine (T))", "(rule ((= e (Exp x)) (mine x)) ((positive e)))"
    esat.compile(esat.Graph([x], esat.exp(x)), rules=[declared, using])
    with pytest.raises(RuleError, match="mine"):
        esat.compile(esat.Graph([x], esat.exp(x)), rules=[using, declared])


def test_what_a_text_added_can_be_taken_back() -> None:
    before = RULES.query(Query(["fast_run"])).digest
    text = '(relation mine (T)) (rule ((= e (Erf x)) (mine x)) ((positive e)) :name "one")'
    added = RULES.add(text)
    assert added == ("one",)
    with pytest.raises(RuleError, match="mine is declared already, at <rules"):
        RULES.add("(relation mine (T))")
    added.remove()
    added.remove()
    with RULES.add(text), pytest.raises(RuleError, match="the name is taken"):
        RULES.add('(rewrite (Exp x) x :name "one")')
    RULES.add(text)
    RULES.remove("one")  # the last rule takes the declarations along
    assert RULES.query(Query(["fast_run"])).digest == before


def test_what_others_use_stays() -> None:
    first = RULES.add('(relation mine (T)) (rule ((= e (Exp x))) ((mine e)) :name "makes")')
    second = RULES.add('(rule ((mine e)) ((positive e)) :name "uses")')
    for remove in (first.remove, lambda: RULES.remove("makes")):
        with pytest.raises(
            RuleError, match=r"<rules \d+>:1:9: mine, which <rules \d+> declares, is used here"
        ):
            remove()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EsatWarning)  # that saturation ended by its round limit
        optimized()
    second.remove()
    first.remove()


def test_what_no_check_foresees_is_left_out_with_a_warning() -> None:
    for text in (
        "(rule ((= e (Exp x))) ((set (dt e) 3)))",
        "(function mine (T) i64 :no-merge) (rule ((= e (Exp x))) ((set (mine e) 3)))"
        " (rule ((= e (Exp x))) ((set (mine e) 4)))",
    ):
        with RULES.add(text):
            with pytest.warns(EsatWarning, match="rules that were added break this compilation"):
                f = esat.compile(esat.Graph([x], esat.exp(x)))
            np.testing.assert_allclose(f(np.ones(2)), np.exp(np.ones(2)))
        with pytest.raises(EsatError):
            esat.compile(esat.Graph([x], esat.exp(x)), rules=text)


def test_time_and_memory_are_linear_in_the_text() -> None:
    def cost(text: str) -> tuple[int, float]:
        tracemalloc.start()
        start = time.process_time()
        with pytest.raises(RuleError) if text.startswith("((") else warnings.catch_warnings():
            read_forms(text)
        taken = time.process_time() - start
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak, taken

    nested = "(Exp " * (MOST_NESTED - 1) + "x" + ")" * (MOST_NESTED - 1)
    for short in ("(" * 5000, nested * 20, "(rewrite (Exp x) x)\n" * 300):
        one, eight = cost(short)[0], cost(short * 8)[0]
        assert eight < 12 * one
    assert cost("(" * 80_000)[0] < 10_000_000


def test_a_text_that_was_checked_is_not_checked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A store of its own: in the user's, an earlier run has left both texts.
    store = DiskStore(tmp_path, "rules")
    monkeypatch.setattr(admission, "_store", lambda: store)
    text = '(rewrite (Tan (Arctan x)) (Fill x x) :name "checked-once")'
    with RULES.add(text):
        pass
    checked: list[object] = []
    monkeypatch.setattr(admission, "_check", lambda *given: checked.append(given) or ())
    with RULES.add(text):
        assert not checked
    with RULES.add(text.replace("Fill x x", "Fill x (Neg x)")):
        assert checked


def test_tags_are_a_list() -> None:
    for tags in ("fast_run", 3, [1]):
        with pytest.raises(RuleError, match="tags are given as a list"):
            RULES.add("(rewrite (Exp x) x)", tags=tags)  # type: ignore[arg-type]


def test_databases_of_their_own_check_too() -> None:
    with pytest.raises(RuleError, match="Exp takes 1 operands"):
        RuleDatabase().add("(rewrite (Exp x y) x)")


def test_mutants_are_refused_or_leave_compilations_right() -> None:
    """Whatever a text says, it is refused with an EsatError, or graphs are compiled, with it and after it."""
    taken = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EsatWarning)
        for number, text in enumerate(mutants(seed=11, count=90)):
            try:
                added = RULES.add(text)
            except EsatError:
                continue
            taken += 1
            optimized(("fast_run", "strict", "greedy")[number % 3])
            added.remove()
    assert taken > 10
    f = esat.compile(Graph([x, y], esat.exp(x) * y - esat.sin(-y)))
    ones = np.ones(3)
    np.testing.assert_allclose(f(ones, ones), np.exp(ones) + np.sin(ones))


def test_two_values_of_one_term_are_told_with_the_rules_that_set_them():
    text = """(function lo (T) i64 :no-merge)
        (rule ((= e (Sin x))) ((set (lo e) 3)) :name "three") (rule ((= e (Sin x))) ((set (lo e) 4)) :name
        "four")"""
    x = esat.dvector("x")
    with (
        esat.rules.add(text),
        pytest.warns(EsatWarning, match="lo has two values of one term.*three, four"),
    ):
        esat.compile(esat.Graph([x], [esat.sin(x)]))


def test_primitives_whose_names_resemble_ops_are_primitives():
    text = """(function most (T) f64 :merge (max old new))
        (rule ((= e (Sin x))) ((set (most e) (max (neg 1.0) (min 2.0 (abs -3.0))))) :name "most-of-sine")"""
    x = esat.dvector("x")
    with esat.rules.add(text):
        assert esat.compile(esat.Graph([x], [esat.sin(x)]))([0.0]) == 0


IDLE = {
    "(rewrite (Add x y) (Add y x))": "both sides are the same n-ary term",
    "(rewrite (Exp (Add (Log x) m)) x :when ((= (val m) -1.0)))": "stands on the other side",
    "(rule ((= e (Sub x m)) (= -2.0 (val m))) ((union e x)))": "stands on the other side",
    "(rewrite (Exp (Add x (K -1.0 11))) (Exp x))": "stands on the other side",
}


@pytest.mark.parametrize("text", IDLE)
def test_rules_that_can_never_fire_are_told_of_each_time(text):
    for _ in range(2):
        with pytest.warns(EsatWarning, match=f"can never fire in saturating modes: .*{IDLE[text]}"):
            RULES.add(text).remove()


def test_rules_that_fire_are_not_told_of(recwarn):
    RULES.add("(rewrite (Exp (Mul (Log x) m)) x :when ((= (val m) -1.0)))").remove()
    RULES.add("(rewrite (Exp (Sub (Log x) m)) x :when ((= (val m) 1.0)))").remove()
    assert not recwarn.list
