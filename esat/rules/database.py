"""The rule database: the rule files of the package and the user's own, selected by Query."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from esat.errors import RuleError
from esat.records import record
from esat.rules.kept_files import read_files
from esat.rules.query import Query
from esat.rules.rule import SOUNDNESS_CLASSES, Rule, RuleFile, Soundness, read_rules
from esat.rules.spelling import suggestion
from esat.storage import digest_of

PACKAGE_RULES = Path(__file__).resolve().parent
DEFAULT_TAGS = frozenset({"canonicalize", "fast_run"})
SELECTIONS_KEPT = 32


@record(frozen=True)
class RuleSelection:
    """Rules for one compilation.

    Attributes
    ----------
    files
        The rule files, each reduced to the selected rules; declarations are kept.
    """

    files: tuple[RuleFile, ...]

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The selected rules, in order of their files."""
        return tuple(rule for file in self.files for rule in file.rules)

    @cached_property
    def key(self) -> tuple[tuple[str, ...], ...]:
        """What tells this selection from others."""
        return tuple((file.file, *(rule.name for rule in file.rules)) for file in self.files)

    @cached_property
    def digest(self) -> str:
        """Stands for the rules and declarations.

        Rules count by their text, whatever file it stands in. Of the file it only matters whether it is the
        user's: then rules without end are warned of.
        """
        parts: list[str] = []
        for file in self.files:
            parts.append(repr(file.file.startswith(str(PACKAGE_RULES))))
            parts += [form.source for form in file.declarations]
            for rule in file.rules:
                parts += [rule.name, rule.ruleset, rule.soundness, rule.kind, rule.source]
        return digest_of(parts)


class RuleDatabase:
    """Named rules, from files and texts; thread-safe.

    The package's own files are read when first needed. Rules added later do not change functions
    that were compiled before.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._files: list[RuleFile] | None = None
        self._selections: dict[tuple[Query, Soundness], RuleSelection] = {}
        self._added = 0
        self._lock = threading.RLock()

    def _loaded(self) -> list[RuleFile]:
        with self._lock:
            if self._files is None:
                paths = sorted(self._directory.glob("*.egg")) if self._directory else []
                self._files = read_files(paths)
            return self._files

    def load(
        self, source: str | Path, *, tags: Iterable[str] = (), soundness: Soundness = "real"
    ) -> tuple[str, ...]:
        """Add the rules of a file, or of a text, and return their names.

        Parameters
        ----------
        source
            Path of a file in egglog syntax, or the text itself (recognized by its parentheses).
        tags
            Tags of all its rules, beside those its rule sets declare. With none of either the rules
            are tagged ``canonicalize`` and ``fast_run``.
        soundness
            Class of the rules that do not say theirs.

        Raises
        ------
        RuleError
            With file, line and column, when the text cannot be read or a name is taken.
        """
        file = _tagged(self._read(source, tags, soundness))
        with self._lock:
            taken = {rule.name: rule for known in self._loaded() for rule in known.rules}
            for rule in file.rules:
                if rule.name in taken:
                    raise rule.error(f"the name is taken by the rule at {taken[rule.name].position}")
            self._loaded().append(file)
            self._selections.clear()
        return tuple(dict.fromkeys(rule.report_name for rule in file.rules))

    def add(self, text: str, *, tags: Iterable[str] = (), soundness: Soundness = "real") -> tuple[str, ...]:
        """Add rules given as text; see :meth:`load`."""
        return self.load(text, tags=tags, soundness=soundness)

    def remove(self, name: str) -> None:
        """Forget a rule (both directions of a birewrite). Raises RuleError for an unknown name."""
        self.find(name)
        with self._lock:
            self._files = [_reduced(file, lambda rule: rule.report_name != name) for file in self._loaded()]
            self._selections.clear()

    def _read(self, source: str | Path, tags: Iterable[str], soundness: Soundness) -> RuleFile:
        with self._lock:
            self._added += 1
            known = [ruleset for file in self._loaded() for ruleset in file.rulesets]
            name = f"<rules {self._added}>"
        chosen = tuple(tags)
        return read_rules(source, tags=chosen, soundness=soundness, file=name, rulesets=known)

    def list(self, query: Query | None = None) -> tuple[Rule, ...]:
        """All rules, or those a Query selects."""
        if query is not None:
            return self.query(query).rules
        return tuple(rule for file in self._loaded() for rule in file.rules)

    def find(self, name: str) -> tuple[Rule, ...]:
        """The rules of a name: one, or the two directions of a birewrite."""
        found = tuple(rule for rule in self.list() if name in (rule.name, rule.report_name))
        if not found:
            names = [rule.report_name for rule in self.list()]
            raise RuleError(f"no rule is named {name!r}{suggestion(name, names)}")
        return found

    def show(self, name: str) -> str:
        """A rule as text: where it stands, its tags and soundness class, and its source."""
        rule = self.find(name)[0]
        tags = ", ".join(sorted(rule.tags)) or "none"
        return f"; {rule.position}\n; soundness: {rule.soundness}; tags: {tags}\n{rule.source}"

    def query(
        self,
        query: Query,
        *,
        soundness: Soundness = "real",
        extra: Iterable[RuleFile] = (),
    ) -> RuleSelection:
        """The rules whose tags a Query selects and whose soundness class is admitted.

        Parameters
        ----------
        query
            By tags; a rule's name and its rule set count as tags.
        soundness
            The loosest class admitted.
        extra
            Rule files of one compilation, taken whole where their class is admitted.
        """
        extra = tuple(extra)
        if extra:
            return self._select(query, soundness, extra)
        with self._lock:
            # Most compilations ask the same; the digest of a selection stays with it.
            known = self._selections.get((query, soundness))
            if known is None:
                if len(self._selections) >= SELECTIONS_KEPT:
                    self._selections.clear()
                known = self._selections[query, soundness] = self._select(query, soundness)
            return known

    def _select(self, query: Query, soundness: Soundness, extra: Iterable[RuleFile] = ()) -> RuleSelection:
        admitted = SOUNDNESS_CLASSES[: SOUNDNESS_CLASSES.index(soundness) + 1]

        def selected(rule: Rule) -> bool:
            labels = (*rule.tags, rule.ruleset)
            return rule.soundness in admitted and query.selects(rule.report_name, labels)

        def admissible(rule: Rule) -> bool:
            return rule.soundness in admitted

        files = [_reduced(file, selected) for file in self._loaded()]
        files += [_reduced(file, admissible) for file in extra]
        return RuleSelection(tuple(file for file in files if file.rules or file.declarations))

    def read(self, source: str | Path) -> RuleFile:
        """Read rules for one compilation, without adding them."""
        return self._read(source, (), "real")


def _tagged(file: RuleFile) -> RuleFile:
    """The file with the default tags on rules that have none."""
    rules = tuple(rule if rule.tags else replace(rule, tags=DEFAULT_TAGS) for rule in file.rules)
    return replace(file, rules=rules)


def _reduced(file: RuleFile, keep: Callable[[Rule], bool]) -> RuleFile:
    return RuleFile(
        file.file, tuple(rule for rule in file.rules if keep(rule)), file.rulesets, file.declarations
    )
