"""Generated kernels against the same kernels written by hand, and against NumPy.

Prints nanoseconds per element of one thread, outputs preallocated, medians of interleaved calls. The
hand-written forms are those that were measured to reach the machine's limit; a generated kernel should
not be slower than they are. Run: ``python benchmarks/kernel_forms.py [float64|float32] [n ...]``
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types

import esat
from esat.codegen import compile_kernel, lower
from esat.codegen.ground.host import host_target
from esat.codegen.vector_math import function
from esat.codegen.vector_math.reduction import (
    maximum,
    reassociating_add,
    reassociating_multiply_add,
)
from esat.graph import FunctionGraph, Variable
from esat.phases.fusing.group import Group

ROUNDS = 25
Array = Any
HAND_WRITTEN = """
def scale(out, x, a, b):
    a, b = a[()], b[()]
    for i in range(out.size):
        out[i] = a * x[i] + b

def mixture(out, x, y, z):
    for i in range(out.size):
        out[i] = tanh(x[i]) * y[i] + exp(-z[i] * z[i] * half)

def logsumexp(out, x):
    rows, columns = x.shape
    for i in range(rows):
        m = -infinity
        for j in range(columns):
            m = maximum(m, x[i, j])
        s = zero
        for j in range(columns):
            s = reassociating_add(s, exp(x[i, j] - m))
        out[i] = m + log(s)

def softmax(out, x):
    rows, columns = x.shape
    for i in range(rows):
        m = -infinity
        for j in range(columns):
            m = maximum(m, x[i, j])
        s = zero
        for j in range(columns):
            e = exp(x[i, j] - m)
            out[i, j] = e
            s = reassociating_add(s, e)
        q = one / s
        for j in range(columns):
            out[i, j] *= q

def layernorm(out, x, g, b):
    rows, columns = x.shape
    share = one / real(columns)
    for i in range(rows):
        s = zero
        for j in range(columns):
            s = reassociating_add(s, x[i, j])
        m = s * share
        v = zero
        for j in range(columns):
            d = x[i, j] - m
            v = reassociating_multiply_add(v, d, d)
        q = one / sqrt(v * share + real(1e-5))
        for j in range(columns):
            out[i, j] = (x[i, j] - m) * q * g[j] + b[j]

def distance(out, x, y):
    s = zero
    for i in range(x.size):
        d = x[i] - y[i]
        s = reassociating_multiply_add(s, d, d)
    out[()] = s

def shifted(out, x, r, c):
    rows, columns = x.shape
    for i in range(rows):
        factor = c[i]
        for j in range(columns):
            out[i, j] = (x[i, j] + r[j]) * factor

