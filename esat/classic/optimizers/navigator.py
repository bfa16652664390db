"""Navigators: global optimizers that walk a graph and apply local ones."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Literal

from esat.classic.optimizers.global_optimizers import Optimizer, SeqOptimizer
from esat.classic.optimizers.local import LocalOptimizer, Transformed
from esat.classic.profile import OptimizerProfile
from esat.errors import GraphError, OptimizerError
from esat.graph import Apply, Feature, FunctionGraph, ReplaceValidate, Variable
from esat.graph.types import may_stand_for

Order = Literal["in_to_out", "out_to_in", "random"]
ORDERS: tuple[Order, ...] = ("in_to_out", "out_to_in", "random")


class CreationLog(Feature):
    """Remembers the nodes that enter a graph until they are taken."""

    one_of_a_kind = False  # an equilibrium may run inside another

    def __init__(self) -> None:
        self._nodes: list[Apply] = []

    def on_import(self, graph: FunctionGraph, node: Apply) -> None:
        self._nodes.append(node)

    def take(self) -> list[Apply]:
        """The nodes that entered since the last call."""
        nodes, self._nodes = self._nodes, []
        return nodes


class LocalApplication:
    """Applies local optimizers to nodes of one graph and keeps the account of it in a profile."""

    def __init__(self, fgraph: FunctionGraph, profile: OptimizerProfile) -> None:
        self.fgraph = fgraph
        self.profile = profile
        self._created = CreationLog()
        fgraph.attach_feature(ReplaceValidate())

    def __enter__(self) -> LocalApplication:
        self.fgraph.attach_feature(self._created)
        return self

    def __exit__(self, *exception: object) -> None:
        self.fgraph.remove_feature(self._created)

    def apply(self, node: Apply, local: LocalOptimizer) -> list[Apply] | None:
        """Let a local optimizer change one node.

        Returns
        -------
        The nodes it created, or None where it changed nothing: it declined, or a feature of the
        graph refused the replacement.

        Raises
        ------
        OptimizerError
            When its answer has the wrong number of outputs, or types that do not fit.
        """
        if node not in self.fgraph.apply_nodes:
            return None
        begin = time.perf_counter()
        pairs = replacement_pairs(node, local, local.transform(node))
        created = self._replace(pairs, local) if pairs else None
        self.profile.spend(local.label, time.perf_counter() - begin)
        if created is not None:
            self.profile.count(local.label, created=len(created))
        return created

    def _replace(self, pairs: list[tuple[Variable, Variable]], local: LocalOptimizer) -> list[Apply] | None:
        for old, new in pairs:
            check_replacement(old, new, local)
        self._created.take()
        try:
            self.fgraph.replace_all_validate(pairs, local.label)
        except GraphError:
            self._created.take()
            return None
        return [node for node in self._created.take() if node in self.fgraph.apply_nodes]


def replacement_pairs(
    node: Apply, local: LocalOptimizer, answer: Transformed
) -> list[tuple[Variable, Variable]]:
    """What a local optimizer's answer replaces by what."""
    if answer is False or answer is None:
        return []
    if isinstance(answer, Mapping):
        for variable in (*answer.keys(), *answer.values()):
            if not isinstance(variable, Variable):
                raise OptimizerError(f"{local} gives {variable!r}, which is not a Variable")
        return [(old, new) for old, new in answer.items() if old is not new]
    if not isinstance(answer, Sequence) or isinstance(answer, str):
        shown = answer if isinstance(answer, Variable) else repr(answer)
        raise OptimizerError(
            f"{local} gives {shown} for {node}, where a local optimizer gives False, a list of one"
            " replacement for each output, or a dict of Variables and their replacements"
        )
    replacements = list(answer)
    if len(replacements) != len(node.outputs):
        raise OptimizerError(
            f"{local} gives {len(replacements)} replacements for the {len(node.outputs)} outputs of {node}"
        )
    pairs = []
    for old, new in zip(node.outputs, replacements, strict=True):
        if new is None:
            if old.clients:
                raise OptimizerError(f"{local} gives None for {old}, which is used")
        elif not isinstance(new, Variable):
            raise OptimizerError(f"{local} gives {new!r}, which is not a Variable")
        elif old is not new:
            pairs.append((old, new))
    return pairs


def check_replacement(old: Variable, new: Variable, local: LocalOptimizer) -> None:
    """Raise OptimizerError unless the one may stand for the other."""
    if not may_stand_for(old.type, new.type):
        raise OptimizerError(f"{local} replaces {old} of type {old.type} by {new} of type {new.type}")


class Navigator(Optimizer):
    """Base of the optimizers that apply a local optimizer at the nodes they visit."""

    def __init__(self, local: LocalOptimizer) -> None:
        if not isinstance(local, LocalOptimizer):
            raise OptimizerError(f"a navigator applies a LocalOptimizer, not {local!r}")
        self.local = local
        self.name = local.label

    def summary(self) -> list[str]:
        return [f"{type(self).__name__} of {self.local.label}"]


class TopoOptimizer(Navigator):
    """Visits every node once; the new ones too, unless told otherwise.

    Parameters
    ----------
    local
        What to apply.
    order
        ``in_to_out`` (topological), ``out_to_in``, or ``random``.
    seed
        For the random order.
    revisit
        Whether to visit the nodes that a replacement creates as well.
    """

    def __init__(
        self, local: LocalOptimizer, order: Order = "in_to_out", seed: int = 0, revisit: bool = True
    ) -> None:
        super().__init__(local)
        if order not in ORDERS:
            raise OptimizerError(f"order is one of {', '.join(ORDERS)}, not {order!r}")
        self.order, self.seed, self.revisit = order, seed, revisit

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile:
        profile = OptimizerProfile(self.label, "TopoOptimizer")
        begin = time.perf_counter()
        nodes = fgraph.toposort()
        profile.toposort_seconds = time.perf_counter() - begin
        if self.order == "random":
            random.Random(self.seed).shuffle(nodes)
        if self.order == "in_to_out":
            nodes.reverse()
        with LocalApplication(fgraph, profile) as application:
            while nodes:
                node = nodes.pop()
                created = application.apply(node, self.local) if self.local.follows(node.op) else None
                if created and self.revisit:
                    nodes += reversed(created)
        return profile


def in_to_out(*locals: LocalOptimizer) -> SeqOptimizer:
    """Each local optimizer in turn over the nodes in topological order."""
    return SeqOptimizer([TopoOptimizer(local, "in_to_out") for local in locals], "in_to_out")


def out_to_in(*locals: LocalOptimizer) -> SeqOptimizer:
    """Each local optimizer in turn over the nodes against the topological order."""
    return SeqOptimizer([TopoOptimizer(local, "out_to_in") for local in locals], "out_to_in")


def random_order(*locals: LocalOptimizer, seed: int = 0) -> SeqOptimizer:
    """Each local optimizer in turn over the nodes in a random order."""
    return SeqOptimizer([TopoOptimizer(local, "random", seed) for local in locals], "random_order")
