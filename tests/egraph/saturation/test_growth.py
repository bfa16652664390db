"""Programs that repeat themselves: e-nodes and matches grow no faster than they do."""

from collections.abc import Callable

import pytest

import esat

MOST_GROWTH = 2.2
"""Of e-nodes and matches, from a program to one that is twice as long."""


def chain(steps: int) -> esat.Graph:
    x, y = esat.vector("x"), esat.vector("y")
    value = x
    for step in range(steps):
        value = esat.tanh(value) * y + (step % 7 + 0.5)
    return esat.Graph([x, y], [value])


def recurrence(steps: int) -> esat.Graph:
    weights, x = esat.matrix("weights"), esat.matrix("x")
    value = x
    for _ in range(steps):
        value = esat.tanh(weights @ value)
    return esat.Graph([weights, x], [value, esat.grad(value.sum(), weights)])


def layers(steps: int) -> esat.Graph:
    x = esat.matrix("x")
    weights = [esat.matrix(f"weights{step}") for step in range(steps)]
    biases = [esat.vector(f"biases{step}") for step in range(steps)]
    value = x
    for weight, bias in zip(weights, biases, strict=True):
        value = esat.tanh(value @ weight + bias)
    loss = (value**2).mean()
    return esat.Graph([x, *weights, *biases], [loss, *esat.grad(loss, [*weights, *biases])])


def two_increments(steps: int) -> esat.Graph:
    start, still = (esat.tensor(name, dtype="float64", shape=(100,)) for name in ("start", "still"))
    place, speed = start, still
    for _ in range(steps):
        speed = esat.inc_subtensor(speed[1:-1], 0.1 * (place[2:] - 2 * place[1:-1] + place[:-2]))
        place = place + 0.1 * speed
    return esat.Graph([start, still], [place, speed])


def wave(steps: int) -> esat.Graph:
    before, now = first, second = [esat.tensor(name, dtype="float64", shape=(100,)) for name in ("u0", "u1")]
    for _ in range(steps):
        around = esat.concatenate([now[1:], now[:1]]) + esat.concatenate([now[-1:], now[:-1]])
        before, now = now, 2 * now - before + 0.1 * (around - 2 * now)
    return esat.Graph([first, second], [before, now])


def heat_in_place(steps: int) -> esat.Graph:
    value = start = esat.tensor("u", dtype="float64", shape=(100,))
    for _ in range(steps):
        change = 0.1 * (value[2:] - 2 * value[1:-1] + value[:-2])
        value = esat.set_subtensor(value[1:-1], value[1:-1] + change)
    return esat.Graph([start], [value])


def gray_scott(steps: int) -> esat.Graph:
    u, v = inputs = [esat.tensor(name, dtype="float64", shape=(32, 32)) for name in "uv"]
    for _ in range(steps):
        inner, eaten = u[1:-1, 1:-1], v[1:-1, 1:-1]
        around_u, around_v = (
            z[:-2, 1:-1] + z[1:-1, :-2] - 4 * z[1:-1, 1:-1] + z[1:-1, 2:] + z[2:, 1:-1] for z in (u, v)
        )
        reaction = inner * eaten**2
        u, v = (
            esat.inc_subtensor(inner, 0.16 * around_u - reaction + 0.06 * (1 - inner)),
            esat.inc_subtensor(eaten, 0.08 * around_v + reaction - 0.12 * eaten),
        )
    return esat.Graph(inputs, [u, v])


def power_iteration(steps: int) -> esat.Graph:
    matrix, value = inputs = [esat.matrix("A"), esat.vector("v")]
    for _ in range(steps):
        image = matrix @ value
        value = image / esat.sqrt((image**2).sum())
    return esat.Graph(inputs, [value])


def roots(factors: int) -> esat.Graph:
    vectors = [esat.vector(f"x{factor}") for factor in range(factors)]
    value = esat.sqrt(vectors[0] ** 2 + 1)
    for vector in vectors[1:]:
        value = value * esat.sqrt(vector**2 + 1)
    return esat.Graph(vectors, [value, 1 / value])


def work(graph: esat.Graph) -> tuple[int, int]:
    """E-nodes and matches of a saturation that ended by itself."""
    report = esat.compile(graph).report
    assert report is not None
    assert report.saturation is not None
    assert report.saturation.stop_reason == "saturated"
    return report.saturation.nodes, sum(one.matches for one in report.saturation.rules)


PROGRAMS = [
    (chain, 50),
    (recurrence, 15),
    (layers, 6),
    (wave, 20),
    (two_increments, 20),
    (heat_in_place, 20),
    (gray_scott, 10),
    (power_iteration, 6),
    (roots, 8),
]


@pytest.mark.parametrize(("program", "steps"), PROGRAMS)
def test_work_is_in_proportion_to_the_program(program: Callable[[int], esat.Graph], steps: int) -> None:
    for once, twice in zip(work(program(steps)), work(program(2 * steps)), strict=True):
        assert twice <= MOST_GROWTH * once


def test_increments_that_are_read_in_between_are_not_added_up() -> None:
    """A sum for any two of them would be 800 for 40; sums of windows of ``place`` there are more."""
    e_nodes, _ = work(two_increments(40))
    assert e_nodes < 4 * len(two_increments(40).function_graph())
