"""From kernel groups to what the driver calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from esat.base.progress import tell
from esat.codegen import (
    Kernel,
    Layout,
    Narrow,
    compile_kernel,
    compile_narrow,
    computes_functions,
    find_narrow,
    layout_of,
    lower,
    overwritable,
    overwrite,
    print_kernel,
    print_narrow,
    without_copies,
)
from esat.codegen.cache import CompiledKernel
from esat.codegen.compile import is_divisible
from esat.codegen.ground.host import host_target
from esat.codegen.ground.target import Target
from esat.codegen.helpers import LEAST_LEFT, with_helpers
from esat.codegen.kernel.access import read_by_elements
from esat.codegen.kernel.loop_ir import Loop, walk
from esat.extract.prices.machine import MachineProfile, machine_profile
from esat.graph import Constant, Variable
from esat.graph.identity import place_of
from esat.phases.fusing.group import Group
from esat.phases.fusing.sums_alone import adds_up
from esat.phases.memory.memory_plan import MemoryPlan
from esat.runtime.interpreted import Interpreted, may_leave
from esat.runtime.program import KernelCall
from esat.runtime.threads import ThreadedKernel

LARGEST_COPIED = 1 << 24
"""Bytes of a kernel's arrays up to which inputs are copied: beyond, fresh memory costs too much."""
MAXIMUM_VARIANTS = 4
"""Sizes of a short axis for which a kernel is compiled anew; further ones run the variant for any size."""


class KernelSource(Protocol):
    """What turns kernel groups into kernels."""

    def overwritable(self, group: Group, /) -> Sequence[tuple[Variable, Variable]]:
        """Pairs of an output and an input whose memory it may take, so that the kernel works in place."""

    def compile(self, group: Group, taken: Mapping[Variable, Variable], /) -> KernelCall:
        """The kernel of a group.

        Parameters
        ----------
        group
            The group.
        taken
            Pairs as :meth:`overwritable` names them: output -> input that it replaces. The kernel is called
            without these inputs, with outputs that hold them.
        """


def compile_kernels(memory: MemoryPlan, source: KernelSource) -> Mapping[Group, KernelCall]:
    """The kernel of each kernel step, with outputs in the memory of the inputs that the plan says."""
    groups = [group for group in memory.steps if group.kind == "kernel"]
    taken = [{v: memory.taken[v] for v in group.outputs if v in memory.taken} for group in groups]
    # Of many kernels other processes compile some ahead; so few wait until sizes tell which variant runs.
    compile_one = source.compile if len(groups) <= LEAST_LEFT else partial(_compiled_at_once, source)
    jobs = [partial(compile_one, *job) for job in zip(groups, taken, strict=True)]
    kernels: dict[Group, KernelCall] = {}
    for group, kernel in zip(groups, with_helpers(jobs), strict=True):
        kernels[group] = kernel
        tell(f"kernels, {len(kernels)} of {len(groups)}")
    return kernels


def _compiled_at_once(source: KernelSource, group: Group, taken: Mapping[Variable, Variable]) -> KernelCall:
    call = source.compile(group, taken)
    if call.code is not None:
        call.code()
    return call


class LoweredGroups:
    """The loop IR of groups, each of which is lowered once."""

    def __init__(self) -> None:
        self._known: dict[Group, Kernel] = {}

    def kernel(self, group: Group) -> Kernel:
        """The kernel of a group. Raises CompileError when the group cannot be lowered."""
        known = self._known.get(group)
        if known is None:
            known = self._known[group] = lower(group)
        return known

    def overwritable(self, group: Group) -> Sequence[tuple[Variable, Variable]]:
        """Pairs of an output and an input whose memory it may take."""
        kernel = self.kernel(group)
        return [
            (group.outputs[output], group.inputs[kernel.operands[place]])
            for output, place in overwritable(kernel)
        ]

    def in_place(self, group: Group, taken: Mapping[Variable, Variable]) -> Kernel:
        """The kernel with outputs in the memory of inputs; see :meth:`KernelSource.compile`."""
        kernel = self.kernel(group)
        for number, output in enumerate(group.outputs):
            if output in taken:
                read = place_of(taken[output], group.inputs)
                assert read is not None
                kernel = overwrite(kernel, number, kernel.operands.index(read))
        return without_copies(kernel)


