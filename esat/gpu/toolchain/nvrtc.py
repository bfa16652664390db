"""Kernel texts compiled by NVRTC, NVIDIA's compiler of CUDA C++ as a library, without numba-cuda."""

from __future__ import annotations

from typing import Any

from cuda.bindings import nvrtc

from esat.errors import CompileError
from esat.gpu.launches import Launch
from esat.gpu.toolchain.cpp import cpp_of
from esat.gpu.toolchain.interface import Cubin
from esat.gpu.toolchain.linking import architecture, linked, linker_version

_NVRTC: Any = nvrtc


class Nvrtc:
    """The toolchain of NVRTC and nvJitLink."""

    @property
    def version(self) -> str:
        _, major, minor = _NVRTC.nvrtcVersion()
        return f"NVRTC {major}.{minor}, {linker_version()}"

    def ptx(self, launch: Launch, capability: tuple[int, int], *, contract: bool = True) -> str:
        """The kernel as PTX.

        Raises
        ------
        CompileError
            As :meth:`compile`.
        """
        options = [
            f"--gpu-architecture={architecture(capability, 'compute')}",
            f"--fmad={str(contract).lower()}",
            "--std=c++17",
        ]
        source = cpp_of(launch)
        program = self._done(_NVRTC.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
        try:
            given = [one.encode() for one in options]
            (failed,) = _NVRTC.nvrtcCompileProgram(program, len(given), given)
            if failed != _NVRTC.nvrtcResult.NVRTC_SUCCESS:
                log = bytearray(self._done(_NVRTC.nvrtcGetProgramLogSize(program)))
                _NVRTC.nvrtcGetProgramLog(program, log)
                told = log.decode(errors="replace").strip("\0")
                raise CompileError(f"kernel {launch.family}: NVRTC refuses the text: {told}\n{source}")
            ptx = bytearray(self._done(_NVRTC.nvrtcGetPTXSize(program)))
            _NVRTC.nvrtcGetPTX(program, ptx)
            return ptx.decode().strip("\0")
        finally:
            _NVRTC.nvrtcDestroyProgram(program)

    def compile(self, launch: Launch, capability: tuple[int, int], *, contract: bool = True) -> Cubin:
        return linked(self.ptx(launch, capability, contract=contract), capability, contract=contract)

    @staticmethod
    def _done(answer: tuple[Any, ...]) -> Any:
        """What a function of NVRTC gave; its error as one of esat's."""
        failed, *given = answer
        if failed != _NVRTC.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(f"NVRTC: {failed!r}")
        return given[0]
