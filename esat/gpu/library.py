"""Which ops that are no generated kernels have a form on a device: cupy's functions, cuBLAS, cuSOLVER.

An op without an entry in :data:`FORMS` runs on the host; its record says why (``host_only``).
float32 products are computed in full float32: cupy's default, unlike that of other libraries.
"""

from __future__ import annotations

from collections.abc import Mapping

from esat.gpu.device import Device
from esat.gpu.forms.algebra import ALGEBRA
from esat.gpu.forms.form import DeviceForm, Former
from esat.gpu.forms.parts import PARTS
from esat.gpu.forms.plain import PLAIN
from esat.gpu.forms.shapes import SHAPES
from esat.graph import Apply, TensorType
from esat.graph.op import Op


def device_form(node: Apply, device: Device) -> DeviceForm | None:
    """What runs a node on a device; None where it must run on the host."""
    arrays = [variable.type for variable in (*node.inputs, *node.outputs)]
    if not all(isinstance(type, TensorType) for type in arrays):
        return None
    former = None if node.op.host_only else former_of(type(node.op))
    return None if former is None else former(node.op, device, node)


def former_of(kind: type[Op]) -> Former | None:
    """What makes the forms of nodes of such ops; None where no device has one."""
    for base in kind.__mro__:
        if base in FORMS:
            return FORMS[base]
        if vars(base).get("host_only"):  # what it extends computes something else
            return None
    return None


FORMS: Mapping[type[Op], Former] = {**PLAIN, **SHAPES, **PARTS, **ALGEBRA}
"""Kind of op -> what makes the forms of its nodes. A kind that is not here takes that of its base."""
