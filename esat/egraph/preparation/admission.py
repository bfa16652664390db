"""What texts of rules must satisfy to be taken: nothing they say may break a compilation later.

A text is checked in three ways, the cheapest first. Its declarations may not touch names that the package
uses; its rules are read against the signature; and what they compile to is loaded into an e-graph that holds
the package's declarations, for egglog knows more of sorts than is repeated here. A rule is tried as it is
written, too, for greedy modes read it so and the compiler may drop it.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from esat.base.forks import GATE
from esat.base.spelling import suggestion
from esat.base.storage import DiskStore, default_directory, digest_of
from esat.egraph.analyses.dims import dims_program
from esat.egraph.analyses.facts import FACT_OPERATORS, facts_program
from esat.egraph.analyses.structure import structure_program
from esat.egraph.engine import Engine, split_forms
from esat.egraph.language.content_keys import code_digest
from esat.egraph.language.signature import Signature
from esat.egraph.language.term_rows import ROW_TABLES
from esat.egraph.preparation.core import core_program
from esat.egraph.preparation.replacements import opaque_rules
from esat.egraph.preparation.rule_compiler import Chunk, compile_rules
from esat.egraph.preparation.rule_compiler.families import family_of, flatten
from esat.egraph.preparation.rule_compiler.surface import renamer, require_bound
from esat.egraph.preparation.rule_program import program_for, signature_of_registered
from esat.errors import EsatError, EsatWarning, RuleError
from esat.rules.language.kept_files import read_files
from esat.rules.language.macros import CONDITIONS, MACROS, expand
from esat.rules.language.reader import Form, Sexp, head_of, is_number, is_string, position_of, show, subforms
from esat.rules.language.rule import TYPE_FUNCTIONS, Rule, RuleFile
from esat.rules.language.rule_selection import PACKAGE_RULES, RuleSelection
from esat.rules.language.rule_signature import Operator, check, declared_names, declared_signature

MOST_FACTS = 100
"""Forms in the facts of a rule: egglog takes time by their cube to load it."""
MOST_ELEMENTS = 12
"""Operands of a sum or product in the facts of a rule: it is compiled to all their orders."""
MOST_ACTIONS = 1000
"""Forms in the actions of a rule."""
KEPT = 256
"""Texts that a process remembers to have checked."""

_DECLARING = re.compile(r"\((?:sort|constructor|function|relation|ruleset) ")
_SYMBOL = re.compile(r';[^\n]*|([^\s()";]+)')
_DECLARED_NAME = re.compile(r"[^\W\d][^/@?$.]*\Z")
_NUMBERED = re.compile(r"_\d+\Z")
_PLAIN_STRING = re.compile(r'"[\w +\-]*"\Z')
_ACTIONS = ("union", "subsume", "set", "let")
_SORTS = ("sort", "datatype", "datatype*")
_TRIAL = "esat-trial"
_NEGATIVE = (
    "in sums a negative constant stands on the other side, as a positive one: (Sub x c) for (Add x -c)"
)

_admitted: OrderedDict[str, tuple[str, ...]] = OrderedDict()
"""Texts that were taken, and what there is to say of each."""


@cache
def _store() -> DiskStore:
    return DiskStore(default_directory(), "rules")


def admit(file: RuleFile, others: Sequence[RuleFile] = ()) -> None:
    """Check a text of rules.

    Parameters
    ----------
    file
        What the text says.
    others
        Texts of users that it will stand beside, whose declarations it may use.

    A rule that can never fire in saturating modes is taken with a warning: greedy ones read it as written.

    Errors
    ------
    RuleError
        With file, line and column: names of the package or another text declared anew, unknown ops and
        functions, wrong numbers or sorts of operands, unbound variables, actions that rules may not take,
        rules too large to be loaded, and whatever else egglog refuses.
    """
    signature = signature_of_registered()
    # Which ops there are depends on what a program has defined so far: no part of what is kept.
    declarations = [form for one in (*others, file) for form in one.declarations]
    opaque = opaque_rules(file.rules, signature, declarations)
    for rule in opaque:
        _check_strings(rule)
    if opaque:
        file = replace(file, rules=tuple(rule for rule in file.rules if rule not in opaque))
    parts = [code_digest(), repr(list(signature.values()))]
    for one in (file, *others):
        parts += [show(form) for form in one.declarations]
    parts += [f"{rule.name} {rule.ruleset} {rule.soundness} {rule.source}" for rule in file.rules]
    key = digest_of(["admitted", *parts])
    remarks = _admitted.get(key)
    if remarks is None:
        remarks = _store().load(key, lambda payload: tuple(json.loads(bytes(payload))))
    if remarks is None:
        with GATE.busy():
            remarks = _check(file, others, signature)
        _store().save(key, json.dumps(remarks).encode())
    for remark in remarks:
        warnings.warn(remark, EsatWarning, stacklevel=2)
    _admitted[key] = remarks
    while len(_admitted) > KEPT:
        _admitted.popitem(last=False)


def _check(file: RuleFile, others: Sequence[RuleFile], signature: Signature) -> tuple[str, ...]:
    """What there is to say of a text that may be taken."""
    known = tuple(form for other in others for form in other.declarations)
    declared = declared_signature((*known, *file.declarations))
    operators = {**signature.operators, **FACT_OPERATORS, **declared}
    _check_declarations(file, others, signature, operators)
    for rule in file.rules:
        _check_size(rule)
        _check_actions(rule, operators, declared)
        _check_strings(rule)
        require_bound(rule)
        check([rule], operators)
        _check_groups(rule)
    dropped = _Trial(file, known, signature, operators).run()
    idle = [*dropped, *((rule, _NEGATIVE) for rule in file.rules if _adds_negative(rule))]
    return tuple(
        f"{rule.position}: rule {rule.report_name!r} can never fire in saturating modes: {reason}"
        for rule, reason in idle
    )


# ---- names


@lru_cache(maxsize=2)
def _used_names(program: str) -> frozenset[str]:
    """All symbols in the texts of the package, whether they name tables, variables, rule sets or primitives.

    egglog takes a variable that is called like a table for that table.
    """
    texts = [program, *_layers(signature_of_registered())]
    texts += [path.read_text(encoding="utf-8") for path in sorted(PACKAGE_RULES.glob("*.egg"))]
    return frozenset(symbol for text in texts for symbol in _SYMBOL.findall(text) if symbol)


def _layers(signature: Signature) -> list[str]:
    """The texts of the layers below rules, in order."""
    return [
        signature.program,
        ROW_TABLES,
        facts_program(finite=True),
        core_program(signature, False),
        dims_program(signature),
        structure_program(),
    ]


def _check_declarations(
    file: RuleFile, others: Sequence[RuleFile], signature: Signature, operators: Mapping[str, Operator]
) -> None:
    if not file.declarations:
        return
    used = _used_names(signature.program)
    places = {
        str(name): form for other in others for form in other.declarations for name in declared_names(form)
    }
    for form in file.declarations:
        for name in declared_names(form):
            _check_name(name, form, used)
            if name in places:
                before = position_of(places[str(name)])
                raise position_of(name).error(f"{name} is declared already, at {before}")
            places[str(name)] = form
    for form in file.declarations:
        table = _table_of_fact(form)
        if table and table not in places:
            reason = "is the package's" if table in operators or table in used else "is not declared"
            raise form.position.error(
                f"a fact is about a relation or function that a text of rules declares; {table} {reason}"
                f"{suggestion(table, places)}"
            )


def _check_name(name: Sexp, form: Form, used: frozenset[str]) -> None:
    place = position_of(name)
    if not isinstance(name, str) or not _DECLARED_NAME.match(name):
        raise (place if place.line else form.position).error(
            "a declared name begins with a letter and holds none of / @ ? $ ."
        )
    if name in used or name in MACROS or name in CONDITIONS:
        raise place.error(f"the name {name} is used by the package; declare another one")
    if _NUMBERED.search(name):
        raise place.error(f"the name {name} ends in a number, as those of ops with any number of operands do")


def _table_of_fact(form: Form) -> str:
    """The table a ground fact is about; empty for a declaration."""
    if next(declared_names(form), None) is not None:
        return ""
    if head_of(form) == "set":
        return head_of(form[1]) if len(form) > 1 else ""
    return head_of(form)


# ---- rules, one by one


def _check_size(rule: Rule) -> None:
    for forms, most, what in ((rule.body, MOST_FACTS, "facts"), (rule.head, MOST_ACTIONS, "actions")):
        count = sum(1 for form in forms for _ in subforms(form))
        if count > most:
            raise rule.error(f"its {what} hold {count} forms; the most are {most}")


def _check_groups(rule: Rule) -> None:
    for fact in rule.body:
        for form in subforms(fact):
            if family_of(form) and len(flatten(form).operands) > MOST_ELEMENTS:
                operands = len(flatten(form).operands)
                raise rule.error(
                    f"it matches a sum or product of {operands} operands; the most are {MOST_ELEMENTS}", form
                )


def _check_actions(rule: Rule, operators: Mapping[str, Operator], declared: Mapping[str, Operator]) -> None:
    if not rule.body:
        raise rule.error("a rule without facts would speak of no term of the graph")
    for action in rule.head:
        name = head_of(action)
        if name == "set" and len(action) > 1 and head_of(action[1]) not in (*TYPE_FUNCTIONS, *declared):
            raise rule.error("rules set dt, bp, val and functions that a text of rules declares", action)
        if name in _ACTIONS or name in operators:
            continue
        hint = suggestion(name, (*_ACTIONS, *operators))
        actions = f"{', '.join(_ACTIONS)}, facts and terms"
        raise rule.error(f"{name} is no action of a rule{hint}; actions are {actions}", action)


def _adds_negative(rule: Rule) -> bool:
    """Whether a pattern is a sum with a constant that a condition says is negative."""
    parts = [part for fact in rule.body for part in subforms(fact)]
    negative = {
        str(one[1])
        for fact in parts
        if head_of(fact) == "="
        for one, other in (fact[1:3], fact[2:0:-1])
        if not isinstance(one, str) and head_of(one) == "val" and _is_negative(other)
    }
    return any(
        operand in negative
        or (not isinstance(operand, str) and head_of(operand) == "K" and _is_negative(operand[1]))
        for part in parts
        if head_of(part) in ("Add", "Sub")
        for operand in part[1:]
    )


def _is_negative(number: Sexp) -> bool:
    return isinstance(number, str) and is_number(number) and float(number) < 0.0


def _check_strings(rule: Rule) -> None:
    for form in (*rule.body, *rule.head):
        for part in subforms(form):
            for item in part:
                if is_string(item) and not _PLAIN_STRING.match(str(item)):
                    raise rule.error(
                        "a string in a rule holds letters, digits, blanks, +, - and _ only", item
                    )


# ---- the trial


class _Trial:
    """Loads a text into an e-graph of its own."""

    def __init__(
        self, file: RuleFile, known: Sequence[Form], signature: Signature, operators: Mapping[str, Operator]
    ) -> None:
        self.file = file
        self.known = known
        self.signature = signature
        self.operators = operators

    def run(self) -> Sequence[tuple[Rule, str]]:
        """Rules that the compiler drops, and why; raises RuleError for what egglog refuses."""
        engine = Engine()
        engine.load(_declarations(self.signature.program))
        for form in self.known:
            engine.load(show(expand(form)))
        for form in self.file.declarations:
            self._load_declaration(engine, form)
        engine.load(f"(ruleset {_TRIAL})")
        for number, rule in enumerate(self.file.rules):
            self._load(engine, Chunk(_as_written(rule, number), rule))
        dropped = self._load_compiled(exact=False)
        self._load_compiled(exact=True)
        if any(head_of(form) in _SORTS for form in self.file.declarations):
            # Sorts change what calls of primitives mean, in the package's rules, too.
            self._load_with_package()
        return dropped

    def _load_declaration(self, engine: Engine, form: Form) -> None:
        try:
            engine.load(show(expand(form)))
        except EsatError as error:
            reason = error.reason if isinstance(error, RuleError) else str(error)
            raise form.position.error(f"egglog refused it: {_last_line(reason)}") from None

    def _load(self, engine: Engine, chunk: Chunk) -> None:
        try:
            engine.load(chunk.text)
        except RuleError as error:
            raise chunk.error(error.reason) from None
        except EsatError as error:
            raise chunk.error(str(error)) from None

    def _load_compiled(self, exact: bool) -> Sequence[tuple[Rule, str]]:
        """What the compiler makes of the rules, into another e-graph: the first has rules of these names.

        Returns those of which it makes nothing.
        """
        compiled = compile_rules(
            self.file.rules,
            self.operators,
            exact_only=exact,
            declarations=(*self.known, *self.file.declarations),
        )
        if exact and not compiled.origins:
            return compiled.dropped
        engine = Engine()
        engine.load(_declarations(self.signature.program))
        for chunk in compiled.chunks:
            self._load(engine, chunk)
        for ruleset in (*compiled.rulesets, *compiled.expanding):
            engine.execute(f"(run {ruleset} 1)")
        return compiled.dropped

    def _load_with_package(self) -> None:
        from esat.egraph.preparation.modules import load_modules
        from esat.egraph.preparation.prepare import prepared

        own = RuleFile(self.file.file, (), (), (*self.known, *self.file.declarations))
        files = read_files(sorted(PACKAGE_RULES.glob("*.egg")))
        program = program_for(RuleSelection((*files, own)))
        rules = prepared(program)
        try:
            load_modules(Engine(), rules.modules)
        except EsatError as error:
            sorts = [form for form in self.file.declarations if head_of(form) in _SORTS]
            raise sorts[0].position.error(
                f"beside it, rules of the package mean something else: {_last_line(str(error))}"
            ) from None


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


@lru_cache(maxsize=2)
def _declarations(program: str) -> str:
    """All that the layers declare, their tables of facts included, without their rules."""
    layers = _layers(signature_of_registered())
    forms = [form.text for layer in layers for form in split_forms(layer)]
    return "\n".join(_declared_first(forms))


def _declared_first(forms: Iterable[str]) -> Iterator[str]:
    return (text for text in forms if _DECLARING.match(text))


def _as_written(rule: Rule, number: int) -> str:
    rename = renamer()
    facts = " ".join(show(expand(rename(fact))) for fact in rule.body)
    actions = " ".join(show(expand(rename(action))) for action in rule.head)
    return f'(rule ({facts}) ({actions}) :ruleset {_TRIAL} :name "{number}")'
