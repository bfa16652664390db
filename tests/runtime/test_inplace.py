"""What is written over what, seen from outside: values, addresses, allocations, errors."""

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import esat
from esat.errors import AssertionFailed, DestroyError, GraphError, IndexingError, InputError, ShapeError
from esat.frontend.elements import random as draws
from esat.frontend.linear_algebra import sparse
from esat.graph import Family, Op, TensorType, Type, Variable
from esat.runtime.native import direct


def address(variable: esat.SharedVariable) -> int:
    return int(variable.get_value(borrow=True).ctypes.data)


def growth(call: Any) -> int:
    """The most bytes that are allocated at one time during calls: of the driver, and of a native function."""
    of_driver = growth_at_once(call)
    for _ in range(direct.CALLS):
        call()
    return max(of_driver, growth_at_once(call))


def growth_at_once(call: Any, rounds: int = 100) -> int:
    for _ in range(5):
        call()
    gc.collect()
    tracemalloc.start()
    try:
        call()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(rounds):
            call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_a_loop_of_updates_allocates_nothing(mode: str) -> None:
    a, b = esat.shared(np.zeros((100, 100)), name="a"), esat.matrix("b")
    add = esat.compile(esat.Graph([b], [], updates={a: a + b}), mode)
    place, data = address(a), np.ones((100, 100))
    assert growth(lambda: add(data)) < 4000
    assert address(a) == place
    add(data)
    count = float(a.get_value()[0, 0])
    assert np.array_equal(a.get_value(), np.full((100, 100), count))


def test_gradient_descent_writes_parameters_where_they_stand() -> None:
    w, v = esat.shared(np.ones((30, 4)), name="w"), esat.shared(np.zeros((30, 4)), name="v")
    x, y, rate = esat.matrix("x"), esat.matrix("y"), esat.scalar("rate")
    loss = ((x @ w - y) ** 2).sum()
    gradient = esat.grad(loss, w)
    graph = esat.Graph(
        [x, y, rate], [loss], updates={w: w + v - rate * gradient, v: 0.9 * v - rate * gradient}
    )
    step = esat.compile(graph)
    rng = np.random.default_rng(0)
    data, target = rng.normal(size=(20, 30)), rng.normal(size=(20, 4))
    places = address(w), address(v)
    weights, velocity = w.get_value(), v.get_value()
    for _ in range(4):
        residual = data @ weights - target
        assert np.isclose(step(data, target, 0.01), (residual**2).sum())
        slope = 2.0 * data.T @ residual
        weights, velocity = weights + velocity - 0.01 * slope, 0.9 * velocity - 0.01 * slope
        np.testing.assert_allclose(w.get_value(), weights, rtol=1e-10)
        np.testing.assert_allclose(v.get_value(), velocity, rtol=1e-10)
    assert (address(w), address(v)) == places


def test_rows_of_a_table_are_written_where_they_stand() -> None:
    table, row, value = (
        esat.shared(np.zeros((5000, 20)), name="table"),
        esat.lscalar("row"),
        esat.vector("value"),
    )
    changed = esat.inc_subtensor(esat.set_subtensor(table[row], value)[row, :3], 1.0)
    put = esat.compile(esat.Graph([row, value], [], updates={table: changed}))
    place = address(table)
    # NumPy adds through a buffer of 64 KB; the table has 800.
    assert growth(lambda: put(np.array(3), np.ones(20))) < 80_000
    put(7, np.arange(20.0))
    assert address(table) == place
    expected = np.zeros((5000, 20))
    expected[3], expected[7] = 1.0, np.arange(20.0)
    expected[[3, 7], :3] += 1.0
    assert np.array_equal(table.get_value(), expected)


@pytest.mark.parametrize("bad", [(500, 20), (3, 19)])
def test_an_update_that_fails_in_its_second_write_changes_nothing(bad: tuple[int, int]) -> None:
    table, total = esat.shared(np.zeros((500, 20)), name="table"), esat.shared(np.zeros(20), name="total")
    first, second, value = esat.lscalar("first"), esat.lscalar("second"), esat.vector("value")
    changed = esat.set_subtensor(esat.set_subtensor(table[first], 1.0)[second], value)
    graph = esat.Graph([first, second, value], [], updates={table: changed, total: total + 1.0})
    put = esat.compile(graph)
    with pytest.raises((IndexingError, ShapeError), match=r"test_inplace.py"):
        put(1, bad[0], np.ones(bad[1]))
    assert not table.get_value().any()
    assert not total.get_value().any()
    put(1, 2, np.ones(20))
    assert table.get_value().sum() == 40.0
    assert total.get_value().sum() == 20.0


