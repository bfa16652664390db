"""A share of the random identities: all are proved, and none of what is nearly one."""

import pytest

from benchmarks.generated_identities import Generator, Kind, pairs, program, proved


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("scalars", 30),
        ("exponentials", 24),
        ("matrices", 24),
        ("structure", 20),
        ("parts", 40),
        ("complex", 16),
    ],
)
def test_what_is_equal_is_proved_and_nothing_else(kind: Kind, count: int) -> None:
    rules = program()
    found = [(pair.equal, proved(pair, rules)) for pair in pairs(count, 3, kind)]
    assert all(equal == is_proved for equal, is_proved in found)
    assert 0.2 * count < sum(equal for equal, _ in found) < 0.8 * count


def test_pairs_follow_from_the_seed() -> None:
    assert [Generator(5).scalars() for _ in range(3)] == [Generator(5).scalars() for _ in range(3)]
    assert Generator(5).matrices() != Generator(6).matrices()
