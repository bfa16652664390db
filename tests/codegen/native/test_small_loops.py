"""Loops of few numbers that are one function: bits of the results, in all orders and numbers of steps."""

import pickle

import numpy as np
import pytest

import esat
from esat.codegen.small_loops.scalar_loops import LoopOperand, printed_loop
from esat.codegen.small_loops.step_lines import MOST_LINES, MOST_NUMBERS
from esat.codegen.small_loops.stored_tables import contiguous
from esat.compilation.recorded.content import NativeRecord, decoded, encoded, packed, unpacked
from esat.graph import FunctionGraph
from esat.ops.loops.parts import LoopParts
from esat.ops.loops.record import Scan, While
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


def is_printed(op):
    """Whether a loop is one function, for arrays of these sizes, and of a few where types do not tell."""

    def operand(number, one):
        shape = tuple(MOST_NUMBERS + 2 if size is None else size for size in one.tensor_type.shape)
        shape = (9, *shape) if op.carries <= number < op.carries + op.sequences else shape
        return LoopOperand(shape, contiguous(shape, one.tensor_type.numpy_dtype.itemsize))

    operands = [operand(number, one) for number, one in enumerate(op.body.inputs)]
    return printed_loop(op, operands, [(9, *one.tensor_type.shape) for one in op.kept], 9) is not None


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
    assert is_printed(node.op)
    graph = esat.Graph([*first, rows, columns, fixed], node.outputs)
    compiled = esat.compile(graph, mode="strict")
    loops = [one.op for one in compiled.optimized.apply_nodes if isinstance(one.op, Scan)]
    assert all(is_printed(one) for one in loops)
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
    assert is_printed(loop)


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
    number, unknown = esat.scalar(), esat.vector()
    long = esat.tensor(dtype="float64", shape=(MOST_NUMBERS + 1,))
    for given, value in ((long, long * 2.0), (unknown, unknown * 2.0), (number, esat.mod(number, 3.0))):
        assert not is_printed(Scan(FunctionGraph([given], [value]), 1))
    first = matrix = esat.tensor(dtype="float64", shape=(4, 4))
    for count in range(2 + MOST_LINES // 64):
        assert is_printed(Scan(FunctionGraph([first], [matrix]), 1)) == (64 * count <= MOST_LINES)
        matrix = matrix @ first


def compared(step, carry, rows, fixed, tolerance):
    """A loop, compiled, has NumPy's values; the loops of the program."""

    def loop(*given):
        count = len(carry)
        state, trace = (
            list(given[:count]),
            np.zeros((len(rows), *np.shape(carry[0])), np.asarray(carry[0]).dtype),
        )
        for t in range(len(rows)):
            state = step(state, given[count][t], given[count + 1 :])
            trace[t] = state[0]
        return (*state, trace)

    compiled = esat.jit(loop)
    with np.errstate(all="ignore"):
        wanted = loop(*carry, rows, *fixed)
    for _ in range(3):
        found = compiled(*carry, rows, *fixed)
    for own, other in zip(found, wanted, strict=True):
        assert np.asarray(own).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(own, other, rtol=tolerance, atol=tolerance)
    loops = [node.op for node in compiled.latest.optimized.apply_nodes if isinstance(node.op, Scan)]
    assert loops
    assert all(is_printed(one) for one in loops)


def test_vectors_and_matrices_of_few_numbers():
    rng = np.random.default_rng(0)

    def lotka(state, row, fixed):
        def slope(y):
            return np.stack([fixed[0][0] * y[0] - y[0] * y[1], y[0] * y[1] - fixed[0][1] * y[1]])

        (y,) = state
        k1 = slope(y)
        k2 = slope(y + 0.005 * k1)
        k3 = slope(y + 0.005 * k2)
        return [y + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + 0.01 * k3)) + row]

    compared(lotka, [np.array([1.0, 0.5])], 0.01 * rng.normal(size=(30, 2)), [np.array([1.1, 0.4])], 1e-13)

    def covariance(state, row, fixed):
        m, P = state
        A, C = fixed
        P = A @ P @ A.T + 0.1 * np.eye(3)
        S = C @ P @ C.T + np.eye(2)
        gain = np.linalg.solve(S, C @ P).T
        m = A @ m + gain @ (row - C @ (A @ m))
        return [m, P - gain @ C @ P]

    A, C = 0.4 * rng.normal(size=(3, 3)), rng.normal(size=(2, 3))
    compared(covariance, [np.zeros(3), np.eye(3)], rng.normal(size=(40, 2)), [A, C], 1e-12)


