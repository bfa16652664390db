"""Programs in parts, so that an engine loads only what can matter to the graph at hand.

A rule whose patterns mention a constructor that no term has, and that no rule could make, never matches. Yet
it costs time when it is loaded, and in every run. A :class:`Module` is one form with the tables it needs and
those it makes; :class:`Relevance` knows the closure over them. Half of the rules in it never have anything to
match, since what could make their terms has no match itself: rules are loaded when they are about to run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from esat.egraph.engine import AnyEngine, split_forms
from esat.egraph.rule_compiler.compiled import Chunk
from esat.egraph.structure import STRUCTURE_TABLES
from esat.errors import RuleError
from esat.ops.elementwise.facts import FINITE
from esat.records import record
from esat.rules.rule import Rule

MODULES_PER_TEXT = 32
"""egglog holds all of a text until the last form has run. What many hundred leave behind in memory, scattered
between the rules, makes every later step slower: saturations by a sixth."""

_CALLED = re.compile(r'\(([^\s()"]+)')
_MAPPED = re.compile(r'unstable-fn "([^"]+)"')
_NAMED = re.compile(r':name "([^"]*)"')
_DECLARED = re.compile(r"\((?:constructor|function|relation) (\S+)")
_RULESET = re.compile(r":ruleset (\S+)")
_PARENTHESIS = re.compile(r"[()]")


@record(frozen=True, slots=True)
class Module:
    """One form of a program.

    Attributes
    ----------
    text
        The form; a rule stands in a rule set of its own, so that the order in which rules run does not
        depend on the order in which they were loaded.
    needs
        Tables without rows of which it has no effect, and names that are no tables.
    makes
        Tables that it may add rows to, and names that are no tables.
    declares
        The table it declares; empty for other forms.
    ruleset, member, name
        The rule set a rule belongs to, the one it is loaded into, and what egglog calls the rule; empty for
        other forms.
    mapped
        Functions that it applies to all elements of a multiset.
    actions
        Calls in its actions: a match makes no more rows than that, but for ``mapped``.
    rule
        The rule of a file that it was compiled from, if it was.
    """

    text: str
    needs: frozenset[str] = frozenset()
    makes: frozenset[str] = frozenset()
    declares: str = ""
    ruleset: str = ""
    member: str = ""
    name: str = ""
    mapped: frozenset[str] = frozenset()
    actions: int = 0
    rule: Rule | None = None

    @property
    def key(self) -> str:
        """Tells it from the others of its program."""
        return self.member or self.text

    def error(self, message: str) -> RuleError:
        """What egglog said of this module, at the line and column of the rule as it was written."""
        return Chunk(self.text, self.rule).error(message)


def modules_of(layers: Iterable[str], chunks: Iterable[Chunk]) -> tuple[Module, ...]:
    """The modules of texts and compiled rules, in order; :func:`members_of` says what rule sets unite."""
    forms = [(form.text, None) for layer in layers for form in split_forms(layer)]
    compiled = [(form.text, chunk.rule) for chunk in chunks for form in split_forms(chunk.text)]
    return tuple(
        _module(text, rule, number)
        for number, (text, rule) in enumerate([*forms, *compiled])
        if not text.startswith("(ruleset ")
    )


def _module(text: str, rule: Rule | None, number: int) -> Module:
    if not text.startswith("(rule "):
        declared = _DECLARED.match(text)
        return Module(text, declares=declared.group(1) if declared else "", rule=rule)
    depth = 0
    end = len(text)
    for parenthesis in _PARENTHESIS.finditer(text):
        depth += 1 if parenthesis.group() == "(" else -1
        if depth == 1 and parenthesis.group() == ")":
            end = parenthesis.end()
            break
    ruleset = _RULESET.search(text)
    assert ruleset is not None, "compiled rules always name their rule set"
    member = f"{ruleset.group(1)}.{number}"
    name = _NAMED.search(text)
    calls = _CALLED.findall(text, end)
    mapped = frozenset(_MAPPED.findall(text))
    return Module(
        f"(ruleset {member}) {_RULESET.sub(f':ruleset {member}', text)}",
        needs=frozenset(_CALLED.findall(text[:end])),
        makes=mapped.union(calls),
        ruleset=ruleset.group(1),
        member=member,
        name=name.group(1) if name is not None else text,
        mapped=mapped,
        actions=len(calls),
        rule=rule,
    )


class Relevance:
    """Tells which modules can matter where some tables have rows.

    Parameters
    ----------
    modules
        All of a program.
    tables
        Tables that modules make; of others it is not known what they hold.
    """

    def __init__(self, modules: Sequence[Module], tables: Collection[str]) -> None:
        known = frozenset(tables)
        self._waiting: dict[str, list[int]] = {}
        self._missing: list[int] = []
        self._makes: list[frozenset[str]] = []
        self._ready: list[int] = []
        self._always: list[int] = []
        self._declarations: list[tuple[int, str]] = []
        for number, module in enumerate(modules):
            needs = module.needs & known
            self._missing.append(len(needs))
            self._makes.append(module.makes & known)
            for name in needs:
                self._waiting.setdefault(name, []).append(number)
            if module.ruleset:
                if not needs:
                    self._ready.append(number)
            elif module.declares in known:
                self._declarations.append((number, module.declares))
            else:
                self._always.append(number)

    def of(self, given: Collection[str]) -> tuple[int, ...]:
        """Numbers of the modules that can matter, in order.

        Parameters
        ----------
        given
            Tables that hold rows to begin with.
        """
        available: set[str] = set()
        missing = self._missing.copy()
        ready: list[int] = []

        def provide(name: str) -> None:
            available.add(name)
            for number in self._waiting.get(name, ()):
                missing[number] -= 1
                if not missing[number]:
                    ready.append(number)

        for name in {*given}:
            provide(name)
        chosen = [*self._always]
        ready += self._ready
        while ready:
            number = ready.pop()
            chosen.append(number)
            for name in self._makes[number] - available:
                provide(name)
        chosen += [number for number, declared in self._declarations if declared in available]
        return tuple(sorted(chosen))


def load_modules(engine: AnyEngine, modules: Iterable[Module]) -> list[Module]:
    """Load those that an engine does not have yet; which these were.

    Raises
    ------
    RuleError
        When egglog refuses a rule, at the rule's position.
    """
    missing = [module for module in modules if module.key not in engine.modules]
    engine.modules.update(module.key for module in missing)
    for start in range(0, len(missing), MODULES_PER_TEXT):
        piece = missing[start : start + MODULES_PER_TEXT]
        try:
            engine.load("\n".join(module.text for module in piece))
        except RuleError as error:
            raise _refused(piece, error) from None
    return missing


def _refused(modules: Sequence[Module], error: RuleError) -> RuleError:
    """What egglog said of the texts of modules, one below the other, as an error of the one it is about."""
    line = 1
    for module in modules:
        line += module.text.count("\n") + 1
        if error.line < line:
            return module.error(error.reason) if error.line else error
    return error


def rules_of(modules: Iterable[Module]) -> dict[str, tuple[Module, ...]]:
    """The rules of each rule set that are among the modules, in order."""
    rules: dict[str, list[Module]] = {}
    for module in modules:
        if module.ruleset:
            rules.setdefault(module.ruleset, []).append(module)
    return {ruleset: tuple(own) for ruleset, own in rules.items()}


def members_of(modules: Iterable[Module]) -> dict[str, tuple[str, ...]]:
    """The members of each rule set that are among the modules, in order."""
    return {name: tuple(rule.member for rule in rules) for name, rules in rules_of(modules).items()}


def declared_tables(modules: Iterable[Module], signature: Mapping[str, object]) -> frozenset[str]:
    """Tables that only modules and loaded terms fill: constructors, and helpers of compiled rules."""
    helpers = (module.declares for module in modules if "/" in module.declares)
    return frozenset((*signature, "NarySum", "NaryProd", *helpers, *STRUCTURE_TABLES, FINITE))
