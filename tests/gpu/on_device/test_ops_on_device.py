"""Every op that kernels compute, over its dtypes and the values that matter, on the device against NumPy."""

import numpy as np
import pytest
from codegen.kernel_cases import group_of, reference
from gpu.printed import run
from ops.elementwise.samples import DTYPES, all_ops, variable
from ops.elementwise.test_values import grid

from esat.codegen import lower, supported
from esat.errors import EsatError
from esat.gpu.printing import UnprintableError

TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-11}


@all_ops
def test_special_values_of_an_op(op) -> None:
    wrong, taken = [], []
    for dtype in DTYPES:
        operands = [np.ascontiguousarray(one) for one in grid(op, dtype)]
        inputs = [variable(array) for array in operands]
        try:
            output = op(*inputs)
        except EsatError:
            continue
        group = group_of([output], inputs)
        if not all(supported(node) for node in group.nodes):
            continue
        kernel = lower(group)
        values = dict(zip(inputs, operands, strict=True))
        with np.errstate(all="ignore"):
            (wanted,) = reference(group, values)
        got = np.full(wanted.shape, 99, wanted.dtype)
        try:
            run(kernel, [got], [values[group.inputs[place]] for place in kernel.operands], None)
        except UnprintableError:
            continue
        taken.append(dtype)
        wrong += _differences(op.name, dtype, got, wanted, operands)
    assert not wrong, "\n".join(wrong)
    if not taken:
        pytest.skip("runs on the host in all dtypes")


def _differences(name: str, dtype: str, got: np.ndarray, wanted: np.ndarray, operands) -> list[str]:
    """Where results are not what NumPy says, a line for the first of them."""
    if wanted.dtype.kind != "f":
        differ = got != wanted
    else:
        tolerance = TOLERANCE[wanted.dtype.name]
        with np.errstate(all="ignore"):
            near = np.abs(got.astype("f8") - wanted.astype("f8")) <= tolerance * np.abs(wanted.astype("f8"))
        smallest = 4 * np.finfo(wanted.dtype).tiny
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        if name == "expdiff":  # where NumPy's exponentials both overflow, one may still be the larger
            first, second = operands
            larger = np.where(first > second, np.inf, -np.inf)
            same |= np.isnan(wanted) & (got == larger) & (first != second)
        differ = ~(same | near | ((np.abs(got) < smallest) & (np.abs(wanted) < smallest)))
    if not differ.any():
        return []
    place = tuple(axis[0] for axis in np.nonzero(differ)) if differ.ndim else ()
    given = [np.broadcast_to(one, wanted.shape)[place] for one in operands]
    count = int(differ.sum())
    return [
        f"{name} of {dtype}: {count} of {wanted.size}, such as {given} -> {got[place]} for {wanted[place]}"
    ]
