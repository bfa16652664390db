"""From terms to a saturated e-graph, read out: the engine at work.

Its modules are many; :mod:`esat.optimize.equality.search` imports them for a graph whose e-graph is not on
disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from esat.egraph.algebra.findings import FOUND
from esat.egraph.algebra.phase import Algebra
from esat.egraph.analyses.structure import RELATIONS
from esat.egraph.engine import AnyEngine
from esat.egraph.preparation.prepare import prepared, prepared_engine
from esat.egraph.preparation.rule_program import RuleProgram
from esat.egraph.saturation.runner import Runner
from esat.egraph.saturation.saturate import Saturation, rounds_beyond
from esat.egraph.saturation.saturation_report import SaturationReport, SaturationTrace
from esat.egraph.saturation.schedule import Budgets, Schedule
from esat.engine.matching_engine import MatchingEngine
from esat.engine.vocabulary import UnknownFormError
from esat.extract.arrays import EGraphArrays
from esat.extract.extraction import SUPERSEDED_NAMES
from esat.extract.readout import TableLayout, read_out
from esat.ops.inference.structure import NUMBERS
from esat.optimize.equality.report import Stage
from esat.optimize.equality.told import Told

FACTS = ("dt", "bp", FOUND)
"""Facts that extraction and explanations read."""
CHECKED_FACTS = (*FACTS, "val", "finite", "integral", *NUMBERS, *RELATIONS)
"""Those and what debug mode compares with values."""


@dataclass(slots=True)
class LiveEGraph:
    """An e-graph that an engine holds, and the rules go on with where more is told of it.

    Parameters
    ----------
    program, budgets, stage, trace, check_types
        Those of :class:`esat.optimize.equality.search.EqualitySearch`.
    is_logged
        Whether esat's engine logs what rules do.

    Attributes
    ----------
    told
        All it was told of.
    """

    program: RuleProgram
    budgets: Budgets
    stage: Stage
    trace: SaturationTrace | None
    check_types: bool
    is_logged: bool = False
    told: list[Told] = field(default_factory=list)
    _engine: AnyEngine | None = None
    _saturation: Saturation | None = None
    _found: tuple[EGraphArrays, SaturationReport] = field(init=False)

    def tell(self, told: Told) -> tuple[EGraphArrays, SaturationReport]:
        """What an engine finds of terms.

        Raises
        ------
        RuleError, SaturationError
            For a rule that egglog refuses, an e-graph that breaks off. It cannot go on then.
        """
        report = self._gone_on(told) if self.told else self._begun(told)
        self.told.append(told)
        if report is None:
            arrays, before = self._found
            self._found = arrays, replace(before, is_news=False, warning="")
        else:
            self._found = self._read_out(), report
        return self._found

    @property
    def engine(self) -> AnyEngine | None:
        """What holds the e-graph, once it was told of terms."""
        return self._engine

    def _begun(self, told: Told) -> SaturationReport:
        program, terms = self.program, told.terms
        with self.stage("load rules"):
            engine = self._engine = prepared_engine(program, terms)
            if self.is_logged and isinstance(engine, MatchingEngine):
                engine.log_events()
        with self.stage("load"):
            told.loading.into(engine)
        with self.stage("saturate"):
            budgets = self.budgets
            if budgets.rounds is not None:
                budgets = replace(budgets, rounds=budgets.rounds + rounds_beyond(terms))
            schedule = self._schedule(told)
            algebra = Algebra(terms, program.constructors) if program.has_algebra else None
            runner = Runner(engine, schedule, budgets, frozenset(program.constructors), self.trace)
            self._saturation = Saturation(schedule, runner, algebra)
            return self._saturation.run()

    def _gone_on(self, told: Told) -> SaturationReport | None:
        engine, saturation, last = self._engine, self._saturation, self.told[-1]
        assert saturation is not None
        if not isinstance(engine, MatchingEngine):
            return self._begun(told)
        with self.stage("load"):
            known = {record.name for record in last.undeclared}
            try:
                engine.load(" ".join(one.declaration for one in told.undeclared if one.name not in known))
            except UnknownFormError:  # an op of more operands than a table may have columns
                return self._begun(told)
            engine.skip(_first_rulesets(saturation.schedule))
            before = _sizes(engine)
            told.loading.beyond(last.loading).into(engine)
            after = _sizes(engine)
            if after == before:
                return None
        with self.stage("saturate"):
            nodes = sum(after[name] - before.get(name, 0) for name in self._operators(told))
            if saturation.algebra is not None:
                saturation.algebra.tell(told.terms)
            return saturation.go_on(self._schedule(told), max(nodes, 0))

    def _schedule(self, told: Told) -> Schedule:
        return prepared(self.program).schedule_for(told.terms, self.check_types)

    def _operators(self, told: Told) -> set[str]:
        return {*self.program.constructors, *(record.name for record in told.undeclared)}

    def _read_out(self) -> EGraphArrays:
        engine = self._engine
        assert engine is not None
        with self.stage("read out"):
            facts = CHECKED_FACTS if self.check_types else FACTS
            names = {*SUPERSEDED_NAMES, *facts, TableLayout().term_table}.union(
                *map(self._operators, self.told)
            )
            others = [name for name in engine.sizes() if name not in names]
            layout = TableLayout(not_operators=others, facts=facts)
            return read_out(engine.freeze(), engine.values, layout)


def _first_rulesets(schedule: Schedule) -> set[str]:
    """Rule sets that run in the first rounds only: what they have not said by then, they do not say later."""
    return {name for step in schedule.steps if step.rounds is not None for name in step.rulesets}


def _sizes(engine: AnyEngine) -> dict[str, int]:
    """Rows by table, but for the names of terms. Each class has one type: a union takes a row of it away."""
    return {name: rows for name, rows in engine.sizes().items() if name != TableLayout().term_table}
