"""Random graphs, compiled in every mode, against the reference interpreter."""

import numpy as np
import pytest

import esat
from esat.graph import Variable
from esat.graph.algorithms.evaluate import evaluate

UNARY = (
    "neg",
    "abs",
    "sqr",
    "exp",
    "log1p",
    "sqrt",
    "tanh",
    "sigmoid",
    "softplus",
    "sin",
    "cos",
    "expm1",
    "floor",
    "sign",
    "arctan",
    "erf",
    "reciprocal",
)
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")
SHAPES = ((3, 4), (1, 4), (3, 1), (1, 1))


class RandomGraph:
    """A graph over two-dimensional float64 operands that broadcast, with positive inputs."""

    def __init__(self, seed: int, size: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.inputs = [
            esat.tensor(f"x{index}", shape=tuple(1 if n == 1 else None for n in shape))
            for index, shape in enumerate(SHAPES)
        ]
        self.values = [self.rng.uniform(0.5, 1.5, shape) for shape in SHAPES]
        self.pool: list[Variable] = list(self.inputs)
        for _ in range(size):
            self.pool.append(self.grow())
        self.outputs = [self.pool[int(index)] for index in self.rng.integers(4, len(self.pool), 3)]
        self.outputs.append(self.pool[-1])

    def pick(self) -> Variable:
        recent = self.rng.random() < 0.7
        start = max(0, len(self.pool) - 6) if recent else 0
        return self.pool[int(self.rng.integers(start, len(self.pool)))]

    def grow(self) -> Variable:
        kind = self.rng.random()
        if kind < 0.3:
            return getattr(esat, str(self.rng.choice(UNARY)))(self.bounded(self.pick()))
        if kind < 0.75:
            return getattr(esat, str(self.rng.choice(BINARY)))(self.pick(), self.pick())
        if kind < 0.82:
            return self.pick() * float(self.rng.choice([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0]))
        if kind < 0.92:
            axis = int(self.rng.integers(0, 2))
            reduction = str(self.rng.choice(["sum", "mean", "max", "min"]))
            return getattr(self.pick(), reduction)(axis=axis, keepdims=True)
        if kind < 0.96:
            return esat.switch(esat.gt(self.pick(), 0.9), self.pick(), self.pick())
        return esat.softmax(self.pick(), axis=1)

    @staticmethod
    def bounded(variable: Variable) -> Variable:
        """Within (0.2, 1.3), where every function above is defined and smooth."""
        return esat.sigmoid(variable) + 0.2


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "greedy"])
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_compute_what_numpy_computes(mode: str, seed: int) -> None:
    graph = RandomGraph(seed, size=6 + 3 * seed)
    used = set(esat.graph.ancestors(graph.outputs))
    inputs = [variable for variable in graph.inputs if variable in used]
    values = [value for variable, value in zip(graph.inputs, graph.values, strict=True) if variable in used]
    function = esat.compile(esat.Graph(inputs, graph.outputs), mode=mode)
    with np.errstate(all="ignore"):
        wanted = evaluate(graph.outputs, dict(zip(inputs, values, strict=True)))
    for got, want in zip(function(*values), wanted, strict=True):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        finite = np.isfinite(want) & (np.abs(want) < 1e12)
        np.testing.assert_allclose(got[finite], want[finite], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "greedy"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint16", "int64", "float32", "float16"])
def test_arithmetic_of_every_dtype(mode: str, dtype: str) -> None:
    x, y, z = (esat.vector(name, dtype=dtype) for name in "xyz")
    rng = np.random.default_rng(3)
    if dtype == "bool":
        outputs = [(x + y) * z, esat.logical_not(x) & y]
        values = [rng.random(9) < 0.5 for _ in range(3)]
    else:
        outputs = [x * y + x * z, (x + y + z) - (y + x), x * x * y, -x + y, esat.maximum(x, y).sum()]
        limit = 100 if np.dtype(dtype).kind in "iu" else 4
        values = [rng.integers(0, limit, 9).astype(dtype) for _ in range(3)]
    graph = esat.Graph([x, y, z], outputs)
    wanted = evaluate(list(graph.outputs), dict(zip(graph.inputs, values, strict=True)))
    for got, want in zip(esat.compile(graph, mode=mode)(*values), wanted, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-2 if dtype == "float16" else 1e-5)


def test_empty_arrays_and_axes_of_size_one() -> None:
    x, y = esat.matrix("x"), esat.matrix("y")
    outputs = [x + y, (x * y).sum(axis=0), x.sum(), esat.exp(x).mean(axis=1), esat.logsumexp(x - y, axis=0)]
    function = esat.compile(esat.Graph([x, y], outputs))
    for shape in ((0, 3), (3, 0), (1, 3), (3, 1), (1, 1)):
        values = [np.full(shape, 2.0), np.full(shape, 3.0)]
        with np.errstate(all="ignore"):
            wanted = evaluate(outputs, dict(zip([x, y], values, strict=True)))
        for got, want in zip(function(*values), wanted, strict=True):
            np.testing.assert_allclose(got, want)
            assert got.shape == want.shape
