"""``from_pytensor``: a PyTensor graph as one of esat's, without PyTensor's function around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.graph.basic import Constant
from pytensor.graph.basic import Variable as PyTensorVariable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import graph_inputs

from esat.errors import GraphError
from esat.frontend.graph import Graph
from esat.frontend.pytensor.linker import ESAT
from esat.frontend.pytensor.rules import RULES
from esat.frontend.pytensor.translation import PyTensorTranslation
from esat.frontend.pytensor.types import type_of
from esat.frontend.shared import shared
from esat.graph.variables import Variable


def from_pytensor(inputs: Sequence[Any], outputs: Any) -> Graph:
    """A PyTensor graph as a graph of esat's, to be compiled, differentiated or joined with others.

    Parameters
    ----------
    inputs
        PyTensor variables, in order.
    outputs
        One PyTensor variable, or a sequence.

    Returns
    -------
    A Graph whose inputs and outputs have the names, dtypes and known sizes that PyTensor says. Shared
    variables that are no inputs become shared variables of esat's, with copies of the values that they have.

    Raises
    ------
    GraphError
        For what is no PyTensor variable, a type that esat lacks, or a variable that is needed and no input.

    Examples
    --------
    >>> import numpy as np, pytensor.tensor as pt
    >>> x = pt.dvector("x")
    >>> graph = esat.frontend.pytensor.from_pytensor([x], (x**2).sum())
    >>> esat.compile(graph)(np.array([1.0, 2.0]))
    array(5.)
    """
    single = not isinstance(outputs, (list, tuple))
    wanted = [outputs] if single else list(outputs)
    for one in (*inputs, *wanted):
        if not isinstance(one, PyTensorVariable):
            raise GraphError(f"from_pytensor: takes variables of PyTensor's, not {one!r}")
    roots = [one for one in graph_inputs(wanted) if one not in inputs and not isinstance(one, Constant)]
    kept = [one for one in roots if hasattr(one, "get_value")]
    if missing := [one for one in roots if one not in kept]:
        raise GraphError(f"from_pytensor: {', '.join(map(str, missing))} is needed, and not among the inputs")
    fgraph = FunctionGraph([*inputs, *kept], wanted, clone=True)
    ESAT.optimizer.rewrite(fgraph)
    own = [type_of(one).make_variable(one.name) for one in inputs]
    values = [shared(one.get_value(), name=one.name) for one in kept]
    translation = PyTensorTranslation(RULES)
    results: list[Variable] = translation.run(fgraph, [*own, *values])
    return Graph(own, results[0] if single else results, on_unused_input="ignore")