def test_steps_that_can_fail_run_before_a_shared_variable_changes() -> None:
    a, x = esat.shared(np.zeros(3), name="a"), esat.vector("x")
    checked = esat.assert_(x, x[0] > 0.0)
    step = esat.compile(esat.Graph([x], [checked * 2.0], updates={a: a + x}))
    with pytest.raises(AssertionFailed):
        step([-1.0, 0.0, 0.0])
    assert not a.get_value().any()
    step([1.0, 0.0, 0.0])
    assert a.get_value()[0] == 1.0


def test_old_values_are_returned_and_passed_on() -> None:
    a, b = esat.shared(np.array([1.0, 2.0]), name="a"), esat.shared(np.array([3.0, 4.0]), name="b")
    step = esat.compile(esat.Graph([], [a, a + 1.0], updates={a: a + 1.0, b: a}))
    old, new = step()
    assert np.array_equal(old, [1.0, 2.0])
    assert np.array_equal(new, [2.0, 3.0])
    assert np.array_equal(a.get_value(), [2.0, 3.0])
    assert np.array_equal(b.get_value(), [1.0, 2.0])
    held = [old, new, a.get_value(borrow=True), b.get_value(borrow=True)]
    for place, array in enumerate(held):
        assert not any(np.may_share_memory(array, other) for other in held[:place])


def test_borrowed_values_stay_the_callers() -> None:
    a, b = esat.shared(np.zeros(4), name="a"), esat.shared(np.zeros(4), name="b")
    step = esat.compile(esat.Graph([], [], updates={a: a + 1.0, b: b * 2.0}))
    mine = np.ones(4)
    a.set_value(mine, borrow=True)
    b.set_value(mine, borrow=True)
    step()
    step()
    assert np.array_equal(mine, np.ones(4))
    assert np.array_equal(a.get_value(), np.full(4, 3.0))
    assert np.array_equal(b.get_value(), np.full(4, 4.0))
    kept = a.get_value()
    step()
    assert np.array_equal(kept, np.full(4, 3.0))


def test_a_value_may_change_its_shape_and_layout() -> None:
    a, x = esat.shared(np.zeros((2, 2)), name="a"), esat.matrix("x")
    step = esat.compile(esat.Graph([x], [], updates={a: a * 2.0 + x}))
    for value in (np.ones((3, 4)), np.asfortranarray(np.ones((2, 5))), np.ones((8, 6))[::2, ::3]):
        a.set_value(value, borrow=True)
        step(np.ones(value.shape))
        step(np.ones(value.shape))
        assert np.array_equal(a.get_value(), np.full(value.shape, 7.0))
        assert np.array_equal(value, np.ones(value.shape))


# ---- donated inputs


def donated(build: Any, *, donate: str = "x") -> esat.Executable:
    x, y = esat.vector("x"), esat.vector("y")
    variables: dict[str, Variable] = {"x": x, "y": y}
    return esat.compile(esat.Graph([x, y], build(x, y)), donate=[variables[name] for name in donate])


def test_a_donated_array_is_overwritten() -> None:
    function = donated(lambda x, y: [esat.exp(x) + y])
    data, other = np.arange(1000.0) / 1000.0, np.ones(1000)
    wanted = np.exp(data) + 1.0
    result = function(data, other)
    assert np.may_share_memory(result, data)
    np.testing.assert_allclose(result, wanted)
    assert np.array_equal(other, np.ones(1000))
    assert growth(lambda: function(data, other)) < 4000


def test_what_cannot_be_given_away_is_copied() -> None:
    function = donated(lambda x, y: [esat.exp(x) + y, y * 2.0])
    base = np.arange(20.0) / 20.0
    read_only = base[:10].copy()
    read_only.setflags(write=False)
    for data in (read_only, base[::2].copy()[::-1], base[::2]):
        kept = data.copy()
        result, _ = function(data, np.ones(10))
        np.testing.assert_allclose(result, np.exp(kept) + 1.0)
        assert np.array_equal(data, kept)
    result, doubled = function(base, base)
    np.testing.assert_allclose(result, np.exp(base) + base)
    np.testing.assert_allclose(doubled, 2.0 * base)
    assert np.array_equal(base, np.arange(20.0) / 20.0)
    np.testing.assert_allclose(function([0.0, 1.0], [0.0, 0.0])[0], [1.0, np.e])


def test_two_donated_arrays_that_are_one() -> None:
    function = donated(lambda x, y: [esat.exp(x) * 3.0, esat.sin(y)], donate="xy")
    data = np.arange(5.0)
    first, second = function(data, data)
    np.testing.assert_allclose(first, 3.0 * np.exp(np.arange(5.0)))
    np.testing.assert_allclose(second, np.sin(np.arange(5.0)))


