"""The short way through a program that runs on the device alone.

A call that comes with arrays of the device, contiguous ones of shapes seen before, needs no dictionaries of
values and no checks but these: its arrays stand in one list, steps know their places in it, and memory that
no call returns is kept. Of a call's own time that leaves a fifth. Programs with shared variables, with copies
between the sides or with conditions have no short way. Whatever goes wrong on it, the call goes the long way
then, which says what it is: no argument has been changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from esat.gpu.device import DeviceArray
from esat.gpu.execution.steps import PlacedProgram
from esat.gpu.execution.values import CallValues, IdleFrames, ShapeSignature, Signatures
from esat.gpu.forms.form import DeviceForm
from esat.gpu.kernel_text.kernels import Launcher, Start
from esat.gpu.kernel_text.launches import VECTOR_BYTES
from esat.graph import Apply, Constant, TensorType, Variable
from esat.phases.fusing.group import Group
from esat.phases.memory.effects import destroyed_positions
from esat.runtime.entry.shape_rules import Shape

Slots: TypeAlias = list[Any]
"""The arrays of a call: arguments, what calls share, scratch, results."""
MAXIMUM_WAYS = 128
"""Combinations of shapes for which a program has a short way."""


class NotShortError(Exception):
    """A step of the short way made what it should not; the long way says what is wrong."""


def has_short_way(placed: PlacedProgram, copied: Sequence[bool]) -> bool:
    """Whether calls of a program may go the short way.

    Parameters
    ----------
    placed
        The program.
    copied
        Which of its outputs are copied because somebody else may see their memory.
    """
    program = placed.program
    variables = (*program.graph.inputs, *program.graph.outputs)
    plain = not (program.shared or program.updated or program.overwritten or any(copied))
    return (
        plain
        and placed.results == "device"
        and bool(program.steps)
        and all(isinstance(variable.type, TensorType) for variable in variables)
        and all(_is_short(placed, group) for group in program.steps)
        and all(output in placed.made_on for output in program.graph.outputs)
    )


def _is_short(placed: PlacedProgram, group: Group) -> bool:
    program, node = placed.program, group.nodes[0]
    if group.side != "device" or group.guard or program.is_late(group):
        return False
    if group.kind == "kernel":
        return isinstance(program.kernels[group].contiguous, Launcher)
    form = placed.forms.get(node)
    tensors = all(isinstance(output.type, TensorType) for output in node.outputs)
    if form is None or not tensors or destroyed_positions(node.op) or program.needs_check(node):
        return False
    decided = program.facts.decided
    return all(isinstance(node.inputs[n], Constant) or node.inputs[n] in decided for n in form.on_host)


class ShortWays:
    """The short ways through a program, one for each combination of shapes.

    Parameters
    ----------
    placed
        A program for which :func:`has_short_way` holds.
    signatures
        What shapes decide.
    """

    def __init__(self, placed: PlacedProgram, signatures: Signatures) -> None:
        self._placed = placed
        self._signatures = signatures
        self._array = placed.device.arrays.ndarray
        self._dtypes = [one.tensor_type.numpy_dtype for one in placed.program.graph.inputs]
        self._known: dict[tuple[Shape, ...], ShortWay] = {}
        placed.device.keepers.add(self)

    def forget(self) -> None:
        """Give back the memory that is kept for later calls."""
        for way in list(self._known.values()):
            way.forget()

    def find(self, arguments: tuple[Any, ...]) -> ShortWay | None:
        """The way for arguments; None where there is none yet, or for others than aligned device arrays."""
        if len(arguments) != len(self._dtypes):
            return None
        array = self._array
        for argument, dtype in zip(arguments, self._dtypes, strict=True):
            if type(argument) is not array or argument.dtype != dtype or not argument.flags.c_contiguous:
                return None
            if argument.data.ptr % VECTOR_BYTES:
                return None
        return self._known.get(tuple([argument.shape for argument in arguments]))

    def add(self, values: CallValues, is_replayed: bool) -> None:
        """Make the way for the shapes of a call that has gone the long way.

        ``is_replayed`` says whether such calls are replayed when they come with the same arrays.
        """
        inputs = self._placed.program.graph.inputs
        if values.signature.errors or any(variable not in values.there for variable in inputs):
            return
        key = tuple([values.there[variable].shape for variable in inputs])
        if key not in self._known:
            while len(self._known) >= MAXIMUM_WAYS:
                del self._known[next(iter(self._known))]
            self._known[key] = ShortWay(self._placed, self._signatures, values, is_replayed)


class ShortWay:
    """The short way for arguments of certain shapes; called with them it returns the results.

    Attributes
    ----------
    signature
        What the shapes decide.
    is_replayed
        Whether calls are replayed as a graph when they come with the same arrays.
    """

    def __init__(
        self, placed: PlacedProgram, signatures: Signatures, values: CallValues, is_replayed: bool
    ) -> None:
        self.signature: ShapeSignature = values.signature
        self.is_replayed = is_replayed
        self._device = placed.device
        self._signatures = signatures
        program, shapes = placed.program, values.signature.shapes
        taken = program.memory.taken
        scratch = [one for one in program.memory.scratch if one in placed.made_on and one in shapes]
        self._scratch = tuple(scratch)
        kernels = [group for group in program.steps if group.kind == "kernel"]
        owned = [out for group in kernels for out in group.outputs if out not in taken]
        fresh = [variable for variable in owned if variable not in set(scratch)]
        made = [out for group in program.steps if group.kind != "kernel" for out in group.outputs]
        shared = self._shared(placed, values)
        ordered = [*program.graph.inputs, *shared, *scratch, *fresh, *made]
        self._places = {variable: place for place, variable in enumerate(ordered)}
        for group in kernels:
            for output in group.outputs:
                if output in taken:
                    self._places[output] = self._places[taken[output]]
        self._common = list(shared.values())
        self._fresh = [(shapes[variable], variable.tensor_type.numpy_dtype) for variable in fresh]
        self._later = [None] * len(made)
        self._steps = [self._step(placed, group, values) for group in program.steps]
        self._results = [self._places[output] for output in program.graph.outputs]
        self._frames: IdleFrames[list[DeviceArray]] = IdleFrames()

    def forget(self) -> None:
        """Give back the scratch that no call uses."""
        self._frames.clear()

    def __call__(self, arguments: tuple[DeviceArray, ...]) -> Any:
        """The results for arrays of the device; errors are of any kind, and for the long way to tell."""
        empty = self._device.arrays.empty
        stream = self._device.stream
        frame = self._frames.take(stream)
        if frame is None:
            found = self._signatures.new_frame(self.signature, self._device)
            frame = [found[variable] for variable in self._scratch]
        fresh = [empty(shape, dtype) for shape, dtype in self._fresh]
        slots: Slots = [*arguments, *self._common, *frame, *fresh, *self._later]
        for step in self._steps:
            step(slots)
        self._frames.put(stream, frame)
        results = self._results
        return slots[results[0]] if len(results) == 1 else tuple([slots[place] for place in results])

    # ---- made once

    def _shared(self, placed: PlacedProgram, values: CallValues) -> Mapping[Variable, DeviceArray]:
        """What steps on the device read besides arguments and results: constants, and what shapes decide."""
        known = {*placed.program.graph.inputs, *placed.made_on}
        found: dict[Variable, DeviceArray] = {}
        for group in placed.program.steps:
            for variable in self._read_there(placed, group):
                if variable not in known and variable not in found:
                    found[variable] = values.on_device(variable)
        return found

    @staticmethod
    def _read_there(placed: PlacedProgram, group: Group) -> Sequence[Variable]:
        if group.kind == "kernel":
            return placed.program.kernels[group].inputs
        form = placed.forms[group.nodes[0]]
        return [one for place, one in enumerate(group.nodes[0].inputs) if place not in form.on_host]

    def _step(self, placed: PlacedProgram, group: Group, values: CallValues) -> Callable[[Slots], None]:
        if group.kind == "kernel":
            call = placed.program.kernels[group]
            assert isinstance(call.contiguous, Launcher)
            return _Kernel(call.contiguous, [self._places[one] for one in (*group.outputs, *call.inputs)])
        node = group.nodes[0]
        return self._library(node, placed.forms[node], values)

    def _library(self, node: Apply, form: DeviceForm, values: CallValues) -> Callable[[Slots], None]:
        compute, places = form.compute, self._places
        fixed = {place: values.on_host(node.inputs[place]) for place in form.on_host}
        read = [-1 if place in fixed else places[one] for place, one in enumerate(node.inputs)]
        wanted = [
            (places[output], values.signature.shapes.get(output), output.tensor_type.numpy_dtype)
            for output in node.outputs
        ]

        def run(slots: Slots) -> None:
            operands = [fixed[n] if place < 0 else slots[place] for n, place in enumerate(read)]
            for made, (place, shape, dtype) in zip(compute(operands), wanted, strict=True):
                if made.shape != shape or made.dtype != dtype:
                    raise NotShortError
                slots[place] = made

        return run


class _Kernel:
    """A kernel that reads and writes the arrays at some places."""

    __slots__ = ("_launcher", "_places", "_start")

    def __init__(self, launcher: Launcher, places: Sequence[int]) -> None:
        self._launcher = launcher
        self._places = places
        self._start: Start | None = None

    def __call__(self, slots: Slots) -> None:
        arrays = [slots[place] for place in self._places]
        start = self._start
        if start is None:
            start = self._start = self._launcher.start_for(arrays)
        start(arrays)
