"""Executable: a compiled graph, called like a function.

Programs that are found on disk are Executables, too, in processes without the compiler: it is imported where
something is compiled, or asked of what was.
"""

from __future__ import annotations

import os
import reprlib
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np

from esat.base.interrupts import is_from_handler
from esat.base.readable_methods import readable
from esat.errors import CallError, EsatError, InputError, OptimizerError
from esat.graph.calls.arguments import flag_of
from esat.graph.calls.callers import hide_own_frames

if TYPE_CHECKING:
    from esat.graph import SharedVariable, Variable
    from esat.optimize.equality.report import Measured
    from esat.phases.fusing.group import Group
    from esat.runtime.entry.calls import Calls
    from esat.runtime.entry.variants import Variant
    from esat.runtime.entry.written_sizes import WrittenSizes
    from esat.runtime.function_profile import Profile
    from esat.runtime.invariants import KeptValue
    from esat.runtime.native.c_entry import CEntry
    from esat.runtime.printed.driver import Driver

Results: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""What type checkers take the results of a call for: an array, which may be unpacked as the tuple may be."""


@runtime_checkable
class Chooser(Protocol):
    """Stands in front of a program, and may run another one."""

    @property
    def programs(self) -> Mapping[Any, Executable | None]:
        """What was decided so far -> the program that runs for it; None for the one behind it."""

    def in_front_of(self, first: Callable[..., Any], /) -> Callable[..., Any]:
        """What runs a program for the arguments of a call; ``first`` runs the one behind it."""


class Executable:
    """A compiled graph.

    Called with one argument an input, it returns the output's array, or a tuple of arrays when the
    graph has several outputs or none, and sets the shared variables that the graph updates: all new
    values are computed from old ones. Rank-0 outputs are arrays of rank 0.

    Arguments are NumPy arrays of the input's dtype and rank, in any memory layout. Python numbers,
    lists, and arrays of other dtypes are taken where the conversion loses nothing. Arguments are
    never changed, and outputs never share memory with arguments, shared variables or each other. Only
    donated arguments may be overwritten, and outputs may then live in their memory.

    New values of shared variables are written into the old storage where all steps that read the old
    values come first. A call that fails leaves shared arrays as they were; states of random generators
    may have advanced.

    With a device (``Mode(device=...)``) arguments may also be arrays there, which are not copied; if one is,
    outputs are arrays of cupy. See docs/gpu.md.

    Several threads may call one executable; with updates, one call runs at a time. While it runs, no
    other executable should read the variables that it updates.

    Attributes
    ----------
    graph
        The graph that runs: optimized, composite ops expanded.
    optimized
        The optimized graph before that; ``graph`` itself where nothing was expanded.
    report
        What was gained, and what the optimizer did, where it left a report.
    measured
        Times of calls beside those of the graph as written, once :func:`esat.compare_times` has taken them.
    profile
        Times of compilation, and of calls where they are measured.
    again
        A function of a module and its arguments, which compile the same again: how copies are made, here or
        in another process, where machine code comes from the cache. None where that is not possible.
    entry
        The function of the inputs' arrays that a call runs now: the driver's, later a native one. Its errors
        have no user's lines yet, see :func:`located_error`.

    Parameters
    ----------
    calls
        The program, its input checks, its records by shapes and its driver.
    profile
        Where compilation times stand and run times go.

    Raises (when called)
    --------------------
    InputError
        For a wrong number of arguments, or one of the wrong dtype, rank or size.
    ShapeError
        For sizes that do not fit each other; the message names the op and the user's line.
    """

    def __init__(self, calls: Calls, profile: Profile | None = None) -> None:
        from esat.runtime.function_profile import Profile, StepProfile
        from esat.runtime.printed.driver import title

        self._calls = calls
        self._program = calls.program
        self.graph = self.optimized = calls.program.graph
        self._report: Any = None
        self.measured: Measured | None = None
        self.again: tuple[Callable[..., Executable], tuple[Any, ...]] | None = None
        self.profile = profile if profile is not None else Profile()
        self.profile.nodes_after = len(self.graph)
        self.profile.steps = [StepProfile(title(group), len(group.nodes)) for group in self.steps]
        self._timed_driver: Driver | None = None
        self._chooser: Chooser | None = None
        calls.attach(self._replacing())
        self._use(calls.driver)

    def __call__(self, *arguments: Any, **named: Any) -> Results:
        """Run the program; see the class.

        Parameters
        ----------
        arguments
            One array an input.
        named
            The arrays of inputs that come after them, by the inputs' names.
        out
            An array, or one an output where there are several, to write the outputs into; it is returned.
            It has the output's dtype and shape, and shares no memory with arguments, shared variables or
            another of them.
        """
        try:
            if named:
                return cast(Results, self._run_named(arguments, named))
            return self.entry(*arguments)  # type: ignore[no-any-return] # a cast is a call, here of all places
        except Exception as error:
            located = located_error(self, error)
            if isinstance(error, EsatError):
                hide_own_frames(error)
            if located is error:
                raise
            raise located from error

    def run(self, *arguments: Any, out: tuple[Any, ...] | None = None) -> Any:
        """Run the program in place of another of the same inputs, with the arguments that it has admitted.

        Results need not stand in the arrays given: where they do not, the caller copies them.
        """
        try:
            return self.entry(*arguments) if out is None else self.entry(*arguments, out=out)
        except Exception as error:
            located = located_error(self, error)
            if located is error:
                raise
            raise located from error

    def _run_named(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        out = named.pop("out", None)
        if named:
            from esat.runtime.entry.checks import in_order

            arguments = in_order(self.graph.inputs, arguments, named)
        return self.entry(*arguments) if out is None else self._run_into(arguments, out)

    @property
    def _results(self) -> int:
        """How many results a call returns."""
        return len(self.graph.outputs) - len(self._program.updated)

    def _run_into(self, arguments: tuple[Any, ...], out: Any) -> Any:
        single = self._results == 1
        given = (out,) if single else tuple(out)
        results = self.entry(*arguments, out=given)
        for array, result in zip(given, (results,) if single else results, strict=True):
            if result is not array:
                if result.shape != array.shape:
                    raise InputError(f"out: an output of shape {result.shape} does not fit {array.shape}")
                np.copyto(array, result)
        return out if single else given

    @property
    def report(self) -> Any:
        """What was gained and what the optimizer did; None where it left no report."""
        measured = self.measured
        if measured is None and self.profile.calls:
            from esat.optimize.equality.report import Measured

            measured = Measured(self.profile.calls, self.profile.typical_call_seconds)
        if measured is None or self._report is None:
            return self._report
        return replace(self._report, measured=measured)

    @report.setter
    def report(self, report: Any) -> None:
        self._report = report

    def ask_of_sizes(self, written: WrittenSizes) -> None:
        """Let shapes that come for the first time fit the graph as it was written, too."""
        inputs, shared = self._calls.program.graph.inputs, self._calls.program.shared

        def ask(given: Mapping[Variable, tuple[int, ...]]) -> None:
            written.require(
                [given.get(one) for one in inputs], {one: given[one] for one in shared if one in given}
            )

        self._calls.table.written = ask

    def c_entry(self, *arguments: Any) -> CEntry:
        """The program as a C function for arguments of these shapes, which is called without Python.

        Parameters
        ----------
        arguments
            One array an input, as for a call: the program is called with them once.

        Returns
        -------
        :class:`~esat.runtime.native.c_entry.CEntry`
            Its ``address``, and the ``density_address`` and ``mapping_address`` that samplers take.

        Raises
        ------
        CallError
            Where a step needs Python, or the program reads shared variables.

        Examples
        --------
        >>> import numpy as np, esat
        >>> x = esat.vector("x")
        >>> value = -0.5 * (x**2).sum()
        >>> entry = esat.compile(esat.Graph([x], [value, esat.grad(value, x)])).c_entry(np.zeros(3))
        >>> number, gradient = np.zeros(()), np.zeros(3)
        >>> entry([np.array([1.0, 2.0, 3.0])], [number, gradient])
        0
        >>> number, gradient
        (array(-7.), array([-1., -2., -3.]))
        """
        self(*arguments)
        return self._c_entry(arguments)

    def _c_entry(self, arguments: Sequence[Any]) -> CEntry:
        """The C function for arguments that the program was called with."""
        from esat.runtime.native.c_entry import c_entry

        return c_entry(self._calls, arguments)

    def measure(self, on: bool = True) -> None:
        """Switch measuring of calls and steps on or off; ``profile`` adds up what is measured.

        Raises
        ------
        CallError
            For anything but True and False: calls are measured as they come, with arguments of their own.
        """
        on = flag_of("measure", "on", on)
        if on and self._timed_driver is None:
            self._timed_driver = self._calls.timed(self.profile.steps)
        self._use(self._timed_driver if on and self._timed_driver is not None else self._calls.driver)

    def predicted_seconds(self) -> tuple[float | None, ...]:
        """What the cost model says of each step: seconds of a call, None for a step on a device.

        At the sizes that came last among those not seen before, and for as many threads as a measured step
        ran in; where there was no call, axes of unknown size count as the model expects them.
        """
        from esat.extract.prices.cost import CostModel
        from esat.extract.prices.machine import machine_profile
        from esat.phases.fusing.price import NO_SHAPES, group_seconds

        table = self._calls.table
        known = next(reversed(tuple(table.records)), None)
        shapes = NO_SHAPES if known is None else table.shapes(known)
        return tuple(
            group_seconds(group, CostModel(machine_profile().in_threads(step.threads)), shapes)
            if group.side == "host"
            else None
            for group, step in zip(self.steps, self.profile.steps, strict=True)
        )

    def source(self) -> str:
        """What runs, as text.

        The driver, which is Python; each kernel, and its variant for several threads; what the driver calls
        for other steps; the native functions that frequent calls have led to, step by step; and the LLVM text
        of generated functions that these call, as for small matrices. What depends on sizes is told for those
        that calls have had. ``variants``, ``in_blocks`` and ``placements`` are programs with texts of their
        own.
        """
        from esat.runtime.listing import listing

        return listing(self._calls)

    @readable
    def explain(self, limit: int = 3, share: float = 0.01) -> Any:
        """Why the program is what it is: for each part, up to ``limit`` forms that lost, and by how much.

        Printed it is text, which leaves out parts and differences below a ``share`` of the whole time; its
        ``parts`` are the data. Values that a line of the user's assigns to one name go by that name.

        Raises
        ------
        OptimizerError
            When the graph was not optimized by equality saturation.
        CallError
            For a limit that is no whole number.
        """
        if not isinstance(limit, int | np.integer):
            raise CallError(f"explain: limit is an integer, not {limit!r}")
        if self.report is None:
            raise OptimizerError("nothing is known of how this program was chosen")
        return self.report.explain(limit, share)

    @property
    def steps(self) -> tuple[Group, ...]:
        """The steps of a call, in order."""
        return self._program.steps

    @cached_property
    def overwrites(self) -> Mapping[Variable, Variable]:
        """Result -> what it is written over: an operand that nobody needs any more."""
        found = dict(self._program.memory.taken)
        for node in self.graph.toposort():
            for place, positions in node.op.destroy_map.items():
                found.update((node.outputs[place], node.inputs[position]) for position in positions)
        return found

    @property
    def in_blocks(self) -> Executable | None:
        """The program that takes layers over rows in blocks, for sizes where that is faster."""
        second = self._calls.in_blocks
        return None if second is None else cast(Executable, second.executable)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Further programs, compiled because calls came with sizes for which they are predicted to be faster.

        ``Mode(..., variants=0)`` has none. A call decides between them by its shapes.
        """
        variants = self._calls.variants
        return () if variants is None else variants.programs

    @property
    def placements(self) -> Mapping[Any, Executable]:
        """With a device: what was decided for the arguments of calls so far -> the program that runs for it.

        Without one it is empty. A call decides by the shapes of its arguments, and by where they are.
        """
        known = {} if self._chooser is None else self._chooser.programs
        return {decision: self if program is None else program for decision, program in known.items()}

    @property
    def kept(self) -> tuple[KeptValue, ...]:
        """Results kept from call to call: nothing that a call is given, or changes, enters them.

        ``Mode(..., invariants=False)`` keeps none.
        """
        from esat.runtime.invariants import kept_values

        return kept_values(self.graph)

    @property
    def donated(self) -> tuple[Variable, ...]:
        """Inputs whose arrays a call may overwrite."""
        positions = self._program.memory.permissions.donated
        return tuple(self.graph.inputs[position] for position in sorted(positions))

    @property
    def updated(self) -> tuple[SharedVariable, ...]:
        """Shared variables that a call gives new values: those of the last outputs of ``graph``."""
        return self._program.updated

    @property
    def shared(self) -> Mapping[str, SharedVariable]:
        """The shared variables that a call reads or updates, by their names.

        One without a name is ``shared0`` by its place among all of them; so is one whose name another has.
        """
        return shared_by_name(self.graph if self.again is None else self.again[1][0])

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write a page about this function; see :func:`esat.save_html`."""
        from esat.tools.drawing import save_html

        save_html(self, path)

    @property
    def peak_bytes(self) -> int:
        """Bytes of intermediate and output buffers, for the largest shapes seen so far."""
        return self._calls.table.peak_bytes

    def __reduce__(self) -> Any:
        """Pickled and copied as what it was compiled from, with the present values of shared variables."""
        if self.again is None:
            raise TypeError(f"{self!r} was made of parts, not compiled: nothing is known to make it of again")
        return self.again

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.graph.inputs))
        return f"<Executable ({inputs}) -> {len(self.graph.outputs)} results, {len(self.steps)} steps>"

    def choose_by(self, chooser: Chooser) -> None:
        """Let another program run for arguments for which the chooser knows a better one.

        Raises
        ------
        CallError
            For what is no chooser.
        """
        if not isinstance(chooser, Chooser):
            raise CallError(
                f"choose_by: a chooser has in_front_of and programs, unlike {reprlib.repr(chooser)}"
            )
        self._chooser = chooser
        self._use(self._driver)

    def _use(self, driver: Driver) -> None:
        self._driver = driver
        if driver is not self._calls.driver:
            self._enter(self._clocked(driver.call))
        else:
            native = self._calls.native
            self._enter(driver.call if native is None or native.last is None else native.last)

    def _enter(self, function: Callable[..., Any]) -> None:
        """Let calls run a function, or what the chooser says."""
        self.entry = function if self._chooser is None else self._chooser.in_front_of(function)

    def _replacing(self) -> Callable[[Callable[..., Any]], None]:
        """What replaces the plain driver's function; it does not keep the executable alive."""
        own = weakref.ref(self)

        def use(function: Callable[..., Any]) -> None:
            executable = own()
            if executable is not None and executable._driver is executable._calls.driver:
                executable._enter(function)

        return use

    def _clocked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def clocked(*arguments: Any, out: Any = None) -> Any:
            start = time.perf_counter()
            results = call(*arguments, out=out)
            self.profile.add_call(time.perf_counter() - start)
            return results

        return clocked

    def _failing_step(self, error: Exception) -> Group | None:
        # The innermost frame: a call that a native function hands over goes through the driver twice.
        line, trace = 0, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._driver.filename:
                line = trace.tb_lineno
            trace = trace.tb_next
        return self._driver.step_at(line)


def shared_by_name(graph: Any) -> dict[str, SharedVariable]:
    """The shared variables of an ``esat.Graph`` or FunctionGraph, those that it updates first, by name."""
    from esat.graph import FunctionGraph, SharedVariable
    from esat.graph.algorithms.traversal import ancestors

    updated = () if isinstance(graph, FunctionGraph) else graph.updated
    whole = graph if isinstance(graph, FunctionGraph) else graph.function_graph()
    read = [one for one in ancestors(whole.outputs) if isinstance(one, SharedVariable)]
    found: dict[str, SharedVariable] = {}
    for place, variable in enumerate(dict.fromkeys((*updated, *read))):
        name = variable.name
        found[f"shared{place}" if name is None or name in found else name] = variable
    return found


def located_error(executable: Executable, error: Exception) -> Exception:
    """The error with the user's line of the step that raised it, if a step did."""
    from esat.runtime.entry.shape_rules import place_text

    group = None if is_from_handler(error) else executable._failing_step(error)
    if group is None or not (place := place_text(group.nodes[-1].where)):
        return error
    if isinstance(error, EsatError):
        return error if "\n  at " in str(error) else type(error)(f"{error}{place}")
    error.add_note(f"in {group}{place}")
    return error
