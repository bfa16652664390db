"""What parts that index arrays choose cost: reads in kernels, writes as kernels."""

from dataclasses import replace

import esat
from esat import codegen
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.value import Value
from esat.graph import FunctionGraph
from esat.graph.types import DTYPE_NUMBER
from esat.phases.fusing.fusion import fuse
from esat.phases.fusing.price import plan_seconds

F64, I64, MASK, HALF, COMPLEX = (
    DTYPE_NUMBER[name] for name in ("float64", "int64", "bool", "float16", "complex128")
)
MODEL = CostModel(MachineProfile())
X, M, PLACES = esat.vector("x"), esat.matrix("m"), esat.lvector("i")
READ, ROWS = (variable[PLACES].owner.op for variable in (X, M))
ADD = X.at[PLACES].add(1.0).owner.op


def read(size: float, places: float, dtype: int = F64, index: int = I64) -> float | None:
    return MODEL.indexed(READ, [Value((size,), dtype), Value((places,), index)], Value((places,), dtype))


def test_reads_cost_by_places_and_by_how_far_memory_is() -> None:
    near, more, far = read(100.0, 1e4), read(100.0, 1e5), read(1e8, 1e4)
    assert near is not None
    assert more is not None
    assert far is not None
    assert 8.0 * near < more < 10.0 * near
    assert near < 0.7 * far
    rows = MODEL.indexed(ROWS, [Value((1e3, 64.0), F64), Value((1e4,), I64)], Value((1e4, 64.0), F64))
    assert rows is not None
    assert rows < 0.1 * 64.0 * near * 10.0


def test_adding_is_dearer_than_reading() -> None:
    operands = [Value((100.0,), F64), Value((1e4,), F64), Value((1e4,), I64)]
    adding, reading = MODEL.indexed(ADD, operands, operands[0]), read(100.0, 1e4)
    assert adding is not None
    assert reading is not None
    assert adding > reading


def test_what_no_kernel_reads_has_no_such_price() -> None:
    assert read(100.0, 1e4, index=MASK) is None
    assert read(100.0, 1e4, dtype=HALF) is None
    complex_operands = [Value((100.0,), COMPLEX), Value((1e4,), COMPLEX), Value((1e4,), I64)]
    assert MODEL.indexed(ADD, complex_operands, complex_operands[0]) is None
    on_device = CostModel(replace(MachineProfile(), gather_rate=0.0))
    operands = [Value((100.0,), F64), Value((10.0,), I64)]
    assert on_device.indexed(READ, operands, Value((10.0,), F64)) is None


def test_a_table_is_not_read_whole() -> None:
    table, places = esat.matrix("table", shape=(10**6, 8)), esat.vector("places", dtype="int64", shape=(100,))
    plan = fuse(FunctionGraph([table, places], [esat.exp(table[places])]), codegen)
    assert len(plan.groups) == 1
    assert plan_seconds(plan.groups, MODEL) < 1e-5