class Kernels:
    """Generated kernels.

    Parameters
    ----------
    machine
        Tells from which sizes several threads are worth while.
    threads
        The most that a kernel may use; None for what numba's settings say at each call.
    target
        What kernels are compiled for; this machine by default.
    exact
        Whether sums must not depend on the layout of what they read: it is copied where it is not
        contiguous.
    """

    def __init__(
        self,
        machine: MachineProfile | None = None,
        threads: int | None = None,
        exact: bool = False,
        target: Target | None = None,
    ) -> None:
        self._machine = machine_profile() if machine is None else machine
        self._target = host_target() if target is None else target
        self._threads = threads
        self._exact = exact
        self._lowered = LoweredGroups()

    def overwritable(self, group: Group) -> Sequence[tuple[Variable, Variable]]:
        """Pairs of an output and an input whose memory it may take."""
        return self._lowered.overwritable(group)

    def compile(self, group: Group, taken: Mapping[Variable, Variable]) -> KernelCall:
        """The compiled kernel of a group.

        The variant for contiguous inputs is compiled now, unless sizes may ask for another one instead;
        other variants are compiled when arrays need them.

        Raises
        ------
        CompileError
            When the group cannot be lowered, or the kernel breaks its invariants.
        """
        kernel = self._lowered.in_place(group, taken)
        inputs = tuple(group.inputs[place] for place in kernel.operands)
        target = self._target
        variables = (*group.outputs, *inputs)
        one_order = self._exact and adds_up(group.nodes)
        narrow = find_narrow(kernel)
        variants = LaterVariants(kernel, target, one_order, narrow)
        threaded = None
        if is_divisible(kernel) and not one_order:
            threaded = ThreadedKernel(
                kernel, variables, variants.in_order, variants, self._machine, target, self._threads
            )
        fitted = None if narrow is None or narrow.known_size is not None else FittedVariants(narrow, target)
        waits = _runs_another(variables, threaded, fitted)
        contiguous = variants.in_order if waits else variants.compiled("C").function
        # Arrays of rank 0 have one layout.
        strided = variants if any(array.rank for array in kernel.inputs) else contiguous
        code = partial(variants.compiled, "C")
        text = variants.text
        instead = Interpreted(group, inputs, taken) if may_leave(kernel) else None
        return KernelCall(inputs, contiguous, strided, text, threaded, fitted, code, instead)


def _runs_another(
    variables: Sequence[Variable], threaded: ThreadedKernel | None, fitted: FittedVariants | None
) -> bool:
    """Whether contiguous arrays may run another variant than the one for all shapes.

    Where types tell the shapes that variant is compiled now.
    """
    is_shared = threaded is not None and threaded.has_open_order
    shapes = [np.shape(one.data) if isinstance(one, Constant) else one.tensor_type.shape for one in variables]
    known = [tuple(size for size in shape if size is not None) for shape in shapes]
    if known != shapes:
        return is_shared or fitted is not None
    if threaded is not None and is_shared:
        calls = threaded.for_shapes(dict(zip(variables, known, strict=True)))
        if calls is not None and calls.is_alone_shared:
            return True
    return fitted is not None and fitted.code(known) is not None


class FittedVariants:
    """Chooses the variant of a kernel for contiguous arrays of certain shapes, and compiles it."""

    def __init__(self, narrow: Narrow, target: Target) -> None:
        self._narrow, self._target = narrow, target
        self._sizes: set[int] = set()

    def __call__(self, shapes: Sequence[tuple[int, ...]]) -> Callable[..., Any] | None:
        code = self.code(shapes)
        return None if code is None else code.function

    def code(self, shapes: Sequence[tuple[int, ...]]) -> CompiledKernel | None:
        """The variant for outputs and inputs of these shapes; None where the kernel for all shapes runs."""
        size = self._narrow.size_in(shapes)
        if size is None or (size not in self._sizes and len(self._sizes) == MAXIMUM_VARIANTS):
            return None
        self._sizes.add(size)
        return compile_narrow(self._narrow, size, self._target)


