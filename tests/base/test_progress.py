"""What is said of a long compilation."""

import io

import numpy as np
import pytest

import esat
from esat.base import progress as module
from esat.base.progress import compiling, tell


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Each look at the clock is a second later than the one before."""
    times = iter(map(float, range(10_000)))
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(times))


def test_a_terminal_shows_what_takes_over_three_seconds():
    terminal = Terminal()
    with compiling("f", terminal):
        for number in range(5):
            tell(f"step {number}")
    lines = terminal.getvalue().split("\r\x1b[K")
    assert lines == ["", *(f"esat: compiling f: step {number}, {number + 1} s" for number in (2, 3, 4)), ""]


def test_a_log_gets_a_line_whenever_the_time_has_doubled():
    log = io.StringIO()
    with compiling("f", log):
        for number in range(1, 30):
            tell(f"step {number}")
    assert [line.split()[4] for line in log.getvalue().splitlines()] == ["3,", "6,", "12,", "24,"]


def test_the_line_is_gone_after_an_error():
    def broken(terminal):
        with compiling("f", terminal):
            for _ in range(4):
                tell("step")
            raise ValueError("stop")

    terminal = Terminal()
    with pytest.raises(ValueError, match="stop"):
        broken(terminal)
    assert terminal.getvalue().endswith("\r\x1b[K")
    tell("nothing is compiled")


def test_a_compilation_within_another_goes_by_the_outer_name():
    terminal = Terminal()
    with compiling("outer", terminal), compiling("inner"):
        for _ in range(4):
            tell("step")
    assert "inner" not in terminal.getvalue()
    assert "outer" in terminal.getvalue()


@pytest.mark.parametrize("wanted", [True, False])
def test_a_compilation_tells_of_its_stages(monkeypatch, capsys, wanted):
    if not wanted:
        monkeypatch.setenv(module.VARIABLE, "0")
    x = esat.vector("x")
    mode = esat.Mode("fast_run", node_limit=5_001)  # one that no cache knows
    assert esat.compile(esat.Graph([x], esat.tanh(x * 2) + esat.exp(x)), mode)(np.zeros(1)) == 1
    assert ("esat: compiling " in capsys.readouterr().err) == wanted
