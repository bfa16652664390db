"""Further programs for sizes that arrive: chosen where they pay, and right in every respect."""

import threading
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import esat
from esat.runtime.entry import variants
from esat.runtime.executable import Executable

LEFT_FIRST = (4, 700, 700, 700)
RIGHT_FIRST = (700, 700, 700, 4)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking and compiling cost nothing: every decision falls at the first call."""
    monkeypatch.setattr(variants, "COMPILE_SECONDS", 0.0)
    monkeypatch.setattr(variants, "EXTRACT_SECONDS", 0.0)


def chain() -> esat.Graph:
    a, b, c = esat.matrix("a"), esat.matrix("b"), esat.matrix("c")
    return esat.Graph([a, b, c], [a @ b @ c])


def factors(sizes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(sizes))
    return [rng.normal(size=pair) for pair in pairwise(sizes)]


def product(arrays: list[np.ndarray]) -> np.ndarray:
    return np.linalg.multi_dot(arrays)


def order(executable: Executable) -> str:
    """Which of the two products of a chain of three has an input on its left."""
    last = executable.optimized.outputs[0].owner
    assert last is not None
    return "right first" if last.inputs[0] in executable.optimized.input_set else "left first"


@pytest.mark.usefixtures("at_once")
def test_each_size_gets_the_cheaper_order() -> None:
    f = esat.compile(chain())
    others = (300, 20, 300, 20), (20, 300, 20, 300), (1, 1, 1, 1), (0, 3, 2, 5)
    for sizes in (LEFT_FIRST, RIGHT_FIRST, *others):
        arrays = factors(sizes)
        for _ in range(2):
            np.testing.assert_allclose(f(*arrays), arrays[0] @ arrays[1] @ arrays[2], rtol=1e-9)
    assert {order(f), *(order(variant.executable) for variant in f.variants)} == {"left first", "right first"}
    assert all(variant.seconds < variant.first_seconds for variant in f.variants)


@pytest.mark.usefixtures("at_once")
def test_one_program_serves_all_sizes_it_is_best_for() -> None:
    f = esat.compile(chain(), shapes={})
    for size in (600, 1200, 2400):
        f(*factors(LEFT_FIRST[:1] + (size,) * 3))
        f(*factors((size,) * 3 + RIGHT_FIRST[3:]))
    assert len(f.variants) == 1


def test_compiling_waits_until_calls_have_paid_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "EXTRACT_SECONDS", 0.0)
    f = esat.compile(chain())
    sizes = RIGHT_FIRST if order(f) == "left first" else LEFT_FIRST
    arrays = factors(sizes)
    f(*arrays)
    state = next(iter(f._calls.variants._classes.values()))
    gain = state.first_seconds - state.found.seconds
    calls = int(variants.COMPILE_SECONDS / gain)
    assert calls > 2
    for _ in range(calls - 2):
        f(*arrays)
    assert f.variants == ()
    f(*arrays)
    assert len(f.variants) == 1
    np.testing.assert_allclose(f(*arrays), product(arrays))


def test_nothing_is_tried_for_tiny_work() -> None:
    f = esat.compile(chain())
    for _ in range(1000):
        f(*factors((2, 3, 2, 3)))
    assert f.variants == ()
    assert all(state.settled for state in f._calls.variants._classes.values())


@pytest.mark.usefixtures("at_once")
def test_a_mode_without_variants_has_none() -> None:
    f = esat.compile(chain(), mode=esat.Mode("fast_run", variants=0))
    for sizes in (LEFT_FIRST, RIGHT_FIRST):
        np.testing.assert_allclose(f(*factors(sizes)), product(factors(sizes)))
    assert f.variants == ()
    assert f._calls.variants is None


@pytest.mark.usefixtures("at_once")
def test_known_sizes_need_no_variants() -> None:
    a, b, c = (esat.tensor(name, shape=(8, 8)) for name in "abc")
    f = esat.compile(esat.Graph([a, b, c], [a @ b @ c]))
    assert f._calls.variants is None


@pytest.mark.usefixtures("at_once")
def test_the_number_of_programs_is_bounded_and_old_ones_come_back() -> None:
    a, b, c, d, e = (esat.matrix(name) for name in "abcde")
    f = esat.compile(esat.Graph([a, b, c, d, e], [a @ b @ c @ d @ e]), mode=esat.Mode("fast_run", variants=2))
    thin = [tuple(4 if place == axis else 400 for place in range(6)) for axis in range(6)]
    for _ in range(2):
        for sizes in thin:
            arrays = factors(sizes)
            for _ in range(2):
                np.testing.assert_allclose(f(*arrays), product(arrays), rtol=1e-8)
            assert len(f.variants) <= 2
    assert len(f.variants) == 2


@pytest.mark.usefixtures("at_once")
def test_the_same_calls_lead_to_the_same_programs() -> None:
    def programs() -> list[str]:
        f = esat.compile(chain())
        for sizes in (LEFT_FIRST, RIGHT_FIRST, (300, 20, 300, 20)):
            f(*factors(sizes))
        return [str(variant) + str(variant.executable.optimized) for variant in f.variants]

    def text(entries: list[str]) -> list[str]:
        return [entry.split(" object at ")[0] for entry in entries]

    assert text(programs()) == text(programs())


@pytest.mark.usefixtures("at_once")
def test_updates_outputs_given_and_donations() -> None:
    a, b, c = esat.matrix("a"), esat.matrix("b"), esat.matrix("c")
    total = esat.shared(0.0)
    state = esat.shared(np.zeros((1, 1)))
    result = a @ b @ c
    graph = esat.Graph([a, b, c], [result], updates={total: total + result.sum(), state: result * 2.0})
    f = esat.compile(graph, donate=[a])
    expected = 0.0
    for sizes in (LEFT_FIRST, RIGHT_FIRST, LEFT_FIRST):
        arrays = factors(sizes)
        product_ = product(arrays)
        given = np.empty_like(product_)
        assert f(arrays[0].copy(), *arrays[1:], out=given) is given
        np.testing.assert_allclose(given, product_, rtol=1e-9)
        expected += product_.sum()
        np.testing.assert_allclose(total.get_value(), expected, rtol=1e-8)
        np.testing.assert_allclose(state.get_value(), 2.0 * product_, rtol=1e-9)
    assert len(f.variants) == 1


@pytest.mark.usefixtures("at_once")
def test_sizes_of_shared_variables_count() -> None:
    x = esat.matrix("x")
    weights = [esat.shared(part, name="w") for part in factors((4, 4, 4))]
    f = esat.compile(esat.Graph([x], [x @ weights[0] @ weights[1]]))
    for sizes in (LEFT_FIRST, RIGHT_FIRST):
        first, *rest = factors(sizes)
        for weight, value in zip(weights, rest, strict=True):
            weight.set_value(value)
        np.testing.assert_allclose(f(first), first @ rest[0] @ rest[1], rtol=1e-9)
        np.testing.assert_allclose(f(first), first @ rest[0] @ rest[1], rtol=1e-9)
    assert len(f.variants) == 1


@pytest.mark.usefixtures("at_once")
def test_wrong_arguments_are_refused_as_before() -> None:
    f = esat.compile(chain())
    arrays = factors(RIGHT_FIRST)
    f(*arrays)
    with pytest.raises(esat.errors.ShapeError):
        f(arrays[0], arrays[2], arrays[1])
    with pytest.raises(esat.errors.InputError):
        f(*arrays[:2])
    with pytest.raises(esat.errors.InputError):
        f(*arrays, out=np.empty((3, 3)))
    np.testing.assert_allclose(f(*arrays), product(arrays))


@pytest.mark.usefixtures("at_once")
def test_measuring_counts_every_call_once() -> None:
    f = esat.compile(chain())
    f.measure()
    for sizes in (LEFT_FIRST, RIGHT_FIRST, LEFT_FIRST):
        f(*factors(sizes))
    assert f.profile.calls == 3
    assert f.profile.stages["variants"] > 0.0


def in_threads(count: int, action: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            action(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_share_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "COMPILE_SECONDS", 1e-2)
    f = esat.compile(chain())
    cases = [factors(sizes) for sizes in (LEFT_FIRST, RIGHT_FIRST, (400, 4, 400, 4))]

    def action(number: int) -> None:
        for turn in range(30):
            arrays = cases[(number + turn) % len(cases)]
            np.testing.assert_allclose(f(*arrays), arrays[0] @ arrays[1] @ arrays[2], rtol=1e-8)

    in_threads(4, action)
    assert len(f.variants) >= 1
