"""The machine that this process runs on, for which functions of the subset are compiled.

It has no numbers of tuning, and is known without numba: a :class:`esat.codegen.ground.target.Target` is what
kernels are compiled for. The processors that a process may use change while it runs, and are asked for anew.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from llvmlite import binding

_OPTIMIZATION = 1
"""LLVM's level for the choice of instructions and registers."""


@functools.cache
def description() -> tuple[str, str, str]:
    """LLVM's names of the system and of the processor, and the features of the instruction set."""
    features = str(binding.get_host_cpu_features().flatten())
    return binding.get_process_triple(), binding.get_host_cpu_name(), features


def target_machine() -> Any:
    """A machine of its own for each user, which frees it."""
    triple, cpu, features = description()
    return binding.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=_OPTIMIZATION, codemodel="jitdefault", jit=True
    )


def processors() -> frozenset[int] | None:
    """The processors that this thread may run on; None where the system does not say."""
    ask = getattr(os, "sched_getaffinity", None)
    return None if ask is None else frozenset(ask(0))


def processor_counts() -> tuple[int, int]:
    """How many processors there are, and how many of them this thread may run on."""
    count, allowed = os.cpu_count() or 1, processors()
    return count, count if allowed is None else len(allowed)
