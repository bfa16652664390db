"""The classic system: optimizers that rewrite a FunctionGraph in place, and the database of them.

An optimization of your own, in use from the next compilation on:

>>> import esat
>>> from esat.classic import local_optimizer, register_canonicalize
>>> @register_canonicalize("fast_run")
... @local_optimizer([esat.erf])
... def erf_of_arctanh(node):
...     inner = node.inputs[0].owner
...     return [inner.inputs[0]] if inner is not None and inner.op == esat.arctanh else False
>>> x = esat.vector("x")
>>> esat.compile(esat.Graph([x], esat.erf(esat.arctanh(x)) * 2.0)).optimized
[mul(x, [2.0])]
>>> esat.optdb["canonicalize"].remove("erf_of_arctanh")

The function sees one Apply node and answers ``False``, or one Variable for each output of the node. In
modes that saturate, what it answers is *added* as another way to compute the same, and the cheapest of
all ways wins; in ``greedy`` it replaces. ``register_stabilize`` replaces in both. The same as a pattern,
``PatternSub((esat.erf, (esat.arctanh, "x")), "x")``, and as a rule,
``esat.rules.add("(rewrite (Erf (Arctanh x)) x)")``. What must look at the whole graph is an
:class:`Optimizer`: ``esat.optdb.register("mine", Mine(), 0.5, "fast_run")`` runs it before saturation, a
position from 49 on after it.
"""

from esat.classic.optimizers.equilibrium import EquilibriumOptimizer, OscillationWarning
from esat.classic.optimizers.global_optimizers import FromFunctionOptimizer, Optimizer, SeqOptimizer
from esat.classic.optimizers.local import (
    FromFunctionLocalOptimizer,
    LocalOptimizer,
    OpRemove,
    OpSub,
    local_optimizer,
)
from esat.classic.optimizers.merge import MergeOptimizer, merge_optimizer
from esat.classic.optimizers.navigator import Navigator, TopoOptimizer, in_to_out, out_to_in, random_order
from esat.classic.optimizers.optimizer_database import DB, EquilibriumDB, QueriedOptimizer, SequenceDB
from esat.classic.optimizers.pattern import PatternSub
from esat.classic.profile import OptimizerProfile
from esat.classic.standard import optdb, register_canonicalize, register_specialize, register_stabilize
from esat.graph.calls.parameters import check_calls, check_methods
from esat.rules.language.query import Query

__all__ = [
    "DB", "EquilibriumDB", "EquilibriumOptimizer", "FromFunctionLocalOptimizer", "FromFunctionOptimizer",
    "LocalOptimizer", "MergeOptimizer", "Navigator", "OpRemove", "OpSub", "Optimizer", "OptimizerProfile",
    "OscillationWarning", "PatternSub", "QueriedOptimizer", "Query", "SeqOptimizer", "SequenceDB",
    "TopoOptimizer", "in_to_out", "local_optimizer", "merge_optimizer", "optdb", "out_to_in",
    "random_order", "register_canonicalize", "register_specialize", "register_stabilize",
]  # fmt: skip

check_calls(globals(), __all__)
for _class in (
    DB, EquilibriumDB, EquilibriumOptimizer, FromFunctionLocalOptimizer, FromFunctionOptimizer, Navigator,
    OpRemove, OpSub, Optimizer, PatternSub, Query, SeqOptimizer, SequenceDB, TopoOptimizer,
):  # fmt: skip
    check_methods(_class)
