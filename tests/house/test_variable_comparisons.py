"""What keeps comparisons of Variables by value out of the package finds them."""

import re
import sys
import types
from pathlib import Path

import comparisons_guard
import pytest
from mypy import api

import esat

HERE = Path(__file__).resolve().parent.parent

STUB = """
class Type: ...
class Variable:
    def __eq__(self, other: object) -> "Variable": ...  # type: ignore[override]
    def __hash__(self) -> int: ...
class Constant(Variable): ...
"""
SAMPLE = """
from collections import deque
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from esat.graph.variables import Constant, Type, Variable

@dataclass(frozen=True)
class Pair:
    left: Variable
    right: int

def found(x: Variable, y: Constant, many: list[Variable], few: tuple[Variable, ...], maybe: Variable | None,
          named: dict[str, Variable], pairs: Sequence[tuple[Variable, bool]], one: Pair, other: Pair,
          some: Collection[Variable], any_of: Container[Variable], waiting: deque[Variable]) -> None:
    print(x == y)  # found
    print(x != 0)  # found
    print(0 == x)  # found
    print(maybe == None)  # found
    print(x in many)  # found
    print(x not in few)  # found
    print(x in some)  # found
    print(x in any_of)  # found
    print(x in waiting)  # found
    print(x in named.values())  # found
    print((x, True) in pairs)  # found
    many.remove(x)  # found
    print(many.index(x), 1)  # found
    print(many.count(x), 1)  # found
    print(many == [y])  # found
    print(few == (x, y))  # found
    print((x, 1) == (y, 1))  # found
    print(named == {})  # found
    print(one == other)  # found

def allowed(x: Variable, of: Type, many: list[Variable], numbers: dict[Variable, int], some: set[Variable],
            mapped: Mapping[Variable, int], types: list[Type]) -> None:
    print(x is many[0], x in numbers, x in some, x in mapped, of in types, types == [of], 1 in [2])
    print(numbers == {}, some == {x}, mapped == {}, len(many) == 1, types.index(of), (1, "a") == (2, "b"))
"""


def test_the_plugin_finds_comparisons_by_value(tmp_path):
    package = tmp_path / "esat" / "graph"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.pyi").write_text("")
    (package / "variables.pyi").write_text(STUB)
    (tmp_path / "sample.py").write_text(SAMPLE)
    settings = tmp_path / "settings.ini"
    plugin = HERE / "helpers" / "variable_comparisons.py"
    settings.write_text(
        f"[mypy]\nplugins = {plugin}\nenable_error_code = deprecated\nmypy_path = {tmp_path}\n"
    )
    cache = ["--cache-dir", str(tmp_path / "cache")]
    said, errors, _ = api.run(["--config-file", str(settings), *cache, str(tmp_path / "sample.py")])
    assert not errors
    lines = {int(number) for number in re.findall(r"sample\.py:(\d+): error: Variables are", said)}
    wanted = {number for number, text in enumerate(SAMPLE.splitlines(), 1) if text.endswith("# found")}
    assert lines == wanted, said
    assert said.count(": error:") == len(re.findall("error: Variables are", said)), said


FOUND = pytest.raises(
    comparisons_guard.ComparedByValueError, match=r"made_up\.py:1 compares Variables by value"
)


@pytest.mark.parametrize(
    "comparison",
    ["x == y", "x != y", "x in [y]", "[y].index(x)", "(x, 1) == (y, 1)", "sorted([(x, 1), (y, 1)])"],
)
def test_the_guard_finds_comparisons_that_the_package_makes(comparison):
    code = compile(comparison, comparisons_guard.PACKAGE + "made_up.py", "eval")
    x, y = esat.vector("x"), esat.vector("y")
    with pytest.raises(
        comparisons_guard.ComparedByValueError, match=r"made_up\.py:1 compares Variables by value"
    ):
        types.FunctionType(code, {"x": x, "y": y})()
    generated = {"x": x, "y": y}
    exec(compile(f"def compare(): return {comparison}", "<string>", "exec"), generated)
    called = compile("compare()", comparisons_guard.PACKAGE + "made_up.py", "eval")
    with pytest.raises(
        comparisons_guard.ComparedByValueError, match=r"made_up\.py:1 compares Variables by value"
    ):
        types.FunctionType(called, generated)()
    assert sys.modules["esat.graph.operators"].Operators.__eq__.guarded
