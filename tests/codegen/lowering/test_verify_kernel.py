"""Malformed kernels are refused, each for its own reason."""

from dataclasses import replace

import pytest

from esat.codegen import Kernel, verify
from esat.codegen.kernel.loop_ir import Accumulator, Array, Axis, Compute, Load, Loop, Store, Tile, Update
from esat.errors import CompileError

VECTOR = Array("float64", 1, ((0,),))
SCALAR = Array("float64", 0, ())
LOAD = Load(0, 1, (0,))
SQUARE = Compute(1, "float64", "{0} * {0}", "float64", (0,))
STORE = Store(0, (0,), 1)
ELEMENTWISE = Kernel((VECTOR,), (VECTOR,), (Axis(((0, 0),)),), (Loop((0,), (LOAD, SQUARE, STORE)),))
TOTAL = Accumulator(2, "sum", "float64", "float64(0.0)")
SMALL_TOTAL = replace(TOTAL, dtype="float32")
SUM_LOOP = Loop((0,), (LOAD, Update(2, 0)), (TOTAL,))
SUM = Kernel((SCALAR,), (VECTOR,), (Axis(((1, 0),)),), (SUM_LOOP, Store(0, (), 2)))
MATRIX = Array("float64", 2, ((0,), (1,)))
MATRIX_BODY = (Load(0, 1, (0, 1)), SQUARE, Store(0, (0, 1), 1))
TWO_AXES = Kernel((MATRIX,), (MATRIX,), (Axis(((0, 0),)), Axis(((0, 1),))), (Loop((0, 1), MATRIX_BODY),))
THREE_AXES = replace(TWO_AXES, axes=(*TWO_AXES.axes, Axis(((1, 0),))))


def with_loop(*body: object) -> Kernel:
    return replace(ELEMENTWISE, body=(Loop((0,), body),))


def test_well_formed_kernels_pass() -> None:
    verify(ELEMENTWISE)
    verify(SUM)
    verify(TWO_AXES)
    verify(replace(TWO_AXES, body=(Tile(1, (Loop((0,), MATRIX_BODY),)),)))


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (with_loop(SQUARE, LOAD, STORE), "before it is defined"),
        (with_loop(LOAD, SQUARE), "not stored"),
        (with_loop(LOAD, SQUARE, replace(STORE, kept=True)), "not stored"),
        (with_loop(LOAD, SQUARE, STORE, Load(2, 0, (0,))), "which holds 1"),
        (replace(ELEMENTWISE, body=(LOAD, SQUARE, STORE)), "inside loops over"),
        (with_loop(replace(LOAD, index=(None, 0)), SQUARE, STORE), "index"),
        (with_loop(LOAD, replace(SQUARE, template="{0} * {1}"), STORE), "operands"),
        (with_loop(LOAD, replace(SQUARE, template="unheard_of({0})"), STORE), "no meaning"),
        (with_loop(LOAD, replace(SQUARE, dtype="float32"), STORE), "stored as"),
        (with_loop(LOAD, replace(SQUARE, operand_dtype="int64"), STORE), "for int64"),
        (with_loop(LOAD, SQUARE, STORE, replace(STORE, array=1)), "is an input"),
        (with_loop(Loop((0,), (LOAD, SQUARE, STORE))), "a loop over axes"),
        (replace(ELEMENTWISE, body=(Loop((), (LOAD,)),)), "no axes"),
        (replace(ELEMENTWISE, axes=(Axis(()),)), "no size"),
        (replace(ELEMENTWISE, axes=(Axis(((1, 3),)),)), "takes its size"),
        (replace(ELEMENTWISE, inputs=(replace(VECTOR, dtype="float16"),)), "float16"),
        (replace(SUM, body=(replace(SUM_LOOP, body=(LOAD,)), SUM.body[1])), "updated by"),
        (
            replace(SUM, body=(replace(SUM_LOOP, accumulators=()), SUM.body[1])),
            "updated by|no accumulator",
        ),
        (replace(SUM, body=(Store(0, (), 2), SUM_LOOP)), "before it is defined"),
        (
            replace(
                SUM, body=(replace(SUM_LOOP, accumulators=(replace(TOTAL, dtype="float32"),)), SUM.body[1])
            ),
            "gathered as",
        ),
        (replace(TWO_AXES, body=(Tile(1, (Tile(0, MATRIX_BODY),)),)), "tile inside a tile"),
        (replace(THREE_AXES, body=(Tile(2, (Loop((0,), (Loop((1,), (LOAD,)),)),)),)), "loops inside a loop"),
    ],
)
def test_malformed_kernels_are_refused(kernel: Kernel, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        verify(kernel)
