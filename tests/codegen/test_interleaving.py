"""In which loops several vectors take turns, and that LLVM hears it."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from codegen.kernel_cases import group_of, op, variable

from esat.codegen import cache, compile, interleaving, lower, processor
from esat.codegen.cache.kernel import CompiledKernel
from esat.codegen.vector_math import linking, passes
from esat.graph import Variable
from esat.ops.reduction import MAX, SUM, reduce

X, Y, SINGLE, WHOLE = (variable(dtype, None, None) for dtype in ("float64", "float64", "float32", "int64"))
PACKED = re.compile(r"\bvf?n?m(?:ul|add|sub)\d*p[sd]\b")
"""Multiplications of several numbers, in assembly."""
Compile = Callable[[Variable, list[Variable]], CompiledKernel]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Compile:
    """Kernels that are compiled now, in whose code vectors have 32 bytes."""
    monkeypatch.setattr(cache, "load_or_compile", cache.KernelCache(None).load_or_compile)
    monkeypatch.setattr(interleaving, "vector_bytes", lambda: 32)
    monkeypatch.setattr(processor, "takes_turns_in_long_vectors", lambda: False)
    fresh: Any = compile.compile_kernel
    return lambda output, inputs: fresh.__wrapped__(lower(group_of([output], inputs)), "C")


@pytest.fixture
def long_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors have 64 bytes, and two of them take turns."""
    monkeypatch.setattr(interleaving, "vector_bytes", lambda: 64)
    monkeypatch.setattr(processor, "takes_turns_in_long_vectors", lambda: True)


@pytest.fixture(params=["32 bytes", "64 bytes"])
def compiled_for_any(request: pytest.FixtureRequest, compiled: Compile) -> Compile:
    """The same for vectors of both lengths."""
    if request.param == "64 bytes":
        request.getfixturevalue("long_vectors")
    return compiled


def chain(length: int) -> Variable:
    """A value after so many operations."""
    value = X
    for place in range(length):
        value = op("mul", value, Y) if place % 2 else op("add", value, Y)
    return value


def hints(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]) -> list[dict[str, int | None]]:
    """What LLVM is told of each loop that is compiled meanwhile."""
    found: list[dict[str, int | None]] = []
    identity = interleaving.loop_identity

    def noted(module: Any, told: dict[str, int | None]) -> Any:
        found.append(told)
        return identity(module, told)

    monkeypatch.setattr(interleaving, "loop_identity", noted)
    run()
    return found


def of_lanes(lanes: int) -> dict[str, int | None]:
    return {"vectorize.width": lanes, "interleave.count": 1}


def left_over(lanes: int) -> dict[str, int | None]:
    return {"vectorize.predicate.enable": 1, **of_lanes(lanes)}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (op("exp", X), [of_lanes(16)]),
        (op("tanh", op("exp", op("add", X, Y))), [of_lanes(16)]),
        (op("erf", op("tanh", op("exp", X))), [of_lanes(16)]),
        (op("mul", op("sin", X), op("exp", X)), [of_lanes(16)]),
        # Integers are divided one by one.
        (op("mul", op("exp", X), op("floor_div", WHOLE, WHOLE)), [{"interleave.count": 4}]),
        (op("exp", SINGLE), [of_lanes(32)]),
        (chain(40), [{"interleave.count": 2}]),
        (chain(120), [of_lanes(16)]),
        (reduce(SUM, op("exp", X), 1), [{"unroll.disable": None}] * 2 + [of_lanes(16), left_over(4)]),
        # LLVM decides about short loops, and about sums.
        (chain(6), []),
        (reduce(SUM, chain(40), 1), []),
    ],
)
def test_loops_that_compute_much_take_several_vectors_in_turns(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch, output: Variable, expected: list[dict[str, int]]
) -> None:
    told = hints(monkeypatch, lambda: compiled(output, [X, Y, SINGLE, WHOLE]))
    assert sorted(told, key=str) == sorted(expected, key=str)


