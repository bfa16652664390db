"""When kernels run in several threads: where sizes promise a gain, and calls have shown one.

Sizes and the machine's profile tell, once a combination of shapes, whether a kernel has enough to do. The
code for several threads is compiled once calls in one have taken as long as it may save.
Whether several threads are faster then depends on what else the machine does: where its other processors are
busy they are not. So calls are timed, and the faster way is taken.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from esat.codegen import Kernel, Layout, layout_of
from esat.codegen.compile import ParallelKernel, compile_parallel_kernel
from esat.codegen.effort import is_streamed, seconds_in_threads
from esat.codegen.ground.target import Target
from esat.codegen.kernel.access import read_by_elements
from esat.codegen.kernel.collapse import collapse
from esat.codegen.kernel.partition import has_open_order
from esat.codegen.printing.shared_loops import print_parallel_source
from esat.codegen.threads import configured_threads, granted_threads, most_threads
from esat.codegen.threads.choice import Choices, ChosenCalls, ThreadingChoice
from esat.extract.prices.machine import MachineProfile
from esat.graph import Constant, Variable

Shape = tuple[int, ...]


class ThreadedKernel:
    """A kernel as the driver calls it for arrays that are large enough for several threads.

    Its code is compiled when such arrays first come. Results do not depend on the number of threads: where
    the kernel for one thread might add in another order, the code for several threads runs in one, too.
    BLAS has threads of its own, which have no work while kernels run: a program's steps follow each other.
    OpenBLAS's look for more for some milliseconds; where they are in the way, the times show it.

    Attributes
    ----------
    used
        Threads that the last call ran in.
    limit
        The most threads it may use; None for what :func:`default_threads` says at each call.
    has_open_order
        Whether the kernel for one thread might add in another order.
    contiguous
        The kernel for one thread and contiguous arrays.

    Parameters
    ----------
    kernel
        The kernel.
    variables
        Its outputs and inputs.
    contiguous, alone
        The kernel for one thread: for contiguous arrays, and of any layout.
    machine
        Tells what is large enough.
    target
        What the code is compiled for.
    limit
        The most threads it may use; None for what :func:`default_threads` says at each call.
    """

    def __init__(
        self,
        kernel: Kernel,
        variables: Sequence[Variable],
        contiguous: Callable[..., Any],
        alone: Callable[..., Any],
        machine: MachineProfile,
        target: Target,
        limit: int | None,
    ) -> None:
        self.kernel = kernel
        self.variables = tuple(variables)
        self.contiguous = contiguous
        self._alone = alone
        self._machine = machine
        self._target = target
        self.limit = 1 if limit is None and configured_threads() == 1 else limit
        self.has_open_order = has_open_order(kernel)
        self._by_elements = read_by_elements(kernel)
        self._compiled: dict[tuple[Layout, bool], ParallelKernel] = {}
        self._choices = Choices()
        self.used = 1

    @functools.cached_property
    def _collapsed(self) -> Kernel:
        return collapse(self.kernel)

    def source(self) -> str:
        """Its text, for the user to read."""
        printed = print_parallel_source(self.kernel, self._target, "C", comments=True)
        return "" if printed is None else printed.text

    def for_shapes(self, known: Mapping[Variable, Shape]) -> CallsOfShapes | None:
        """What contiguous arrays of these shapes run; None where the kernel for one thread will do.

        That is so where several threads are not worth while, or there are none and one gives the same bits;
        unless results are to be written past the caches.
        """
        most = most_threads() if self.limit is None else self.limit
        shapes = tuple(
            np.shape(variable.data) if isinstance(variable, Constant) else known[variable]
            for variable in self.variables
        )
        streams = is_streamed(self._collapsed, shapes, self._machine, self._target)
        if most == 1 and not self.has_open_order and not streams:
            return None
        seconds = seconds_in_threads(self._collapsed, shapes, self._machine)
        if seconds < self._machine.parallel_from:
            return None
        return CallsOfShapes(self, shapes, streams, seconds, self._machine.parallel_after)

    def strided(self, shapes: Sequence[Shape], inputs: Sequence[Any]) -> ParallelKernel | None:
        """What inputs run that are not all contiguous; None where the kernel for one thread will do."""
        if not self._is_worth_it(self.kernel, shapes):
            return None
        return self.compiled(layout_of(inputs, self._by_elements))

    def _is_worth_it(self, kernel: Kernel, shapes: Sequence[Shape]) -> bool:
        return seconds_in_threads(kernel, shapes, self._machine) >= self._machine.parallel_from

    def __call__(self, *arrays: Any) -> None:
        threads = granted_threads(self.limit)
        if threads == 1 and not self.has_open_order:
            self.used = 1
            self._alone(*arrays)
            return
        shapes = tuple([array.shape for array in arrays])
        layout = layout_of(arrays[len(self.kernel.outputs) :], self._by_elements)
        if layout != "C" and not self._is_worth_it(self.kernel, shapes):
            self.used = 1
            self._alone(*arrays)
        else:
            shared = self.compiled(layout)
            if threads == 1:
                self.used = 1
                shared(1, *arrays)
            else:
                self.run(threads, self._choices.of(shapes), shared, arrays)

    def run(
        self, threads: int, choice: ThreadingChoice, shared: Callable[..., None], arrays: Sequence[Any]
    ) -> None:
        """Run in up to so many threads: in all of them or in one, whichever is faster.

        ``shared`` is the kernel for several threads; it is called with their number and the arrays.
        """
        together = choice.next()
        self.used = used = threads if together else 1
        start = time.perf_counter()
        if together or self.has_open_order:
            shared(used, *arrays)
        else:
            self._alone(*arrays)
        choice.add(together, time.perf_counter() - start)

    def compiled(self, layout: Layout, streams: bool = False) -> ParallelKernel:
        """The kernel for several threads, compiled when it is first asked for."""
        known = self._compiled.get((layout, streams))
        if known is None:
            known = compile_parallel_kernel(self.kernel, self._target, layout, streams)
            self._compiled[layout, streams] = known
        return known


class CallsOfShapes(ChosenCalls):
    """Calls of a kernel with contiguous arrays of certain shapes, which are asked nothing.

    Attributes
    ----------
    is_alone_shared
        Whether the kernel for several threads is what one runs, too, as the one for one thread might differ.
    calls_alone
        Calls before the kernel for several threads is compiled.
    seconds
        What one thread is predicted to take.
    """

    __slots__ = ("_kernel", "_shapes", "_streams", "calls_alone", "is_alone_shared", "seconds")

    def __init__(
        self, kernel: ThreadedKernel, shapes: tuple[Shape, ...], streams: bool, seconds: float, after: float
    ) -> None:
        self.seconds = seconds
        self._kernel, self._shapes, self._streams = kernel, shapes, streams
        self.is_alone_shared = streams or kernel.has_open_order
        self.calls_alone = 0 if self.is_alone_shared or not seconds else int(after / seconds)
        alone, together = kernel.contiguous, self._compile_and_run
        if self.is_alone_shared:
            together = self.shared.for_shapes(shapes)
            alone = functools.partial(together, 1)
        super().__init__(kernel.limit, alone, together, kernel, calls_alone=self.calls_alone)

    @property
    def shared(self) -> ParallelKernel:
        """The kernel for several threads."""
        return self._kernel.compiled("C", self._streams)

    def strided(self, inputs: Sequence[Any]) -> ParallelKernel | None:
        """The kernel for several threads for inputs of another layout; None where that of one thread runs."""
        return self._kernel.strided(self._shapes, inputs)

    def _compile_and_run(self, threads: int, *arrays: Any) -> None:
        self._together = self.shared.for_shapes(self._shapes)
        self._together(threads, *arrays)