def test_parts_of_small_arrays():
    rng = np.random.default_rng(0)

    def shifted(state, row, fixed):
        (y,) = state
        y = np.concatenate([y[1:], row[:1]]) + np.array([0.0, row[1], 0.0, 1.0])
        y[2] = 0.5 * y[0]
        y[1:3] += fixed[0][:, 1]
        return [y * y.max() / (1.0 + np.abs(y).sum()) - y.reshape(2, 2).T.ravel().min()]

    compared(shifted, [np.ones(4)], rng.normal(size=(25, 2)), [rng.normal(size=(2, 3))], 1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_single_numbers(dtype):
    rng = np.random.default_rng(0)

    def neuron(state, row, fixed):
        v, w, n = state
        fires = (v > fixed[0]) & (row > 0)
        w = np.where(fires, w + fixed[1], np.tanh(w) * np.exp(-np.abs(v)) - 0.1 * w**5 + v**-2 * 1e-3)
        v = np.where(fires, np.sin(w), np.maximum(v, -row) * np.cos(w) + np.log(1 + v * v))
        return [v.astype(dtype), w.astype(dtype), n + fires]

    first = [dtype(0.1), dtype(0.2), np.int64(3)]
    fixed = [np.asarray(dtype(0.3)), np.asarray(dtype(0.1))]
    tolerance = 2e-5 if dtype is np.float32 else 1e-12
    compared(neuron, list(map(np.asarray, first)), rng.normal(size=50).astype(dtype), fixed, tolerance)


def test_a_singular_system_is_numpys_error():
    @esat.jit
    def solved(A, rows):
        x = np.ones(2)
        for t in range(40):
            x = np.linalg.solve(A + rows[t] * np.eye(2), x)
        return x

    A, rows = np.array([[1.0, 2.0], [2.0, 4.0]]), np.ones(40)
    wanted = np.ones(2)
    for _ in range(40):
        wanted = np.linalg.solve(A + np.eye(2), wanted)
    np.testing.assert_allclose(solved(A, rows), wanted, rtol=1e-12)
    rows[20] = 0.0
    with pytest.raises(np.linalg.LinAlgError):
        solved(A, rows)


def test_steps_of_loops_that_end_by_a_value():
    @esat.jit
    def root(a):
        def far(state):
            x, _ = state
            return np.abs(x * x * x - a) > 1e-12

        def step(state):
            x, count = state
            return x - (x * x * x - a) / (3 * x * x), count + 1

        return esat.while_loop(far, step, (a, 0))

    for a in (2.0, 1.0, 9.0):
        found, count = root(a)
        assert found == pytest.approx(a ** (1 / 3), rel=1e-12)
        assert (count == 0) == (a == 1.0)
    (loop,) = [node.op for node in root.latest.optimized.apply_nodes if isinstance(node.op, While)]
    assert is_printed(loop)
    assert root.latest._calls.table.records


def test_numbers_of_steps_that_a_call_tells():
    y, n, rows = esat.vector(), esat.scalar(dtype="int64"), esat.matrix()
    y = esat.tensor(dtype="float64", shape=(2,))
    rows = esat.tensor(dtype="float64", shape=(None, 2))
    (last,) = esat.fori_loop(0, n, lambda t, c: (0.5 * c[0] + rows[0] * y,), (y,))
    f = esat.compile(esat.Graph([y, n, rows], [last]))
    data = np.array([1.0, -2.0]), np.array([[3.0, 0.25]])
    for count in (0, 1, 7, 100, 7):
        wanted = data[0]
        for _ in range(count):
            wanted = 0.5 * wanted + data[1][0] * data[0]
        for _ in range(3):
            np.testing.assert_allclose(f(data[0], np.int64(count), data[1]), wanted, rtol=1e-14)
