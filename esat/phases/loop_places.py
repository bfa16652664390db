"""What of a loop need not be in its steps: computed once, for all steps at once before it, or after it.

A node of the body whose operands are the same in all steps is computed once. One that takes elements of
sequences alone has all its results at once, as a batch. The values that carries have in all steps are known
when their loop has run: from there on they are sequences, for loops of other carries and for all else that
the body computes. A carry to which each step adds something is a sum over steps, and needs no loop. How much
of this is done is a matter of predicted time, of a few ways to take the loop apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from esat.base.records import record
from esat.errors import EsatError
from esat.extract.prices.cost import CostModel
from esat.extract.prices.lasting import Repeated
from esat.extract.prices.loop_cost import nodes_seconds
from esat.extract.prices.value import UNKNOWN_SIZE
from esat.graph import Apply, Constant, Family, TensorType, Variable
from esat.graph.algorithms.copying import clone
from esat.graph.algorithms.traversal import ancestors, toposort
from esat.graph.op import Op
from esat.graph.registry import function_named, op_named
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import ShapeI
from esat.ops.cast import cast
from esat.ops.contraction import MATMUL, MatMul
from esat.ops.control import Assert
from esat.ops.inference.batching import repeated
from esat.ops.linalg.record import MatrixOp
from esat.ops.loops.parts import LoopParts, never_raises
from esat.ops.loops.record import LoopOp, Scan
from esat.ops.reduction import SUM, reduce

_LENGTH = ShapeI(0)
LARGEST_BYTES = 1 << 26
"""Bytes up to which results of all steps are kept; more, where sequences are larger themselves."""

WORTH = 0.95
"""Share of the predicted time down to which a loop stays as it is: what is moved takes time to compile."""


@record(frozen=True)
class _Way:
    """How a loop is taken apart.

    Attributes
    ----------
    all
        Whether all is computed before the loop that can be; otherwise only products and functions of
        matrices, and what these need.
    after
        Whether what no carry depends on is computed after the loop, and sums are.
    split
        Whether carries that do not depend on each other have loops of their own.
    """

    all: bool
    after: bool
    split: bool


_WAYS = (_Way(False, False, False), _Way(True, True, False), _Way(True, True, True))


def moved_out(node: Apply, model: CostModel) -> list[Variable]:
    """Results of a scan, of which as much is computed before and after it as takes least time.

    Sums over steps are added in another order.

    Parameters
    ----------
    node
        The scan.
    model
        Predicts the time.
    """
    assert isinstance(node.op, Scan)
    if node.op.sparing:
        return list(node.outputs)
    best, least = list(node.outputs), WORTH * _seconds(model, node, node.outputs)
    for way in _WAYS:
        try:
            found = _TakenApart(node, way).results()
        except EsatError:  # an op that has no batches, in which case it stays
            continue
        if found is None:
            continue
        seconds = _seconds(model, node, found)
        if seconds < least and _most_bytes(node, found) <= max(LARGEST_BYTES, _most_bytes(node, node.inputs)):
            best, least = found, seconds
    for made in toposort(best, stop=set(node.inputs)):
        made.where = made.where or node.where
    return best


def computed_once(node: Apply) -> Repeated | None:
    """What of the body of a loop is computed once, whatever it is; None where it may be nothing."""
    op, control = node.op, node.inputs[0]
    if not isinstance(op, Scan) or not isinstance(control, Constant) or control.data <= 0:
        return None
    if any(one.op.lazy for one in op.body.apply_nodes):
        return None
    return Repeated(frozenset(range(op.carries + op.sequences, len(op.body.inputs))), int(control.data))


def _seconds(model: CostModel, node: Apply, results: Sequence[Variable]) -> float:
    return nodes_seconds(model, results, set(node.inputs))


def _most_bytes(node: Apply, variables: Sequence[Variable]) -> float:
    """Bytes of the largest array among what some variables are computed of in place of a node, and these."""
    return max((_bytes(one) for one in (*variables, *ancestors(variables, set(node.inputs)))), default=0.0)


def _bytes(variable: Variable) -> float:
    if not isinstance(variable.type, TensorType):
        return 0.0
    sizes = (UNKNOWN_SIZE if size is None else size for size in variable.type.shape)
    return prod(sizes) * variable.type.numpy_dtype.itemsize


class _TakenApart:
    """A scan in parts: what is known of its body's variables outside of it grows with each part.

    Attributes
    ----------
    fixed
        Variables of the body that are the same in all steps, with their values outside.
    stacked
        Those of which the values of all steps are known, with these.
    unsure
        Elements of sequences that may be too short, which the loop says.
    """

    def __init__(self, node: Apply, way: _Way) -> None:
        self.parts = parts = LoopParts.of(node)
        self.way = way
        self.count = int(parts.control.data) if isinstance(parts.control, Constant) else None
        nodes = toposort(parts.results)
        self.always = self.count is not None and self.count > 0 and not any(one.op.lazy for one in nodes)
        self.fixed = dict(parts.invariants)
        rows = {own: self._rows(outer) for own, outer in parts.sequences.items()}
        self.stacked = {own: one for own, one in rows.items() if one is not None}
        self.unsure = {own: outer for own, outer in parts.sequences.items() if rows[own] is None}
        self.last: dict[Variable, Variable] = {}
        self.following = dict(zip(parts.carries, parts.following, strict=True))
        self.results_of_body = list(parts.results)

    def _rows(self, sequence: Variable) -> Variable | None:
        """The elements of a sequence that there are steps for; None where it may have too few."""
        size, control = sequence.tensor_type.shape[0], self.parts.control
        if self.count is not None:
            if size is None or size < self.count:
                return None
            return sequence if size == self.count else sequence[: max(self.count, 0)]
        while control.owner is not None and isinstance(control.owner.op, Assert):
            control = control.owner.inputs[0]
        made = control.owner
        return sequence if made is not None and made.op == _LENGTH and made.inputs[0] is sequence else None

    def _steps(self) -> Variable:
        """How many steps there are, which is no negative number."""
        steps: Variable = op_named("maximum")(self.parts.control, 0)
        return steps

    def results(self) -> list[Variable] | None:
        """What the scan gives; None where it cannot be taken apart in this way, or stays as it is."""
        parts, way = self.parts, self.way
        later = self._free({**self.stacked, **dict.fromkeys(parts.carries)})
        kept_inside = [one for one in parts.kept if not (way.after and one in later)]
        others = set(parts.kept) - set(kept_inside)
        sums = self._sums(later) if way.after else {}
        carries = [own for own in parts.carries if own not in sums]
        groups = self._groups(carries) if way.split else [carries] if carries or kept_inside else []
        if kept_inside and len(groups) != 1:
            return None
        before = len(self.stacked) + len(self.fixed)
        moved = bool(sums) or len(groups) != 1
        for place, group in enumerate(groups):
            rest = [self.following[own] for other in groups[place + 1 :] for own in other]
            rest += [*sums.values(), *(one for one in parts.kept if one in others)]
            moved = self._loop(group, kept_inside, rest) or moved
        self.last.update(self._summed(sums))
        kept = [one for one in parts.kept if one not in self.stacked]
        for own, (value, flag) in zip(kept, self._outside(kept), strict=True):
            moved = True
            self.stacked[own] = value if flag else repeated(value, self._steps())
        if not moved and len(self.stacked) + len(self.fixed) == before:
            return None
        return [*(self.last[own] for own in parts.carries), *(self.stacked[one] for one in parts.kept)]

    # ---- what is known outside

    def _free(self, stacked: Mapping[Variable, object]) -> set[Variable]:
        """What can be computed outside where the values of some variables of all steps are known."""
        found = {*self.fixed, *stacked}
        for node in toposort(self.results_of_body, stop=set(found)):
            if all(isinstance(one, Constant) or one in found for one in node.inputs) and self._moves(node):
                found.update(node.outputs)
        return found

    def _moves(self, node: Apply) -> bool:
        """Whether a node may be computed outside, for all steps at once."""
        op = node.op
        if never_raises(node):
            return True
        has_batches = type(op).batch is not Op.batch and not isinstance(op, LoopOp)
        plain = op.family not in (Family.CONTROL, Family.RANDOM, Family.SPARSE)
        return self.always and has_batches and plain

    def _outside(self, values: Sequence[Variable]) -> list[tuple[Variable, bool]]:
        """Values of the body for all steps, or where they are the same in all, once; and which of both."""
        plain = clone(values, {**{one: one for one in self.stacked}, **self.fixed})[0]
        found: list[tuple[Variable, bool]] = function_named("vectorize")(plain, self.stacked)
        return found

    # ---- carries

    def _groups(self, carries: Sequence[Variable]) -> list[list[Variable]]:
        """Carries that depend on each other, each after those that it depends on."""
        inner = set(carries)
        reached = {own: {own, *inner.intersection(ancestors([self.following[own]]))} for own in carries}
        while True:
            more = {own: set().union(*(reached[one] for one in found)) for own, found in reached.items()}
            if more == reached:
                break
            reached = more
        groups: dict[frozenset[Variable], list[Variable]] = {}
        for own in sorted(carries, key=lambda own: len(reached[own])):
            groups.setdefault(frozenset(reached[own]), []).append(own)
        return list(groups.values())

    def _loop(self, group: Sequence[Variable], kept: Sequence[Variable], rest: Sequence[Variable]) -> bool:
        """Run the steps of some carries, and keep what others need; whether anything was computed before.

        Parameters
        ----------
        kept
            Traces that this loop has to make.
        rest
            What of the body is computed later.
        """
        parts = self.parts
        results = [*(self.following[own] for own in group), *kept]
        free = self._free(self.stacked)
        known = {*self.fixed, *self.stacked}
        if not self.way.all:
            free = self._worth_moving(free, results, known)
        inside = [one for one in toposort(results, stop=known) if not free.issuperset(one.outputs)]
        own = {*group, *(output for node in inside for output in node.outputs)}
        needed = dict.fromkeys([*(operand for node in inside for operand in node.inputs), *results])
        read = [one for one in needed if one in free]
        stop = own | known
        wanted = [one for one in dict.fromkeys(ancestors(rest, stop=stop)) if one in own]
        sequences, fixed, inner = (dict[Variable, Variable]() for _ in range(3))
        for one, (value, flag) in zip(read, self._outside(read), strict=True):
            type = value.tensor_type  # it may know less of sizes than the body does
            inner[one] = (type.with_shape(type.shape[1:]) if flag else type).make_variable()
            (sequences if flag else fixed)[inner[one]] = value
        loop = LoopParts(
            parts.control,
            {one: parts.carries[one] for one in group},
            results[: len(group)],
            [*kept, *wanted],
            sequences | {one: outer for one, outer in self.unsure.items() if one in needed},
            fixed,
            reverse=parts.reverse,
        )
        loop.replace(inner)
        made = loop.node()
        self.last.update(zip(group, made.outputs, strict=False))
        self.stacked.update(zip([*kept, *wanted], made.outputs[len(group) :], strict=True))
        return not known.issuperset(read)

    def _worth_moving(
        self, free: set[Variable], results: Sequence[Variable], known: set[Variable]
    ) -> set[Variable]:
        """Of what can be computed before a loop: products, functions of matrices, what is the same in all
        steps, and what these need."""
        once = set(self.fixed)
        heavy = list[Variable]()
        for node in toposort(results, stop=known):
            if not free.issuperset(node.outputs):
                continue
            if all(isinstance(one, Constant) or one in once for one in node.inputs):
                once.update(node.outputs)
            elif isinstance(node.op, MatMul | MatrixOp):
                heavy += node.outputs
        return known | once | set(ancestors(heavy, stop=known))

    # ---- sums over steps

    def _sums(self, later: set[Variable]) -> dict[Variable, Variable]:
        """Carries to which each step adds something that does not depend on them, and what."""
        found = dict[Variable, Variable]()
        for own, after in self.following.items():
            if own.tensor_type.dtype != "int64" and own.tensor_type.kind not in "fc":
                continue
            others = [one for carry, one in self.following.items() if carry is not own]
            added = _added(after, own)
            if added is None or own in set(ancestors([added, *others, *self.parts.kept])):
                continue
            if self._is_free(added, later):
                found[own] = added
        return found

    def _is_free(self, value: Variable, known: set[Variable]) -> bool:
        found = set(known)
        for node in toposort([value], stop=known):
            if not all(isinstance(one, Constant) or one in found for one in node.inputs):
                return False
            if not self._moves(node):
                return False
            found.update(node.outputs)
        return value in found or isinstance(value, Constant)

    def _summed(self, sums: Mapping[Variable, Variable]) -> dict[Variable, Variable]:
        first = self.parts.carries
        return {own: op_named("add")(first[own], self._total(added)) for own, added in sums.items()}

    def _total(self, value: Variable) -> Variable:
        """The sum of a value of the body over all steps."""
        node = value.owner
        is_sum = node is not None and node.op.name in ("add", "sub", "neg") and value not in self.stacked
        if node is not None and is_sum and all(one.type == value.type for one in node.inputs):
            total: Variable = node.op.make_node(*map(self._total, node.inputs)).outputs[0]
            return total
        pair = _outer_operands(value)
        if pair is not None and value not in self.stacked:
            (column, left), (row, right) = self._outside(pair)
            if left and right:
                product: Variable = MATMUL(dimshuffle(column, (1, 0)), row)
                return product
        ((found, flag),) = self._outside([value])
        return reduce(SUM, found, 0) if flag else found * cast(self._steps(), found.tensor_type.dtype)


def _added(value: Variable, carry: Variable) -> Variable | None:
    """What a sum adds to a carry, where that is one of its terms; None for anything else."""
    node = value.owner
    if node is None or node.op.name not in ("add", "sub"):
        return None
    first, *others = node.inputs
    if first.type == value.type and node.op.name == "sub":
        if first is carry:
            negative: Variable = op_named("neg")(others[0])
            return negative
        rest = _added(first, carry)
        return None if rest is None else rest - others[0]
    if node.op.name == "sub":
        return None
    for place, one in enumerate(node.inputs):
        terms = [*node.inputs[:place], *node.inputs[place + 1 :]]
        if one is carry:
            return _sum_of(terms)
        rest = _added(one, carry)
        if rest is not None:
            return _sum_of([rest, *terms])
    return None


def _sum_of(terms: Sequence[Variable]) -> Variable:
    total = terms[0]
    for one in terms[1:]:
        total = total + one
    return total


def _outer_operands(value: Variable) -> tuple[Variable, Variable] | None:
    """The two vectors of which a matrix is the outer product."""
    node = value.owner
    if node is None or value.tensor_type.ndim != 2 or len(node.inputs) != 2:
        return None
    left, right = node.inputs
    shapes = left.tensor_type.broadcastable, right.tensor_type.broadcastable
    if shapes == ((True, False), (False, True)) and node.op.name == "mul":
        left, right, shapes = right, left, shapes[::-1]
    if shapes != ((False, True), (True, False)) or not (node.op.name == "mul" or isinstance(node.op, MatMul)):
        return None
    return dimshuffle(left, (0,)), dimshuffle(right, (1,))
