"""Kernel texts compiled by numba-cuda, as a compiler only: no dispatcher, no context, no device.

numba-cuda is imported where the first kernel is compiled.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from esat.errors import CompileError
from esat.gpu.kernel_text.launches import STORED_AS, Launch
from esat.gpu.toolchain.interface import LEAST_CAPABILITY, Cubin
from esat.gpu.toolchain.linking import architecture, linked, linker_version


@contextlib.contextmanager
def _old_numpy() -> Iterator[None]:
    """NumPy with a name that numba-cuda 0.30 overloads as it is imported, and NumPy 2.5 has no more."""
    if hasattr(np, "row_stack"):
        yield
        return
    namespace: Any = np
    namespace.row_stack = np.vstack
    try:
        yield
    finally:
        del namespace.row_stack


with _old_numpy():
    import numba.cuda.np.arrayobj  # noqa: F401 - which overloads the name
    from numba import cuda
    from numba.cuda import compiler, types
    from numba.cuda.cudadrv import nvvm

    from esat.gpu.toolchain import numba_intrinsics

_COMPILER: Any = compiler
_NVVM: Any = nvvm
_TYPES: Any = types
# Numba annotates itself in part; these modules are used where it does not.


class NumbaCuda:
    """The toolchain of numba-cuda, NVVM and nvJitLink."""

    @property
    def version(self) -> str:
        names = ("numba-cuda", "numba", "llvmlite", "nvidia-nvvm")
        _NVVM.NVVM()  # an error where the library itself cannot be loaded
        return ", ".join([*(f"{name} {_version(name)}" for name in names), linker_version()])

    def ptx(self, launch: Launch, capability: tuple[int, int], *, contract: bool = True) -> str:
        """The kernel as PTX.

        Raises
        ------
        CompileError
            As :meth:`compile`.
        """
        architecture(capability)
        try:
            library = _library(launch, contract)
            text = str(library.get_asm_str(cc=capability))
        except Exception as error:
            raise CompileError(
                f"kernel {launch.family}: numba-cuda refuses the text: {error}\n{launch.text}"
            ) from error
        # A name that changes from call to call, and a variable of that name, which kernels do not read.
        text = re.sub(r"^\.common .*NumbaEnv.*$", "", text, flags=re.MULTILINE)
        entry = re.search(r"\.entry\s+([\w$]+)", text)
        return text.replace(entry[1], "kernel") if entry else text

    def compile(self, launch: Launch, capability: tuple[int, int], *, contract: bool = True) -> Cubin:
        return linked(self.ptx(launch, capability, contract=contract), capability, contract=contract)


@functools.lru_cache(maxsize=4)
def _library(launch: Launch, contract: bool) -> Any:
    """A kernel as LLVM's code for NVVM, the same for all devices: most of the time goes into it."""
    names = _namespace()
    exec(compile(launch.text, f"<kernel {launch.family}>", "exec"), names)
    signature = tuple(
        _TYPES.CPointer(getattr(_TYPES, STORED_AS.get(one.dtype, one.dtype))) if one.dtype else _TYPES.int64
        for one in launch.arguments
    )
    # What numba-cuda's compile_ptx does, which has no way to tell NVVM not to contract.
    library, _ = _COMPILER._compile_pyfunc_with_fixup(
        names["kernel"],
        signature,
        device=False,
        abi="numba",
        cc=LEAST_CAPABILITY,
        launch_bounds=launch.block,
    )
    library._nvvm_options["fma"] = contract
    return library


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # CUDA of the system, or of another packager
        return "?"


def _namespace() -> dict[str, Any]:
    """The names of kernel texts."""
    names: dict[str, Any] = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
    return {**names, "math": math, "cuda": cuda, **numba_intrinsics.NAMES}
