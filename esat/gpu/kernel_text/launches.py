"""What a printed kernel is called with: data that launchers, the emulator and the cache read alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any

from esat.base.records import record
from esat.errors import CompileError

WARP = 32
"""Threads that run one instruction together."""
VECTOR_BYTES = 16
"""Bytes of the longest load and store of a thread."""
LANES = (2, 4, 8, 16)
"""Elements that vectors may have."""
DTYPES = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"
)  # fmt: skip
"""Of what kernels compute with."""
STORED_AS = MappingProxyType({"bool": "uint8", "float16": "uint16"})
"""Dtypes whose elements kernels see as those of another."""
MOST_BLOCKS = (2**31 - 1, 65_535)
"""Blocks that a grid may have along x, and along y or z."""


def evaluated(expression: str, sizes: Mapping[str, int]) -> Any:
    """The value of a grid or a number of elements, both written over names of sizes."""
    return eval(expression, {"__builtins__": {}, "min": min, "max": max}, dict(sizes))


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
        Number of blocks: a Python expression over the names of sizes, ``min`` and ``max``; or a tuple of up
        to three numbers, along x, y and z. Where there are none, nothing is launched.
    vector
        Elements that loads read at once; 1 where they read one by one.
    """

    family: str
    text: str
    arguments: tuple[Argument, ...]
    block: int
    grid: str
    vector: int = 1

    def blocks(self, sizes: Mapping[str, int]) -> tuple[int, int, int]:
        """Of the grid along x, y and z, for ``sizes`` by their names.

        Raises
        ------
        CompileError
            A grid that no device takes: more than 2**31 - 1 blocks along x, or 65,535 along y or z.

        >>> Launch("flat", "", (), 256, "(-(-n0 // 256), n1)").blocks({"n0": 1000, "n1": 3})
        (4, 3, 1)
        """
        value = evaluated(self.grid, sizes)
        given = value if isinstance(value, tuple) else (value,)
        x, y, z = (*given, 1, 1)[:3]
        if len(given) > 3 or x > MOST_BLOCKS[0] or max(y, z) > MOST_BLOCKS[1]:
            raise CompileError(f"kernel {self.family}: no device has a grid of {given} blocks")
        return (x, y, z)


@record(frozen=True)
class Workspace:
    """Memory that a kernel's launches share: elements of ``dtype``, as many as ``size`` (as a grid) says."""

    dtype: str
    size: str

    def elements(self, sizes: Mapping[str, int]) -> int:
        """Their number, for ``sizes`` by their names."""
        return int(evaluated(self.size, sizes))


@record(frozen=True)
class Launches:
    """The launches of one kernel of the loop IR, in order."""

    launches: tuple[Launch, ...]
    workspaces: Mapping[str, Workspace] = field(default_factory=dict)


@record(frozen=True)
class LaunchVariant:
    """What a text is printed for; everything else is known at run time only.

    Attributes
    ----------
    vector
        Whether the innermost axis is divisible by the vector and all addresses are aligned to its bytes.
    longest_row
        Elements up to which rows stay in registers: a size class, 0 where a kernel keeps no rows.
    strided
        Whether inputs come with strides; all are C-contiguous otherwise.
    threads_across
        Neighbouring threads that take neighbours of a row, where threads of a block have several rows: a
        power of two up to 256, for what gathers along columns up to a warp.
    split
        Whether blocks share what is gathered: the rows of few columns, or few rows that are long.
    """

    vector: bool = True
    longest_row: int = 0
    strided: bool = False
    threads_across: int = WARP
    split: bool = False
