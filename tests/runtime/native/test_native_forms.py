"""Steps that are no kernels in native functions: the driver's results, bit for bit, and its errors."""

import json

import numpy as np
import pytest
from callers import call_at_once
from native_calls import as_tuple, by_driver, way_of

import esat
from esat.compilation.recorded.content import decoded, encoded
from esat.errors import AssertionFailed, EsatError, IndexingError
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import MachineProfile
from esat.graph.algorithms.evaluate import evaluate
from esat.phases.fusing.price import PYTHON_SECONDS, plan_seconds
from esat.phases.native import NATIVE_FORMS, VIEWS, has_native_steps
from esat.runtime.native import direct, native_forms

X, Y = esat.vector("x"), esat.vector("y")
M, N = esat.matrix("m"), esat.matrix("n")
T = esat.tensor("t", shape=(None, None, None), dtype="float64")
S = esat.scalar("s")
K = esat.vector("k", dtype="int32")
C = esat.vector("c", dtype="complex128")
F = esat.matrix("f", dtype="float32")
B = esat.scalar("b", dtype="bool")
P, Q = esat.tensor("p", shape=(4, 4)), esat.tensor("q", shape=(4, 4))
SHAPES = {
    P: (4, 4),
    Q: (4, 4),
    X: (5,),
    Y: (5,),
    M: (4, 5),
    N: (4, 5),
    T: (3, 4, 5),
    S: (),
    K: (6,),
    C: (4,),
    F: (4, 5),
    B: (),
}

