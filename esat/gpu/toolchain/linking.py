"""PTX to machine code by nvJitLink, in this process and without a device."""

from __future__ import annotations

import re
from typing import Any

from cuda.bindings import nvjitlink

from esat.errors import CompileError
from esat.gpu.toolchain.interface import LEAST_CAPABILITY, Cubin

_LINKER: Any = nvjitlink


def linker_version() -> str:
    """Of nvJitLink, which contains ptxas."""
    return f"nvJitLink {'.'.join(map(str, _LINKER.version()))}"


def architecture(capability: tuple[int, int]) -> str:
    """The name of devices of a compute capability.

    Raises
    ------
    CompileError
        For devices that are older than kernels are made for.
    """
    if capability < LEAST_CAPABILITY:
        given, least = (".".join(map(str, one)) for one in (capability, LEAST_CAPABILITY))
        raise CompileError(f"compute capability {given}: kernels are compiled for {least} and later")
    return f"sm_{capability[0]}{capability[1]}"


def linked(ptx: str, capability: tuple[int, int], *, contract: bool = True) -> Cubin:
    """The machine code of a PTX text, whose one entry is ``kernel``.

    Raises
    ------
    CompileError
        When nvJitLink refuses the text; the message is its own.
    """
    if ".entry kernel(" not in ptx:
        raise CompileError("the PTX text has no entry `kernel`")
    # Told to be verbose, it says what a thread takes.
    options = [f"-arch={architecture(capability)}", "-verbose", f"-fma={int(contract)}"]
    linker = _LINKER.create(len(options), options)
    try:
        content = ptx.encode()
        _LINKER.add_data(linker, _LINKER.InputType.PTX, content, len(content), "kernel")
        _LINKER.complete(linker)
        code = bytearray(_LINKER.get_linked_cubin_size(linker))
        _LINKER.get_linked_cubin(linker, code)
        told = bytearray(_LINKER.get_info_log_size(linker))
        _LINKER.get_info_log(linker, told)
    except _LINKER.nvJitLinkError as error:
        size = _LINKER.get_error_log_size(linker)
        log = bytearray(size)
        _LINKER.get_error_log(linker, log)
        raise CompileError(f"nvJitLink: {error}: {log.decode(errors='replace')}") from error
    finally:
        _LINKER.destroy(linker)
    return _described(bytes(code), told.decode(errors="replace"))


def _described(code: bytes, log: str) -> Cubin:
    """Machine code with the numbers of the linker's log, whose words differ from version to version."""

    def number(pattern: str) -> int | None:
        found = re.findall(pattern, log)  # of ptxas, and then of the linker, who counts what the system takes
        return int(found[-1]) if found else None

    spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", log)
    local = number(r"(\d+) bytes lmem")
    # A linker that kept what it linked does not tell of spills again, but they are in local memory.
    spilled = sum(map(int, spills)) if spills else 0 if local == 0 else None
    registers = number(r"\bused (\d+) registers")
    return Cubin(
        code,
        "kernel",
        registers,
        spilled=spilled,
        local=local,
        shared=number(r"(\d+) bytes smem")
        or (None if registers is None else 0),  # not named where there is none
    )
