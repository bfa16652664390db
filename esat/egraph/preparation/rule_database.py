"""The rule database: the rule files of the package and the user's own, selected by Query."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from esat.base.forks import GATE
from esat.base.spelling import suggestion
from esat.errors import RuleError
from esat.graph.calls.arguments import instance_of
from esat.graph.changes import note_change
from esat.rules.language.kept_files import read_files
from esat.rules.language.query import Query
from esat.rules.language.reader import position_of, subforms
from esat.rules.language.rule import SOUNDNESS_CLASSES, Rule, RuleFile, Soundness, read_rules
from esat.rules.language.rule_selection import PACKAGE_RULES, RuleSelection, reduced
from esat.rules.language.rule_signature import declared_names

DEFAULT_TAGS = frozenset({"canonicalize", "fast_run"})
SELECTIONS_KEPT = 32


class AddedRules(tuple[str, ...]):
    """Names of the rules that a text added; takes all of it back, at once or after a ``with`` block."""

    text: str
    _database: RuleDatabase

    @classmethod
    def of(cls, file: RuleFile, database: RuleDatabase) -> AddedRules:
        added = cls(dict.fromkeys(rule.report_name for rule in file.rules))
        added.text = file.file
        added._database = database
        return added

    def remove(self) -> None:
        """Forget the text: its rules, rule sets and declarations. A second time does nothing.

        Raises
        ------
        RuleError
            Where a text added later uses what this one declares.
        """
        if self._database.has_text(self.text):
            self._database.remove(self.text)

    def __enter__(self) -> AddedRules:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


Check = Callable[[RuleFile, Sequence[RuleFile]], None]
"""Raises RuleError for a text that cannot be taken beside others."""


def _admit(file: RuleFile, others: Sequence[RuleFile]) -> None:
    """Checks texts against ops and egglog, which are loaded for them."""
    from esat.egraph.preparation.admission import admit

    admit(file, others)


class RuleDatabase:
    """Named rules, from files and texts; thread-safe.

    The package's own files are read when first needed. Rules that are added or removed do not change what
    ``esat.compile`` has made; functions of ``esat.jit`` are compiled anew.

    Parameters
    ----------
    directory
        Where the package's own files are.
    check
        What users' texts are checked with when they come.
    """

    def __init__(self, directory: Path | None = None, check: Check = _admit) -> None:
        self._directory = directory
        self._check = check
        self._files: tuple[RuleFile, ...] | None = None
        self._selections: dict[tuple[Query, Soundness], RuleSelection] = {}
        self._added = 0
        # Within compilations, for which forks wait: a lock that a fork takes itself would wait for them.
        self._lock = threading.RLock()

    def files(self) -> tuple[RuleFile, ...]:
        """All files and texts, those of the package first."""
        with GATE.busy(), self._lock:
            if self._files is None:
                paths = sorted(self._directory.glob("*.egg")) if self._directory else []
                self._files = tuple(read_files(paths))
            return self._files

    def users_files(self) -> tuple[RuleFile, ...]:
        """What users added."""
        return tuple(file for file in self.files() if not self._is_own(file))

    def has_text(self, text: str) -> bool:
        """Whether users added a text or file of this name and did not remove it."""
        return any(file.file == text for file in self.users_files())

    def _is_own(self, file: RuleFile) -> bool:
        return self._directory is not None and Path(file.file).parent == self._directory

    def load(
        self, source: str | Path, *, tags: Iterable[str] = (), soundness: Soundness = "real"
    ) -> AddedRules:
        """Add the rules of a file, or of a text, and return their names.

        All of it is added, or nothing: what cannot be compiled is refused here, whatever the graph.
        What is returned takes it back: ``added.remove()``, or ``with esat.rules.add(...):``.

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
            With file, line and column, when the text cannot be read, names what does not exist, gives
            operands of a wrong number or sort, declares anew what the package has, or a name is taken.
        """
        # The gate before the lock: who holds the lock keeps forks waiting.
        with GATE.busy(), self._lock:
            file = _tagged(self._read(source, tags, soundness))
            if self.has_text(file.file):
                raise RuleError("this file is added already; remove it first", file.file)
            self._require_admissible(file, ())
            self._replace((*self.files(), file))
            return AddedRules.of(file, self)

    def add(self, text: str, *, tags: Iterable[str] = (), soundness: Soundness = "real") -> AddedRules:
        """Add rules given as text; see :meth:`load`."""
        return self.load(text, tags=tags, soundness=soundness)

    def remove(self, name: str) -> None:
        """Forget a rule (both directions of a birewrite), or all that a text or a file of users said.

        With the last rule of a text its declarations go, too.

        Parameters
        ----------
        name
            Of a rule, or of a text: the path of the file, or what messages call it (``<rules 1>``).

        Raises
        ------
        RuleError
            For an unknown name, or where another text uses what this one declares.
        """
        with GATE.busy(), self._lock:
            if self.has_text(name):
                left = tuple(file for file in self.files() if file.file != name or self._is_own(file))
                (gone,) = (file for file in self.users_files() if file.file == name)
                _require_unused(gone, left)
                self._replace(left)
                return
            rules = self.find(name)
            names = {rule.report_name for rule in rules}
            left = tuple(reduced(file, lambda rule: rule.report_name not in names) for file in self.files())
            emptied = [
                now
                for now, before in zip(left, self.files(), strict=True)
                if before.rules and not now.rules and not self._is_own(now)
            ]
            for file in emptied:
                _require_unused(file, [other for other in left if other is not file])
            self._replace(tuple(file for file in left if file not in emptied))

    def _replace(self, files: tuple[RuleFile, ...]) -> None:
        self._files = files
        self._selections.clear()
        note_change()

    def _require_admissible(self, file: RuleFile, beside: Sequence[RuleFile]) -> None:
        """Raise for a text that cannot stand beside what there is, and other texts."""
        known = (*self.files(), *beside)
        taken = {rule.name: rule for one in known for rule in one.rules}
        for rule in file.rules:
            if rule.name in taken:
                raise rule.error(f"the name is taken by the rule at {taken[rule.name].position}")
        self._check(file, (*self.users_files(), *beside))

    def _read(self, source: str | Path, tags: Iterable[str], soundness: Soundness) -> RuleFile:
        self._added += 1
        known = [ruleset for file in self.files() for ruleset in file.rulesets]
        name = f"<rules {self._added}>"
        chosen = _checked_tags(tags)
        return read_rules(source, tags=chosen, soundness=soundness, file=name, rulesets=known)

    def list(self, query: Query | None = None) -> tuple[Rule, ...]:
        """All rules, or those a Query selects."""
        if query is not None:
            return self.query(instance_of("list", "query", query, Query)).rules
        return tuple(rule for file in self.files() for rule in file.rules)

    def find(self, name: str) -> tuple[Rule, ...]:
        """The rules of a name: one, or the two directions of a birewrite."""
        instance_of("find", "name", name, str)
        found = tuple(rule for rule in self.list() if name in (rule.name, rule.report_name))
        if not found:
            names = [rule.report_name for rule in self.list()]
            raise RuleError(f"no rule is named {name!r}{suggestion(name, names)}")
        return found

    def show(self, name: str) -> str:
        """A rule as text: where it stands, its tags and soundness class, and its source."""
        instance_of("show", "name", name, str)
        rule = self.find(name)[0]
        tags = ", ".join(sorted(rule.tags)) or "none"
        return f"; {rule.position}\n; soundness: {rule.soundness}; tags: {tags}\n{rule.source}"

    def query(
        self,
        query: Query,
        *,
        soundness: Soundness = "real",
        extra: Iterable[RuleFile] = (),
        users: tuple[RuleFile, ...] | None = None,
    ) -> RuleSelection:
        """The rules whose tags a Query selects and whose soundness class is admitted.

        Parameters
        ----------
        query
            By tags; a rule's name and its rule set count as tags.
        soundness
            The loosest class admitted.
        extra
            Rule files of one compilation; of these what the Query does not exclude, or require tags of.
        users
            Taken instead of what users added, where it is given.
        """
        extra = tuple(extra)
        if users == self.users_files():
            users = None

        def selected(rule: Rule) -> bool:
            return query.selects(rule.report_name, rule.labels)

        if extra or users is not None:
            return self.select(selected, soundness, extra, users, query)
        with GATE.busy(), self._lock:
            # Most compilations ask the same; the digest of a selection stays with it.
            known = self._selections.get((query, soundness))
            if known is None:
                if len(self._selections) >= SELECTIONS_KEPT:
                    self._selections.clear()
                known = self._selections[query, soundness] = self.select(selected, soundness)
            return known

    def select(
        self,
        wanted: Callable[[Rule], bool],
        soundness: Soundness = "real",
        extra: Iterable[RuleFile] = (),
        users: tuple[RuleFile, ...] | None = None,
        query: Query | None = None,
    ) -> RuleSelection:
        """The rules that are wanted; see :meth:`query`, whose Query decides about ``extra``."""
        admitted = SOUNDNESS_CLASSES[: SOUNDNESS_CLASSES.index(soundness) + 1]

        def selected(rule: Rule) -> bool:
            return rule.soundness in admitted and wanted(rule)

        def admissible(rule: Rule) -> bool:
            allowed = query is None or query.admits(rule.report_name, rule.labels)
            return allowed and rule.soundness in admitted

        own = tuple(file for file in self.files() if self._is_own(file))
        files = [reduced(file, selected) for file in (self.files() if users is None else (*own, *users))]
        files += [reduced(file, admissible) for file in extra]
        return RuleSelection(tuple(file for file in files if file.rules or file.declarations))

    def read(self, source: str | Path, beside: Sequence[RuleFile] = ()) -> RuleFile:
        """Read rules for one compilation, without adding them.

        Parameters
        ----------
        source
            As for :meth:`load`.
        beside
            Other texts of the same compilation.

        Raises
        ------
        RuleError
            As :meth:`load`.
        """
        with GATE.busy(), self._lock:
            file = self._read(source, (), "real")
            self._require_admissible(file, beside)
            return file


def _checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    given = tuple(tags) if isinstance(tags, Iterable) and not isinstance(tags, str) else (tags,)
    if isinstance(tags, str) or not all(isinstance(tag, str) for tag in given):
        raise RuleError(f"tags are given as a list of names, not {tags!r}")
    return given


def _require_unused(gone: RuleFile, left: Iterable[RuleFile]) -> None:
    """Raise if files that are left use what one that goes declares."""
    declared = {str(name) for form in gone.declarations for name in declared_names(form)}
    if not declared:
        return
    for file in left:
        forms = [*file.declarations, *(form for rule in file.rules for form in (*rule.body, *rule.head))]
        for part in (part for form in forms for part in subforms(form)):
            for item in part:
                if isinstance(item, str) and item in declared:
                    place = position_of(item)
                    raise place.error(f"{item}, which {gone.file} declares, is used here; remove this first")


def _tagged(file: RuleFile) -> RuleFile:
    """The file with the default tags on rules that have none."""
    rules = tuple(rule if rule.tags else replace(rule, tags=DEFAULT_TAGS) for rule in file.rules)
    return replace(file, rules=rules)


RULES = RuleDatabase(PACKAGE_RULES)
"""The package's rules, and what users add to them."""
