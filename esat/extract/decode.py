"""From chosen terms back to a FunctionGraph.

The inverse of encoding: ranks are given back to scalars where an op needs them, n-ary sums and
products become binary ops by the plan they were priced with, and a reduction takes up the
DimShuffle that drops its axes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from esat.egraph.language.forms import op_of
from esat.egraph.language.terms import SCALAR, Term, TermGraph, TermType
from esat.errors import CompileError, UserLine
from esat.extract.prices.nary import PlanStep, Shape, joins_numbers, plan_with_numbers_last, plan_written
from esat.graph import Apply, Constant, FunctionGraph, Op, TensorType, Variable
from esat.graph.algorithms.folding import fold
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.graph.types import DTYPES
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.cast import Cast, cast
from esat.ops.reduction import Reduction
from esat.rules.language.macros import permutation_axes, permutation_input_rank


def decode(chosen: TermGraph, like: FunctionGraph, shapes: Sequence[Shape]) -> FunctionGraph:
    """A FunctionGraph that computes the chosen terms.

    Parameters
    ----------
    chosen
        Terms with one way to compute each; its inputs are ``like``'s and shared variables.
    like
        The graph that was encoded: gives inputs, and the types the outputs must have.
    shapes
        Sizes of each term's axes as the cost model saw them.

    Raises
    ------
    CompileError
        When an output's type is not that of the original.
    """
    decoder = _decoded(chosen, shapes)
    outputs = [
        decoder.output(root, original) for root, original in zip(chosen.roots, like.outputs, strict=True)
    ]
    result = FunctionGraph(like.inputs, outputs)
    verify_outputs(result, like)
    return result


def decoded(chosen: TermGraph, shapes: Sequence[Shape]) -> list[Variable | Apply]:
    """What computes each root of the chosen terms: a Variable, or a node of several outputs."""
    decoder = _decoded(chosen, shapes)
    return [decoder.values[root] for root in chosen.roots]


def _decoded(chosen: TermGraph, shapes: Sequence[Shape]) -> _Decoder:
    decoder = _Decoder(chosen, shapes)
    for number in range(len(chosen.terms)):
        decoder.add(number)
    decoder.place_by_users()
    return decoder


def verify_outputs(result: FunctionGraph, like: FunctionGraph) -> None:
    """Raise CompileError unless the outputs have the dtypes and ranks of ``like``'s."""
    for position, (new, old) in enumerate(zip(result.outputs, like.outputs, strict=True)):
        same = isinstance(new.type, type(old.type))
        if same and isinstance(new.type, TensorType) and isinstance(old.type, TensorType):
            same = (new.type.dtype, new.type.ndim) == (old.type.dtype, old.type.ndim)
        if not same:
            raise CompileError(f"decode: output {position} became {new.type}, it was {old.type}")


