import gc
import random
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import esat
from esat.errors import CompileError, ShapeError
from esat.graph import Op, SharedVariable, TensorType, Variable
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.op import Family
from esat.graph.registry import op_named
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.view import reshape
from esat.ops.contraction import matmul
from esat.ops.control import ifelse
from esat.ops.index.basic import subtensor
from esat.ops.reduction import MAX, SUM, reduce
from esat.runtime import Executable

Build = Callable[..., Executable]


def tensor(name: str, *shape: int | None, dtype: str = "float64") -> Variable:
    return TensorType(dtype, shape=shape)(name)


def op(name: str) -> Any:
    return op_named(name)


def shared(value: Any, name: str = "s") -> SharedVariable:
    array = np.asarray(value)
    return SharedVariable(TensorType(array.dtype, shape=(None,) * array.ndim), array, name)


# ---- values


def test_one_output_is_an_array_several_are_a_tuple_none_is_empty(compiled: Build) -> None:
    x = tensor("x", None)
    assert np.array_equal(compiled([x], [x * 2.0])([1.0, 2.0]), [2.0, 4.0])
    several = compiled([x], [x * 2.0, reduce(SUM, x)])([1.0, 2.0])
    assert isinstance(several, tuple)
    assert isinstance(several[1], np.ndarray)
    assert several[1].shape == ()
    counter = shared(0.0)
    assert compiled([], [], {counter: counter + 1.0})() == ()
    assert counter.get_value() == 1.0


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda a: a,
    "fortran": np.asfortranarray,
    "every second": lambda a: np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2],
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "transposed": lambda a: a.T.copy().T,
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "subclass": lambda a: a.view(type("Sub", (np.ndarray,), {})),
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
    "list": lambda a: a.tolist(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (0, 4), (3, 0)], ids=str)
def test_any_layout_gives_what_numpy_gives(layout: str, shape: tuple[int, int], compiled: Build) -> None:
    if layout == "list" and 0 in shape:
        return  # a list of no lists does not tell how long they would be
    x, w = tensor("x", None, None), tensor("w", None, None)
    hidden = op("tanh")(matmul(x, w) + 1.0)
    outputs = [hidden, reduce(SUM, hidden * hidden, 0), dimshuffle(op("exp")(x), (1, 0))]
    function = compiled([x, w], outputs)
    data = np.random.default_rng(0).normal(size=shape)
    weights = np.random.default_rng(1).normal(size=(shape[1], 2))
    given = LAYOUTS[layout](data)
    kept = given.copy() if isinstance(given, np.ndarray) else given
    results = function(given, weights)
    for result, expected in zip(results, evaluate(outputs, {x: data, w: weights}), strict=True):
        assert result.dtype == expected.dtype
        assert type(result) is np.ndarray
        assert np.allclose(result, expected, rtol=1e-14, atol=0)
    assert np.array_equal(given, kept)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16", "float16", "float32", "complex128"])
def test_every_dtype_runs(dtype: str, compiled: Build) -> None:
    x = tensor("x", None, None, dtype=dtype)
    outputs = [op("add")(x, x), reduce(SUM, x, 1), matmul(x, dimshuffle(x, (1, 0)))]
    data = np.arange(6).reshape(2, 3).astype(dtype)
    for result, expected in zip(compiled([x], outputs)(data), evaluate(outputs, {x: data}), strict=True):
        assert result.dtype == expected.dtype
        assert np.array_equal(result, expected)


def test_shapes_may_differ_from_call_to_call(compiled: Build) -> None:
    x = tensor("x", None, None)
    mean = reduce(SUM, x) / op("mul")(size_of(x, 0), size_of(x, 1))
    function = compiled([x], [x - mean])
    for shape in [(2, 3), (4, 1), (2, 3), (1, 1)] + [(n, 2) for n in range(1, 200)]:
        data = np.random.default_rng(0).normal(size=shape)
        assert np.allclose(function(data), data - data.mean(), rtol=0, atol=1e-15)


