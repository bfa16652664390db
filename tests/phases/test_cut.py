"""The cheapest sides of steps, against all that there are."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from esat.phases.cut import DEVICE, HOST, Flow, Weight, cheapest_sides, seconds_of_sides

PROGRAMS = 300


def random_program(rng):
    """Up to nine steps, each reading up to three variables, with seconds and sizes of all magnitudes."""
    makers = [HOST, rng.choice([HOST, DEVICE])]
    readers = [[], []]
    steps = []
    for number in range(rng.randint(1, 9)):
        for variable in rng.sample(range(len(makers)), min(len(makers), rng.randint(1, 3))):
            readers[variable].append(number)
        seconds = 10 ** rng.uniform(-6, -3)
        device = math.inf if rng.random() < 0.15 else seconds * rng.uniform(0.01, 1.5) + 4e-6
        steps.append(Weight(seconds, device))
        makers.append(number)
        readers.append([])
    for variable in rng.sample(range(2, len(makers)), 1):
        readers[variable].append(rng.choice([HOST, DEVICE]))
    if rng.random() < 0.3:  # read by conditions
        readers[rng.randrange(2, len(makers))].append(HOST)
    flows = [
        Flow(maker, tuple(read), 8e-6 + 10 ** rng.uniform(1, 8) / 2.5e10)
        for maker, read in zip(makers, readers, strict=True)
    ]
    return steps, flows


def cheapest_of_all(steps, flows):
    return min(
        seconds_of_sides(sides, steps, flows)
        for sides in itertools.product(["host", "device"], repeat=len(steps))
    )


def test_no_placement_of_random_programs_is_cheaper():
    rng = random.Random(0)
    mixed = 0
    for _ in range(PROGRAMS):
        steps, flows = random_program(rng)
        sides = cheapest_sides(steps, flows)
        best = cheapest_of_all(steps, flows)
        assert seconds_of_sides(sides, steps, flows) == pytest.approx(best, rel=1e-6)
        mixed += len(set(sides)) == 2
    assert mixed > PROGRAMS / 20  # or the programs would ask nothing


def test_a_copy_is_paid_once_for_all_that_read_it():
    """Three steps that each gain less than a copy costs, and more together."""
    steps = [Weight(3.0, 1.0)] * 3
    flows = [Flow(HOST, (0, 1, 2), 5.0)]
    assert cheapest_sides(steps, flows) == ("device",) * 3
    assert cheapest_sides(steps[:2], [Flow(HOST, (0, 1), 5.0)]) == ("host",) * 2


def test_what_costs_as_much_on_both_sides_stays_on_the_host():
    assert cheapest_sides([Weight(1.0, 1.0)], [Flow(HOST, (0,), 0.0)]) == ("host",)
    assert cheapest_sides([Weight(0.0, 0.0)], []) == ("host",)
    assert cheapest_sides([], []) == ()


def test_steps_without_a_form_stay_on_their_side():
    steps = [Weight(1e-9, math.inf), Weight(math.inf, 1e3)]
    assert cheapest_sides(steps, [Flow(0, (1,), 1e6)]) == ("host", "device")
