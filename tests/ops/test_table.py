from esat.graph.op import Family
from esat.graph.registry import op_named, registered_ops
from esat.ops.table import OPS, OVER_AXES, register_all


def test_every_op_is_found_by_its_name_and_constructor():
    register_all()
    assert all(op_named(op.name) is op for op in OPS)
    constructors = [op.constructor for op in registered_ops()]
    assert len(set(constructors)) == len(constructors)


def test_ops_over_axes_are_represented():
    assert {op.constructor for op in OVER_AXES} >= {
        "ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceAny", "ReduceAll", "ArgMax", "ArgMin",
        "LogSumExp", "Softmax", "LogSoftmax",
    }  # fmt: skip
    assert op_named("matmul").family is Family.CONTRACTION
