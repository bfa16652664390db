"""Prepared rules come back from disk as they were; what is damaged or stale is made again."""

from dataclasses import replace

import pytest

from esat.base.storage import CacheWarning, DiskStore
from esat.egraph.language import content_keys
from esat.egraph.preparation import prepare
from esat.egraph.preparation.kept_rules import PreparedRules, compiled_rules, prepared_rules
from esat.egraph.preparation.prepare import prepared
from esat.egraph.preparation.rule_program import program_for
from esat.rules import RULES, read_rules
from esat.rules.language.query import Query
from esat.rules.language.rule_selection import RuleSelection

RULES_READ = read_rules('(ruleset r)(rewrite (Exp (Log x)) x :ruleset r :name "exp-log")').rules


class Preparing:
    """Counts how often rules are prepared."""

    def __init__(self, prepared):
        self.prepared = prepared
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.prepared


@pytest.fixture
def store(tmp_path):
    return DiskStore(tmp_path, "rules")


@pytest.fixture(scope="module")
def program():
    return program_for(RULES.query(Query(["fast_run"])))


def test_what_comes_back_is_equal(store, program):
    rules = program.selection.rules
    preparing = Preparing(prepared(program).rules)
    for _ in range(2):
        found = prepared_rules(program.digest, rules, preparing, store)
        assert found == prepared(program).rules
    assert preparing.calls == 1
    assert any(module.rule is not None and module.ruleset for module in found.modules)
    assert any(module.rule is None and module.ruleset for module in found.modules)


def test_other_rules_are_prepared_for_themselves(store):
    preparing = Preparing(PreparedRules((), (), ()))
    for digest in ("0" * 64, "1" * 64, "0" * 64):
        prepared_rules(digest, RULES_READ, preparing, store)
    assert preparing.calls == 2


@pytest.mark.parametrize("damage", ["half", "flipped", "empty"])
def test_a_damaged_entry_is_made_again(store, program, damage):
    rules, preparing = program.selection.rules, Preparing(prepared(program).rules)
    prepared_rules(program.digest, rules, preparing, store)
    (path,) = store.path.iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes({"half": content[: len(content) // 2], "flipped": content, "empty": b""}[damage])
    with pytest.warns(CacheWarning, match="made again"):
        assert prepared_rules(program.digest, rules, preparing, store) == prepared(program).rules
    assert prepared_rules(program.digest, rules, preparing, store) == prepared(program).rules
    assert preparing.calls == 2


def test_an_entry_about_more_rules_than_there_are_is_made_again(store, program):
    preparing = Preparing(prepared(program).rules)
    prepared_rules(program.digest, program.selection.rules, preparing, store)
    other = Preparing(PreparedRules((), (), ()))
    with pytest.warns(CacheWarning, match="made again"):
        prepared_rules(program.digest, RULES_READ, other, store)
    assert other.calls == 1


def test_without_a_disk_rules_are_prepared_each_time():
    preparing = Preparing(PreparedRules((), ("r",), ()))
    for _ in range(2):
        assert prepared_rules("0" * 64, RULES_READ, preparing, DiskStore(None, "rules")) == preparing.prepared
    assert preparing.calls == 2


def test_the_key_holds_what_a_rule_says(program):
    """Text, name, class and order: each gives another key, the file a rule stands in does not."""
    selection = program.selection
    (file, *others) = selection.files
    rule, second, *rest = file.rules
    changes = {
        "source": (replace(rule, source=rule.source + " "), second, *rest),
        "name": (replace(rule, name="other"), second, *rest),
        "soundness": (replace(rule, soundness="unsafe"), second, *rest),
        "order": (second, rule, *rest),
        "number": (second, *rest),
    }
    digests = {
        name: program_for(replace(selection, files=(replace(file, rules=rules), *others))).digest
        for name, rules in changes.items()
    }
    digests["as it was"] = program.digest
    digests["strict"] = program_for(selection, strict=True).digest
    assert len(set(digests.values())) == len(digests)


def test_compiled_rules_come_back_equal(store, program):
    rules = program.selection.rules
    compiling = Preparing(prepare._compile(program, program.selection))
    for _ in range(3):
        assert compiled_rules("package", rules, compiling, store) == compiling.prepared
    assert compiling.calls == 1
    assert compiling.prepared.dropped


def test_rules_of_the_package_are_compiled_once_whatever_a_user_adds(store, program, monkeypatch):
    kept, compiled = compiled_rules, []
    monkeypatch.setattr(prepare, "compiled_rules", lambda *arguments: kept(*arguments, store))
    compile_rules = prepare.compile_rules

    def compiling(rules, *arguments, known=None, **options):
        compiled.append(len(rules) - (0 if known is None else len(program.selection.rules)))
        return compile_rules(rules, *arguments, known=known, **options)

    monkeypatch.setattr(prepare, "compile_rules", compiling)
    for name in ("first", "second"):
        own = read_rules(f'(ruleset own)(rewrite (Tanh (Neg x)) (Neg (Tanh x)) :ruleset own :name "{name}")')
        selection = RuleSelection((*program.selection.files, own))
        extended = program_for(selection)
        together = prepare._compiled(extended)
        assert together == compile_rules(
            selection.rules,
            {**program.signature.operators, **prepare.FACT_OPERATORS},
            declarations=tuple(form for file in selection.files for form in file.declarations),
            wide={name},
        )
    assert compiled == [len(program.selection.rules), 1, 1]


def test_keys_know_the_build_of_egglog_by_its_content(tmp_path, monkeypatch):
    """Neither where it is installed nor when changes a key; another build does."""

    def key(folder, content, recorded):
        package = tmp_path / folder / "egglog"
        package.mkdir(parents=True)
        module = package / "bindings.abi3.so"
        module.write_bytes(content)
        if recorded:
            record = package.parent / "egglog-13.2.0.dist-info" / "RECORD"
            record.parent.mkdir()
            record.write_text(
                f"egglog/__init__.py,,\negglog/{module.name},sha256={recorded},{len(content)}\n"
            )
        monkeypatch.setattr(content_keys, "native_module_file", lambda: module)
        return content_keys.code_digest.__wrapped__()

    assert key("here", b"code", "abc") == key("there", b"code", "abc")
    assert key("elsewhere", b"code", "abd") != key("again", b"code", "abc")
    assert key("plain", b"code", "") == key("copied", b"code", "") != key("changed", b"edoc", "")
