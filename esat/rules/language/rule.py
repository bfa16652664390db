"""Rules and rule files: egglog text read into immutable records.

The syntax is egglog's, with two extension keywords::

    (ruleset algebra :tags (canonicalize fast_run) :soundness real)   ; defaults of the rule set's rules
    (rewrite (Neg (Neg x)) x :ruleset algebra :name "neg-neg" :soundness exact)

A rewrite becomes a `Rule` whose body equates the left side with a root variable and whose head unites that
variable with the right side; a birewrite becomes two of them, ``name=>`` and ``name<=``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias, cast, get_args

from esat.base.records import record
from esat.base.spelling import suggestion
from esat.errors import RuleError
from esat.rules.language.macros import condition_meant, expand
from esat.rules.language.reader import (
    Form,
    Position,
    Sexp,
    head_of,
    is_string,
    is_variable,
    position_of,
    read_forms,
    string_value,
    subforms,
)

Soundness = Literal["exact", "real", "unsafe"]
Kind = Literal["rewrite", "birewrite", "rule"]

SOUNDNESS_CLASSES: tuple[Soundness, ...] = get_args(Soundness)
"""From the strictest class to the loosest: a class admits every rule of the classes before it."""

DEFAULT_RULESET = "user"
ROOT = "root"
"""The variable that a rewrite's left side is bound to."""

TYPE_FUNCTIONS = ("dt", "bp", "val")
"""Functions of classes that tell their type, and the value of all elements where there is one."""

_DECLARATIONS = frozenset({"sort", "datatype", "datatype*", "constructor", "function", "relation", "set"})
_COMMANDS = frozenset(
    {"run", "run-schedule", "check", "extract", "push", "pop", "print-size", "print-function", "print-stats"}
    | {"include", "input", "output", "fail", "simplify", "prove", "delete", "subsume", "panic"}
    | {"unstable-combined-ruleset", "let-scheduler", "set-option", "print-overall-statistics"}
)
_NO_FACTS = frozenset({"let", "union"})
"""Forms about terms of one graph, which texts of rules know nothing of."""
_NOT_IN_NAMES = re.compile(r'["#\\\x00-\x1f\x7f-\x9f\ud800-\udfff]|\((?=(?:subsume|delete|function)\b)')
"""What names of rules do not hold: they stand in quotes in texts that are searched for actions."""
RULESET_ENDINGS = ("-expanding", "-wide")
"""End the rule sets that the compiler makes."""
_OPTIONS: dict[str, frozenset[str]] = {
    "rewrite": frozenset({":when", ":ruleset", ":name", ":soundness", ":subsume"}),
    "birewrite": frozenset({":when", ":ruleset", ":name", ":soundness"}),
    "rule": frozenset({":ruleset", ":name", ":soundness"}),
    "ruleset": frozenset({":tags", ":soundness"}),
}


_Sides: TypeAlias = tuple[tuple[Sexp, ...], tuple[Sexp, ...]]
"""Facts and actions."""


@record(frozen=True)
class Rule:
    """One directed rule; what it says is read from its text when first asked for.

    Attributes
    ----------
    name
        Unique in its file. The two directions of a birewrite end in ``=>`` and ``<=``.
    ruleset
        The rule set of the file it belongs to.
    tags
        What a Query selects it by: the tags of its rule set and of its file.
    soundness
        ``exact`` (bitwise equal for every input), ``real`` (equal over the reals where both sides are
        defined) or ``unsafe`` (assumes valid input).
    kind
        The form it was written as.
    source
        Its text in the file, both directions of a birewrite included.
    position
        Where it stands.
    """

    name: str
    ruleset: str
    tags: frozenset[str]
    soundness: Soundness
    kind: Kind
    source: str
    position: Position

    @property
    def body(self) -> tuple[Sexp, ...]:
        """Facts, as written: macros are expanded by who prints them."""
        return self._sides[0]

    @property
    def head(self) -> tuple[Sexp, ...]:
        """Actions, as written."""
        return self._sides[1]

    @cached_property
    def _sides(self) -> _Sides:
        (form,) = read_forms(self.source, *self.position)
        direction = self.name.removeprefix(self.report_name)
        return _directions(form, self.kind, _options(form, 3, ""))[direction]

    @property
    def report_name(self) -> str:
        """The name that both directions of a birewrite share in reports."""
        return self.name[:-2] if self.kind == "birewrite" else self.name

    @property
    def labels(self) -> tuple[str, ...]:
        """What a Query selects it by beside its name."""
        return (*self.tags, self.ruleset)

    @property
    def file(self) -> str:
        return self.position.file

    @property
    def line(self) -> int:
        return self.position.line

    @property
    def column(self) -> int:
        return self.position.column

    def error(self, message: str, at: Sexp = ()) -> RuleError:
        """A RuleError about this rule, at the position of `at` if that was read from the file."""
        position = position_of(at)
        return (position if position.line else self.position).error(f"rule {self.report_name!r}: {message}")


