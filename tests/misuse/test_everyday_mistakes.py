"""Mistakes of every day whose errors NumPy, SciPy or Python would word for their own objects."""

import numpy as np
import pytest
import scipy.optimize

import esat
from esat.errors import EsatError, TracedAttributeError, TracingError


def test_attributes_that_variables_and_numbers_do_not_have() -> None:
    x = esat.vector("x")
    with pytest.raises(TracedAttributeError, match=r"did you mean: .*cumsum(?s:.)*test_everyday_mistakes"):
        x.cumsums
    assert not hasattr(x, "values")
    with pytest.raises(
        TracedAttributeError, match=r"float of Python's has no attribute 'shape'.*np\.asarray"
    ):
        esat.jit(lambda x: x.shape)(1.0)
    with pytest.raises(TracedAttributeError, match="int of Python's has no attribute"):
        esat.jit(lambda n: n.mean())(3)


def test_what_a_library_hides_is_told() -> None:
    """SciPy's code in C asks for a number, and says something else of what it is told."""

    def root(a: float) -> float:
        found: float = scipy.optimize.brentq(lambda v: v * v - a, 0, 2)
        return found

    with pytest.raises(TracingError, match=r"known only when the program runs(?s:.)*\.root"):
        esat.jit(root)(2.0 * np.ones(()))
    s = esat.scalar("s")
    with pytest.raises(EsatError, match="no truth value before it is computed"):
        scipy.optimize.brentq(lambda v: v * v - s, 0, 2)
    assert esat.jit(lambda x: x * root(1.0))(2.0) == pytest.approx(2.0)
