"""Kernels that have left before their end: what they were to compute, node by node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esat.codegen.kernel.loop_ir import Check, Kernel
from esat.graph import Variable
from esat.graph.algorithms.evaluate import computed
from esat.phases.fusing.group import Group


def may_leave(kernel: Kernel) -> bool:
    """Whether a kernel checks indices, and leaves where one cannot be followed."""
    return any(isinstance(statement, Check) for statement in kernel.body)


class Interpreted:
    """Computes a group by its ops' own rules. It is called as its kernel is, which has written nothing yet.

    An index out of bounds is the error of the op that reads by it. Index arrays that turn out to be
    stretched, which kernels do not follow, are no error.

    Parameters
    ----------
    group
        What is computed.
    inputs
        Those that the kernel is called with, after the outputs.
    taken
        Outputs that hold another input when it is called.
    """

    def __init__(
        self, group: Group, inputs: tuple[Variable, ...], taken: Mapping[Variable, Variable]
    ) -> None:
        self._outputs = group.outputs
        self._inputs = inputs
        own = frozenset(group.outputs)
        self._taken = {output: variable for output, variable in taken.items() if output in own}

    def __call__(self, *arrays: Any) -> None:
        results = dict(zip(self._outputs, arrays, strict=False))
        values = dict(zip(self._inputs, arrays[len(results) :], strict=True))
        values.update((variable, results[output].copy()) for output, variable in self._taken.items())
        known = computed(self._outputs, values)
        for output, array in results.items():
            array[...] = known[output]
