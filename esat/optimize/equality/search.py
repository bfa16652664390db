"""What is equal to terms: saturation, which goes on where more becomes known, or its result on disk."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from esat.egraph.language.terms import TermGraph
from esat.egraph.preparation.rule_program import RuleProgram
from esat.egraph.saturation.saturation_report import SaturationReport, SaturationTrace
from esat.egraph.saturation.schedule import Budgets
from esat.errors import EsatWarning
from esat.extract.arrays import EGraphArrays
from esat.extract.extraction import SaturatedGraph
from esat.extract.kept_graphs import KeptGraphs, graph_key
from esat.optimize.equality.report import Stage, untimed
from esat.optimize.equality.told import Told

if TYPE_CHECKING:
    from esat.optimize.equality.saturating import LiveEGraph


@dataclass(slots=True, eq=False)
class EqualitySearch:
    """What is equal to terms, and to more terms that begin with them.

    Parameters
    ----------
    program, budgets, stage, trace, kept, check_types
        Those of :func:`esat.optimize.equality.optimizer.optimize`.
    """

    program: RuleProgram
    budgets: Budgets
    stage: Stage = untimed
    trace: SaturationTrace | None = None
    kept: KeptGraphs | None = None
    check_types: bool = False
    _told: list[Told] = field(default_factory=list)
    _live: LiveEGraph | None = None
    _key: str = ""

    def saturated(self, terms: TermGraph) -> tuple[SaturatedGraph, SaturationReport] | None:
        """The e-graph of terms, after saturation.

        None where the terms begin with those that this was asked of before, and all of what they add was
        known to be equal. What does not begin so is searched from the beginning.

        Raises
        ------
        RuleError, SaturationError
            For a rule that egglog refuses, an e-graph that breaks off.
        """
        with self.stage("encode"):
            told = Told.of(terms, self.program)
        if not self._told or not told.goes_on(self._told[-1]):
            self._told, self._live, self._key = [], None, ""
        self._told.append(told)
        if self.kept is None:
            found = self._searched()
        else:
            with self.stage("e-graph cache"):
                texts = [*(record.declaration for record in told.undeclared), *told.loading.all_texts()]
                self._key = graph_key(self.program, self.budgets, [self._key, *texts], terms)
                known = self.kept.load(self._key)
            if known is None:
                found = self._searched()
                with self.stage("e-graph cache"):
                    self.kept.save(self._key, *found)
            else:
                found = known
                if found[1].warning:
                    warnings.warn(found[1].warning, EsatWarning, stacklevel=2)
        arrays, report = found
        return (SaturatedGraph(arrays, terms, told.plan), report) if report.is_news else None

    @property
    def told(self) -> tuple[TermGraph, ...]:
        """The terms that the search has been told of, with more of them each time."""
        return tuple(told.terms for told in self._told)

    def _searched(self) -> tuple[EGraphArrays, SaturationReport]:
        """What the engine finds, which is told first of what was found on disk."""
        from esat.optimize.equality.saturating import (
            LiveEGraph,  # the engine, which a kept e-graph does without
        )

        if self._live is None:
            self._live = LiveEGraph(self.program, self.budgets, self.stage, self.trace, self.check_types)
        try:
            for told in self._told[len(self._live.told) :]:
                found = self._live.tell(told)
        except BaseException:
            self._told.clear()
            raise
        return found


def saturated(
    terms: TermGraph,
    program: RuleProgram,
    budgets: Budgets,
    stage: Stage = untimed,
    trace: SaturationTrace | None = None,
    kept: KeptGraphs | None = None,
    check_types: bool = False,
) -> tuple[SaturatedGraph, SaturationReport]:
    """The e-graph of the terms, after saturation; the parameters are those of :class:`EqualitySearch`."""
    found = EqualitySearch(program, budgets, stage, trace, kept, check_types).saturated(terms)
    assert found is not None
    return found
