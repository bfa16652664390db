"""Groups as kernels, run on arrays and compared with the ops' own NumPy functions."""

from collections.abc import Sequence

import numpy as np
from codegen.targets import HOST

from esat.codegen import can_fuse, compile_kernel, layout_of, lower, supported
from esat.codegen.kernel.access import read_by_elements
from esat.graph import Constant, FunctionGraph, TensorType, Variable
from esat.graph.registry import op_named
from esat.ops.table import register_all
from esat.phases.fusing.group import Group

register_all()


def variable(dtype: str, *shape: int | None) -> Variable:
    return TensorType(dtype, shape=shape)(f"{dtype}_{len(shape)}")


def op(name: str, *operands: object) -> Variable:
    return op_named(name)(*operands)


def group_of(outputs: Sequence[Variable], inputs: Sequence[Variable]) -> Group:
    nodes = FunctionGraph(list(inputs), list(outputs), clone=False).toposort()
    computed = {output for node in nodes for output in node.outputs}
    read = dict.fromkeys(v for node in nodes for v in node.inputs if v not in computed)
    return Group("kernel", tuple(nodes), tuple(read), tuple(outputs))


def reference(group: Group, values: dict[Variable, np.ndarray]) -> list[np.ndarray]:
    known = dict(values)
    for node in group.nodes:
        operands = [v.data if isinstance(v, Constant) else known[v] for v in node.inputs]
        known.update(zip(node.outputs, node.op.perform(operands), strict=True))
    return [known[output] for output in group.outputs]


def run(group: Group, values: dict[Variable, np.ndarray], layout: str | None = None) -> list[np.ndarray]:
    """What the compiled kernel of the group writes into outputs of the reference's shapes."""
    kernel = lower(group)
    passed = [group.inputs[place] for place in kernel.operands]
    arrays = [v.data if isinstance(v, Constant) else values[v] for v in passed]
    if layout is None:
        layout = layout_of(arrays, read_by_elements(kernel))
    # Filled with what no kernel should leave behind.
    outputs = [np.full(wanted.shape, 99, wanted.dtype) for wanted in reference(group, values)]
    compile_kernel(kernel, HOST, layout)(*outputs, *arrays)
    return outputs


def check(
    outputs: Sequence[Variable],
    inputs: Sequence[Variable],
    data: Sequence[np.ndarray],
    rtol: float = 1e-12,
    atol: float = 0.0,
    layout: str | None = None,
) -> None:
    group = group_of(outputs, inputs)
    assert all(supported(node) for node in group.nodes)
    assert can_fuse(group.nodes)
    values = dict(zip(inputs, data, strict=True))
    for output, got, wanted in zip(
        outputs, run(group, values, layout), reference(group, values), strict=True
    ):
        assert got.dtype == wanted.dtype == output.tensor_type.numpy_dtype
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol, err_msg=str(output.owner))
        else:
            np.testing.assert_array_equal(got, wanted, err_msg=str(output.owner))
