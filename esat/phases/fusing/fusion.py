"""Fusion: which nodes run together in one kernel.

Every variable that a kernel keeps to itself is neither written to memory nor read back, and every
kernel saved is a call saved. Fusion merges groups along the edges of the graph, those that carry
most bytes first, then groups that read the same operand. A merge is made only where one loop nest
can hold both groups, where the kernels' own rules can lower the result, where nothing expensive
would be computed more than once, and where no circle of groups arises.

Before, each node is a group: ``a = exp(x)``, ``b = a * y``, ``s = sum(b)``. After, ``{exp, mul, sum}`` is
one, which reads ``x`` and ``y`` and writes ``s``; ``a`` and ``b`` are numbers in its loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Protocol

from esat.base.records import record
from esat.graph import Apply, Constant, Family, FunctionGraph, TensorType, Variable
from esat.phases.fusing.group import FusionPlan, Group, GroupKind, Guard, conditions_of
from esat.phases.fusing.group_partition import AcyclicPartition
from esat.phases.fusing.laziness import find_guards
from esat.phases.fusing.spaces import Space, Spaces, contains, stretched_inside
from esat.phases.memory.destroy import NodeOrder
from esat.phases.memory.effects import Permissions
from esat.phases.shape_values import ShapeFacts
from esat.phases.verify_stages import verify_fusion

UNKNOWN_SIZE = 256
"""Assumed size of an axis whose size the type does not tell."""
_FREE_GROWTH = 8
BETWEEN = 32
"""Nodes that a group may have which is made of all that lies between two nodes."""
REPEATED_FLOPS = 4.0
"""Cost, in additions an element, of what may be computed again for each outer iteration."""


@record(frozen=True, slots=True)
class Limits:
    """How large a kernel of several nodes may become.

    Attributes
    ----------
    nodes
        How many it is made of.
    flops
        Additions an element: what computes for long never waits for memory, and gains nothing by fusion.
        Twenty steps of ``z**2 + c`` are 143 sums and products.
    arrays
        How many it reads and writes.
    """

    nodes: int = 256
    flops: float = 512.0
    arrays: int = 30


class KernelRules(Protocol):
    """What a generator of kernels says about the nodes it can lower."""

    @property
    def limits(self) -> Limits:
        """How large kernels may become."""

    def supported(self, node: Apply, /) -> bool:
        """Whether the node can be part of a kernel."""

    def can_fuse(self, nodes: Sequence[Apply], /) -> bool:
        """Whether these nodes, in topological order, can be one kernel."""


@record(frozen=True, slots=True)
class _Candidate:
    """Two nodes whose groups could be merged, and the bytes that would save."""

    first: int
    second: int
    variable: Variable
    saved: float
    reads_result: bool
    """Whether the second reads the first's result, or both read the variable."""


def predicted_bytes(variable: Variable) -> float:
    """Bytes of a variable, with :data:`UNKNOWN_SIZE` for each size its type does not tell."""
    if not isinstance(variable.type, TensorType):
        return 0.0
    sizes = (UNKNOWN_SIZE if size is None else size for size in variable.type.shape)
    return float(prod(sizes) * variable.type.numpy_dtype.itemsize)


def fuse(
    graph: FunctionGraph,
    rules: KernelRules | None = None,
    permissions: Permissions | None = None,
) -> FusionPlan:
    """Part the nodes of a graph into kernels, library calls and views.

    Parameters
    ----------
    graph
        The graph; it is not changed.
    rules
        What can be lowered to kernels; None for nothing.
    permissions
        Whose memory nodes may overwrite; by default only that of results.

    Returns
    -------
    A plan in which every node that must run is in exactly one group and the groups are in an order in
    which they can run; verified.

    Raises
    ------
    DestroyError
        When nodes overwrite what they must not.
    """
    fusion = _Fusion(graph, rules, permissions or Permissions())
    if rules is not None:
        fusion.merge_along_edges()
        fusion.merge_siblings()
    plan = FusionPlan(tuple(fusion.groups()), fusion.idle)
    verify_fusion(plan, graph)
    return plan


