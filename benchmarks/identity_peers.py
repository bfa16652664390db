"""What another library makes of the identities: operations of its program, and the seconds it took.

``python -m benchmarks.identity_peers {jax,pytensor,sympy}`` in an environment that has it; prints a line of
JSON for each identity that it can state. Views, fills and constants count nothing, as for esat.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.identity_cases import IDENTITIES, SCALARS, Identity

SIZE = 64
Peer = Callable[[Identity], tuple[int, float]]


def jax_peer() -> Peer:
    """Instructions of the compiled module that compute something, those within fusions included."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    free = {
        *("parameter", "constant", "broadcast", "reshape", "transpose", "bitcast", "copy", "tuple", "fusion"),
        *("get-tuple-element", "convert", "iota", "slice", "call", "while", "conditional"),
    }
    instruction = re.compile(r"^\s*(?:ROOT )?%?[\w.-]+ = \S+ ([\w-]+)\(", re.MULTILINE)

    class Namespace:
        exp, sinh, cosh, tanh, sqrt = jnp.exp, jnp.sinh, jnp.cosh, jnp.tanh, jnp.sqrt
        sin, cos, tan, trace, diag = jnp.sin, jnp.cos, jnp.tan, jnp.trace, jnp.diag
        concatenate, conj, real, imag, abs = jnp.concatenate, jnp.conj, jnp.real, jnp.imag, jnp.abs
        sigmoid = jax.nn.sigmoid

    def run(case: Identity) -> tuple[int, float]:
        shapes = {"v": (SIZE,), "z": (SIZE,)}
        arrays = [
            jnp.ones(shapes.get(kind, (SIZE, SIZE)), complex if kind == "z" else float)
            for kind in case.inputs
        ]
        start = time.perf_counter()
        program = jax.jit(lambda *values: case.build(Namespace, *values)).lower(*arrays).compile()
        seconds = time.perf_counter() - start
        entry = [name for name in instruction.findall(program.as_text()) if name not in free]
        sums = len(re.findall(r"^%?region[\w.-]* ", program.as_text(), re.MULTILINE))
        return max(len(entry) - sums, 0), seconds  # what a reduction adds with is a computation of its own

    return run


def pytensor_peer() -> Peer:
    """Nodes of the graph before it is fused."""
    import pytensor
    import pytensor.tensor as pt

    pytensor.config.floatX = "float64"
    free = {"DimShuffle", "Alloc", "Shape_i", "Shape", "MakeVector", "Subtensor", "Second", "ExpandDims"}
    mode = pytensor.compile.mode.get_default_mode().excluding("fusion", "inplace")

    class Namespace:
        exp, sinh, cosh, tanh, sqrt, sigmoid = pt.exp, pt.sinh, pt.cosh, pt.tanh, pt.sqrt, pt.sigmoid
        sin, cos, tan, trace, diag = pt.sin, pt.cos, pt.tan, pt.trace, pt.diag
        concatenate, conj, real, imag, abs = pt.concatenate, pt.conj, pt.real, pt.imag, pt.abs

    def name_of(node: Any) -> str:
        scalar = getattr(node.op, "scalar_op", None)
        own = node.op if scalar is None or "Reduce" in type(node.op).__name__ else scalar
        name: str = type(own).__name__
        return name

    def run(case: Identity) -> tuple[int, float]:
        makers = {"v": pt.vector, "z": pt.zvector}
        inputs = [makers.get(kind, pt.matrix)(f"x{place}") for place, kind in enumerate(case.inputs)]
        start = time.perf_counter()
        output = case.build(Namespace, *inputs)
        function = pytensor.function(inputs, output, mode=mode, on_unused_input="ignore")
        seconds = time.perf_counter() - start
        names = [name_of(node) for node in function.maker.fgraph.toposort()]
        return sum(name not in free | {"Cast", "DeepCopyOp"} for name in names), seconds

    return run


def sympy_peer() -> Peer:
    """Operations of what ``simplify`` gives, with shared parts counted once and powers by squaring."""
    import sympy

    class Namespace:
        exp, sinh, cosh, tanh, sqrt = sympy.exp, sympy.sinh, sympy.cosh, sympy.tanh, sympy.sqrt
        sin, cos, tan = sympy.sin, sympy.cos, sympy.tan

    def count(expression: Any) -> int:
        shared, (rest,) = sympy.cse(expression)
        return sum(_own(part) for part in [rest, *(value for _, value in shared)])

    def _own(expression: Any) -> int:
        if not expression.args:
            return 0
        below = sum(map(_own, expression.args))
        if isinstance(expression, sympy.Pow) and expression.args[1].is_Integer:
            exponent = int(expression.args[1])
            size = abs(exponent)
            return below + size.bit_length() + size.bit_count() - 2 + (exponent < 0)
        if isinstance(expression, sympy.Add | sympy.Mul):
            signs = sum(arg in (-1, 1) for arg in expression.args)
            return below + len(expression.args) - 1 - (signs if isinstance(expression, sympy.Mul) else 0)
        return below + 1

    def run(case: Identity) -> tuple[int, float]:
        symbols = sympy.symbols("a b c s y", real=True)
        start = time.perf_counter()
        simple = sympy.simplify(sympy.nsimplify(case.build(Namespace, *symbols)))
        return count(simple), time.perf_counter() - start

    return run


PEERS = {"jax": jax_peer, "pytensor": pytensor_peer, "sympy": sympy_peer}


def main() -> None:
    """Print a line for each identity."""
    name = sys.argv[1]
    peer = PEERS[name]()
    for case in SCALARS if name == "sympy" else IDENTITIES:
        operations, seconds = peer(case)
        print(json.dumps([case.family, case.name, operations, seconds]), flush=True)


if __name__ == "__main__":
    main()
