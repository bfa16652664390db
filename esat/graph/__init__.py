"""The nouns: types, variables, Apply nodes, ops, the FunctionGraph and its features."""

from esat.graph.algorithms.copying import clone
from esat.graph.algorithms.printing import debugprint, expression_text
from esat.graph.algorithms.traversal import ancestors, inputs_of, toposort
from esat.graph.features import Feature, NodeFinder, ReplaceValidate, TopologicalOrder
from esat.graph.function_graph import Client, FunctionGraph
from esat.graph.op import Family, Op, Work
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Constant, SharedVariable, Variable

__all__ = [
    "Apply", "Client", "Constant", "Family", "Feature", "FunctionGraph", "NodeFinder", "Op",
    "ReplaceValidate", "SharedVariable", "TensorType", "TopologicalOrder", "Type", "Variable", "Work",
    "ancestors", "clone", "debugprint", "expression_text", "inputs_of", "toposort",
]  # fmt: skip
