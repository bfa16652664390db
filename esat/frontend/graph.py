"""Graph: what to compile, as the user describes it."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, GraphError, describe
from esat.frontend.elements.streams import advanced
from esat.graph.algorithms.copying import clone
from esat.graph.algorithms.traversal import ancestors
from esat.graph.function_graph import FunctionGraph, check_inputs
from esat.graph.op import as_variable
from esat.graph.types import TensorType
from esat.graph.variables import SharedVariable, Variable
from esat.ops.annotations.gradients import without_gradients
from esat.ops.cast import cast

Pairs: TypeAlias = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


@record(frozen=True, init=False)
class Graph:
    """A graph to compile: inputs, outputs, and what a call does to shared variables.

    It can be pickled, with the values that shared variables have, and compiled in another process.

    Parameters
    ----------
    inputs
        Variables the caller supplies, in order.
    outputs
        One Variable, or a sequence: then a call returns a tuple if there are several.
    updates
        Shared variable -> its value after the call, computed from the values before it. A value of
        another dtype is cast if that loses nothing. An :class:`esat.random.RandomStream` that is not
        named here goes on with every call; ``{stream.shared: stream.shared}`` keeps it where it is.
    givens
        Variable -> what to compute in its place.
    on_unused_input
        What to do about an input that nothing depends on: ``raise`` or ``ignore``.

    Raises
    ------
    GraphError
        For a Constant or a repeated Variable as input, an unused or missing input, an update of what is
        no shared variable, or a value whose type does not fit.

    Examples
    --------
    >>> import esat
    >>> x, total = esat.vector("x"), esat.shared(0.0)
    >>> add = esat.compile(esat.Graph([x], x.sum(), updates={total: total + x.sum()}))
    >>> add([1.0, 2.0])
    array(3.)
    >>> total.get_value()
    array(3.)
    """

    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    updates: tuple[tuple[SharedVariable, Variable], ...]
    givens: tuple[tuple[Variable, Variable], ...]
    single_output: bool

    def __init__(
        self,
        inputs: Variable | Sequence[Variable],
        outputs: Any,
        updates: Pairs | None = None,
        givens: Pairs | None = None,
        on_unused_input: Literal["raise", "ignore"] = "raise",
    ) -> None:
        single = isinstance(outputs, Variable) or not isinstance(outputs, (list, tuple))
        wanted = (outputs,) if single else outputs
        fields = {
            "inputs": _inputs(inputs),
            "outputs": tuple(_output(place, output) for place, output in enumerate(wanted)),
            "updates": tuple(_update(*pair) for pair in _pairs(updates)),
            "givens": tuple(_given(*pair) for pair in _pairs(givens)),
            "single_output": single,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "updates", (*self.updates, *self._streams()))
        self._check(on_unused_input)

    def _streams(self) -> list[tuple[SharedVariable, Variable]]:
        """Updates of the streams drawn from, but for those the user decides about."""
        decided = {*self.inputs, *(variable for variable, _ in (*self.updates, *self.givens))}
        left = advanced([*self.outputs, *(value for _, value in self.updates)], self.inputs)
        return [(stream, after) for stream, after in left.items() if stream not in decided]

    def _check(self, on_unused_input: str) -> None:
        if on_unused_input not in ("raise", "ignore"):
            raise GraphError(f'on_unused_input is "raise" or "ignore", not {on_unused_input!r}')
        for role, keys in (("updated", self.updates), ("given", self.givens)):
            names = [str(key) for key, _ in keys]
            if len({id(key) for key, _ in keys}) != len(keys):
                raise GraphError(f"a Variable is {role} twice among {names}")
        results = self._results()
        check_inputs(self.inputs, results)
        used = set(ancestors(results, stop=self.inputs))
        unused = [variable for variable in self.inputs if variable not in used]
        if unused and on_unused_input == "raise":
            listed = ", ".join(map(str, unused))
            reason = 'pass on_unused_input="ignore" to allow it'
            raise GraphError(f"nothing depends on the input {listed}; {reason}")

    def _results(self) -> list[Variable]:
        """Outputs, then new values of the updated variables, with the givens in place."""
        results = [*self.outputs, *(value for _, value in self.updates)]
        return without_gradients(clone(results, dict(self.givens))[0] if self.givens else results)

    @property
    def updated(self) -> tuple[SharedVariable, ...]:
        """The shared variables that a call changes."""
        return tuple(variable for variable, _ in self.updates)

    def function_graph(self) -> FunctionGraph:
        """A copy of the graph whose outputs are these and then the values of :attr:`updated`."""
        return FunctionGraph(self.inputs, self._results())


def own_graph(graph: Graph | FunctionGraph) -> tuple[FunctionGraph, tuple[SharedVariable, ...]]:
    """A copy of the graph that compilation may use, and the variables its last outputs update."""
    if isinstance(graph, Graph):
        return graph.function_graph(), graph.updated
    if isinstance(graph, FunctionGraph):
        unused = [variable for variable in graph.inputs if not graph.clients[variable]]
        if unused:
            names = ", ".join(map(str, unused))
            raise GraphError(f"nothing depends on the input {names}")
        return graph.clone(), ()
    reason = f"esat.compile takes an esat.Graph or a FunctionGraph, not {type(graph).__name__}"
    raise GraphError(f"{reason}; write esat.compile(esat.Graph(inputs, outputs))")


def donated_positions(graph: Graph | FunctionGraph, donate: Iterable[Variable]) -> frozenset[int]:
    """Positions of donated inputs."""
    positions = {variable: position for position, variable in enumerate(graph.inputs)}
    given = [donate] if isinstance(donate, Variable) else list(donate)
    for variable in given:
        if not isinstance(variable, Variable) or variable not in positions:
            raise GraphError(f"only inputs of the graph can be donated; {variable!r} is none")
    return frozenset(positions[variable] for variable in given)


def _inputs(given: Any) -> tuple[Variable, ...]:
    found = (given,) if isinstance(given, Variable) or not isinstance(given, Iterable) else tuple(given)
    for place, one in enumerate(found):
        if not isinstance(one, Variable):
            reason = "inputs are Variables, as esat.vector('x'); their values are given when it is called"
            raise GraphError(f"Graph: input {place} is {reprlib.repr(one)}; {reason}")
    return found


def _output(place: int, value: Any) -> Variable:
    try:
        return as_variable(value)
    except DtypeError as error:
        raise DtypeError(f"Graph: output {place} is no Variable: {error}") from None


def _pairs(given: Pairs | None) -> list[tuple[Any, Any]]:
    if given is None:
        return []
    return list(given.items() if isinstance(given, Mapping) else given)


def _update(target: Any, value: Any) -> tuple[SharedVariable, Variable]:
    if not isinstance(target, SharedVariable):
        raise GraphError(f"only shared variables have updates; {target!r} is none")
    variable = as_variable(value)
    wanted, given = target.type, variable.type
    if isinstance(wanted, TensorType) and isinstance(given, TensorType):
        if wanted.dtype != given.dtype and np.can_cast(given.numpy_dtype, wanted.numpy_dtype):
            variable = cast(variable, wanted.dtype)
        variable = _fitting(f"the update of {target}", wanted, variable)
    elif wanted != given:
        raise GraphError(f"the update of {target} has type {given}, not {wanted}")
    return target, variable


def _given(target: Any, value: Any) -> tuple[Variable, Variable]:
    if not isinstance(target, Variable):
        raise GraphError(f"only Variables can be given; {target!r} is none")
    variable = as_variable(value)
    if isinstance(target.type, TensorType) and isinstance(variable.type, TensorType):
        return target, _fitting(f"what is given for {target}", target.type, variable)
    if target.type != variable.type:
        raise GraphError(f"what is given for {target} has type {variable.type}, not {target.type}")
    return target, variable


def _fitting(role: str, wanted: TensorType, variable: Variable) -> Variable:
    given = variable.tensor_type
    sizes_fit = wanted.ndim == given.ndim and all(
        None in pair or pair[0] == pair[1] for pair in zip(wanted.shape, given.shape, strict=True)
    )
    if given.dtype != wanted.dtype or not sizes_fit:
        raise GraphError(describe("Graph", [given], f"{role} does not fit {wanted}"))
    return variable
