from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from esat.errors import InputError, ShapeError
from esat.graph import TensorType, Variable
from esat.graph.op import Family, Op
from esat.graph.registry import op_named
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.view import reshape
from esat.ops.contraction import matmul
from esat.ops.reduction import MAX, SUM, reduce
from esat.runtime import Executable

Build = Callable[..., Executable]


def tensor(name: str | None, *shape: int | None, dtype: str = "float64") -> Variable:
    return TensorType(dtype, shape=shape)(name)


@pytest.mark.parametrize("given", [(), (1,), (1, 2, 3)], ids=str)
def test_a_wrong_number_of_arguments_lists_the_inputs(given: tuple[int, ...], compiled: Build) -> None:
    x, y = tensor("x"), tensor(None, 3)
    function = compiled([x, y], [x + y])
    with pytest.raises(InputError, match=rf"takes 2 inputs \(x, vector.*\), not {len(given)}"):
        function(*given)
    with pytest.raises(InputError, match="takes 0 inputs"):
        compiled([], [op_named("exp")(1.0)])(1)


def test_arguments_by_the_names_of_inputs(compiled: Build) -> None:
    x, y, unnamed = tensor("x"), tensor("y"), tensor(None)
    function = compiled([x, y], [x - y])
    assert function(5.0, y=2.0) == function(y=2.0, x=5.0) == 3.0
    out = np.zeros(())
    assert function(5.0, y=2.0, out=out) is out
    assert out == 3.0
    with pytest.raises(InputError, match="no input is called 'z'; the inputs are x, y"):
        function(1.0, z=2.0)
    with pytest.raises(InputError, match=r"input 0 \(x\) is given twice"):
        function(1.0, x=2.0)
    with pytest.raises(InputError, match=r"input 0 \(x\): no array is given"):
        function(y=2.0)
    with pytest.raises(InputError, match="no input is called 'x'; the inputs are without names"):
        compiled([unnamed], [unnamed])(x=1.0)
    twice = tensor("x")
    with pytest.raises(InputError, match="more than one input is called 'x'"):
        compiled([x, twice], [x - twice])(x=1.0)
    assert function(5.0, 3.0) == 2.0


BAD: dict[str, tuple[Any, str]] = {
    "dtype": (np.ones((2, 3), "complex64"), r"dtype complex64 and shape \(2, 3\).*without loss"),
    "lossy": (np.ones((2, 3), "float64"), "dtype float64.*without loss"),
    "rank": (np.ones(3, "float32"), r"shape \(3,\)"),
    "size": (np.ones((2, 4), "float32"), r"shape \(2, 4\)"),
    "text": ("abc", "'abc' of type str"),
    "ragged": ([[1.0], [1.0, 2.0]], "of type list"),
    "nothing": (None, "None of type NoneType"),
    "object": (object(), "of type object"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_argument_is_named_with_what_was_expected_and_what_came(case: str, compiled: Build) -> None:
    value, came = BAD[case]
    y, x = tensor("y", dtype="float32"), tensor("x", None, 3, dtype="float32")
    function = compiled([y, x], [x * y])
    with pytest.raises(InputError, match=rf"input 1 \(x\) takes a matrix\(float32.*not .*{came}"):
        function(np.float32(1.0), value)
    assert np.array_equal(function(2, np.array([[1, 2, 3]], "int16")), [[2, 4, 6]]), "still usable"


def test_python_numbers_fit_by_value_and_arrays_by_dtype(compiled: Build) -> None:
    n, x = tensor("n", dtype="int8"), tensor("x", None)
    assert compiled([n], [n + n])(3) == 6
    with pytest.raises(InputError):
        compiled([n], [n + n])(300)
    with pytest.raises(InputError):
        compiled([n], [n + n])(3.0)
    assert np.array_equal(compiled([x], [x * 2.0])(np.arange(3, dtype="int32")), [0.0, 2.0, 4.0])


def test_sizes_that_do_not_fit_are_found_before_any_step_runs(compiled: Build) -> None:
    ran: list[int] = []

    class Counting(Op):
        name, constructor, family, typing = "counting", "Counting", Family.LIBRARY, "same"

        def infer_types(self, inputs: Any) -> Any:
            return (inputs[0].type,)

        def perform(self, inputs: Any) -> Any:
            ran.append(1)
            return (inputs[0].copy(),)

    x, y = tensor("x", None, None), tensor("y", None, None)
    function = compiled([x, y], [matmul(Counting()(x), y) + y])
    good = np.ones((2, 2))
    function(good, good)
    for size, text in (((2, 3), "matmul"), ((3, 2), "add"), ((1, 2), "add.*broadcasts only if")):
        with pytest.raises(ShapeError, match=rf"{text}[\s\S]*test_errors.py"):
            function(np.ones(size), good)
    assert len(ran) == 1


def test_an_unknown_size_never_broadcasts(compiled: Build) -> None:
    x, y = tensor("x", None), tensor("y", None)
    with pytest.raises(ShapeError, match=r"add\(shape \(3,\), shape \(1,\)\)"):
        compiled([x, y], [x + y])(np.ones(3), np.ones(1))
    row = tensor("row", 1)
    assert np.array_equal(compiled([x, row], [x + row])(np.ones(3), np.ones(1)), np.full(3, 2.0))


def test_nothing_to_reduce_is_an_error_where_numpy_says_so(compiled: Build) -> None:
    x = tensor("x", None, None)
    with pytest.raises(ShapeError, match=r"max[\s\S]*nothing to reduce[\s\S]*test_errors.py"):
        compiled([x], [reduce(MAX, x, 0)])(np.ones((0, 3)))
    assert compiled([x], [reduce(MAX, x, 0)])(np.ones((3, 0))).shape == (0,)
    assert compiled([x], [reduce(SUM, x)])(np.ones((0, 3))) == 0.0


def test_an_error_inside_a_library_routine_names_the_op_and_the_line(compiled: Build) -> None:
    class Failing(Op):
        name, constructor, family, typing = "failing", "Failing", Family.LIBRARY, "same"

        def infer_types(self, inputs: Any) -> Any:
            return (inputs[0].type,)

        def perform(self, inputs: Any) -> Any:
            raise np.linalg.LinAlgError("singular matrix")

    x = tensor("x", None, None)
    function = compiled([x], [op_named("exp")(Failing()(x))])
    with pytest.raises(np.linalg.LinAlgError, match="singular") as caught:
        function(np.ones((2, 2)))
    assert "failing" in caught.value.__notes__[0]
    assert "test_errors.py" in caught.value.__notes__[0]


def test_a_reshape_that_does_not_fit_is_found_before_any_step_runs(compiled: Build) -> None:
    x, y = tensor("x", None, None), tensor("y", None)
    function = compiled([x, y], [op_named("exp")(reshape(x, (-1, size_of(y, 0))))])
    assert function(np.zeros((2, 6)), np.zeros(3)).shape == (4, 3)
    assert function(np.zeros((2, 0)), np.zeros(3)).shape == (0, 3)
    for length in (5, 0):
        with pytest.raises(ShapeError, match=r"reshape.*12 elements do not fit[\s\S]*test_errors.py"):
            function(np.zeros((2, 6)), np.zeros(length))