@record(frozen=True, slots=True)
class Ruleset:
    """A declared rule set: the defaults of its rules."""

    name: str
    tags: frozenset[str]
    soundness: Soundness
    position: Position


@record(frozen=True, slots=True)
class RuleFile:
    """What one rule file or text says.

    Attributes
    ----------
    file
        Its path, or the name given to a text.
    rules
        In the order of the file.
    rulesets
        Declared rule sets.
    declarations
        Other forms: sorts, constructors, functions, relations, and ground facts.
    """

    file: str
    rules: tuple[Rule, ...]
    rulesets: tuple[Ruleset, ...]
    declarations: tuple[Form, ...]


@record(frozen=True, slots=True)
class _Options:
    values: dict[str, Sexp]

    def symbol(self, key: str, default: str) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str) or is_string(value):
            raise position_of(value).error(f"{key} expects a symbol")
        return value


def _options(form: Form, start: int, positional: str) -> _Options:
    """The keyword options of `form` from index `start` on."""
    kind = head_of(form)
    allowed = _OPTIONS[kind]
    if len(form) < start:
        raise form.position.error(f"{kind} expects {positional}")
    values: dict[str, Sexp] = {}
    index = start
    while index < len(form):
        key = form[index]
        if not isinstance(key, str) or not key.startswith(":"):
            raise position_of(key if not isinstance(key, str) or key else form).error(
                f"{kind} expects {positional} and then keyword options, found {shortened(key)}"
            )
        if key not in allowed:
            raise position_of(key).error(
                f"unknown keyword {key} of {kind}{suggestion(key, allowed)}; "
                f"it knows {', '.join(sorted(allowed))}"
            )
        if key in values:
            raise position_of(key).error(f"{key} is given twice")
        if key == ":subsume":
            values[key] = key
            index += 1
            continue
        if index + 1 >= len(form):
            raise position_of(key).error(f"{key} expects a value")
        values[key] = form[index + 1]
        index += 2
    return _Options(values)


def shortened(sexp: Sexp, width: int = 60) -> str:
    """`sexp` as text for a message."""
    if isinstance(sexp, Form):
        start, end = sexp.span
        sexp = sexp.text[start : min(end, start + 4 * width)]
    text = " ".join((sexp if isinstance(sexp, str) else str(sexp)).split())
    return text if len(text) <= width else text[: width - 3] + "..."


def _soundness(options: _Options, default: Soundness) -> Soundness:
    value = options.symbol(":soundness", default)
    if value not in SOUNDNESS_CLASSES:
        raise position_of(value).error(
            f"unknown soundness class {value}{suggestion(value, SOUNDNESS_CLASSES)}; "
            f"the classes are {', '.join(SOUNDNESS_CLASSES)}"
        )
    return value


def _directions(form: Form, kind: Kind, options: _Options) -> dict[str, _Sides]:
    """Body and head of each direction, by what its name ends in."""
    if kind == "rule":
        facts = _meanings(_facts(form[1], "the body"))
        return {"": _with_types_asked(facts, _facts(form[2], "the head"), form)}
    conditions = _meanings(_facts(options.values.get(":when", ()), ":when"))
    root = _fresh(ROOT, form)
    left, right = form[1], form[2]
    for side in (left, right):
        if is_variable(side) and kind == "birewrite":
            raise position_of(side).error("one direction of this birewrite would match every term")
    if isinstance(left, str):
        raise position_of(left).error("the left side of a rewrite is a term, not an atom")
    subsumed: tuple[Sexp, ...] = (("subsume", left),) if ":subsume" in options.values else ()

    def directed(pattern: Sexp, replacement: Sexp) -> _Sides:
        facts = (("=", root, pattern), *conditions)
        return _with_types_asked(facts, (("union", root, replacement), *subsumed), form)

    if kind == "rewrite":
        return {"": directed(left, right)}
    return {"=>": directed(left, right), "<=": directed(right, left)}


