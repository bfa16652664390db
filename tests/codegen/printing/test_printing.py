"""Source of kernels: collapsed loops, layouts, comments."""

import numpy as np
import pytest
from codegen.kernel_cases import check, group_of, op, variable
from codegen.targets import HOST

from esat.codegen import layout_of, lower, print_kernel, verify
from esat.codegen.kernel.access import read_by_elements
from esat.codegen.kernel.collapse import collapse
from esat.graph import Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.reduction import ARGMAX, MAX, SUM, reduce


def loops(output: Variable, inputs: list[Variable], layout: str = "C") -> int:
    """Loops of the source, those over blocks counted too."""
    return print_kernel(lower(group_of([output], inputs)), HOST, layout).count("for ")


def test_contiguous_axes_run_in_one_loop() -> None:
    x, y = variable("float64", None, None, None), variable("float64", None, None, None)
    product = op("mul", x, y)
    assert loops(product, [x, y]) == 1
    assert loops(product, [x, y], "A") == 3
    row = variable("float64", None)
    assert loops(op("mul", product, row), [x, y, row]) == 2
    assert loops(reduce(MAX, x, (1, 2)), [x]) == 2
    assert loops(reduce(MAX, x), [x]) == 1


def test_axes_of_size_one_have_no_loop() -> None:
    x, y = variable("float64", None, 1, None), variable("float64", None, 1, None)
    assert loops(op("add", x, y), [x, y]) == 1


def test_transposed_axes_stay_apart() -> None:
    x = variable("float64", None, None)
    assert loops(op("add", x, dimshuffle(x, (1, 0))), [x]) == 2


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1), (0, 2), None])
def test_collapsed_kernels_are_well_formed(axis: object) -> None:
    x, row = variable("float64", None, None, None), variable("float64", 1, None, 1)
    y = op("mul", op("add", x, row), 2.0)
    outputs = [reduce(SUM, y, axis), y]
    kernel = collapse(lower(group_of(outputs, [x, row])))
    verify(kernel)
    rng = np.random.default_rng(0)
    check(outputs, [x, row], [rng.random((3, 4, 5)), rng.random((1, 4, 1))], rtol=1e-11)


def test_layouts() -> None:
    whole = np.zeros((4, 6))
    assert layout_of([whole, np.zeros(())], {0, 1}) == "C"
    assert layout_of([whole, whole[:, :3]], {0, 1}) == "R"
    assert layout_of([whole[:, :1]], {0}) == "R"
    assert layout_of([whole[::-1]], {0}) == "R"
    assert layout_of([whole[:, ::2], whole], {0, 1}) == "A"
    assert layout_of([whole.T], {0}) == "A"
    assert layout_of([np.zeros(6)[::-1]], {0}) == "A"
    assert layout_of([whole, whole[:, 0]], {0}) == "R"


def test_numbers_of_rows_may_lie_anywhere() -> None:
    """What is read once a row may have any strides: rows beside it are read along memory still."""
    x, column, row = (
        variable("float64", None, None),
        variable("float64", None, 1),
        variable("float64", 1, None),
    )
    scaled = op("add", op("mul", x, column), row)
    group = group_of([reduce(SUM, op("exp", scaled), 1), scaled], [x, column, row])
    kernel = lower(group)
    passed = [group.inputs[place] for place in kernel.operands]
    assert [passed[place] for place in sorted(read_by_elements(kernel))] == [x, row]
    data = np.random.default_rng(4).random((7, 12))
    columns = (data[:, 5:6], data[::-1, 2:3], np.asfortranarray(data)[:, 3:4], data.T[:7, :1])
    for one in (*columns, data[:, 0:1].copy()):
        check([*group.outputs], [x, column, row], [data[:, :9], one, data[:1, :9]])
        check([*group.outputs], [x, column, row], [data[:, ::2], one, data[:1, ::2]])


def test_comments_name_the_graph() -> None:
    x = variable("float64", None)
    x.name = "energy"
    kernel = lower(group_of([reduce(ARGMAX, op("exp", x))], [x]))
    assert "# energy" in print_kernel(kernel, HOST)
    assert "#" not in print_kernel(kernel, HOST, comments=False)