class Positives(Op):
    """The positive elements of a vector: a result whose shape only its values tell."""

    name, constructor, family = "positives", "Positives", Family.LIBRARY

    def infer_types(self, inputs: Any) -> Any:
        return (TensorType(inputs[0].type.dtype, shape=(None,)),)

    def perform(self, inputs: Any) -> Any:
        return (inputs[0][inputs[0] > 0],)


def test_shapes_that_only_values_tell_are_found_while_running(compiled: Build) -> None:
    x, y = tensor("x", None), tensor("y", None)
    chosen = Positives()(x)
    outputs = [op("exp")(chosen) * 2.0, reduce(SUM, chosen + y), size_of(chosen, 0)]
    function = compiled([x, y], outputs)
    for values in ([1.0, -1.0, 2.0], [1.0, 3.0, -2.0, -4.0], [-1.0, 5.0, 6.0]):
        data, other = np.array(values), np.array([10.0, 20.0])
        expected = evaluate(outputs, {x: data, y: other})
        for result, wanted in zip(function(data, other), expected, strict=True):
            assert np.array_equal(result, wanted)
    with pytest.raises(ShapeError, match=r"add.*do not match[\s\S]*test_executable.py"):
        function(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0]))


def test_a_known_size_does_not_hide_a_mismatch_found_late(compiled: Build) -> None:
    x, y = tensor("x", None), tensor("y", 2)
    function = compiled([x, y], [Positives()(x) + y])
    assert np.array_equal(function([1.0, 2.0], [1.0, 1.0]), [2.0, 3.0])
    with pytest.raises(ShapeError, match="do not match"):
        function([1.0, 2.0, 3.0], [1.0, 1.0])


def test_random_graphs_give_what_the_interpreter_gives(compiled: Build) -> None:
    random.seed(11)
    generator = np.random.default_rng(2)
    for _ in range(60):
        x, y, s = tensor("x", None, None), tensor("y", None, None), shared(generator.normal(size=(3, 3)))
        values: list[Variable] = [x, y, s, dimshuffle(tensor("b", None), ("x", 0))]
        bias = values[3].owner.inputs[0] if values[3].owner else x
        for _ in range(random.randint(1, 14)):
            one, other = random.choice(values), random.choice(values)
            square = [v for v in (one, other) if not v.type.broadcastable[0]] or [x]
            values.append(
                random.choice(
                    [
                        lambda o=one, p=other: o * p,
                        lambda o=one, p=other: o - p,
                        lambda o=one: op("tanh")(o),
                        lambda q=square: matmul(q[0], q[-1]),
                        lambda o=square: dimshuffle(o[0], (1, 0)),
                        lambda o=square: op("add")(o[0], reduce(MAX, o[0], 1, keepdims=True)),
                        lambda o=square: reshape(reshape(o[0], (-1,)), (3, 3)),
                        lambda o=square: o[0] * subtensor(o[0], (slice(None, None, -1),)),
                    ]
                )()
            )
        outputs = random.choices(values, k=random.randint(1, 3))
        changed = random.choice(values)
        updates = {} if changed.type.broadcastable[0] else {s: changed}
        data = [generator.normal(size=size) for size in ((3, 3), (3, 3), (3,))]
        function = compiled([x, y, bias], outputs, updates, kernels=random.random() < 0.8)
        for _ in range(2):
            expected = evaluate([*outputs, *updates.values()], dict(zip((x, y, bias), data, strict=True)))
            copies = [array.copy() for array in data]
            results = function(*data)
            results = results if isinstance(results, tuple) else (results,)
            for result, wanted in zip(results, expected, strict=False):
                assert np.allclose(result, wanted, equal_nan=True)
            for target, wanted in zip(updates, expected[len(outputs) :], strict=True):
                assert np.allclose(target.get_value(), wanted, equal_nan=True)
            assert all(np.array_equal(array, copy) for array, copy in zip(data, copies, strict=True))
            seen = [*data, *(target.get_value(borrow=True) for target in [s])]
            for place, result in enumerate(results):
                assert not any(np.may_share_memory(result, other) for other in (*seen, *results[:place]))


# ---- memory