def _meanings(facts: tuple[Sexp, ...]) -> tuple[Sexp, ...]:
    return tuple([meant for fact in facts for meant in condition_meant(fact)])


def _with_types_asked(facts: tuple[Sexp, ...], actions: tuple[Sexp, ...], form: Form) -> _Sides:
    """Facts that ask for ``(dt x)``, ``(bp x)`` and ``(val x)``, not actions: these look up no tables."""
    names: dict[Sexp, str] = {}
    known = {item for fact in facts for part in subforms(fact) for item in part[1:] if isinstance(item, str)}

    def named(sexp: Sexp) -> Sexp:
        if isinstance(sexp, str):
            return sexp
        if head_of(sexp) in TYPE_FUNCTIONS and len(sexp) == 2 and sexp[1] in known:
            return names.setdefault(sexp, _fresh(f"{sexp[0]}-of-{sexp[1]}", form))
        items = tuple(map(named, sexp))
        if items == sexp:
            return sexp
        return Form.at(items, sexp.position, sexp.text, sexp.span) if isinstance(sexp, Form) else items

    made = tuple(named(action) if head_of(action) == "union" else action for action in actions)
    return (*facts, *(("=", name, asked) for asked, name in names.items())), made


class _FileReader:
    """Reads the forms of one file in order; `rulesets` carries the defaults declared so far."""

    def __init__(
        self, file: str, tags: frozenset[str], soundness: Soundness, inherited: Iterable[Ruleset]
    ) -> None:
        self.file = file
        self.tags = tags
        self.soundness: Soundness = soundness
        self.inherited = {ruleset.name: ruleset for ruleset in inherited}
        self.rulesets: dict[str, Ruleset] = {}
        self.rules: list[Rule] = []
        self.declarations: list[Form] = []
        self.names: dict[str, Position] = {}

    def read(self, forms: Iterable[Form]) -> RuleFile:
        # Rule sets first: a rule may stand above the declaration of its set.
        forms = tuple(forms)
        for form in forms:
            if head_of(form) == "ruleset":
                self._read_ruleset(form)
        for form in forms:
            kind = head_of(form)
            if kind in ("rewrite", "birewrite", "rule"):
                self._read_rule(form, cast(Kind, kind))
            elif kind in _DECLARATIONS or self._is_fact(form):
                expand(form)
                self.declarations.append(form)
            elif kind != "ruleset":
                self._refuse(form, kind)
        return RuleFile(self.file, tuple(self.rules), tuple(self.rulesets.values()), tuple(self.declarations))

    def _is_fact(self, form: Form) -> bool:
        """Whether `form` is a ground fact such as ``(lossless 1 2)``: nothing egglog gives a meaning to."""
        known = _COMMANDS | _OPTIONS.keys() | _NO_FACTS
        head = head_of(form)
        return bool(head) and is_variable(head) and head not in known and not suggestion(head, known)

    def _refuse(self, form: Form, kind: str) -> NoReturn:
        if kind in _COMMANDS:
            raise form.position.error(f"{kind} is a command; a rule file holds rules and declarations only")
        if kind in _NO_FACTS:
            raise form.position.error(f"{kind} speaks of the terms of one graph; rules hold for all graphs")
        known = (*_OPTIONS, *_DECLARATIONS)
        raise form.position.error(f"unknown form {kind or shortened(form)}{suggestion(kind, known)}")

    def _read_ruleset(self, form: Form) -> None:
        options = _options(form, 2, "a name")
        name, position = form[1], form.position
        if not is_variable(name):
            raise position.error("ruleset expects a name")
        assert isinstance(name, str)
        if "." in name or name.endswith(RULESET_ENDINGS):
            endings = " or ".join(RULESET_ENDINGS)
            raise position_of(name).error(f"the name of a rule set has no '.' and does not end in {endings}")
        if name in self.rulesets:
            before = self.rulesets[name].position
            raise position.error(f"the rule set {name} is declared twice, before at {before}")
        tags = options.values.get(":tags", ())
        if isinstance(tags, str) or not all(isinstance(tag, str) and is_variable(tag) for tag in tags):
            raise position_of(tags).error(":tags expects a list of symbols in parentheses")
        names = frozenset(str(tag) for tag in tags)
        self.rulesets[name] = Ruleset(name, self.tags | names, _soundness(options, self.soundness), position)

    def _read_rule(self, form: Form, kind: Kind) -> None:
        positional = "a list of facts and a list of actions" if kind == "rule" else "a left and a right side"
        options = _options(form, 3, positional)
        default = Ruleset(DEFAULT_RULESET, self.tags, self.soundness, form.position)
        ruleset = options.symbol(":ruleset", DEFAULT_RULESET)
        known = self.inherited | self.rulesets
        if ruleset in known:
            default = known[ruleset]
        elif ruleset != DEFAULT_RULESET:
            raise position_of(ruleset).error(
                f"the rule set {ruleset} is not declared in this file{suggestion(ruleset, known)}; "
                f"write (ruleset {ruleset} :tags (...) :soundness ...)"
            )
        name = self._name(form, options)
        soundness = _soundness(options, default.soundness)
        expand(form)  # reports macros with a wrong number of operands
        for suffix in _directions(form, kind, options):
            tags, full_name = default.tags | self.tags, name + suffix
            self.rules.append(Rule(full_name, ruleset, tags, soundness, kind, form.source, form.position))

    def _name(self, form: Form, options: _Options) -> str:
        value = options.values.get(":name")
        if value is None:
            file = _NOT_IN_NAMES.sub("_", Path(self.file).name)
            name = f"{file}:{form.position.line}:{form.position.column}"
        elif is_string(value) and string_value(value):
            name = string_value(value)
        else:
            raise position_of(value).error(':name expects a string in quotes, such as :name "neg-neg"')
        if _NOT_IN_NAMES.search(name):
            raise position_of(value or form).error(
                "a rule name holds no '#', quote, backslash, line break, or the beginning of an action"
            )
        if name in self.names:
            raise form.position.error(f"the rule name {name!r} is taken by the rule at {self.names[name]}")
        self.names[name] = form.position
        return name


