"""What a Query means for equality saturation: what runs before it, takes part in it, and runs after it.

The same database serves the greedy optimizer, which runs all of it in order. Here

* rules saturate,
* local optimizers say what is equal: their replacements are added, nothing is destroyed,
* global optimizers below position 49, and local ones that stabilize, change the graph before,
* global optimizers from 49 on change the extracted graph.
"""

from __future__ import annotations

from esat.classic.database import DB, Entry, EquilibriumDB, SequenceDB
from esat.classic.equilibrium import EquilibriumOptimizer
from esat.classic.local import LocalOptimizer
from esat.classic.optimizer import Optimizer, SeqOptimizer
from esat.classic.rewriting import LOCALS
from esat.classic.rule_phase import RuleOptions
from esat.classic.simplify import local_shape_lift
from esat.records import record
from esat.rules.query import Query

AFTER = 49.0
"""Position from which optimizers see the extracted graph."""

FOR_GOOD = "stabilize"
"""The database whose local optimizers replace for good: what overflows must not come back for its price."""


@record(frozen=True)
class SaturationPlan:
    """Python optimizers of one compilation by equality saturation.

    Attributes
    ----------
    before, after
        What runs on the graph before and after.
    equalities
        Local optimizers that contribute equalities.
    """

    before: SeqOptimizer
    equalities: tuple[LocalOptimizer, ...]
    after: SeqOptimizer

    @property
    def added(self) -> tuple[LocalOptimizer, ...]:
        """Local optimizers that contribute equalities and do not come with esat."""
        return tuple(one for one in self.equalities if id(one) not in _OWN)


_OWN = frozenset(id(local.optimizer) for local in LOCALS) | {id(local_shape_lift)}


def saturation_plan(database: SequenceDB, query: Query, options: RuleOptions | None = None) -> SaturationPlan:
    """The plan of what a Query selects.

    Where only exact rules are admitted, a Python optimizer takes part if it is tagged ``exact``.
    """
    chosen = options or RuleOptions()
    before: dict[str, Optimizer] = {}
    after: dict[str, Optimizer] = {}
    equalities: list[LocalOptimizer] = []
    for entry in database.selected(query):
        found = entry.object
        where = before if entry.position < AFTER else after
        if isinstance(found, Optimizer):
            if _takes_part(entry, chosen):
                where[entry.name] = found
        elif isinstance(found, EquilibriumDB):
            own = [inner for inner in found.locals(query) if _takes_part(inner, chosen)]
            if entry.position >= AFTER or found.name == FOR_GOOD:
                if own:
                    where[entry.name] = _equilibrium(own, found.name)
                continue
            for inner in own:
                if isinstance(inner.object, LocalOptimizer):
                    equalities.append(inner.object)
                elif isinstance(inner.object, Optimizer):
                    where[inner.name] = inner.object
        elif isinstance(found, SequenceDB):
            inside = saturation_plan(found, query, chosen)
            where.update(zip(inside.before.names, inside.before.optimizers, strict=True))
            where.update(zip(inside.after.names, inside.after.optimizers, strict=True))
            equalities += inside.equalities
    return SaturationPlan(
        SeqOptimizer(before.values(), "before saturation", before),
        tuple(equalities),
        SeqOptimizer(after.values(), "after extraction", after),
    )


def _takes_part(entry: Entry, options: RuleOptions) -> bool:
    return not entry.native and (options.soundness != "exact" or "exact" in entry.tags)


def _equilibrium(entries: list[Entry], name: str) -> EquilibriumOptimizer:
    found = [entry.object for entry in entries]
    return EquilibriumOptimizer([one for one in found if not isinstance(one, DB)], name=name)
