"""Accumulators: started, taken into, and combined between threads in an order that sizes alone decide."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from esat.codegen.kernel.loop_ir import (
    Accumulator,
    Check,
    Kernel,
    Loop,
    Scatter,
    Statement,
    Store,
    Tile,
    Update,
    walk,
)
from esat.gpu.kernel_text.launches import WARP
from esat.gpu.kernel_text.templates import fill
from esat.gpu.printing.body import Body, Position, wrapped
from esat.gpu.printing.source import from_memory, to_memory

_WRAPPING = {"{0} + {1}": "wrapping_add({0}, {1})", "{0} * {1}": "wrapping_mul({0}, {1})"}
_EXCHANGED = {"float32": "float32", "float64": "float64", "int64": "int64", "uint64": "int64"}
"""The type in which threads of a warp exchange a number; int32 for all that are shorter."""


class Gathering(Body):
    """A body with accumulators.

    The state of an accumulator is what it has gathered and, of an index, the place of the extremum: ``v3``,
    or ``best3`` and ``v3``.
    """

    def __init__(self, kernel: Kernel, lane_axis: int | None, lanes: int, strided: bool) -> None:
        super().__init__(kernel, lane_axis, lanes, strided)
        loops = [one for one in walk(kernel.body) if isinstance(one, Loop)]
        self._accumulators = {part.value: (part, loop) for loop in loops for part in loop.accumulators}

    def state(self, accumulator: Accumulator) -> list[tuple[str, str]]:
        """Names of variables and their dtypes: what is gathered, and the place of an extremum."""
        value = accumulator.value
        if accumulator.kind in ("argmax", "argmin"):
            return [(f"best{value}", accumulator.dtype), (f"v{value}", "int64")]
        return [(f"v{value}", accumulator.dtype)]

    def keep_state(self, accumulator: Accumulator) -> None:
        """Hold an accumulator apart for each lane."""
        self.kept_lanes.add(accumulator.value)
        for name, dtype in self.state(accumulator):
            self.source.local(name, self.lanes, dtype)

    def read_state(self, accumulator: Accumulator, name: str, dtype: str) -> str:
        """The text of a part of an accumulator's state."""
        return from_memory(f"{name}[lane]", dtype) if accumulator.value in self.kept_lanes else name

    def write_state(self, accumulator: Accumulator, name: str, dtype: str, text: str) -> None:
        """The line that gives a part of an accumulator's state."""
        apart = accumulator.value in self.kept_lanes
        self.source.line(f"{name}[lane] = {to_memory(text, dtype)}" if apart else f"{name} = {text}")

    def start(self, accumulator: Accumulator) -> None:
        """The state before anything is gathered."""
        (gathered, dtype), *place = self.state(accumulator)
        lines, text = fill(accumulator.start, accumulator.dtype, [], self.source.temporaries())
        assert not lines
        apart = accumulator.value in self.kept_lanes
        with self.source.block_if(apart, f"for lane in range({self.lanes})"):
            self.write_state(accumulator, gathered, dtype, text)
            for name, _ in place:  # of the first element, which no other beats where all are the start
                self.write_state(accumulator, name, "int64", "int64(0)")

    def update(self, one: Update, position: Position) -> None:
        """Take an element in."""
        accumulator, loop = self._accumulators[one.accumulator]
        place = ""
        if accumulator.kind in ("argmax", "argmin"):
            for axis in loop.axes:
                place = position[axis] if not place else f"({place}) * n{axis} + {position[axis]}"
        self._take(accumulator, self.value(one.operand), f"int64({place})", ascending=True)

    def _take(self, accumulator: Accumulator, operand: str, place: str, ascending: bool = False) -> None:
        """Take a value in; ``ascending`` where its place is behind all that the thread has seen."""
        if accumulator.kind not in ("argmax", "argmin"):
            self._combine(accumulator, operand)
            return
        source, order = self.source, ">" if accumulator.kind == "argmax" else "<"
        (best_name, dtype), (place_name, _) = self.state(accumulator)
        best, mine = (
            self.read_state(accumulator, best_name, dtype),
            self.read_state(accumulator, place_name, "int64"),
        )
        is_float = accumulator.dtype.startswith("float")
        beats, ties = f"{operand} {order} {best}", f"{operand} == {best}"
        if is_float and ascending:  # the first NaN wins
            behind = "<=" if order == ">" else ">="
            beats = f"{best} == {best} and not ({operand} {behind} {best})"
        elif is_float:
            beats += f" or ({operand} != {operand} and {best} == {best})"
            ties = f"({ties} or ({operand} != {operand} and {best} != {best}))"
        with source.block(f"if {beats}" + ("" if ascending else f" or ({ties} and {place} < {mine})")):
            self.write_state(accumulator, best_name, dtype, operand)
            self.write_state(accumulator, place_name, "int64", place)

    def _combine(self, accumulator: Accumulator, operand: str) -> None:
        ((name, dtype),) = self.state(accumulator)
        template = "{0} + {1}" if accumulator.kind == "sum" else accumulator.template
        if accumulator.dtype.startswith("int"):
            template = _WRAPPING.get(template, template)
        given = [self.read_state(accumulator, name, dtype), operand]
        lines, text = fill(template, accumulator.dtype, given, self.source.temporaries())
        for line in lines:
            self.source.line(line)
        self.write_state(accumulator, name, dtype, wrapped(text, accumulator.dtype))

    def take_state(self, accumulator: Accumulator, texts: Sequence[str]) -> None:
        """Combine the state of another thread, given as the text of each part."""
        names = []
        for (name, dtype), text in zip(self.state(accumulator), texts, strict=True):
            names.append(f"other_{name}")
            self.source.line(f"other_{name} = {from_memory(text, dtype)}")
        self._take(accumulator, names[0], names[-1])

    # ---- between threads

    def reduce_in_warps(self, accumulators: Sequence[Accumulator], threads: int) -> None:
        """Give all ``threads`` neighbours what they gathered together: a power of two within a warp."""
        steps = threads.bit_length() - 1
        for accumulator in accumulators if steps else ():
            with self.source.block(f"for step in range({steps})"):
                texts = []
                for name, dtype in self.state(accumulator):
                    exchanged = _EXCHANGED.get(dtype, "int32")
                    given = name if exchanged == dtype else f"{exchanged}({name})"
                    self.source.line(f"got_{name} = shfl_xor_{exchanged}({given}, {threads // 2} >> step)")
                    plain = dtype in (exchanged, "bool")
                    texts.append(f"got_{name}" if plain else f"{dtype}(got_{name})")
                self.take_state(accumulator, texts)

    def reduce(self, accumulators: Sequence[Accumulator], threads: int, tid: str) -> None:
        """Give all ``threads`` of a row what they gathered together.

        By butterflies in warps, then warps in order. Threads are whole warps of one block, or neighbours
        within a warp.
        """
        self.reduce_in_warps(accumulators, min(threads, WARP))
        if threads <= WARP or not accumulators:
            return
        source = self.source
        with source.block(f"if {tid} % {WARP} == 0"):
            for accumulator in accumulators:
                for name, dtype in self.state(accumulator):
                    source.shared(f"s_{name}", threads // WARP, dtype)
                    source.line(f"s_{name}[{tid} // {WARP}] = {to_memory(name, dtype)}")
        source.line("cuda.syncthreads()")
        for accumulator in accumulators:
            for name, dtype in self.state(accumulator):
                source.line(f"{name} = {from_memory(f's_{name}[0]', dtype)}")
            with source.block(f"for warp in range(1, {threads // WARP})"):
                self.take_state(accumulator, [f"s_{name}[warp]" for name, _ in self.state(accumulator)])

    # ---- one thread alone

    def sequence(self, statements: Sequence[Statement], position: Position) -> None:
        """Statements run by one thread, loops and all."""
        for one in statements:
            if isinstance(one, Update):
                self.update(one, position)
            elif isinstance(one, Loop | Tile):
                self._loop(one, position)
            elif isinstance(one, Store):
                self.store(one, position)
            elif not isinstance(one, Scatter | Check):
                self.definition(one, position)

    def _loop(self, one: Loop | Tile, position: Position) -> None:
        axes = (one.axis,) if isinstance(one, Tile) else one.axes
        for accumulator in () if isinstance(one, Tile) else one.accumulators:
            self.start(accumulator)
        with ExitStack() as stack:
            for axis in axes:
                stack.enter_context(self.source.block(f"for i{axis} in range(n{axis})"))
            self.sequence(one.body, {**position, **{axis: f"i{axis}" for axis in axes}})
