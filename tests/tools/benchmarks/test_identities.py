"""The table of the identities."""

from benchmarks.identities import table
from benchmarks.identity_cases import IDENTITIES, SCALARS


def test_the_table_counts_what_came_out_simplest() -> None:
    best = {(case.family, case.name): (case.fewest, 0.002) for case in IDENTITIES}
    worse = {(case.family, case.name): (case.fewest + 1, 0.001) for case in SCALARS}
    rows = table({"best": best, "worse": worse}).splitlines()
    assert rows[0].split() == ["best", "worse"]
    total, scalars = len(IDENTITIES), len(SCALARS)
    assert rows[-1].split() == ["all", f"{total}/{total}", "2.0", "ms", f"0/{scalars}", "1.0", "ms"]
    assert next(row for row in rows if row.startswith("trace")).split()[-1] == "-"


def test_identities_have_names_of_their_own() -> None:
    assert len({(case.family, case.name) for case in IDENTITIES}) == len(IDENTITIES) >= 60
