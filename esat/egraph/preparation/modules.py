"""Programs in parts, so that egglog loads only what can matter to the graph at hand.

A rule whose patterns mention a constructor that no term has, and that no rule could make, never matches. Yet
it costs egglog a millisecond when it is loaded, and time in every run. A :class:`Module` is one form with the
tables it needs and those it makes; :class:`Relevance` knows the closure over them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from esat.base.records import record
from esat.egraph.analyses.structure import STRUCTURE_TABLES
from esat.egraph.engine import Engine, split_forms
from esat.egraph.preparation.rule_compiler.compiled import Chunk
from esat.errors import RuleError
from esat.ops.elementwise.records.facts import FINITE
from esat.rules.language.rule import Rule

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
        The form.
    needs
        Tables without rows of which it has no effect, and names that are no tables.
    makes
        Tables that it may add rows to, and names that are no tables.
    declares
        The table it declares; empty for other forms.
    ruleset, name
        The rule set a rule belongs to, and what egglog calls the rule; empty for other forms.
    rule
        The rule of a file that it was compiled from, if it was.
    """

    text: str
    needs: frozenset[str] = frozenset()
    makes: frozenset[str] = frozenset()
    declares: str = ""
    ruleset: str = ""
    name: str = ""
    rule: Rule | None = None

    def error(self, message: str) -> RuleError:
        """What egglog said of this module, at the line and column of the rule as it was written."""
        return Chunk(self.text, self.rule).error(message)


def modules_of(layers: Iterable[str], chunks: Iterable[Chunk]) -> tuple[Module, ...]:
    """The modules of texts and compiled rules, in order."""
    forms = [(form.text, None) for layer in layers for form in split_forms(layer)]
    compiled = [(form.text, chunk.rule) for chunk in chunks for form in split_forms(chunk.text)]
    return tuple(_module(text, rule) for text, rule in [*forms, *compiled])


def _module(text: str, rule: Rule | None) -> Module:
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
    name = _NAMED.search(text)
    return Module(
        text,
        needs=frozenset(_CALLED.findall(text[:end])),
        makes=frozenset(_MAPPED.findall(text)).union(_CALLED.findall(text, end)),
        ruleset=ruleset.group(1),
        name=name.group(1) if name is not None else text,
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


def load_modules(engine: Engine, modules: Iterable[Module]) -> None:
    """Load modules into egglog.

    Raises
    ------
    RuleError
        When egglog refuses a rule, at the rule's position.
    """
    for module in modules:
        try:
            engine.load(module.text)
        except RuleError as error:
            raise module.error(error.reason) from None


def declared_tables(modules: Iterable[Module], signature: Mapping[str, object]) -> frozenset[str]:
    """Tables that only modules and loaded terms fill: constructors, and helpers of compiled rules."""
    helpers = (module.declares for module in modules if "/" in module.declares)
    return frozenset((*signature, "NarySum", "NaryProd", *helpers, *STRUCTURE_TABLES, FINITE))
