"""Terms of a rule as Variables, so that the ops' own definitions give their types and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from esat.classic.rules.conditions import Bindings, Conditions, Unknown, Value
from esat.classic.rules.graph_terms import Literal, built
from esat.egraph.analyses.structure import RELATIONS
from esat.egraph.analyses.uniform import broadcast_of, dtype_of
from esat.egraph.language.signature import Signature
from esat.egraph.language.terms import RankedOp
from esat.errors import EsatError
from esat.graph import Variable
from esat.graph.types import DTYPES
from esat.ops.inference.structure import NUMBERS, RANGES, REAL_STRUCTURES
from esat.rules.language.reader import Sexp, head_of, show
from esat.rules.language.rule_signature import TENSOR, Operator


class IllTypedError(Exception):
    """A term gives an op operands of other types than it takes."""


class Judge(Conditions):
    """Decides guards; what is asked of values is noted, to be seen to when values are drawn.

    Attributes
    ----------
    required
        Pairs (fact, Variable) that the guards asked for.
    """

    def __init__(
        self,
        signature: Signature,
        operators: Mapping[str, Operator],
        build: Callable[[Sexp, Bindings], Variable],
    ) -> None:
        super().__init__(signature)
        self.operators = dict(operators)
        self.build = build
        self.required: list[tuple[str, Variable]] = []

    def hold(self, guards: Sequence[Sexp], bindings: dict[str, Value]) -> bool:
        """Whether all guards hold, in whatever order they bind variables."""
        self.required = []
        pending = list(guards)
        while pending:
            refused = [guard for guard in pending if not self.holds(guard, bindings)]
            if len(refused) == len(pending):
                return False
            pending = refused
        return True

    def holds(self, condition: Sexp, bindings: dict[str, Value]) -> bool:
        name = head_of(condition)
        if name in ("=", "!=") and len(condition) == 3:
            sides = [bindings.get(side) if isinstance(side, str) else None for side in condition[1:]]
            if all(isinstance(side, Variable) for side in sides):
                return (sides[0] is sides[1]) == (name == "=")
        try:
            return super().holds(condition, bindings)
        except ValueError:
            return False  # a shift by a negative number, which matches nothing in egglog either

    def _type_of_term(self, name: str, term: tuple[Sexp, ...], bindings: Bindings) -> Literal:
        try:
            return super()._type_of_term(name, term, bindings)
        except Unknown:
            # The e-graph stores the types of terms whose constructors have no typing rule.
            variable = self.build(term, bindings)
            return dtype_of(variable) if name == "dt" else broadcast_of(variable)

    def _fact(self, name: str, operands: list[Sexp], bindings: Bindings) -> bool:
        if name not in (*NUMBERS, "integral", *RANGES, *RELATIONS):
            return super()._fact(name, operands, bindings)
        variable = bindings.get(str(operands[0]))
        if not isinstance(variable, Variable) or not is_derivable(name, variable):
            return False
        self.required.append((name, variable))
        return True


def is_derivable(fact: str, variable: Variable) -> bool:
    """Whether the e-graph can know such a fact of a value of this dtype at all.

    Integers wrap around and complex numbers have no order: of them only what their dtype says is known. Rows
    and columns have no structure.
    """
    kind = variable.tensor_type.kind
    if fact in RELATIONS:
        real = fact.replace("-", "_") in REAL_STRUCTURES
        flags = variable.tensor_type.broadcastable
        return len(flags) >= 2 and True not in flags[-2:] and (kind == "f" or not real)
    if fact == "integral":
        return kind in "iuf"
    return kind == "f" or (kind == "u" and fact == "nonnegative")


class Construction:
    """Builds terms from Variables under bindings of rule variables.

    Attributes
    ----------
    judge
        Evaluates literals and guards.
    opaque
        What the numbers of ops without a form of their own refer to.
    """

    def __init__(self, signature: Signature, operators: Mapping[str, Operator]) -> None:
        self.judge = Judge(signature, operators, self.build)
        self.opaque: list[RankedOp] = []

    def build(self, term: Sexp, bindings: Bindings) -> Variable:
        """The Variable of a term.

        Raises
        ------
        IllTypedError
            When an op would have to cast an operand, does not take it, or is none that can be computed.
        """
        if isinstance(term, str):
            value = bindings.get(term)
            if not isinstance(value, Variable):
                raise IllTypedError(f"{term} stands for no tensor")
            return value
        name = head_of(term)
        operator = self.judge.operators.get(name)
        if operator is None or len(operator.operands) != len(term) - 1:
            raise IllTypedError(f"{show(term)} cannot be computed")
        operands = [
            self.build(part, bindings)
            for part, sort in zip(term[1:], operator.operands, strict=True)
            if sort == TENSOR
        ]
        literals = self._literals(term, operator, bindings)
        try:
            result = self._apply(name, operands, literals)
        except (EsatError, ValueError) as error:
            raise IllTypedError(str(error)) from error
        if result is None:
            raise IllTypedError(f"{name} stands for no op that can be computed")
        _require_no_cast(name, operands, result)
        return result

    def _literals(self, term: Sexp, operator: Operator, bindings: Bindings) -> list[Literal]:
        try:
            return [
                self.judge.literal(part, bindings)
                for part, sort in zip(term[1:], operator.operands, strict=True)
                if sort != TENSOR
            ]
        except Unknown as error:
            raise IllTypedError(f"{show(term)}: {error} is not known") from error

    def _apply(self, name: str, operands: list[Variable], literals: list[Literal]) -> Variable | None:
        if name != "Reshape":
            return built(name, operands, literals)
        return self.opaque[int(literals[-1])].op.make_node(*operands).outputs[0]


def _require_no_cast(name: str, operands: Sequence[Variable], result: Variable) -> None:
    """The e-graph holds operands as they are: casts that a frontend would insert are missing."""
    node = result.owner
    if node is None or len(node.inputs) != len(operands) or name in ("Cast", "DimShuffle"):
        return
    given = [DTYPES[dtype_of(operand)] for operand in operands]
    taken = [DTYPES[dtype_of(operand)] for operand in node.inputs]
    if given != taken:
        raise IllTypedError(f"{name} is given {', '.join(given)}, but computes in {', '.join(taken)}")
