"""Prepared e-graphs: the signature, the n-ary core, facts and compiled rules in one program.

For esat's own engine a program is an array of words, read from disk in milliseconds, with which each e-graph
begins. egglog reads the rules that can matter to a graph anew for each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import field, replace
from functools import cached_property, lru_cache
from typing import Any

from esat.base.records import record
from esat.egraph.algebra.additions import MADE
from esat.egraph.analyses.dims import dims_program
from esat.egraph.analyses.facts import FACT_OPERATORS, facts_program
from esat.egraph.analyses.numbers import numbers_program
from esat.egraph.analyses.structure import given_tables, structure_program
from esat.egraph.engine import AnyEngine, Engine
from esat.egraph.language.constructors import undeclared_constructors
from esat.egraph.language.content_keys import rules_digest
from esat.egraph.language.fills import fills_program
from esat.egraph.language.term_rows import ROW_TABLES
from esat.egraph.language.terms import TermGraph, TermType
from esat.egraph.preparation.core import core_program
from esat.egraph.preparation.kept_rules import PreparedRules, compiled_rules, machine_program, prepared_rules
from esat.egraph.preparation.modules import Module, Relevance, declared_tables, load_modules, modules_of
from esat.egraph.preparation.rule_compiler import RULESET_PREFIX, WIDE_SUFFIX, CompiledRules, compile_rules
from esat.egraph.preparation.rule_program import PROGRAMS_KEPT, SUPERSEDED, RuleProgram, program_for
from esat.egraph.saturation.saturation_report import rule_name
from esat.egraph.saturation.schedule import RuleStep, Schedule
from esat.engine.machine_program import MachineProgram
from esat.engine.matching_engine import MatchingEngine
from esat.engine.vocabulary import UnknownFormError
from esat.ops.elementwise.records.facts import FINITE
from esat.rules.language.reader import Form, head_of
from esat.rules.language.rule_selection import RuleSelection, is_of_package
from esat.rules.language.rule_signature import Signature

EXPANDING_FUEL = 400
"""Matches an expanding rule (distribution, say) may have in one round."""
SMALL_ELEMENTS = 64
"""Elements of a matrix that a product goes through in less time than it takes to call it."""
ENDING_RULES = ("rules-sparse", "rules-logarithms")
"""Rule sets whose expanding rules run in every round: each takes a sparse matrix out of a sum, or a factor
out of a logarithm, which ends."""
FINDINGS_KEPT = 64
"""Sets of constructors for which it is remembered which rules can matter."""
_SUBSUMED = re.compile(r"\(subsume \((NarySum|NaryProd) (\S+) ([^\s()]+)\)\)")


def _marking_superseded(text: str) -> str:
    return _SUBSUMED.sub(rf"(union (\1 \2 \3) ({SUPERSEDED}\1 \2 \3)) \g<0>", text)


@record(frozen=True)
class PreparedProgram:
    """The rules of a program, ready to load.

    Attributes
    ----------
    program
        Whose rules they are.
    rules
        All that is loaded before terms are, in parts.
    closures
        What is known of :meth:`relevant`.
    schedules
        The schedules of these.
    """

    program: RuleProgram
    rules: PreparedRules
    closures: dict[frozenset[str], tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    schedules: dict[tuple[tuple[int, ...], bool, bool], Schedule] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def modules(self) -> tuple[Module, ...]:
        """All forms, in the order they are loaded."""
        return self.rules.modules

    @property
    def schedule(self) -> Schedule:
        """The steps of one round of saturation, whatever the terms."""
        return self._schedule(range(len(self.modules)))

    def schedule_for(self, terms: TermGraph, check_types: bool = False) -> Schedule:
        """The steps of one round, for egglog without rules that cannot matter to the terms.

        Rules of the package with the tag ``large`` are left out where all products are small.
        """
        numbers, is_small = self._numbers_for(terms), has_small_products(terms)
        known = self.schedules.get((numbers, is_small, check_types))
        if known is None:
            kept = [number for number in numbers if not (is_small and self._is_for_large(number))]
            known = replace(self._schedule(kept), check_types=check_types)
            self.schedules[numbers, is_small, check_types] = known
            _bound(self.schedules)
        return known

    def _numbers_for(self, terms: TermGraph | None) -> tuple[int, ...]:
        """Numbers of the modules that an engine holds for terms."""
        if terms is None or self.machine is not None:
            return tuple(range(len(self.modules)))
        return self.relevant(_tables_of(terms))

    def engine_for(self, terms: TermGraph | None) -> AnyEngine:
        """A new engine that holds the rules, and the constructors of terms that the program lacks."""
        missing = undeclared_constructors(terms, self.program.signature) if terms is not None else []
        if self.machine is not None:
            try:
                own = MatchingEngine.begin(self.machine)
                own.load(" ".join(record.declaration for record in missing))
            except UnknownFormError:  # an op of more operands than a table may have columns
                pass
            else:
                return own
        engine = Engine()
        load_modules(engine, [self.modules[number] for number in self._numbers_for(terms)])
        engine.load(" ".join(record.declaration for record in missing))
        return engine

    @cached_property
    def machine(self) -> MachineProgram | None:
        """The program as esat's engine has it; None where egglog is to run it, or has to.

        Users' rules come to those of the package, which are read once.
        """
        if self.program.engine != "esat":
            return None
        program = self.program
        selection = _of_package(program.selection)
        if selection is program.selection:
            digest = rules_digest(selection, program.signature, program.strict)
            return machine_program(digest, lambda: _read(self.modules))
        package = prepared(program_for(selection, program.strict, program.engine))
        known = {module.text for module in package.modules}
        own = [module for module in self.modules if module.text not in known]
        if package.machine is None or len(own) + len(known) > len(self.modules):
            return _read(self.modules)
        return _read(own, package.machine)

    def _is_for_large(self, number: int) -> bool:
        rule = self.modules[number].rule
        return rule is not None and "large" in rule.tags and rule.name not in self.program.users_rules

    def _schedule(self, numbers: Sequence[int]) -> Schedule:
        own = [self.modules[number] for number in numbers]
        running = self.program.rulesets
        if running is not None:
            own = [module for module in own if module.rule is None or module.rule.ruleset in running]
        rulesets, users = frozenset(module.ruleset for module in own), self.program.users_rules
        expanding = [name for name in self.rules.expanding if name in rulesets]
        ending = tuple(name for name in expanding if name.startswith(ENDING_RULES))
        expanding = [name for name in expanding if name not in ending]
        early, normal, stabilizing, outward = (
            rulesets & self._by_tag.get(tag, frozenset())
            for tag in ("early", "normal", "stabilize", "outward")
        )
        steps = (
            RuleStep(tuple(name for name in self.rules.rulesets if name in rulesets - early - normal)),
            RuleStep(tuple(name for name in self.rules.rulesets if name in early), rounds=3),
            RuleStep(
                tuple(name for name in expanding if not name.endswith(WIDE_SUFFIX)),
                fuel=EXPANDING_FUEL,
                rounds=2,
            ),
            RuleStep(
                tuple(name for name in expanding if name.endswith(WIDE_SUFFIX)),
                fuel=EXPANDING_FUEL,
                rounds=2,
                from_nodes=0,
            ),
            RuleStep(ending, fuel=EXPANDING_FUEL),
        )
        return Schedule(
            tuple(step for step in steps if step.rulesets),
            stabilizing=tuple(name for name in self.rules.rulesets if name in stabilizing),
            outward=tuple(name for name in self.rules.rulesets if name in outward),
            normal=tuple(name for name in self.rules.rulesets if name in normal),
            watched=users,
            watched_rulesets=frozenset(module.ruleset for module in own if rule_name(module.name) in users),
            rules=tuple(module for module in own if module.ruleset),
        )

    @cached_property
    def _by_tag(self) -> Mapping[str, Set[str]]:
        """The rule sets of the package that hold rules with a tag, for each tag."""
        found: dict[str, set[str]] = {}
        for rule in self.program.selection.rules:
            if rule.name not in self.program.users_rules:
                for tag in rule.tags:
                    found.setdefault(tag, set()).add(RULESET_PREFIX + rule.ruleset)
        return found

    @cached_property
    def tables(self) -> frozenset[str]:
        """Tables that only modules and loaded terms fill."""
        return declared_tables(self.modules, self.program.signature)

    @property
    def helpers(self) -> tuple[str, ...]:
        """Tables that hold terms and are no constructors."""
        return tuple(sorted(name for name in self.tables if "/" in name))

    def relevant(self, tables: Collection[str]) -> tuple[int, ...]:
        """Numbers of the modules that can matter where these tables, constructors or facts, have rows.

        What the algebra makes terms of is declared in any case.
        """
        given = frozenset(tables)
        known = self.closures.get(given)
        if known is None:
            numbers = {*self.relevance.of(given), *(() if self.program.strict else self._made)}
            known = self.closures[given] = tuple(sorted(numbers))
            _bound(self.closures)
        return known

    @cached_property
    def _made(self) -> tuple[int, ...]:
        return tuple(number for number, module in enumerate(self.modules) if module.declares in MADE)

    @cached_property
    def relevance(self) -> Relevance:
        """What :meth:`relevant` asks."""
        return Relevance(self.modules, self.tables)


def _bound(known: dict[Any, Any]) -> None:
    """Forget what was found first, where much was found: there is no end to the graphs of a process."""
    while len(known) > FINDINGS_KEPT:
        del known[next(iter(known))]


def _prepare(program: RuleProgram) -> PreparedRules:
    compiled = _compiled(program)
    layers = (
        program.signature.program,
        ROW_TABLES,
        facts_program(program.strict, _asks_what_is_finite(program)),
        core_program(program.signature, program.strict),
        fills_program(program.signature),
        dims_program(program.signature),
        structure_program(),
        numbers_program(),
    )
    own = [replace(chunk, text=_marking_superseded(chunk.text)) for chunk in compiled.chunks]
    modules = modules_of(layers, own)
    return PreparedRules(modules, compiled.rulesets, compiled.expanding)


def _compiled(program: RuleProgram) -> CompiledRules:
    """All rules; those of the package, which are many, are compiled once for whatever a user adds."""
    package = _of_package(program.selection)
    digest = rules_digest(package, program.signature, program.strict)
    known = compiled_rules(digest, package.rules, lambda: _compile(program, package))
    return known if package == program.selection else _compile(program, program.selection, known)


def _compile(
    program: RuleProgram, selection: RuleSelection, known: CompiledRules | None = None
) -> CompiledRules:
    return compile_rules(
        selection.rules,
        _operators(program),
        exact_only=program.strict,
        declarations=_declarations(selection),
        wide=program.users_rules,
        known=known,
    )


def _operators(program: RuleProgram) -> Signature:
    return {**program.signature.operators, **FACT_OPERATORS}


def _declarations(selection: RuleSelection) -> tuple[Form, ...]:
    return tuple(form for file in selection.files for form in file.declarations)


def as_written(program: RuleProgram, rule: str) -> tuple[Module, ...]:
    """One rule, or what a local optimizer's name stands for, compiled to match pairs of operands."""
    selection = program.selection
    own = [one for one in selection.rules if rule in (one.name, one.report_name)]
    compiled = compile_rules(
        own,
        _operators(program),
        exact_only=program.strict,
        declarations=_declarations(selection),
        in_bulk=False,
    )
    return modules_of((), compiled.chunks)