def test_a_donated_array_that_is_a_shared_variables() -> None:
    s, x = esat.shared(np.arange(4.0), name="s"), esat.vector("x")
    function = esat.compile(esat.Graph([x], [esat.exp(x) + s]), donate=[x])
    result = function(s.get_value(borrow=True))
    np.testing.assert_allclose(result, np.exp(np.arange(4.0)) + np.arange(4.0))
    assert np.array_equal(s.get_value(), np.arange(4.0))


def test_only_inputs_can_be_donated() -> None:
    x = esat.vector("x")
    for wrong in (esat.vector("z"), "x", x + 1.0):
        with pytest.raises(GraphError, match="can be donated"):
            esat.compile(esat.Graph([x], [x + 1.0]), donate=[wrong])  # type: ignore[list-item]


# ---- what can be left out, and seen


def test_each_row_can_be_left_out() -> None:
    a, x = esat.shared(np.zeros(4), name="a"), esat.vector("x")
    changed = esat.inc_subtensor(esat.exp(a + x)[1:], 1.0)
    mode = esat.Mode("fast_run")
    overwrites = {
        name: len(esat.compile(esat.Graph([x], [], updates={a: changed}), mode.excluding(name)).overwrites)
        for name in ("inplace", "inplace_setsubtensor", "inplace_elemwise", "inplace_random", "inplace_blas")
    }
    expected = {"inplace": 0, "inplace_setsubtensor": 0, "inplace_elemwise": 1}
    assert overwrites == {**expected, "inplace_random": 1, "inplace_blas": 1}


def test_debugprint_marks_views_and_what_is_overwritten() -> None:
    a, x, y = esat.shared(np.zeros((4, 4)), name="a"), esat.matrix("x"), esat.matrix("y")
    outputs = [esat.inc_subtensor((y @ x)[1:], 1.0), esat.tanh(y.T @ y) * y]
    function = esat.compile(esat.Graph([x, y], outputs, updates={a: a + x}))
    text = esat.debugprint(function, file="str")
    assert text is not None
    lines = [line.split("<")[0].strip(" ├└─│") for line in text.splitlines()]
    assert "inc_subtensor{1:,:, inplace} d={0: (0,)}" in lines
    assert "dimshuffle{1,0} v={0: (0,)}" in lines
    assert any(line.startswith("add d={0: (") for line in lines)
    assert any(line.startswith("mul d={0: matmul.0}") for line in lines)


def test_an_op_of_the_users_that_overwrites_what_it_must_not_is_named() -> None:
    x = esat.vector("x")
    target = esat.set_subtensor(x[1:], 0.0)
    assert target.owner is not None
    forced = type(target.owner.op)(target.owner.op.entries, inplace=True)(*target.owner.inputs)  # type: ignore[attr-defined]
    with pytest.raises(DestroyError, match=r"the input x is not donated"):
        esat.compile(esat.Graph([x], [forced]), "fast_compile")
    function = esat.compile(esat.Graph([x], [forced]), "fast_compile", donate=[x])
    data = np.ones(3)
    assert np.array_equal(function(data), [1.0, 0.0, 0.0])
    assert np.array_equal(data, [1.0, 0.0, 0.0])


# ---- values that are no arrays


def test_random_states_advance_in_place_and_are_never_shared() -> None:
    state = draws.shared_state(5, name="state")
    after, sample = draws.normal(state, size=4)
    step = esat.compile(esat.Graph([], [sample, after], updates={state: after}))
    generator = np.random.default_rng(5)
    held = state.get_value(borrow=True)
    states = []
    for _ in range(3):
        numbers, returned = step()
        assert np.array_equal(numbers, generator.normal(size=4))
        states.append(returned)
    assert state.get_value(borrow=True) is held
    assert len({id(one) for one in [*states, held]}) == 4
    assert [one.normal() for one in states] != [states[-1].normal()] * 3
    assert state.get_value().normal() == generator.normal()


def test_random_states_as_inputs_are_not_changed() -> None:
    given = draws.state("given")
    after, sample = draws.uniform(given, size=3)
    function = esat.compile(esat.Graph([given], [sample, draws.normal(after, size=2)[1]]))
    for generator in (np.random.default_rng(1), np.random.default_rng(1)):
        first = function(generator)
        second = function(generator)
        assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
        assert np.array_equal(first[0], generator.uniform(size=3))


