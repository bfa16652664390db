"""In which loops several vectors take turns, and that LLVM hears it."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from codegen.kernel_cases import group_of, op, variable
from codegen.targets import host_with

from esat.codegen import cache, find_narrow, lower
from esat.codegen.cache.compiled_kernel import CompiledKernel
from esat.codegen.compile import signature_of
from esat.codegen.ground.target import Target
from esat.codegen.kernel.loop_ir import Kernel
from esat.codegen.llvm import interleaving
from esat.codegen.llvm.interleaving import whole_lanes
from esat.codegen.printing.print_narrow import print_narrow
from esat.codegen.printing.printer import ENTRY, PrintedKernel, print_source
from esat.codegen.vector_math import linking, passes
from esat.graph import Variable
from esat.ops.reduction import ARGMAX, ARGMIN, MAX, SUM, reduce

X, Y, SINGLE, WHOLE = (variable(dtype, None, None) for dtype in ("float64", "float64", "float32", "int64"))
PACKED = re.compile(r"\bvf?n?m(?:ul|add|sub)\d*p[sd]\b")
"""Multiplications of several numbers, in assembly."""
SHORT, LONG = host_with(32), host_with(64, arithmetic_interleave_count=0)
LEFT_TO_LLVM = LONG.tuned(interleave_count=0)


KERNELS = cache.KernelCache(None)


def compiled(
    output: Variable, inputs: list[Variable], target: Target = SHORT, kernels: cache.KernelCache | None = None
) -> CompiledKernel:
    """A kernel that is compiled now, unless it is among others already."""
    kernel = lower(group_of([output], inputs))
    return compiled_source(print_source(kernel, target, "C", comments=False), kernel, target, kernels)


def compiled_source(
    printed: PrintedKernel, kernel: Kernel, target: Target, kernels: cache.KernelCache | None = None
) -> CompiledKernel:
    options, signature = cache.CompileOptions(target, noalias=(ENTRY,)), signature_of(kernel, "C")
    chosen = kernels or cache.KernelCache(None)
    return chosen.load_or_compile(printed.text, ENTRY, signature, printed.environment, options)


@pytest.fixture(params=[SHORT, LONG], ids=["32 bytes", "64 bytes"])
def target(request: pytest.FixtureRequest) -> Target:
    return request.param


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


def remainder(lanes: int) -> dict[str, int | None]:
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
        (reduce(SUM, op("exp", X), 1), [{"unroll.disable": None}] * 2 + [of_lanes(16), remainder(4)]),
        # LLVM decides about short loops, and about sums.
        (chain(6), []),
        (reduce(SUM, chain(40), 1), []),
    ],
)
def test_loops_that_compute_much_take_several_vectors_in_turns(
    monkeypatch: pytest.MonkeyPatch, output: Variable, expected: list[dict[str, int]]
) -> None:
    told = hints(monkeypatch, lambda: compiled(output, [X, Y, SINGLE, WHOLE]))
    assert sorted(told, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    "output",
    [
        reduce(ARGMAX, op("exp", X), 1),
        reduce(ARGMIN, op("exp", SINGLE), None),
        reduce(ARGMAX, op("sin", reduce(SUM, X, 1)), 0),
        reduce(ARGMAX, chain(120), 1),
        reduce(SUM, op("mul", op("exp", X), op("floor_div", WHOLE, WHOLE)), 1),
    ],
)
def test_llvm_is_told_of_no_loop_what_it_cannot_do(
    capfd: pytest.CaptureFixture[str], output: Variable
) -> None:
    """It would say so on the process's standard error."""
    inputs = [X, Y, SINGLE, WHOLE]
    compiled(output, inputs, LONG)
    narrow = find_narrow(lower(group_of([output], inputs)))
    if narrow is not None:
        compiled_source(print_narrow(narrow, 3, LONG, comments=False), narrow.kernel, LONG)
    assert capfd.readouterr().err == ""


def test_longer_vectors_are_left_to_llvm_but_in_the_longest_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(output: Variable, *inputs: Variable) -> list[dict[str, int | None]]:
        return hints(monkeypatch, lambda: compiled(output, list(inputs), LEFT_TO_LLVM))

    assert told(op("exp", X), X) == [{"interleave.count": 1}]
    assert told(chain(40), X, Y) == []
    assert told(chain(120), X, Y) == [of_lanes(32)]


