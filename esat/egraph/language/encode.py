"""From a FunctionGraph to a term DAG.

What the e-graph must not see is removed here, so that rules stay few: reductions always keep
their axes (a DimShuffle drops them), and a value whose axes all have size 1 is one rank-free
scalar however many axes it has. Decoding restores ranks where ops need them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from esat.base.union_find import UnionFind
from esat.egraph.analyses.known import LOGARITHMS, facts_of, is_view
from esat.egraph.analyses.structure import relation_of, with_structure
from esat.egraph.analyses.uniform import as_tensor, uniform_value
from esat.egraph.language.constructors import opaque_constructor
from esat.egraph.language.forms import mask_of, term_of
from esat.egraph.language.result_shapes import broadcast, of_sparse, product
from esat.egraph.language.terms import (
    SCALAR,
    Claim,
    Dimension,
    RankedOp,
    TermBuilder,
    TermGraph,
    TermType,
    broadcast_word,
    dtype_number,
)
from esat.errors import ShapeError, UserLine, describe
from esat.graph import (
    Apply,
    Constant,
    Family,
    FunctionGraph,
    SharedVariable,
    TensorType,
    Variable,
    ancestors,
    inputs_of,
    toposort,
)
from esat.graph.algorithms.folding import fold
from esat.graph.sparse_type import SparseType
from esat.ops.annotations.assume import Assume
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.shape import ShapeI
from esat.ops.arrays.view import Reshape
from esat.ops.contraction import MatMul
from esat.ops.control import Assert, IfElse
from esat.ops.inference.structure import NUMBERS
from esat.ops.normalization import Normalization
from esat.ops.reduction import LOGSUMEXP, Reduction
from esat.ops.sparse.products import SparseSum
from esat.ops.sparse.record import SparseOp
from esat.rules.language.macros import permutation_word


def encode(graph: FunctionGraph, equalities: Sequence[Claim] = ()) -> TermGraph:
    """The term DAG of a graph's outputs; equal sub-expressions become one term.

    Parameters
    ----------
    graph
        What to encode.
    equalities
        Variables that are known to have the same value and the same type, two each. They are Variables of the
        graph, or computed from such.

    Raises
    ------
    ShapeError
        When two sizes that are known would have to be equal for an op to work; names it and the user's line.
    CompileError
        When the result fails its own verifier.
    """
    sides = [side for claim in equalities for side in claim[:2]]
    nodes = toposort([*graph.outputs, *sides], stop=graph.input_set) if sides else graph.toposort()
    encoder = _Encoder(any(isinstance(node.op, IfElse) for node in nodes), _asserted(nodes))
    encoder.takes_logarithms = any(node.op.name in LOGARITHMS for node in nodes)
    leaves = [leaf for leaf in inputs_of(sides) if isinstance(leaf, SharedVariable)]
    encoder.add_inputs(list(dict.fromkeys([*graph.inputs, *graph.shared_variables, *leaves])))
    place: dict[Apply | None, int] = {node: number for number, node in enumerate(nodes)}
    begin = 0
    for root in (*graph.outputs, *sides):
        end = max(begin, place.get(root.owner, -1) + 1)
        for node in nodes[begin:end]:
            try:
                encoder.add_node(node)
            except _ContradictionError as error:
                raise _contradiction(node, error) from None
        begin = end
        # A constant that is a side has its number here: what is told later comes after it.
        encoder.operand(root)
    result = encoder.finish(graph.outputs, equalities)
    result.verify()
    return result


def _asserted(nodes: Sequence[Apply]) -> frozenset[Variable]:
    """What the conditions of assertions depend on."""
    conditions = [condition for node in nodes if isinstance(node.op, Assert) for condition in node.inputs[1:]]
    return frozenset(ancestors(conditions))


class _ContradictionError(Exception):
    """Two known sizes would have to be equal."""

    def __init__(self, left: int, right: int) -> None:
        self.sizes = (left, right)


class _Dimensions:
    """Sizes of axes, merged as they are found to be equal. A known size wins over a symbol.

    Attributes
    ----------
    lenient
        Whether sizes may contradict each other: of two branches only one is computed.
    """

    def __init__(self, lenient: bool = False) -> None:
        self.lenient = lenient
        self._equal = UnionFind[Dimension]()
        self.find = self._equal.find

    def merge(self, left: Dimension, right: Dimension) -> Dimension:
        left, right = self.find(left), self.find(right)
        if left == right:
            return left
        if isinstance(left, int) and isinstance(right, int):
            if self.lenient:
                return left
            raise _ContradictionError(left, right)
        kept, merged = (left, right) if isinstance(left, int) else (right, left)
        if not isinstance(kept, int) and not isinstance(merged, int) and merged < kept:
            kept, merged = merged, kept
        self._equal.unite(kept, merged)
        return kept

    def contract(self, left: Dimension, right: Dimension) -> None:
        if 1 not in (left, right):
            self.merge(left, right)


class _Encoder:
    def __init__(self, lenient: bool, asserted: frozenset[Variable]) -> None:
        self.asserted = asserted
        self.builder = TermBuilder()
        self.dimensions = _Dimensions(lenient)
        self.number: dict[Variable, int] = {}
        self.folded: dict[Variable, Variable] = {}
        self.shape: dict[Variable, tuple[Dimension, ...]] = {}
        self.inputs: list[Variable] = []
        self.arrays: dict[tuple[str, tuple[int, ...], bytes], int] = {}
        self.array_constants: list[Constant] = []
        self.opaque: dict[RankedOp, int] = {}
        self.places: list[UserLine | None] = []
        self.assumed: list[tuple[int, str]] = []
        self.takes_logarithms = False

    # ---- leaves

    def add_inputs(self, inputs: Sequence[Variable]) -> None:
        for variable in inputs:
            self._add_leaf(variable)

    def _add_leaf(self, variable: Variable) -> None:
        position = len(self.inputs)
        self.inputs.append(variable)
        self._add(variable, "In", (), (position,), symbols=True)

    def operand(self, variable: Variable) -> int:
        """Number of a Variable's term; constants are added when they are first asked for."""
        variable = self.folded.get(variable, variable)
        if variable not in self.number and isinstance(variable, Constant):
            self._add_constant(variable)
        return self.number[variable]

    def _add_constant(self, variable: Constant) -> None:
        if not isinstance(variable.type, TensorType):
            self._add_leaf(variable)
            return
        value = uniform_value(variable.data)
        self.shape[variable] = variable.data.shape
        if value is not None and variable.data.size == 1:
            attributes = (value, dtype_number(variable.tensor_type.dtype))
            self._add(variable, "K", (), attributes, value=value)
            return
        data = np.ascontiguousarray(variable.data)
        key = (data.dtype.name, variable.data.shape, data.tobytes())
        position = self.arrays.setdefault(key, len(self.array_constants))
        if position == len(self.array_constants):
            self.array_constants.append(variable)
        self._add(variable, "Array", (), (position,), value=value)

    # ---- nodes

    def add_node(self, node: Apply) -> None:
        constants = fold(node, [self.folded.get(variable, variable) for variable in node.inputs])
        if constants is not None:
            self.folded.update(zip(node.outputs, constants, strict=True))
            return
        op = node.op
        operands = [self.operand(variable) for variable in node.inputs]
        output = node.outputs[0]
        if isinstance(op, Assume):
            self._add_assumption(output, operands[0], op)
        elif isinstance(op, DimShuffle):
            self._add_dimshuffle(output, operands[0], op, self._shape_of(node.inputs[0]))
        elif isinstance(op, Reduction):
            self._add_reduction(node, op, operands[0])
        elif isinstance(op, ShapeI):
            self._add_size(node, op)
        elif isinstance(op, Normalization) and self.builder.types[operands[0]].broadcast == SCALAR:
            self._add_opaque(node, operands)
        elif op.constructor == "Fill" and self._is_scalar(output):
            self.number[output], self.shape[output] = operands[1], self._shape_of(node.inputs[0])
        else:
            self._add_formed(node, operands)

    def _add_formed(self, node: Apply, operands: Sequence[int]) -> None:
        """The term of a node whose op has a form in the e-graph, or that of an opaque one."""
        form = term_of(node, [self.builder.types[operand].broadcast for operand in operands])
        if form is None:
            self._add_opaque(node, operands)
            return
        shape = self._result_shape(node)
        if shape is None:
            self._add_outputs(node, form[0], operands, form[1])
        else:
            self.shape[node.outputs[0]] = shape
            self._add(node.outputs[0], form[0], operands, form[1])

    def _result_shape(self, node: Apply) -> tuple[Dimension, ...] | None:
        """Sizes of a result in terms of those of the operands; None where it has sizes of its own."""
        op, shapes = node.op, [self._shape_of(variable) for variable in node.inputs]
        if isinstance(op, MatMul):
            return product(shapes[0], shapes[1], len(shapes[0]), self.dimensions)
        if isinstance(op, SparseOp):
            axis = op.axis if isinstance(op, SparseSum) else 0
            return of_sparse(op.typing, shapes, self.dimensions, axis)
        if isinstance(op, Normalization):
            return shapes[0]
        return broadcast(shapes, self.dimensions) if op.family is Family.ELEMENTWISE else None

    def _add_assumption(self, output: Variable, operand: int, op: Assume) -> None:
        """The operand itself, which has the facts; a row or a column by type has no structure to speak of."""
        owner = output.owner
        assert owner is not None
        self.number[output], self.shape[output] = operand, self._shape_of(owner.inputs[0])
        flags = output.tensor_type.broadcastable
        known = (fact for fact in op.facts if fact in NUMBERS or True not in flags[-2:])
        self.assumed += [(operand, relation_of(fact)) for fact in known]

    def _add_dimshuffle(
        self, output: Variable, operand: int, op: DimShuffle, shape: tuple[Dimension, ...]
    ) -> None:
        self.shape[output] = tuple(1 if axis == "x" else shape[int(axis)] for axis in op.order)
        if self.builder.types[operand].broadcast == SCALAR:
            self.number[output] = operand
            return
        self._add(output, "DimShuffle", [operand], (permutation_word(op.order, op.input_rank),))

    def _add_reduction(self, node: Apply, op: Reduction, operand: int) -> None:
        """A reduction that keeps its axes, then a DimShuffle that drops them."""
        source, output = node.inputs[0], node.outputs[0]
        dtype, shape = output.tensor_type.dtype, self._shape_of(source)
        kept = Variable(Reduction(op.reducer, op.axes, keepdims=True).infer_types([source])[0])
        self.shape[kept] = tuple(1 if axis in op.axes else size for axis, size in enumerate(shape))
        axes = [axis for axis in op.axes if source.tensor_type.shape[axis] != 1]
        # The logarithm of an exponential is the principal one of complex numbers.
        changes_one = op.reducer is LOGSUMEXP and source.tensor_type.kind == "c"
        if op.typing == "reduce" and not axes and not changes_one:
            self.number[kept] = operand
        elif op.typing != "reduce" and self.builder.types[operand].broadcast == SCALAR:
            self._add(kept, "K", (), (0.0, dtype_number(dtype)), value=0.0)
        else:
            mask = mask_of(axes if op.typing == "reduce" and axes else op.axes)
            self._add(kept, op.constructor, [operand], (mask,))
        if op.keepdims:
            self.number[output], self.shape[output] = self.number[kept], self.shape[kept]
            return
        order = tuple(axis for axis in range(len(shape)) if axis not in op.axes)
        self._add_dimshuffle(output, self.number[kept], DimShuffle(order, len(shape)), self.shape[kept])

    def _add_size(self, node: Apply, op: ShapeI) -> None:
        """The size of an axis: a constant, or the size of the first term that has this axis.

        So nothing is computed for its shape alone. An assertion of the user's may ask whether sizes fit
        each other: for it they are not taken to do so.
        """
        output = node.outputs[0]
        size = self._shape_of(node.inputs[0])[op.axis]
        if output not in self.asserted:
            size = self.dimensions.find(size)
        self.shape[output] = ()
        if isinstance(size, int):
            number = dtype_number(output.tensor_type.dtype)
            self._add(output, "K", (), (float(size), number), value=float(size))
            return
        term, axis = size
        opaque = RankedOp(ShapeI(axis), (self.builder.types[term].rank,))
        position = self.opaque.setdefault(opaque, len(self.opaque))
        self._add(output, opaque_constructor(op, 1), (term,), (position,))

    def _add_opaque(self, node: Apply, operands: Sequence[int]) -> None:
        ranks = tuple(
            variable.type.ndim if isinstance(variable.type, TensorType) else None for variable in node.inputs
        )
        if isinstance(node.op, Reshape):
            ranks = (None, *ranks[1:])  # one of an array is that of another, which may have another rank
        opaque = RankedOp(node.op, ranks)
        position = self.opaque.setdefault(opaque, len(self.opaque))
        self._add_outputs(node, opaque_constructor(node.op, len(operands)), operands, (position,))
        if self.takes_logarithms and is_view(node):
            # Rules do not look into what an index makes; they may be told what is known of it.
            view = node.outputs[0]
            self.assumed += [(self.number[view], fact) for fact in facts_of(view)]

    def _add_outputs(
        self, node: Apply, constructor: str, operands: Sequence[int], attributes: tuple[int, ...]
    ) -> None:
        """The term of a node whose results have sizes of their own, and one for each of several results."""
        if len(node.outputs) == 1:
            self._add(node.outputs[0], constructor, operands, attributes, symbols=True)
            return
        first = node.outputs[0]
        whole = self.builder.add(constructor, operands, attributes, self._type(first, None))
        for index, output in enumerate(node.outputs):
            self._add(output, "Output", [whole], (index,), symbols=True)

    # ---- shared

    def _is_scalar(self, variable: Variable) -> bool:
        return all(variable.tensor_type.broadcastable)

    def _shape_of(self, variable: Variable) -> tuple[Dimension, ...]:
        return self.shape[self.folded.get(variable, variable)]

    def _add(
        self,
        variable: Variable,
        constructor: str,
        operands: Sequence[int],
        attributes: Sequence[int | float],
        value: float | None = None,
        symbols: bool = False,
    ) -> None:
        if symbols:
            number = len(self.builder.terms)
            sizes = _sizes(variable)
            self.shape[variable] = tuple(
                (number, axis) if size is None else size for axis, size in enumerate(sizes)
            )
        known = len(self.builder.terms)
        term = self.builder.add(constructor, operands, attributes, self._type(variable, value))
        self.number[variable] = term
        self._remember_place(variable)
        if symbols and term != known:
            # The same opaque term again: its axes are those of the first one.
            self.shape[variable] = self.builder.types[term].shape

    def _remember_place(self, variable: Variable) -> None:
        where = None if variable.owner is None else variable.owner.where
        self.places += [where] * (len(self.builder.terms) - len(self.places))

    def _type(self, variable: Variable, value: float | None) -> TermType:
        type = as_tensor(variable.type)
        return TermType(
            dtype_number(type.dtype), broadcast_word(type.broadcastable), self.shape.get(variable, ()), value
        )

    def _equate(self, left: Variable, right: Variable) -> tuple[int, int]:
        pair = self.operand(left), self.operand(right)
        for sizes in zip(self._shape_of(left), self._shape_of(right), strict=False):
            with suppress(_ContradictionError):  # then an op of the graph fails when it runs
                self.dimensions.merge(*sizes)
        return pair

    def _are_alike(self, left: int, right: int) -> bool:
        """Whether an e-graph can hold two terms as one: as much must be known of the sizes of both."""
        return self.builder.types[left].broadcast == self.builder.types[right].broadcast

    def finish(self, outputs: Sequence[Variable], equalities: Sequence[Claim]) -> TermGraph:
        roots = tuple(self.operand(output) for output in outputs)
        equal = tuple(self._equate(claim[0], claim[1]) for claim in equalities)
        told = zip(equal, equalities, strict=True)
        types = tuple(
            replace(
                type,
                shape=()
                if type.broadcast == SCALAR
                else tuple(self.dimensions.find(size) for size in type.shape),
            )
            for type in self.builder.types
        )
        graph = TermGraph(
            tuple(self.builder.terms),
            types,
            roots,
            tuple(self.inputs),
            tuple(self.array_constants),
            tuple(self.opaque),
            tuple(self.places),
            tuple(pair for pair in equal if pair[0] != pair[1] and self._are_alike(*pair)),
            tuple(dict.fromkeys(self.assumed)),
            claimants={pair: claim[2] for pair, claim in told if len(claim) == 3},
        )
        return with_structure(graph)


def _contradiction(node: Apply, error: _ContradictionError) -> ShapeError:
    types = [variable.type for variable in node.inputs]
    left, right = error.sizes
    reason = f"sizes {left} and {right} meet, as other ops on these values tell: no input fits this graph"
    return ShapeError(describe(str(node.op), types, reason, node.where))


def _sizes(variable: Variable) -> tuple[int | None, ...]:
    """Sizes of the axes; of a sparse matrix also the number of stored values."""
    if not isinstance(variable.type, SparseType):
        return as_tensor(variable.type).shape
    return (*variable.type.shape, variable.data.nnz if isinstance(variable, Constant) else None)
