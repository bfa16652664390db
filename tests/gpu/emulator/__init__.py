"""Printed kernels run on the CPU, thread by thread, without a device and without numba-cuda.

``translation`` rewrites the text of a kernel: what a device would do silently (an access outside an array, a
misaligned vector) is checked, and barriers and shuffles become yields of a generator, a thread each.
``functions`` are what kernel texts may call, as functions of the host; ``scheduler`` runs blocks, warps and
threads in any order, so that what only works in one shows. ``stand_in`` is a module like cupy over NumPy, by
which whole programs run so: esat finds it by the entry point in ``tests/esat_emulator.dist-info``.
"""

from gpu.emulator.scheduler import run_launches

__all__ = ["run_launches"]
