"""The classic system: optimizers that rewrite a FunctionGraph in place, and the database of them."""

from esat.classic.database import DB, EquilibriumDB, QueriedOptimizer, SequenceDB
from esat.classic.equilibrium import EquilibriumOptimizer, OscillationWarning
from esat.classic.local import FromFunctionLocalOptimizer, LocalOptimizer, OpRemove, OpSub, local_optimizer
from esat.classic.merge import MergeOptimizer, merge_optimizer
from esat.classic.navigator import Navigator, TopoOptimizer, in_to_out, out_to_in, random_order
from esat.classic.optimizer import FromFunctionOptimizer, Optimizer, SeqOptimizer
from esat.classic.pattern import PatternSub
from esat.classic.profile import OptimizerProfile
from esat.classic.standard import optdb, register_canonicalize, register_specialize, register_stabilize
from esat.rules.query import Query

__all__ = [
    "DB",
    "EquilibriumDB",
    "EquilibriumOptimizer",
    "FromFunctionLocalOptimizer",
    "FromFunctionOptimizer",
    "LocalOptimizer",
    "MergeOptimizer",
    "Navigator",
    "OpRemove",
    "OpSub",
    "Optimizer",
    "OptimizerProfile",
    "OscillationWarning",
    "PatternSub",
    "QueriedOptimizer",
    "Query",
    "SeqOptimizer",
    "SequenceDB",
    "TopoOptimizer",
    "in_to_out",
    "local_optimizer",
    "merge_optimizer",
    "optdb",
    "out_to_in",
    "random_order",
    "register_canonicalize",
    "register_specialize",
    "register_stabilize",
]
