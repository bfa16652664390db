"""What runs, as text: each step names what it calls, and generated code is printed."""

import numpy as np
import pytest
from native_calls import way_of

import esat
from esat.codegen.ground.draws import DrawLine, IntegersLine
from esat.codegen.ground.lines import RunningLine, SortedSearch, StableSort
from esat.codegen.ground.machine_text import HostFunction
from esat.codegen.ground.scipy_functions import PolygammaFunction
from esat.codegen.matmul.looped_systems import LoopedSystem
from esat.codegen.matmul.unrolled_products import UnrolledProduct
from esat.codegen.matmul.unrolled_systems import UnrolledSystem
from esat.codegen.small_loops.scalar_loops import ScalarLoop
from esat.runtime.native import direct

A, B = esat.matrix("a"), esat.matrix("b")
X = esat.vector("x")


def definite(order, *batch):
    return np.broadcast_to(np.eye(order) + 1.0, (*batch, order, order)).copy()


def frequent(inputs, outputs, *arrays):
    """A program whose calls of these arrays are native."""
    function = esat.compile(esat.Graph(inputs, outputs))
    for _ in range(direct.CALLS + 1):
        function(*arrays)
    assert way_of(function) in ("native", "native with shared", "chosen")
    return function


def steps_of(text):
    """The lines of a native function."""
    (found,) = [part for part in text.split("\n\n") if part.lstrip().startswith("# native_")]
    return found.strip().splitlines()


def test_a_driver_that_was_never_called_names_the_methods_it_calls():
    text = esat.compile(esat.Graph([A], esat.linalg.cholesky(A))).source()
    assert "perform_0: esat.ops.linalg.factor.Cholesky.perform" in text
    assert "function_" not in text
    assert "native_" not in text


def test_code_for_small_matrices_is_printed_before_and_after_calls_are_native():
    function = esat.compile(esat.Graph([A], esat.linalg.cholesky(A)))
    function(definite(5))
    code = UnrolledSystem("cholesky", "float64", 5, 0, ((5, 1), (5, 1))).text()
    text = function.source()
    assert "# perform_0: esat.ops.linalg.factor.Cholesky.perform\n" in text
    assert "#     for (5, 5) in C order: function_0\n" in text
    assert code in text
    for _ in range(direct.CALLS):
        function(definite(5))
    text = function.source()
    assert "function_0(a, out_0, 1, 0, 0)  # or the driver's steps" in steps_of(text)
    assert text.count(code) == 1


def test_steps_of_native_functions_name_kernels_blas_views_and_constants():
    weights = np.arange(1600.0).reshape(40, 40)
    outputs = [esat.tanh(A @ weights).T @ B, esat.linalg.solve(B + 9.0 * np.eye(40), A)]
    function = frequent([A, B], outputs, definite(40), definite(40))
    lines = steps_of(function.source())
    assert lines[:2] == ["# native_0", "# for a float64(40, 40), b float64(40, 40)"]
    text = "\n".join(lines)
    assert "scipy.dgemm('N', 'N', 40, 40, 40, 1.0, constant_" in text
    assert "constant_" in lines[2]
    assert "# float64(40, 40)" in lines[2]
    assert "view: dimshuffle" in text
    assert "dgesv(" in text
    kernels = [line for line in lines if line.startswith("kernel_")]
    assert kernels
    assert all(f"\n# {line.partition('(')[0]}\n" in function.source() for line in kernels)


def test_variants_of_kernels_that_run_are_printed():
    text = frequent([A], [A[::2, ::2] + A[1::2, ::-2]], definite(6)).source()
    (call,) = [line for line in steps_of(text) if line.startswith("kernel_")]
    name = call.partition("(")[0]
    assert name.endswith("_variant_0")
    assert "a by (" in call
    assert f"\n\n# {name}\ndef kernel(" in text


def test_loops_conditions_and_shared_variables_are_shown():
    stack = esat.tensor("s", shape=(None, None, None), dtype="float64")
    text = frequent([stack], [esat.linalg.inv(stack)], definite(40, 3)).source()
    assert "for index in ndindex(3,):" in text
    w = esat.shared(np.ones((4, 4)), name="w")
    chooses = esat.scalar("chooses", dtype="bool")
    lazy = esat.ifelse(chooses, esat.exp(X @ w), X)
    lines = steps_of(frequent([chooses, X], [lazy], np.bool_(True), np.ones(4)).source())
    assert lines[1] == "# for chooses bool(), x float64(4,), w float64(4, 4)"
    assert "if chooses:\n    function_0(x, w, scratch_0, 1, 0, 0)" in "\n".join(lines)


@pytest.mark.parametrize(
    "function",
    [
        UnrolledProduct("float64", (3, 3, 3), (3, 1), (3, 1)),
        UnrolledSystem("det", "float32", 3, 0, ((3, 1), (1, 1))),
        LoopedSystem("solve", "float64", 12, 1, ((12, 1), (1, 1), (1, 1))),
        RunningLine("cumsum", "float64"),
        SortedSearch("left", "float64"),
        DrawLine("normal"),
        IntegersLine(),
        PolygammaFunction(),
        ScalarLoop(("define i32 @run(i64 %steps) {", "  ret i32 0", "}")),
    ],
    ids=lambda function: type(function).__name__,
)
def test_every_generated_function_has_a_text(function):
    assert " @run(" in function.text()
    assert set(HostFunction.__subclasses__()) == {
        *(UnrolledProduct, UnrolledSystem, LoopedSystem, RunningLine, SortedSearch, DrawLine, IntegersLine),
        PolygammaFunction,
        ScalarLoop,
        StableSort,  # NumPy's
    }
