"""Exceptions that arrive from outside at any moment of a compilation: they reach the user as they are."""

import ctypes
import gc
import random
import signal
import threading
import time

import numpy as np
import pytest

import esat
from esat.base.interrupts import (
    delayed_interrupts,
    deliver_now,
    handlers_reach_the_caller,
    raise_from_outside,
)
from esat.base.storage import DiskStore, digest_of
from esat.codegen.cache import compiled_kernel
from esat.egraph.engine import Engine
from esat.errors import EsatError
from esat.runtime.native import direct

X = np.linspace(0.5, 1.5, 6).reshape(2, 3)


class Deadline(Exception):
    """A user's own."""


KINDS = [Deadline, TimeoutError, RuntimeError, ValueError, KeyboardInterrupt, MemoryError, OSError]


@pytest.fixture
def alarm():
    """Set an alarm after so many seconds, which raises an exception."""
    before = signal.getsignal(signal.SIGALRM)

    def set_alarm(seconds, error):
        def handler(_number, _frame):
            raise error

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    yield set_alarm
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


def graph(number):
    x = esat.matrix("x")
    return esat.Graph(
        [x], [esat.log(esat.exp(x) * float(number + 2)).sum(axis=0), esat.softmax(x * x, axis=1) @ x.T]
    )


def wanted(number):
    powers = np.exp(X * X)
    return (X + np.log(number + 2.0)).sum(axis=0), powers / powers.sum(axis=1, keepdims=True) @ X.T


def compiled(number):
    return esat.compile(graph(number))


def jitted(number):
    def f(x):
        powers = np.exp(x * x)
        return np.log(np.exp(x) * (number + 2.0)).sum(axis=0), powers / powers.sum(
            axis=1, keepdims=True
        ) @ x.T

    made = esat.jit(f)
    made(X)
    return made


def is_cut_off(make, number, seconds, error, alarm):
    """Whether an alarm came in time; what it raises arrives as it is."""
    try:
        alarm(seconds, error)
        make(number)
    except BaseException as found:
        caught = found
    else:
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    assert caught is error, repr(caught)
    assert not getattr(caught, "__notes__", None)
    return True


@pytest.mark.parametrize("make", [compiled, jitted])
@pytest.mark.filterwarnings("ignore::esat.base.storage.CacheWarning")
def test_alarms_at_random_moments(make, alarm):
    make(-1)
    begin = time.perf_counter()
    make(0)
    longest = time.perf_counter() - begin
    rng, came = random.Random(0), 0
    for number in range(1, 31):
        came += is_cut_off(
            make, number, rng.uniform(1e-4, longest), KINDS[number % len(KINDS)]("mine"), alarm
        )
        if number % 3 == 0:
            for one, other in zip(make(number)(X), wanted(number), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)
    assert came >= 10


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_caught_on_the_way_is_raised_at_the_end(kind, alarm):
    error = kind("mine")
    alarm(100.0, error)

    def swallow():
        try:
            signal.raise_signal(signal.SIGALRM)
        except kind:
            return
        raise AssertionError

    def convert():
        try:
            signal.raise_signal(signal.SIGALRM)
        except kind as found:
            raise EsatError("another") from found

    for within in (swallow, convert):
        with pytest.raises(kind) as caught, handlers_reach_the_caller():
            within()
        assert caught.value is error
    before_the_end = []
    with pytest.raises(kind) as caught, handlers_reach_the_caller():  # noqa: PT012
        swallow()
        deliver_now()
        before_the_end.append(1)
    assert caught.value is error
    assert not before_the_end
    swallow()  # outside of compilations it is the caller's matter
    deliver_now()


def test_handlers_are_back_in_their_places(alarm):
    alarm(100.0, Deadline())
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    for block in (handlers_reach_the_caller, delayed_interrupts):
        with block():
            pass
        with pytest.raises(Deadline), block():
            signal.raise_signal(signal.SIGALRM)
        with pytest.raises(KeyError), block():
            raise KeyError
    assert {number: signal.getsignal(number) for number in signal.valid_signals()} == handlers


def test_signals_wait_for_numba(alarm):
    alarm(100.0, Deadline())
    steps = []
    with pytest.raises(Deadline), delayed_interrupts():  # noqa: PT012
        signal.raise_signal(signal.SIGALRM)
        steps.append("the rest of the block")
    assert steps


def test_all_signals_that_waited_are_handled():
    handled = []
    before = {
        number: signal.signal(number, lambda number, _frame: handled.append(number))
        for number in (signal.SIGUSR1, signal.SIGUSR2)
    }
    try:
        with delayed_interrupts():
            for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGUSR1):
                signal.raise_signal(number)
            assert not handled
        assert set(handled) == set(before)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_handlers_that_are_set_within_stay():
    before = signal.getsignal(signal.SIGUSR1)
    try:
        with handlers_reach_the_caller(), delayed_interrupts():
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_other_threads_have_no_handlers(alarm):
    alarm(100.0, Deadline())
    found = []

    def work():
        with handlers_reach_the_caller(), delayed_interrupts():
            found.append(compiled(99)(X)[0])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_allclose(found[0], wanted(99)[0], rtol=1e-12)


@pytest.mark.parametrize("kind", [*KINDS, Deadline])
def test_engines_raise_what_comes_from_outside(kind, monkeypatch):
    engine, error = Engine(), kind("mine")

    class Stopped:
        def run_program(self, *_commands):
            raise error

        parse_program = run_program

    monkeypatch.setattr(engine, "_egraph", Stopped())
    with pytest.raises(kind) as caught:
        engine.parse("(run 1)")
    assert caught.value is error


