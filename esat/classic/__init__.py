"""The classic system: optimizers that rewrite a FunctionGraph in place, one replacement after another."""

from esat.classic.equilibrium import EquilibriumOptimizer
from esat.classic.local import FromFunctionLocalOptimizer, LocalOptimizer, OpRemove, OpSub, local_optimizer
from esat.classic.merge import MergeOptimizer, merge_optimizer
from esat.classic.navigator import Navigator, TopoOptimizer, in_to_out, out_to_in, random_order
from esat.classic.optimizer import FromFunctionOptimizer, Optimizer, OptimizerProfile, SeqOptimizer
from esat.classic.pattern import PatternSub

__all__ = [
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
    "PatternSub",
    "SeqOptimizer",
    "TopoOptimizer",
    "in_to_out",
    "local_optimizer",
    "merge_optimizer",
    "out_to_in",
    "random_order",
]
