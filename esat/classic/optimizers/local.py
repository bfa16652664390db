"""Local optimizers: what to replace one Apply node's outputs with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from esat.errors import OptimizerError
from esat.graph import Apply, Op, Variable
from esat.graph.calls.arguments import instance_of

Transformed: TypeAlias = Literal[False] | Sequence[Variable | None] | Mapping[Variable, Variable] | None
"""False (or None) for no change; one replacement an output, None where the output is not used;
or a mapping from arbitrary Variables of the graph to their replacements."""

Tracked: TypeAlias = Op | type[Op]


class LocalOptimizer:
    """Decides about one Apply node at a time; a navigator or an equilibrium applies it."""

    name: str = ""

    def transform(self, node: Apply) -> Transformed:
        """What to replace the node's outputs with; see :data:`Transformed`."""
        raise NotImplementedError

    def tracks(self) -> Sequence[Tracked] | None:
        """Ops (or classes of ops) whose nodes it may change; None or nothing for all nodes."""
        return None

    def follows(self, op: Op) -> bool:
        """Whether it wants to see the nodes of an op, by what it tracks."""
        instance_of("follows", "op", op, Op)
        tracked = self.tracks()
        if not tracked:
            return True
        return any(isinstance(op, wanted) if isinstance(wanted, type) else op == wanted for wanted in tracked)

    @property
    def label(self) -> str:
        """Its name, or that of its class."""
        return self.name or type(self).__name__

    def __str__(self) -> str:
        return self.label

    __repr__ = __str__


class Followers(dict[Op, list[LocalOptimizer]]):
    """Which of some local optimizers want to see the nodes of an op, by op.

    Parameters
    ----------
    locals
        The local optimizers, in the order in which they are asked.
    """

    def __init__(self, locals: Sequence[LocalOptimizer]) -> None:
        super().__init__()
        self._locals = locals

    def __missing__(self, op: Op) -> list[LocalOptimizer]:
        found = self[op] = [local for local in self._locals if local.follows(op)]
        return found


class FromFunctionLocalOptimizer(LocalOptimizer):
    """A local optimizer from a function of the node."""

    def __init__(
        self,
        function: Callable[[Apply], Transformed],
        tracks: Iterable[Tracked] | None = None,
        name: str = "",
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", "")
        self.__doc__ = function.__doc__
        self._tracks = None if tracks is None else tuple(tracks)

    def transform(self, node: Apply) -> Transformed:
        return self.function(node)

    def tracks(self) -> Sequence[Tracked] | None:
        return self._tracks


def local_optimizer(
    tracks: Iterable[Tracked] | None = None, name: str = ""
) -> Callable[[Callable[[Apply], Transformed]], FromFunctionLocalOptimizer]:
    """Turn a function of an Apply node into a LocalOptimizer.

    Parameters
    ----------
    tracks
        The ops whose nodes the function wants to see; all of them by default.
    name
        By default the function's.
    """

    def decorate(function: Callable[[Apply], Transformed]) -> FromFunctionLocalOptimizer:
        return FromFunctionLocalOptimizer(function, tracks, name)

    return decorate


def _checked_op(name: str, parameter: str, given: object) -> Op:
    """What was given for an op; functions that make nodes of one, as ``esat.identity``, are no ops.

    Raises
    ------
    OptimizerError
        Unless it is one.
    """
    if not isinstance(given, Op):
        raise OptimizerError(f"{name}: {parameter} is an op, as esat.graph.op_named('add') is; got {given!r}")
    return given


class OpSub(LocalOptimizer):
    """Replaces every use of ``old`` by ``new`` on the same inputs."""

    def __init__(self, old: Op, new: Op) -> None:
        self.old, self.new = _checked_op("OpSub", "old", old), _checked_op("OpSub", "new", new)
        self.name = f"{old} -> {new}"

    def transform(self, node: Apply) -> Transformed:
        return self.new.make_node(*node.inputs).outputs if node.op == self.old else False

    def tracks(self) -> Sequence[Tracked]:
        return [self.old]


class OpRemove(LocalOptimizer):
    """Replaces the outputs of every use of ``op`` by its inputs, one for one."""

    def __init__(self, op: Op) -> None:
        self.op = _checked_op("OpRemove", "op", op)
        self.name = f"{op}(x) -> x"

    def transform(self, node: Apply) -> Transformed:
        if node.op != self.op:
            return False
        if len(node.inputs) != len(node.outputs):
            raise OptimizerError(
                f"OpRemove({self.op}): {len(node.inputs)} inputs cannot stand for {len(node.outputs)} outputs"
            )
        return list(node.inputs)

    def tracks(self) -> Sequence[Tracked]:
        return [self.op]
