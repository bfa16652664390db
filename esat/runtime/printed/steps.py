"""The lines of the driver that run one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.codegen.matmul.lapack import performer
from esat.graph import Apply, Constant, Variable
from esat.graph.op import Array
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.index.basic import Subtensor
from esat.phases.fusing.group import Group
from esat.phases.memory.effects import destroyed_positions
from esat.runtime.entry.checks import ResultCheck, detached, placed
from esat.runtime.entry.shape_rules import located
from esat.runtime.entry.signatures import LateTable
from esat.runtime.printed.writer import Writer, is_tensor, targets_text, tuple_text
from esat.runtime.program import Program, is_fixed_part, is_plain_view

C_CONTIGUOUS = 1
"""The bit of ``ndarray.flags.num``."""


class StepWriter:
    """Writes steps: allocation where a result has no buffer, the call, checks of what it returns."""

    def __init__(self, program: Program, writer: Writer) -> None:
        self.program = program
        self.writer = writer
        self._written = {*program.memory.scratch, *program.memory.fresh, *program.memory.taken}
        self._writable = {*self._written, *program.overwritten}
        self._known = {*program.graph.inputs, *program.shared, *program.value_variables}
        self._checked: set[Apply] = set()
        self._fresh = set(program.memory.fresh)
        self._scratch = set(program.memory.scratch)
        self._leaves = set(program.leaves) - program.overwritten
        self._predicted = {variable for kind, variable in program.record_facts if kind == "shape"}

    def write(self, number: int, group: Group) -> None:
        """The lines of one step."""
        self._write(number, group)
        self._known.update(group.outputs)

    def _write(self, number: int, group: Group) -> None:
        if group.kind == "kernel":
            self._write_outputs(number, group)
            self._write_kernel(number, group)
        elif is_plain_view(group):
            self._write_plain_view(group.nodes[0])
        elif is_fixed_part(group):
            self._write_part(number, group.nodes[0])
        elif group.nodes[0] in self.program.routines:
            self._write_operand_check(group.nodes[0])
            self._write_routine(number, group)
        else:
            self._write_operand_check(group.nodes[0])
            self._write_library(number, group.nodes[0])

    # ---- where results go

    def _write_outputs(self, number: int, group: Group) -> None:
        names = self.writer.names
        if self.program.is_late(group):
            self._write_late_lookup(number, group)
        for output in group.outputs:
            if output in self.program.memory.taken:
                self.writer.line(f"{names[output]} = {names[self.program.memory.taken[output]]}")
            if output in self._fresh:
                made = f"{self.writer.fact(('new', output))}()"
                place = self.program.result_places.get(output)
                if place is not None:
                    made += f" if out is None else {self.writer.bind('placed', placed)}(out[{place}])"
                self.writer.line(f"{names[output]} = {made}")

    def _write_late_lookup(self, number: int, group: Group) -> None:
        """Shapes that only this point of the call can know: check them and find the results'."""
        writer = self.writer
        outputs = [output for output in group.outputs if output not in self._scratch]
        inputs = [variable for variable in group.inputs if not isinstance(variable, Constant)]
        call = self.program.kernels.get(group)
        threaded = None if call is None else call.threaded
        table = LateTable(group, inputs, outputs, threaded)
        known = writer.bind(f"late_{number}", table.records.get)
        add = writer.bind(f"new_late_{number}", table.add)
        writer.line(f"key = {tuple_text([f'{writer.names[variable]}.shape' for variable in inputs])}")
        large = "_" if threaded is None else writer.fact(("large", group.outputs[0]))
        targets = [*(writer.fact(("new", output)) for output in outputs), large]
        writer.line(f"{targets_text(targets)} = {known}(key) or {add}(key)")

    # ---- kernels

    def _write_kernel(self, number: int, group: Group) -> None:
        call = self.program.kernels[group]
        function = self.writer.bind(f"kernel_{number}", call.contiguous)
        condition = self._contiguity(call.inputs)
        strided = self.writer.bind(f"kernel_{number}_strided", call.strided) if condition else ""
        if call.threaded is not None:
            threaded = self.writer.bind(f"kernel_{number}_in_threads", call.threaded)
            large = self.writer.fact(("large", group.outputs[0]))
            function, strided = f"({large} or {function})", f"({threaded} if {large} else {strided})"
        if group.outputs[0] in self.program.fitted:
            # Before threads: one that has a variant of its own runs it, in any number of threads.
            function = f"({self.writer.fact(('kernel', group.outputs[0]))} or {function})"
        if condition:
            function = f"({function} if {condition} else {strided})"
        outputs = [self.writer.names[output] for output in group.outputs]
        arguments = ", ".join([*outputs, *map(self.writer.operand, call.inputs)])
        if call.instead is None:
            self.writer.line(f"{function}({arguments})")
            return
        instead = self.writer.bind(f"instead_{number}", call.instead)
        self.writer.line("try:")
        self.writer.line(f"    {function}({arguments})")
        self.writer.line("except IndexError:")
        self.writer.line(f"    {instead}({arguments})")

    def _contiguity(self, inputs: Sequence[Variable]) -> str:
        """The condition under which all inputs are C-contiguous; empty where they always are."""
        always = self._written | self.program.overwritten | set(self.program.value_variables)
        parts = ["flags"] if self._leaves.intersection(inputs) else []
        parts += [
            f"{self.writer.names[variable]}.flags.num"
            for variable in inputs
            if variable not in self._leaves and variable not in always and not isinstance(variable, Constant)
        ]
        return f"{' & '.join(parts)} & {C_CONTIGUOUS}" if parts else ""

    # ---- library calls and views

    def _write_operand_check(self, node: Apply) -> None:
        if self.program.needs_check(node) and node not in self._checked:
            self._write_check(node, [self.writer.operand(variable) for variable in node.inputs])

    def _write_check(self, node: Apply, operands: Sequence[str]) -> None:
        check = self.writer.bind(f"check_{self.writer.names[node.outputs[0]]}", operand_check(node))
        self.writer.line(f"{check}({', '.join(operands)})")
        self._checked.add(node)

    def write_checks_ahead(self, group: Group) -> None:
        """Before a shared variable changes, check the operands of steps that will write to parts of one.

        What they overwrite is not there yet, but has the shape of the shared variable.
        """
        if not self.program.overwrites_lasting(group):
            return
        for later, variable in self.program.memory.ahead.items():
            node = later.nodes[0]
            pending = node not in self._checked and node.outputs[0] not in self._known
            others = [other for other in node.inputs[1:] if not isinstance(other, Constant)]
            if pending and self._known.issuperset(others) and self.program.needs_check(node):
                operands = [self.writer.names[variable], *map(self.writer.operand, node.inputs[1:])]
                self._write_check(node, operands)

    def _write_guards(self, node: Apply) -> None:
        """What a library step overwrites, and may not, is copied first: views that NumPy makes read-only."""
        for place in destroyed_positions(node.op):
            variable = node.inputs[place]
            if variable not in self._writable and is_tensor(variable):
                name = self.writer.names[variable]
                self.writer.line(f"if not {name}.flags.writeable:")
                self.writer.line(f"    {name} = {name}.copy()")
            self._writable.update(node.outputs)

    def _write_routine(self, number: int, group: Group) -> None:
        node = group.nodes[0]
        names = self.writer.names
        routine = self.writer.bind(f"routine_{number}", self.program.routines[node])
        places = destroyed_positions(node.op)
        if places:
            self._write_guards(node)
            self.writer.line(f"{names[node.outputs[0]]} = {names[node.inputs[places[0]]]}")
        else:
            self._write_outputs(number, group)
        operands = [self.writer.operand(v) for place, v in enumerate(node.inputs) if place not in places]
        results = [names[output] for output in node.outputs]
        self.writer.line(f"{routine}({', '.join([*operands, *results])})")

    def _write_plain_view(self, node: Apply) -> None:
        """Axes permuted, dropped and inserted by the array's own methods."""
        op = node.op
        assert isinstance(op, DimShuffle)
        text = self.writer.operand(node.inputs[0])
        order = (*op.dropped, *(int(axis) for axis in op.order if axis != "x"))
        if order != tuple(range(op.input_rank)):
            text += f".transpose({', '.join(map(str, order))})"
        index = ["0"] * len(op.dropped) + ["None" if axis == "x" else ":" for axis in op.order]
        if set(index) != {":"}:
            text += f"[{', '.join([*index, '...'])}]"
        self.writer.line(f"{self.writer.names[node.outputs[0]]} = {text}")

    def _write_part(self, number: int, node: Apply) -> None:
        """A part by numbers that are known; where they are out of range, the op says so."""
        op = node.op
        assert isinstance(op, Subtensor)
        name, source = self.writer.names[node.outputs[0]], self.writer.operand(node.inputs[0])
        perform = self.writer.bind(f"perform_{number}", op.perform)
        self.writer.line("try:")
        self.writer.line(f"    {name} = {source}[{', '.join([*map(str, op.entries), '...'])}]")
        self.writer.line("except IndexError:")
        self.writer.line(f"    ({name},) = {perform}(({source},))")

    def _performer(self, node: Apply) -> Any:
        return self.program.performers.get(node) or performer(node.op, self.program.threads)

    def _write_library(self, number: int, node: Apply) -> None:
        self._write_guards(node)
        perform = self.writer.bind(f"perform_{number}", self._performer(node))
        results = [self.writer.names[output] for output in node.outputs]
        operands = tuple_text([self.writer.operand(variable) for variable in node.inputs])
        self.writer.line(f"{targets_text(results)} = {perform}({operands})")
        for place, output in enumerate(node.outputs):
            if is_tensor(output):
                self._write_result_check(node, place, output)
                if not node.op.view_map.get(place) and not node.op.destroy_map.get(place):
                    self._write_separation(node, place, output)

    def _write_result_check(self, node: Apply, place: int, output: Variable) -> None:
        """What perform returns must be what it declares: kernels read it without looking."""
        writer, name = self.writer, self.writer.names[output]
        array, dtype = writer.bind("ndarray", np.ndarray), writer.dtype(output)
        check = writer.bind(f"check_{name}", ResultCheck(node, place))
        unlike = f"type({name}) is not {array} or {name}.dtype is not {dtype}"
        if output in self._predicted:
            shape = writer.fact(("shape", output))
            writer.line(f"if {unlike} or {name}.shape != {shape}:")
            writer.line(f"    {name} = {check}({name}, {shape})")
        elif any(size is not None for size in output.tensor_type.shape):
            writer.line(f"{name} = {check}({name}, None)")
        else:
            writer.line(f"if {unlike} or {name}.ndim != {output.tensor_type.ndim}:")
            writer.line(f"    {name} = {check}({name}, None)")

    def _write_separation(self, node: Apply, place: int, output: Variable) -> None:
        """A result that is no declared view must not show the memory of an operand all the same."""
        name = self.writer.names[output]
        others = [
            self.writer.operand(variable) for variable in dict.fromkeys(node.inputs) if is_tensor(variable)
        ]
        others += [self.writer.names[other] for other in node.outputs[:place] if is_tensor(other)]
        if others:
            same = " or ".join(f"{name} is {other}" for other in others)
            self.writer.line(f"if {name}.base is not None or {same}:")
            self.writer.line(
                f"    {name} = {self.writer.bind('detached', detached)}({', '.join([name, *others])})"
            )


def operand_check(node: Apply) -> Callable[..., None]:
    """The op's own check of run-time operands, as a function of them."""

    def check(*operands: Array | Any) -> None:
        located(node, node.op.check_operands, node, operands)

    return check
