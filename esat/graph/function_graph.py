"""FunctionGraph: a closed graph from inputs to outputs that knows who uses what."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from esat.errors import GraphError, UserLine
from esat.graph.algorithms.copying import clone
from esat.graph.algorithms.printing import expression_text
from esat.graph.algorithms.traversal import ancestors, toposort
from esat.graph.features import Feature
from esat.graph.types import may_stand_for
from esat.graph.variables import Apply, Constant, SharedVariable, Variable

FeatureKind = TypeVar("FeatureKind", bound=Feature)

Client: TypeAlias = tuple[Apply | Literal["output"], int]
"""A place where a Variable is used: (Apply, input position) or ("output", output position)."""


class FunctionGraph:
    """The graph between given inputs and outputs, with back pointers from Variables to their uses.

    Parameters
    ----------
    inputs
        Variables the caller supplies. What lies behind them is not part of the graph.
    outputs
        Variables the graph computes.
    clone
        Whether to copy the graph first, so that the caller's own is never touched.
    features
        Plug-ins to attach.

    Attributes
    ----------
    clients
        Every Variable of the graph -> the places that use it.
    apply_nodes
        The nodes of the graph, in order of their import.
    input_set
        The inputs, for looking up.
    validate_seconds, callback_seconds
        Time spent so far in checking the graph, and in telling features of changes.

    Raises
    ------
    GraphError
        For a Constant or a repeated Variable as input, an output that is not a Variable, or a
        free Variable the outputs need that is not among the inputs.
    CycleError
        When the graph depends on itself.
    """

    # Published by the ReplaceValidate and NodeFinder features.
    replace_validate: Callable[..., None]
    replace_all_validate: Callable[..., None]
    get_nodes: Callable[..., list[Apply]]

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        clone: bool = True,
        features: Sequence[Feature] = (),
    ) -> None:
        check_inputs(inputs, outputs)
        self.original_inputs = tuple(inputs)
        if clone:
            inputs, outputs = _copy(inputs, outputs)
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.input_set = frozenset(self.inputs)
        self.apply_nodes: dict[Apply, None] = {}
        self.clients: dict[Variable, list[Client]] = {}
        self._features: list[Feature] = []
        self._refusals: list[Exception] = []
        self.validate_seconds = 0.0
        self.callback_seconds = 0.0
        for variable in self.inputs:
            self._adopt(variable)
        for position, output in enumerate(self.outputs):
            self._import(output)
            self.clients[output].append(("output", position))
        for feature in features:
            self.attach_feature(feature)

    @property
    def shared_variables(self) -> list[SharedVariable]:
        """Shared variables the outputs depend on, in order of first use."""
        return [variable for variable in self.clients if isinstance(variable, SharedVariable)]

    # ---- features

    def attach_feature(self, feature: Feature) -> None:
        """Add a plug-in; attaching one of a kind that is there already does nothing."""
        if feature.one_of_a_kind and any(type(known) is type(feature) for known in self._features):
            return
        feature.on_attach(self)
        self._features.append(feature)

    def remove_feature(self, feature: Feature) -> None:
        """Remove a plug-in that was attached."""
        self._features.remove(feature)
        feature.on_detach(self)

    def feature_of(self, kind: type[FeatureKind]) -> FeatureKind | None:
        """The attached plug-in of a kind, or None."""
        return next((feature for feature in self._features if isinstance(feature, kind)), None)

    def validate(self) -> None:
        """Raise GraphError if the graph has a cycle or a feature refuses it."""
        begin = time.perf_counter()
        try:
            if not any(feature.finds_cycles for feature in self._features):
                self.toposort()
            for feature in self._features:
                feature.validate(self)
        finally:
            self.validate_seconds += time.perf_counter() - begin

    def _tell(self, event: str, *details: Any) -> None:
        """Tell all features of a change; what one of them raises waits until the change is complete."""
        if self._features:
            begin = time.perf_counter()
            for feature in self._features:
                try:
                    getattr(feature, event)(self, *details)
                except Exception as error:
                    self._refusals.append(error)
            self.callback_seconds += time.perf_counter() - begin

    def _complete(self) -> None:
        """End a change: the first error that a feature raised meanwhile is raised now."""
        if self._refusals:
            error = self._refusals[0]
            self._refusals.clear()
            raise error

    # ---- order

    def toposort(self) -> list[Apply]:
        """Apply nodes, each after those that feed it; the order depends on the graph alone."""
        return toposort(self.outputs, stop=self.input_set)

    # ---- change

    def replace(self, old: Variable, new: Variable, reason: str = "") -> list[Client]:
        """Let every present use of ``old`` use ``new`` instead; return those uses.

        Raises
        ------
        GraphError
            When ``old`` is not part of the graph, the types differ, or ``new`` needs a free
            Variable that is not an input.
        """
        if old is new:
            return []
        if old not in self.clients:
            raise GraphError(f"{old} is not part of this graph")
        _check_replacement(old, new, reason)
        uses = list(self.clients[old])
        self._import(new, None if old.owner is None else old.owner.where)
        for client in uses:
            self._change_input(client, new, reason)
        self._prune_unused(new)
        self._complete()
        return uses

    def change_input(self, client: Client, new: Variable, reason: str = "") -> None:
        """Let one use (a pair as in ``clients``) use ``new``."""
        self._change_input(client, new, reason)
        self._complete()

    def _change_input(self, client: Client, new: Variable, reason: str) -> None:
        user, position = client
        operands = self.outputs if user == "output" else user.inputs
        old = operands[position]
        if old is new:
            return
        self._import(new)
        operands[position] = new
        self.clients[new].append(client)
        self.clients[old].remove(client)
        self._tell("on_change_input", client, old, new, reason)
        self._prune_unused(old)

    def _import(self, variable: Variable, line: UserLine | None = None) -> None:
        """Take in what a variable needs; new nodes whose user's line is not known get that of what they
        replace."""
        wanted = [needed for needed in ancestors([variable], stop=self.clients) if needed not in self.clients]
        for needed in wanted:
            if needed.owner is None and not isinstance(needed, (Constant, SharedVariable)):
                raise GraphError(_missing_input(needed))
        for needed in wanted:
            if needed.owner is None:
                self._adopt(needed)
                continue
            if needed in self.clients:
                continue  # another output of a node that is here already
            if needed.owner.where is None:
                needed.owner.where = line
            node = needed.owner
            for output in node.outputs:
                self._adopt(output)
            self.apply_nodes[node] = None
            for position, operand in enumerate(node.inputs):
                self.clients[operand].append((node, position))
            self._tell("on_import", node)

    def _adopt(self, variable: Variable) -> None:
        if variable not in self.clients:
            # Constants and shared variables can belong to several graphs: the truth is the graph's
            # own list; the attribute shows that of the graph that adopted the variable last.
            self.clients[variable] = variable.clients = []

    def _prune_unused(self, variable: Variable) -> None:
        pending = [variable]
        while pending:
            unused = pending.pop()
            if unused not in self.clients or self.clients[unused] or unused in self.input_set:
                continue
            node = unused.owner
            if node is None:
                del self.clients[unused]
                continue
            if any(self.clients[output] for output in node.outputs):
                continue
            del self.apply_nodes[node]
            self._tell("on_prune", node)
            for output in node.outputs:
                del self.clients[output]
            for position, operand in enumerate(node.inputs):
                self.clients[operand].remove((node, position))
                pending.append(operand)

    # ---- copies and text

    def clone(self) -> FunctionGraph:
        """An independent copy, without features."""
        return FunctionGraph(self.inputs, self.outputs)

    def __copy__(self) -> FunctionGraph:
        return self.clone()

    def __reduce__(self) -> Any:
        """Pickled and deeply copied without features, as it is cloned."""
        return FunctionGraph, (self.inputs, self.outputs, False)

    def __len__(self) -> int:
        return len(self.apply_nodes)

    def __str__(self) -> str:
        return expression_text(self.outputs)

    __repr__ = __str__


def check_inputs(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Raise GraphError unless these can bound a FunctionGraph."""
    for variable in (*inputs, *outputs):
        if not isinstance(variable, Variable):
            raise GraphError(f"inputs and outputs of a graph are Variables, not {variable!r}")
    for variable in inputs:
        if isinstance(variable, Constant):
            raise GraphError(f"the Constant {variable} cannot be an input: its value is fixed already")
        if isinstance(variable, SharedVariable):
            raise GraphError(f"the shared variable {variable} is an implicit input; do not list it")
    if len({id(variable) for variable in inputs}) != len(inputs):
        names = [str(variable) for variable in inputs]
        raise GraphError(f"the same Variable is listed twice among the inputs {names}")
    given = frozenset(inputs)
    for variable in ancestors(outputs, stop=given):
        free = variable.owner is None and not isinstance(variable, (Constant, SharedVariable))
        if free and variable not in given:
            raise GraphError(_missing_input(variable))


def _missing_input(variable: Variable) -> str:
    return f"the outputs depend on {variable} ({variable.type}), which is not among the inputs"


def _copy(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> tuple[list[Variable], list[Variable]]:
    fresh = {variable: variable.clone() for variable in inputs}
    copied, _ = clone(outputs, fresh)
    return list(fresh.values()), copied


def _check_replacement(old: Variable, new: Variable, reason: str) -> None:
    if not may_stand_for(old.type, new.type):
        by = f" by {reason}" if reason else ""
        raise GraphError(f"{old} ({old.type}) cannot be replaced{by} with {new} ({new.type}): types differ")
