"""What an engine is told of terms: how they are loaded, and whether they go on with others."""

from __future__ import annotations

from collections.abc import Sequence

from esat.base.records import record
from esat.egraph.language.constructors import undeclared_constructors
from esat.egraph.language.loader import Loading, LoadPlan, flatten, loading
from esat.egraph.language.signature import ConstructorSignature
from esat.egraph.language.terms import TermGraph
from esat.egraph.preparation.rule_program import RuleProgram
from esat.graph import Constant


@record(frozen=True, eq=False)
class Told:
    """Terms, and how an engine is told of them.

    Attributes
    ----------
    terms, plan, loading
        The terms, the forms in which they are loaded, and what does it.
    undeclared
        Constructors of them that the program lacks.
    """

    terms: TermGraph
    plan: LoadPlan
    loading: Loading
    undeclared: Sequence[ConstructorSignature]

    @classmethod
    def of(cls, terms: TermGraph, program: RuleProgram) -> Told:
        """How to tell of terms."""
        plan = flatten(terms, program.strict)
        return cls(terms, plan, loading(terms, plan), undeclared_constructors(terms, program.signature))

    def goes_on(self, known: Told) -> bool:
        """Whether the terms begin with others, and are numbered like them."""
        own, old = self.terms, known.terms
        begins = ((own.terms, old.terms), (own.opaque, old.opaque), (own.equal, old.equal))
        return (
            own.roots == old.roots
            and len(own.inputs) >= len(old.inputs)
            and len(own.arrays) >= len(old.arrays)
            and all(new is first for new, first in zip(own.inputs, old.inputs, strict=False))
            and all(_are_alike(*pair) for pair in zip(own.arrays, old.arrays, strict=False))
            and all(new[: len(first)] == first for new, first in begins)
        )


def _are_alike(left: Constant, right: Constant) -> bool:
    """Whether two constants have the same elements, bit for bit; folding makes them anew each time."""
    return left is right or (left.type == right.type and left.data.tobytes() == right.data.tobytes())
