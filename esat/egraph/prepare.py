"""Prepared e-graphs: the signature, the n-ary core, facts and compiled rules in one program.

Loading rules takes longer than most saturations, so an engine that holds them is used again: the
terms of each graph are loaded between a push and a pop.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import local

from esat.egraph.constructors import op_signature
from esat.egraph.core import core_program
from esat.egraph.engine import Engine
from esat.egraph.facts import FACT_OPERATORS, facts_program
from esat.egraph.rule_compiler import CompiledRules, compile_rules
from esat.egraph.saturate import RuleStep, Schedule
from esat.egraph.signature import Signature
from esat.errors import RuleError
from esat.rules.database import RuleSelection

EXPANDING_FUEL = 400
"""Matches an expanding rule (distribution, say) may have in one round."""
USES_OF_AN_ENGINE = 50
"""egglog does not give all memory of a push back; after so many graphs an engine is replaced."""
ENGINES_KEPT = 4


@dataclass(frozen=True, slots=True)
class Program:
    """Everything an engine holds before the terms of a graph.

    Attributes
    ----------
    signature
        Constructors of the term language.
    compiled
        The selected rules.
    strict
        Whether floating-point sums and products are left in the order they were written.
    """

    signature: Signature
    compiled: CompiledRules
    strict: bool

    @property
    def schedule(self) -> Schedule:
        """The steps of one round of saturation."""
        steps = []
        if self.compiled.rulesets:
            steps.append(RuleStep(self.compiled.rulesets))
        if self.compiled.expanding:
            steps.append(RuleStep(self.compiled.expanding, fuel=EXPANDING_FUEL, rounds=2))
        return Schedule(tuple(steps))

    @property
    def constructors(self) -> tuple[str, ...]:
        """Tables whose rows are e-nodes."""
        return (*self.signature, "NarySum", "NaryProd")

    def load(self) -> Engine:
        """A new engine with this program.

        Raises
        ------
        RuleError
            When egglog refuses a rule, at the rule's position.
        """
        engine = Engine()
        engine.load(self.signature.program)
        engine.load(facts_program())
        engine.load(core_program(self.signature, self.strict))
        for chunk in self.compiled.chunks:
            try:
                engine.load(chunk.text)
            except RuleError as error:
                raise chunk.error(error.reason) from None
        return engine


_programs: OrderedDict[object, Program] = OrderedDict()


def program_for(selection: RuleSelection, strict: bool = False) -> Program:
    """The program of a rule selection; the last few are remembered.

    Raises
    ------
    RuleError
        For a rule that uses an unknown op, a wrong number of operands, or could change a type.
    """
    key = (selection.key, strict)
    known = _programs.get(key)
    if known is None:
        signature = op_signature()
        operators = {**signature.operators, **FACT_OPERATORS}
        declarations = tuple(form for file in selection.files for form in file.declarations)
        compiled = compile_rules(selection.rules, operators, exact_only=strict, declarations=declarations)
        known = _programs[key] = Program(signature, compiled, strict)
        while len(_programs) > 2 * ENGINES_KEPT:
            _programs.popitem(last=False)
    return known


class _Engines(local):
    """Prepared engines of one thread; an engine must not be shared between threads."""

    def __init__(self) -> None:
        self.kept: OrderedDict[int, tuple[Program, Engine, int]] = OrderedDict()


_engines = _Engines()


@contextmanager
def prepared_engine(program: Program) -> Iterator[Engine]:
    """An engine that holds the program, for the terms of one graph.

    Whatever is loaded inside is gone afterwards. An engine that failed is dropped.
    """
    kept = _engines.kept
    _, engine, uses = kept.pop(id(program), (program, None, 0))
    if engine is None:
        engine = program.load()
    engine.push()
    yield engine
    # Not in a `finally`: after any failure the engine is left to the garbage collector.
    engine.pop()
    if engine.failure is None and uses + 1 < USES_OF_AN_ENGINE:
        kept[id(program)] = (program, engine, uses + 1)
        while len(kept) > ENGINES_KEPT:
            kept.popitem(last=False)
