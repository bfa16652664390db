"""When kernels run in several threads: from sizes and the machine's profile, once a combination of shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from esat.codegen import Kernel, Layout, layout_of
from esat.codegen.collapse import collapse
from esat.codegen.effort import seconds_in_threads
from esat.codegen.parallel import ParallelKernel, compile_parallel_kernel
from esat.codegen.partition import has_open_order
from esat.codegen.printing.parts import print_parallel_source
from esat.codegen.threads import default_threads
from esat.extract.machine import MachineProfile
from esat.graph import Constant, Variable

Shape = tuple[int, ...]


class ThreadedKernel:
    """A kernel as the driver calls it for arrays that are large enough for several threads.

    Its code is compiled when such arrays first come. Results do not depend on the number of threads: where
    the kernel for one thread might add in another order, the code for several threads runs in one, too.
    BLAS has threads of its own, which do nothing while kernels run: a program's steps follow each other.

    Parameters
    ----------
    kernel
        The kernel.
    variables
        Its outputs and inputs.
    alone
        The kernel for one thread, of any layout.
    machine
        Tells what is large enough.
    limit
        The most threads it may use; None for what :func:`default_threads` says at each call.
    """

    def __init__(
        self,
        kernel: Kernel,
        variables: Sequence[Variable],
        alone: Callable[..., Any],
        machine: MachineProfile,
        limit: int | None,
    ) -> None:
        self.kernel = kernel
        self.variables = tuple(variables)
        self._alone = alone
        self._machine = machine
        self._limit = limit
        self._has_open_order = has_open_order(kernel)
        self._compiled: dict[Layout, ParallelKernel] = {}

    @functools.cached_property
    def _collapsed(self) -> Kernel:
        return collapse(self.kernel)

    def threads(self) -> int:
        """Threads of the next call."""
        return default_threads() if self._limit is None else self._limit

    def source(self) -> str:
        """Its text, for the user to read."""
        printed = print_parallel_source(self.kernel, "C", comments=True)
        return "" if printed is None else printed.text

    def is_large(self, known: Mapping[Variable, Shape]) -> bool:
        """Whether contiguous arrays of these shapes are worth several threads."""
        shapes = [
            np.shape(variable.data) if isinstance(variable, Constant) else known[variable]
            for variable in self.variables
        ]
        return self._is_worth_it(self._collapsed, shapes)

    def _is_worth_it(self, kernel: Kernel, shapes: Sequence[Shape]) -> bool:
        return seconds_in_threads(kernel, shapes, self._machine) >= self._machine.parallel_from

    def __call__(self, *arrays: Any) -> None:
        threads = self.threads()
        layout = layout_of(arrays[len(self.kernel.outputs) :])
        if (threads == 1 and not self._has_open_order) or (
            layout != "C" and not self._is_worth_it(self.kernel, [array.shape for array in arrays])
        ):
            self._alone(*arrays)
            return
        compiled = self._compiled.get(layout)
        if compiled is None:
            compiled = self._compiled[layout] = compile_parallel_kernel(self.kernel, layout)
        compiled(threads, *arrays)
