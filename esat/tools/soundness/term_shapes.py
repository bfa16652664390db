"""Shapes of a rule's terms, and the literals (axes, words, numbers) that go with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal

from esat.classic.rules.graph_terms import Literal as Number
from esat.egraph.analyses.structure import RELATIONS
from esat.egraph.language.result_shapes import of_matrices, of_sparse
from esat.egraph.language.signature import MATRIX_TYPINGS, ConstructorSignature, Signature
from esat.egraph.language.terms import RankedOp, dtype_number
from esat.graph.sparse_type import Format
from esat.ops.arrays.view import Reshape
from esat.ops.inference.structure import SQUARE_STRUCTURES
from esat.rules.language.macros import expand, permutation_word
from esat.rules.language.reader import Sexp, head_of, is_number
from esat.tools.soundness.dimensions import (
    SCALAR,
    Dimensions,
    Shape,
    UnfitError,
    normalized,
    permuted,
    random_axes,
    random_mask,
    reduced,
)
from esat.tools.soundness.dtype_plans import DtypePlan
from esat.tools.soundness.statement import Statement


class TermShapes:
    """Draws shapes of leaves and literals as terms ask for them, and tells what shapes the terms have.

    Every method raises UnfitError where what was drawn before does not fit.

    Parameters
    ----------
    statement, signature
        The rule, and the constructors in scope.
    plan
        Dtypes of its leaves.
    rank
        Number of axes that most leaves get.
    values
        Numbers to choose from where a pattern has a constant.
    opaque
        Ops without a form of their own, by number; ops that are drawn are added.
    random
        Where choices come from.

    Attributes
    ----------
    dimensions
        Which axes have one size.
    known
        Shapes of rule variables.
    leaves
        Those of leaves, with the axes that ``known`` leaves out of values of one element.
    literals
        What the variables that stand for numbers are.
    targets
        Of variables that hold the sizes of a reshape: its shape.
    sparse
        Formats of the leaves that are sparse matrices.
    """

    def __init__(
        self,
        statement: Statement,
        signature: Signature,
        plan: DtypePlan,
        rank: int,
        values: Sequence[float],
        opaque: list[RankedOp],
        random: Random,
    ) -> None:
        self.dimensions = Dimensions()
        self.known: dict[str, Shape] = {}
        self.leaves: dict[str, Shape] = {}
        self.literals: dict[str, Number] = {}
        self.targets: dict[str, Shape] = {}
        self.sparse: dict[str, Format] = {}
        self._statement = statement
        self._signature = signature
        self._plan = plan
        self._rank = rank
        self._values = values
        self._opaque = opaque
        self._random = random

    def of_patterns(self) -> None:
        """Give every pattern its shape, inner ones before those that use their class."""
        for variable, term in self._statement.patterns:
            shape = self.of(term)
            if variable in self.known:
                shape = self.dimensions.elementwise([shape, self.known[variable]])
            self.known[variable] = shape

    def square_up(self) -> None:
        """Give matrices that the guards call square as many rows as columns."""
        for guard in self._statement.guards:
            if head_of(guard).replace("-", "_") in SQUARE_STRUCTURES:
                if str(guard[1]) not in self.known:
                    self.known[str(guard[1])] = self._leaf_shape(str(guard[1]))
                self.dimensions.square(self.known[str(guard[1])])

    def of(self, term: Sexp) -> Shape:
        """The shape of a term; of a leaf seen for the first time, one that is drawn."""
        if isinstance(term, str):
            if term not in self.known:
                self.known[term] = self._leaf_shape(term)
            return self.known[term]
        record = self._signature.get(head_of(term))
        if record is None:
            raise UnfitError
        count = record.operand_count
        if record.kinds or head_of(term) == "Reshape":
            return self._sparse(record, term) if record.kinds else self._reshaped(term)
        shapes = [self.of(operand) for operand in term[1 : 1 + count]]
        attributes = term[1 + count :]
        if record.result in MATRIX_TYPINGS or record.name == "Output":
            return self._of_matrices(record.result, shapes, attributes)
        match record.result:
            case "cast":
                self._literal(attributes[0], lambda: dtype_number(self._plan[str(attributes[0])]))
                return shapes[0]
            case "dimshuffle":
                word = self._literal(attributes[0], lambda: self._random_word(shapes[0]))
                return permuted(shapes[0], int(word))
            case "reduce" | "argreduce" | "same" if attributes:
                index = record.result == "argreduce"
                mask = self._literal(attributes[0], lambda: random_mask(shapes[0], self._random, index=index))
                shrunk = reduced(shapes[0], int(mask))
                return shapes[0] if record.result == "same" else shrunk
            case "matmul":
                rank = self._literal(attributes[0], lambda: max(map(len, shapes)) or self._rank)
                return self.dimensions.matmul(shapes[0], shapes[1], int(rank))
            case "leaf" if record.name == "K":
                self._literal(attributes[0], lambda: self._random.choice(self._values))
                self._literal(attributes[1], lambda: dtype_number(self._plan[str(attributes[1])]))
                return SCALAR
            case "same" | "bool" | "real" | "fill":
                return self.dimensions.elementwise(shapes)
        raise UnfitError

    def _of_matrices(self, typing: str, shapes: Sequence[Shape], attributes: Sequence[Sexp]) -> Shape:
        """The shape of a function of matrices, whose attributes are flags and then the rank.

        Of those with several results rules speak of signs and logarithms of determinants, which are alike.
        """
        if typing == "opaque":
            self._literal(attributes[0], lambda: self._random.randint(0, 1))
            return shapes[0]
        for flag in attributes[:-1]:
            self._literal(flag, lambda: self._random.randint(0, 1))
        rank = int(self._literal(attributes[-1], lambda: max(map(len, shapes)) or self._rank))
        if any(len(shape) not in (0, 1 if typing == "from_diagonal" else rank) for shape in shapes):
            raise UnfitError
        return normalized(of_matrices(typing, shapes, rank, self.dimensions))

    # ---- sparse matrices: rows, columns, number of stored values

    def _sparse(self, record: ConstructorSignature, term: tuple[Sexp, ...]) -> Shape:
        """The shape of an op on sparse matrices."""
        shapes = [self._of_kind(part, kind) for part, kind in zip(term[1:], record.kinds, strict=False)]
        first, others = shapes[0], shapes[1:]
        axis = 0
        match record.result:
            case "stored" if others:
                self._require_places(first, self._product(*others) if len(others) == 2 else others[0])
            case "structure":
                if len(others[0]) != 1:
                    raise UnfitError
            case "sparse_sum":
                axis = int(self._literal(term[-1], lambda: self._random.randint(0, 1)))
            case "usmm":
                product = self._product(others[0], others[1])
                self._require_places((*(product or (1, 1)), 0), others[2])
                self._require_square_for(product or (1, 1), others[3:])
            case "number":
                sparse, dense, other, *square = shapes[len(shapes) - (3 if len(shapes) < 5 else 4) :]
                product = self._product(sparse, dense) or (1, 1)
                self._require_places((*product, 0), other)
                self._require_square_for(product, square)
            case "product" | "sampled":
                self._product(*shapes[:2] if record.result == "product" else shapes[1:3])
        shape = of_sparse(record.result, shapes, self.dimensions, axis)
        return shape if record.result in ("stored", "structure", "transpose") else normalized(shape)

    def _of_kind(self, part: Sexp, kind: int | Literal["sparse"]) -> Shape:
        """The shape of an operand that is a sparse matrix, or has so many axes."""
        if kind != "sparse":
            if isinstance(part, str) and part not in self.known:
                share = 1.0 if self._random.random() < 0.1 else 0.2  # of axes of size 1
                sizes = [1 if self._random.random() < share else self.dimensions.new() for _ in range(kind)]
                self.leaves[part] = tuple(sizes)
                self.known[part] = normalized(sizes)
            rank, self._rank = self._rank, kind
            shape = self.of(part)
            self._rank = rank
            return shape
        if isinstance(part, str) and part not in self.known:
            sizes = [1 if self._random.random() < 0.1 else self.dimensions.new() for _ in range(2)]
            self.known[part] = self.leaves[part] = (*sizes, self.dimensions.new())
            self.sparse[part] = self._random.choice(("csr", "csc"))
        return self.of(part)

    def _product(self, left: Shape, right: Shape) -> Shape:
        return self.dimensions.matmul(left[:2], right[:2], 2)

    def _require_places(self, pattern: Shape, dense: Shape) -> None:
        """A dense operand may be stretched over the places of a sparse one, and not the other way round."""
        for place, size in zip(pattern[:2], dense[:2], strict=False):
            if size != 1:
                self.dimensions.merge(place, size)

    def _require_square_for(self, rows: Shape, square: Sequence[Shape]) -> None:
        """A factor, if there is one, with as many rows and columns as another matrix has columns."""
        for shape in square[:1]:
            self.dimensions.square(shape or (1, 1))
            self.dimensions.merge(rows[1], (shape or (1, 1))[0])

    def _random_word(self, shape: Shape) -> int:
        axes, rank = random_axes(shape, self._random)
        return permutation_word(axes, rank)

    def _literal(self, part: Sexp, drawn: Callable[[], Number]) -> Number:
        """The number that an attribute is, or the one drawn for the variable that it is."""
        part = expand(part)  # a macro without operands is a number
        if not isinstance(part, str):
            raise UnfitError
        if is_number(part):
            return float(part) if "." in part else int(part)
        if part not in self.literals:
            self.literals[part] = drawn()
        return self.literals[part]

    def _leaf_shape(self, name: str) -> Shape:
        kind = self._random.random()
        rank = self._rank
        structured = self._statement.facts_of(name).intersection(RELATIONS)
        if kind < 0.15 and not structured:
            rank = self._random.randint(0, 3)
        shape = tuple(1 if self._random.random() < 0.25 else self.dimensions.new() for _ in range(rank))
        asked = -1 if self._statement.reads_value(name) else self._statement.asked_word(name)
        if asked is not None and self._random.random() < 0.7:
            axes = range(asked.bit_length() - 1) if asked > 0 else ()
            shape = tuple(1 if asked >> axis & 1 else self.dimensions.new() for axis in axes)
        elif structured:
            shape = (*shape[:-2], self.dimensions.new(), self.dimensions.new())
        elif kind > 0.9:
            shape = (1,) * self._random.randint(0, rank)
        self.leaves[name] = shape
        return normalized(shape)

    def _reshaped(self, term: Sexp) -> Shape:
        """A reshape that merges the first axes, or inserts one."""
        source = self.of(term[1])
        sizes, number = str(term[2]), str(term[3])
        if not source or not sizes.startswith("?") or sizes in self.known:
            raise UnfitError
        merged, inserted = self._random.randint(1, len(source)), self._random.random() < 0.3
        target = (self.dimensions.product(source[:merged]), *source[merged:])
        target = (*source[:1], 1, *source[1:]) if inserted else target
        self.known[sizes] = (self.dimensions.new(),)
        self.targets[sizes] = target
        types = tuple(1 if size == 1 else None for size in target)
        self._literal(number, lambda: len(self._opaque))
        self._opaque.append(RankedOp(Reshape(types), (len(source), 1)))
        return normalized(target)
