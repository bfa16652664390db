"""The verifier of selections refuses everything later stages could stumble over."""

from dataclasses import replace

import numpy as np
import pytest
from extract.random_egraphs import egraph

from esat.errors import CompileError
from esat.extract.choice.choose import choose
from esat.extract.verify import topological_classes, verify_selection

NODES = [("In", (0,), (), 0), ("A", (), (0,), 1), ("B", (), (2,), 1), ("C", (), (1,), 2), ("D", (), (0,), 3)]
ARRAYS = egraph(NODES, 4)
COSTS = np.ones(5)
GOOD = choose(ARRAYS, COSTS, [2])
NODE = {ARRAYS.operator_of(node): node for node in range(5)}


def test_a_good_selection_passes_in_order() -> None:
    verify_selection(ARRAYS, COSTS, [2], GOOD)
    assert topological_classes(ARRAYS, GOOD.chosen, [2]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ([0, NODE["A"], -1, -1], "class 2 is needed and nothing was chosen"),
        ([0, -1, NODE["C"], -1], "class 1 is needed and nothing was chosen"),
        ([0, NODE["B"], NODE["C"], -1], "depends on itself"),
        ([0, NODE["C"], NODE["C"], -1], "an e-node of another class"),
        ([0, NODE["A"], NODE["C"], NODE["D"]], "1 classes were chosen that no root needs"),
        ([0, NODE["A"], NODE["C"]], "a selection of shape"),
        ([0, NODE["A"], 17, -1], "does not exist"),
    ],
)
def test_bad_choices(chosen: list[int], reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        verify_selection(ARRAYS, COSTS, [2], replace(GOOD, chosen=np.array(chosen)))


def test_bad_figures() -> None:
    with pytest.raises(CompileError, match="as stated"):
        verify_selection(ARRAYS, COSTS, [2], replace(GOOD, cost=1.0, lower_bound=0.0))
    with pytest.raises(CompileError, match="the bound"):
        verify_selection(ARRAYS, COSTS, [2], replace(GOOD, lower_bound=4.0))
