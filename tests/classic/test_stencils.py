"""Windows of elementwise results: which are computed by their readers, and that results stay the same."""

from typing import Any

import numpy as np
import pytest
from effort import assert_near_linear
from phases.programs import Program, assert_results, graph_of

import esat
from benchmarks.peers.simulation_cases import horizontal_diffusion
from esat import codegen
from esat.classic.stencils import fuse_stencils
from esat.errors import ShapeError
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import MachineProfile
from esat.graph import FunctionGraph
from esat.phases.fusing.fusion import fuse
from esat.phases.memory.effects import Permissions

RNG = np.random.default_rng(41)
MODEL = CostModel(MachineProfile())
NOTHING = Permissions(frozenset(), ())


def differences(x: Any) -> Any:
    return x[1:] - x[:-1]


def every_other(x: Any) -> Any:
    return x[::2, 1:] + x[::2, :-1]


def with_reversed(x: Any) -> Any:
    return x[::-1] - x[:, ::-1]


def sums(xp: Any, x: Any) -> Any:
    return xp.sum(x[1:] * x[:-1], axis=1)


def and_whole(x: Any) -> Any:
    return x, differences(x)


def and_sum(x: Any) -> Any:
    return differences(x), x.sum()


def ends(x: Any) -> Any:
    return x[1:], x[:-1]


def first_three(x: Any) -> Any:
    return x[:3] - x[1:4]


FUSED: dict[str, Program] = {
    "differences": lambda xp, x, y, v: differences(x * y),
    "of differences": lambda xp, x, y, v: xp.diff(xp.diff(xp.diff(x, axis=0), axis=0), axis=0),
    "limiter": lambda xp, x, y, v: differences(xp.where(differences(x) > 0.0, differences(y), 0.5)),
    "a row is stretched": lambda xp, x, y, v: differences(x * v),
    "a column is stretched": lambda xp, x, y, v: differences(x * v[:, None]),
    "every other one": lambda xp, x, y, v: every_other(2.0 * x),
    "backwards": lambda xp, x, y, v: with_reversed(x * x),
    "a part of a part": lambda xp, x, y, v: differences((x[1:] * y[1:])[:-1, 2:]),
    "a reduction": lambda xp, x, y, v: sums(xp, x * y),
}
APART: dict[str, Program] = {
    "expensive": lambda xp, x, y, v: differences(xp.exp(x)),
    "a result": lambda xp, x, y, v: and_whole(x * y),
    "read whole": lambda xp, x, y, v: and_sum(x * y),
    "windows are results": lambda xp, x, y, v: ends(x * y),
    "sizes would not be compared": lambda xp, x, y, v: first_three(x * y),
}


def variables(dtype: str, shape: tuple[int | None, int | None]) -> list[Any]:
    matrices = [esat.tensor(name, shape=shape, dtype=dtype) for name in "xy"]
    return [*matrices, esat.tensor("v", shape=shape[1:], dtype=dtype)]


def arrays(dtype: str, size: int) -> list[Any]:
    return [RNG.normal(size=shape).astype(dtype) for shape in ((size, size), (size, size), (size,))]


def stencils(graph: esat.Graph) -> tuple[FunctionGraph, FunctionGraph]:
    given = graph.function_graph()
    return given, fuse_stencils(given, codegen, MODEL, NOTHING)


def kernels(graph: FunctionGraph) -> int:
    return sum(group.kind == "kernel" for group in fuse(graph, codegen).groups)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(None, None), (40, 40)], ids=["open", "fixed"])
@pytest.mark.parametrize("name", FUSED)
def test_readers_compute_windows(name: str, shape: tuple[int | None, int | None], dtype: str) -> None:
    places, graph = graph_of(FUSED[name], variables(dtype, shape))
    before, after = stencils(graph)
    assert kernels(before) > kernels(after) == 1
    given = arrays(dtype, 40)
    wanted = FUSED[name](np, *given)
    tolerance = 1e-14 if dtype == "float64" else 1e-6
    found = esat.compile(graph)(*(given[place] for place in places))
    assert_results([found], (wanted,), tolerance)


@pytest.mark.parametrize("name", APART)
def test_others_stay(name: str) -> None:
    _, graph = graph_of(APART[name], variables("float64", (None, None)))
    before, after = stencils(graph)
    assert after is before


