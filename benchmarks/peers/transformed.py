"""Functions of functions in one library: the cases, and the process that times them.

``python -m benchmarks.peers.transformed LIBRARY`` serves requests, one JSON object a line: ``{"case": NAME,
"count": calls}`` is answered by ``{"seconds": of one call, "sum": of all results}``, or ``{"failed": why}``.
``esat`` is asked for ``"way": "loop"`` too: the compiled function of an element, called for each.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.peers.model_cases import MODELS, Model

Library = Any
"""``np``, the library's names of NumPy; ``grad``, ``vmap``, ``hessian``, ``value_and_grad`` and ``jit``."""


@dataclass(frozen=True)
class Batch:
    """A function of an element for all elements of a batch.

    Attributes
    ----------
    element
        ``element(library)``: the function of an element.
    shapes
        Of the arguments; the first size of those that have an axis in ``axes`` is the batch's.
    axes
        As ``vmap`` takes them.
    """

    element: Callable[[Library], Callable[..., Any]]
    shapes: tuple[tuple[int, ...], ...]
    axes: tuple[int | None, ...]

    def arrays(self) -> list[np.ndarray]:
        """The same in each process."""
        random = np.random.default_rng(0)
        return [random.uniform(0.5, 1.5, shape) for shape in self.shapes]


def _solved(library: Library) -> Callable[..., Any]:
    np = library.np
    return lambda a, b: np.linalg.solve(a @ a.T + 8 * np.eye(8), b)


def _softmax(library: Library) -> Callable[..., Any]:
    np = library.np

    def softmax(x: Any) -> Any:
        e = np.exp(x - np.max(x))
        return e / np.sum(e)

    return softmax


def _perceptron(library: Library) -> Callable[..., Any]:
    np = library.np
    return lambda x, w, v: np.tanh(np.tanh(x @ w) @ v)


def _logistic(library: Library) -> Callable[..., Any]:
    np = library.np
    return library.grad(lambda w, x, y: np.log(1 + np.exp(-y * np.sum(x * w))))


def _sharpness(library: Library) -> Callable[..., Any]:
    np = library.np
    return library.hessian(lambda x: np.sum(np.sin(x) * np.exp(-x)) ** 2)


def _normalized(library: Library) -> Callable[..., Any]:
    np = library.np
    return lambda x: (x - np.mean(x)) / np.std(x)


BATCHES: dict[str, Batch] = {
    "dot": Batch(lambda library: library.np.dot, ((1000, 50), (1000, 50)), (0, 0)),
    "matrix by vectors": Batch(lambda library: lambda a, x: a @ x, ((60, 60), (1000, 60)), (None, 0)),
    "quadratic forms": Batch(lambda library: lambda x, a: x @ a @ x, ((1000, 40), (40, 40)), (0, None)),
    "softmax": Batch(_softmax, ((1000, 30),), (0,)),
    "perceptron": Batch(_perceptron, ((1000, 20), (20, 30), (30, 5)), (0, None, None)),
    "normalized": Batch(_normalized, ((1000, 30),), (0,)),
    "polynomial": Batch(
        lambda library: lambda x: ((2 * x - 3) * x + 1) * x - library.np.exp(-x), ((20_000,),), (0,)
    ),
    "distances": Batch(
        lambda library: library.vmap(
            lambda x, y: library.np.sqrt(library.np.sum((x - y) ** 2)), in_axes=(None, 0)
        ),
        ((300, 3), (200, 3)),
        (0, None),
    ),
    "gradients": Batch(_logistic, ((20,), (1000, 20), (1000,)), (None, 0, 0)),
    "hessians": Batch(_sharpness, ((200, 10),), (0,)),
    "small systems": Batch(_solved, ((200, 8, 8), (200, 8)), (0, 0)),
}
MODEL = {model.name: model for model in MODELS}


def library_of(name: str) -> tuple[Library, Any]:
    """A library's transformations, and its names for models."""
    if name == "jax":
        import jax

        from benchmarks.peers.jax_contender import ModelNamespace as Names

        own: Any = jax
        return SimpleNamespace(np=jax.numpy, **_transformations(own)), Names
    import esat
    from benchmarks.peers.esat_contender import ModelNamespace

    return SimpleNamespace(np=np, **_transformations(esat)), ModelNamespace


def _transformations(module: Any) -> dict[str, Any]:
    return {name: getattr(module, name) for name in ("grad", "vmap", "hessian", "value_and_grad", "jit")}


def made(library: Library, names: Any, case: str, way: str) -> tuple[Callable[..., Any], Sequence[Any]]:
    """A case as a function, and its arguments."""
    kind, _, name = case.partition(": ")
    if kind == "vmap":
        batch = BATCHES[name]
        element, arrays = batch.element(library), batch.arrays()
        if way == "loop":
            return _in_loop(library.jit(element), batch), arrays
        return library.jit(library.vmap(element, in_axes=batch.axes)), arrays
    model: Model = MODEL[name]
    places = tuple(range(len(model.shapes)))
    transform = library.hessian if kind == "hessian" else library.value_and_grad

    def density(*parameters: Any) -> Any:
        return model.density(names, *parameters)

    return library.jit(transform(density, argnums=places)), model.arrays(model.size, "float64")


def _in_loop(each: Callable[..., Any], batch: Batch) -> Callable[..., Any]:
    count = next(shape[0] for shape, axis in zip(batch.shapes, batch.axes, strict=True) if axis == 0)

    def call(*arrays: np.ndarray) -> Any:
        rows = []
        for place in range(count):
            given = [a if axis is None else a[place] for a, axis in zip(arrays, batch.axes, strict=True)]
            rows.append(each(*given))
        return np.stack(rows)

    return call


def _leaves(value: Any) -> list[np.ndarray]:
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in _leaves(part)]
    return [np.asarray(value)]


def serve(name: str) -> None:
    """Answer requests until there are no more."""
    library, names = library_of(name)
    prepared: dict[tuple[str, str], tuple[Callable[..., Any], Sequence[Any]]] = {}
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            request = json.loads(line)
            key = request["case"], request.get("way", "")
            try:
                if key not in prepared:
                    prepared[key] = made(library, names, *key)
                answer = timed(*prepared[key], request["count"])
            except Exception as error:  # whatever a library raises is a result of the benchmark
                answer = {"failed": f"{type(error).__name__}: {error}"[:300]}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def timed(function: Callable[..., Any], arrays: Sequence[Any], count: int) -> dict[str, float]:
    """The mean time of some calls, whose results are taken as NumPy's arrays, after one that is not timed."""
    total = float(
        sum(
            np.sum(leaf * np.cos(np.arange(leaf.size).reshape(leaf.shape)))
            for leaf in _leaves(function(*arrays))
        )
    )
    begin = time.perf_counter()
    for _ in range(count):
        _leaves(function(*arrays))
    return {"seconds": (time.perf_counter() - begin) / max(count, 1), "sum": total}


if __name__ == "__main__":
    serve(sys.argv[1])
