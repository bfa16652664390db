"""Expected sizes in the greedy optimizer: comparisons are made for the sizes that are known."""

import numpy as np
import pytest

import esat
from esat.classic.sizes import ExpectedSizes
from esat.graph import FunctionGraph


def test_sizes_follow_from_those_of_inputs() -> None:
    x, y = esat.matrix("x"), esat.matrix("y")
    w = esat.shared(np.zeros((7, 1)))
    product = esat.exp(x @ y).sum(axis=0)
    weighted = y @ w
    graph = FunctionGraph([x, y], [product, weighted, x.reshape((2, -1))])
    sizes = ExpectedSizes(((4, 5), (5, 7)))
    sizes.begin(graph)
    assert sizes.of(graph.outputs[0]) == (7,)
    assert sizes.of(graph.outputs[1]) == (5, None)  # of size 1 now, but it does not broadcast by its type
    assert sizes.of(graph.outputs[2])[0] == 2


def test_sizes_that_do_not_fit_say_nothing() -> None:
    x, y = esat.matrix("x"), esat.matrix("y")
    graph = FunctionGraph([x, y], [x @ y])
    sizes = ExpectedSizes(((4, 5), (6, 7)))
    sizes.begin(graph)
    assert sizes.of(graph.outputs[0]) == (None, None)
    unknown = ExpectedSizes()
    unknown.begin(graph)
    assert unknown.of(graph.outputs[0]) == (None, None)


@pytest.mark.parametrize("mode", ["greedy", "fast_run"])
@pytest.mark.parametrize(
    ("sizes", "right_first"), [((4, 700, 700, 700), False), ((700, 700, 700, 4), True)], ids=["left", "right"]
)
def test_products_are_ordered_for_the_sizes_given(
    mode: str, sizes: tuple[int, ...], right_first: bool
) -> None:
    factors = [esat.matrix(name) for name in "abc"]
    first, second, third = factors
    written = (first @ second) @ third if right_first else first @ (second @ third)
    shapes = {factor: (sizes[place], sizes[place + 1]) for place, factor in enumerate(factors)}
    f = esat.compile(esat.Graph(factors, [written]), mode=mode, shapes=shapes)
    last = f.optimized.outputs[0].owner
    assert last is not None
    assert (last.inputs[0] in f.optimized.input_set) is right_first
