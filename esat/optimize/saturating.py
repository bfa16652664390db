"""From terms to a saturated e-graph, read out: the engine at work.

Its modules are many; :mod:`esat.optimize.optimizer` imports them for a graph whose e-graph is not on disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from esat.egraph.algebra.findings import FOUND
from esat.egraph.algebra.phase import Algebra
from esat.egraph.loader import Loading
from esat.egraph.prepare import prepared, prepared_engine
from esat.egraph.rule_program import RuleProgram
from esat.egraph.saturate import rounds_beyond, saturate
from esat.egraph.saturation_report import SaturationReport, SaturationTrace
from esat.egraph.schedule import Budgets
from esat.egraph.signature import ConstructorSignature
from esat.egraph.structure import RELATIONS
from esat.egraph.terms import TermGraph
from esat.extract.arrays import EGraphArrays
from esat.extract.extraction import SUPERSEDED_NAMES
from esat.extract.readout import TableLayout, read_out
from esat.ops.structure import NUMBERS
from esat.optimize.report import Stage

FACTS = ("dt", "bp", FOUND)
"""Facts that extraction and explanations read."""
CHECKED_FACTS = (*FACTS, "val", "finite", "integral", *NUMBERS, *RELATIONS)
"""Those and what debug mode compares with values."""


def searched(
    terms: TermGraph,
    loading: Loading,
    undeclared: Iterable[ConstructorSignature],
    program: RuleProgram,
    budgets: Budgets,
    stage: Stage,
    trace: SaturationTrace | None = None,
    check_types: bool = False,
) -> tuple[EGraphArrays, SaturationReport]:
    """What an engine finds to be equal to the terms.

    Parameters
    ----------
    terms, loading
        What it is told of, and how.
    undeclared
        Constructors of the terms that the program lacks.
    program, budgets, stage, trace, check_types
        Those of :func:`esat.optimize.optimizer.optimize`.

    Raises
    ------
    RuleError, SaturationError
        For a rule that egglog refuses, an e-graph that breaks off.
    """
    with stage("load rules"):
        engine = prepared_engine(program, terms)
    with stage("load"):
        loading.into(engine)
    with stage("saturate"):
        if budgets.rounds is not None:
            budgets = replace(budgets, rounds=budgets.rounds + rounds_beyond(terms))
        schedule = prepared(program).schedule_for(terms, check_types)
        algebra = None if program.strict else Algebra(terms, program.constructors)
        report = saturate(engine, schedule, budgets, program.constructors, trace, algebra)
    with stage("read out"):
        declared = (record.name for record in undeclared)
        facts = CHECKED_FACTS if check_types else FACTS
        names = {*program.constructors, *declared, *SUPERSEDED_NAMES, *facts, TableLayout().term_table}
        others = [name for name in engine.sizes() if name not in names]
        layout = TableLayout(not_operators=others, facts=facts)
        arrays = read_out(engine.freeze(), engine.values, layout)
    return arrays, report
