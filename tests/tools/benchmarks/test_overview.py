"""The page of speeds and compile times: what its tables say of figures."""

import math

from benchmarks.overview import CONTENDERS, PROGRAMS, Row, page
from benchmarks.peers.environments import interpreter_of
from benchmarks.peers.starts import started

NAMES = list(CONTENDERS)


def row(program, **figures):
    calls = {name: call for name, (call, _, _) in figures.items()}
    return Row(program, calls, {name: (cold, warm) for name, (_, cold, warm) in figures.items()})


def test_the_least_figure_of_each_group_is_bold():
    first = row(PROGRAMS[0], esat=(2e-6, 1.0, 0.2), greedy=(4e-6, 1.5, 0.2), jax=(1e-6, 0.5, 0.1))
    second = row(
        PROGRAMS[1],
        esat=(1e-6, 2.0, 0.1),
        greedy=(9e-6, 6.0, 0.4),
        handwritten=(3e-6, 1.0, 1.0),
        pytensor=(5e-6, 3.0, 1.0),
    )
    text = page([first, second], NAMES, 3)
    name = PROGRAMS[0].name.replace("*", r"\*")
    assert f"| {name} | 2 | 4 | - | - | **1** |" in text
    assert f"| {name} | 1.00 | 1.50 | - | - | **0.50** |" in text
    assert f"| {name} | 0.20 | 0.20 | - | - | **0.10** |" in text
    assert f"| geometric mean | 1.00 | {math.sqrt(2 * 9):.2f} | 3.00 | 5.00 | 0.50 |" in text


def test_a_process_that_finds_what_another_left_takes_less_time():
    python = interpreter_of("esat", {})
    cold, warm = started("esat", python, PROGRAMS[0], 100)
    assert 0.0 < warm < cold
