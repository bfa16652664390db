"""Rule text becomes rules with positions; what cannot be read is refused where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from esat.errors import RuleError
from esat.rules import Operator, declared_signature, elementwise, read_forms, read_rules
from esat.rules.language.reader import is_number, is_string, is_variable, position_of, show, string_value
from esat.rules.language.rule_signature import check

TEXT = """\
; algebra of numbers
(ruleset algebra :tags (canonicalize fast_run) :soundness exact)
(rewrite (Neg (Neg x)) x ; twice
  :ruleset algebra :name "neg-neg")
(birewrite (Sub a b) (Add a (Neg b)) :ruleset algebra :soundness real
  :name "sub" :when ((= (val a) 1.5e-3)))
(rule ((= e (Exp x)) (positive x)) ((union e x) (positive e)))
(lossless 1 2)
"""


def test_forms_compare_like_tuples_and_know_their_places() -> None:
    first, second = read_forms('(a (b "x) ;" -1.5)\n  c) ; (not this)\n\n  (d)', file="f.egg")
    assert first == ("a", ("b", '"x) ;"', "-1.5"), "c")
    assert hash(first) == hash(("a", ("b", '"x) ;"', "-1.5"), "c"))
    assert str(first.position) == "f.egg:1:1"
    assert [str(position_of(item)) for item in first] == ["f.egg:1:2", "f.egg:1:4", "f.egg:2:3"]
    assert (second.position.line, second.position.column) == (4, 3)
    assert first.source == '(a (b "x) ;" -1.5)\n  c)'
    assert show(first) == '(a (b "x) ;" -1.5) c)'


def test_strings_span_lines() -> None:
    (form, after) = read_forms('(p "one\ntwo \\"quoted\\"")(q)')
    assert string_value(form[1]) == 'one\ntwo "quoted"'
    assert (after.position.line, after.position.column) == (2, 17)


@pytest.mark.parametrize("text", ["0", "-7", "1.0", "+2.5e-8", "inf", "-inf", "NaN", "1e400", ".5"])
def test_numbers(text: str) -> None:
    assert is_number(text)
    assert not is_variable(text)


@pytest.mark.parametrize("text", ["x", "-", "e1", "x1", "?x", "_", "inform", "<=", "1x"])
def test_symbols_are_no_numbers(text: str) -> None:
    assert not is_number(text)
    assert is_variable(text)


def test_literals_and_globals_are_no_variables() -> None:
    assert is_string('"x"')
    assert not any(map(is_variable, ('"x"', "$one", "true", "false", ("f", "x"))))


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("(a\n (b c)", (1, 1), r"'\(a \.\.\.' is never closed"),
        ("(a)\n (b (c)", (2, 2), r"'\(b \.\.\.' is never closed"),
        ("(a))", (1, 4), "matches no opening one"),
        ('(a\n "b)', (2, 2), "no closing quote"),
        ("(a)\nb", (2, 1), "found the symbol b"),
    ],
)
def test_unreadable_text(text: str, place: tuple[int, int], reason: str) -> None:
    with pytest.raises(RuleError, match=reason) as refused:
        read_forms(text, "bad.egg")
    assert (refused.value.file, refused.value.line, refused.value.column) == ("bad.egg", *place)


def test_rules_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "user.egg"
    path.write_text(TEXT)
    file = read_rules(path, tags=["mine"])
    negation, forward, backward, fact = file.rules
    assert negation.name == negation.report_name == "neg-neg"
    assert negation.body == (("=", "root", ("Neg", ("Neg", "x"))),)
    assert negation.head == (("union", "root", "x"),)
    assert (negation.ruleset, negation.soundness, negation.kind) == ("algebra", "exact", "rewrite")
    assert negation.tags == {"canonicalize", "fast_run", "mine"}
    assert (negation.file, negation.line, negation.column) == (str(path), 3, 1)
    assert negation.source.startswith("(rewrite (Neg (Neg x)) x ; twice\n")
    assert (forward.name, backward.name) == ("sub=>", "sub<=")
    assert forward.report_name == backward.report_name == "sub"
    assert (forward.soundness, backward.soundness) == ("real", "real")
    assert forward.head == (("union", "root", ("Add", "a", ("Neg", "b"))),)
    assert backward.body == (
        ("=", "root", ("Add", "a", ("Neg", "b"))),
        ("=", ("val", "a"), "1.5e-3"),
    )
    assert (fact.name, fact.ruleset, fact.soundness, fact.tags) == ("user.egg:7:1", "user", "real", {"mine"})
    assert file.declarations == (("lossless", "1", "2"),)
    assert [ruleset.name for ruleset in file.rulesets] == ["algebra"]


def test_the_root_variable_is_fresh() -> None:
    (rule,) = read_rules("(rewrite (Neg root) root)").rules
    assert rule.body == (("=", "root_", ("Neg", "root")),)
    assert rule.head == (("union", "root_", "root"),)


def test_subsume_adds_an_action() -> None:
    (rule,) = read_rules("(rewrite (Neg (Neg x)) x :subsume)").rules
    assert rule.head[1] == ("subsume", ("Neg", ("Neg", "x")))


def test_rules_may_join_rule_sets_of_other_files() -> None:
    known = read_rules(TEXT).rulesets
    (rule,) = read_rules("(rewrite (Exp x) x :ruleset algebra)", rulesets=known, tags=["mine"]).rules
    assert rule.soundness == "exact"
    assert rule.tags == {"canonicalize", "fast_run", "mine"}


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("(rewrite (Neg x) x :nme 1)", (1, 20), r"unknown keyword :nme .*did you mean :name\?"),
        ("(rule ((Neg x)) () :when ())", (1, 20), "unknown keyword :when of rule"),
        ("(rewrite (Neg x) x\n :soundness exat)", (2, 13), r"exat \(did you mean exact\?\)"),
        ("(rewrite (Neg x) x :name neg)", (1, 26), "a string in quotes"),
        ('(rewrite (Neg x) x :name "a#b")', (1, 26), "no '#'"),
        ("(rewrite (Neg x) x :name)", (1, 20), ":name expects a value"),
        ('(rewrite (Neg x) x :name "a" :name "b")', (1, 30), "given twice"),
        ("(rewrite (Neg x) x :ruleset foo)", (1, 29), "foo is not declared"),
        ("(rewrite (Neg x) x y)", (1, 20), "keyword options, found y"),
        ("(rewrite (Neg x))", (1, 1), "a left and a right side"),
        ("(rewrite x (Neg x))", (1, 10), "is a term, not an atom"),
        ("(birewrite (Neg x) x)", (1, 20), "would match every term"),
        ("(rule (= e (Neg x)) ((union e x)))", (1, 8), "a list of forms in parentheses, found ="),
        ("(rewrite (Neg x) x :when (= x x))", (1, 27), ":when is a list of forms"),
        ("(ruleset a) (ruleset a)", (1, 13), "declared twice, before at <rules>:1:1"),
        ("(ruleset a :tags fast)", (1, 18), ":tags expects a list"),
        ("(run 3)", (1, 1), "run is a command"),
        ("(rewrit (Neg x) x)", (1, 1), r"unknown form rewrit \(did you mean rewrite"),
        ("(rewrite (DimShuffle x (ds-comp p)) x)", (1, 24), "ds-comp takes 2 operands, got 1"),
        (
            '(rewrite (Neg x) x :name "a")\n(rewrite (Exp x) x :name "a")',
            (2, 1),
            "'a' is taken by the rule at <rules>:1:1",
        ),
    ],
)
def test_refused_rules(text: str, place: tuple[int, int], reason: str) -> None:
    with pytest.raises(RuleError, match=reason) as refused:
        read_rules(text)
    assert (refused.value.line, refused.value.column) == place


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"missing\.egg.*No such file"):
        read_rules(tmp_path / "missing.egg")
    with pytest.raises(RuleError, match=r"elsewhere\.egg"):
        read_rules("elsewhere.egg")
    (tmp_path / "latin.egg").write_bytes(b"; caf\xe9")
    with pytest.raises(RuleError, match="not UTF-8"):
        read_rules(tmp_path / "latin.egg")
    with pytest.raises(RuleError, match="unknown soundness class 'maybe'"):
        read_rules("(ruleset a)", soundness="maybe")  # type: ignore[arg-type]


def test_texts_without_rules() -> None:
    for text in ("", "  \n", "; a comment"):
        assert read_rules(text).rules == ()


def test_check_names_the_first_wrong_term() -> None:
    signature = {"Exp": elementwise(1), "Expm1": elementwise(1), "positive": Operator(("T",), "Unit")}
    check(read_rules("(rewrite (Exp x) (Expm1 x) :when ((positive x) (< 1 (& 2 3))))"), signature)
    for text, column, reason in [
        ("(rewrite (Exp x) (Expm2 x))", 18, r"unknown op Expm2 \(did you mean Expm1"),
        ("(rewrite (Exp x y) x)", 10, r"Exp takes 1 operands \(T\), got 2"),
        ("(rewrite (Exp x) x :when ((positiv x)))", 27, r"unknown function positiv \(did you mean positive"),
    ]:
        with pytest.raises(RuleError, match=reason) as refused:
            check(read_rules(text), signature)
        assert refused.value.column == column


def test_check_knows_what_the_file_declares() -> None:
    file = read_rules(
        "(constructor Mine (T i64) T) (relation fine (T)) (rewrite (Mine x 1) x :when ((fine x)))"
    )
    check(file, {})
    assert declared_signature(file.declarations) == {
        "Mine": Operator(("T", "i64")),
        "fine": Operator(("T",), "Unit"),
    }
