"""What runs a node on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from esat.base.records import record
from esat.gpu.device import Device
from esat.graph import Apply

Compute: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]
"""Called with the operands, returns one value an output."""


@record(frozen=True, eq=False)
class DeviceForm:
    """What runs a node on a device.

    Attributes
    ----------
    compute
        Gives arrays of the device, from such arrays and from the operands that it reads on the host.
    on_host
        Positions of these.
    is_recordable
        Whether it does nothing but launches: it neither waits nor looks at values, so graphs can hold it.
    """

    compute: Compute
    on_host: frozenset[int] = frozenset()
    is_recordable: bool = True


Former: TypeAlias = Callable[[Any, Device, Apply], DeviceForm | None]
"""Makes the form of a node of one kind of op; None for dtypes that the device's libraries do not have."""


def from_place(first: int, node: Apply) -> frozenset[int]:
    """Positions of operands from one on."""
    return frozenset(range(first, len(node.inputs)))