PROGRAMS = {
    "an input": ([X], [X]),
    "a transpose": ([M], [M.T]),
    "the same twice": ([X], [esat.exp(X)] * 2),
    "a part and the whole": ([X], [esat.exp(X)[1:3], esat.exp(X)]),
    "reversed": ([X, M], [X[::-1], M[::-2, ::3]]),
    "a constant": ([X], [esat.concatenate([np.zeros(0), np.arange(3.0)]), X + 1.0]),
    "joined": ([X, Y], [esat.concatenate([X * 2.0, Y[1:], X + Y])]),
    "joined columns": ([M, N], [esat.concatenate([M.T, N.T[:, ::-1]], axis=1)]),
    "stacked": ([M, N], [esat.stack([M, N], axis=2)]),
    "joined integers": ([K], [esat.concatenate([K, K[::-1]])]),
    "joined bools": ([M, N], [esat.concatenate([M > 0.0, N > 0.0], axis=1)]),
    "joined complex numbers": ([C], [esat.concatenate([C, C[::-1]])]),
    "joined, then used": ([X, Y], [esat.sum(esat.concatenate([X, Y[:2]]) ** 2) * Y]),
    "stacked scalars": ([S, X], [esat.stack([S, X[0], S * X[1]])]),
    "set": ([M, X], [esat.set_subtensor(M[1], X), esat.set_subtensor(M[:, 2], 3.0)]),
    "set in a result": ([M, X], [esat.set_subtensor(esat.exp(M)[1:3, ::-1], X)]),
    "added": ([M, X], [esat.inc_subtensor(M[::2], X), esat.inc_subtensor(M[1, 2], X[0])]),
    "added float32": ([F], [esat.inc_subtensor(esat.tanh(F)[1:, :2], F[:3, 3:])]),
    "added integers": ([K], [esat.inc_subtensor(K[:3], K[3:])]),
    "added complex numbers": ([C], [esat.inc_subtensor(C[:2], C[:1:-1])]),
    "overlapping parts": ([X], [esat.set_subtensor(X[1:], X[:-1]), esat.inc_subtensor(X[:-1], X[1:])]),
    "gradient of parts": ([X], [esat.grad(esat.sum(X[1:] * X[:-1]) + X[2] ** 2, X)]),
    "rolled": ([X, M], [esat.roll(X, 2), esat.roll(M, -1, axis=1)]),
    "halves": ([M], [M[: M.shape[0] // 2] + M[M.shape[0] // 2 :]]),
    "split": ([M], list(esat.split(M[:, :4], 2, axis=1))),
    "reshaped": ([M], [esat.reshape(M.T, (2, 10)), esat.exp(esat.reshape(M, (20,)))]),
    "axes of a tensor": ([T], [esat.transpose(T, (2, 0, 1)), esat.sum(esat.transpose(T, (2, 0, 1)), axis=1)]),
    "strided kernels": ([M, N], [M[::2, ::2] + N[1::2, ::-2], esat.exp(M.T) * N.T]),
    "strided sums": ([M], [esat.sum(M[:, ::2], axis=0), esat.sum(M.T, axis=1)]),
    "diagonals": ([M], [esat.diagonal(M, 1) * 2.0, esat.diagonal(M, -2)]),
    "on a diagonal": (
        [X, C, K],
        [esat.diag(X), esat.diag(X[::-1], 2), esat.diag(C, -1), esat.sum(esat.diag(K) @ esat.diag(K, 0))],
    ),
    "blocks": ([M, N, C], [esat.linalg.block_diag(M, N.T, M[:1]), esat.linalg.block_diag(C[None])]),
    "asserted": ([X], [esat.assert_(X, X > -9.0) * 2.0]),
    "specified": ([M], [esat.exp(esat.specify_shape(M, (4, None)))]),
    "chosen": ([B, X, Y], [esat.ifelse(B, esat.concatenate([X, Y]), esat.concatenate([Y, esat.exp(X)]))]),
    "chosen within a choice": (
        [B, X, Y],
        [esat.ifelse(B, esat.ifelse(X[0] > 0.0, esat.exp(X), X), Y + 1.0) * 2.0],
    ),
    "several chosen": ([B, X, Y], list(esat.ifelse(B, [X, esat.sin(Y)], [Y, X * 3.0]))),
    "short rows": ([M], [esat.softmax(M[:, :3], axis=1)]),
    "sorted": (
        [X, M, T, K],
        [esat.sort(X), esat.sort(M, axis=0), esat.sort(T[:, ::-1], axis=1), esat.sort(K)],
    ),
    "sorted places": (
        [X, M, T, K],
        [esat.argsort(X), esat.argsort(M, axis=0), esat.argsort(T[:, ::-1], axis=1), esat.argsort(K % 3)],
    ),
    "sorted others": ([C, F, M], [esat.sort(C), esat.sort(F.T, axis=0), esat.argsort(F), esat.sort(M > 0.0)]),
    "running sums": (
        [X, M, T, K, F],
        [
            esat.cumsum(X),
            esat.cumsum(M, axis=0),
            esat.cumsum(T[::-1], axis=1),
            esat.cumsum(K),
            esat.cumsum(F, axis=1),
        ],
    ),
    "running products": ([X, M, K], [esat.cumprod(X), esat.cumprod(M[:, ::2], axis=1), esat.cumprod(K[:3])]),
    "searched": (
        [X, M, F, K],
        [
            esat.searchsorted(esat.sort(X), M),
            esat.searchsorted(esat.sort(X), M.T, side="right"),
            esat.searchsorted(esat.sort(F[0]), F[::2, 0], side="right"),
            esat.searchsorted(esat.sort(K), K + 1),
            esat.searchsorted(esat.sort(K), K, side="right"),
        ],
    ),
    "a product added to a transpose": (
        [M, N],
        [esat.concatenate([M, N]).T + 2.0 * (M.T @ esat.concatenate([M @ M.T, N @ N.T], axis=1))],
    ),
    "small products with a scale": ([P, Q, S], [S * (P @ Q) + Q @ P, S * (P.T @ P) - (Q @ Q).T]),
    "by Python": ([M, P], [esat.linalg.expm(P) @ P, esat.linalg.pinv(M.T)]),
    "functions of SciPy": ([X, F], [esat.digamma(X) * X + 1.0, esat.erfinv(esat.tanh(F.T))]),
    "gathered": ([M, K], [esat.exp(M)[K % 4], esat.sin(M)[:, ::-1][:, K % 5]]),
    "scattered": ([X, K], [esat.inc_subtensor(X[K % 5], 1.0), esat.set_subtensor(esat.exp(X)[K % 5], 2.0)]),
    "a part of a size that is known, from a number": ([M, B], [esat.cos(M)[B.astype("int64")]]),
    "complex numbers": ([C, X], [esat.exp(C) * C, esat.sum(C[::-2]), esat.real(esat.fft.fft(X)) + 1.0]),
    "products of complex numbers": ([C], [esat.outer(C, C) @ C]),
    "products of integers": ([K], [esat.outer(K, K) @ K + 1]),
    "filled": ([S, M], [esat.full((2, 3), S), esat.broadcast_to(M[0], (3, 5))]),
}


UNRECORDED = {"products of complex numbers", "products of integers"}
"""Those whose products are calls of SciPy's and NumPy's that only this process has."""
NATIVE = ("native", "native with shared")


def arrays_for(inputs, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for variable in inputs:
        dtype = variable.type.dtype
        values = rng.standard_normal(SHAPES[variable]) * (1 if dtype[0] != "i" else 20)
        if dtype == "bool":
            values = seed % 2
        elif dtype == "complex128":
            values = values + 1j * rng.standard_normal(SHAPES[variable])
        made.append(np.asarray(values, dtype))
    return made


def frequent(inputs, outputs, **named):
    """A program that was called until its calls are native."""
    program = esat.compile(esat.Graph(inputs, outputs, **named), esat.Mode("fast_run", variants=0))
    for _ in range(direct.CALLS + 1):
        program(*arrays_for(inputs))
    return program


@pytest.fixture(autouse=True)
def few_calls(monkeypatch):
    monkeypatch.setattr(direct, "CALLS", 3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_native_calls_give_the_drivers_results(name):
    inputs, outputs = PROGRAMS[name]
    program = frequent(inputs, outputs)
    assert way_of(program) in NATIVE
    for seed in (1, 2):
        arrays = arrays_for(inputs, seed)
        before = [array.copy() for array in arrays]
        wanted = as_tuple(by_driver(program, *arrays))
        found = as_tuple(program(*arrays))
        again = as_tuple(program(*arrays))
        out = tuple(np.zeros_like(one) for one in wanted)
        program(*arrays, out=out if len(out) > 1 else out[0])
        for one, other, third, given in zip(found, wanted, again, out, strict=True):
            assert (one.dtype, one.shape, one.flags.c_contiguous) == (other.dtype, other.shape, True)
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(given, other)
            assert not np.shares_memory(one, third)
            assert not any(np.shares_memory(one, array) for array in arrays)
        for array, kept in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, kept)
    assert way_of(program) in NATIVE
    arrays = arrays_for(inputs, 3)
    is_alone = name in UNRECORDED
    native = recipe_for(program, arrays).function(refused) if is_alone else recorded(program, arrays)
    found = as_tuple(native(*arrays))
    for one, other in zip(found, as_tuple(program(*arrays)), strict=True):
        np.testing.assert_array_equal(one, other)


WRITTEN_OVER = {
    "a product is added": lambda m, n: m @ n + esat.eye(130),
    "a product is added to its half": lambda m, n: esat.tanh(m @ n - 2.0 * esat.eye(130)),
    "a view of it is written to": lambda m, n: esat.inc_subtensor(esat.eye(130).T[1:], m[1:]),
    "it is read as well": lambda m, n: (m @ n + esat.eye(130), esat.eye(130) * m),
}


@pytest.mark.parametrize("name", WRITTEN_OVER)
def test_what_is_known_is_so_in_each_call_though_steps_write_over_it(name):
    m, n = (esat.matrix(one) for one in "mn")
    results = as_tuple(WRITTEN_OVER[name](m, n))
    graph = esat.Graph([m, n], list(results), on_unused_input="ignore")
    program = esat.compile(graph, esat.Mode("fast_run", variants=0, threads=1))
    arrays = np.random.default_rng(5).normal(size=(2, 130, 130))
    wanted = as_tuple(by_driver(program, *arrays))
    for _ in range(direct.CALLS + 3):
        for one, other in zip(as_tuple(program(*arrays)), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    assert way_of(program) in NATIVE
    for one, other in zip(as_tuple(recorded(program, arrays)(*arrays)), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def recorded(program, arrays):
    """The native function that another process would find on disk."""
    content, code = encoded(recipe_for(program, arrays))
    return decoded(json.loads(json.dumps(content)), code).function(refused)


def recipe_for(program, arrays):
    """What the native function does for arguments of such shapes."""
    key = tuple(array.shape for array in arrays)
    return direct.recipe_in_one_thread(program._program, program._calls.table, key)


def refused(*arguments, **named):
    """What must not be called: the native function admits the arguments, and no step refuses them."""
    raise AssertionError("the native function refused the call")


@pytest.mark.parametrize("part", [lambda n: X[:n], lambda n: X[n:] * 2.0, lambda n: X[:n].sum()])
def test_parts_of_sizes_that_shapes_do_not_decide_stay_with_the_driver(part):
    n = esat.scalar("n", dtype="int64")
    program = esat.compile(esat.Graph([X, n], [part(n)]))
    values = np.arange(5.0)
    for call in range(12):
        size = np.int64(call % 6)
        known = {X: values, n: np.asarray(size)}
        np.testing.assert_array_equal(program(values, size), evaluate([part(n)], known)[0])
    assert way_of(program) == "driver"


def test_an_assertion_that_fails_raises_as_before_and_native_calls_go_on():
    program = frequent([X, Y], [esat.exp(esat.assert_(X, X > -9.0, message="too small")), Y * 2.0])
    assert way_of(program) in NATIVE
    x, y = arrays_for([X, Y])
    wrong = x.copy()
    wrong[3] = -10.0
    for _ in range(3):
        with pytest.raises(AssertionFailed, match=r"too small"):
            program(wrong, y)
        np.testing.assert_array_equal(program(x, y)[0], by_driver(program, x, y)[0])
    assert way_of(program) in NATIVE


def test_a_refusal_leaves_shared_variables_and_given_arrays_of_the_next_call_intact():
    total = esat.shared(np.zeros(5), name="total")
    program = frequent([X], [esat.sum(X)], updates={total: esat.assert_(total + X, X > -9.0)})
    before = total.get_value()
    with pytest.raises(AssertionFailed):
        program(np.full(5, -10.0))
    np.testing.assert_array_equal(total.get_value(), before)
    program(np.ones(5))
    np.testing.assert_array_equal(total.get_value(), before + 1.0)


def test_what_may_be_refused_after_an_update_stays_with_the_driver():
    total = esat.shared(np.zeros(5), name="total")
    program = frequent([X], [esat.assert_(total + X, X > -9.0)], updates={total: total * 2.0 + X})
    value = total.get_value()
    with pytest.raises(AssertionFailed):
        program(np.full(5, -10.0))
    np.testing.assert_array_equal(total.get_value(), value)


def test_parts_of_shared_variables_are_written_in_place():
    state = esat.shared(np.zeros((3, 5)), name="state")
    program = frequent([X], [X * 2.0], updates={state: esat.set_subtensor(state[1], X)})
    assert way_of(program) in NATIVE
    program(np.arange(5.0))
    np.testing.assert_array_equal(state.get_value(), [np.zeros(5), np.arange(5.0), np.zeros(5)])


STEPS = {
    "matrix": ((5, 5), lambda w, m, n, x: w - 0.1 * (m.T @ n)),
    "matrix that decays": ((5, 5), lambda w, m, n, x: 0.5 * w - 0.1 * (m.T @ n)),
    "vector": ((4,), lambda w, m, n, x: w - 0.1 * (m @ x)),
    "vector by columns": ((5,), lambda w, m, n, x: 0.9 * w - 0.1 * (m.T @ n[:, 0])),
    "vector times a matrix": ((5,), lambda w, m, n, x: n[:, 1] @ m / 2.0 - w),
    "vector times columns": ((4,), lambda w, m, n, x: w + x @ m.T),
}


@pytest.mark.parametrize("step", STEPS)
def test_products_are_added_to_shared_variables_in_place(step):
    shape, build = STEPS[step]
    start = np.arange(float(np.prod(shape))).reshape(shape)
    weights = esat.shared(start, name="weights")
    place = weights.get_value(borrow=True)
    program = frequent([M, N, X], [M * N * X], updates={weights: build(weights, M, N, X)})
    assert "gemm{inplace}" in [str(node.op) for node in program.graph.toposort()]
    assert way_of(program) in NATIVE
    expected = start
    for _ in range(direct.CALLS + 1):
        expected = build(expected, *arrays_for([M, N, X]))
    np.testing.assert_allclose(weights.get_value(), expected, rtol=1e-12)
    assert weights.get_value(borrow=True) is place


def test_a_part_that_is_not_there_raises_as_before():
    program = frequent([M], [esat.set_subtensor(M[3], 1.0)])
    assert way_of(program) in NATIVE
    for _ in range(6):
        with pytest.raises(IndexingError):
            program(np.ones((2, 5)))


def test_sizes_that_do_not_fit_raise_as_before():
    program = frequent([M, N], [esat.concatenate([M, N])])
    wrong = [np.ones((2, 3)), np.ones((2, 4))]
    with pytest.raises(EsatError) as raised_by_driver:
        by_driver(program, *wrong)
    for _ in range(6):
        with pytest.raises(type(raised_by_driver.value)):
            program(*wrong)


def test_threads_share_a_native_function():
    program = frequent([X, Y], [esat.concatenate([esat.exp(X), Y])])

    def call():
        for number in range(300):
            x = np.full(5, number / 300)
            np.testing.assert_array_equal(program(x, x)[5:], x)

    call_at_once(call, 4)


def test_sides_that_are_not_chosen_are_not_computed():
    program = frequent([B, X], [esat.ifelse(B, esat.assert_(X, X > 0.0) * 2.0, X)])
    negative = -np.ones(5)
    np.testing.assert_array_equal(program(np.asarray(False), negative), negative)
    with pytest.raises(AssertionFailed):
        program(np.asarray(True), negative)
    assert way_of(program) in NATIVE


def test_ops_with_a_form_are_those_that_prices_know():
    assert set(native_forms._FORMS) == set(NATIVE_FORMS.values()) | VIEWS


def test_numbers_are_arguments_of_native_calls():
    flag, step, small = (
        esat.scalar("flag", "bool"),
        esat.scalar("step", "int64"),
        esat.scalar("small", "float32"),
    )
    program = esat.compile(esat.Graph([X, S, flag, step, small], [esat.switch(flag, X * S, X) + step, small]))
    x = arrays_for([X])[0]
    numbers = [np.float64(0.1), np.bool_(True), np.int64(-3), np.float32(0.7)]
    for _ in range(direct.CALLS + 1):
        program(x, *numbers)
    assert way_of(program) in NATIVE
    shapes = ((5,), (), (), (), ())
    recipe = direct.recipe_in_one_thread(program._program, program._calls.table, shapes)
    native = recipe.function(lambda *_arguments, **_named: None)
    arrays = [np.asarray(number) for number in numbers]
    of_python = [-3, np.True_, 7, np.float32(0.7)]
    for given in (numbers, arrays, [0.1, *arrays[1:]], of_python, [1 << 53, *arrays[1:]]):
        for one, other in zip(native(x, *given), program._calls.driver.call(x, *given), strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_array_equal(one, other)
    for step in (-(1 << 63), (1 << 63) - 1):
        np.testing.assert_array_equal(native(x, 0.1, np.False_, step, np.float32(0.7))[0], x + step)
    for wide, step in (
        ((1 << 53) + 1, 1),
        (-(1 << 53) - 1, 1),
        (1 << 64, 1),
        (1, 1 << 63),
        (1, -(1 << 63) - 1),
    ):
        assert (
            native(x, wide, np.False_, step, np.float32(0.7)) is None
        )  # the driver says what it makes of it
    assert native(x, 0.1, np.False_, True, np.float32(0.7)) is None
    assert native(x, 0.1, np.False_, 1, 1) is None


def test_numbers_of_other_types_go_to_the_driver():
    program = frequent([X, S], [X * S])
    x = arrays_for([X])[0]
    for number in (2, np.float32(2.0), True, (1 << 53) + 1, 1 << 2000):
        try:
            wanted = program._calls.driver.call(x, number)
        except EsatError as error:
            with pytest.raises(type(error)):
                program(x, number)
        else:
            np.testing.assert_array_equal(program(x, number), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_orders_of_nans_zeros_and_ties(dtype):
    x, keys = esat.vector("x", dtype=dtype), esat.vector("keys", dtype=dtype)
    ordered = esat.sort(x)
    sides = [esat.searchsorted(ordered, keys, side=side) for side in ("left", "right")]
    program = esat.compile(esat.Graph([x, keys], [ordered, esat.argsort(x), *sides]))
    special = np.array([np.nan, 0.0, -0.0, np.inf, 1.0, -np.inf, 1.0, np.nan, -0.0, 0.0], dtype)
    for _ in range(direct.CALLS + 2):
        found = program(special, special)
    assert way_of(program) in NATIVE
    wanted = np.sort(special, kind="stable")
    places = [np.searchsorted(wanted, special, side=side) for side in ("left", "right")]
    for one, other in zip(found, (wanted, np.argsort(special, kind="stable"), *places), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


def test_predicted_times_know_what_needs_python():
    model = CostModel(MachineProfile())
    native = esat.compile(esat.Graph([X, Y], [esat.concatenate([X, Y])]))
    calls_python = esat.compile(esat.Graph([M], [esat.concatenate([esat.linalg.expm(M), M])]))
    sparse = esat.sparse.csr_from_dense(M) @ X
    needs_python = esat.compile(esat.Graph([M, X], [esat.concatenate([sparse, X])]))
    assert has_native_steps(native.steps)
    assert has_native_steps(calls_python.steps)
    assert not has_native_steps(needs_python.steps)
    assert plan_seconds(native.steps, model) < 1.2 * model.machine.call
    assert plan_seconds(calls_python.steps, model) > PYTHON_SECONDS
    assert plan_seconds(needs_python.steps, model) > 2 * PYTHON_SECONDS


@pytest.mark.parametrize("name", PROGRAMS)
def test_debug_mode_blames_no_step_that_is_right(name):
    inputs, outputs = PROGRAMS[name]
    arguments = arrays_for(inputs)
    function = esat.compile(esat.Graph(inputs, outputs), esat.Mode("debug", samples=tuple(arguments)))
    expected = esat.graph.algorithms.evaluate.evaluate(outputs, dict(zip(inputs, arguments, strict=True)))
    assert function._wrong_step(arguments, {}, expected).startswith("; step by step the program is right")


CHOSEN = {
    "an element": lambda m, i, j: m[i, j] * 2.0,
    "a row": lambda m, i, j: m[i] + m[:, j].sum(),
    "a part of a row": lambda m, i, j: m[i, 1::2] * m[1:, j],
    "set": lambda m, i, j: esat.set_subtensor((m + 1.0)[i, j], 7.0) * 1.5,
    "added twice": lambda m, i, j: esat.inc_subtensor(
        esat.inc_subtensor((m * 2.0)[i], m[j - 1])[:, j], m[:, i + 1]
    ),
}


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "uint64"])
@pytest.mark.parametrize("name", CHOSEN)
def test_places_that_a_call_tells_are_found_natively(name, dtype):
    i, j = esat.scalar("i", dtype), esat.scalar("j", dtype)
    outputs = [CHOSEN[name](M, i, j.astype("int64"))]
    function = esat.compile(esat.Graph([M, i, j], outputs))
    m = np.random.default_rng(0).normal(size=(3, 4))
    pairs = [(0, 1), (2, 3), (1, 1)] + ([(-1, -2), (-3, -1)] if dtype[0] == "i" else [])
    for call in range(60):
        numbers = [np.array(one, dtype) for one in pairs[call % len(pairs)]]
        (wanted,) = evaluate(outputs, dict(zip([M, i, j], [m, *numbers], strict=True)))
        np.testing.assert_allclose(function(m, *numbers), wanted, rtol=1e-14)
    assert way_of(function) in NATIVE
    for numbers in [(3, 0), (0, 4)]:
        with pytest.raises(IndexingError, match="out of"):
            function(m, *(np.array(one, dtype) for one in numbers))


COLUMNS = {
    "parts": lambda m, n: m[:, ::2] @ n[0, ::2],
    "a transposed part": lambda m, n: n[:, ::2].T @ m[:, :1],
    "reversed": lambda m, n: m[::-1].T @ n[::-1, 3:4],
    "both reversed": lambda m, n: m[:, ::-1] @ n.T[::-1, :1],
    "rows apart": lambda m, n: m[:, 1:5] @ n[1, 1:5],
    "columns apart": lambda m, n: m.T[1:5] @ n[:, 2],
}


@pytest.mark.parametrize("shape", [(13, 17), (40, 33), (100, 64)])
@pytest.mark.parametrize("name", COLUMNS)
def test_products_with_one_column_are_the_drivers_to_the_last_bit(name, shape):
    function = esat.compile(esat.Graph([M, N], [COLUMNS[name](M, N)]))
    m, n = np.random.default_rng(0).normal(size=(2, *shape))
    for _ in range(60):
        found = function(m, n)
    assert way_of(function) in NATIVE
    np.testing.assert_array_equal(found, by_driver(function, m, n))
    np.testing.assert_allclose(found, COLUMNS[name](m, n), rtol=1e-11)
