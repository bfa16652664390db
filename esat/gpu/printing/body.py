"""What a thread does with the elements it has: places in memory, definitions, stores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from esat.codegen.kernel.loop_ir import (
    Check,
    Compute,
    Convert,
    Definition,
    Index,
    Kernel,
    Literal,
    Load,
    Loop,
    Scatter,
    Statement,
    Store,
    Tile,
    Update,
    operands_of,
    walk,
)
from esat.gpu.kernel_text.launches import VECTOR_BYTES, Argument, Launch, Workspace
from esat.gpu.kernel_text.templates import converted, fill
from esat.gpu.printing.source import DeviceSource, UnprintableError, from_memory, to_memory

Position = dict[int, str]
"""Axis -> text of the place along it."""


class Body:
    """The text of one launch, and what families share to write it.

    A thread takes ``lanes`` neighbours along the lane axis at a time: ``b3`` holds what was loaded for value
    3, ``c0`` what will be stored to output 0, and a loop over the lanes of a constant count runs the body;
    NVVM unrolls it and keeps such arrays in registers. (Text unrolled by the printer gives the same code, but
    numba takes seven times as long.)

    Parameters
    ----------
    kernel
        The kernel, collapsed unless inputs have strides.
    lane_axis
        The axis along which neighbours are taken; None for single elements.
    lanes
        How many.
    strided
        Whether inputs come with strides.
    """

    def __init__(self, kernel: Kernel, lane_axis: int | None, lanes: int, strided: bool) -> None:
        self.kernel = kernel
        self.lane_axis = lane_axis
        self.lanes = lanes
        self.strided = strided
        self.source = DeviceSource()
        self.varying = varying_with(kernel, lane_axis)
        self.dtypes = dtypes_of(kernel)
        self.kept_lanes: set[int] = set()
        """Values that are defined outside of loops over lanes, and differ from lane to lane."""

    # ---- names and places

    def array(self, number: int) -> str:
        """The name of an array."""
        outputs = len(self.kernel.outputs)
        return f"o{number}" if number < outputs else f"x{number - outputs}"

    def value(self, number: int) -> str:
        """The text by which a value is read."""
        if number in self.kept_lanes:
            return from_memory(f"v{number}[lane]", self.dtypes[number])
        return f"v{number}"

    def keep_lanes(self, values: Iterable[int]) -> None:
        """Hold values apart for each lane from here on."""
        if self.lanes == 1:
            return
        for value in values:
            if value in self.varying:
                self.kept_lanes.add(value)
                self.source.local(f"v{value}", self.lanes, self.dtypes[value])

    def define(self, number: int, text: str) -> None:
        """The line that gives a value."""
        if number in self.kept_lanes:
            self.source.line(f"v{number}[lane] = {to_memory(text, self.dtypes[number])}")
        else:
            self.source.line(f"v{number} = {text}")

    def offset(self, array: int, index: Index, position: Mapping[int, str]) -> str:
        """The number of an element from the beginning of its array."""
        if self.strided and array >= len(self.kernel.outputs):
            return self._strided_offset(array, index, position)
        text = ""
        for axis in index:
            if axis is not None:
                text = position[axis] if not text else f"({text}) * n{axis} + {position[axis]}"
        return text or "0"

    def _strided_offset(self, array: int, index: Index, position: Mapping[int, str]) -> str:
        number, groups = array - len(self.kernel.outputs), self.kernel.arrays[array].groups
        terms = [
            f"{position[axis]} * s{number}_{group[-1]}"
            for axis, group in zip(index, groups, strict=True)
            if axis is not None
        ]
        return " + ".join(terms) or "0"

    def element(self, array: int, index: Index, position: Mapping[int, str]) -> str:
        """The text of an element in memory."""
        return f"{self.array(array)}[{self.offset(array, index, position)}]"

    def is_vector(self, one: Load | Store) -> bool:
        """Whether its elements lie side by side along the lane axis."""
        return is_along(self.kernel, one, self.lane_axis, self.strided)

    # ---- statements

    def definition(self, one: Definition, position: Mapping[int, str]) -> None:
        """The lines that define a value."""
        temporaries = self.source.temporaries()
        lines: list[str] = []
        if isinstance(one, Load):
            dtype = self.kernel.arrays[one.array].dtype
            text = from_memory(self.element(one.array, one.index, position), dtype)
        elif isinstance(one, Literal):
            lines, text = fill(one.text, one.dtype, [], temporaries)
        elif isinstance(one, Convert):
            lines, text = converted(self.value(one.operand), one.operand_dtype, one.dtype, temporaries)
        elif isinstance(one, Compute):
            operands = [self.value(operand) for operand in one.operands]
            lines, text = fill(one.template, one.operand_dtype, operands, temporaries)
            text = wrapped(text, one.dtype)
        else:
            raise UnprintableError("parts that values choose are read by the device's library")
        for line in lines:
            self.source.line(line)
        self.define(one.value, text)

    def store(self, one: Store, position: Mapping[int, str]) -> None:
        """The line that stores a value."""
        value = to_memory(self.value(one.operand), self.kernel.arrays[one.array].dtype)
        self.source.line(f"{self.element(one.array, one.index, position)} = {value}")

    def uniform(self, statements: Iterable[Statement], position: Mapping[int, str]) -> None:
        """The definitions among statements that are the same in all lanes."""
        for one in definitions_in(statements):
            if one.value not in self.varying:
                self.definition(one, position)

    def elements(
        self,
        body: Sequence[Statement],
        position: Position,
        lanes: int,
        cached: Mapping[int, str] | None = None,
        kept: Mapping[int, str] | None = None,
    ) -> None:
        """Definitions and stores for ``lanes`` elements from the place along the lane axis on.

        Parameters
        ----------
        body
            Without loops. Updates are done by :meth:`update`.
        cached
            Loads by their value -> text of the element that a thread already holds, with ``lane`` in it.
        kept
            Arrays -> text of the place that holds what is stored to them, instead of memory.
        """
        cached, kept = cached or {}, kept or {}
        self.uniform(body, position)
        held = {**cached, **self._loaded(body, position, lanes, cached)}
        stored_later = [one for one in body if isinstance(one, Store) and one.array not in kept]
        stored_later = [one for one in stored_later if lanes > 1 and self.is_vector(one)]
        here = dict(position)
        if lanes > 1:
            assert self.lane_axis is not None
            here[self.lane_axis] = f"({position[self.lane_axis]} + lane)"
        with self.source.block_if(lanes > 1, f"for lane in range({lanes})"):
            for one in body:
                if isinstance(one, Update):
                    self.update(one, here)
                elif isinstance(one, Store):
                    self._store(one, here, stored_later, kept)
                elif isinstance(one, Scatter | Check | Loop | Tile) or one.value not in self.varying:
                    continue
                elif one.value in held:
                    dtype = self.dtypes[one.value]
                    self.define(one.value, from_memory(held[one.value], dtype))
                else:
                    self.definition(one, here)
        for one in stored_later:
            values = ", ".join(f"c{one.array}[{lane}]" for lane in range(lanes))
            place = self.offset(one.array, one.index, position)
            self.source.line(f"store{lanes}({self.array(one.array)}, {place}, ({values}))")

    def _loaded(
        self, body: Sequence[Statement], position: Position, lanes: int, cached: Mapping[int, str]
    ) -> dict[int, str]:
        """Load vectors; the text of the elements of each by the number of its value."""
        loads = [one for one in body if isinstance(one, Load) and one.value not in cached]
        held = {}
        for one in loads:
            if lanes > 1 and self.is_vector(one):
                name = self.source.local(f"b{one.value}", lanes, self.kernel.arrays[one.array].dtype)
                self.load_vector(name, "", one, position, lanes)
                held[one.value] = f"{name}[lane]"
        return held

    def load_vector(self, name: str, first: str, one: Load, position: Position, lanes: int) -> None:
        """The line that loads ``lanes`` neighbours into an array of the thread, from ``first`` on."""
        places = ", ".join(f"{name}[{first}{lane}]" for lane in range(lanes))
        place = self.offset(one.array, one.index, position)
        self.source.line(f"{places} = load{lanes}({self.array(one.array)}, {place})")

    def _store(self, one: Store, here: Position, later: Sequence[Store], kept: Mapping[int, str]) -> None:
        dtype = self.kernel.arrays[one.array].dtype
        value = to_memory(self.value(one.operand), dtype)
        if one.array in kept:
            self.source.line(f"{kept[one.array]} = {value}")
        elif one in later:
            self.source.local(f"c{one.array}", self.lanes, dtype)
            self.source.line(f"c{one.array}[lane] = {value}")
        else:
            self.store(one, here)

    def update(self, one: Update, position: Position) -> None:
        """One step of an accumulator; families that gather say how."""
        raise AssertionError(f"nothing gathers {one}")

    # ---- the function

    def units(self, axes: Sequence[int], lanes: int) -> str:
        """How many vectors of ``lanes`` there are in the places along axes, in text."""
        *rows, last = (f"n{axis}" for axis in axes)
        return " * ".join([*rows, f"({last} // {lanes})" if lanes > 1 else last])

    def split(self, axes: Sequence[int], number: str, lanes: int = 1) -> Position:
        """Name the places along axes that the number of a unit stands for, the last axis fastest."""
        source, position = self.source, {axis: f"i{axis}" for axis in axes}
        if not axes:
            return position
        if len(axes) == 1:
            source.line(f"i{axes[0]} = {number}" + (f" * {lanes}" if lanes > 1 else ""))
            return position
        rest = number
        for axis in reversed(axes[1:]):
            size = f"n{axis}"
            if axis == axes[-1] and lanes > 1:
                source.line(f"chunks = n{axis} // {lanes}")
                size = "chunks"
            source.line(f"rest{axis} = int64(uint64({rest}) // uint64({size}))")
            source.line(
                f"i{axis} = ({rest} - rest{axis} * {size})" + (f" * {lanes}" if size == "chunks" else "")
            )
            rest = f"rest{axis}"
        source.line(f"i{axes[0]} = {rest}")
        return position

    def launch(self, family: str, block: int, grid: str, workspaces: Mapping[str, Workspace]) -> Launch:
        """The lines so far as one kernel that takes only what its text names."""
        body = self.source.body()
        names = [Argument(self.array(number), array.dtype) for number, array in enumerate(self.kernel.arrays)]
        names += [Argument(name, one.dtype) for name, one in workspaces.items()]
        names += [Argument(f"n{axis}") for axis in range(len(self.kernel.axes))]
        if self.strided:
            for number, array in enumerate(self.kernel.inputs):
                names += [Argument(f"s{number}_{axis}") for axis in range(array.rank)]
        used = set(re.findall(r"[A-Za-z_]\w*", body))
        arguments = tuple(one for one in names if one.name in used)
        head = f"def kernel({', '.join(one.name for one in arguments)}):"
        return Launch(family, f"{head}\n{body}\n", arguments, block, grid, self.lanes)


def wrapped(text: str, dtype: str) -> str:
    """An expression converted to the dtype of its result: numba computes with wide integers."""
    return f"{dtype}({text})" if "int" in dtype else text


def is_along(kernel: Kernel, one: Load | Store, axis: int | None, strided: bool = False) -> bool:
    """Whether elements that are neighbours along an axis lie side by side in memory."""
    if strided and one.array >= len(kernel.outputs):
        return False
    named = [place for place in one.index if place is not None]
    return bool(named) and named[-1] == axis


def lanes_along(kernel: Kernel, axis: int | None, strided: bool = False) -> int:
    """How many neighbours along an axis a thread takes: as many as the longest load has of the widest."""
    sizes = [
        np.dtype(kernel.arrays[one.array].dtype).itemsize
        for one in walk(kernel.body)
        if isinstance(one, Load | Store) and is_along(kernel, one, axis, strided)
    ]
    return VECTOR_BYTES // max(sizes, default=VECTOR_BYTES)


def varying_with(kernel: Kernel, axis: int | None) -> set[int]:
    """Values that differ from place to place along an axis; what is gathered along it does not."""
    gathered = {
        accumulator.value
        for one in walk(kernel.body)
        if isinstance(one, Loop) and axis in one.axes
        for accumulator in one.accumulators
    }
    varying: set[int] = set()
    for one in walk(kernel.body):
        if isinstance(one, Load) and axis in one.index:
            varying.add(one.value)
        elif isinstance(one, Update) and one.operand in varying:
            varying |= {one.accumulator} - gathered
        elif isinstance(one, Compute | Convert) and not varying.isdisjoint(operands_of(one)):
            varying.add(one.value)
    return varying


def definitions_in(statements: Iterable[Statement]) -> list[Definition]:
    """The definitions among statements, but for those in loops."""
    return [one for one in statements if isinstance(one, Load | Literal | Compute | Convert)]


def dtypes_of(kernel: Kernel) -> dict[int, str]:
    """The dtype of each value, by its number."""
    dtypes: dict[int, str] = {}
    for one in walk(kernel.body):
        if isinstance(one, Load):
            dtypes[one.value] = kernel.arrays[one.array].dtype
        elif isinstance(one, Literal | Compute | Convert):
            dtypes[one.value] = one.dtype
        elif isinstance(one, Loop):
            dtypes.update({part.value: part.result_dtype for part in one.accumulators})
    return dtypes