def test_longer_vectors_are_left_to_llvm_but_in_the_longest_formulas(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interleaving, "vector_bytes", lambda: 64)
    assert hints(monkeypatch, lambda: compiled(op("exp", X), [X])) == [{"interleave.count": 1}]
    assert hints(monkeypatch, lambda: compiled(chain(40), [X, Y])) == []
    assert hints(monkeypatch, lambda: compiled(chain(120), [X, Y])) == [of_lanes(32)]


def test_two_longer_vectors_take_turns(
    compiled: Compile, long_vectors: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    exponential, single = op("exp", X), op("exp", SINGLE)
    assert hints(monkeypatch, lambda: compiled(exponential, [X])) == [of_lanes(16)]
    assert hints(monkeypatch, lambda: compiled(single, [SINGLE])) == [of_lanes(32)]
    told = hints(monkeypatch, lambda: compiled(reduce(SUM, single, 1), [SINGLE]))
    assert sorted(told, key=str) == sorted(
        [{"unroll.disable": None}] * 2 + [of_lanes(32), left_over(16)], key=str
    )
    divided = op("mul", exponential, op("floor_div", WHOLE, WHOLE))
    assert hints(monkeypatch, lambda: compiled(divided, [X, WHOLE])) == [{"interleave.count": 2}]
    assert hints(monkeypatch, lambda: compiled(chain(40), [X, Y])) == []


def test_the_hints_change_the_machine_code(compiled: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    def vector_operations(added: float) -> int:
        return len(PACKED.findall(compiled(op("add", op("exp", X), added), [X]).assembly))

    in_turns = vector_operations(0.5)
    monkeypatch.setattr(interleaving, "hints_for", lambda found: {"interleave.count": 1})
    assert in_turns > 1.5 * vector_operations(0.25)


def test_nothing_is_left_over_of_rows(compiled_for_any: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: set[str] = set()

    def noted(library: Any) -> None:
        calls.update(re.findall(r"call (\S+(?: x \w+>)?) @esat_exp", str(library._final_module)))
        passes.inline(library)

    monkeypatch.setattr(linking, "inline", noted)
    compiled_for_any(reduce(SUM, op("exp", X), 1), [X])
    assert calls == {"<16 x double>", f"<{interleaving.vector_bytes() // 8} x double>"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [0, 1, 3, 4, 9, 15, 16, 17, 31, 32, 33, 63, 1024, 1025, 1055])
def test_rows_of_any_length(compiled_for_any: Compile, dtype: str, length: int) -> None:
    rows, column = variable(dtype, None, None), variable(dtype, None, 1)
    values = np.linspace(-2.0, 2.0, 3 * length, dtype=dtype).reshape(3, length)
    shifts = np.array([[0.0], [1.0], [-1.0]], dtype)
    exact = np.exp(values.astype("float64") - shifts)
    tolerance = {"rtol": 1e-6 if dtype == "float32" else 1e-14}
    powers, sums = np.full((5, length), 7, dtype), np.empty(3, dtype)
    compiled_for_any(op("exp", op("sub", rows, column)), [rows, column])(powers[1:4], values, shifts)
    np.testing.assert_allclose(powers[1:4], exact, **tolerance)
    assert np.all(powers[[0, 4]] == 7)  # the rows around
    compiled_for_any(reduce(SUM, op("exp", op("sub", rows, column)), 1), [rows, column])(sums, values, shifts)
    np.testing.assert_allclose(sums, exact.sum(1), **tolerance)
    largest = np.empty(3, dtype)
    values[1:2, -1:] = np.nan
    compiled_for_any(reduce(MAX, op("exp", rows), 1), [rows])(largest, values)
    np.testing.assert_allclose(largest, np.exp(values).max(1, initial=-np.inf), **tolerance)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 15, 16, 17, 100])
def test_values_do_not_depend_on_their_place(compiled_for_any: Compile, size: int) -> None:
    alone = variable("float64", None)
    kernel = compiled_for_any(op("mul", op("exp", alone), op("tanh", alone)), [alone])
    values = np.linspace(-3.0, 3.0, size)
    together, one_by_one = np.empty(size), np.empty(size)
    kernel(together, values)
    for place in range(size):
        kernel(one_by_one[place : place + 1], values[place : place + 1])
    assert np.array_equal(together, one_by_one)
