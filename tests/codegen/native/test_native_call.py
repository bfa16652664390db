"""Native functions that give the interpreter's lock up while their steps run.

Steps are functions of the C library here: one posts a semaphore, one waits for another. A call that held the
lock would wait forever for a thread that needs it.
"""

import ctypes
import os
import random
import signal
import sys
import threading

import numpy as np
import pytest

from esat.codegen.native_functions.native_call import native_call
from esat.codegen.native_functions.native_plan import (
    ArraySpecification,
    KernelStep,
    MoveStep,
    Place,
    RoutineStep,
)
from esat.codegen.native_functions.native_text import contiguous_strides

LIBRARY = ctypes.CDLL(None)
OTHERWISE = object()
OWNS_DATA = 4
RESULT = ArraySpecification(np.dtype(np.float64), (3,))


def address(name):
    return ctypes.cast(getattr(LIBRARY, name), ctypes.c_void_p).value


class Semaphore:
    """One of the C library; waiting gives the interpreter's lock up."""

    def __init__(self):
        self.memory = np.zeros(64, np.uint8)
        self.place = Place("fixed", self.memory.ctypes.data)
        assert LIBRARY.sem_init(self._pointer, 0, 0) == 0

    @property
    def _pointer(self):
        return ctypes.c_void_p(self.place.number)

    def post(self):
        assert LIBRARY.sem_post(self._pointer) == 0

    def wait(self):
        assert LIBRARY.sem_wait(self._pointer) == 0


class Waiting:
    """A native function each call of which says that it has begun, and goes on when it is told."""

    def __init__(self, libraries=()):
        self.begun, self.go = Semaphore(), Semaphore()
        steps = [
            RoutineStep(address("sem_post"), (self.begun.place,)),
            RoutineStep(address("sem_wait"), (self.go.place,)),
        ]
        self.call = native_call([], [RESULT], steps, lambda: OTHERWISE, self, libraries, unlocked=True)
        self.results = []
        self.thread = threading.Thread(target=lambda: self.results.append(self.call()))

    def __enter__(self):
        """Have a call in progress in another thread."""
        self.thread.start()
        self.begun.wait()
        return self

    def __exit__(self, *_error):
        self.go.post()
        self.thread.join(60.0)
        assert not self.thread.is_alive()


def is_result(found):
    return isinstance(found, np.ndarray) and found.shape == RESULT.shape


def test_other_threads_run_while_steps_do():
    with Waiting() as waiting:
        assert not waiting.results
    assert is_result(waiting.results[0])


def test_a_call_while_another_is_in_progress_goes_elsewhere():
    with Waiting() as waiting:
        assert waiting.call() is OTHERWISE
    waiting.go.post()
    assert is_result(waiting.call())


