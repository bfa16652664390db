"""Machine code of formulas that kernels share, in the process that makes it and in others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from codegen.targets import AVX2, AVX512, HOST, NEON, host_with
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock

from benchmarks.vector_math import kernel
from esat.codegen import vector_math
from esat.codegen.cache import CompileOptions, KernelCache
from esat.codegen.ground.target import Target
from esat.codegen.vector_math import linking, shared_code
from esat.codegen.vector_math.formulas import Formula, formula_called

BITS = [32, 64]
MANY = """
def kernel(out, x):
    for i in range(out.size):
        out[i] = long(sine(x[i]) + short(x[i])) * short(short(x[i]))
"""
SIGNATURE = types.void(types.float64[::1], types.float64[::1])
OPTIONS = CompileOptions(HOST, noalias=("kernel",))
ENVIRONMENT = {
    "long": vector_math.function("gammaln", 64),
    "short": vector_math.function("reciprocal_sqrt", 64),
    "sine": vector_math.function("sin", 64),
}
WORKER = """
import sys
from pathlib import Path
import numpy as np
from codegen.test_shared_code import many
kernel = many(Path(sys.argv[1]))
out = np.empty(37)
kernel.function(out, np.linspace(0.5, 1e6, 37))
print(kernel.from_disk, out.tobytes().hex())
"""


def many(folder: Path | None):
    """A kernel of many functions, of which some are called."""
    return KernelCache(folder).load_or_compile(MANY, "kernel", SIGNATURE, ENVIRONMENT, OPTIONS)


def called(target: Target, lanes: int, is_one_of_many: bool) -> set[str]:
    """Which functions are called in code for a target."""
    formulas = [Formula(name, 64, lanes) for name in vector_math.FUNCTIONS]
    return {one.name for one in formulas if shared_code.is_shared(one, is_one_of_many, target)}


@pytest.mark.parametrize("target", [host_with(32), AVX2], ids=["here", "avx2"])
@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_what_is_called(target: Target, lanes: int) -> None:
    of_many, of_few = called(target, lanes, True), called(target, lanes, False)
    assert {"sin", "cos", "tan", "pow", "gammaln", "erf", "log1p", "log"} <= of_many
    # An exponential is short where one instruction multiplies by a power of two.
    assert ("exp" in of_many) == (not target.scales)
    assert "sqrt" not in of_many
    assert {"sin", "pow", "gammaln"} <= of_few
    assert of_few.isdisjoint({"erf", "softplus", "log1p", "log", "exp"})


@pytest.mark.parametrize("target", [host_with(64), AVX512, NEON], ids=["here", "avx-512", "neon"])
@pytest.mark.parametrize("is_one_of_many", [False, True])
def test_where_there_are_many_registers_only_what_has_branches_is_called(
    target: Target, is_one_of_many: bool
) -> None:
    for lanes in (1, 8, 16):
        assert called(target, lanes, is_one_of_many) == {"sin", "cos", "tan"}


@pytest.mark.parametrize("is_one_of_many", [False, True])
def test_what_a_loop_calls_depends_on_how_many_functions_it_has(is_one_of_many: bool) -> None:
    body = "erf(log(log1p(x[i])))" if is_one_of_many else "erf(log1p(x[i]))"
    source = f"def kernel(out, x):\n    for i in range(out.size):\n        out[i] = {body}"
    environment = {name: vector_math.function(name, 64) for name in ("erf", "log", "log1p")}
    options = CompileOptions(host_with(32), noalias=("kernel",))
    made = KernelCache(None).load_or_compile(source, "kernel", SIGNATURE, environment, options)
    names = {name.partition(".")[0] for name in made.code.shared}
    functions = ["erf", "log", "log1p"] if is_one_of_many else []
    assert {name for name in names if name.endswith("_v16")} == {
        f"esat_{one}_float64_v16" for one in functions
    }


def test_a_kernel_has_short_formulas_in_it_and_calls_long_ones() -> None:
    assembly = many(None).assembly
    # The machine code that is called is listed after that of the kernel.
    made = re.search(r"^esat_sin_float64\w*\.shared\.\w+:", assembly, re.MULTILINE)
    assert made is not None
    assert "esat_sin_float64" in assembly[: made.start()]
    assert "esat_reciprocal_sqrt_float64" not in assembly


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("name", sorted(vector_math.FUNCTIONS))
def test_values_are_those_of_the_formula_in_place(
    name: str, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [np.linspace(0.01, 30, 101, dtype=f"float{bits}")] * vector_math.FUNCTIONS[name].arity
    values = []
    for shared in (True, False):
        monkeypatch.setattr(
            linking, "is_shared", lambda formula, is_one_of_many, target, shared=shared: shared
        )
        compiled = kernel.__wrapped__(name, bits)
        assert bool(compiled.code.shared) == shared
        values.append(np.empty_like(arguments[0]))
        compiled.function(values[-1], *arguments)
    np.testing.assert_array_equal(*values)


def test_code_is_made_once_for_a_target() -> None:
    formula = formula_called("esat_gammaln_float64_v4")
    assert formula is not None
    name = shared_code.shared_name(formula.symbol, HOST)
    with global_compiler_lock:
        shared_code.share(formula, HOST)
        first = shared_code._shared[name]
        shared_code.share(formula, HOST)
        shared_code.load({name: first.code})
        other = HOST.tuned(rows_in_group=5)
        shared_code.share(formula, other)
    assert shared_code._shared[name] is first
    assert shared_code.shared_name(formula.symbol, other) in shared_code._shared


def test_a_kernel_on_disk_has_what_it_calls(tmp_path: Path) -> None:
    out = np.empty(37)
    many(tmp_path / "kernels").function(out, np.linspace(0.5, 1e6, 37))
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests.parent), str(tests), os.environ.get("PYTHONPATH", "")])
    worker = subprocess.run(
        [sys.executable, "-c", WORKER, str(tmp_path / "kernels")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert worker.stdout.split() == ["True", out.tobytes().hex()]
