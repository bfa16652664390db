"""Calls of a program with a device: arguments from either side, steps in turn, results where the caller is.

A program is placed for arguments on certain sides and returns its results on one
(``esat/phases/placement.py``); arguments on other sides are copied. Calls of which all steps run on the
device, and which come again and again with the same arrays there (arguments from the host have a place of
their own on the device), are recorded as a CUDA graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from math import prod
from typing import Any

import numpy as np

from esat.errors import DeviceMemoryError, EsatError
from esat.gpu.device import DeviceArray
from esat.gpu.execution.arguments import Arguments, readers
from esat.gpu.execution.resident import array_of, keep_there
from esat.gpu.execution.results import Results
from esat.gpu.execution.short import ShortWays, has_short_way
from esat.gpu.execution.steps import PlacedProgram, Step, make_steps
from esat.gpu.execution.values import CallValues, Replay, ShapeSignature, Signatures
from esat.gpu.forms.form import DeviceForm
from esat.graph import Constant, SharedVariable, TensorType, Variable
from esat.graph.identity import is_among
from esat.phases.fusing.group import Group
from esat.runtime.entry.checks import InputCheck, wrong_count
from esat.runtime.entry.shape_rules import place_text
from esat.runtime.entry.signatures import SignatureTable
from esat.runtime.function_profile import StepProfile
from esat.runtime.printed.driver import StepWatch

RECORDED_AFTER = 3
"""Calls with the same arrays on the device, in a row, after which the next one is recorded as a graph."""
MOST_REPLAYS = 2
"""Graphs for the same arrays: while a caller looks at the results of one, another one is replayed."""
REPLAYED_BYTES = 1 << 26
"""Bytes of results and scratch up to which calls are recorded: beyond, launches take no time to speak of."""


class DeviceDriver:
    """Runs a placed program.

    Parameters
    ----------
    placed
        The program, and where its steps run.
    checks
        One an input.
    table
        Told of the bytes that calls take.
    profile
        One record a step, where to add up times, after each of which a measured call waits for the device;
        None for calls that are not measured.
    watch
        Told of the operands and results of each step, copies of those on the device.
    """

    def __init__(
        self,
        placed: PlacedProgram,
        checks: Sequence[InputCheck],
        table: SignatureTable,
        profile: Sequence[StepProfile] | None = None,
        watch: StepWatch | None = None,
    ) -> None:
        self.placed = placed
        self.program = placed.program
        self.device = placed.device
        self._profile, self._watch = profile, watch
        by_steps = profile is not None or watch is not None
        self._steps = make_steps(placed)
        scratch = self.program.memory.scratch
        there = frozenset(v for v in scratch if placed.made_on.get(v) == "device")

        def told(size: int) -> None:
            table.peak_bytes = max(table.peak_bytes, size)

        self.signatures = Signatures(self.program, there, told)
        self.device.keepers.add(self.signatures)
        self._inputs = tuple(self.program.graph.inputs)
        self._outputs, self._new_values = placed.outputs, placed.new_values
        self._arguments = Arguments(placed, checks, self.signatures)
        self._results = Results(placed)
        self._host_constants, self._constants = self._place_constants()
        self._there: dict[Variable, DeviceArray] | None = None
        self._changed = self._first_changes()
        self._may_record = not by_steps and self._is_recordable()
        short = not by_steps and has_short_way(placed, self._results.copied)
        self._ways = ShortWays(placed, self.signatures) if short else None

    # ---- what is known before any call

    def _place_constants(self) -> tuple[dict[Variable, Any], list[Constant]]:
        constants = [
            variable
            for group in self.program.steps
            for variable in group.inputs
            if isinstance(variable, Constant)
        ]
        constants += [output for output in self.program.graph.outputs if isinstance(output, Constant)]
        host: dict[Variable, Any] = {
            one: np.ascontiguousarray(one.data)
            if isinstance(one.data, np.ndarray) and one.data.ndim
            else one.data
            for one in constants
        }
        read = readers(self.placed)
        tensors = [one for one in dict.fromkeys(constants) if isinstance(one.type, TensorType)]
        return host, [one for one in tensors if "device" in read.get(one, ())]

    def _constants_there(self) -> dict[Variable, DeviceArray]:
        """Constants that steps on the device read, copied there before the first call."""
        if self._there is None:
            self._there = {one: self.device.upload(self._host_constants[one]) for one in self._constants}
        return self._there

    def _first_changes(self) -> dict[int, list[SharedVariable]]:
        """Number of a step on the device -> shared variables whose values it is the first to overwrite.

        Until then a value is on the host as well, where it was there, and a call that fails leaves it.
        """
        found: dict[int, list[SharedVariable]] = {}
        seen: set[Variable] = set()
        for number, step in enumerate(self._steps):
            for variable in self.program.overwritten_by(step.group):
                for root in self.program.roots(variable):
                    if isinstance(root, SharedVariable) and root not in seen and step.group.side == "device":
                        found.setdefault(number, []).append(root)
                        seen.add(root)
        return found

    def _is_recordable(self) -> bool:
        """Whether calls do nothing but launches on the device, in memory that can be the same each time."""
        for group in self.program.steps:
            form = self.placed.forms.get(group.nodes[0])
            launches = group.kind == "kernel" or (form is not None and self._only_launches(group, form))
            if not (self._is_end(group) or (group.side == "device" and launches)):
                return False
            if group.guard or self.program.is_late(group):
                return False
        leaves = (*self._inputs, *self.program.shared)
        tensors = all(isinstance(variable.type, TensorType) for variable in (*leaves, *self._outputs))
        read = all(is_among(variable, self.program.shared) for variable in self.program.updated)
        known = all(
            v in self.program.facts.early or isinstance(v, Constant | SharedVariable)
            for v in self.program.graph.outputs
        )
        # What a caller gives away is another array each time.
        kept = all(isinstance(variable, SharedVariable) for variable in self.program.overwritten)
        return tensors and read and known and kept and bool(self.program.steps)

    def _only_launches(self, group: Group, form: DeviceForm) -> bool:
        """Whether a library call waits for nothing, and reads on the host what is the same in every call."""
        node = group.nodes[0]
        fixed = [node.inputs[place] for place in form.on_host]
        decided = self.program.facts.decided
        return form.is_recordable and all(isinstance(one, Constant) or one in decided for one in fixed)

    def _is_end(self, group: Group) -> bool:
        """Whether a step is the copy of an argument to the device, or of a result from it."""
        if group.kind != "transfer":
            return False
        if group.side == "device":
            return is_among(group.inputs[0], self._inputs)
        result = group.outputs[0]
        is_read = any(is_among(result, other.reads) for other in self.program.steps)
        return is_among(result, self._outputs) and not is_read

    # ---- a call

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        """Run the program; as the host's driver does."""
        if self._ways is not None and out is None:
            return self._short(self._ways, arguments)
        with self.program.lock if self.program.updated else nullcontext():
            return self._call(arguments, out)

    def _short(self, ways: ShortWays, arguments: tuple[Any, ...]) -> Any:
        """The results by the short way, or else by the long one."""
        way = ways.find(arguments)
        if way is None:
            return self._call(arguments, None)
        signature = way.signature
        try:
            if not (way.is_replayed and self._may_record):
                return way(arguments)
            key = (self.device.stream, *[argument.data.ptr for argument in arguments])
            replay = self._taken(signature, key)
            if replay is not None:
                return self._replay(replay, CallValues(self.device, {}, {}, signature, {}))
            same = [one.key for one in signature.replays].count(key)
            if same == MOST_REPLAYS:
                return way(arguments)
            if not same and signature.seen[0] != key:
                signature.seen = (key, 1)
                return way(arguments)
        except Exception:  # the long way says what it is
            return self._call(arguments, None)
        return self._call(arguments, None)

    def _call(self, arguments: tuple[Any, ...], out: Any) -> Any:
        if len(arguments) != len(self._inputs):
            raise wrong_count(self._inputs, arguments)
        host = dict(self._host_constants)
        with self.device.translated():
            there = dict(self._constants_there())
        self._arguments.place(arguments, host, there)
        signature = self._arguments.signature(host, there)
        values = CallValues(self.device, host, there, signature, {})
        host.update(signature.values)
        there.update(signature.values_there)
        if out is not None:
            self._arguments.take_out(out, values)
        replay = self._known_replay(values) if out is None and self._may_record else None
        return self._run(values, out) if replay is None else self._replay(replay, values)

    def _run(self, values: CallValues, out: Any) -> Any:
        self.device.with_room(partial(self._arguments.take_shared, values), "shared variables")
        self._arguments.take_gifts(values)
        values.frame = self.signatures.frame(values.signature, self.device)
        self._run_steps(values)
        results = self._results.returned(values, out)
        if self._may_record:  # later calls find the same arrays
            self._results.store_in_place(values)
            for variable in self.program.updated:
                keep_there(variable, self.device, values.there[variable])
        else:
            self._results.store(values)
        if self._ways is not None and out is None:
            self._ways.add(values, self._may_record and self._replay_pays(values.signature))
        values.signature.idle.put(self.device.stream, values.frame)
        return results[0] if len(results) == 1 else results

    def _run_steps(self, values: CallValues) -> None:
        times = self._measured() if self._profile is not None else None
        for number, step in enumerate(self._steps):
            for variable in self._changed.get(number, ()):
                keep_there(variable, self.device, values.there[variable])
            if self._watch is not None:
                self._watch.begin(self._shown(step.group.inputs, values))
            with _located(step.group):
                if step.group.side == "host":
                    step.run(values)
                else:
                    repeatable = not self.program.overwritten_by(step.group)
                    self.device.with_room(partial(step.run, values), str(step.group), repeatable)
            if self._watch is not None:
                self._watch.end(number, self._shown(step.group.outputs, values))
            if times is not None:
                next(times)(step, values)
            for gone in step.released:
                values.host.pop(gone, None)
                values.there.pop(gone, None)

    def _shown(self, variables: Sequence[Variable], values: CallValues) -> list[Any]:
        """Values as they are now, on the host; None where a step that makes one did not run."""
        return [
            self.device.download(values.there[one]) if one in values.there else values.host.get(one)
            for one in variables
        ]

    def _measured(self) -> Iterator[Callable[[Step, CallValues], None]]:
        assert self._profile is not None
        start = time.perf_counter()
        for record_ in self._profile:

            def add(step: Step, values: CallValues, record_: StepProfile = record_) -> None:
                nonlocal start
                self.device.wait()
                stop = time.perf_counter()
                record_.add(stop - start, _moved(step.group, values))
                start = stop

            yield add

    # ---- graphs

    def _known_replay(self, values: CallValues) -> Replay | None:
        """The graph for a call's arrays on the device; recorded now if they came often enough."""
        arrays = [values.there[v] for v in self._inputs if v in values.there]
        arrays += self.device.with_room(self._shared_there, "shared variables")
        if not all(array.flags.c_contiguous for array in arrays):
            return None
        addresses = [self.device.address(array) for array in arrays]
        return self._replay_for(values, (self.device.stream, *addresses))

    def _replay_for(self, values: CallValues, key: tuple[int, ...]) -> Replay | None:
        signature = values.signature
        found = self._taken(signature, key)
        same = tuple(replay for replay in signature.replays if replay.key == key)
        if found is not None or len(same) == MOST_REPLAYS or not self._replay_pays(signature):
            return found
        if not same:
            known, calls = signature.seen
            signature.seen = (key, calls + 1 if known == key else 1)
            if known != key or calls < RECORDED_AFTER:
                return None
        replay = self._recorded(values, key)
        if replay is None or not replay.take(self.device):
            self._may_record = False
            return None
        signature.replays = (*same, replay)
        self.signatures.recorded(signature)
        return replay

    def _taken(self, signature: ShapeSignature, key: tuple[int, ...]) -> Replay | None:
        """A graph for these arrays that this call may replay."""
        for replay in signature.replays:
            if replay.key == key and replay.take(self.device):
                return replay
        return None

    def _replay_pays(self, signature: ShapeSignature) -> bool:
        """Whether launches take longer than what they do, and a graph may keep memory of its own."""
        launches = sum(group.kind != "view" and group.side == "device" for group in self.program.steps)
        made = [output for output in self._outputs if not isinstance(output, Constant)]
        sizes = [prod(signature.shapes[one]) * one.tensor_type.numpy_dtype.itemsize for one in made]
        return launches > 1 and signature.plan.peak_bytes + sum(sizes) <= REPLAYED_BYTES

    def _shared_there(self) -> list[DeviceArray]:
        return [array_of(variable, self.device) for variable in self.program.shared]

    def _recorded(self, values: CallValues, key: tuple[int, ...]) -> Replay | None:
        device, signature = self.device, values.signature
        arguments = {
            variable: device.empty(values.host[variable].shape, variable.tensor_type.numpy_dtype)
            for variable in self._inputs
            if variable not in values.there
        }
        there = {**values.there, **arguments, **signature.values_there}
        there.update((variable, array_of(variable, device)) for variable in self.program.shared)
        frame = self.signatures.new_frame(signature, device)
        recorded = CallValues(device, dict(values.host), there, signature, frame, is_recorded=True)
        results: dict[Variable, DeviceArray] = {}

        def run() -> None:
            for step in self._steps:
                step.run(recorded)
                for variable in step.released:
                    recorded.there.pop(variable, None)
            results.update((output, recorded.on_device(output)) for output in self._outputs)
            self._results.store_in_place(recorded)

        recording = device.record(run)
        if recording is None:
            return None
        replay = Replay(key, arguments, results, recording, recorded)
        if self.placed.results == "device" and not any(self._results.copied[: len(self._outputs)]):
            replay.hand_out(device)
        return replay

    def _replay(self, replay: Replay, values: CallValues) -> Any:
        device, stays = self.device, self.placed.results == "device"
        try:
            for shared in self.program.shared:
                if shared in self.placed.written or is_among(shared, self.program.updated):
                    keep_there(shared, device, array_of(shared, device))
            for variable, array in replay.arguments.items():
                device.upload_into(values.host[variable], array)
            replay.recording.replay()
            arrays = [replay.results[output] for output in self._outputs]
            if not stays:
                arrays = [device.download(array) for array in arrays]
            elif not replay.hands_out:
                arrays = [array.copy() for array in arrays]
            replay.recording.finish()
            return arrays[0] if len(arrays) == 1 else tuple(arrays)
        finally:
            replay.give_back()


def _moved(group: Group, values: CallValues) -> int:
    """Bytes that a step read and wrote."""
    if group.kind == "view":
        return 0
    total = 0
    for variable in (*group.inputs, *group.outputs):
        array = values.there.get(variable)
        array = values.host.get(variable) if array is None else array
        total += int(getattr(array, "nbytes", 0))
    return total


@contextmanager
def _located(group: Group) -> Iterator[None]:
    """An error says where the user built what failed."""
    place = place_text(group.nodes[-1].where)
    try:
        yield
    except DeviceMemoryError as error:
        raise DeviceMemoryError(f"{error}{place}", error.needed, error.free, error.step) from error
    except EsatError as error:
        if not place or "\n  at " in str(error):
            raise
        raise type(error)(f"{error}{place}") from error
    except Exception as error:
        error.add_note(f"in {group}{place}")
        raise
