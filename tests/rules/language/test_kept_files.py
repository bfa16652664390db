"""Rule files that were read before say the same when they come from disk."""

import pytest

import esat.rules.language.kept_files as kept_files
from esat.base.storage import CacheWarning, DiskStore
from esat.errors import RuleError
from esat.rules import PACKAGE_RULES
from esat.rules.language.kept_files import read_files
from esat.rules.language.rule import read_rules

PATHS = sorted(PACKAGE_RULES.glob("*.egg"))


@pytest.fixture
def store(tmp_path):
    return DiskStore(tmp_path / "cache", "rules")


@pytest.fixture
def reads(monkeypatch):
    """The names of the files whose rules were read from their texts."""
    names = []

    def reading(source, **options):
        names.append(options.get("file", str(source)))
        return read_rules(source, **options)

    monkeypatch.setattr(kept_files, "read_rules", reading)
    return names


def sides(files):
    """What the rules say, and where each part of it stands."""

    def placed(sexp):
        if isinstance(sexp, str):
            return sexp, getattr(sexp, "position", None)
        return tuple(map(placed, sexp)), getattr(sexp, "position", None)

    return [(rule.name, placed(rule.body), placed(rule.head)) for file in files for rule in file.rules]


def test_the_rules_of_the_package_come_back_as_they_were(store, reads):
    read = read_files(PATHS, store)
    assert reads == [str(path) for path in PATHS]
    kept = read_files(PATHS, store)
    assert len(reads) == len(PATHS)
    assert kept == read == [read_rules(path) for path in PATHS]
    assert sides(kept) == sides(read)
    for before, after in zip(read, kept, strict=True):
        for form, again in zip(before.declarations, after.declarations, strict=True):
            assert (form.position, form.source) == (again.position, again.source)


def test_files_that_were_read_elsewhere_stand_where_they_are(store, reads, tmp_path):
    (path,) = [path for path in PATHS if path.name == sorted(one.name for one in PATHS)[0]]
    (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    read_files([tmp_path / path.name], store)
    (file,) = read_files([path], store)
    assert len(reads) == 1
    assert file == read_rules(path)
    assert {rule.position.file for rule in file.rules} == {str(path)}


def test_a_changed_file_is_read_anew(store, reads, tmp_path):
    path = tmp_path / "mine.egg"
    path.write_text('(ruleset r)\n(rewrite (Neg (Neg x)) x :ruleset r :name "twice")')
    assert [rule.name for rule in read_files([path], store)[0].rules] == ["twice"]
    path.write_text('(ruleset r)\n(rewrite (Exp (Log x)) x :ruleset r :name "other")')
    (rule,) = read_files([path], store)[0].rules
    assert (rule.name, rule.body) == ("other", (("=", "root", ("Exp", ("Log", "x"))),))
    assert len(reads) == 2


def test_a_damaged_entry_is_read_anew(store, reads):
    read_files(PATHS, store)
    (path,) = store.path.iterdir()
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.warns(CacheWarning, match="made again"):
        assert read_files(PATHS, store) == [read_rules(path) for path in PATHS]
    assert len(reads) == 2 * len(PATHS)


def test_mistakes_are_told_each_time(store, tmp_path):
    path = tmp_path / "mine.egg"
    path.write_text("(rewrite (Neg x) x\n  :nme 1)")
    for _ in range(2):
        with pytest.raises(RuleError, match="unknown keyword :nme") as refused:
            read_files([path], store)
        assert (refused.value.file, refused.value.line, refused.value.column) == (str(path), 2, 3)
    with pytest.raises(RuleError, match="No such file"):
        read_files([tmp_path / "missing.egg"], store)
    path.write_bytes(b"; caf\xe9")
    with pytest.raises(RuleError, match="not UTF-8"):
        read_files([path], store)
