"""Products of sums of quotients: factors go into a sum where they cancel what its terms are divided by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esat.classic.chains import PRODUCTS, SUMS, Chain, chain_of, follow, is_inner, plan, product
from esat.classic.graph_terms import same
from esat.classic.local import Transformed, local_optimizer
from esat.classic.rewriting.parts import fitting, used_once
from esat.graph import Apply, Variable
from esat.graph.constants import constant
from esat.ops.elementwise.record import Elementwise
from esat.records import record


@record(frozen=True, slots=True)
class _Term:
    above: tuple[Variable, ...]
    below: tuple[Variable, ...]

    def times(self, factor: Variable) -> _Term:
        place = _place(self.below, factor)
        if place is None:
            return _Term((*self.above, factor), self.below)
        below = (*self.below[:place], *self.below[place + 1 :])
        one = constant(np.ones((), factor.tensor_type.dtype))
        return _Term(self.above if self.above or below else (one,), below)


@local_optimizer([Elementwise])
def local_greedy_distributor(node: Apply) -> Transformed:
    """(a / x + b / y) * x * y -> a * y + b * x: factors go in where divisions saved outweigh products.

    Beside work this saves 0 / 0 * 0 where x underflowed: gradients of cross entropies are such products.
    """
    output = node.outputs[0]
    if node.op.name not in PRODUCTS or output.tensor_type.kind not in "fc" or is_inner(output, PRODUCTS):
        return False
    chain = chain_of(output, PRODUCTS)
    for place, total in enumerate(chain.above):
        if total.owner is None or total.owner.op.name not in SUMS or not used_once(total):
            continue
        others = [*chain.above[:place], *chain.above[place + 1 :]]
        summed = chain_of(total, SUMS)
        terms = [_term(term) for term in (*summed.above, *summed.below)]
        kept = []
        for factor in others:
            saved = sum(_place(term.below, factor) is not None for term in terms)
            if saved and len(terms) - saved <= saved:
                terms = [term.times(factor) for term in terms]
            else:
                kept.append(factor)
        if len(kept) < len(others):
            result = product([_sum(summed, terms), *kept], chain.below)
            return fitting(node, result)
    return False


def _term(variable: Variable) -> _Term:
    if not used_once(variable):
        return _Term((variable,), ())
    chain = chain_of(variable, PRODUCTS)
    return _Term(chain.above, chain.below)


def _sum(summed: Chain, terms: Sequence[_Term]) -> Variable:
    values = [product(term.above, term.below) for term in terms]
    count = len(summed.above)
    return follow(plan(SUMS, values[:count], values[count:]), values)


def _place(factors: Sequence[Variable], factor: Variable) -> int | None:
    return next((index for index, other in enumerate(factors) if same(other, factor)), None)
