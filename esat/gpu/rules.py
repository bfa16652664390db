"""Which nodes a kernel for a device may compute together."""

from __future__ import annotations

from collections.abc import Sequence

from esat import codegen
from esat.base.records import record
from esat.codegen.lowering.axes import name_axes
from esat.codegen.lowering.loop_order import reduced_axes
from esat.gpu.kernel_text.templates import is_fillable
from esat.graph import Apply, Family
from esat.ops.elementwise.records.code import CODE_DTYPES
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.reduction import Reduction
from esat.phases.fusing.fusion import Limits


@record(frozen=True)
class DeviceRules:
    """The rules of :func:`esat.phases.fusing.fusion.fuse` for a device.

    Attributes
    ----------
    limits
        How large kernels may become. Of 255 registers of a thread each array that is read or written takes
        four; constants are counted, too, and take none.

    >>> from esat.phases.fusing.fusion import fuse
    >>> import esat
    >>> from esat.graph import FunctionGraph
    >>> x = esat.matrix("x")
    >>> graph = FunctionGraph([x], [(esat.exp(x) + 1).sum(axis=1)])
    >>> len(fuse(graph, DeviceRules()).groups)
    1
    """

    limits: Limits = Limits(nodes=1024, flops=4096.0, arrays=40)

    def supported(self, node: Apply) -> bool:
        """Whether the node can be part of a kernel: its op has kernel code that has a form for a device."""
        if not codegen.supported(node) or node.op.family is Family.INDEX:
            return False  # parts that index arrays choose are read by the device's library
        if any(one.tensor_type.dtype not in CODE_DTYPES for one in (*node.inputs, *node.outputs)):
            return False  # complex numbers have no templates
        dtype = node.inputs[-1].tensor_type.dtype
        if isinstance(node.op, Elementwise):
            template = node.op.source(dtype)
            # Powers without a template are products.
            return template is None or is_fillable(template, dtype)
        if isinstance(node.op, Reduction) and node.op.reducer.combine is not None:
            return is_fillable(node.op.reducer.combine, dtype)
        return True

    def can_fuse(self, nodes: Sequence[Apply]) -> bool:
        """Whether these nodes, in topological order, can be one kernel.

        On the host, a loop over rows may sum each row and gather over all of them, too. On a device rows are
        shared among threads, and what gathers over them is a kernel of its own.
        """
        return codegen.can_fuse(nodes) and not _gathers_twice(nodes)


def _gathers_twice(nodes: Sequence[Apply]) -> bool:
    """Whether one node reduces along an axis that another one's result has."""
    if sum(bool(reduced_axes(node)) for node in nodes) < 2:
        return False
    names = name_axes(nodes)
    bound: set[int] = set()
    kept: set[int] = set()
    for position, node in enumerate(nodes):
        if reduced_axes(node):
            operand = names.operand(node, (position, 0))
            reduced = {operand[axis] for axis in reduced_axes(node)} - {None}
            bound |= {axis for axis in reduced if axis is not None}
            kept |= {axis for axis in operand if axis is not None and axis not in reduced}
    return not bound.isdisjoint(kept)