def _facts(sexp: Sexp, what: str) -> tuple[Sexp, ...]:
    """`sexp` as a list of forms."""
    if isinstance(sexp, str):
        raise position_of(sexp).error(f"{what} is a list of forms in parentheses, found {sexp}")
    for fact in sexp:
        if isinstance(fact, str) or not head_of(fact):
            raise position_of(fact if fact else sexp).error(
                f"{what} is a list of forms in parentheses, found {shortened(fact)}"
            )
    return tuple(sexp)


def _fresh(name: str, form: Form) -> str:
    used = {item for part in subforms(form) for item in part if isinstance(item, str)}
    while name in used:
        name += "_"
    return name


def read_rules(
    source: str | Path,
    *,
    tags: Iterable[str] = (),
    soundness: Soundness = "real",
    file: str = "<rules>",
    rulesets: Iterable[Ruleset] = (),
) -> RuleFile:
    """Read rules from a file or from text.

    Parameters
    ----------
    source
        A path, or text: a string that holds a parenthesis, a line break or a comment is text.
    tags
        Added to the tags of every rule.
    soundness
        Class of the rules that state none, themselves or by their rule set.
    file
        What to call the text in messages and in the names of unnamed rules.
    rulesets
        Rule sets of other files that rules may be added to.

    Errors
    ------
    RuleError
        With file, line and column: unreadable text, unknown forms, keywords or soundness classes,
        undeclared rule sets, duplicate names; and a file that cannot be read.
    """
    if soundness not in SOUNDNESS_CLASSES:
        classes = ", ".join(SOUNDNESS_CLASSES)
        raise RuleError(f"unknown soundness class {soundness!r}; the classes are {classes}")
    if not isinstance(source, str | Path):
        raise RuleError(f"rules are text, or the path of a file of them, not {source!r}")
    if isinstance(source, str) and (not source.strip() or any(mark in source for mark in "();\n")):
        text = source
    else:
        path = Path(source)
        file = str(path)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise RuleError(f"cannot read the rule file: {error.strerror or error}", file) from error
        except UnicodeDecodeError as error:
            raise RuleError(f"the rule file is not UTF-8 text: {error.reason}", file) from error
    return _FileReader(file, frozenset(tags), soundness, rulesets).read(read_forms(text, file))
