"""What a call of a program with a device knows: values on either side, and what the shapes decide.

A value is copied to the other side when it is first read there, and then has been: each array crosses at most
once a call and direction, whoever reads it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Generic, TypeVar

from esat.errors import CompileError, EsatError
from esat.gpu.device import Device, DeviceArray, Recording
from esat.graph import Constant, TensorType, Variable
from esat.graph.op import Array
from esat.phases.memory.memory_plan import BufferPlan, plan_buffers
from esat.runtime.entry.shape_rules import Shape, ShapeRules, ShapeWalk
from esat.runtime.program import Program

Frame = TypeVar("Frame")

MAXIMUM_SIGNATURES = 128
MAXIMUM_STREAMS = 8
"""Streams for whose calls scratch is kept."""
MAXIMUM_RECORDED = 8
"""Combinations of shapes for which graphs are kept, each with memory of its own."""


class ShapeSignature:
    """What the shapes of inputs and shared variables decide.

    Attributes
    ----------
    shapes
        Of all variables whose shapes follow.
    values
        Results that depend on shapes alone.
    values_there
        Those that a step on the device has read, as arrays of the device.
    errors
        Variable -> what computing it raises, for steps that run under conditions.
    plan
        Scratch buffers on the device.
    idle
        Frames of such buffers that no call uses.
    seen
        What the last call came with, as the key of a :class:`Replay`, and how many calls did in a row.
    replays
        The program's launches as graphs for such keys, each with results of its own.
    """

    def __init__(self, walk: ShapeWalk, plan: BufferPlan) -> None:
        self.shapes = walk.shapes
        self.values: Mapping[Variable, Array] = walk.values
        self.errors: Mapping[Variable, EsatError] = walk.errors
        self.values_there: dict[Variable, DeviceArray] = {}
        self.plan = plan
        self.idle: IdleFrames[dict[Variable, DeviceArray]] = IdleFrames()
        self.seen: tuple[tuple[int, ...], int] = ((), 0)
        self.replays: tuple[Replay, ...] = ()
        self.late: dict[tuple[int, tuple[Shape, ...]], Mapping[Variable, Shape]] = {}


class IdleFrames(Generic[Frame]):
    """Frames of scratch that no call uses, by the stream that the last one to use them launched its steps in.

    These may not have run yet: only what is launched in the same stream comes after them.
    """

    def __init__(self) -> None:
        self._of: dict[int, deque[Frame]] = {}

    def __len__(self) -> int:
        return sum(map(len, list(self._of.values())))

    def take(self, stream: int) -> Frame | None:
        """One for a call in a stream; None where there is none."""
        known = self._of.get(stream)
        try:
            return known.pop() if known is not None else None
        except IndexError:
            return None

    def put(self, stream: int, frame: Frame) -> None:
        """A call in a stream has launched all that uses a frame."""
        known = self._of.get(stream)
        if known is None:
            while len(self._of) >= MAXIMUM_STREAMS:
                self._of.pop(next(iter(self._of)), None)
            known = self._of.setdefault(stream, deque())
        known.append(frame)

    def clear(self) -> None:
        """Give them back."""
        self._of.clear()


class Replay:
    """A recorded call: arguments from the host are copied to ``arguments``, results stand in ``results``.

    Attributes
    ----------
    key
        The stream of calls that may replay it, and the addresses of the arrays on the device that it reads
        and overwrites. In another stream its results might be used when it begins anew.
    arguments
        Input -> the array on the device that it reads, for inputs from the host.
    results
        Output of the graph -> its array on the device.
    recording
        The launches.
    hands_out
        Whether callers get these very arrays: then it is not replayed while one of them can be seen.
    kept
        What else must live as long as it.
    """

    def __init__(
        self,
        key: tuple[int, ...],
        arguments: Mapping[Variable, DeviceArray],
        results: Mapping[Variable, DeviceArray],
        recording: Recording,
        kept: Any,
    ) -> None:
        self.key = key
        self.arguments = arguments
        self.results = results
        self.recording = recording
        self.kept = kept
        self.hands_out = False
        self._references: list[tuple[int, ...] | None] = []
        self._lock = threading.Lock()

    def hand_out(self, device: Device) -> None:
        """Let callers have the results themselves, where reference counts tell whether anybody sees them."""
        different = len({id(array) for array in self.results.values()}) == len(self.results)
        self._references = self._counted(device)
        self.hands_out = different and None not in self._references

    def _counted(self, device: Device) -> list[tuple[int, ...] | None]:
        return [device.references(array) for array in self.results.values()]

    def take(self, device: Device) -> bool:
        """Whether this call may replay it: no other one does now, and nobody sees its results."""
        if not self._lock.acquire(blocking=False):
            return False
        if not self.hands_out or self._counted(device) == self._references:
            return True
        self._lock.release()
        return False

    def give_back(self) -> None:
        """The call has its results."""
        self._lock.release()


class Signatures:
    """Signatures by the shapes of a program's leaves.

    Parameters
    ----------
    program
        The program.
    on_device
        Scratch results that live on the device; the others get memory when they are made.
    told
        Called with the bytes of scratch and output buffers of each new signature.
    """

    def __init__(self, program: Program, on_device: frozenset[Variable], told: Callable[[int], None]) -> None:
        self._program = program
        self._told = told
        self._recorded: list[ShapeSignature] = []
        self._on_device = on_device
        self._rules = ShapeRules(
            program.graph.toposort(), frozenset(program.facts.values), frozenset(program.lazy)
        )
        self.known: dict[tuple[Shape, ...], ShapeSignature] = {}

    def of(self, key: tuple[Shape, ...]) -> ShapeSignature:
        """The signature for shapes of the leaves, in their order. Raises ShapeError where they do not fit."""
        known = self.known.get(key)
        return self._add(key) if known is None else known

    def _add(self, key: tuple[Shape, ...]) -> ShapeSignature:
        walk = self._rules.apply(dict(zip(self._program.leaves, key, strict=True)))
        memory = self._program.memory
        sizes = [
            _bytes(variable, walk.shapes) if variable in self._on_device else 0 for variable in memory.scratch
        ]
        signature = ShapeSignature(walk, plan_buffers(memory, sizes))
        while len(self.known) >= MAXIMUM_SIGNATURES:
            del self.known[next(iter(self.known))]
        self.known[key] = signature
        fresh = sum(_bytes(variable, walk.shapes) for variable in memory.fresh)
        self._told(signature.plan.peak_bytes + fresh)
        return signature

    def recorded(self, signature: ShapeSignature) -> None:
        """Calls of a signature have been recorded: those of others that were long ago are forgotten."""
        self._recorded = [one for one in self._recorded if one is not signature] + [signature]
        while len(self._recorded) > MAXIMUM_RECORDED:
            self._recorded.pop(0).replays = ()

    def forget(self) -> None:
        """Give back the memory that is kept for later calls."""
        for signature in list(self.known.values()):
            signature.idle.clear()
            signature.replays = ()
            signature.seen = ((), 0)

    def frame(self, signature: ShapeSignature, device: Device) -> dict[Variable, DeviceArray]:
        """A frame of scratch arrays that nobody else uses."""
        known = signature.idle.take(device.stream)
        return self.new_frame(signature, device) if known is None else known

    def new_frame(self, signature: ShapeSignature, device: Device) -> dict[Variable, DeviceArray]:
        """A frame of new memory."""
        scratch = self._program.memory.scratch
        places = {
            variable: place
            for variable, place in zip(scratch, signature.plan.places, strict=True)
            if variable in self._on_device and variable in signature.shapes
        }
        used = sorted(set(places.values()))
        sizes = tuple(signature.plan.sizes[place] for place in used)
        buffers = dict(
            zip(used, device.with_room(lambda: device.frame(sizes), "scratch results"), strict=True)
        )
        return {
            variable: device.shaped(
                buffers[place], signature.shapes[variable], variable.tensor_type.numpy_dtype
            )
            for variable, place in places.items()
        }


class CallValues:
    """The values of one call.

    Attributes
    ----------
    host, there
        Variable -> its value on the host, and on the device.
    signature
        What the shapes decide.
    frame
        Scratch arrays on the device.
    given
        Result whose buffer the caller gave -> that array.
    is_recorded
        Whether launches are recorded now: nothing can come back to the host.
    """

    __slots__ = ("_device", "frame", "given", "host", "is_recorded", "signature", "there")

    def __init__(
        self,
        device: Device,
        host: dict[Variable, Any],
        there: dict[Variable, DeviceArray],
        signature: ShapeSignature,
        frame: dict[Variable, DeviceArray],
        is_recorded: bool = False,
    ) -> None:
        self._device = device
        self.is_recorded = is_recorded
        self.host = host
        self.there = there
        self.signature = signature
        self.frame = frame
        self.given: dict[Variable, Any] = {}

    def on_device(self, variable: Variable) -> DeviceArray:
        """The value on the device."""
        array = self.there.get(variable)
        if array is None:
            array = self._device.upload(self.host[variable])
            self.there[variable] = array
            if variable in self.signature.values:
                self.signature.values_there[variable] = array
        return array

    def on_host(self, variable: Variable) -> Any:
        """The value on the host; waits for the device where it comes from there."""
        if variable not in self.host:
            self.host[variable] = self._device.download(self.there[variable])
        return self.host[variable]

    def shape(self, variable: Variable) -> Shape:
        """The shape of a variable that has a value."""
        if isinstance(variable, Constant):
            known: Shape = variable.data.shape
            return known
        known = self.signature.shapes.get(variable, ())
        if variable in self.signature.shapes:
            return known
        array = self.there.get(variable)
        found: Shape = (self.host[variable] if array is None else array).shape
        return found

    def made_shape(self, variable: Variable, late: Mapping[Variable, Shape]) -> Shape:
        """The shape that a result will have."""
        shape = self.signature.shapes.get(variable)
        if shape is None:
            shape = late.get(variable)
        if shape is None:
            raise CompileError(f"runtime: the shapes of the inputs do not tell that of {variable}")
        return shape


def _bytes(variable: Variable, shapes: Mapping[Variable, Shape]) -> int:
    shape = shapes.get(variable)
    if shape is None or not isinstance(variable.type, TensorType):
        return 0
    return prod(shape) * variable.type.numpy_dtype.itemsize
