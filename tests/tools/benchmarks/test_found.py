"""What is found of the expressions that PyTensor's rewrites are about."""

import pytest

from benchmarks.found import MODES, left, missed, table
from benchmarks.found_cases import FINDABLES, KINDS
from benchmarks.found_work import work

BY_NAME = {case.name: case for case in FINDABLES}
# What is left at medium sizes: operations beyond 300, which three steps take.
FOUND = {
    "a sign into a number": 60_100,
    "diagonal scales rows": 4_100,
    "solving with a diagonal": 300,
    "determinant of Kronecker": 12_200,
    "diagonal of Kronecker": 500,
    "a known condition": 0,
    "filled like, with more": 60_300,
    "cut and joined": 480_100,
}


@pytest.mark.parametrize("mode", MODES.values())
@pytest.mark.parametrize("name", FOUND)
def test_nothing_more_is_left(name, mode):
    operations, names = left(BY_NAME[name], "medium", mode)
    assert operations <= FOUND[name], names


def test_expressions_have_names_of_their_own():
    assert len({(case.family, case.name) for case in FINDABLES}) == len(FINDABLES) >= 60


def test_work_is_that_of_the_shapes():
    assert work("matmul", [(3, 4), (4, 5)], [(3, 5)]) == 100 + 2 * 3 * 4 * 5
    assert work("sum", [(3, 4)], [(3,)]) == 100 + 12
    assert work("exp", [(3, 4)], [(3, 4)]) == 100 + 8 * 12
    assert work("dimshuffle", [(3, 4)], [(4, 3)]) == 0


def test_the_table_marks_what_is_missed():
    keys = [(case.family, case.name, kind) for case in FINDABLES for kind in KINDS]
    less, more = ({key: (count, []) for key in keys} for count in (1_000.0, 2_000.0))
    assert not missed(less, more)
    assert len(missed(more, less)) == len(keys) - 5
    rows = table({"pytensor": less, "esat": more, "greedy": less}).splitlines()
    assert rows[2].count("*") == 1
    assert f"esat: leaves more than PyTensor in {len(keys) - 5} of {len(keys)}, less in 0" in rows