class LaterVariants:
    """The variants of a kernel for other layouts, each compiled when it is first needed.

    Loops over scattered elements do not vectorise. Where they would compute elementary functions, it takes
    less to copy such inputs first. Where one order of additions must hold for all layouts, all are copied.
    Where types tell that the innermost axis is short, contiguous arrays have the variant for its size.
    """

    __slots__ = (
        "_by_elements",
        "_copies",
        "_first_input",
        "_kernel",
        "_kinds",
        "_narrow",
        "_one_order",
        "_target",
        "_variants",
    )

    def __init__(
        self, kernel: Kernel, target: Target, one_order: bool = False, narrow: Narrow | None = None
    ) -> None:
        self._one_order = one_order
        size = None if narrow is None else narrow.known_size
        self._narrow = None if narrow is None or size is None else (narrow, size)
        self._target = target
        self._kernel = kernel
        self._first_input = len(kernel.outputs)
        self._by_elements = read_by_elements(kernel)
        self._variants: dict[Layout, CompiledKernel] = {}
        reduces = any(
            isinstance(statement, Loop) and statement.accumulators for statement in walk(kernel.body)
        )
        self._copies = computes_functions(kernel) and not reduces
        self._kinds = tuple(np.dtype(array.dtype) for array in kernel.arrays)

    def __call__(self, *arrays: Any) -> None:
        layout = self._layout(arrays)
        if layout is None:
            arrays = tuple(one if one.flags.c_contiguous else one.copy(order="C") for one in arrays)
        self.compiled(layout or "C").function(*arrays)

    def in_order(self, *arrays: Any) -> None:
        """Run the variant for contiguous arrays."""
        self.compiled("C").function(*arrays)

    def variant(
        self, shapes: Sequence[tuple[int, ...]], strides: Sequence[tuple[int, ...] | None]
    ) -> CompiledKernel | None:
        """What runs for arrays of these shapes and strides, in bytes or None for C-contiguous ones.

        None where it is the variant for contiguous inputs, with copies of the others.
        """
        like = [
            likeness(shape, kind, steps)
            for shape, kind, steps in zip(shapes, self._kinds, strides, strict=True)
        ]
        layout = self._layout(like)
        return None if layout is None else self.compiled(layout)

    def _layout(self, arrays: Sequence[Any]) -> Layout | None:
        """The layout of the inputs; None where those that are not contiguous are to be copied."""
        layout = layout_of(arrays[self._first_input :], self._by_elements)
        small = layout == "A" and self._copies and sum(array.nbytes for array in arrays) <= LARGEST_COPIED
        return None if self._one_order or small else layout

    def compiled(self, layout: Layout) -> CompiledKernel:
        """The variant for a layout of the inputs."""
        code = self._variants.get(layout)
        if code is None and layout == "C" and self._narrow is not None:
            code = self._variants[layout] = compile_narrow(*self._narrow, self._target)
        elif code is None:
            code = self._variants[layout] = compile_kernel(self._kernel, self._target, layout)
        return code

    def text(self) -> str:
        """The source of the variant for contiguous inputs, for people to read."""
        if self._narrow is not None:
            return print_narrow(*self._narrow, self._target, comments=True).text
        return print_kernel(self._kernel, self._target)


def likeness(shape: tuple[int, ...], kind: np.dtype[Any], strides: tuple[int, ...] | None) -> Any:
    """An array of strides, in bytes or None for C order, and without elements that one could read."""
    if strides is None:
        return np.empty(shape, kind)
    return np.lib.stride_tricks.as_strided(np.empty((), kind), shape, strides)
