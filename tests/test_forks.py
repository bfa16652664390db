"""Forks while other threads compile: children compile, too."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import esat
from esat.forks import GATE

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
X = esat.vector("x")


def forked(action) -> int:
    """The exit status of a child that runs an action; it is killed where it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
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
    try:
        for number in range(6):
            assert forked(lambda number=number: compute(20_000 + number)) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
