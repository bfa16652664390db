"""An output is as accurate beside others as alone, with declared sizes or without: random programs."""

import esat
from benchmarks.companions import regressions


def test_no_output_loses_by_what_is_computed_beside_it() -> None:
    assert regressions(25, seed=1) == []


def test_a_negative_beside_does_not_hide_a_common_factor() -> None:
    """x = -(-x) is an element of sums and products, also where -x is older than what is equal to it."""
    x, y = esat.vector("x"), esat.vector("y")
    function = esat.compile(esat.Graph([x, y], [x * y + x, 1 / (1 + esat.exp(-x))]))
    bits = function.report.accuracy
    alone = esat.compile(esat.Graph([x, y], [x * y + x])).report.accuracy
    assert abs(bits[0].best - alone[0].best) < 0.2
    assert function([3.0], [-1 + 1e-15])[0] == 3 * (1 + (-1 + 1e-15))
