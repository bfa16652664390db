"""Which ops that are no generated kernels have a form on a device: cupy's functions, cuBLAS, cuSOLVER.

Every op has an entry, in :data:`FORMS` or in :data:`HOST_ONLY` with the reason why it runs on the host.
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
from esat.ops.control import IfElse
from esat.ops.creation import ARange
from esat.ops.linalg.factor import LU
from esat.ops.linalg.functions import BlockDiagonal, Exponential
from esat.ops.linalg.inverse import Cofactors, PseudoInverse
from esat.ops.linalg.row_blocks import RowBlocks
from esat.ops.linalg.rows_product import RowsProduct
from esat.ops.random.variable import RandomVariable
from esat.ops.repeat import RepeatedPlaces
from esat.ops.shape import ShapeI
from esat.ops.sparse.record import SparseOp


def device_form(node: Apply, device: Device) -> DeviceForm | None:
    """What runs a node on a device; None where it must run on the host."""
    arrays = [variable.type for variable in (*node.inputs, *node.outputs)]
    if not all(isinstance(type, TensorType) for type in arrays):
        return None
    for kind in type(node.op).__mro__:
        if kind in HOST_ONLY:
            return None
        former = FORMS.get(kind)
        if former is not None:
            return former(node.op, device, node)
    return None


def reason_on_host(op: Op) -> str | None:
    """Why an op has no form on a device at all; None for one that has."""
    for kind in type(op).__mro__:
        if kind in FORMS:
            return None
        if kind in HOST_ONLY:
            return HOST_ONLY[kind]
    return "it is not known to the device"


FORMS: Mapping[type[Op], Former] = {**PLAIN, **SHAPES, **PARTS, **ALGEBRA}
"""Kind of op -> what makes the forms of its nodes. A kind that is not here takes that of its base."""

HOST_ONLY: Mapping[type[Op], str] = {
    ARange: "numbers that the host counts up, as NumPy rounds them",
    ShapeI: "a size, which the host knows",
    IfElse: "the host chooses; the values that it chooses between stay where they are",
    RepeatedPlaces: "its counts tell the size of the result, and the host needs that",
    LU: "cuSOLVER's factors are packed with pivots",
    PseudoInverse: "cuSOLVER has none, and cupy's takes other bounds",
    Cofactors: "a rare function of small matrices",
    Exponential: "a rare function of small matrices",
    BlockDiagonal: "a rare function of small matrices",
    RowsProduct: "an order of work for the caches of a processor",
    RowBlocks: "an order of work for the caches of a processor",
    RandomVariable: "states of random generators are the host's",
    SparseOp: "sparse matrices are SciPy's",
}
"""Kind of op -> why it runs on the host."""
