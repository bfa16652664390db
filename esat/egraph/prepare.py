"""Prepared e-graphs: the signature, the n-ary core, facts and compiled rules in one program.

Loading rules takes longer than most saturations, so engines that hold them are pooled.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from esat.egraph.constructors import op_signature
from esat.egraph.core import core_program
from esat.egraph.engine import Engine
from esat.egraph.facts import FACT_OPERATORS, facts_program
from esat.egraph.pool import POOL
from esat.egraph.pool import Program as ProgramText
from esat.egraph.rule_compiler import CompiledRules, compile_rules
from esat.egraph.saturate import RuleStep, Schedule
from esat.egraph.signature import Signature
from esat.errors import RuleError
from esat.rules.database import RuleSelection

EXPANDING_FUEL = 400
"""Matches an expanding rule (distribution, say) may have in one round."""
PROGRAMS_KEPT = 8
_CHUNK = "<chunk "


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
    def texts(self) -> tuple[ProgramText, ...]:
        """What an engine loads, in order; the rules of each chunk under a name of their own."""
        layers = (self.signature.program, facts_program(), core_program(self.signature, self.strict))
        chunks = enumerate(self.compiled.chunks)
        return (
            *map(ProgramText, layers),
            *(ProgramText(chunk.text, f"{_CHUNK}{number}") for number, chunk in chunks),
        )

    def located(self, error: RuleError) -> RuleError:
        """An error of egglog's about a chunk as one at the rule's own position."""
        if not error.file.startswith(_CHUNK):
            return error
        return self.compiled.chunks[int(error.file.removeprefix(_CHUNK))].error(error.reason)


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


@contextmanager
def prepared_engine(program: Program) -> Iterator[Engine]:
    """An engine that holds the program, for the terms of one graph; see :class:`EnginePool`.

    Raises
    ------
    RuleError
        When egglog refuses a rule, at the rule's position.
    """
    try:
        with POOL.engine(program.texts) as engine:
            yield engine
    except RuleError as error:
        raise program.located(error) from None
