"""Steps of a program with a device, as functions of a call's values.

Unlike a program of the host alone, which is printed as one Python function
(``esat/runtime/printed/driver.py``), this one is a list of steps that are called in turn: a launch takes ten
times as long as what printing would save, and calls that repeat are replayed as one graph, which takes no
Python at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from esat.base.records import record
from esat.codegen.matmul.lapack import performer
from esat.errors import CompileError, ShapeError, describe
from esat.gpu.device import Device, DeviceArray
from esat.gpu.execution.values import CallValues
from esat.gpu.forms.form import DeviceForm
from esat.gpu.random import Draw, Uniforms, draw_of
from esat.graph import Apply, Constant, Family, SharedVariable, TensorType, Variable
from esat.graph.identity import is_among
from esat.graph.op import Op
from esat.ops.control import IfElse
from esat.phases.fusing.group import Group
from esat.phases.memory.effects import destroyed_positions
from esat.phases.transfer import Side
from esat.runtime.entry.checks import ResultCheck, detached
from esat.runtime.entry.shape_rules import Shape, ShapeRules, located
from esat.runtime.program import KernelCall, Program
from esat.runtime.threads import CallsOfShapes

Action: TypeAlias = Callable[[CallValues], None]
_NO_SHAPES: Mapping[Variable, Shape] = {}


@record(frozen=True, eq=False)
class PlacedProgram:
    """A program and where its steps run.

    Attributes
    ----------
    program
        The program. The kernels of steps on the device take arrays of the device.
    device
        The device.
    forms
        What runs nodes that are no kernels on the device.
    results
        Where the caller gets the outputs.
    """

    program: Program
    device: Device
    forms: Mapping[Apply, DeviceForm]
    results: Side = "host"

    @cached_property
    def made_on(self) -> Mapping[Variable, Side]:
        """Result of a step -> its side."""
        return {output: group.side for group in self.program.steps for output in group.outputs}

    @cached_property
    def outputs(self) -> tuple[Variable, ...]:
        """What the caller gets."""
        return tuple(
            self.program.graph.outputs[: len(self.program.graph.outputs) - len(self.program.updated)]
        )

    @cached_property
    def new_values(self) -> tuple[tuple[SharedVariable, Variable], ...]:
        """Updated shared variables, each with its new value."""
        values = self.program.graph.outputs[len(self.outputs) :]
        return tuple(zip(self.program.updated, values, strict=True))

    @cached_property
    def written(self) -> Mapping[Variable, frozenset[Side]]:
        """Inputs and shared variables that are overwritten, and on which sides."""
        found: dict[Variable, frozenset[Side]] = {}
        for group in self.program.steps:
            for variable in self.program.overwritten_by(group):
                for root in self.program.roots(variable) & self.program.overwritten:
                    found[root] = found.get(root, frozenset()) | {group.side}
        return found


@record(frozen=True, eq=False)
class Step:
    """One step, ready to run.

    Attributes
    ----------
    group
        What it computes, and where.
    run
        Computes it.
    released
        Results that nothing reads after it.
    """

    group: Group
    run: Action
    released: tuple[Variable, ...]


def make_steps(placed: PlacedProgram) -> tuple[Step, ...]:
    """The steps of a program, in order."""
    maker = _Maker(placed)
    releases = placed.program.releases()
    return tuple(
        Step(group, maker.action(group), ended)
        for group, ended in zip(placed.program.steps, releases, strict=True)
    )


class _Maker:
    """Makes the actions of one program's steps, in their order."""

    def __init__(self, placed: PlacedProgram) -> None:
        self.placed = placed
        self.program = placed.program
        self.device = placed.device
        self.fresh = set(self.program.memory.fresh)
        self.scratch = set(self.program.memory.scratch)
        self.changed = {
            root
            for group in self.program.steps
            for variable in self.program.overwritten_by(group)
            for root in self.program.roots(variable)
        }
        self.uniforms = Uniforms(placed.device)
        self.checked: set[Apply] = set()
        self.known = {*self.program.graph.inputs, *self.program.shared, *self.program.value_variables}

    def action(self, group: Group) -> Action:
        """What runs a step: the checks that must come before it, then the step, where its conditions hold."""
        parts = [*self._checks_ahead(group), *self._own_check(group), self._work(group)]
        self.known.update(group.outputs)
        run = parts[0] if len(parts) == 1 else _in_turn(tuple(parts))
        return _guarded(group, run) if group.guard else run

    def _work(self, group: Group) -> Action:
        node = group.nodes[0]
        there = group.side == "device"
        if group.kind == "kernel":
            call = self.program.kernels[group]
            return self._device_kernel(group, call) if there else self._host_kernel(group, call)
        if group.kind == "transfer":
            return self._transfer(group)
        if isinstance(node.op, IfElse):
            return _choice(node, there)
        if there:
            return self._device_library(node)
        if node in self.program.routines:
            return self._host_routine(group)
        return self._host_library(node)

    # ---- where results go

    def _placing(self, group: Group) -> Callable[[CallValues], list[Any]]:
        """What finds the array of each result of a step, and of an operand that it overwrites."""
        there = group.side == "device"
        taken = self.program.memory.taken
        late = self._late_shapes(group)
        outputs = group.outputs

        def place(values: CallValues) -> list[Any]:
            shapes = late(values)
            return [one(values, shapes) for one in makers]

        makers = [self._place_of(output, there, taken.get(output)) for output in outputs]
        return place

    def _place_of(
        self, output: Variable, there: bool, taken: Variable | None
    ) -> Callable[[CallValues, Mapping[Variable, Shape]], Any]:
        if taken is not None:
            if there:
                return lambda values, late: values.on_device(taken)
            return lambda values, late: _writable(values.on_host(taken))
        dtype = output.tensor_type.numpy_dtype
        if there and output in self.scratch:
            return lambda values, late: values.frame[output]
        device = self.device

        def new(values: CallValues, late: Mapping[Variable, Shape]) -> Any:
            given = values.given.get(output)
            if given is not None and there == device.is_array(given):
                return given
            shape = values.made_shape(output, late)
            return device.empty(shape, dtype) if there else np.empty(shape, dtype)

        return new

    def _late_shapes(self, group: Group) -> Callable[[CallValues], Mapping[Variable, Shape]]:
        """What tells the shapes of results that those of the program's inputs do not tell."""
        if not self.program.is_late(group):
            return lambda values: _NO_SHAPES
        rules = ShapeRules(group.nodes)
        inputs = [variable for variable in group.inputs if not isinstance(variable, Constant)]
        number = id(group)

        def late(values: CallValues) -> Mapping[Variable, Shape]:
            key = tuple([values.shape(variable) for variable in inputs])
            known = values.signature.late.get((number, key))
            if known is None:
                known = rules.apply(dict(zip(inputs, key, strict=True))).shapes
                values.signature.late[number, key] = known
            return known

        return late

    # ---- transfers

    def _transfer(self, group: Group) -> Action:
        """A copy from the other side; where an argument is on this side already it is itself."""
        (source,), (result,) = group.inputs, group.outputs
        device = self.device
        is_changed = result in self.changed

        def to_device(values: CallValues) -> None:
            known = values.there.get(source)
            if known is None:
                given = values.host[source]
                is_draw = isinstance(given, Draw)
                values.there[result] = given.on_device(self.uniforms) if is_draw else device.upload(given)
            else:
                values.there[result] = known.copy() if is_changed else known

        def to_host(values: CallValues) -> None:
            known = values.host.get(source)
            if values.is_recorded:
                values.there[result] = values.there[source].copy()
            elif known is None:
                values.host[result] = device.download(values.there[source])
            else:
                values.host[result] = known.copy() if is_changed else known

        return to_device if group.side == "device" else to_host

    # ---- kernels

    def _device_kernel(self, group: Group, call: KernelCall) -> Action:
        place, outputs, inputs = self._placing(group), group.outputs, call.inputs
        function = call.contiguous

        def run(values: CallValues) -> None:
            arrays = place(values)
            function(*arrays, *[values.on_device(variable) for variable in inputs])
            values.there.update(zip(outputs, arrays, strict=True))

        return run

    def _host_kernel(self, group: Group, call: KernelCall) -> Action:
        place, outputs, inputs = self._placing(group), group.outputs, call.inputs
        variables, known = (*inputs, *outputs), dict[tuple[Shape, ...], CallsOfShapes | None]()

        def run(values: CallValues) -> None:
            results = place(values)
            operands = [_readable(values.on_host(variable)) for variable in inputs]
            contiguous = all(array.flags.c_contiguous for array in operands)
            function = call.contiguous if contiguous else call.strided
            if call.threaded is not None:
                key = (*map(values.shape, inputs), *(array.shape for array in results))
                if key not in known:
                    known.clear()  # one combination of shapes comes again and again
                    known[key] = call.threaded.for_shapes(dict(zip(variables, key, strict=True)))
                large = known[key]
                if large is not None:
                    function = large if contiguous else call.threaded
            call.run(function, *results, *operands)
            values.host.update(zip(outputs, results, strict=True))

        return run

    # ---- library calls and views

    def _device_library(self, node: Apply) -> Action:
        form = self.placed.forms.get(node)
        if form is None:
            raise CompileError(f"runtime: {node.op} was placed on the device, which has no form of it")
        inputs = tuple(enumerate(node.inputs))
        compute, on_host = form.compute, form.on_host
        results = tuple(enumerate(node.outputs))
        check = self._result_check(node)

        def run(values: CallValues) -> None:
            operands = [values.on_host(v) if place in on_host else values.on_device(v) for place, v in inputs]
            made = compute(operands)
            for place, output in results:
                if isinstance(output.type, TensorType):
                    values.there[output] = check(place, made[place], values)
                else:
                    values.host[output] = made[place]

        return run

    def _result_check(self, node: Apply) -> Callable[[int, Any, CallValues], DeviceArray]:
        """What a library returns must be what the op declares: kernels read it without looking."""
        types = [output.type for output in node.outputs]
        outputs = node.outputs

        def check(place: int, array: Any, values: CallValues) -> DeviceArray:
            type = types[place]
            assert isinstance(type, TensorType)
            shape = values.signature.shapes.get(outputs[place])
            if not type.admits_shape(array.shape) or (shape is not None and shape != array.shape):
                reason = f"the result has shape {array.shape}, and meets {type if shape is None else shape}"
                shown = [variable.type for variable in node.inputs]
                raise ShapeError(describe(node.op.name, shown, reason, node.where))
            return array if array.dtype == type.numpy_dtype else array.astype(type.numpy_dtype)

        return check

    def _host_routine(self, group: Group) -> Action:
        node = group.nodes[0]
        routine = self.program.routines[node]
        places = destroyed_positions(node.op)
        operands = [variable for place, variable in enumerate(node.inputs) if place not in places]
        place = None if places else self._placing(group)

        def run(values: CallValues) -> None:
            results = [_writable(values.on_host(node.inputs[places[0]]))] if place is None else place(values)
            routine(*[values.on_host(variable) for variable in operands], *results)
            values.host.update(zip(node.outputs, results, strict=True))

        return run

    def _host_library(self, node: Apply) -> Action:
        perform = self.program.performers.get(node) or performer(node.op, self.program.threads)
        checks = [ResultCheck(node, place) for place in range(len(node.outputs))]
        destroyed = frozenset(destroyed_positions(node.op))
        may_draw = self._is_sent(node.outputs[-1])

        def run(values: CallValues) -> None:
            operands = [values.on_host(variable) for variable in node.inputs]
            for place in destroyed:
                operands[place] = _writable(operands[place])
            drawn = draw_of(node.op, operands) if may_draw else None
            if drawn is not None:
                values.host.update(zip(node.outputs, drawn, strict=True))
                return
            results = perform(operands)
            for place, (output, result) in enumerate(zip(node.outputs, results, strict=True)):
                value = checks[place](result, values.signature.shapes.get(output))
                shows = node.op.view_map.get(place) or node.op.destroy_map.get(place)
                if isinstance(output.type, TensorType) and not shows:
                    arrays = [one for one in operands if isinstance(one, np.ndarray)]
                    value = detached(value, *arrays)
                values.host[output] = value

        return run

    def _is_sent(self, variable: Variable) -> bool:
        """Whether nothing reads a result but its copy to the device."""
        readers = [group for group in self.program.steps if is_among(variable, group.reads)]
        sent = all(group.kind == "transfer" and group.side == "device" for group in readers)
        return bool(readers) and sent and not is_among(variable, self.program.graph.outputs)

    # ---- checks

    def _own_check(self, group: Group) -> list[Action]:
        node = group.nodes[0]
        if group.kind == "kernel" or not self.program.needs_check(node) or node in self.checked:
            return []
        self.checked.add(node)
        return [self._check(node, None)]

    def _checks_ahead(self, group: Group) -> list[Action]:
        """Before a shared variable changes, the checks of steps that will write to parts of one.

        What they overwrite is not there yet, but has the shape of the shared variable.
        """
        if not self.program.overwrites_lasting(group):
            return []
        found = []
        for later, variable in self.program.memory.ahead.items():
            node = later.nodes[0]
            others = [other for other in node.inputs[1:] if not isinstance(other, Constant)]
            pending = node not in self.checked and node.outputs[0] not in self.known
            if pending and self.known.issuperset(others) and self.program.needs_check(node):
                self.checked.add(node)
                found.append(self._check(node, variable))
        return found

    def _check(self, node: Apply, target: SharedVariable | None) -> Action:
        """The op's own check of its operands: of most of them arrays of the same shapes will do."""
        by_value = type(node.op).check_operands is not Op.check_operands and node.op.family in (
            Family.INDEX,
            Family.CREATION,
        )

        def check(values: CallValues) -> None:
            operands = []
            for place, variable in enumerate(node.inputs):
                source = target if place == 0 and target is not None else variable
                indexes = by_value and place > (1 if node.op.family is Family.INDEX else 0)
                operands.append(values.on_host(source) if indexes else _stand_in(source, values))
            located(node, node.op.check_operands, node, operands)

        return check


