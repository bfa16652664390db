"""The process of one contender in ``benchmarks.scale``: compiles one program.

``python -m benchmarks.peers.scale_worker CONTENDER FAMILY SIZE`` prints a line of JSON: ``{"size",
"seconds"}``, seconds from the first op of the program to its first result, or ``{"failed"}``. A program of a
tenth of the size is compiled before: what a process does once is no matter of size. It is no
larger, since kernels that the program has in common with it are there already.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.peers.contenders import module_name
from benchmarks.peers.scale_cases import FAMILIES, Family

LENGTH = 4
"""Of every axis: the time of the call is not what is measured."""


def esat_program(family: Family, size: int, namespace: Any) -> Callable[..., Any]:
    """The program as esat compiles it."""
    import esat

    inputs = [esat.tensor(f"x{place}", shape=(None,) * rank) for place, rank in enumerate(family.ranks(size))]
    results = family.build(size)(namespace, inputs)
    outputs = list(results) if isinstance(results, tuple) else [results]
    if family.by:
        outputs += esat.grad(outputs[0].sum(), [inputs[place] for place in family.by])
    compiled: Callable[..., Any] = esat.compile(esat.Graph(inputs, outputs))
    return compiled


def jax_program(family: Family, size: int, namespace: Any) -> Callable[..., Any]:
    """The program as JAX compiles it, when it is first called."""
    import jax

    build = family.build(size)

    def value(*inputs: Any) -> Any:
        return build(namespace, inputs)

    def with_gradient(*inputs: Any) -> Any:
        def total(*inputs: Any) -> Any:
            result = value(*inputs)
            return result.sum(), result

        gradients, result = jax.grad(total, family.by, has_aux=True)(*inputs)
        return (result, *gradients)

    compiled: Callable[..., Any] = jax.jit(with_gradient if family.by else value)
    return compiled


def pytensor_program(family: Family, size: int, namespace: Any) -> Callable[..., Any]:
    """The program as PyTensor compiles it."""
    import pytensor
    import pytensor.tensor as pt

    inputs = [
        pt.tensor(f"x{place}", dtype="float64", shape=(None,) * rank)
        for place, rank in enumerate(family.ranks(size))
    ]
    results = family.build(size)(namespace, inputs)
    outputs = list(results) if isinstance(results, tuple) else [results]
    if family.by:
        outputs += pytensor.grad(outputs[0].sum(), [inputs[place] for place in family.by])
    compiled: Callable[..., Any] = pytensor.function(inputs, outputs)
    return compiled


PROGRAMS: dict[str, Callable[[Family, int, Any], Callable[..., Any]]] = {
    "esat": esat_program,
    "jax": jax_program,
    "pytensor": pytensor_program,
}


def seconds_to_result(contender: str, family: Family, size: int) -> float:
    """Seconds from the program's first op to its first result."""
    module = importlib.import_module(module_name(contender))
    namespace = module.esat if contender == "esat" else module.Namespace
    arrays = [np.full((LENGTH,) * rank, 0.1) for rank in family.ranks(size)]
    begin = time.perf_counter()
    results = PROGRAMS[contender](family, size, namespace)(*arrays)
    for result in results if isinstance(results, (tuple, list)) else [results]:
        assert np.all(np.isfinite(np.asarray(result)))
    return time.perf_counter() - begin


def main(arguments: Sequence[str]) -> None:
    contender, name, text = arguments
    size = int(text)
    (family,) = [family for family in FAMILIES if family.name == name]
    sys.setrecursionlimit(1 << 16)  # PyTensor's and JAX's own demand; esat has none
    measure = functools.partial(seconds_to_result, contender, family)
    try:
        measure(max(size // 10, 9))
        print(json.dumps({"size": size, "seconds": measure(size)}), flush=True)
    except Exception as error:  # whatever a library raises is a result of the benchmark
        print(json.dumps({"failed": f"{type(error).__name__}: {error}"[:200]}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
