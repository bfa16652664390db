"""Local optimizers as sources of equalities: what they would replace is kept beside the replacement."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence

from esat.base.records import record
from esat.classic.optimizers.equilibrium import LEAST_USE, OscillationWarning
from esat.classic.optimizers.global_optimizers import Optimizer
from esat.classic.optimizers.local import Followers, LocalOptimizer
from esat.classic.optimizers.navigator import check_replacement, replacement_pairs
from esat.classic.profile import OptimizerProfile
from esat.errors import EsatWarning, OptimizerError
from esat.graph import Apply, Constant, FunctionGraph, SharedVariable, TensorType, Variable, clone, toposort
from esat.graph.calls.callers import built_for

USES_PER_NODE = 8
"""Equalities an optimizer may contribute for each node of the graph."""


@record(frozen=True)
class Equality:
    """Two Variables that have the same value, and who says so."""

    left: Variable
    right: Variable
    source: str


class CollectEqualities(Optimizer):
    """Asks local optimizers about every node of a graph, and about the nodes of their answers.

    The graph is not changed. After :meth:`optimize` the equalities stand in ``found``. What became of
    the graph, whose inputs are copies of the same in their order, is asked about where it has expressions
    that no graph or answer had before, and what these use; ``found`` are then the equalities that are new.

    Attributes
    ----------
    found
        The equalities that the last graph brought.
    classes
        To be set before a graph is asked about: numbers of Variables of it, the same for those that are known
        to be equal.
    """

    name = "equalities"

    def __init__(self, locals: Sequence[LocalOptimizer]) -> None:
        self.locals = tuple(locals)
        self._by_op = Followers(self.locals)
        self.found: list[Equality] = []
        self.classes: Mapping[Variable, int] = {}
        self._expressions = _Expressions()
        self._limit = LEAST_USE
        self._answers: Counter[str] = Counter()

    @property
    def claims(self) -> list[Equality]:
        """The equalities found, between Variables of the inputs of the first graph."""
        copied = {copy: first for copy, first in self._expressions.inputs.items() if copy is not first}
        if not copied:
            return self.found
        sides = [side for equality in self.found for side in (equality.left, equality.right)]
        sides, _ = clone(sides, copied)
        pairs = zip(sides[::2], sides[1::2], self.found, strict=True)
        return [Equality(left, right, equality.source) for left, right, equality in pairs]

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile:
        profile = OptimizerProfile(self.label, type(self).__name__)
        self.found = []
        if not self.locals:
            return profile
        limit = self._limit = max(self._limit, USES_PER_NODE * len(fgraph))
        pending = self._expressions.meet(fgraph)
        pending.reverse()
        known = {self._expressions.first(one): klass for one, klass in self.classes.items()}
        while pending:
            node = pending.pop()
            for local in self._by_op[node.op]:
                if self._answers[local.label] < limit:
                    pending += self._ask(node, local, known, profile)
        tireless = [name for name in profile.applied if self._answers[name] >= limit]
        if tireless:
            warnings.warn(
                f"{', '.join(tireless)} found something to do {limit} times in a graph of {len(fgraph)} nodes"
                " and was not asked further",
                OscillationWarning,
                stacklevel=2,
            )
        return profile

    def _ask(
        self,
        node: Apply,
        local: LocalOptimizer,
        known: Mapping[Variable, int],
        profile: OptimizerProfile,
    ) -> list[Apply]:
        """Ask about one node; the new nodes of the answer."""
        expressions = self._expressions
        begin = time.perf_counter()
        created: list[Apply] = []
        with built_for(node.where):
            pairs = replacement_pairs(node, local, local.transform(node))
        for old, new in pairs:
            check_replacement(old, new, local)
            try:
                fresh = expressions.enter(new)
            except OptimizerError as error:
                raise OptimizerError(f"{local}, asked about {node}: {error}") from None
            left, right = expressions.first(old), expressions.first(new)
            if not _expressible(left, right, local):
                continue
            is_known = left in known and known[left] == known.get(right)
            if not is_known and expressions.equate(left, right):
                self.found.append(Equality(left, right, local.label))
                if right.owner in fresh:
                    # It could stand where the old one does; optimizers may ask who uses it.
                    right.clients = list(old.clients or ())
                created += fresh
                self._answers[local.label] += 1
                profile.count(local.label, created=len(fresh))
        profile.spend(local.label, time.perf_counter() - begin)
        return created


def _is_given(variable: Variable) -> bool:
    """Whether a Variable has its value without being an input of a graph."""
    return isinstance(variable, (Constant, SharedVariable))


class _Expressions:
    """Expressions met so far, equal ones as one.

    Attributes
    ----------
    inputs
        Input of any graph -> that of the first one in its place.
    """

    def __init__(self) -> None:
        self._nodes: dict[object, Apply] = {}
        self._constants: dict[object, Variable] = {}
        self._first: dict[Variable, Variable] = {}
        self.inputs: dict[Variable, Variable] = {}
        self._equal: set[frozenset[Variable]] = set()

    def meet(self, fgraph: FunctionGraph) -> list[Apply]:
        """Enter all expressions of a graph; those that are new or have new users, in topological order.

        Local optimizers may ask who uses a node.
        """
        originals = dict.fromkeys(self.inputs.values()) or fgraph.inputs
        self.inputs.update(zip(fgraph.inputs, originals, strict=True))
        self._first.update(self.inputs)
        nodes = fgraph.toposort()
        fresh = {node for node in nodes if self._add(node)}
        used_anew = {operand.owner for node in fresh for operand in node.inputs}
        return [node for node in nodes if node in fresh or node in used_anew]

    def first(self, variable: Variable) -> Variable:
        """The first Variable met that computes the same."""
        if isinstance(variable, Constant) and isinstance(variable.type, TensorType):
            return self._constants.setdefault((variable.type, variable.data.tobytes()), variable)
        return self._first.get(variable, variable)

    def enter(self, variable: Variable) -> list[Apply]:
        """Enter what a Variable depends on; the nodes that were not met before.

        Of what was met as a form of less known sizes no more is known here, nor of what is computed of it.
        """
        fresh = []
        for made in toposort([variable], stop=self._first):
            node = self._over_first(made)
            if self._add(node):
                fresh.append(node)
            self._first.update(zip(made.outputs, map(self.first, node.outputs), strict=True))
        for operand in (variable, *(operand for node in fresh for operand in node.inputs)):
            if operand.owner is None and operand not in self._first and not _is_given(operand):
                raise OptimizerError(f"it uses {operand!r}, which is no input of the graph")
        inside = set(fresh)
        for node in fresh:
            for output in node.outputs:
                output.clients = []
            for position, operand in enumerate(node.inputs):
                if operand.owner in inside and operand.clients is not None:
                    operand.clients.append((node, position))
        return fresh

    def _over_first(self, node: Apply) -> Apply:
        """A node, made anew where less is known of the sizes of operands that were met first."""
        operands = [self.first(operand) for operand in node.inputs]
        pairs = zip(operands, node.inputs, strict=True)
        if all(first is own or not _tells_apart(first, own) for first, own in pairs):
            return node
        made = node.op.make_node(*operands)
        made.where = node.where
        return made

    def _add(self, node: Apply) -> bool:
        key = (node.op, tuple(map(self.first, node.inputs)))
        known = self._nodes.setdefault(key, node)
        for output, same in zip(node.outputs, known.outputs, strict=True):
            self._first[output] = same
        return known is node

    def equate(self, left: Variable, right: Variable) -> bool:
        """Note that two Variables are equal; whether that is news."""
        pair = frozenset((left, right))
        news = len(pair) == 2 and pair not in self._equal
        self._equal.add(pair)
        return news


def _expressible(old: Variable, new: Variable, local: LocalOptimizer) -> bool:
    """Whether an e-graph can hold the equality: both sides must have the same dtype and broadcasting."""
    if not isinstance(old.type, TensorType) or not isinstance(new.type, TensorType):
        return False
    if not _tells_apart(old, new):
        return True
    warnings.warn(
        f"{local} replaces {old} ({old.type}) by {new} ({new.type}); as more is known of the sizes of one of"
        " them, the e-graph cannot hold both: this equality is not used",
        EsatWarning,
        stacklevel=2,
    )
    return False


def _tells_apart(left: Variable, right: Variable) -> bool:
    """Whether of one of two tensors an axis is known to have size 1, and of the other it is not."""
    types = left.type, right.type
    if not isinstance(types[0], TensorType) or not isinstance(types[1], TensorType):
        return False
    return types[0].broadcastable != types[1].broadcastable
