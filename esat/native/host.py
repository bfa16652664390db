"""The machine that functions of the subset are compiled for: the one that this process runs on.

It has no numbers of tuning, and is known without numba: a :class:`esat.codegen.ground.target.Target` is what
kernels are compiled for.
"""

from __future__ import annotations

import functools
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
