"""What calls of a program go through: checks of the inputs, records of their shapes, and the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from esat.profile import StepProfile
from esat.records import record
from esat.runtime.checks import InputCheck
from esat.runtime.direct import may_be_direct
from esat.runtime.driver import Driver, make_driver
from esat.runtime.program import Program
from esat.runtime.signatures import Leaf, SignatureTable
from esat.runtime.variants import FIRST_ALONE, FurtherPrograms


@record(frozen=True, eq=False)
class Calls:
    """A program that is ready to be called.

    Attributes
    ----------
    program
        What runs.
    checks
        One an input.
    table
        What is known of input shapes that were seen.
    driver
        Runs the program, without measuring it.
    further
        Further programs for sizes that arrive.
    """

    program: Program
    checks: tuple[InputCheck, ...]
    table: SignatureTable
    driver: Driver
    further: FurtherPrograms

    @property
    def may_be_direct(self) -> bool:
        """Whether native code may take over calls that come often."""
        return may_be_direct(self.program)

    def timed(self, steps: Sequence[StepProfile]) -> Driver:
        """A driver that adds the time of each step to its record."""
        return make_driver(self.program, self.table, self.checks, steps, bool(self.further))

    def attach(self, first: Callable[..., Any]) -> None:
        """Tell the further programs what runs the first one."""
        if self.further:
            self.further.attach(self.program.graph.inputs, self.program.leaves, first, self.table.forget)


def drive(program: Program, further: FurtherPrograms = FIRST_ALONE) -> Calls:
    """Write and compile the driver of a program.

    Parameters
    ----------
    program
        Steps with their code, and where results live.
    further
        Further programs for sizes that arrive.
    """
    checks = tuple(InputCheck(place, variable) for place, variable in enumerate(program.graph.inputs))
    table = signature_table(program, checks)
    if further:
        table.choose = further.choose
    return Calls(program, checks, table, make_driver(program, table, checks, variants=bool(further)), further)


def signature_table(program: Program, checks: Sequence[InputCheck]) -> SignatureTable:
    """What a program will know of the shapes of its inputs, each of which has a check."""
    by_input = dict(zip(program.graph.inputs, checks, strict=True))
    return SignatureTable(
        [Leaf(variable, by_input.get(variable)) for variable in program.leaves],
        program.memory,
        program.graph.toposort(),
        frozenset(program.facts.values),
        program.record_facts,
        program.threaded,
        program.fitted,
        program.lazy,
    )
