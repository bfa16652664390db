"""Calls of a program with a device, as an Executable has them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from esat.gpu.driver import DeviceDriver
from esat.gpu.steps import PlacedProgram
from esat.profile import StepProfile
from esat.records import record
from esat.runtime.calls import Calls, signature_table
from esat.runtime.checks import InputCheck
from esat.runtime.dispatch import Dispatch
from esat.runtime.driver import Driver, StepWatch, title
from esat.runtime.signatures import SignatureTable


@record(frozen=True, eq=False)
class DeviceCalls(Calls):
    """A program with a device that is ready to be called.

    Attributes
    ----------
    placed
        The program, and where its steps run.
    """

    placed: PlacedProgram

    def timed(self, steps: Sequence[StepProfile]) -> Driver:
        """A driver that adds the time of each step to its record, and waits for the device after each."""
        return _driver(self.placed, self.checks, self.table, steps)

    def watched(self, watch: StepWatch) -> Driver:
        return _driver(self.placed, self.checks, self.table, watch=watch)


def calls_of(placed: PlacedProgram) -> DeviceCalls:
    """Calls of a placed program."""
    program = placed.program
    checks = tuple(InputCheck(place, variable) for place, variable in enumerate(program.graph.inputs))
    table = signature_table(program, checks)
    driver = _driver(placed, checks, table)
    return DeviceCalls(program, checks, table, driver, Dispatch(), placed)


_numbers = itertools.count(1)


def _driver(
    placed: PlacedProgram,
    checks: Sequence[InputCheck],
    table: SignatureTable,
    profile: Sequence[StepProfile] | None = None,
    watch: StepWatch | None = None,
) -> Driver:
    call = DeviceDriver(placed, checks, table, profile, watch)
    return Driver(call, source_of(placed), f"<esat device driver {next(_numbers)}>", ())


def source_of(placed: PlacedProgram) -> str:
    """The steps as text: a line each, with its side."""
    lines = [
        f"{number}: on the {group.side}: {title(group)}" for number, group in enumerate(placed.program.steps)
    ]
    return "\n".join(["# steps", *lines]) + "\n"
