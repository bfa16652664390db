"""A wrong rule among those that derive facts about matrices, for tests of what finds it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from esat.egraph.analyses import fact_rules, structure
from esat.egraph.preparation import prepare

TRIDIAGONAL_PRODUCTS = (
    "(rule ((= e (MatMul a b r)) (tridiagonal a) (tridiagonal b)) ((set (tridiagonal e) ()))"
    ' :ruleset esat-known :name "planted")'
)
"""Says that products of tridiagonal matrices are tridiagonal: kernels would skip elements."""

NONNEGATIVE_PRODUCTS = (
    "(rule ((= e (ReduceProd x m)) (float-dtype (dt x))) ((nonnegative e))"
    ' :ruleset esat-facts :name "planted")'
)
"""Says that no product over an axis is negative."""


@contextmanager
def planted_rule(rule: str) -> Iterator[None]:
    """Derive facts by one more rule inside a ``with`` block, and keep nothing that was prepared with it."""
    program = structure.structure_program() + rule
    with pytest.MonkeyPatch.context() as patch:
        for module in (prepare, fact_rules):
            patch.setattr(module, "structure_program", lambda: program)
        patch.setattr(prepare, "prepared_rules", lambda digest, rules, make: make())
        patch.setattr(prepare, "machine_program", lambda digest, make: make())
        _forget()
        try:
            yield
        finally:
            _forget()


def _forget() -> None:
    prepare.prepared.cache_clear()
    fact_rules.conclusions.cache_clear()
