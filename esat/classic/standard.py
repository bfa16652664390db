"""``optdb``: the database that modes query, with all that comes with esat; the one explicit table of it."""

from __future__ import annotations

from esat.classic.compensations import KEEP_COMPENSATIONS, RELEASE_COMPENSATIONS
from esat.classic.operands import ADD_DIAGONALS, LIFT_TRANSPOSES, SCALE_PRODUCTS, SIGNS_INTO_NUMBERS
from esat.classic.optimizers.marker import AddDestroyHandler, Marker
from esat.classic.optimizers.merge import MergeOptimizer, merge_optimizer
from esat.classic.optimizers.optimizer_database import EquilibriumDB, SequenceDB, registrar
from esat.classic.rewriting import LOCALS
from esat.classic.rules.rule_phase import RuleSource
from esat.classic.rules.shapes_of_fills import FILLS_BY_SIZES
from esat.classic.simplify import constant_folding, local_shape_lift
from esat.egraph.preparation.rule_database import RULES, RuleDatabase
from esat.errors import OptimizerError
from esat.graph.changes import before_use

EQUILIBRIA = {"canonicalize": 1.0, "stabilize": 1.5, "blas": 1.7, "specialize": 2.0}
"""Databases of local optimizers and their positions. Each has the rules tagged with its name."""

_ALWAYS = ("fast_run", "fast_compile")

_BY_RULES = (
    "local_dimshuffle_lift",
    "local_add_canonizer",
    "local_mul_canonizer",
    "local_reshape_chain",
    "local_lift_transpose_through_dot",
    "local_mul_zero",
    "local_greedy_distributor",
)
"""Local optimizers of Theano whose work the e-graph of rules does."""

_IN_PLACE = (
    ("inplace_setsubtensor",),
    ("inplace_blas", "gemm"),
    ("inplace_random",),
    ("inplace_elemwise",),
)
"""Markers of what works in place, with further tags, in their order."""


def standard_database(rules: RuleDatabase = RULES) -> SequenceDB:
    """A database with all that comes with esat, over the given rules."""
    database = SequenceDB("optdb")
    database.register("merge1", MergeOptimizer(), 0, *_ALWAYS, "merge", "exact", native=True)
    database.register("keep_compensations", KEEP_COMPENSATIONS, 0.5, "fast_run")
    for name, position in EQUILIBRIA.items():
        rest_without = frozenset(EQUILIBRIA) if name == "canonicalize" else None
        again = "canonicalize" if name == "specialize" else ""
        inner = EquilibriumDB(name, RuleSource(rules, name, rest_without, again))
        database.register(name, inner, position, *_ALWAYS)
    _register_locals(database)
    database.register("release_compensations", RELEASE_COMPENSATIONS, 49.001, "fast_run")
    database.register("merge2", MergeOptimizer(), 49, *_ALWAYS, "merge", "exact")
    database.register("fills_by_sizes", FILLS_BY_SIZES, 49.005, "fast_run", "exact")
    database.register("lift_transposes", LIFT_TRANSPOSES, 49.01, "fast_run", "blas", "exact")
    database.register("scale_products", SCALE_PRODUCTS, 49.02, "fast_run", "blas")
    database.register("signs_into_numbers", SIGNS_INTO_NUMBERS, 49.03, "fast_run", "exact")
    database.register("add_diagonals", ADD_DIAGONALS, 49.04, "fast_run")
    database.register("elemwise_fusion", Marker("elemwise_fusion"), 49.1, "fast_run", "fusion", native=True)
    database.register("gemm", Marker("gemm"), 49.15, "fast_run", "blas", native=True)
    database.register("gpu_transfer", Marker("gpu_transfer"), 49.2, *_ALWAYS, "gpu", "exact", native=True)
    database.register("add_destroy_handler", AddDestroyHandler(), 49.5, *_ALWAYS, "exact")
    for position, (name, *tags) in enumerate(_IN_PLACE):
        database.register(name, Marker(name), 60.0 + position, "fast_run", "inplace", *tags, native=True)
    database.register("merge3", MergeOptimizer(), 100, *_ALWAYS, "merge", "exact")
    return database


def _register_locals(database: SequenceDB) -> None:
    canonicalize, specialize = (equilibrium(database, name) for name in ("canonicalize", "specialize"))
    for inner in (canonicalize, specialize):
        inner.register("MergeOptimizer", merge_optimizer, *_ALWAYS, "merge", "exact", native=True)
        inner.register("constant_folding", constant_folding, *_ALWAYS, "exact", native=True)
    for name in _BY_RULES:
        canonicalize.register(name, Marker(name), "fast_run", native=True)
    canonicalize.register("local_shape_lift", local_shape_lift, "fast_run", "exact")
    for local in LOCALS:
        inner = equilibrium(database, local.equilibrium)
        inner.register(local.optimizer.name, local.optimizer, *local.tags)


def equilibrium(database: SequenceDB, name: str) -> EquilibriumDB:
    """The database of local optimizers of a name. Raises OptimizerError where there is none."""
    inner = database[name]
    if not isinstance(inner, EquilibriumDB):
        raise OptimizerError(f"{name!r} in {database.name} is no database of local optimizers")
    return inner


with before_use():
    optdb = standard_database()

register_canonicalize = registrar(equilibrium(optdb, "canonicalize"))
register_stabilize = registrar(equilibrium(optdb, "stabilize"))
register_specialize = registrar(equilibrium(optdb, "specialize"))