def _asks_what_is_finite(program: RuleProgram) -> bool:
    """Whether a rule that does not come with esat does."""
    own = (rule for rule in program.selection.rules if rule.name in program.users_rules)
    return any(head_of(fact) == FINITE for rule in own for fact in rule.body)


@lru_cache(PROGRAMS_KEPT)
def prepared(program: RuleProgram) -> PreparedProgram:
    """The rules of a program, ready to load: from disk, or compiled; the last few are remembered.

    Raises
    ------
    RuleError
        For a rule that uses an unknown op, a wrong number of operands, or could change a type.
    """
    rules = program.selection.rules
    digest = rules_digest(program.selection, program.signature, program.strict)
    return PreparedProgram(program, prepared_rules(digest, rules, lambda: _prepare(program)))


def prepared_engine(program: RuleProgram, terms: TermGraph | None = None) -> AnyEngine:
    """A new engine that holds what a program has to say of some terms, ready to load them.

    It has the constructors of these terms that the program lacks, too.

    Parameters
    ----------
    program
        The rules.
    terms
        The terms that will be loaded; None: any.

    Raises
    ------
    RuleError
        When egglog refuses a rule, at the rule's position.
    """
    return prepared(program).engine_for(terms)


def _of_package(selection: RuleSelection) -> RuleSelection:
    """The rules among others that come with esat."""
    files = tuple(file for file in selection.files if is_of_package(file.file))
    return selection if files == selection.files else RuleSelection(files)


def _read(modules: Sequence[Module], known: MachineProgram | None = None) -> MachineProgram | None:
    """The program of modules and what is known before them; None if it is beyond esat's engine."""
    try:
        return MatchingEngine.program_of((module.text for module in modules), known)
    except UnknownFormError:
        return None


def has_small_products(terms: TermGraph) -> bool:
    """Whether there are products of matrices, and all operands are known to have few elements."""
    products = [term for term in terms.terms if term.constructor == "MatMul"]
    operands = {operand for term in products for operand in term.operands}
    return bool(operands) and all(_is_small(terms.types[operand]) for operand in operands)


def _is_small(type: TermType) -> bool:
    sizes = [size for size in type.shape if isinstance(size, int)]
    return len(sizes) == len(type.shape) and math.prod(sizes) <= SMALL_ELEMENTS


def _tables_of(terms: TermGraph) -> set[str]:
    """Tables that hold rows once the terms are loaded."""
    return {term.constructor for term in terms.terms} | {*given_tables(terms)}