def test_outputs_never_share_memory_with_anything(compiled: Build) -> None:
    x, s = tensor("x", None, None), shared(np.ones((2, 2)))
    y = op("exp")(x)
    constant = op("add")(x, np.ones((2, 2))).owner.inputs[1]
    outputs = [x, x, dimshuffle(x, (1, 0)), s, constant, y, y, dimshuffle(y, (1, 0)), reshape(y, (-1,))]
    data = np.arange(4.0).reshape(2, 2)
    results = compiled([x], outputs)(data)
    for result, expected in zip(results, evaluate(outputs, {x: data}), strict=True):
        assert np.array_equal(result, expected)
    others = [data, s.get_value(borrow=True), constant.data]
    for place, result in enumerate(results):
        assert result.flags.writeable
        assert not any(np.may_share_memory(result, other) for other in (*others, *results[:place]))


class Returns(Op):
    """An op that breaks its word in one way or another."""

    constructor, family = "Returns", Family.LIBRARY

    def __init__(self, name: str, action: Callable[[Any], Any]) -> None:
        self.name = name
        self.action = action

    def properties(self) -> tuple[object, ...]:
        return (self.action,)

    def infer_types(self, inputs: Any) -> Any:
        return (inputs[0].type,)

    def perform(self, inputs: Any) -> Any:
        return (self.action(inputs[0]),)


def test_a_view_that_an_op_does_not_declare_does_no_harm(compiled: Build) -> None:
    x = tensor("x", None)
    for action in (lambda a: a, lambda a: a[:]):
        same = Returns("same", action)
        function = compiled([x], [same(x), same(op("exp")(x)) + op("exp")(same(op("exp")(op("exp")(x))))])
        data = np.array([1.0, 0.5])
        first, second = function(data)
        assert not np.may_share_memory(first, data)
        assert np.array_equal(first, data)
        assert np.allclose(second, np.exp(data) + np.exp(np.exp(np.exp(data))))


def test_an_op_that_returns_what_it_did_not_declare_is_named(compiled: Build) -> None:
    x = tensor("x", None)
    for action in (lambda a: a[:-1], lambda a: a.astype("float32"), lambda a: a[None]):
        function = compiled([x], [op("exp")(Returns("liar", action)(x))])
        with pytest.raises(CompileError, match=r"liar[\s\S]*test_executable.py"):
            function(np.ones(3))


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_large_outputs_are_used_again_only_when_nobody_sees_them(compiled: Build) -> None:
    x = tensor("x", None)
    function = compiled([x], [x + 1.0])
    data = np.arange(50_000.0)
    addresses = set()
    for _ in range(20):
        addresses.add(function(data).ctypes.data)
    assert len(addresses) <= 2
    kept = [function(data) for _ in range(10)]
    assert len({array.ctypes.data for array in kept}) == 10
    part = function(data)[7:9]
    exported = memoryview(function(data))
    for _ in range(10):
        function(data * 0.0)
    assert np.array_equal(part, data[7:9] + 1.0)
    assert exported[3] == 4.0
    assert all(np.array_equal(array, data + 1.0) for array in kept)
    own = function(data)
    assert np.array_equal(function(own), data + 2.0)
    reshaped = function(data)
    reshaped.shape = (2, -1)
    del reshaped
    assert function(data).shape == (50_000,)


@pytest.mark.usefixtures("only_new_objects")
@pytest.mark.parametrize("size", [10, 20_000])
def test_memory_does_not_grow(size: int, compiled: Build) -> None:
    x, s = tensor("x", None), shared(np.zeros(size))
    value = op("exp")(x) + s
    function = compiled([x], [reduce(SUM, Positives()(value)), value * 2.0], {s: s + x})
    data = np.linspace(0.0, 1.0, size)
    for _ in range(10):
        function(data)
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(100):
            function(data)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            function(data)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 4000
    finally:
        tracemalloc.stop()


def test_the_peak_is_reported(compiled: Build) -> None:
    x = tensor("x", None, None)
    function = compiled([x], [matmul(matmul(x, x), x)])
    assert function.peak_bytes == 0
    function(np.ones((8, 8)))
    assert function.peak_bytes == 2 * 8 * 8 * 8


