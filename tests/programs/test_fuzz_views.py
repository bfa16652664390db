"""Random graphs of views, indices, reductions and products, compiled, against the interpreter."""

from collections.abc import Callable

import numpy as np
import pytest

import esat
from esat.graph import Variable
from esat.graph.algorithms.evaluate import evaluate
from esat.runtime.native import direct

LARGEST = 5_000


class RandomViews:
    """Grows a graph one random step at a time; knows the shape of everything it made."""

    def __init__(self, seed: int, size: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.index = esat.lvector("index")
        matrices = [esat.matrix("a"), esat.matrix("b")]
        self.inputs = [*matrices, esat.vector("c"), esat.tensor3("d"), self.index]
        shapes = [(4, 6), (6, 4), (6,), (2, 4, 6)]
        self.values = [self.rng.uniform(0.5, 1.5, shape) for shape in shapes]
        self.values.append(self.rng.integers(0, 4, 5))
        self.pool = list(zip(self.inputs[:4], shapes, strict=True))
        steps: list[Callable[[Variable, tuple[int, ...]], Variable | None]] = [
            self.transposed, self.reshaped, self.sliced, self.indexed, self.mapped, self.reduced,
            self.combined, self.multiplied, self.joined, self.gathered, self.set, self.normalized,
        ]  # fmt: skip
        for _ in range(size):
            variable, shape = self.pool[int(self.rng.integers(max(0, len(self.pool) - 7), len(self.pool)))]
            made = steps[int(self.rng.integers(len(steps)))](variable, shape)
            if made is not None:
                self.keep(made)
        self.outputs = [self.pool[int(place)][0] for place in self.rng.integers(4, len(self.pool) + 1, 3) - 1]
        self.outputs.append(self.pool[-1][0])

    def keep(self, variable: Variable) -> None:
        known = dict(zip(self.inputs, self.values, strict=True))
        shape = evaluate([variable], known)[0].shape
        if np.prod(shape) < LARGEST and len(shape) <= 4:
            self.pool.append((variable, shape))

    def like(self, shape: tuple[int, ...]) -> Variable:
        fitting = [variable for variable, other in self.pool if other == shape]
        return fitting[int(self.rng.integers(len(fitting)))]

    def transposed(self, variable: Variable, shape: tuple[int, ...]) -> Variable | None:
        return (
            variable.transpose(tuple(self.rng.permutation(len(shape)).tolist())) if len(shape) > 1 else None
        )

    def reshaped(self, variable: Variable, shape: tuple[int, ...]) -> Variable:
        return variable.reshape((-1,) if self.rng.random() < 0.5 else (int(np.prod(shape)), 1))

    def sliced(self, variable: Variable, shape: tuple[int, ...]) -> Variable | None:
        if not shape or shape[0] < 3 or shape[-1] < 3:
            return None
        return [variable[1:], variable[..., ::2], variable[..., ::-1]][int(self.rng.integers(3))]

    def indexed(self, variable: Variable, shape: tuple[int, ...]) -> Variable | None:
        return variable[int(self.rng.integers(-1, 1))] if shape and shape[0] else None

    def mapped(self, variable: Variable, shape: tuple[int, ...]) -> Variable:
        return esat.exp(-variable) if self.rng.random() < 0.5 else esat.tanh(variable)

    def reduced(self, variable: Variable, shape: tuple[int, ...]) -> Variable | None:
        if not shape:
            return None
        return variable.sum(axis=int(self.rng.integers(len(shape))), keepdims=bool(self.rng.random() < 0.5))

    def combined(self, variable: Variable, shape: tuple[int, ...]) -> Variable:
        other = self.like(shape)
        kinds = [variable + other, variable * other, variable - other, esat.maximum(variable, other)]
        return kinds[int(self.rng.integers(4))]

    def multiplied(self, variable: Variable, shape: tuple[int, ...]) -> Variable | None:
        fitting = [other for other, size in self.pool if len(shape) == len(size) == 2 and shape[1] == size[0]]
        return variable @ fitting[int(self.rng.integers(len(fitting)))] * 0.1 if fitting else None

    def joined(self, variable: Variable, shape: tuple[int, ...]) -> Variable | None:
        return esat.concatenate([variable, self.like(shape)], axis=0) if shape else None

    def gathered(self, variable: Variable, shape: tuple[int, ...]) -> Variable | None:
        return variable[self.index] if len(shape) == 2 and shape[0] >= 4 else None

    def set(self, variable: Variable, shape: tuple[int, ...]) -> Variable | None:
        if not shape or shape[0] < 3:
            return None
        change = esat.set_subtensor if self.rng.random() < 0.5 else esat.inc_subtensor
        return change(variable[1:3], variable[0:2] * 2)

    def normalized(self, variable: Variable, shape: tuple[int, ...]) -> Variable | None:
        if len(shape) != 2:
            return None
        return esat.softmax(variable, axis=1) if self.rng.random() < 0.5 else esat.logsumexp(variable, axis=0)


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "greedy"])
@pytest.mark.parametrize("seed", range(15))
def test_random_views_compute_what_the_interpreter_computes(mode: str, seed: int) -> None:
    graph = RandomViews(seed, size=6 + seed)
    used = set(esat.graph.ancestors(graph.outputs))
    known = {
        variable: value
        for variable, value in zip(graph.inputs, graph.values, strict=True)
        if variable in used
    }
    function = esat.compile(esat.Graph(list(known), graph.outputs), mode=mode)
    wanted = evaluate(graph.outputs, known)
    before = [value.copy() for value in known.values()]
    results = function(*known.values())
    for value, copy in zip(known.values(), before, strict=True):
        np.testing.assert_array_equal(value, copy)
    for got, want in zip(results, wanted, strict=True):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(20, 28))
def test_random_views_called_often(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Native functions take over, arrays of other layouts come in between, results go where they shall."""
    monkeypatch.setattr(direct, "CALLS", 2)
    graph = RandomViews(seed, size=4 + seed % 5)
    used = set(esat.graph.ancestors(graph.outputs))
    known = {
        variable: value
        for variable, value in zip(graph.inputs, graph.values, strict=True)
        if variable in used
    }
    function = esat.compile(esat.Graph(list(known), graph.outputs), "o2")
    wanted = evaluate(graph.outputs, known)
    for call in range(8):
        values = [np.asfortranarray(value) if call % 3 == 2 else value.copy() for value in known.values()]
        out = tuple(np.full_like(want, 7) for want in wanted) if call % 4 == 3 else None
        results = function(*values, out=out)
        assert out is None or all(array is result for array, result in zip(out, results, strict=True))
        for value, copy in zip(values, known.values(), strict=True):
            np.testing.assert_array_equal(value, copy)
        for got, want in zip(results, wanted, strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)
