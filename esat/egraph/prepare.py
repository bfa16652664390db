"""Prepared e-graphs: the signature, the n-ary core, facts and compiled rules in one program.

Loading rules takes longer than most saturations, so engines that hold them are pooled.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property

from esat.egraph.constructors import op_signature
from esat.egraph.core import core_program
from esat.egraph.engine import Engine
from esat.egraph.facts import FACT_OPERATORS, facts_program
from esat.egraph.pool import POOL
from esat.egraph.rule_compiler import CompiledRules, compile_rules
from esat.egraph.saturate import RuleStep, Schedule
from esat.egraph.signature import Signature
from esat.errors import RuleError
from esat.rules.database import RuleSelection

EXPANDING_FUEL = 400
"""Matches an expanding rule (distribution, say) may have in one round."""
PROGRAMS_KEPT = 8

SUPERSEDED = "Superseded"
"""Prefix of the constructors that mark sums and products which a rule of a file subsumed.

The n-ary layer subsumes terms too, to match them no more; those stay as good as any other. What a
rule subsumes must not be computed again, so it leaves a twin of another name in its class.
"""

_SUPERSEDED_DECLARATIONS = "\n".join(
    f"(constructor {SUPERSEDED}{nary} (MS MS) T :unextractable)" for nary in ("NarySum", "NaryProd")
)
_SUBSUMED = re.compile(r"\(subsume \((NarySum|NaryProd) (\S+) ([^\s()]+)\)\)")


def _marking_superseded(text: str) -> str:
    return _SUBSUMED.sub(rf"(union (\1 \2 \3) ({SUPERSEDED}\1 \2 \3)) \g<0>", text)


@dataclass(frozen=True)
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

    @cached_property
    def key(self) -> tuple[str, bool]:
        """What tells engines with this program from others."""
        return self.compiled.text, self.strict

    def load(self) -> Engine:
        """A new engine with this program.

        Raises
        ------
        RuleError
            When egglog refuses a rule, at the rule's position.
        """
        engine = Engine()
        layers = (self.signature.program, facts_program(), core_program(self.signature, self.strict))
        for layer in (*layers, _SUPERSEDED_DECLARATIONS):
            engine.load(layer)
        for chunk in self.compiled.chunks:
            try:
                engine.load(_marking_superseded(chunk.text))
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
        while len(_programs) > PROGRAMS_KEPT:
            _programs.popitem(last=False)
    return known


def prepared_engine(program: Program) -> AbstractContextManager[Engine]:
    """An engine that holds the program, for the terms of one graph; see :class:`EnginePool`.

    Raises
    ------
    RuleError
        When egglog refuses a rule, at the rule's position.
    """
    return POOL.engine(program.key, program.load)