# ---- shared variables and threads


def test_updates_use_old_values_only(compiled: Build) -> None:
    a, b = shared([1.0, 2.0], "a"), shared([3.0, 4.0], "b")
    x = tensor("x", None)
    swap = compiled([x], [a + x, a], {a: b, b: a})
    total, old = swap([10.0, 10.0])
    assert np.array_equal(total, [11.0, 12.0])
    assert np.array_equal(old, [1.0, 2.0])
    assert np.array_equal(a.get_value(), [3.0, 4.0])
    assert np.array_equal(b.get_value(), [1.0, 2.0])
    assert not np.may_share_memory(a.get_value(borrow=True), b.get_value(borrow=True))


def test_an_update_that_fails_changes_nothing(compiled: Build) -> None:
    a = shared([1.0, 2.0], "a")
    x = tensor("x", None)
    step = compiled([x], [], {a: a + x})
    with pytest.raises(ShapeError):
        step([1.0])
    assert np.array_equal(a.get_value(), [1.0, 2.0])
    step([1.0, 1.0])
    a.set_value(np.asfortranarray([5.0, 6.0, 7.0])[::-1], borrow=True)
    step([1.0, 1.0, 2.0])
    assert np.array_equal(a.get_value(), [8.0, 7.0, 7.0])


def test_threads_share_an_executable(compiled: Build) -> None:
    x, counter = tensor("x", None), shared(0)
    exp = op("exp")
    pure = compiled([x], [matmul(dimshuffle(exp(x), ("x", 0)), dimshuffle(exp(-x), (0, "x"))), exp(exp(x))])
    counting = compiled([], [], {counter: counter + 1})
    wrong: list[float] = []

    def work(value: float) -> None:
        for size in (10, 9000, 11):
            data = np.full(size, value)
            for _ in range(60):
                counting()
                product, twice = pure(data)
                if not (np.allclose(product, size) and np.array_equal(twice, np.exp(np.exp(data)))):
                    wrong.append(value)

    threads = [threading.Thread(target=work, args=(number / 4.0,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert counter.get_value() == 4 * 180


class Counted(Op):
    """Its operand, doubled; notes that it ran."""

    name, constructor, family = "counted", "Counted", Family.LIBRARY

    def __init__(self) -> None:
        self.runs = 0

    def infer_types(self, inputs: Any) -> Any:
        return (inputs[0].type,)

    def perform(self, inputs: Any) -> Any:
        self.runs += 1
        return (inputs[0] * 2.0,)


def test_only_the_side_that_is_chosen_runs(compiled: Build) -> None:
    x, c = tensor("x", None, None), tensor("c", dtype="bool")
    left, right = Counted(), Counted()
    chosen = ifelse(c, op("exp")(left(matmul(x, x))), dimshuffle(right(op("exp")(x)), (1, 0)))
    outputs = [chosen, op("exp")(x)]
    function = compiled([x, c], outputs)
    data = np.arange(4.0).reshape(2, 2) / 4.0
    for value in (True, False, True):
        expected = evaluate(outputs, {x: data, c: np.array(value)})
        left.runs = right.runs = 0
        for result, wanted in zip(function(data, value), expected, strict=True):
            assert np.allclose(result, wanted)
        assert (left.runs, right.runs) == (int(value), int(not value))
    function.measure()
    function(data, True)
    assert {step.calls for step in function.profile.steps} == {0, 1}


@pytest.mark.parametrize("given", [np.ones(3), None, "on", [True], {}])
def test_measuring_is_switched_on_or_off(given: Any) -> None:
    """An array is no flag: who passes one takes it for a call."""
    x = esat.vector("x")
    program = esat.compile(esat.Graph([x], esat.exp(x)))
    jitted = esat.jit(np.exp)
    jitted(np.ones(3))
    for made in (program, jitted):
        with pytest.raises(esat.errors.CallError, match="on is True or False"):
            made.measure(given)
        made.measure(np.True_)
        made.measure(False)