@pytest.mark.parametrize(
    ("shape", "count"),
    [((None, None, None), 1), ((16, 500, 500), 1), ((2, 12, 11), 2)],
    ids=["open", "large", "small"],
)
def test_horizontal_diffusion_is_one_kernel_unless_caches_hold_all(
    shape: tuple[int | None, ...], count: int
) -> None:
    inner = tuple(None if size is None else size - less for size, less in zip(shape, (0, 4, 4), strict=True))
    inputs = [esat.tensor("field", shape=shape), esat.tensor("coefficient", shape=inner)]
    graph = esat.Graph(inputs, [horizontal_diffusion(esat, *inputs)])
    before, after = stencils(graph)
    assert (kernels(before), kernels(after)) == (4, count)
    sizes = [9 if size is None else size for size in shape]
    field, coefficient = RNG.normal(size=sizes), RNG.normal(size=[sizes[0], sizes[1] - 4, sizes[2] - 4])
    found = esat.compile(graph)(field, coefficient)
    np.testing.assert_allclose(found, horizontal_diffusion(np, field, coefficient), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", range(5))
def test_windows_of_few_elements_are_empty(size: int) -> None:
    x, y = (esat.matrix(name) for name in "xy")
    function = esat.compile(esat.Graph([x, y], [esat.diff(esat.diff(x * y, axis=0), axis=0)]))
    given = arrays("float64", size)[:2]
    wanted = np.diff(np.diff(given[0] * given[1], axis=0), axis=0)
    np.testing.assert_allclose(function(*given), wanted, rtol=0, atol=1e-13)


def test_sizes_that_differ_are_found() -> None:
    x, y = (esat.vector(name) for name in "xy")
    for program in (differences(x * y), first_three(x * y)):
        function = esat.compile(esat.Graph([x, y], [program]))
        with pytest.raises(ShapeError, match="do not match"):
            function(np.ones(5), np.ones(6))


def test_readers_of_shared_windows_run_before_those_are_overwritten() -> None:
    state = esat.shared(np.arange(8.0), name="state")
    step = 2.0 * state
    following = esat.set_subtensor(state[1:-1], step[2:] - step[:-2])
    function = esat.compile(esat.Graph([], [step[1:] - step[:-1]], updates={state: following}))
    value = np.arange(8.0)
    for _ in range(3):
        value, doubled = value.copy(), 2.0 * value
        np.testing.assert_allclose(function(), doubled[1:] - doubled[:-1])
        value[1:-1] = doubled[2:] - doubled[:-2]
        np.testing.assert_allclose(state.get_value(), value)


@pytest.mark.parametrize("seed", range(40))
def test_random_stencils(seed: int) -> None:
    """Sums, products and choices of random windows of each other are what NumPy computes."""
    rng = np.random.default_rng(seed)

    def program(xp: Any, x: Any, y: Any) -> Any:
        choices = np.random.default_rng(seed)
        known = [(x, 0, 0), (y, 0, 0)]
        for _ in range(6):
            first, second = (known[choices.integers(len(known))] for _ in range(2))
            rows, columns = (max(first[axis], second[axis]) + choices.integers(3) for axis in (1, 2))

            def window(one: Any, rows: int = rows, columns: int = columns) -> Any:
                array, fewer, narrower = one
                index = []
                for left in (rows - fewer, columns - narrower):
                    start = int(choices.integers(left + 1))
                    index.append(slice(start or None, start - left or None))
                return array[tuple(index)]

            left, right = window(first), window(second)
            results = [left + right, left * right - 0.5, xp.where(left > right, left, 2.0 * right)]
            known.append((results[choices.integers(3)], rows, columns))
        return known[-1][0] + 1.0

    inputs = [esat.matrix(name) for name in "xy"]
    places, graph = graph_of(program, inputs)
    given = [rng.normal(size=(15, 16)) for _ in inputs]
    found = esat.compile(graph)(*(given[place] for place in places))
    assert_results([found], (program(np, *given),), 1e-12)


def test_effort_grows_as_the_graph_does() -> None:
    def prepare(size: int) -> Any:
        x = esat.vector("x")
        result = x
        for _ in range(size):
            result = (0.5 * result)[1:] - (0.5 * result)[:-1]
        graph = FunctionGraph([x], [result])
        return lambda: fuse_stencils(graph, codegen, MODEL, NOTHING)

    assert_near_linear(prepare, 20)