class _Decoder:
    def __init__(self, chosen: TermGraph, shapes: Sequence[Shape]) -> None:
        self.chosen = chosen
        self.shapes = shapes
        self.values: list[Variable | Apply] = []
        self.places: list[UserLine | None] = []
        self.unplaced: dict[int, list[Apply]] = {}
        self.placed: set[Apply] = set()
        self.steps: dict[tuple[Hashable, ...], Variable] = {}
        self.uses = [0] * len(chosen.terms)
        for term in chosen.terms:
            for operand in term.operands:
                self.uses[operand] += 1
        for root in chosen.roots:
            self.uses[root] += 1

    def add(self, number: int) -> None:
        term, type = self.chosen.terms[number], self.chosen.types[number]
        value = self._build(number, term, type)
        node = value if isinstance(value, Apply) else value.owner
        if isinstance(value, Variable) and node is not None:
            _refine(value, type)
        self._place(number, node)
        self.values.append(value)

    def _place(self, number: int, node: Apply | None) -> None:
        """Give new nodes the user's line their class came from, else that of an operand."""
        place = self.chosen.place_of(number)
        for operand in self.chosen.terms[number].operands:
            place = place if place is not None else self.places[operand]
        self.places.append(place)
        pending = [node]
        while pending:
            fresh = pending.pop()
            if fresh is not None and fresh not in self.placed:
                self.placed.add(fresh)
                fresh.where = place
                if place is None:
                    self.unplaced.setdefault(number, []).append(fresh)
                pending += [variable.owner for variable in fresh.inputs]

    def place_by_users(self) -> None:
        """Give the nodes that still lack a user's line that of what uses them: rules made them for it."""
        for number in reversed(range(len(self.chosen.terms))):
            place = self.places[number]
            for fresh in self.unplaced.get(number, ()):
                fresh.where = place
            for operand in self.chosen.terms[number].operands:
                if self.places[operand] is None:
                    self.places[operand] = place

    def output(self, root: int, original: Variable) -> Variable:
        value = self._value(root)
        if isinstance(original.type, TensorType):
            rank = original.type.ndim
            if value.tensor_type.ndim != rank:
                value = self._with_rank(root, rank)
        return value

    def _build(self, number: int, term: Term, type: TermType) -> Variable | Apply:
        tables = {"In": self.chosen.inputs, "Array": self.chosen.arrays}
        if term.constructor in tables:
            leaf: Variable = tables[term.constructor][int(term.attributes[0])]
            return leaf
        if term.constructor == "K":
            return constant(np.asarray(term.attributes[0]).astype(DTYPES[int(term.attributes[1])]))
        if term.constructor in ("NarySum", "NaryProd"):
            return self._nary(number, term, type)
        if term.constructor == "Output":
            whole = self.values[term.operands[0]]
            assert isinstance(whole, Apply)
            return whole.outputs[int(term.attributes[0])]
        if term.constructor == "DimShuffle":
            return self._dimshuffle(term)
        return self._of_op(term, type)

    def _of_op(self, term: Term, type: TermType) -> Variable | Apply:
        ranks = [self.chosen.types[operand].rank for operand in term.operands]
        known = op_of(term.constructor, term.attributes, ranks, self.chosen.opaque)
        assert known is not None, "terms of a graph refer to its ops"
        operands = [
            self._value(operand) if rank is None else self._as_operand(operand, rank)
            for operand, rank in zip(term.operands, known.operand_ranks, strict=True)
        ]
        op = known.op
        if isinstance(op, Cast):
            return cast(operands[0], op.dtype)
        if isinstance(op, Reduction) and type.broadcast == SCALAR:
            # All that is not reduced has size 1, and scalars have no rank of their own.
            op = Reduction(op.reducer, tuple(range(operands[0].tensor_type.ndim)), keepdims=False)
        node = op.make_node(*operands)
        return node if len(node.outputs) > 1 else _folded(node)

    def _nary(self, number: int, term: Term, type: TermType) -> Variable:
        operands = [self._with_rank(operand, type.rank) for operand in term.operands]
        shapes = [self.shapes[operand] for operand in term.operands]
        joins = self.chosen.joins.get(number, ())
        strict = number in self.chosen.strict
        above = int(term.attributes[0])
        numbers = [
            place
            for place, operand in enumerate(operands)
            if isinstance(operand, Constant) and operand.data.size == 1
        ]
        is_sum = term.constructor == "NarySum"
        several = 1 < len(numbers) < len(operands)
        strict = strict or (several and is_sum)
        steps = plan_written(term.constructor, term.operands, shapes, above, joins, strict=strict)
        if several and (joins_numbers(steps, numbers, len(operands)) if is_sum else not strict):
            if is_sum:
                numbers.sort(key=lambda place: -_size_of(operands[place]))
            steps = plan_with_numbers_last(term.constructor, term.operands, shapes, above, numbers)
        return self._follow(steps, operands)

    def _follow(self, steps: Sequence[PlanStep], operands: Sequence[Variable]) -> Variable:
        """The result of the steps; what several plans compute alike, such as powers, is computed once."""
        values = list(operands)
        for step in steps:
            inputs = [values[step.left]] if step.right is None else [values[step.left], values[step.right]]
            key = (step.op, step.exponent, *inputs)
            if key not in self.steps:
                if step.exponent:
                    kind = inputs[0].tensor_type
                    inputs.append(constant(np.full((1,) * kind.ndim, step.exponent, kind.dtype)))
                self.steps[key] = _single(op_named(step.op), inputs)
            values.append(self.steps[key])
        return values[-1]

    def _dimshuffle(self, term: Term) -> Variable:
        word = int(term.attributes[0])
        order, input_rank = permutation_axes(word), permutation_input_rank(word)
        operand = self._with_rank(term.operands[0], input_rank)
        node = operand.owner
        if node is not None and isinstance(node.op, Reduction) and self.uses[term.operands[0]] == 1:
            kept = tuple(axis for axis in range(input_rank) if axis not in node.op.axes)
            if node.op.keepdims and order == kept:
                return _single(Reduction(node.op.reducer, node.op.axes, keepdims=False), node.inputs)
        return dimshuffle(operand, order)

    def _value(self, number: int) -> Variable:
        value = self.values[number]
        assert isinstance(value, Variable)
        return value

    def _is_scalar(self, number: int) -> bool:
        return self.chosen.types[number].broadcast == SCALAR

    def _as_operand(self, number: int, rank: int) -> Variable:
        """A value as an op takes it: rules may give an opaque op operands of other ranks than it had."""
        return self._with_rank(number, rank) if self._is_scalar(number) else self._value(number)

    def _with_rank(self, number: int, rank: int) -> Variable:
        value = self._value(number)
        if value.tensor_type.ndim == rank:
            return value
        if not self._is_scalar(number):
            raise CompileError(f"decode: {value} ({value.type}) cannot be given {rank} axes")
        if isinstance(value, Constant):
            return constant(value.data.reshape((1,) * rank))
        return dimshuffle(value, ("x",) * rank)


def _single(op: Op, operands: Sequence[Variable]) -> Variable:
    return _folded(op.make_node(*operands))


def _folded(node: Apply) -> Variable:
    folded = fold(node, node.inputs)
    return node.outputs[0] if folded is None else folded[0]


def _refine(variable: Variable, type: TermType) -> None:
    """Give a new Variable the sizes that are known of its class.

    Another way to compute a value may tell less about its sizes than the user's did. It may tell more too,
    where a size was found to be 1; but an e-graph that is told of it again holds it as it holds the class.
    """
    known = variable.type
    if not isinstance(known, TensorType):
        return
    if type.broadcast == SCALAR:
        shape: tuple[int | None, ...] = (1,) * known.ndim
    else:
        sizes = type.shape if len(type.shape) == known.ndim else known.shape
        found = (size if isinstance(size, int) else own for size, own in zip(sizes, known.shape, strict=True))
        shape = tuple(
            1 if type.broadcast >> axis & 1 else None if size == 1 else size
            for axis, size in enumerate(found)
        )
    variable.type = known.with_shape(shape)


def _size_of(variable: Variable) -> float:
    """The size of a constant of one element."""
    assert isinstance(variable, Constant)
    return float(np.abs(variable.data).reshape(()))
