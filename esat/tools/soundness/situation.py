"""Situations of a rule: types, shapes and literals under which its patterns match and its guards hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.classic.rules.conditions import Value
from esat.classic.rules.graph_terms import Literal as Number
from esat.egraph.language.signature import MATRIX_TYPINGS, Signature
from esat.graph import Constant, TensorType, Variable
from esat.graph.sparse_type import SparseType
from esat.rules.language.reader import Sexp, head_of, is_number
from esat.tools.soundness.construction import Construction, IllTypedError, is_derivable
from esat.tools.soundness.dimensions import (
    UnfitError,
)
from esat.tools.soundness.dtype_plans import DtypePlan
from esat.tools.soundness.statement import Statement, parts_of
from esat.tools.soundness.term_shapes import TermShapes

VALUES = (0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -0.5, 4.0)
"""Constants tried where a rule asks for one."""

PRIMES = (5, 3, 2, 7)
"""Sizes of axes: different ones, so that no rule gets away with mixing them up."""

LONG = (37, 11, 3, 2)
"""Sizes where nothing is reduced or contracted: more points for the same effort."""

_INVERTING = ("square", "system", "square_system", "determinant")


@record(frozen=True)
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
        self.bindings: dict[str, Value] = {}
        rank = self.random.choice((2, 3) if sampler.is_matrix_rule else (0, 1, 2, 2, 3, 3))
        opaque = sampler.construction.opaque
        opaque.clear()
        self.shapes = TermShapes(
            self.statement,
            sampler.signature,
            plan,
            2 if sampler.is_sparse_rule else rank,
            sampler.values,
            opaque,
            self.random,
        )

    def situation(self) -> Situation | None:
        self.shapes.of_patterns()
        self.shapes.square_up()
        self.bindings.update(self.shapes.literals)
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

    def _claim(self, claim: Sexp) -> tuple[str, Variable, Number | None]:
        if head_of(claim) == "=":
            function, value = claim[1], claim[2]
            variable = self.sampler.construction.build(function[1], self.bindings)
            return head_of(function), variable, self.sampler.construction.judge.literal(value, self.bindings)
        return head_of(claim), self.sampler.construction.build(claim[1], self.bindings), None

    def _leaves(self) -> dict[str, tuple[Variable, tuple[int, ...]]]:
        available = list(self.sampler.sizes)
        if self.mode == "ones":
            available[self.random.randrange(2)] = 1
        elif self.mode == "empty":
            available[self.random.randrange(2)] = 0
        sizes = self.shapes.dimensions.sizes(available)
        leaves: dict[str, tuple[Variable, tuple[int, ...]]] = {}
        for name in self.statement.leaves:
            if name in self.shapes.targets:
                vector = np.array([sizes[size] for size in self.shapes.targets[name]], np.int64)
                self.bindings[name] = Constant(TensorType("int64", shape=vector.shape), vector)
                continue
            shape = tuple(sizes[size] for size in self.shapes.leaves[name])
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
        if name in self.shapes.sparse:
            if dtype == "float16":
                raise IllTypedError("SciPy has no sparse matrices of float16")
            rows, columns = (1 if size == 1 else None for size in self.shapes.leaves[name][:2])
            return SparseType(self.shapes.sparse[name], dtype, (rows, columns)).make_variable(
                name.lstrip("?")
            )
        flags = tuple(size == 1 for size in self.shapes.leaves[name])
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