@pytest.mark.usefixtures("_heeds_interrupts")
def test_an_interrupt_arrives_after_the_call_and_leaves_the_function_usable():
    waiting = Waiting()

    def interrupt():
        waiting.begun.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        waiting.go.post()

    thread = threading.Thread(target=interrupt)
    thread.start()

    def call():
        waiting.call()
        thread.join()  # the signal may arrive a moment later

    with pytest.raises(KeyboardInterrupt):
        call()
    thread.join()
    waiting.go.post()
    assert is_result(waiting.call())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_no_call_is_in_progress_in_a_forked_child():
    with Waiting() as waiting:
        child = os.fork()
        if not child:
            waiting.go.post()
            os._exit(0 if is_result(waiting.call()) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_failed_allocation_leaves_no_call_in_progress():
    huge = ArraySpecification(np.dtype(np.float64), (1 << 60,))
    for outputs in ([huge], [RESULT, huge]):
        function = native_call([], outputs, [], lambda: OTHERWISE, None, unlocked=True)
        for _ in range(2):
            with pytest.raises((MemoryError, ValueError)):
                function()


def bases_of(count):
    """Memory for results, and the addresses of its parts; the first part is not there yet."""
    bases = np.full(count + 1, None, object)
    for place in range(1, count + 1):
        bases[place] = np.zeros(24, np.uint8)
    return bases, [base.ctypes.data for base in bases[1:]]


@pytest.mark.parametrize("unlocked", [False, True])
def test_results_are_made_in_memory_that_nobody_sees(unlocked):
    bases, places = bases_of(2)
    kept = ArraySpecification(np.dtype(np.float64), (3,), bases)
    call = native_call([], [kept], [], lambda: OTHERWISE, None, unlocked=unlocked)
    first, fresh = call(), np.empty(3)
    assert first.base is bases[2]
    assert (first.dtype, first.shape, first.strides) == (fresh.dtype, fresh.shape, fresh.strides)
    assert first.flags.num == fresh.flags.num & ~OWNS_DATA
    part = first[1:]
    del first
    second = call()
    assert [part.ctypes.data - 8, second.ctypes.data] == places[::-1]
    assert call() is OTHERWISE
    del second
    assert call().ctypes.data == places[0]
    del part
    assert call().ctypes.data == places[1]


def test_several_results_have_memory_of_their_own():
    one, two = bases_of(1), bases_of(1)
    outputs = [
        ArraySpecification(np.dtype(np.float64), (3,), one[0]),
        RESULT,
        ArraySpecification(np.dtype(np.int32), (2, 3), two[0]),
    ]
    call = native_call([], outputs, [], lambda: OTHERWISE, None)
    results = call()
    assert [result.shape for result in results] == [(3,), (3,), (2, 3)]
    assert [results[0].ctypes.data, results[2].ctypes.data] == one[1] + two[1]
    del results
    held = two[0][1]
    assert call() is OTHERWISE
    del held
    assert len(call()) == 3


def test_a_failed_allocation_gives_memory_back():
    bases, _ = bases_of(1)
    kept = ArraySpecification(np.dtype(np.float64), (3,), bases)
    huge = ArraySpecification(np.dtype(np.float64), (1 << 60,))
    for outputs in ([huge, kept], [kept, huge]):
        function = native_call([], outputs, [], lambda: OTHERWISE, None)
        with pytest.raises((MemoryError, ValueError)):
            function()
    assert native_call([], [kept], [], lambda: OTHERWISE, None)().base is bases[1]


def test_a_library_with_several_threads_is_left_to_others():
    threads = [1]
    count = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: threads[0])
    limit = ctypes.CFUNCTYPE(None, ctypes.c_int)(threads.append)
    functions = tuple(ctypes.cast(one, ctypes.c_void_p).value for one in (count, limit))
    kept = (count, limit)
    function = native_call([], [RESULT], [], lambda: OTHERWISE, kept, [functions], unlocked=True)
    assert is_result(function())
    threads[0] = 2
    assert function() is OTHERWISE
    assert threads == [2]


def test_locked_calls_give_a_library_one_thread_and_its_own_number_back():
    threads = [3]
    count = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: threads[-1])
    limit = ctypes.CFUNCTYPE(None, ctypes.c_int)(threads.append)
    functions = tuple(ctypes.cast(one, ctypes.c_void_p).value for one in (count, limit))
    function = native_call([], [RESULT], [], lambda: OTHERWISE, (count, limit), [functions])
    assert is_result(function())
    assert threads == [3, 1, 3]


TEXT = ArraySpecification(np.dtype(np.uint8), (4,))


def copying(unlocked=False, outputs=1):
    """Copies texts of at most three bytes: every result is the one argument."""
    steps = [
        RoutineStep(address("strcpy"), (Place("output", number), Place("input", 0)))
        for number in range(outputs)
    ]
    return native_call([TEXT], [TEXT] * outputs, steps, lambda *_, **__: OTHERWISE, None, unlocked=unlocked)


def text(content=b"abc\0"):
    return np.frombuffer(content, np.uint8).copy()


@pytest.mark.parametrize("unlocked", [False, True])
def test_results_are_written_into_given_arrays(unlocked):
    call, given, memory = copying(unlocked), text(b"\0" * 4), text(b"\0" * 12)
    for out in (given, memory[4:8]):
        references = sys.getrefcount(out)
        for content in (b"abc\0", b"xyz\0"):
            assert call(text(content), out=(out,)) is out
            assert out.tobytes() == content
        assert sys.getrefcount(out) == references
    assert memory.tobytes() == b"\0" * 4 + b"xyz\0" + b"\0" * 4
    assert call(text()).tobytes() == b"abc\0"


def test_several_results_are_written_into_given_arrays():
    memory = text(b"\0" * 8)
    out = (memory[4:], memory[:4])
    assert copying(outputs=2)(text(), out=out) is out
    assert memory.tobytes() == b"abc\0abc\0"


MEMORY = text(b"\0" * 16)
READ_ONLY = text(b"\0" * 4)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "named",
    [
        {"out": None},
        {"out": MEMORY[:4]},
        {"out": [MEMORY[:4]]},
        {"out": ()},
        {"out": (MEMORY[:4], MEMORY[4:8])},
        {"out": (None,)},
        {"out": (READ_ONLY,)},
        {"out": (MEMORY[:3],)},
        {"out": (MEMORY[:8:2],)},
        {"out": (MEMORY[:4].view(np.int8),)},
        {"out": (MEMORY[:4].reshape(2, 2),)},
        {"out": (MEMORY[9:13],)},
        {"out": (MEMORY[11:15],)},
        {"out": (MEMORY[12:],)},
        {"other": (MEMORY[:4],)},
        {"out": (MEMORY[:4],), "other": 1},
    ],
)
def test_what_is_no_array_for_the_result_goes_elsewhere(named):
    MEMORY[12:15] = 97, 98, 99
    before = MEMORY.copy()
    assert copying()(MEMORY[12:], **named) is OTHERWISE
    assert (before == MEMORY).all()
    assert not READ_ONLY.any()