def _stand_in(variable: Variable, values: CallValues) -> Any:
    """An array of a variable's shape and dtype that takes no memory; what is no array is itself."""
    if not isinstance(variable.type, TensorType):
        return values.on_host(variable)
    element = np.zeros((), variable.type.numpy_dtype)
    return np.broadcast_to(element, values.shape(variable))


def _choice(node: Apply, there: bool) -> Action:
    """One of two lists of values, by a condition that the host knows."""
    op = node.op
    assert isinstance(op, IfElse)
    condition, branches = node.inputs[0], op.branches(node.inputs)

    def run(values: CallValues) -> None:
        chosen = branches[0 if values.on_host(condition) else 1]
        for output, variable in zip(node.outputs, chosen, strict=True):
            if there and isinstance(output.type, TensorType):
                values.there[output] = values.on_device(variable)
            else:
                values.host[output] = values.on_host(variable)

    return run


def _in_turn(parts: Sequence[Action]) -> Action:
    def run(values: CallValues) -> None:
        for part in parts:
            part(values)

    return run


def _guarded(group: Group, run: Action) -> Action:
    """A step that runs where conditions hold; elsewhere nothing reads its results."""
    results = [output for node in group.nodes for output in node.outputs]

    def guarded(values: CallValues) -> None:
        if not any(
            all(bool(values.on_host(one.scalar)) == one.value for one in path) for path in group.guard
        ):
            return
        for result in results if values.signature.errors else ():
            if result in values.signature.errors:
                raise values.signature.errors[result].with_traceback(None)
        run(values)

    return guarded


def _readable(array: Any) -> Any:
    """What generated kernels can read: elements at multiples of their size."""
    return array if array.flags.aligned else array.copy()


def _writable(array: Any) -> Any:
    """What a step can overwrite: views that NumPy makes read-only are copied."""
    return array.copy() if isinstance(array, np.ndarray) and not array.flags.writeable else array
