"""The benchmark of growing programs: exponents, goals, and that each family is a program."""

import numpy as np
import pytest

from benchmarks.peers.scale_cases import FAMILIES, Family
from benchmarks.peers.scale_worker import seconds_to_result
from benchmarks.scale import Growth, missed


def test_exponents() -> None:
    assert Growth({10: 1.0, 20: 4.0, 40: 16.0}).exponent == pytest.approx(2.0)
    assert Growth({10: 1.0}).exponent is None
    assert "exponent 1.00" in str(Growth({10: 1.0, 20: 2.0}))


def test_goals() -> None:
    slow, quick = Growth({150: 9.0, 300: 19.0}), Growth({150: 2.0, 300: 3.0})
    assert not missed({("chain", "esat"): quick, ("chain", "jax"): slow})
    assert len(missed({("chain", "esat"): Growth({10: 1.0, 20: 4.0})})) == 1
    assert len(missed({("chain", "esat"): Growth({}, "died")})) == 1
    recurrence = "recurrence with gradient"
    assert len(missed({(recurrence, "esat"): slow, (recurrence, "jax"): quick})) == 1


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_each_family_compiles_and_grows(family: Family) -> None:
    assert 0.0 < seconds_to_result("esat", family, 9) < 60.0
    assert np.prod(family.ranks(4)) > 0
    assert family.size >= 50
