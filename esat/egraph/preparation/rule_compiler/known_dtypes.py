"""Dtypes of a rule's terms as a union-find: which are known to be equal, and which equal a known dtype id.

Nodes are tensor variables (their dtype), and the integers and integer variables that stand for a dtype id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from esat.base.union_find import UnionFind
from esat.egraph.preparation.rule_compiler.families import DIVIDING, canonical, family_of, flatten
from esat.egraph.preparation.rule_compiler.surface import SurfaceRule
from esat.graph.types import DTYPES
from esat.rules.language.reader import Sexp, head_of, is_number, subforms

BOOL = "0"
"""Dtype id of bool."""

FIRST_FLOAT = "9"
"""The smallest dtype id of the floats; complex dtypes follow them."""


@dataclass
class Dtypes:
    """The dtypes that the patterns and guards of a rule make known.

    `demands` are the guards that terms of the head need beyond that.
    """

    surface: SurfaceRule
    demands: list[Sexp] = field(default_factory=list)
    binary_heads: set[Sexp] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._equal = UnionFind[str]()
        self._tensors: set[str] = set()
        self._numeric: list[str] = []
        self._floating: list[str] = []
        for variable, term in self.surface.patterns:
            self._tensors.add(variable)
            dtype = self._of_matched(term)
            if dtype is not None:
                self._unite(variable, dtype)
        for guard in self.surface.guards:
            self._learn(guard)

    # ---- which are equal

    def _unite(self, one: str, other: str) -> None:
        one, other = self._find(one), self._find(other)
        if one != other and is_number(one) and is_number(other):
            raise self.surface.rule.error(f"a term would need dtype id {one} and {other} at once")
        if is_number(other):
            one, other = other, one
        self._equal.unite(one, other)

    def _find(self, node: str) -> str:
        return self._equal.find(node)

    def _class_of(self, node: str) -> list[str]:
        root = self._find(node)
        known = {node, root, *self._equal.parent}
        return sorted(member for member in known if self._find(member) == root)

    def expression(self, node: str) -> Sexp:
        """Expression for a dtype id."""
        root = self._find(node)
        if is_number(root):
            return root
        members = self._class_of(node)
        # A dtype variable read from the rule is bound anyway; otherwise read it off a tensor.
        return next((("dt", member) for member in members if member in self._tensors), members[0])

    def are_equal(self, one: str, other: str) -> bool:
        """Whether two dtypes are known to be the same."""
        return self._find(one) == self._find(other)

    def is_bool(self, node: str) -> bool:
        """Whether a dtype is known to be bool."""
        return self._find(node) == BOOL

    def number_guards(self) -> list[Sexp]:
        """Facts that keep the AC terms of the body from matching bools."""
        guards = (("!=", self.expression(node), BOOL) for node in self._numeric)
        return list(dict.fromkeys(guards))

    def require_possible(self) -> None:
        """Refuse a rule that no dtypes make well typed: one that takes floats where it has bools or integers.

        Errors
        ------
        RuleError
            If there are none.
        """
        for node in self._floating:
            dtype = self._find(node)
            if is_number(dtype) and int(dtype) < int(FIRST_FLOAT):
                raise self.surface.rule.error(
                    f"it can never fire: a term would need to be {DTYPES[int(dtype)]} and a float at once, "
                    "and a rule does not change dtypes"
                )

    # ---- what the body says

    def _of_matched(self, term: Sexp) -> str | None:
        """Dtype of a term of the body; unites what the term proves equal."""
        if isinstance(term, str):
            if term.startswith("?"):
                self._tensors.add(term)
                return term
            return None
        if family_of(term):
            return self._of_matched_group(term)
        return self._of_application(term, self._of_matched, self._unite, self._floating.append)

    def _of_matched_group(self, term: Sexp) -> str | None:
        dtypes = [dtype for dtype in map(self._of_matched, flatten(term).operands) if dtype is not None]
        for other in dtypes[1:]:
            self._unite(dtypes[0], other)
        if not dtypes:
            return None
        self._numeric.append(dtypes[0])
        if any(head_of(part) in DIVIDING for part in _tree(term)):
            self._floating.append(dtypes[0])
        return dtypes[0]

    def _of_application(
        self,
        term: tuple[Sexp, ...],
        dtype_of: Callable[[Sexp], str | None],
        equate: Callable[[str, str], None],
        make_floats: Callable[[str], None],
    ) -> str | None:
        """Dtype of a constructor application; tells `equate` and `make_floats` what it implies or needs."""
        operator = self.surface.signature.get(head_of(term))
        if operator is None or len(operator.operands) != len(term) - 1:
            for operand in term[1:]:
                if self.surface.is_term(operand):
                    dtype_of(operand)
            return None
        shared: str | None = None
        for place, index in enumerate(operator.tensor_operands):
            dtype = dtype_of(term[1 + index])
            demanded = operator.operand_dtype(place)
            if dtype is None or not demanded:
                continue
            if demanded == "bool":
                equate(dtype, BOOL)
            else:
                if shared is not None:
                    equate(shared, dtype)
                shared = dtype
        if shared is not None and operator.floats:
            make_floats(shared)
        return self._result(term, operator.dtype, shared)

    @staticmethod
    def _result(term: Sexp, rule: str, shared: str | None) -> str | None:
        if rule == "same":
            return shared
        if rule == "bool":
            return BOOL
        if rule.startswith("#"):
            value = term[1 + int(rule[1:])]
            return value if isinstance(value, str) else None
        return None

    def _learn(self, guard: Sexp) -> None:
        """Use a guard ``(= (dt x) ...)``; what has a type is a tensor."""
        for part in subforms(guard):
            if head_of(part) in ("bp", "dt") and isinstance(part[-1], str):
                self._tensors.add(part[-1])
        if head_of(guard) != "=" or len(guard) != 3:
            return
        nodes: list[str] = []
        for side in guard[1:]:
            if head_of(side) == "dt" and len(side) == 2:
                dtype = self.of_built(side[1], demand=False)
                if dtype is None:
                    return
                nodes.append(dtype)
            elif isinstance(side, str):
                nodes.append(side)
        if len(nodes) == 2 and any(head_of(side) == "dt" for side in guard[1:]):
            self._unite(*nodes)

    # ---- what the head needs

    def of_built(self, term: Sexp, *, demand: bool = True) -> str | None:
        """Dtype of a term of the head; with `demand`, notes the guards it needs to be well typed."""
        if isinstance(term, str):
            return term if term in self._tensors else None
        if family_of(term):
            return self._of_built_group(term, demand)
        return self._of_application(
            term,
            lambda operand: self.of_built(operand, demand=demand),
            lambda one, other: self._demand_equal(one, other, demand),
            lambda node: self._demand_floats(node, demand),
        )

    def _of_built_group(self, term: Sexp, demand: bool) -> str | None:
        dtypes = [self.of_built(operand, demand=demand) for operand in flatten(term).operands]
        known = [dtype for dtype in dtypes if dtype is not None]
        if len(known) < len(dtypes):
            self.binary_heads.add(canonical(term))
            return known[0] if known else None
        for other in known[1:]:
            self._demand_equal(known[0], other, demand)
        if any(head_of(part) in DIVIDING for part in _tree(term)):
            self._demand_floats(known[0], demand)
        elif demand and not self._is_proven(known[0], self._numeric + self._floating):
            self.demands.append(("!=", self.expression(known[0]), BOOL))
            self._numeric.append(known[0])
        return known[0]

    def _is_proven(self, node: str, proofs: list[str]) -> bool:
        return any(self.are_equal(node, proof) for proof in proofs)

    def _demand_floats(self, node: str, demand: bool) -> None:
        if demand and not self._is_proven(node, self._floating):
            self.demands.append((">=", self.expression(node), FIRST_FLOAT))
            self._floating.append(node)

    def _demand_equal(self, one: str, other: str, demand: bool) -> None:
        if demand and not self.are_equal(one, other):
            self.demands.append(("=", self.expression(one), self.expression(other)))
            self._unite(one, other)

    def demand_equal(self, one: str, other: str) -> None:
        """Demand that two dtypes are the same."""
        self._demand_equal(one, other, demand=True)


def _tree(term: Sexp) -> list[tuple[Sexp, ...]]:
    """The nodes of the maximal tree of one family that `term` is the root of."""
    family = family_of(term)
    nodes: list[tuple[Sexp, ...]] = []
    pending = [term]
    while pending:
        part = pending.pop()
        if not isinstance(part, str) and family_of(part) == family:
            nodes.append(part)
            pending.extend(part[1:])
    return nodes