def test_two_longer_vectors_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(output: Variable, *inputs: Variable) -> list[dict[str, int | None]]:
        return hints(monkeypatch, lambda: compiled(output, list(inputs), LONG))

    exponential, single = op("exp", X), op("exp", SINGLE)
    assert told(exponential, X) == [of_lanes(16)]
    assert told(single, SINGLE) == [of_lanes(32)]
    assert sorted(told(reduce(SUM, single, 1), SINGLE), key=str) == sorted(
        [{"unroll.disable": None}] * 2 + [of_lanes(32), remainder(16)], key=str
    )
    divided = op("mul", exponential, op("floor_div", WHOLE, WHOLE))
    assert told(divided, X, WHOLE) == [{"interleave.count": 2}]
    assert told(chain(40), X, Y) == []


def test_long_vectors_of_arithmetic_take_as_many_turns_as_they_are_tuned_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tuned = LONG.tuned(arithmetic_interleave_count=4)
    assert hints(monkeypatch, lambda: compiled(chain(40), [X, Y], tuned)) == [{"interleave.count": 4}]


def test_no_more_vectors_take_turns_than_functions_are_there_for() -> None:
    assert LONG.tuned(interleave_count=8).interleave_count == 2
    assert whole_lanes(32, SHORT.tuned(interleave_count=8)) == 32


def test_the_hints_change_the_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def vector_operations(added: float) -> int:
        return len(PACKED.findall(compiled(op("add", op("exp", X), added), [X]).assembly))

    in_turns = vector_operations(0.5)
    monkeypatch.setattr(interleaving, "hints_for", lambda found, target: {"interleave.count": 1})
    assert in_turns > 1.5 * vector_operations(0.25)


def test_rows_have_no_remainder_of_single_numbers(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: set[str] = set()

    def noted(library: Any) -> None:
        calls.update(re.findall(r"call (\S+(?: x \w+>)?) @esat_exp", str(library._final_module)))
        passes.inline(library)

    monkeypatch.setattr(linking, "inline", noted)
    compiled(reduce(SUM, op("exp", X), 1), [X], target)
    assert calls == {"<16 x double>", f"<{target.vector_bytes // 8} x double>"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [0, 1, 3, 4, 9, 15, 16, 17, 31, 32, 33, 63, 1024, 1025, 1055])
def test_rows_of_any_length(target: Target, dtype: str, length: int) -> None:
    rows, column = variable(dtype, None, None), variable(dtype, None, 1)
    values = np.linspace(-2.0, 2.0, 3 * length, dtype=dtype).reshape(3, length)
    shifts = np.array([[0.0], [1.0], [-1.0]], dtype)
    exact = np.exp(values.astype("float64") - shifts)
    tolerance = {"rtol": 1e-6 if dtype == "float32" else 1e-14}
    powers, sums = np.full((5, length), 7, dtype), np.empty(3, dtype)
    compiled(op("exp", op("sub", rows, column)), [rows, column], target, KERNELS)(powers[1:4], values, shifts)
    np.testing.assert_allclose(powers[1:4], exact, **tolerance)
    assert np.all(powers[[0, 4]] == 7)  # the rows around
    compiled(reduce(SUM, op("exp", op("sub", rows, column)), 1), [rows, column], target, KERNELS)(
        sums, values, shifts
    )
    np.testing.assert_allclose(sums, exact.sum(1), **tolerance)
    largest = np.empty(3, dtype)
    values[1:2, -1:] = np.nan
    compiled(reduce(MAX, op("exp", rows), 1), [rows], target, KERNELS)(largest, values)
    np.testing.assert_allclose(largest, np.exp(values).max(1, initial=-np.inf), **tolerance)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 15, 16, 17, 100])
def test_values_do_not_depend_on_their_place(target: Target, size: int) -> None:
    alone = variable("float64", None)
    kernel = compiled(op("mul", op("exp", alone), op("tanh", alone)), [alone], target, KERNELS)
    values = np.linspace(-3.0, 3.0, size)
    together, one_by_one = np.empty(size), np.empty(size)
    kernel(together, values)
    for place in range(size):
        kernel(one_by_one[place : place + 1], values[place : place + 1])
    assert np.array_equal(together, one_by_one)
