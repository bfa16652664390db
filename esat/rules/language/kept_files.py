"""Rule files that were read before: their rules are found on disk, and each is read itself when asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from esat.base.storage import SHIPPED, DiskStore, default_directory, digest_of, digest_of_sources
from esat.rules.language.reader import Position, read_forms
from esat.rules.language.rule import Rule, RuleFile, Ruleset, read_rules


@cache
def _store() -> DiskStore:
    return DiskStore(default_directory(), "rules", shipped=SHIPPED)


@cache
def _reader() -> str:
    """Stands for the code that reads rules."""
    return digest_of_sources(Path(__file__).resolve().parent.parent)


def read_files(paths: Sequence[Path], store: DiskStore | None = None) -> list[RuleFile]:
    """The rules of files, from disk where these very texts have been read before.

    Parameters
    ----------
    paths
        The files.
    store
        Where what they say is kept; by default in the user's cache.

    Errors
    ------
    RuleError
        As :func:`esat.rules.language.rule.read_rules`, for the first file that cannot be read.
    """
    try:
        texts = [path.read_text(encoding="utf-8") for path in paths]
    except (OSError, UnicodeDecodeError):
        return [read_rules(path) for path in paths]  # which tells what is wrong
    kept = _store() if store is None else store
    key = digest_of([_reader(), *(path.name for path in paths), *texts])
    files = kept.load(key, lambda payload: _decoded(bytes(payload), paths))
    if files is None:
        files = [read_rules(text, file=str(path)) for path, text in zip(paths, texts, strict=True)]
        kept.save(key, _encoded(files))
    return files


def _encoded(files: Sequence[RuleFile]) -> bytes:
    return json.dumps([_plain(file) for file in files], separators=(",", ":")).encode()


def _plain(file: RuleFile) -> tuple[object, ...]:
    def defaults(item: Rule | Ruleset) -> tuple[object, ...]:
        return item.name, sorted(item.tags), item.soundness, *item.position[1:]

    rules = [(*defaults(rule), rule.ruleset, rule.kind, rule.source) for rule in file.rules]
    declarations = [(form.source, *form.position[1:]) for form in file.declarations]
    return rules, [defaults(ruleset) for ruleset in file.rulesets], declarations


def _decoded(payload: bytes, paths: Sequence[Path]) -> list[RuleFile]:
    """Files as they stand here: they may have been read elsewhere."""
    return [_file(str(path), *plain) for path, plain in zip(paths, json.loads(payload), strict=True)]


def _file(file: str, rules: list[Any], rulesets: list[Any], declarations: list[Any]) -> RuleFile:
    return RuleFile(
        file,
        tuple(
            Rule(name, ruleset, frozenset(tags), soundness, kind, source, Position(file, line, column))
            for name, tags, soundness, line, column, ruleset, kind, source in rules
        ),
        tuple(
            Ruleset(name, frozenset(tags), soundness, Position(file, line, column))
            for name, tags, soundness, line, column in rulesets
        ),
        tuple(read_forms(source, file, line, column)[0] for source, line, column in declarations),
    )
