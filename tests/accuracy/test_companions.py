"""An output is as accurate beside others as alone, with declared sizes or without: random programs."""

from benchmarks.companions import regressions


def test_no_output_loses_by_what_is_computed_beside_it() -> None:
    assert regressions(25, seed=1) == []
