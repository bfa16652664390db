"""The compiler's result: chunks of egglog text that know the rule they came from."""

from __future__ import annotations

import re
from collections.abc import Mapping

from esat.base.records import record
from esat.errors import RuleError
from esat.rules.language.reader import Sexp, head_of, position_of, subforms
from esat.rules.language.rule import Rule


@record(frozen=True, slots=True)
class Chunk:
    """Text to load in one piece.

    Attributes
    ----------
    text
        One or more top-level forms.
    rule
        The rule it was compiled from; None for declarations.
    names
        Names of the egglog rules in it.
    ruleset
        The rule set they are in; empty for declarations.
    """

    text: str
    rule: Rule | None = None
    names: tuple[str, ...] = ()
    ruleset: str = ""

    def error(self, message: str) -> RuleError:
        """What egglog said of this chunk as an error at the user's own line and column.

        `message` is egglog's: the offending form, after its position or without, then the reason on a new
        line.
        """
        offending, _, reason = message.partition("\n")
        offending = re.sub(r"^In \d+:\S+(?: of [^:]*)?: ", "", offending)
        reason = _as_written(reason.strip() or message)
        if self.rule is None:
            return RuleError(f"egglog refused a declaration: {reason}")
        return self.rule.error(f"egglog refused it: {reason}", _culprit(self.rule, offending, reason))


def _as_written(text: str) -> str:
    """Generated text with the variables named as the user wrote them."""
    return re.sub(r"(?<![^\s(])(?:\?(?!%)|@)(?=\S)", "", text)


def _culprit(rule: Rule, offending: str, reason: str) -> Sexp:
    """The form of the rule that egglog complained about: by its text, or by a name in the complaint."""
    wanted = _as_written(offending)
    forms = [form for part in (*rule.body, *rule.head) for form in subforms(part) if position_of(form).line]
    for form in forms:
        if " ".join(getattr(form, "source", "").split()) == wanted:
            return form
    names = set(re.findall(r"[^\s()\"]+", reason))
    for form in forms:
        if head_of(form) in names:
            return form
        for atom in form[1:]:
            if isinstance(atom, str) and atom in names:
                return atom
    return ()


@record(frozen=True, slots=True)
class CompiledRules:
    """Compiled rules, ready to load.

    Attributes
    ----------
    chunks
        In load order: rule-set declarations, the files' declarations, helpers and rules.
    rulesets
        The rule sets to run in every round, in the order of their first rule.
    expanding
        Rule sets of expanding rules: to be run once, or under a match limit; those that end in ``-wide``
        always under one.
    origins
        Name of every generated rule -> the rule it came from.
    dropped
        Rules that need no egglog rule, with the reason.
    """

    chunks: tuple[Chunk, ...]
    rulesets: tuple[str, ...]
    expanding: tuple[str, ...]
    origins: Mapping[str, Rule]
    dropped: tuple[tuple[Rule, str], ...]

    @property
    def text(self) -> str:
        """All chunks as one text."""
        return "\n".join(chunk.text for chunk in self.chunks)