class _Fusion:
    """The state of one call of :func:`fuse`."""

    def __init__(self, graph: FunctionGraph, rules: KernelRules | None, permissions: Permissions) -> None:
        self.graph = graph
        self.rules = rules
        facts = ShapeFacts(graph)
        self.idle = facts.idle
        order = NodeOrder(graph, facts, permissions)
        self.nodes, self.after = order.nodes, order.after
        self.guards = find_guards(self.nodes, graph.outputs)
        self.number = {node: position for position, node in enumerate(self.nodes)}
        self.computed = {output for node in self.nodes for output in node.outputs} - set(graph.inputs)
        self.partition = AcyclicPartition([self._sources(node) for node in self.nodes])
        self.users = self._find_users()
        self.spaces = Spaces(self.nodes)
        self._group_spaces: dict[tuple[int, int], Space] = {}
        self.kinds = self._find_kinds()
        self.stretched = self._find_stretched()
        self.repeated = self._find_repeated()
        self.results = set(graph.outputs)

    def _sources(self, node: Apply) -> list[int]:
        feeding = [
            self.number[variable.owner]
            for variable in (*node.inputs, *conditions_of(self.guards.get(node, ())))
            if variable in self.computed and variable.owner is not None
        ]
        return feeding + [self.number[earlier] for earlier in self.after.get(node, ())]

    def _find_users(self) -> dict[Variable, list[int]]:
        users: dict[Variable, list[int]] = {}
        for position, node in enumerate(self.nodes):
            for variable in dict.fromkeys(node.inputs):
                users.setdefault(variable, []).append(position)
        return users

    def _find_kinds(self) -> list[GroupKind | None]:
        """The kind of each node on its own; None for a view that a kernel can take in."""
        kinds: list[GroupKind | None] = []
        for node in self.nodes:
            lowerable = self.rules is not None and self.rules.supported(node)
            if lowerable:
                kinds.append(None if node.op.family is Family.VIEW else "kernel")
            else:
                kinds.append("view" if node.op.view_map else "library")
        return kinds

    def _find_stretched(self) -> set[Variable]:
        """Variables that a user broadcasts over an axis outside those they vary with."""
        stretched: set[Variable] = set()
        for node in reversed(self.nodes):
            if node.op.family is Family.ELEMENTWISE:
                result = node.outputs[0].tensor_type
                stretched.update(
                    variable for variable in node.inputs if stretched_inside(variable.tensor_type, result)
                )
            elif node.op.family is Family.VIEW and node.outputs[0] in stretched:
                stretched.update(node.inputs[:1])
        return stretched

    def _find_repeated(self) -> set[Variable]:
        """Those, and what they are computed of along the same axes: all that loops of their users would
        compute again."""
        repeated = set(self.stretched)
        for node in reversed(self.nodes):
            result = node.outputs[0]
            if result in repeated and node.op.family in (Family.ELEMENTWISE, Family.VIEW):
                space = self.spaces.of_variable(result)
                repeated.update(one for one in node.inputs if self.spaces.of_variable(one) == space)
        return repeated

    # ---- merging

    def merge_along_edges(self) -> None:
        """Merge groups with those that read their results, while that saves something."""
        self._merge_all(list(self._edges()))

    def merge_siblings(self) -> None:
        """Merge kernels over one iteration space that read the same operand."""
        self._merge_all(list(self._siblings()))

    def _merge_all(self, candidates: list[_Candidate]) -> None:
        """Try candidates, best first, in rounds until one changes nothing.

        In one round a group at most doubles. So merges stay balanced, and the cost of looking at a
        group's nodes is paid a logarithmic number of times for each of them.
        """
        candidates.sort(key=lambda candidate: (-candidate.saved, candidate.first, candidate.second))
        while candidates:
            limits: dict[int, int] = {}
            later: list[_Candidate] = []
            for candidate in candidates:
                first = self.partition.find(candidate.first)
                second = self.partition.find(candidate.second)
                if first == second:
                    continue
                sizes = [len(self.partition.members[group]) for group in (first, second)]
                limit = max(
                    limits.get(group, max(_FREE_GROWTH, 2 * size))
                    for group, size in zip((first, second), sizes, strict=True)
                )
                if sum(sizes) > limit:
                    later.append(candidate)
                    continue
                verdict = self._judge(candidate, first, second)
                merged = self.partition.merge(first, second) if verdict else None
                if verdict and merged is None:
                    merged = self._merge_between(candidate)
                    limit = max(limit, BETWEEN)
                if merged is not None:
                    limits[merged] = limit
                elif verdict is not False:
                    later.append(candidate)
            if not limits:
                return
            candidates = later

    def _merge_between(self, candidate: _Candidate) -> int | None:
        """Merge two groups with all that lies between them, if that can be one kernel.

        Of ``y = f(x)`` and ``y / norm(y)`` the way over the norm is merged first. In their turn, edges that
        carry little come last: the quotient is part of another kernel by then, which reads ``y`` again.
        """
        assert self.rules is not None
        find, limits = self.partition.find, self.rules.limits
        between = self.partition.between(find(candidate.first), find(candidate.second))
        groups = [find(candidate.first), *(between or ()), find(candidate.second)]
        members = sorted(member for group in groups for member in self.partition.members[group])
        if not between or len(members) > min(BETWEEN, limits.nodes):
            return None
        nodes = [self.nodes[member] for member in members]
        if any(self.kinds[member] in ("library", "view") for member in members):
            return None
        if sum(map(len, self._boundary(members))) > limits.arrays or _flops(nodes) > limits.flops:
            return None
        if not self.rules.can_fuse(nodes):
            return None
        inside = sorted(self._edges(members), key=lambda edge: (-edge.saved, edge.first, edge.second))
        merged: int | None = 0
        while merged is not None and find(candidate.first) != find(candidate.second):
            merged = next((made for made in map(self._merge, inside) if made is not None), None)
        return find(candidate.first) if find(candidate.first) == find(candidate.second) else None

    def _merge(self, candidate: _Candidate) -> int | None:
        """Merge the groups of two nodes, where they are two and may be one."""
        first, second = self.partition.find(candidate.first), self.partition.find(candidate.second)
        if first == second or not self._judge(candidate, first, second):
            return None
        return self.partition.merge(first, second)

    def _edges(self, readers: Sequence[int] | None = None) -> Iterator[_Candidate]:
        """Edges within a set of nodes, by default all."""
        among = None if readers is None else set(readers)
        for position in range(len(self.nodes)) if readers is None else readers:
            node = self.nodes[position]
            for variable in dict.fromkeys(node.inputs):
                if variable not in self.computed or variable.owner is None:
                    continue
                source = self.number[variable.owner]
                if among is not None and source not in among:
                    continue
                kinds = self.kinds[source], self.kinds[position]
                if "library" in kinds or "view" in kinds:
                    continue
                cost = predicted_bytes(variable)
                private = len(self.users[variable]) == 1 and variable not in self.results
                yield _Candidate(source, position, variable, cost * (2 if private else 1), True)

    def _siblings(self) -> Iterator[_Candidate]:
        for variable, users in self.users.items():
            kernels = [user for user in users if self.kinds[user] == "kernel"]
            if isinstance(variable, Constant) or len(kernels) < 2:
                continue
            for first, second in pairwise(kernels):
                if self.spaces.of_node(self.nodes[first]) == self.spaces.of_variable(variable):
                    yield _Candidate(first, second, variable, predicted_bytes(variable), False)

    def _judge(self, candidate: _Candidate, first: int, second: int) -> bool | None:
        """Whether two groups may merge: True, False (never), or None (not as things stand)."""
        assert self.rules is not None
        members = sorted(self.partition.members[first] + self.partition.members[second])
        limits = self.rules.limits
        if len(members) > limits.nodes:
            return False
        if self._guard(candidate.first) != self._guard(candidate.second):
            return False
        if self.kinds[candidate.first] is None and not self._folds(candidate, second):
            return None
        if self.kinds[candidate.second] is None and not self._takes_in_a_kernel(second):
            return None
        if not self._one_loop_nest(first, second, exact=not candidate.reads_result):
            return False
        read = candidate.reads_result and candidate.variable in self.stretched
        if (read and self._is_expensive(candidate.variable, first)) or any(
            self._repeats_work(*pair) for pair in ((first, second), (second, first))
        ):
            return False
        if not candidate.reads_result and self._holds_memory(first) and self._holds_memory(second):
            return None
        nodes = [self.nodes[member] for member in members]
        inputs, outputs = self._boundary(members)
        if len(inputs) + len(outputs) > limits.arrays or _flops(nodes) > limits.flops:
            return False
        return self.rules.can_fuse(nodes)

    def _guard(self, node: int) -> Guard:
        return self.guards.get(self.nodes[node], ())

    def _folds(self, candidate: _Candidate, reader: int) -> bool:
        """Whether a view is read by one group only, so that the group can look through it."""
        if candidate.variable in self.results:
            return False
        return all(self.partition.find(user) == reader for user in self.users[candidate.variable])

    def _takes_in_a_kernel(self, group: int) -> bool:
        """Whether a group that holds views also computes something: alone, a view costs nothing."""
        return any(self.kinds[member] == "kernel" for member in self.partition.members[group])

    def _space(self, group: int) -> tuple[int, ...]:
        members = self.partition.members[group]
        known = self._group_spaces.get((group, len(members)))
        if known is None:
            spaces = [self.spaces.of_node(self.nodes[member]) for member in members]
            known = self._group_spaces[group, len(members)] = max(spaces, key=len)
        return known

    def _one_loop_nest(self, first: int, second: int, exact: bool) -> bool:
        spaces = self._space(first), self._space(second)
        if exact:
            return spaces[0] == spaces[1]
        return contains(*spaces) or contains(spaces[1], spaces[0])

    def _repeats_work(self, group: int, reader: int) -> bool:
        """Whether reading any result of a group in its reader's loops would repeat expensive work."""
        loops = len(self._space(reader))
        return any(
            output in self.repeated
            and len(self.spaces.of_variable(output)) < loops
            and any(self.partition.find(user) == reader for user in self.users.get(output, ()))
            and self._is_expensive(output, group)
            for member in self.partition.members[group]
            for output in self.nodes[member].outputs
        )

    def _is_expensive(self, variable: Variable, group: int) -> bool:
        """Whether a group does much for each element of a result."""
        space = self.spaces.of_variable(variable)
        same = [
            self.nodes[member]
            for member in self.partition.members[group]
            if self.spaces.of_node(self.nodes[member]) == space
        ]
        return _flops(same) > REPEATED_FLOPS

    def _holds_memory(self, group: int) -> bool:
        """Whether a group makes intermediates as large as what it reads.

        Two such groups are better run one after the other, with the first one's results used up
        before the second one's are made.
        """
        members = self.partition.members[group]
        space = self._space(group)
        _, outputs = self._boundary(members)
        return any(
            output not in self.results and self.spaces.of_variable(output) == space for output in outputs
        )

    # ---- the result

    def _boundary(self, members: Sequence[int]) -> tuple[tuple[Variable, ...], tuple[Variable, ...]]:
        inside = set(members)
        inputs: dict[Variable, None] = {}
        outputs: list[Variable] = []
        own: set[Variable] = set()
        for member in members:
            node = self.nodes[member]
            inputs.update((variable, None) for variable in node.inputs if variable not in own)
            own.update(output for output in node.outputs if output in self.computed)
            outputs += [
                output
                for output in node.outputs
                if output in self.results or any(user not in inside for user in self.users.get(output, ()))
            ]
        return tuple(inputs), tuple(outputs)

    def groups(self) -> Iterator[Group]:
        """The groups as they are, in an order in which they can run."""
        for group in self.partition.groups():
            members = self.partition.members[group]
            kinds = {self.kinds[member] for member in members}
            kind: GroupKind = "kernel" if "kernel" in kinds else "library" if "library" in kinds else "view"
            inputs, outputs = self._boundary(members)
            nodes = tuple(self.nodes[member] for member in members)
            if kind == "library":  # which makes all of its results, and needs places for them
                outputs = tuple(nodes[0].outputs)
            yield Group(kind, nodes, inputs, outputs, self._guard(members[0]))


def _flops(nodes: Sequence[Apply]) -> float:
    """What nodes compute for an element, in additions."""
    return sum(float(getattr(node.op, "flops", 0.0)) for node in nodes)
