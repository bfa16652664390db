"""Forks while other threads compile, or update variables: children do, too."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from interrupts import interrupted_everywhere

import esat
from esat.base.forks import GATE, LONGEST_WAIT

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
X = esat.vector("x")


def forked(action) -> int:
    """The exit status of a child that runs an action; it is killed where it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(15)
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def compute(number: int) -> None:
    function = esat.compile(esat.Graph([X], esat.exp(X * (1.0 + number / 64))), "fast_compile")
    np.testing.assert_allclose(function(np.ones(3)), np.exp(1.0 + number / 64))


def test_a_fork_lets_others_finish_first() -> None:
    inside, left = threading.Event(), []

    def work() -> None:
        with GATE.busy(), GATE.busy():
            inside.set()
            time.sleep(0.2)
            left.append(True)

    def action() -> None:
        assert left
        with GATE.busy():
            pass

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(10)
    with GATE.busy():  # a thread does not wait for itself
        assert forked(action) == 0
    thread.join()


def test_blocks_that_are_cut_off_anywhere_keep_nobody_from_forking() -> None:
    def work() -> None:
        with GATE.busy(), GATE.busy():
            pass

    def fork() -> None:
        ended.append(forked(lambda: None))

    places = 0
    for _ in interrupted_everywhere(work):
        places += 1
        ended: list[int] = []
        other = threading.Thread(target=fork, daemon=True)
        other.start()
        other.join(LONGEST_WAIT / 4)
        assert ended == [0]
    assert places > 20


def test_a_fork_holds_the_locks_whose_holders_would_be_gone() -> None:
    first, second = GATE.lock(), GATE.lock()
    inside, left = threading.Event(), []

    def work() -> None:
        with first:
            inside.set()
            time.sleep(0.1)
            with second:  # which the fork must not hold while it waits for the first
                left.append(True)

    def action() -> None:
        assert left
        assert first.acquire(timeout=1)
        assert second.acquire(timeout=1)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(10)
    with GATE.lock():  # the fork's own thread holds it before and after
        assert forked(action) == 0
    thread.join()
    for lock in (first, second):  # the parent has let go of them
        taken = []
        other = threading.Thread(target=lambda lock=lock, taken=taken: taken.append(lock.acquire(timeout=1)))
        other.start()
        other.join()
        assert taken == [True]


def test_children_update_variables_while_threads_of_the_parent_do() -> None:
    total = esat.shared(np.zeros(400_000))
    ones = np.ones(400_000)
    function = esat.compile(esat.Graph([X], [], updates={total: total + X}), "fast_run")
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            function(ones)

    def action() -> None:
        before = total.get_value()
        assert np.ptp(before) == 0  # no update was cut off
        function(ones)
        np.testing.assert_array_equal(total.get_value(), before + 1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(6):
            assert forked(action) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_children_compile_while_threads_of_the_parent_do() -> None:
    compute(0)
    stop = threading.Event()

    def work(first: int) -> None:
        for number in range(first, 10_000, 2):
            if stop.is_set():
                break
            compute(number)

    threads = [threading.Thread(target=work, args=(first,)) for first in (1, 2)]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    try:
        for number in range(6):
            assert forked(lambda number=number: compute(20_000 + number)) == 0
        assert time.monotonic() - begun < LONGEST_WAIT, "a fork waited for a thread that waited for it"
    finally:
        stop.set()
        for thread in threads:
            thread.join()
