"""What rules did for a program: its saturation done once more, with a log, when somebody asks.

Saturation is a function of the rules, the budgets and the terms, in the order in which an engine was told of
them. So nothing is noted while programs are compiled.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from esat.base.records import record
from esat.egraph.language.terms import TermGraph
from esat.egraph.preparation.rule_program import RuleProgram
from esat.egraph.saturation.schedule import Budgets
from esat.errors import EsatWarning, OptimizerError
from esat.optimize.equality.report import untimed
from esat.optimize.equality.told import Told

if TYPE_CHECKING:
    from esat.egraph.reasons.provenance import Provenance
    from esat.egraph.reasons.unproven import LeftSides
    from esat.engine.matching_engine import MatchingEngine


@record(frozen=True, eq=False)
class RepeatedSearch:
    """A saturation that can be done once more.

    Attributes
    ----------
    program, budgets, check_types
        Those of the search.
    told
        The terms, with more of them each time.
    """

    program: RuleProgram
    budgets: Budgets
    check_types: bool
    told: Sequence[TermGraph]

    def anew(self) -> RepeatedSearch:
        """The same, with nothing done yet."""
        return replace(self)

    @cached_property
    def provenance(self) -> Provenance:
        """What its rules did: it is done once, when this is asked for.

        Raises
        ------
        OptimizerError
            With egglog, which does not tell what its rules did.
        """
        return _provenance(self._engine())

    def left_sides(self, rule: str) -> tuple[Provenance, LeftSides]:
        """The log, and where the left side of a rule was found whether its conditions held or not.

        Raises
        ------
        OptimizerError
            As :attr:`provenance`.
        """
        from esat.egraph.preparation.prepare import as_written
        from esat.egraph.reasons.unproven import left_sides

        engine = self._engine()
        provenance = _provenance(engine)
        return provenance, left_sides(engine, as_written(self.program, rule))

    def _engine(self) -> MatchingEngine:
        # The engine, which a program without questions does without where its e-graph is on disk.
        from esat.engine.matching_engine import MatchingEngine
        from esat.optimize.equality.saturating import LiveEGraph

        # Where the clock ended the first run, this one may find more: what the first one found is among it.
        budgets = replace(self.budgets, seconds=math.inf)
        live = LiveEGraph(self.program, budgets, untimed, None, self.check_types, is_logged=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EsatWarning)  # of rules without end it was told the first time
            for terms in self.told:
                live.tell(Told.of(terms, self.program))
        engine = live.engine
        if not isinstance(engine, MatchingEngine):
            raise OptimizerError(
                "egglog does not tell which rules made its terms equal: compile with the default engine,"
                ' Mode(engine="esat")'
            )
        return engine


def _provenance(engine: MatchingEngine) -> Provenance:
    from esat.egraph.reasons.provenance import Provenance
    from esat.engine.state.contents import EventLog

    return Provenance(EventLog(engine), engine.vocabulary)
