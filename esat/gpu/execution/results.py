"""What a call returns, and the new values of shared variables that it stores."""

from __future__ import annotations

from typing import Any

import numpy as np

from esat.gpu.execution.resident import keep_there
from esat.gpu.execution.steps import PlacedProgram
from esat.gpu.execution.values import CallValues
from esat.graph import SharedVariable, TensorType, Variable
from esat.phases.transfer import Side
from esat.runtime.entry.checks import copied


class Results:
    """Hands out the results of a placed program's calls."""

    def __init__(self, placed: PlacedProgram) -> None:
        self.placed = placed
        self.program = placed.program
        self.device = placed.device
        self._outputs = placed.outputs
        self._new_values = placed.new_values
        self.copied = self._find_copied()

    def _find_copied(self) -> tuple[bool, ...]:
        """Which outputs and new values show memory that someone else may see."""
        given: set[Variable] = set()
        found = []
        for number, output in enumerate(self.program.graph.outputs):
            roots = self.program.roots(output)
            found.append(not self.program.is_owned(output) or not given.isdisjoint(roots))
            place = number - len(self._outputs)
            if place < 0 or self.program.is_in_place(self._new_values[place][0], output) == "never":
                given |= roots
        return tuple(found)

    def returned(self, values: CallValues, out: Any) -> tuple[Any, ...]:
        results = []
        for place, output in enumerate(self._outputs):
            if out is not None:
                results.append(self._fill(out[place], output, values))
            elif not isinstance(output.type, TensorType):
                value = values.on_host(output)
                results.append(copied(value) if self.copied[place] else value)
            elif self.placed.results == "device":
                in_place = output in values.there
                array = values.on_device(output)
                results.append(array.copy() if in_place and self.copied[place] else array)
            else:
                in_place = output in values.host
                array = values.on_host(output)
                results.append(array.copy() if in_place and self.copied[place] else array)
        return tuple(results)

    def _fill(self, given: Any, output: Variable, values: CallValues) -> Any:
        """Put a result into the array that the caller gave for it."""
        if self.device.is_array(given):
            array = values.on_device(output)
            if array is not given:
                given[...] = array
        else:
            host = values.on_host(output)
            if host is not given:
                np.copyto(given, host)
        return given

    def store_in_place(self, values: CallValues) -> None:
        """Copy new values over the old ones, on the device, so that these stay where they are."""
        stored = []
        for place, (variable, value) in enumerate(self._new_values, len(self._outputs)):
            old, new = values.there[variable], values.on_device(value)
            if new is not old:
                stored.append((old, new.copy() if self.copied[place] else new))
        for old, new in stored:
            old[...] = new

    def store(self, values: CallValues) -> None:
        """Store new values of shared variables: all are there before the first one is stored."""
        stored: list[tuple[SharedVariable, Side, Any]] = []
        for place, (variable, value) in enumerate(self._new_values, len(self._outputs)):
            there = value in values.there and (
                self.placed.made_on.get(value) == "device" or value not in values.host
            )
            array = values.there[value] if there else values.on_host(value)
            old = values.there.get(variable) if there else values.host.get(variable)
            if array is old and self.program.is_in_place(variable, value) != "never":
                continue
            if self.copied[place]:
                array = array.copy() if there else copied(array)
            stored.append((variable, "device" if there else "host", array))
        for variable, side, array in stored:
            if side == "device":
                keep_there(variable, self.device, array)
            else:
                variable.give_value(array)
