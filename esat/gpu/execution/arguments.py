"""What a call is given: arguments of either side, shared variables, arrays to put results into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esat.errors import InputError
from esat.gpu.device import DeviceArray
from esat.gpu.execution.resident import array_of, shape_of
from esat.gpu.execution.steps import PlacedProgram
from esat.gpu.execution.values import CallValues, ShapeSignature, Signatures
from esat.graph import SharedVariable, TensorType, Variable
from esat.phases.transfer import Side
from esat.runtime.entry.checks import InputCheck, OutCheck, given_away, input_name
from esat.runtime.entry.checks import placed as placed_array
from esat.runtime.entry.shape_rules import Shape


class Arguments:
    """Takes what the calls of a placed program are given.

    Parameters
    ----------
    placed
        The program.
    checks
        One an input.
    signatures
        What shapes decide.
    """

    def __init__(self, placed: PlacedProgram, checks: Sequence[InputCheck], signatures: Signatures) -> None:
        self.placed = placed
        self.program = placed.program
        self.device = placed.device
        self._checks = tuple(checks)
        self._signatures = signatures
        self._inputs = tuple(placed.program.graph.inputs)
        self._dtypes = {
            variable: variable.type.numpy_dtype
            for variable in self._inputs
            if isinstance(variable.type, TensorType)
        }
        self._renewed_there = {
            variable for variable, value in placed.new_values if placed.made_on.get(value) != "host"
        }
        self._read = readers(placed)
        self._outputs = placed.outputs
        self._check_out = OutCheck([output.type for output in self._outputs])

    def place(
        self, arguments: tuple[Any, ...], host: dict[Variable, Any], there: dict[Variable, DeviceArray]
    ) -> None:
        """Put each argument where it is: among the values of the host or of the device."""
        for variable, check, argument in zip(self._inputs, self._checks, arguments, strict=True):
            array = None if isinstance(argument, np.ndarray) else self._admit(variable, check, argument)
            if array is not None:
                there[variable] = array
            elif type(argument) is np.ndarray and argument.dtype == self._dtypes.get(variable):
                host[variable] = argument
            else:
                host[variable] = check(argument)

    def _admit(self, variable: Variable, check: InputCheck, argument: Any) -> DeviceArray | None:
        """An argument that is on the device already, as its type wants it; None for one that is not."""
        array = self.device.admit(argument)
        if array is None:
            return None
        role = f"{input_name(check.position, variable)} takes a {variable.type}"
        if not isinstance(variable.type, TensorType):
            raise InputError(f"{role}, not an array on the device")
        wanted = variable.type.numpy_dtype
        if array.dtype != wanted:
            if not np.can_cast(array.dtype, wanted, "safe"):
                raise InputError(f"{role}, not a device array of dtype {array.dtype} and shape {array.shape}")
            array = array.astype(wanted)
        return array.copy() if self.device.address(array) % array.dtype.itemsize else array

    def signature(self, host: Mapping[Variable, Any], there: Mapping[Variable, Any]) -> ShapeSignature:
        """What the shapes of arguments and shared variables decide.

        Raises
        ------
        InputError
            When an input's rank or static size differs.
        ShapeError
            When sizes do not fit each other.
        """
        key: list[Shape] = []
        for variable in self.program.leaves:
            if isinstance(variable, SharedVariable):
                key.append(shape_of(variable))
            else:
                array = host.get(variable)
                key.append(tuple((there[variable] if array is None else array).shape))
        for variable, check, shape in zip(self._inputs, self._checks, self._input_shapes(key), strict=True):
            if shape is not None and not variable.tensor_type.admits_shape(shape):
                raise check.shape_error(shape)
        return self._signatures.of(tuple(key))

    def _input_shapes(self, key: Sequence[Shape]) -> list[Shape | None]:
        shapes = dict(zip(self.program.leaves, key, strict=True))
        return [shapes.get(variable) for variable in self._inputs]

    def take_shared(self, values: CallValues) -> None:
        """Take the values of shared variables to the sides that read them, or overwrite them."""
        for variable in self.program.shared:
            sides = self.placed.written.get(variable, frozenset())
            if "host" in sides:
                values.host[variable] = variable.own_value()
            elif not isinstance(variable.type, TensorType):
                values.host[variable] = variable.look()
            elif "device" in sides:
                values.there[variable] = array_of(variable, self.device)
            else:
                read = self._read.get(variable, ())
                if "device" in read or variable in self._renewed_there:
                    values.there[variable] = array_of(variable, self.device)
                if "host" in read or not read:
                    values.host[variable] = variable.look()

    def take_gifts(self, values: CallValues) -> None:
        """Make sure that arguments that will be overwritten can be, and are no part of any other argument."""
        for variable, sides in self.placed.written.items():
            if isinstance(variable, SharedVariable) or not isinstance(variable.type, TensorType):
                continue
            if variable in values.there:
                array = values.there[variable]
                others = [one for other, one in values.there.items() if other is not variable]
                shared = any(self.device.arrays.may_share_memory(array, other) for other in others)
                if shared or not array.flags.c_contiguous:
                    values.there[variable] = array.copy()
            elif "host" in sides:
                others = [
                    one
                    for other, one in values.host.items()
                    if other is not variable and isinstance(one, np.ndarray)
                ]
                values.host[variable] = given_away(values.host[variable], *others)

    def take_out(self, out: Any, values: CallValues) -> None:
        """Check arrays given for outputs before anything has happened, and compute in those that can be."""
        known = [values.signature.shapes.get(output) for output in self._outputs]
        arrays = out if isinstance(out, tuple | list) else ()
        others = [one for one in values.host.values() if isinstance(one, np.ndarray)]
        others += [variable.look() for variable in self.program.shared if not variable.is_elsewhere]
        on_host = [self.device.is_array(array) for array in arrays]
        stand_ins = [
            np.empty(array.shape, array.dtype) if there else array
            for array, there in zip(arrays, on_host, strict=True)
        ]
        self._check_out(tuple(stand_ins) if arrays else out, known, others)
        for base, place in self.program.result_places.items():
            array = arrays[place]
            if self.device.is_array(array):
                overlaps = any(
                    self.device.arrays.may_share_memory(array, other) for other in values.there.values()
                )
                if overlaps:
                    raise InputError(f"out: the array for output {place} shares memory with an argument")
                if array.flags.c_contiguous:
                    values.given[base] = array
            else:
                values.given[base] = placed_array(array)


def readers(placed: PlacedProgram) -> dict[Variable, set[Side]]:
    """The sides that read each variable."""
    found: dict[Variable, set[Side]] = {}
    for group in placed.program.steps:
        for variable in group.inputs:
            found.setdefault(variable, set()).add(group.side)
        for path in group.guard:
            for condition in path:
                found.setdefault(condition.scalar, set()).add("host")
    return found
