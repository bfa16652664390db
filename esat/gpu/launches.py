"""What a printed kernel is called with: data that launchers, the emulator and the cache read alike."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from esat.records import record

WARP = 32
"""Threads that run one instruction together."""
VECTOR_BYTES = 16
"""Bytes of the longest load and store of a thread."""


@record(frozen=True)
class Argument:
    """A parameter of a kernel.

    Attributes
    ----------
    name
        ``o0`` the first output, ``x0`` the first input, ``w0`` a workspace; ``n0`` the size of an axis of the
        collapsed kernel, ``s0_1`` the stride of input 0 along its axis 1, in elements.
    dtype
        Of the elements that a pointer points to; empty for sizes and strides, which are ``int64``.
    """

    name: str
    dtype: str = ""


@record(frozen=True)
class Launch:
    """One kernel, and how it is started.

    Attributes
    ----------
    family
        What is parallel in it: ``flat``, ``rows``, ``full``, ``columns``, ``tiles``...
    text
        Source of one function ``kernel`` of pointers and ``int64`` numbers, for numba-cuda and the emulator.
    arguments
        In order.
    block
        Threads of a block.
    grid
        Number of blocks: a Python expression over the names of sizes, ``min`` and ``max``.
    vector
        Elements that loads read at once; 1 where they read one by one.
    """

    family: str
    text: str
    arguments: tuple[Argument, ...]
    block: int
    grid: str
    vector: int = 1


@record(frozen=True)
class Workspace:
    """Memory that a kernel's launches share: elements of ``dtype``, as many as ``size`` (as a grid) says."""

    dtype: str
    size: str


@record(frozen=True)
class Launches:
    """The launches of one kernel of the loop IR, in order."""

    launches: tuple[Launch, ...]
    workspaces: Mapping[str, Workspace] = MappingProxyType({})


@record(frozen=True)
class Variant:
    """What a text is printed for; everything else is known at run time only.

    Attributes
    ----------
    vector
        Whether the innermost axis is divisible by the vector and all addresses are aligned to its bytes.
    longest_row
        Elements up to which rows stay in registers: a size class, 0 where a kernel keeps no rows.
    strided
        Whether inputs come with strides; all are C-contiguous otherwise.
    """

    vector: bool = True
    longest_row: int = 0
    strided: bool = False
