"""Situations of rules that name ops which only Python types, drawn with the parameters of these ops.

No signature says which parameters an op takes: some are tried, until its class takes them. What the rule
makes of the left side in a graph is its right side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import Field, fields, is_dataclass
from random import Random
from typing import Any

from esat.classic.rules.conditions import Value
from esat.classic.rules.rule_rewriter import RuleContext, RuleRewriter
from esat.egraph.language.signature import Signature
from esat.errors import EsatError, RuleError
from esat.graph import TensorType, Variable
from esat.graph.constants import constant
from esat.ops.annotations.assume import ASSUMABLE, assume
from esat.ops.index.entries import Slice
from esat.rules.language.reader import Sexp, head_of, is_variable
from esat.rules.language.rule import Rule
from esat.tools.soundness.construction import IllTypedError
from esat.tools.soundness.dtype_plans import DtypePlan
from esat.tools.soundness.situation import VALUES, Situation

DTYPE_PLANS: tuple[DtypePlan, ...] = ({"": "float64"}, {"": "float32"}, {"": "int64"}, {"": "bool"})
"""Dtypes of most operands; some others are integers, which may be indices."""

_ATTEMPTS = 100
_OPERAND = "operand"
_SIZES = (11, 3, 2)
_NUMBERS = (0, 1, -1, 2, 3, 5)
_PARAMETERS = (*_NUMBERS, *_NUMBERS, 0.5, 2.0, 1.0, "", "float64", "int64", True, False, None)


class OpaqueSampler:
    """Draws situations of one rule.

    Attributes
    ----------
    inverts
        As of a :class:`~esat.tools.soundness.situation.SituationSampler`.
    matched
        Whether the left side matched in the last draw, even if the right side could not be built.
    """

    inverts = False

    def __init__(self, rule: Rule, signature: Signature, random: Random) -> None:
        self.rewriter = RuleRewriter(rule, RuleContext(signature))
        self.random = random
        self.matched = False
        self.facts = {
            str(part[1]): head_of(part).replace("-", "_")
            for part in self.rewriter.conditions
            if head_of(part).replace("-", "_") in ASSUMABLE and isinstance(part[1], str)
        }
        kinds = dict(self._variables(self.rewriter.pattern))
        self.operands = [name for name, kind in kinds.items() if kind == _OPERAND]
        self.parameters = {name: kind for name, kind in kinds.items() if kind != _OPERAND}

    def draw(self, plan: DtypePlan, mode: str) -> Situation | None:
        """A situation with operands of a plan's dtype, with empty ones or such of one element in two modes.

        Raises
        ------
        IllTypedError
            For a right side that its ops do not take.
        """
        self.matched = False
        for _ in range(_ATTEMPTS):
            leaves: dict[str, tuple[Variable, tuple[int, ...]]] = {}
            bindings: dict[str, Value] = {
                name: self._operand(name, plan[""], mode, leaves) for name in self.operands
            }
            bindings |= {name: self._parameter(kind) for name, kind in self.parameters.items()}
            left = self._left_side(bindings)
            if left is None or left.owner is None:
                continue
            try:
                right = self.rewriter.transform(left.owner)
            except RuleError as error:
                self.matched = True
                raise IllTypedError(str(error)) from error
            if right:
                self.matched = True
                other = right[0] if isinstance(right, Sequence) else right.get(left)
                if other is None:
                    continue
                required = tuple(
                    (self.facts[name].replace("_", "-"), leaf)
                    for name, (leaf, _) in leaves.items()
                    if name in self.facts
                )
                dtypes = tuple(dict.fromkeys(leaf.tensor_type.dtype for leaf, _ in leaves.values()))
                return Situation(bindings, leaves, required, ((left, other),), (), dtypes)
        return None

    def _variables(self, term: Sexp, kind: str = _OPERAND) -> Iterator[tuple[str, str]]:
        """Variables of a pattern, and what they stand for: operands, or parameters of a type."""
        if isinstance(term, str):
            if is_variable(term) and term != "_":
                yield term, kind
            return
        kinds = self._kinds(term) if kind == _OPERAND else ["int"] * len(term)
        for part, own in zip(term[1:], kinds, strict=False):
            yield from self._variables(part, own)

    def _kinds(self, term: tuple[Sexp, ...]) -> list[str]:
        """What stands where behind the name of an op."""
        record = self.rewriter.context.signature.operators.get(head_of(term))
        named = self.rewriter.context.named.get(head_of(term))
        if named is not None:
            parameters = named.parameters or ()
            known: tuple[Field[Any], ...] = fields(named.family) if is_dataclass(named.family) else ()
            types = {part.name: str(part.type) for part in known}
            operands = len(term) - 1 - len(parameters)
            return [_OPERAND] * operands + [types.get(name, "") for name in parameters]
        places = (0,) if head_of(term) == "Output" else () if record is None else record.tensor_operands
        return [_OPERAND if place in places else "int" for place in range(len(term) - 1)]

    def _operand(
        self, name: str, dtype: str, mode: str, leaves: dict[str, tuple[Variable, tuple[int, ...]]]
    ) -> Variable:
        if self.random.random() < 0.15:
            return constant(self.random.choice(VALUES), "float64")
        own = "int64" if self.random.random() < 0.25 else dtype
        shape = tuple(self.random.choice(_SIZES) for _ in range(self.random.choice((1, 1, 2, 2, 3, 0))))
        if mode != "usual" and shape:
            axis = self.random.randrange(len(shape))
            shape = (*shape[:axis], int(mode == "ones"), *shape[axis + 1 :])
        known = self.random.random() < 0.5
        type = TensorType(own, shape=tuple(size if known or size == 1 else None for size in shape))
        leaf = Variable(type, name=name)
        leaves[name] = leaf, shape
        try:
            return assume(leaf, self.facts[name]) if name in self.facts else leaf
        except EsatError:
            return leaf

    def _parameter(self, kind: str) -> Any:
        if kind == "int":
            return self.random.choice(_NUMBERS)
        if kind.startswith("tuple") or (not kind and self.random.random() < 0.3):
            return tuple(self._entry() for _ in range(self.random.choice((1, 2, 3))))
        return self.random.choice(_PARAMETERS)

    def _entry(self) -> int | Slice:
        kind = self.random.random()
        if kind < 0.3:
            return Slice()
        if kind < 0.5:
            return self.random.choice((0, 1, -1))
        start, stop = (self.random.choice((None, 0, 1, 2, 5, -1)) for _ in range(2))
        return Slice(start, stop, self.random.choice((None, 1, 2, -1)))

    def _left_side(self, bindings: dict[str, Value]) -> Variable | None:
        pattern = self.rewriter.pattern
        is_output = pattern[0] == "Output"
        try:
            built = self.rewriter.build(pattern[1] if is_output else pattern, bindings)
        except RuleError:
            return None  # an op does not take these
        if built is None or not is_output:
            return built
        number = str(pattern[2])
        results = [] if built.owner is None else built.owner.outputs
        return results[int(number)] if number.isdigit() and int(number) < len(results) else None
