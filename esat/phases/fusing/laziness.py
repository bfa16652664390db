"""Laziness: which nodes are needed for one side of a choice only, and so run only if it is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations, takewhile

from esat.graph import Apply, Constant, Variable
from esat.ops.control import IfElse
from esat.phases.fusing.group import Condition, Guard, Path, conditions_of

MOST_ALTERNATIVES = 8
"""Alternatives of a guard. Of more, only what all of them begin with is asked."""


def conditions_first(nodes: Sequence[Apply]) -> list[Apply]:
    """The nodes in an order in which everything that decides a choice stands first.

    Parameters
    ----------
    nodes
        Each after those that feed it, as in the result.
    """
    pending = [node.inputs[0].owner for node in nodes if isinstance(node.op, IfElse)]
    deciding: set[Apply] = set()
    while pending:
        node = pending.pop()
        if node is not None and node not in deciding:
            deciding.add(node)
            pending += [operand.owner for operand in node.inputs]
    return sorted(nodes, key=lambda node: node not in deciding)


def find_guards(nodes: Sequence[Apply], outputs: Iterable[Variable]) -> dict[Apply, Guard]:
    """The conditions under which each node is needed; nodes that are needed always are left out.

    What is needed for sides of several choices is needed where any of these sides is. Conditions that are
    computed after a node are not asked: they may depend on it.

    Parameters
    ----------
    nodes
        The nodes of a graph, each after those that feed it.
    outputs
        Of the graph.
    """
    choices = [node for node in nodes if isinstance(node.op, IfElse)]
    if not choices:
        return {}
    places = {condition: place for place, condition in enumerate(dict.fromkeys(n.inputs[0] for n in choices))}
    numbers = {node: number for number, node in enumerate(nodes)}
    made = {condition: -1 if (o := condition.owner) is None else numbers.get(o, -1) for condition in places}
    wanted: dict[Variable, Guard] = dict.fromkeys(outputs, ())

    def want(variable: Variable, guard: Guard) -> None:
        known = wanted.get(variable)
        wanted[variable] = guard if known is None else _either(known, guard, places)

    guards: dict[Apply, Guard] = {}
    for node in reversed(nodes):
        found = [wanted[output] for output in node.outputs if output in wanted]
        guard: Guard = ()
        for number, other in enumerate(found):
            known = _known(other, made, numbers[node], places)
            guard = _either(guard, known, places) if number else known
        if guard:
            guards[node] = guard
        sides: tuple[Sequence[Variable], Sequence[Variable]] = ((), ())
        if isinstance(node.op, IfElse):
            sides = node.op.branches(node.inputs)
            for side, chosen in zip(sides, (True, False), strict=True):
                asked = [one for one in _implied(node.inputs[0], chosen) if one.scalar in places]
                narrowed = tuple(reduce(_and, asked, path) for path in guard or ((),))
                for variable in side:
                    want(variable, narrowed)
        rest = node.inputs[: len(node.inputs) - sum(map(len, sides))]
        for variable in rest:
            want(variable, guard)
    return guards


def _known(guard: Guard, made: Mapping[Variable, int], number: int, places: Mapping[Variable, int]) -> Guard:
    """A guard as far as its conditions are computed before the node of a number."""
    late = {scalar for scalar in conditions_of(guard) if made[scalar] >= number}
    if not late:
        return guard
    shorter = [tuple(takewhile(lambda condition: condition.scalar not in late, path)) for path in guard]
    if () in shorter:
        return ()
    return reduce(lambda one, other: _either(one, other, places), [(path,) for path in shorter])


def _implied(scalar: Variable, value: bool) -> list[Condition]:
    """What holds where a condition has a value, itself at last: ``a and b`` is true where ``a`` is.

    What both ``a and b`` and the side that it chooses need is then computed where ``a`` is true.
    """
    node, found = scalar.owner, list[Condition]()
    name = "" if node is None else node.op.name
    if node is not None and name == "invert":
        found = _implied(node.inputs[0], not value)
    elif node is not None and name == ("bitwise_and" if value else "bitwise_or"):
        found = [one for operand in node.inputs for one in _implied(operand, value)]
    elif node is not None and isinstance(node.op, IfElse) and node.op.count == 1:
        condition, *sides = node.inputs
        for side, chosen in zip(sides, (True, False), strict=True):
            if isinstance(side, Constant) and bool(side.data) is not value:
                other = sides[1 if chosen else 0]
                found = [*_implied(condition, not chosen), *_implied(other, value)]
    return [*found, Condition(scalar, value)]


def _and(path: Path, condition: Condition) -> Path:
    """A path with one more condition."""
    return path if condition in path else (*path, condition)


def _either(one: Guard, other: Guard, places: Mapping[Variable, int]) -> Guard:
    """The guard that holds where one of two does; its alternatives are in the order of their conditions."""
    if one == other:
        return one
    if not one or not other:
        return ()

    def in_order(paths: Iterable[Path]) -> list[Path]:
        return sorted(paths, key=lambda path: [(places[one.scalar], one.value) for one in path])

    paths = in_order({*one, *other})
    while joined := _joined(paths):
        both, path = joined
        paths = in_order({*paths}.difference(both) | {path})
    if () in paths:
        return ()
    if len(paths) > MOST_ALTERNATIVES:
        common = _common(paths)
        return (common,) if common else ()
    return tuple(paths)


def _joined(paths: Iterable[Path]) -> tuple[tuple[Path, Path], Path] | None:
    """Two paths, and the one that holds wherever one of them does; None where no two have one."""
    for one, other in combinations(paths, 2):
        shorter, longer = sorted((one, other), key=len)
        if set(shorter) <= set(longer):
            return (one, other), shorter
        # Needed for both sides of a choice: needed where the choice is.
        if one[:-1] == other[:-1] and one[-1].scalar is other[-1].scalar:
            return (one, other), one[:-1]
    return None


def _common(paths: Sequence[Path]) -> Path:
    """The conditions that all paths begin with."""
    first, *others = paths
    length = 0
    while all(path[: length + 1] == first[: length + 1] for path in others) and length < len(first):
        length += 1
    return first[:length]
