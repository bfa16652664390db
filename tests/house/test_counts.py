"""What ``tools/counts.py`` counts and nobody wants: circles, names used twice, questions about machines."""

from __future__ import annotations

import ast
from pathlib import Path

from tools import counts


def trees(**files: str) -> list[counts.Tree]:
    """Files of a package that is not there."""
    return [(counts.PACKAGE / f"{name}.py", ast.parse(text)) for name, text in files.items()]


def test_the_package_has_nothing_unwanted() -> None:
    found = counts.unwanted(counts.trees())
    assert not any(found.values()), found


def test_what_is_unwanted_is_found() -> None:
    found = counts.unwanted(
        trees(
            **{
                "ops/same": "",
                "phases/same": "",
                "extract/same": "",
                "frontend/topic": "",
                "graph/topic": "",
            },
            one="import numba\nfrom esat import two\nclass Name: ...\nx = numba.__version__, numba._hidden\n",
            two="import os\nfrom esat import one\nclass Name: ...\ny = os.cpu_count()\n",
        )
    )
    assert found["circles of imports"] == ["esat.one, esat.two"]
    assert found["names used twice"] == ["Name: one.py, two.py"]
    assert found["modules named alike"] == ["phases/same.py, extract/same.py"]
    assert found["questions about the machine elsewhere"] == ["esat/two.py:4: cpu_count"]
    assert found["private attributes without a reason"] == ["_hidden: one.py:4"]
    assert set(found["requirements that nothing imports"]) == {*counts.required()} - {"numba"}
    assert set(found["reasons for private attributes that nobody uses"]) == set(counts.PRIVATE)


def test_circles_by_types_alone_are_found() -> None:
    found = trees(
        one="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from esat import two\n",
        two="from esat import one\n",
    )
    assert counts.circles(counts.imports(found)) == []
    assert counts.circles(counts.imports(found, for_types=True)) == ["esat.one, esat.two"]


def test_folders_with_many_entries_are_found(tmp_path: Path) -> None:
    for room, count in (("many", counts.MOST_ENTRIES + 1), ("few", counts.MOST_ENTRIES)):
        (tmp_path / "esat" / room).mkdir(parents=True)
        for number in range(count):
            (tmp_path / "esat" / room / f"module{number}.py").touch()
    assert counts.crowded_folders(tmp_path) == [f"esat/many: {counts.MOST_ENTRIES + 1}"]
