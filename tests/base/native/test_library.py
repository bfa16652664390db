"""Functions of the subset as machine code: as they are as Python, and from disk as when they were made."""

import ctypes
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from base.native import subset
from hypothesis import given
from hypothesis import strategies as st

from esat.base.native import Library, library, translate
from esat.base.storage import DiskStore
from esat.errors import CompileError

FUNCTIONS = (subset.arithmetic, subset.comparisons, subset.loops, subset.guarded, subset.collatz)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[Callable[..., Any], Callable[..., Any]]:
    made = Library(FUNCTIONS, DiskStore(tmp_path_factory.mktemp("cache"), "native"))
    return {function: made.function(function) for function in FUNCTIONS}


@given(a=st.integers(1, 2**20), b=st.integers(1, 2**20), x=st.floats(-1e6, 1e6))
def test_arithmetic(compiled: Any, a: int, b: int, x: float) -> None:
    expected, found = np.zeros(13), np.zeros(13)
    subset.arithmetic(a, b, x, expected)
    compiled[subset.arithmetic](a, b, x, found)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("a", [0.0, -0.0, 1.5, -3.0, inf, -inf, nan])
@pytest.mark.parametrize("b", [0.0, 1.5, 7.0, inf, nan])
@pytest.mark.parametrize("c", [-2, 0, 7])
def test_comparisons(compiled: Any, a: float, b: float, c: int) -> None:
    assert compiled[subset.comparisons](a, b, c) == subset.comparisons(a, b, c)


@pytest.mark.parametrize("numbers", [[], [3], [5, -1, 4, 9, 2], [9, 1], [-1, -2, 8]])
def test_loops(compiled: Any, numbers: list[int]) -> None:
    values = np.array(numbers, np.int64)
    total, index, rounds = compiled[subset.loops](values, 9)
    assert (total, index, rounds) == subset.loops(values, 9)
    assert isinstance(total, int)
    assert isinstance(rounds, float)


@pytest.mark.parametrize("place", [0, 1, 2, 10**15, 100])
def test_operands_that_do_not_matter_are_not_looked_at(compiled: Any, place: int) -> None:
    values = np.array([4, -4], np.int64)
    assert compiled[subset.guarded](values, place) is bool(subset.guarded(values, place))


@pytest.mark.parametrize("start", [1, 6, 27, 97])
def test_calls_and_records(compiled: Any, start: int) -> None:
    expected = subset.Pair(np.zeros(2, np.int64), np.ones(2))
    found = subset.Pair(np.zeros(2, np.int64), np.ones(2))
    assert compiled[subset.collatz](start, found) == subset.collatz(start, expected)
    assert found.numbers.tolist() == expected.numbers.tolist()
    assert found.weights.tolist() == expected.weights.tolist()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (subset.with_a_list, "is not of the subset"),
        (subset.without_types, "no annotation of numbers, return"),
        (subset.with_text, "is no type of the subset"),
        (subset.with_too_few_operands, "is to have 1 operands"),
        (subset.with_a_result_that_is_none, "is not one number"),
    ],
)
def test_what_is_not_of_the_subset_is_refused(function: Any, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        Library([function], DiskStore(None, "native")).function(function)


def test_primitives_are_written_by_llvm_and_functions_called_as_in_c(tmp_path: Path) -> None:
    made = Library([subset.with_primitives], DiskStore(tmp_path, "native"))
    assert made.function(subset.with_primitives)(6 << 60) == 7
    c_function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(made.address(subset.with_primitives))
    assert c_function(6 << 60) == 7
    with pytest.raises(CompileError, match="does not run as Python"):
        subset.with_primitives(1)


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(4, np.int32),
        np.zeros(4),
        np.zeros((2, 2), np.int64),
        np.zeros(8, np.int64)[::2],
    ],
)
def test_arrays_of_other_kinds_are_refused(compiled: Any, wrong: np.ndarray) -> None:
    with pytest.raises(CompileError, match="is no contiguous vector of int64"):
        compiled[subset.guarded](wrong, 0)
    with pytest.raises(CompileError, match="is no contiguous vector of int64"):
        subset.Pair(wrong, np.zeros(2))


def test_other_records_are_refused(compiled: Any) -> None:
    with pytest.raises(CompileError, match="collatz: a Other is another record"):
        compiled[subset.collatz](6, subset.Other(np.zeros(2)))


def test_object_code_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DiskStore(tmp_path, "native")
    assert Library(FUNCTIONS, store).function(subset.guarded)(np.ones(1, np.int64), 0)
    assert len(store.files()) == 1
    with monkeypatch.context() as patch:
        patch.setattr(translate, "translated", lambda _: pytest.fail("compiled again"))
        again = Library(FUNCTIONS, store).function(subset.loops)
        assert again(np.array([5, 9], np.int64), 9) == subset.loops(np.array([5, 9], np.int64), 9)
        patch.setattr(library, "description", lambda: ("any-system", "another", ""))
        with pytest.raises(pytest.fail.Exception, match="compiled again"):
            Library(FUNCTIONS, store).function(subset.loops)


def test_damaged_object_code_is_made_again(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, "native")
    Library(FUNCTIONS, store).function(subset.guarded)
    (file,) = tmp_path.glob("*.native")
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)
    with pytest.warns(match="native cache"):
        again = Library(FUNCTIONS, store).function(subset.guarded)
    assert again(np.ones(1, np.int64), 0)
