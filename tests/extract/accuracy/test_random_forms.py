"""Random sums, weights and constants are as accurate as written; ``random_forms`` compares 20,000 of them."""

from tests.extract.accuracy.random_forms import MODES, compared

COUNT = 120
FEW_BITS = 14.0
"""What a form may lose at a single point that was not among those it was judged by."""


def test_random_programs_lose_no_digits() -> None:
    points, worse = 0, []
    for seed in range(1_000_000, 1_000_000 + COUNT):
        right, findings = compared(seed, MODES[seed % len(MODES)])
        points += right
        worse += [finding for finding in findings if finding.bits[1] > FEW_BITS]
    assert points > 20 * COUNT
    assert worse == []
