"""Loop-invariant code motion out of repeated calls: what depends on nothing that a call is given or changes.

Results of constants and of shared variables that the function does not update are computed once and kept, as
values of shared variables of a special kind. They are computed anew when a variable they come from has
changed: by ``set_value``, or by an update of another function, in place or not. While somebody may hold the
memory of such a variable (``borrow=True``) and change it unnoticed, they are computed at each call.

Before: ``x * f(a)`` of an input ``x`` and a shared variable ``a``. After: ``x * k``, where ``k`` is what
``f(a)`` was computed as when ``a`` had changed.

Kept is what is predicted to take long enough, and longer than reading the result takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

from esat.base.forks import GATE
from esat.egraph.language.encode import encode
from esat.extract.prices.class_values import term_values
from esat.extract.prices.cost import CostModel
from esat.extract.prices.expected_shapes import hints_of
from esat.extract.prices.lasting import LARGEST_BYTES, is_worth_keeping
from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.pricing import predicted_seconds
from esat.graph import Apply, Constant, Family, FunctionGraph, SharedVariable, TensorType, Variable
from esat.graph.types import Type
from esat.ops.control import IfElse
from esat.runtime.linked import Build

_CHEAP = (Family.VIEW, Family.CREATION)
_EXCLUDED = (Family.CONTROL, Family.RANDOM)


class Kept:
    """Results that are computed together, and remembered until a source changes.

    Parameters
    ----------
    compute
        Computes them: a function without arguments that returns one array, or a tuple of several.
    sources
        The variables they come from.
    """

    def __init__(self, compute: Callable[[], Any], sources: Iterable[SharedVariable]) -> None:
        self._compute = compute
        self._sources = tuple(sources)
        self._known: tuple[tuple[int, ...], tuple[Any, ...]] | None = None
        self._lock = GATE.lock()
        self.computed = 0

    def values(self) -> tuple[Any, ...]:
        """The results for the present values of the sources."""
        versions = tuple([source.version for source in self._sources])
        known = self._known
        if known is not None and known[0] == versions and not any(map(_is_lent, self._sources)):
            return known[1]
        with self._lock:
            # The versions are those before computing: a change meanwhile is seen next time.
            versions = tuple([source.version for source in self._sources])
            results = self._compute()
            values = results if isinstance(results, tuple) else (results,)
            self._known = versions, values
            self.computed += 1
        return values


def _is_lent(source: SharedVariable) -> bool:
    return source.lent


class KeptValue(SharedVariable):
    """A result of :class:`Kept`, read by compiled functions as a shared variable that nothing changes."""

    __slots__ = ("_kept", "_place")

    def __init__(self, type: Type, kept: Kept, place: int, name: str) -> None:
        Variable.__init__(self, type, name=name)
        self._kept = kept
        self._place = place
        self._private = False
        self.version = 0
        self.lent = False
        self.elsewhere = None

    @property
    def is_elsewhere(self) -> bool:
        return False

    @property
    def computed(self) -> int:
        """How often it was computed so far."""
        return self._kept.computed

    def look(self) -> Any:
        return self._kept.values()[self._place]

    def get_value(self, borrow: bool = False) -> Any:
        # Nobody may change what is kept, so a copy is all there is to borrow.
        return self.look().copy()

    def own_value(self) -> Any:
        return self.look().copy()


def keep_invariants(
    graph: FunctionGraph, updated: Sequence[SharedVariable], machine: MachineProfile, build: Build
) -> FunctionGraph:
    """The graph with kept values in place of what does not change from call to call.

    Parameters
    ----------
    graph
        An optimized graph; it is not changed.
    updated
        Shared variables that the function updates.
    machine
        What savings are predicted for.
    build
        Compiles a graph without inputs.
    """
    if not _worth_a_look(graph, updated):
        return graph
    result = graph.clone()
    wanted = _affordable(_frontier(result, updated), machine)
    if not wanted:
        return graph
    part = FunctionGraph([], wanted)
    kept = Kept(build(part), part.shared_variables)
    for place, variable in enumerate(wanted):
        value = KeptValue(variable.type, kept, place, f"kept_{place}")
        result.replace(variable, value, "invariant")
    return result


def kept_values(graph: FunctionGraph) -> tuple[KeptValue, ...]:
    """The kept values that a graph reads."""
    return tuple(variable for variable in graph.shared_variables if isinstance(variable, KeptValue))


def _worth_a_look(graph: FunctionGraph, updated: Sequence[SharedVariable]) -> bool:
    """Whether any node has operands that do not change; what runs under a condition is left alone."""
    nodes = graph.apply_nodes
    lasting = set(updated)
    return not any(isinstance(node.op, IfElse) for node in nodes) and any(
        all(_is_fixed(operand, lasting) for operand in node.inputs) for node in nodes
    )


def _is_fixed(variable: Variable, updated: set[SharedVariable]) -> bool:
    """Whether a variable that no node computes has the same tensor as its value at every call."""
    if not isinstance(variable.type, TensorType):
        return False
    return isinstance(variable, Constant) or (
        isinstance(variable, SharedVariable) and variable not in updated
    )


def _frontier(graph: FunctionGraph, updated: Sequence[SharedVariable]) -> list[Variable]:
    """The last invariant results on every way to the outputs; views are looked through."""
    lasting = set(updated)
    invariant: set[Variable] = set()
    for node in graph.toposort():
        plain = node.op.family not in _EXCLUDED and not node.op.destroy_map
        fixed = all(operand in invariant or _is_fixed(operand, lasting) for operand in node.inputs)
        if plain and fixed and all(isinstance(output.type, TensorType) for output in node.outputs):
            invariant.update(node.outputs)
    found: dict[Variable, None] = {}
    pending = [
        variable
        for variable, clients in graph.clients.items()
        if variable in invariant
        and any(user == "output" or not _is_within(user, invariant) for user, _place in clients)
    ]
    while pending:
        variable = pending.pop()
        owner = variable.owner
        if owner is not None and owner.op.family in _CHEAP:
            pending += [operand for operand in owner.inputs if operand in invariant]
        else:
            found[variable] = None
    return [variable for node in graph.toposort() for variable in node.outputs if variable in found]


def _is_within(user: Apply | str, invariant: set[Variable]) -> bool:
    return isinstance(user, Apply) and user.outputs[0] in invariant


def _affordable(candidates: Sequence[Variable], machine: MachineProfile) -> list[Variable]:
    """Those that save enough, as long as there is room for them."""
    room = LARGEST_BYTES
    chosen = []
    for variable in candidates:
        terms = encode(FunctionGraph([], [variable]))
        hints = hints_of(terms, ())
        model = CostModel(machine, terms.opaque)
        seconds = predicted_seconds(terms, model, hints)
        value = term_values(terms, hints)[terms.roots[0]]
        size = prod(value.shape) * value.itemsize
        if is_worth_keeping(seconds, size, machine) and size <= room:
            chosen.append(variable)
            room -= int(size)
    return chosen