def columns(out, x):
    for j in range(out.size):
        out[j] = zero
    for i in range(uintp(x.shape[0] // 4)):
        k = i * uintp(4)
        for j in range(out.size):
            out[j] += (x[k, j] + x[k + uintp(1), j]) + (x[k + uintp(2), j] + x[k + uintp(3), j])
    for k in range(uintp(x.shape[0] - x.shape[0] % 4), uintp(x.shape[0])):
        for j in range(out.size):
            out[j] += x[k, j]
"""


def hand_written(dtype: type) -> dict[str, Callable[..., None]]:
    bits = np.dtype(dtype).itemsize * 8
    names: dict[str, Any] = {name: function(name, bits) for name in ("exp", "log", "tanh", "sqrt")}
    names.update(
        maximum=maximum,
        reassociating_add=reassociating_add,
        reassociating_multiply_add=reassociating_multiply_add,
        half=dtype(0.5),
        zero=dtype(0),
        one=dtype(1),
        infinity=dtype(np.inf),
        real=dtype,
        uintp=types.uintp,
    )
    exec(HAND_WRITTEN, names)
    kernels = ("scale", "mixture", "logsumexp", "softmax", "layernorm", "distance", "shifted", "columns")
    return {name: njit(error_model="numpy", nogil=True)(names[name]) for name in kernels}


def normalized(x: Any, mean: Any, root: Callable[[Any], Any]) -> Any:
    centred = x - mean(x)
    return centred * (1 / root(mean(centred * centred) + np.float32(1e-5)))


def expressions(dtype: str, columns: int) -> dict[str, tuple[list[Variable], Variable]]:
    x, y, z = (esat.tensor(name, dtype=dtype, shape=(None,)) for name in "xyz")
    a, b = (esat.tensor(name, dtype=dtype, shape=()) for name in "ab")
    m = esat.tensor("m", dtype=dtype, shape=(None, None))
    row, column = (esat.tensor(name, dtype=dtype, shape=(None,)) for name in ("row", "column"))
    mean = lambda v: esat.sum(v, axis=1, keepdims=True) * (1.0 / columns)  # noqa: E731
    return {
        "scale": ([x, a, b], a * x + b),
        "mixture": ([x, y, z], esat.tanh(x) * y + esat.exp(-z * z * 0.5)),
        "logsumexp": ([m], esat.logsumexp(m, axis=1)),
        "softmax": ([m], esat.softmax(m, axis=1)),
        "layernorm": ([m, row, column], normalized(m, mean, esat.sqrt) * row + column),
        "distance": ([x, y], esat.sum(esat.sqr(x - y))),
        "shifted": ([m, row, column], (m + row) * column.dimshuffle(0, "x")),
        "columns": ([m], esat.sum(m, axis=0)),
    }


def numpy_forms() -> dict[str, Callable[..., Array]]:
    def logsumexp(m: Array) -> Array:
        top = m.max(1, keepdims=True)
        return top[:, 0] + np.log(np.exp(m - top).sum(1))

    def softmax(m: Array) -> Array:
        e = np.exp(m - m.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def layernorm(m: Array, g: Array, b: Array) -> Array:
        return (m - m.mean(1, keepdims=True)) / np.sqrt(m.var(1, keepdims=True) + m.dtype.type(1e-5)) * g + b

    return {
        "scale": lambda x, a, b: a * x + b,
        "mixture": lambda x, y, z: np.tanh(x) * y + np.exp(-z * z * x.dtype.type(0.5)),
        "logsumexp": logsumexp,
        "softmax": softmax,
        "layernorm": layernorm,
        "distance": lambda x, y: np.sum((x - y) ** 2),
        "shifted": lambda m, r, c: (m + r) * c[:, None],
        "columns": lambda m: m.sum(0),
    }


def as_group(inputs: list[Variable], output: Variable) -> Group:
    nodes = FunctionGraph(inputs, [output], clone=False).toposort()
    computed = {variable for node in nodes for variable in node.outputs}
    read = dict.fromkeys(v for node in nodes for v in node.inputs if v not in computed)
    return Group("kernel", tuple(nodes), tuple(read), (output,))


def generated(inputs: list[Variable], output: Variable) -> tuple[Callable[..., None], list[int]]:
    """The kernel of an expression, and the positions of the inputs it is called with."""
    group = as_group(inputs, output)
    kernel = lower(group)
    passed = [group.inputs[place] for place in kernel.operands]
    # Every case is written so that the kernel takes just these inputs; their order may differ.
    places = {variable: place for place, variable in enumerate(inputs)}
    order = [places[variable] for variable in passed]
    return compile_kernel(kernel, host_target()).function, order


def measure(contenders: dict[str, Callable[[], object]], elements: int) -> dict[str, float]:
    repeats = max(1, 200_000 // max(elements, 1))
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(ROUNDS):
        for name, call in contenders.items():
            start = time.perf_counter_ns()
            for _ in range(repeats):
                call()
            times[name].append((time.perf_counter_ns() - start) / repeats / elements)
    return {name: float(np.median(found)) for name, found in times.items()}


def arrays_for(inputs: list[Variable], dtype: str, n: int, rows: int, columns: int) -> list[Array]:
    rng = np.random.default_rng(1)
    sizes = {"m": (rows, columns), "row": (columns,), "column": (rows,), "a": (), "b": ()}
    return [np.asarray(rng.standard_normal(sizes.get(v.name or "", (n,))), dtype) for v in inputs]


def main(dtype: str, sizes: list[int]) -> None:
    by_hand = hand_written(np.dtype(dtype).type)
    references = numpy_forms()
    print(f"{dtype:10}{'n':>10}{'generated':>12}{'by hand':>10}{'NumPy':>8}   ns per element")
    for n in sizes:
        columns = 1000 if n >= 100_000 else max(1, round(n**0.5))
        rows = n // columns
        for name, (inputs, output) in expressions(dtype, columns).items():
            data = arrays_for(inputs, dtype, n, rows, columns)
            if name == "layernorm":
                data[2] = data[1] + 1  # one bias for each column
            reference = references[name](*data)
            outs = [np.empty_like(reference) if reference.ndim else np.empty((), dtype) for _ in range(2)]
            kernel, order = generated(inputs, output)
            passed = [data[place] for place in order]
            contenders = {
                "generated": lambda kernel=kernel, out=outs[0], passed=passed: kernel(out, *passed),
                "by hand": lambda name=name, out=outs[1], data=data: by_hand[name](out, *data),
                "numpy": lambda name=name, data=data: references[name](*data),
            }
            found = measure(contenders, n)
            tolerance = 1e-3 if dtype == "float32" else 1e-9
            for out in outs:
                np.testing.assert_allclose(out, reference, rtol=tolerance, atol=tolerance)
            print(f"{name:10}{n:10}" + "".join(f"{t:11.3f}" for t in found.values()), flush=True)


if __name__ == "__main__":
    chosen = [argument for argument in sys.argv[1:] if argument.startswith("float")] or ["float64"]
    given = [int(float(argument)) for argument in sys.argv[1:] if not argument.startswith("float")]
    for dtype_name in chosen:
        main(dtype_name, given or [10_000, 1_000_000])
