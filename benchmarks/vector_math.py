"""Accuracy and speed of the vector functions: ``python -m benchmarks.vector_math``.

Measures every function in both formats and writes the table ``docs/vector_math.md``.
"""

from __future__ import annotations

import argparse
import functools
import os
import platform
import time
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import scipy.special
from numba.core import types

from esat.codegen import vector_math
from esat.codegen.cache import CompileOptions, KernelCache
from esat.codegen.ground.host import host_target
from esat.codegen.ground.target import Target
from tools import vector_accuracy

NUMPY_EQUIVALENTS = {
    "sigmoid": scipy.special.expit,
    "softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
    "log1mexp": lambda x: np.log1p(-np.exp(x)),
    "reciprocal_sqrt": lambda x: 1 / np.sqrt(x),
    "pow": np.power,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "erfcx": scipy.special.erfcx,
    "gammaln": scipy.special.gammaln,
    "digamma": scipy.special.psi,
}

RANGES = {
    "asin": (-1, 1),
    "acos": (-1, 1),
    "atanh": (-1, 1),
    "acosh": (1, 30),
    "log1mexp": (-3, 0),
    "sin": (-30, 30),
    "cos": (-30, 30),
    "tan": (-30, 30),
}
"""Where the timed arguments lie; between 0.01 and 3 for all other functions."""

COUNT = 8192
"""Timed arguments: small enough for the second-level cache."""


@functools.cache
def kernel(name: str, bits: int, target: Target | None = None):
    """The flat loop over a function, compiled for a target, or this machine."""
    names = ["x", "y"][: vector_math.FUNCTIONS[name].arity]
    array = (types.float64 if bits == 64 else types.float32)[::1]
    source = (
        f"def kernel(out, {', '.join(names)}):\n"
        "    for i in range(out.size):\n"
        f"        out[i] = function({', '.join(f'{n}[i]' for n in names)})\n"
    )
    environment = {"function": vector_math.function(name, bits)}
    signature = types.void(array, *[array] * len(names))
    options = CompileOptions(host_target() if target is None else target, noalias=("kernel",))
    return KernelCache(None).load_or_compile(source, "kernel", signature, environment, options)


def nanoseconds_per_element(call, repeats: int = 40) -> float:
    """The fastest of several runs, less what the others of the machine added."""
    durations = []
    for _ in range(repeats):
        start = time.perf_counter_ns()
        call()
        durations.append(time.perf_counter_ns() - start)
    return min(durations) / COUNT


def measure(name: str, bits: int, samples: int) -> tuple[float, float, float]:
    """Largest error found, and time per element of the vector function and of NumPy or SciPy."""
    dtype = np.dtype(f"f{bits // 8}")
    arity = vector_math.FUNCTIONS[name].arity
    function = kernel(name, bits).function
    with np.errstate(all="ignore"):
        arguments = vector_accuracy.sample(name, dtype, arity, samples, seed=11)
    values = np.empty_like(arguments[0])
    function(values, *arguments)
    error = vector_accuracy.errors(name, arguments, values).max()
    generator = np.random.default_rng(2)
    operands = [generator.uniform(*RANGES.get(name, (0.01, 3)), COUNT).astype(dtype) for _ in range(arity)]
    out = np.empty_like(operands[0])
    reference = NUMPY_EQUIVALENTS.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        slow = nanoseconds_per_element(lambda: reference(*operands))
    return error, nanoseconds_per_element(lambda: function(out, *operands)), slow


def machine() -> str:
    """The class of the processor in neutral words."""
    features = llvm.get_host_cpu_features()
    widths = {"avx512f": "512-bit vectors", "avx2": "256-bit vectors", "neon": "128-bit vectors"}
    width = next((words for feature, words in widths.items() if features.get(feature)), "narrow vectors")
    return f"{platform.machine()} ({llvm.get_host_cpu_name()}, {width}), one of {os.cpu_count()} cores"


def table(samples: int) -> str:
    """The document."""
    lines = [
        "# Vector functions: measured accuracy and speed",
        "",
        "Written by `python -m benchmarks.vector_math`; do not edit. The error is the largest one found, in",
        "units in the last place of the true result (ulp), over random bit patterns, the function's own",
        f"range and arguments near 0 and 1: {5 * samples} points per function and format, against mpmath.",
        "NaN, infinities and signed zeros are compared with NumPy and SciPy by the tests.",
        "",
        f"Time is nanoseconds per element of a loop over {COUNT} elements, on",
        f"{machine()}; beside it the time of NumPy {np.__version__} or SciPy {scipy.__version__}.",
        "",
        "| function | float64 ulp | ns | NumPy ns | float32 ulp | ns | NumPy ns |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in vector_math.FUNCTIONS:
        cells = []
        for bits in (64, 32):
            error, fast, slow = measure(name, bits, samples)
            cells += [f"{error:.2f}", f"{fast:.2f}", f"{slow:.2f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        "- `logaddexp`: in units in the last place of the larger operand, where that exceeds the result.",
        "- `gammaln` below zero: in those of `gammaln(-x)` or of 1, where these exceed the result.",
        "- `digamma` below zero: in those of `digamma(1 - x)` or of the cotangent, where these exceed the"
        " result.",
        "- `sin`, `cos` and `tan` take a branch for arguments beyond 2**20, in float32 beyond 2**13, and are",
        "  right for all of them.",
        "- float32 `gammaln` and `digamma` are computed in float64.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and write the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2000, help="points per kind of argument")
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "docs" / "vector_math.md")
    options = parser.parse_args()
    options.output.write_text(table(options.samples))


if __name__ == "__main__":
    main()
