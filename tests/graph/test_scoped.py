"""Values of blocks end with their blocks, also where the end of a block is never reached."""

import signal
import threading

import numpy as np
import pytest

import esat
from esat.graph.calls.callers import built_for
from esat.graph.scoped import Scoped


def test_blocks_are_nested_and_end():
    scoped = Scoped[int]("number")
    assert scoped.get() is None
    with scoped.set(1):
        with scoped.set(2):
            assert scoped.get() == 2
        assert scoped.get() == 1
    assert scoped.get() is None
    with pytest.raises(KeyError), scoped.set(3):
        raise KeyError
    assert scoped.get() is None


def test_a_block_that_is_never_left_ends_with_what_holds_it():
    scoped = Scoped[int]("number")
    with scoped.set(1):
        inner = [scoped.set(2), scoped.set(3)]
        for block in inner:
            block.__enter__()
        assert scoped.get() == 3
        del inner, block
        assert scoped.get() == 1
    assert scoped.get() is None


def test_blocks_that_are_left_in_another_order_end():
    scoped = Scoped[int]("number")
    outer, inner = scoped.set(1), scoped.set(2)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert scoped.get() == 2
    inner.__exit__(None, None, None)
    assert scoped.get() is None


def test_a_block_may_end_in_another_thread():
    scoped = Scoped[int]("number")

    def within():
        with scoped.set(1):
            yield

    suspended = within()
    next(suspended)
    assert scoped.get() == 1
    thread = threading.Thread(target=suspended.close)
    thread.start()
    thread.join()
    assert scoped.get() is None


def test_threads_see_their_own_blocks():
    scoped = Scoped[int]("number")
    seen = []
    with scoped.set(1):
        thread = threading.Thread(target=lambda: seen.append(scoped.get()))
        thread.start()
        thread.join()
    assert seen == [None]


class _TooLongError(BaseException):
    pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals of timers are a thing of Unix")
def test_exceptions_that_come_at_any_time_leave_nothing_behind():
    def end(_number, _frame):
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, end)
    ended = 0
    try:
        for microseconds in range(1, 400):
            try:
                # Once more after a second: what is raised while an object is freed, Python only prints.
                signal.setitimer(signal.ITIMER_REAL, microseconds * 1e-6, 1.0)
                while True:
                    with built_for(None), built_for(("other.py", 1)):
                        pass
            except _TooLongError:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
                ended += 1
            assert esat.exp(esat.scalar("x")).owner.where[0] == __file__
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert ended == 399


def test_a_compilation_that_was_torn_down_takes_no_lines_from_later_nodes():
    block = built_for(None)
    block.__enter__()  # as if an exception of a signal's came before `with` had it
    del block
    x = esat.vector("x")
    y = esat.exp(x)
    assert y.owner.where[0] == __file__
    np.testing.assert_allclose(esat.compile(esat.Graph([x], y))(np.zeros(2)), 1.0)
