"""Loops of numbers that are one function: bits of the results, in all orders and numbers of steps."""

import pickle

import numpy as np
import pytest

import esat
from esat.codegen.ground.scalar_loops import scalar_loop
from esat.compilation.recorded.content import NativeRecord, decoded, encoded, packed, unpacked
from esat.graph import FunctionGraph
from esat.ops.loops.parts import LoopParts
from esat.ops.loops.record import Scan
from esat.runtime.native.direct import recipe_in_one_thread

OPS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a, _: -a,
    "sqr": lambda a, _: a * a,
    "sqrt": lambda a, _: np.sqrt(np.abs(a)),
    "constant": lambda a, _: 0.1 * a,
}


def random_step(generator):
    """A step of two carries, two elements and an invariant, as a function of NumPy's numbers or variables."""
    choices = [
        (generator.choice([*OPS]), *generator.integers(0, 5 + number, 2)) for number in range(8)
    ]  # fmt: skip
    kept = generator.integers(5, 13, 4)

    def step(values):
        values = list(values)
        for name, left, right in choices:
            values.append(OPS[name](values[left], values[right]))
        return [0.5 * values[kept[0]], values[kept[1]], values[kept[2]], values[kept[3]]]

    return step


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 2, 37])
@pytest.mark.parametrize("seed", range(6))
def test_bits_are_those_of_numpy(seed, steps, reverse):
    generator = np.random.default_rng(seed)
    step = random_step(generator)
    fresh = [esat.scalar() for _ in range(5)]
    first = [esat.scalar() for _ in range(2)]
    rows, columns = esat.vector(), esat.matrix()
    fixed = esat.scalar()
    found = step(fresh)
    parts = LoopParts(
        esat.constant(np.int64(steps)),
        dict(zip(fresh[:2], first, strict=True)),
        found[:2],
        found[2:],
        {fresh[2]: rows, fresh[3]: columns[:, 1]},
        {fresh[4]: fixed},
        reverse=reverse,
    )
    node = parts.node()
    assert scalar_loop(node.op) is not None
    graph = esat.Graph([*first, rows, columns, fixed], node.outputs)
    compiled = esat.compile(graph, mode="strict")
    loops = [one.op for one in compiled.optimized.apply_nodes if isinstance(one.op, Scan)]
    assert all(scalar_loop(one) is not None for one in loops)
    data = [np.float64(0.3), np.float64(-0.7), generator.normal(size=steps + 2),
            generator.normal(size=(steps + 1, 3)), np.float64(1.25)]  # fmt: skip
    with np.errstate(all="ignore"):
        carries, traces = data[:2], np.empty((2, steps))
        for place in reversed(range(steps)) if reverse else range(steps):
            values = step([*carries, data[2][place], data[3][place, 1], data[4]])
            carries, traces[:, place] = values[:2], values[2:]
    for function in (compiled, pickle.loads(pickle.dumps(compiled))):
        for _ in range(300):
            results = function(*data)
        for own, other in zip(results, [*carries, *traces], strict=True):
            np.testing.assert_array_equal(own, other)


def test_a_variance_recurrence_is_one_function():
    def garch(w, a, b, r):
        v, total = np.float64(1.0), 0.0
        for t in range(len(r)):
            total = total - 0.5 * (np.log(v) + r[t] ** 2 / v)
            v = w + a * r[t] ** 2 + b * v
        return total

    r = np.random.default_rng(0).normal(size=500)
    compiled = esat.jit(garch)
    for _ in range(300):
        found = compiled(0.05, 0.1, 0.85, r)
    assert found == pytest.approx(garch(0.05, 0.1, 0.85, r), rel=1e-12)
    (loop,) = [node.op for node in compiled.latest.optimized.apply_nodes if isinstance(node.op, Scan)]
    assert scalar_loop(loop) is not None


def test_a_recorded_program_finds_its_loop():
    rows = esat.tensor(dtype="float64", shape=(9,))
    graph = esat.Graph([rows], esat.scan(lambda c, x: (0.25 * c + x / 3.0, c), 0.5, rows))
    function, given = esat.compile(graph), np.arange(9.0)
    wanted, calls = function(given), function._calls
    recipe = recipe_in_one_thread(calls.program, calls.table, ((9,),))
    content, code = encoded(recipe)
    assert any("ScalarLoop" in str(step) for step in content["steps"])
    (back,) = unpacked(memoryview(packed([NativeRecord(((9,),), (), False, None, content, code)])))
    found = decoded(back.recipe, back.code).function(lambda *_: "otherwise")(given)
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(own, other)


def test_loops_of_other_values_have_steps():
    number, vector = esat.scalar(), esat.tensor(dtype="float64", shape=(3,))
    assert scalar_loop(Scan(FunctionGraph([number], [esat.tanh(number)]), 1)) is None
    assert scalar_loop(Scan(FunctionGraph([vector], [vector * 2.0]), 1)) is None
    single = esat.tensor(dtype="float32", shape=())
    assert scalar_loop(Scan(FunctionGraph([single], [single * single]), 1)) is None
