"""A short run of the benchmark that harms the cache; `python -m benchmarks.cache_faults` is the long one."""

from __future__ import annotations

from benchmarks.cache_faults import KINDS, run


def test_no_fault_gives_a_wrong_result_or_a_crash():
    outcome = run(2 * len(KINDS), seed=1)
    assert {kind: (counts["wrong"], counts["crashed"]) for kind, counts in outcome.items()} == dict.fromkeys(
        KINDS, (0, 0)
    )
    assert all(counts["rounds"] == 2 for counts in outcome.values())
