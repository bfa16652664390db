"""The rules of one compilation, and the rule files that come with esat."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path

from esat.base.records import record
from esat.base.storage import digest_of
from esat.rules.language.rule import Rule, RuleFile

PACKAGE_RULES = Path(__file__).resolve().parent.parent


def is_of_package(file: str) -> bool:
    """Whether a rule file comes with esat."""
    return file.startswith(str(PACKAGE_RULES))


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

    def without(self, rules: Collection[Rule]) -> RuleSelection:
        """The same selection, but for some rules."""
        kept = tuple(reduced(file, lambda rule: rule not in rules) for file in self.files)
        return RuleSelection(tuple(file for file in kept if file.rules or file.declarations))

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
            parts.append(repr(is_of_package(file.file)))
            parts += [form.source for form in file.declarations]
            for rule in file.rules:
                parts += [rule.name, rule.ruleset, rule.soundness, rule.kind, rule.source]
        return digest_of(parts)


def reduced(file: RuleFile, keep: Callable[[Rule], bool]) -> RuleFile:
    """The file with the rules that are kept."""
    return RuleFile(
        file.file, tuple(rule for rule in file.rules if keep(rule)), file.rulesets, file.declarations
    )
