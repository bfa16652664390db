"""What calls of a program go through: checks of the inputs, records of their shapes, and the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from esat.base.records import record
from esat.runtime.entry.checks import InputCheck
from esat.runtime.entry.dispatch import Dispatch, Run
from esat.runtime.entry.signatures import Leaf, SignatureTable
from esat.runtime.entry.variants import Variants
from esat.runtime.function_profile import StepProfile
from esat.runtime.native.direct import NativeFunctions, may_be_direct
from esat.runtime.printed.driver import Driver, StepWatch, make_driver
from esat.runtime.program import Program
from esat.runtime.program_in_blocks import InBlocks

STEP_SECONDS = 3.0e-6
"""What a step takes longer in the driver than in a native function. Measured: 3.4 over the 66 steps of a
vector autoregression of PyMC's, on a shared server."""


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
    dispatch
        Decides what runs for sizes that arrive.
    variants, in_blocks, native
        What it decides between; None for those that there are not.
    """

    program: Program
    checks: tuple[InputCheck, ...]
    table: SignatureTable
    driver: Driver
    dispatch: Dispatch
    variants: Variants | None
    in_blocks: InBlocks | None
    native: NativeFunctions | None

    def timed(self, steps: Sequence[StepProfile]) -> Driver:
        """A driver that adds the time of each step to its record."""
        return make_driver(self.program, self.table, self.checks, steps, bool(self.dispatch))

    def watched(self, watch: StepWatch) -> Driver:
        """A driver that shows each step's operands and results."""
        return make_driver(self.program, self.table, self.checks, watch=watch)

    def attach(self, use: Callable[[Run], None]) -> None:
        """Tell what decides about calls whom to tell of native functions."""
        inputs, leaves = self.program.graph.inputs, self.program.leaves
        if self.variants is not None:
            more = 0.0 if self.native is None else STEP_SECONDS * len(self.program.steps)
            self.variants.attach(inputs, leaves, self.table.forget, more)
        if self.in_blocks is not None:
            self.in_blocks.attach(inputs, leaves)
        if self.native is not None:
            self.native.use = use


def drive(program: Program, variants: Variants | None = None, in_blocks: InBlocks | None = None) -> Calls:
    """Write and compile the driver of a program.

    Parameters
    ----------
    program
        Steps with their code, and where results live.
    variants
        Programs that other rules make; None for none.
    in_blocks
        The program with layers over rows in blocks; None where it has no such layers.
    """
    checks = tuple(InputCheck(place, variable) for place, variable in enumerate(program.graph.inputs))
    table = signature_table(program, checks)
    is_native = may_be_direct(program)
    dispatches = is_native or variants is not None or in_blocks is not None
    driver = make_driver(program, table, checks, dispatches=dispatches)
    native = NativeFunctions(program, table, driver.call) if is_native else None
    dispatch = Dispatch((variants, in_blocks, native), native)
    if dispatch:
        table.begin = dispatch.begin
    return Calls(program, checks, table, driver, dispatch, variants, in_blocks, native)


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