@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt, TimeoutError, Deadline, RuntimeError])
def test_no_memory_is_no_fault_of_a_kernel_or_an_entry(kind, monkeypatch, tmp_path):
    def without(*_arguments, **_named):
        raise kind  # as other threads raise it

    number = time.time_ns() % 1_000_000_007  # not compiled before, nor found on disk
    tmp_path.chmod(0o700)
    store = DiskStore(tmp_path, "test")
    key = digest_of(["an entry"])
    store.save(key, b"content")
    with pytest.raises(kind):
        store.load(key, without)
    assert store.load(key, bytes) == b"content"
    monkeypatch.setattr(compiled_kernel, "_dispatcher", without)
    with pytest.raises(kind):
        compiled(number)(X)
    monkeypatch.undo()
    np.testing.assert_allclose(compiled(number)(X)[0], wanted(number)[0], rtol=1e-12)


def test_timeouts_are_no_errors_of_files(monkeypatch, tmp_path):
    tmp_path.chmod(0o700)
    store, key = DiskStore(tmp_path, "test"), digest_of(["an entry"])
    store.save(key, b"content")

    def raising(error):
        def open_file(*_arguments):
            raise error

        return open_file

    for error in (TimeoutError(), TimeoutError("mine"), Deadline("mine"), OSError()):
        monkeypatch.setattr("esat.base.storage.directory.os.open", raising(error))
        with pytest.raises(type(error)) as caught:
            store.load(key, bytes)
        assert caught.value is error
    monkeypatch.setattr(
        "esat.base.storage.directory.os.open", raising(TimeoutError(110, "of the file system"))
    )
    assert store.load(key, bytes) is None
    monkeypatch.undo()
    assert store.load(key, bytes) == b"content"


def test_what_another_made_of_an_exception_from_outside():
    def within():
        try:
            raise TimeoutError
        except TimeoutError:
            raise ValueError("of a library")  # noqa: B904 - as libraries do

    def raised():
        try:
            within()
        except ValueError as error:
            raise_from_outside(error)
            return error

    with pytest.raises(TimeoutError):
        raised()
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:  # which the caller handles: it is not what went wrong
        with pytest.raises(TimeoutError):
            raised()
        try:
            raise ValueError("of a file")
        except ValueError as error:
            raise_from_outside(error)


@pytest.mark.parametrize("make", [compiled, jitted])
@pytest.mark.filterwarnings("ignore::esat.base.storage.CacheWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_exceptions_from_other_threads(make):
    """They cannot be held back: what is called back by LLVM, or by the collector, is without them then."""
    kinds = [Deadline, TimeoutError, KeyboardInterrupt, MemoryError]
    begin = time.perf_counter()
    make(20_000)
    longest = time.perf_counter() - begin
    rng, came = random.Random(1), 0
    for number in range(20_001, 20_021):
        kind = kinds[number % len(kinds)]
        caught = raised_by_another_thread(
            lambda number=number: make(number), kind, rng.uniform(0, longest / 2)
        )
        assert caught is None or type(caught) is kind, repr(caught)
        assert caught is None or not (caught.__cause__ or getattr(caught, "__notes__", None))
        came += caught is not None
        if number % 4 == 0:
            np.testing.assert_allclose(make(number)(X)[0], wanted(number)[0], rtol=1e-12)
    assert came >= 5


def raised_by_another_thread(action, kind, seconds):
    """What an action raises into which another thread raises an exception after so many seconds."""
    target, lock, is_running = ctypes.c_ulong(threading.get_ident()), threading.Lock(), [True]

    def shoot():
        time.sleep(seconds)
        with lock:
            if is_running:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(kind))

    thread = threading.Thread(target=shoot)
    caught = None
    try:
        thread.start()
        action()
        with lock:
            is_running.clear()
    except BaseException as error:
        caught = error
    thread.join()
    return caught


CALLS = {
    "library": (lambda x: np.cumsum(np.sort(x)), (np.random.default_rng(0).random(50_000),)),
    "elementwise": (lambda x: np.exp(x) * 2 + np.sin(x), (np.random.default_rng(0).random(100_000),)),
    "solve": (lambda a, b: np.linalg.solve(a + 9 * np.eye(80), b), (np.ones((80, 80)), np.arange(80.0))),
    "small": (lambda x, y: x * y + 1, (np.ones(3), np.arange(3.0))),
}


@pytest.mark.parametrize("name", CALLS)
def test_alarms_during_calls(name, alarm):
    function, arguments = CALLS[name]
    program = esat.jit(function)
    for _ in range(direct.CALLS + 50):
        program(*arguments)
    rng = random.Random(2)
    for number in range(30):
        error, caught = KINDS[number % len(KINDS)]("mine"), None
        try:
            alarm(rng.uniform(1e-5, 0.01), error)
            while True:
                program(*arguments)
        except BaseException as found:
            caught = found
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        assert caught is error
        assert not getattr(caught, "__notes__", None)
        np.testing.assert_allclose(program(*arguments), function(*arguments), rtol=1e-12)


def test_nothing_is_left_of_compilations(alarm):
    alarm(100.0, Deadline())
    with handlers_reach_the_caller():
        pass
    gc.collect()
    deliver_now()