def test_given_arrays_that_overlap_go_elsewhere():
    memory = text(b"\0" * 8)
    assert copying(outputs=2)(text(), out=(memory[:4], memory[3:7])) is OTHERWISE
    assert not memory.any()


@pytest.mark.parametrize("unlocked", [False, True])
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_kernel_that_fails_raises_and_leaves_nothing_behind(unlocked, outputs):
    """By numba's convention a kernel says by its status that it found no memory."""
    ran = []
    status = ctypes.CFUNCTYPE(ctypes.c_int)
    kernels = [status(lambda number=number: ran.append(number) or number) for number in (0, 1, 0)]
    steps = [
        KernelStep(ctypes.cast(one, ctypes.c_void_p).value, ((Place("output", 0), RESULT),))
        for one in kernels
    ]
    count, limit = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1), ctypes.CFUNCTYPE(None, ctypes.c_int)(ran.append)
    functions = tuple(ctypes.cast(one, ctypes.c_void_p).value for one in (count, limit))
    bases = np.empty(1, object)
    bases[:] = [np.empty(RESULT.shape)]
    results = [ArraySpecification(RESULT.dtype, RESULT.shape, bases), *[RESULT] * (outputs - 1)]
    call = native_call([], results, steps, lambda: OTHERWISE, (kernels, count, limit), [functions], unlocked)
    for _ in range(2):
        ran.clear()
        with pytest.raises(MemoryError, match="a kernel found no memory"):
            call()
        assert ran == ([0, 1] if unlocked else [1, 0, 1, 1]), "later steps do not run; threads are given back"
        references = sys.getrefcount(bases[0])
        assert references == 2
    good = native_call([], results, steps[:1], lambda: OTHERWISE, kernels, unlocked=unlocked)
    assert good() is not OTHERWISE


REAL = [np.dtype(name) for name in ("float64", "int64", "float32", "bool", "complex64")]


def argument(dtype, number, is_array):
    """What is admitted, a value of it, and an array that is equal."""
    made = np.full((3, number % 4 + 1) if is_array else (), number, dtype)
    as_python = {np.dtype("float64"): float, np.dtype("int64"): int}
    given = made if is_array or dtype.kind == "c" else as_python.get(dtype, dtype.type)(made[()])
    return ArraySpecification(dtype, made.shape), given, made


@pytest.mark.parametrize("order", ["scalars first", "arrays first", "in turn", "mixed"])
@pytest.mark.parametrize("dtypes", [REAL[:1], REAL], ids=["float64", "any"])
def test_names_of_any_number_of_arguments_and_results_never_meet(order, dtypes):
    """Each result is a copy of one of the arguments: of the wrong one, or none at all, where names meet."""
    rng = random.Random(0)
    for count in range(41):
        kinds = [False] * count + [True] * (count % 7)
        if order == "arrays first":
            kinds.reverse()
        elif order == "in turn":
            kinds = [bool(place % 2) for place in range(count)]
        elif order == "mixed":
            rng.shuffle(kinds)
        admitted = [argument(dtypes[n % len(dtypes)], n, is_array) for n, is_array in enumerate(kinds)]
        inputs = [one for one, _, _ in admitted]
        copied = rng.sample(range(len(kinds)), min(len(kinds), 12))
        steps = [
            MoveStep(
                Place("output", number), Place("input", place), inputs[place].dtype,
                inputs[place].shape, *[contiguous_strides(inputs[place])] * 2,
            )
            for number, place in enumerate(copied)
        ]  # fmt: skip
        outputs = [inputs[place] for place in copied]
        call = native_call(inputs, outputs, steps, lambda *_, **__: OTHERWISE, None, unlocked=count % 2 > 0)
        given = [value for _, value, _ in admitted]
        out = tuple(np.zeros(one.shape, one.dtype) for one in outputs)
        for found in (call(*given), call(*given, out=out)):
            results = (found,) if len(copied) == 1 and isinstance(found, np.ndarray) else found
            assert len(results) == len(copied)
            for place, result in zip(copied, results, strict=True):
                assert result.dtype == inputs[place].dtype
                np.testing.assert_array_equal(result, admitted[place][2])