def test_sparse_matrices_pass_through_and_keep_no_memory_of_others() -> None:
    a, x, values = sparse.csr_matrix("a"), esat.matrix("x"), esat.vector("values")
    s = sparse.shared(scipy.sparse.csr_array(np.eye(3)), name="s")
    filled = sparse.with_values(a, esat.exp(values))
    outputs = [sparse.dot(a, x), sparse.transpose(a), a, s, filled, sparse.with_values(a, values)]
    later = esat.tanh(values * 2.0) @ esat.exp(values)
    function = esat.compile(esat.Graph([a, x, values], [*outputs, later], updates={s: sparse.add(s, a)}))
    matrix = scipy.sparse.csr_array(np.diag([1.0, 2.0, 3.0]))
    held = [matrix.data, np.arange(3.0), s.get_value(borrow=True).data]
    results = [function(matrix, np.ones((3, 2)), held[1]) for _ in range(2)]
    for product, turned, same, old, exponentials, kept, _ in results:
        assert np.array_equal(product, [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
        np.testing.assert_allclose(exponentials.data, np.exp([0.0, 1.0, 2.0]))
        np.testing.assert_allclose(kept.data, [0.0, 1.0, 2.0])
        for result in (turned, same, old, exponentials, kept):
            assert not any(np.may_share_memory(result.data, array) for array in held)
            held.append(result.data)
    assert np.array_equal(s.get_value().diagonal(), [3.0, 5.0, 7.0])
    assert np.array_equal(results[0][3].diagonal(), [1.0, 1.0, 1.0])


class Wrap(Op):
    """A vector in a list: a value that keeps the memory it was made from."""

    name, constructor, family = "wrap", "Wrap", Family.LIBRARY

    def infer_types(self, inputs: Any) -> Any:
        return (ListType(),)

    def perform(self, inputs: Any) -> Any:
        return ([inputs[0]],)


class Unwrap(Op):
    name, constructor, family = "unwrap", "Unwrap", Family.LIBRARY

    def infer_types(self, inputs: Any) -> Any:
        return (TensorType("float64", shape=(None,)),)

    def perform(self, inputs: Any) -> Any:
        return (inputs[0][0].copy(),)


class ListType(Type):
    def filter(self, value: object) -> object:
        return value

    def admits(self, other: Type) -> bool:
        return isinstance(other, ListType)

    def __str__(self) -> str:
        return "list"


def test_memory_that_an_opaque_value_keeps_is_not_used_again() -> None:
    x = esat.matrix("x")
    wrapped = Wrap()((x @ x)[0])
    other = x
    for _ in range(4):
        other = other @ x
    function = esat.compile(esat.Graph([x], [esat.tanh(other.sum()) + Unwrap()(wrapped)]), "fast_compile")
    data = np.arange(9.0).reshape(3, 3) / 9.0
    power = np.linalg.matrix_power(data, 5).sum()
    np.testing.assert_allclose(function(data), np.tanh(power) + (data @ data)[0])


# ---- arrays for the outputs


@pytest.fixture(scope="module")
def two_outputs() -> esat.Executable:
    x, y = esat.matrix("x"), esat.matrix("y")
    return esat.compile(esat.Graph([x, y], [esat.tanh(x @ y), x.T]))


def test_outputs_are_written_into_given_arrays(two_outputs: esat.Executable) -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 100, 100))
    for out in (
        (np.empty((100, 100)), np.empty((100, 100))),
        [np.empty((100, 100), order="F"), np.empty((100, 200))[:, ::2]],
    ):
        results = two_outputs(x, y, out=out)
        assert results[0] is out[0]
        assert results[1] is out[1]
        np.testing.assert_allclose(out[0], np.tanh(x @ y))
        assert np.array_equal(out[1], x.T)
    v = esat.vector("v")
    double = esat.compile(esat.Graph([v], v * 2.0))
    data, target = np.ones(10_000), np.empty(10_000)
    assert double(data, out=target) is target
    assert np.array_equal(target, 2.0 * data)
    assert growth(lambda: double(data, out=target)) < 4000


def test_arrays_that_do_not_fit_outputs_are_refused(two_outputs: esat.Executable) -> None:
    x, y = np.ones((3, 2)), np.ones((2, 4))
    good = np.zeros((3, 4)), np.zeros((2, 3))
    read_only = np.zeros((3, 4))
    read_only.setflags(write=False)
    square = np.zeros((4, 4))
    bad: list[tuple[Any, str]] = [
        ((good[0],), "takes 2 arrays, not 1"),
        (
            (np.zeros((4, 3)), good[1]),
            r"shape \(3, 4\); it cannot be written into an array .* shape \(4, 3\)",
        ),
        ((np.zeros((3, 4), np.float32), good[1]), "float32"),
        ((good[0].tolist(), good[1]), "list"),
        ((read_only, good[1]), "read-only"),
        ((good[0], x.T), "shares memory"),
        ((square[:3], square[2:, :3]), "shares memory"),
        ((good[0], np.zeros((9, 9))), "does not fit"),
    ]
    for out, reason in bad:
        with pytest.raises(InputError, match=reason):
            two_outputs(x, y, out=out)
    assert not good[0].any() or good[0][0, 0] == np.tanh(2.0)
