"""Situations of a rule: types, shapes and literals under which its patterns match and its guards hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from esat.classic.conditions import Value
from esat.classic.terms import Literal as Number
from esat.egraph.signature import MATRIX_TYPINGS, ConstructorSignature, Signature
from esat.egraph.structure import RELATIONS
from esat.egraph.terms import OpaqueOp, dtype_number
from esat.graph import Constant, TensorType, Variable
from esat.graph.sparse_type import Format, SparseType
from esat.graph.types import DTYPES
from esat.ops.structure import SQUARE_STRUCTURES
from esat.ops.view import Reshape
from esat.rules.macros import expand, permutation_word
from esat.rules.reader import Sexp, head_of, is_number
from esat.soundness.construction import Construction, IllTypedError, is_derivable
from esat.soundness.dimensions import (
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
from esat.soundness.statement import Statement, parts_of

DtypePlan = Mapping[str, str]
"""Dtype of every leaf, and of every literal that stands for a dtype."""

COMBINATIONS = 24
"""Dtype plans tried beyond equal dtypes, for rules that mix dtypes."""

VALUES = (0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -0.5, 4.0)
"""Constants tried where a rule asks for one."""

PRIMES = (5, 3, 2, 7)
"""Sizes of axes: different ones, so that no rule gets away with mixing them up."""

LONG = (37, 11, 3, 2)
"""Sizes where nothing is reduced or contracted: more points for the same effort."""


_INVERTING = ("square", "system", "determinant")


@dataclass(frozen=True)
class Situation:
    """One way a rule can match.

    Attributes
    ----------
    bindings
        What the rule variables stand for: Variables and numbers.
    leaves
        Variables without owner, by rule variable, and the sizes of their axes.
    required
        Facts that the guards ask of Variables.
    equalities
        Both sides of what the rule unites.
    claims
        Facts of the head: (fact, Variable, number), the number for ``val``, ``dt`` and ``bp``.
    dtypes
        Of the leaves, for reports.
    """

    bindings: Mapping[str, Value]
    leaves: Mapping[str, tuple[Variable, tuple[int, ...]]]
    required: tuple[tuple[str, Variable], ...]
    equalities: tuple[tuple[Variable, Variable], ...]
    claims: tuple[tuple[str, Variable, Number | None], ...]
    dtypes: tuple[str, ...]


def dtype_plans(statement: Statement, random: Random) -> Iterator[DtypePlan]:
    """Every dtype for rules of one dtype; for others equal ones, then random combinations."""
    nodes = [*statement.leaves, *_dtype_literals(statement)]
    groups: list[list[str]] = []
    for node in nodes:
        known = next((group for group in groups if statement.dtypes.are_equal(group[0], node)), None)
        if known is None:
            groups.append([node])
        else:
            known.append(node)
    fixed: dict[str, str] = {}
    for group in groups:
        known_number = statement.dtypes.expression(group[0])
        if is_number(known_number):
            number = int(str(known_number))
            if not 0 <= number < len(DTYPES):
                return
            fixed.update(dict.fromkeys(group, DTYPES[number]))
    free = [group for group in groups if group[0] not in fixed]
    plans = [tuple(dtype for _ in free) for dtype in DTYPES] if free else [()]
    if len(free) > 1:
        plans += [tuple(random.choice(DTYPES) for _ in free) for _ in range(COMBINATIONS)]
    for plan in plans:
        yield fixed | {node: dtype for group, dtype in zip(free, plan, strict=True) for node in group}


def _dtype_literals(statement: Statement) -> list[str]:
    return [name for name, place in statement.literals.items() if place in (("Cast", 1), ("K", 1))]


class SituationSampler:
    """Draws situations of one rule.

    Parameters
    ----------
    statement
        The rule.
    signature
        The constructors in scope.
    construction
        Builds its terms.
    random
        Where choices come from.

    Attributes
    ----------
    inverts
        Whether the rule speaks of inverses or determinants.
    matched
        Whether the patterns and guards of the last draw held, even if the right side could not be built.
    """

    def __init__(
        self, statement: Statement, signature: Signature, construction: Construction, random: Random
    ) -> None:
        self.statement = statement
        self.signature = signature
        self.construction = construction
        self.random = random
        names = {head_of(part) for _, term in statement.patterns for part in parts_of(term)}
        results = {signature[name].result for name in names if name in signature}
        self.is_matrix_rule = not results.isdisjoint(("matmul", *MATRIX_TYPINGS))
        sides = [side for pair in statement.equalities for side in pair]
        terms = [*(term for _, term in statement.patterns), *sides]
        every = {head_of(part) for term in terms for part in parts_of(term)}
        self.inverts = any(signature[name].result in _INVERTING for name in every if name in signature)
        self.is_sparse_rule = any(signature[name].kinds for name in names if name in signature)
        masks = any(signature[name].attribute_sorts for name in names if name in signature)
        self.sizes = PRIMES if masks or "opaque" in results else LONG
        values = [
            float(part)
            for guard in statement.guards
            if any(head_of(inner) == "val" for inner in parts_of(guard))
            for part in parts_of(guard)
            if isinstance(part, str) and is_number(part)
        ]
        self.values = (*dict.fromkeys([*values * 3, *VALUES]),)
        self.wanted = tuple(values)
        self.matched = False

    def draw(self, plan: DtypePlan, mode: str) -> Situation | None:
        """A situation with these dtypes, or None where what was drawn does not fit.

        Parameters
        ----------
        plan
            Dtypes.
        mode
            ``usual``; ``ones``, with sizes that are 1 at run time only; or ``empty``, with sizes that are 0.

        Raises
        ------
        IllTypedError
            When an op of a pattern does not take the dtypes, or the right side is ill typed.
        """
        try:
            self.matched = False
            return _Draw(self, plan, mode).situation()
        except UnfitError:
            return None


class _Draw:
    def __init__(self, sampler: SituationSampler, plan: DtypePlan, mode: str) -> None:
        self.sampler = sampler
        self.statement = sampler.statement
        self.random = sampler.random
        self.plan = plan
        self.mode = mode
        self.dimensions = Dimensions()
        self.shapes: dict[str, Shape] = {}
        self.leaf_shapes: dict[str, tuple[int, ...]] = {}
        self.targets: dict[str, tuple[int, ...]] = {}
        self.sparse: dict[str, Format] = {}
        self.bindings: dict[str, Value] = {}
        self.rank = self.random.choice((2, 3) if sampler.is_matrix_rule else (0, 1, 2, 2, 3, 3))
        if sampler.is_sparse_rule:
            self.rank = 2
        sampler.construction.opaque.clear()

    def situation(self) -> Situation | None:
        # The shape of every pattern first, inner ones before those that use their class.
        for variable, term in self.statement.patterns:
            shape = self._shape(term)
            if variable in self.shapes:
                shape = self.dimensions.elementwise([shape, self.shapes[variable]])
            self.shapes[variable] = shape
        self._square_up()
        leaves = self._leaves()
        build = self.sampler.construction.build
        for variable, term in self.statement.patterns:
            if variable in self.bindings:
                raise UnfitError  # two terms of one class: equal by the author's word only
            self.bindings[variable] = build(term, self.bindings)
        judge = self.sampler.construction.judge
        if not judge.hold(self.statement.guards, self.bindings):
            return None
        self.sampler.matched = True
        required = tuple(dict.fromkeys(judge.required))
        equalities = tuple(
            (build(left, self.bindings), build(right, self.bindings))
            for left, right in self.statement.equalities
        )
        claims = tuple(self._claim(claim) for claim in self.statement.claims)
        dtypes = tuple(dict.fromkeys(self.plan.values()))
        return Situation(dict(self.bindings), leaves, required, equalities, claims, dtypes)

    def _square_up(self) -> None:
        """Give matrices that the guards call square as many rows as columns."""
        for guard in self.statement.guards:
            if head_of(guard).replace("-", "_") in SQUARE_STRUCTURES:
                if str(guard[1]) not in self.shapes:
                    self.shapes[str(guard[1])] = self._leaf_shape(str(guard[1]))
                self.dimensions.square(self.shapes[str(guard[1])])

    def _claim(self, claim: Sexp) -> tuple[str, Variable, Number | None]:
        if head_of(claim) == "=":
            function, value = claim[1], claim[2]
            variable = self.sampler.construction.build(function[1], self.bindings)
            return head_of(function), variable, self.sampler.construction.judge.literal(value, self.bindings)
        return head_of(claim), self.sampler.construction.build(claim[1], self.bindings), None

    # ---- shapes and literals

    def _shape(self, term: Sexp) -> Shape:
        if isinstance(term, str):
            if term not in self.shapes:
                self.shapes[term] = self._leaf_shape(term)
            return self.shapes[term]
        record = self.sampler.signature.get(head_of(term))
        if record is None:
            raise UnfitError
        count = record.operand_count
        if record.kinds or head_of(term) == "Reshape":
            return self._sparse(record, term) if record.kinds else self._reshaped(term)
        shapes = [self._shape(operand) for operand in term[1 : 1 + count]]
        attributes = term[1 + count :]
        if record.result in MATRIX_TYPINGS or record.name == "Output":
            return self._of_matrices(record.result, shapes, attributes)
        match record.result:
            case "cast":
                self._literal(attributes[0], lambda: dtype_number(self.plan[str(attributes[0])]))
                return shapes[0]
            case "dimshuffle":
                word = self._literal(attributes[0], lambda: self._random_word(shapes[0]))
                return permuted(shapes[0], int(word))
            case "reduce" | "argreduce" | "same" if attributes:
                index = record.result == "argreduce"
                mask = self._literal(attributes[0], lambda: random_mask(shapes[0], self.random, index=index))
                shrunk = reduced(shapes[0], int(mask))
                return shapes[0] if record.result == "same" else shrunk
            case "matmul":
                rank = self._literal(attributes[0], lambda: max(map(len, shapes)) or self.rank)
                return self.dimensions.matmul(shapes[0], shapes[1], int(rank))
            case "leaf" if record.name == "K":
                self._literal(attributes[0], lambda: self.random.choice(self.sampler.values))
                self._literal(attributes[1], lambda: dtype_number(self.plan[str(attributes[1])]))
                return SCALAR
            case "same" | "bool" | "real" | "fill":
                return self.dimensions.elementwise(shapes)
        raise UnfitError

    def _of_matrices(self, typing: str, shapes: Sequence[Shape], attributes: Sequence[Sexp]) -> Shape:
        """The shape of a function of matrices, whose attributes are flags and then the rank.

        Of those with several results rules speak of signs and logarithms of determinants, which are alike.
        """
        if typing == "opaque":
            self._literal(attributes[0], lambda: self.random.randint(0, 1))
            return shapes[0]
        for flag in attributes[:-1]:
            self._literal(flag, lambda: self.random.randint(0, 1))
        rank = int(self._literal(attributes[-1], lambda: max(map(len, shapes)) or self.rank))
        first, *others = (shape or (1,) * rank for shape in shapes)
        if any(len(shape) != rank for shape in (first, *others)):
            raise UnfitError
        if typing == "from_diagonal":
            return normalized((*first, *first))
        self.dimensions.square(first)
        kept = {"square": rank, "determinant": rank - 2, "diagonal": rank - 1}
        if typing in kept:
            return normalized(first[: kept[typing]])
        (sides,) = others
        self.dimensions.merge(first[-1], sides[-2])
        batch = self.dimensions.elementwise([first[:-2], sides[:-2]]) or (1,) * (rank - 2)
        return normalized((*batch, *sides[-2:]))

    # ---- sparse matrices: rows, columns, number of stored values

    def _sparse(self, record: ConstructorSignature, term: tuple[Sexp, ...]) -> Shape:
        """The shape of an op on sparse matrices."""
        merge = self.dimensions.merge
        shapes = [self._of_kind(part, kind) for part, kind in zip(term[1:], record.kinds, strict=False)]
        first, others = shapes[0], shapes[1:]
        match record.result:
            case "stored":
                if others:
                    self._require_places(first, self._product(*others) if len(others) == 2 else others[0])
                return first[2:]
            case "structure":
                (values,) = others
                if len(values) != 1:
                    raise UnfitError
                return (*first[:2], merge(first[2], values[0]))
            case "same":
                return normalized(first[:2])
            case "transpose":
                return (first[1], first[0], first[2])
            case "sparse_sum":
                axis = int(self._literal(term[-1], lambda: self.random.randint(0, 1)))
                return normalized((first[1 - axis],))
            case "product":
                return self._product(first, others[0])
            case "usmm":
                product = self._product(others[0], others[1])
                self._require_places((*(product or (1, 1)), 0), others[2])
                return product
        raise UnfitError

    def _of_kind(self, part: Sexp, kind: int | Literal["sparse"]) -> Shape:
        """The shape of an operand that is a sparse matrix, or has so many axes."""
        if kind != "sparse":
            rank, self.rank = self.rank, kind
            shape = self._shape(part)
            self.rank = rank
            return shape
        if isinstance(part, str) and part not in self.shapes:
            sizes = [1 if self.random.random() < 0.1 else self.dimensions.new() for _ in range(2)]
            self.shapes[part] = self.leaf_shapes[part] = (*sizes, self.dimensions.new())
            self.sparse[part] = self.random.choice(("csr", "csc"))
        return self._shape(part)

    def _product(self, left: Shape, right: Shape) -> Shape:
        return self.dimensions.matmul(left[:2], right[:2], 2)

    def _require_places(self, pattern: Shape, dense: Shape) -> None:
        """A dense operand may be stretched over the places of a sparse one, and not the other way round."""
        for place, size in zip(pattern[:2], dense[:2], strict=False):
            if size != 1:
                self.dimensions.merge(place, size)

    def _random_word(self, shape: Shape) -> int:
        axes, rank = random_axes(shape, self.random)
        return permutation_word(axes, rank)

    def _literal(self, part: Sexp, drawn: Any) -> Number:
        part = expand(part)  # a macro without operands is a number
        if not isinstance(part, str):
            raise UnfitError
        if is_number(part):
            return float(part) if "." in part else int(part)
        value = self.bindings.get(part)
        if value is None:
            value = self.bindings[part] = drawn()
        assert isinstance(value, int | float)
        return value

    def _leaf_shape(self, name: str) -> Shape:
        kind = self.random.random()
        rank = self.rank
        structured = self.statement.facts_of(name).intersection(RELATIONS)
        if kind < 0.15 and not structured:
            rank = self.random.randint(0, 3)
        shape = tuple(1 if self.random.random() < 0.25 else self.dimensions.new() for _ in range(rank))
        if self.statement.reads_value(name) and self.random.random() < 0.7:
            shape = ()
        elif structured:
            shape = (*shape[:-2], self.dimensions.new(), self.dimensions.new())
        elif kind > 0.9:
            shape = (1,) * self.random.randint(0, rank)
        self.leaf_shapes[name] = shape
        return normalized(shape)

    def _reshaped(self, term: Sexp) -> Shape:
        """A reshape that merges the first axes, or inserts one."""
        source = self._shape(term[1])
        sizes, number = str(term[2]), str(term[3])
        if not source or not sizes.startswith("?") or sizes in self.shapes:
            raise UnfitError
        merged, inserted = self.random.randint(1, len(source)), self.random.random() < 0.3
        target = (self.dimensions.product(source[:merged]), *source[merged:])
        target = (*source[:1], 1, *source[1:]) if inserted else target
        self.shapes[sizes] = (self.dimensions.new(),)
        self.targets[sizes] = target
        types = tuple(1 if size == 1 else None for size in target)
        self._literal(number, lambda: len(self.sampler.construction.opaque))
        self.sampler.construction.opaque.append(OpaqueOp(Reshape(types), (len(source), 1)))
        return normalized(target)

    # ---- leaves

    def _leaves(self) -> dict[str, tuple[Variable, tuple[int, ...]]]:
        available = list(self.sampler.sizes)
        if self.mode == "ones":
            available[self.random.randrange(2)] = 1
        elif self.mode == "empty":
            available[self.random.randrange(2)] = 0
        sizes = self.dimensions.sizes(available)
        leaves: dict[str, tuple[Variable, tuple[int, ...]]] = {}
        for name in self.statement.leaves:
            if name in self.targets:
                vector = np.array([sizes[size] for size in self.targets[name]], np.int64)
                self.bindings[name] = Constant(TensorType("int64", shape=vector.shape), vector)
                continue
            if name not in self.leaf_shapes:
                self._shape(name)
            shape = tuple(sizes[size] for size in self.leaf_shapes[name])
            leaf = self._leaf(name, shape)
            self.bindings[name] = leaf
            if not isinstance(leaf, Constant):
                leaves[name] = (leaf, shape)
        return leaves

    def _leaf(self, name: str, shape: tuple[int, ...]) -> Variable:
        dtype = self.plan[name]
        if self.statement.reads_value(name):
            data = self._constant(dtype, shape)
            return Constant(TensorType(dtype, shape=shape), data, name)
        if name in self.sparse:
            if dtype == "float16":
                raise IllTypedError("SciPy has no sparse matrices of float16")
            rows, columns = (1 if size == 1 else None for size in self.leaf_shapes[name][:2])
            return SparseType(self.sparse[name], dtype, (rows, columns)).make_variable(name.lstrip("?"))
        flags = tuple(size == 1 for size in self.leaf_shapes[name])
        leaf = Variable(TensorType(dtype, flags), name=name.lstrip("?"))
        if not all(is_derivable(fact, leaf) for fact in self.statement.facts_of(name)):
            raise UnfitError
        return leaf

    def _constant(self, dtype: str, shape: Sequence[int]) -> NDArray[Any]:
        wanted = self.sampler.wanted if self.random.random() < 0.8 and self.sampler.wanted else VALUES
        value = self.random.choice(wanted)
        with np.errstate(all="ignore"):
            data = np.full(shape, value).astype(dtype)
        if not np.all(data == value):
            raise UnfitError
        return data
