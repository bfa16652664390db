"""The line that tells how far a long compilation is."""

import io

import pytest

from esat import progress as module
from esat.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch):
    """Each look at the clock is half a second later than the one before."""
    times = iter(number / 2 for number in range(1000))
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(times))


def test_a_terminal_shows_what_takes_over_a_second(clock):
    terminal = Terminal()
    assert list(progress(range(8), "compiling kernels", terminal)) == list(range(8))
    lines = terminal.getvalue().split("\r\x1b[K")
    assert lines[1] == "esat: compiling kernels [######..................] 2 of 8"
    assert len(lines) == 8
    assert lines[-1] == ""


def test_what_is_no_terminal_stays_clean(clock):
    stream = io.StringIO()
    assert list(progress(range(8), "compiling kernels", stream)) == list(range(8))
    assert stream.getvalue() == ""


def test_the_line_is_gone_after_an_error(clock):
    terminal = Terminal()
    steps = progress(range(8), "compiling kernels", terminal)
    for _ in range(4):
        next(steps)
    steps.close()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_quick_work_says_nothing():
    terminal = Terminal()
    list(progress(range(8), "compiling kernels", terminal))
    assert terminal.getvalue() == ""
