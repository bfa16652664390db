"""Walks over graphs of Variables: order, ancestors, inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, TypeVar

from esat.errors import CycleError

if TYPE_CHECKING:
    from esat.graph.variables import Apply, Variable

Key = TypeVar("Key", bound=Hashable)


def postorder_of(roots: Iterable[Key], children: Callable[[Key], Iterable[Key]]) -> list[Key]:
    """Keys reachable from ``roots``, each after its children, without recursion.

    Raises
    ------
    CycleError
        When a key is reachable from itself.
    """
    order: list[Key] = []
    finished: dict[Key, bool] = {}
    for root in roots:
        if root in finished:
            continue
        finished[root] = False
        stack: list[tuple[Key, Iterator[Key]]] = [(root, iter(children(root)))]
        while stack:
            key, pending = stack[-1]
            for child in pending:
                done = finished.get(child)
                if done is None:
                    finished[child] = False
                    stack.append((child, iter(children(child))))
                    break
                if not done:
                    raise CycleError(f"the graph depends on itself at {child}")
            else:
                stack.pop()
                finished[key] = True
                order.append(key)
    return order


def ancestors(outputs: Iterable[Variable], stop: Collection[Variable] = ()) -> list[Variable]:
    """All Variables the outputs depend on, inputs first; nothing beyond ``stop``."""
    ends = _hashed(stop)

    def operands(variable: Variable) -> Sequence[Variable]:
        return () if variable.owner is None or variable in ends else variable.owner.inputs

    return postorder_of(outputs, operands)


def toposort(outputs: Iterable[Variable], stop: Collection[Variable] = ()) -> list[Apply]:
    """Apply nodes the outputs depend on, each after those that feed it; nothing beyond ``stop``."""
    ends = _hashed(stop)

    def feeding(node: Apply) -> list[Apply]:
        return [
            variable.owner for variable in node.inputs if variable.owner is not None and variable not in ends
        ]

    roots = [variable.owner for variable in outputs if variable.owner is not None and variable not in ends]
    return postorder_of(roots, feeding)


def _hashed(variables: Collection[Variable]) -> AbstractSet[Variable] | Mapping[Variable, object]:
    """Variables as what finds them by identity."""
    return variables if isinstance(variables, AbstractSet | Mapping) else frozenset(variables)


def inputs_of(outputs: Iterable[Variable]) -> list[Variable]:
    """Variables without owner that the outputs depend on, Constants and shared ones included."""
    return [variable for variable in ancestors(outputs) if variable.owner is None]
