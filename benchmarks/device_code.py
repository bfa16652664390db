"""What the kernels of all benchmark programs become on devices; needs numba-cuda and nvdisasm, but no device.

``PYTHONPATH=tests python -m benchmarks.device_code [--cases NAME ...] [--capabilities 9.0 10.0] [--write]``

Every kernel that esat makes of the programs of ``benchmarks.kernels`` for a device is printed and compiled
for each kind of device, in variants of its text. A kernel fails that spills registers or has memory of its
own, whose vectors are not loaded by 128 bits, or that takes more registers than a block of its size can have.
``--write`` puts the table into ``benchmarks/results/device_code.txt``.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import numpy as np
from gpu.emulator.stand_in import StandIn

from benchmarks.peers.cases import CASES, Case
from benchmarks.peers.client import ROOT
from benchmarks.peers.esat_contender import executable
from esat import Mode
from esat.codegen.kernel.collapse import collapse
from esat.codegen.kernel.loop_ir import Kernel
from esat.gpu.device import Device
from esat.gpu.kernel_text import kernels as device_kernels
from esat.gpu.kernel_text.launches import STORED_AS, VECTOR_BYTES, Launch, LaunchVariant
from esat.gpu.printing import print_launches
from esat.gpu.printing.variants import is_too_long
from esat.gpu.toolchain import Cubin, Toolchain, default_toolchain
from esat.phases.fusing.group import Group
from esat.runtime.printed.kernel_calls import LoweredGroups

CAPABILITIES = ((8, 0), (9, 0), (10, 0))
LOOKED_INTO = (9, 0)
"""Devices whose machine code is disassembled, which takes as long as all else; the linker tells of others."""
VARIANTS = (
    *(LaunchVariant(longest_row=longest) for longest in (128, 1024, 4096, 16384, 0)),
    LaunchVariant(vector=False, longest_row=1024),
    LaunchVariant(threads_across=4, split=True),
)
"""Variants of texts that are compiled here; those that a kernel has alike are one."""
DTYPES = ("float32", "float64")
REGISTERS = 65536
"""Of a multiprocessor, on all devices so far."""
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)


@dataclass(frozen=True)
class Compiled:
    """One launch of a kernel on one kind of device."""

    case: str
    dtype: str
    variant: LaunchVariant
    launch: Launch
    capability: tuple[int, int]
    cubin: Cubin
    instructions: tuple[str, ...] | None

    def widest(self, operation: str) -> int | None:
        """Bits of the widest ``LDG`` or ``STG``, 0 without any; None where nobody looked."""
        if self.instructions is None:
            return None
        found = [one for one in self.instructions if one.startswith(operation)]
        widths = [int(width[1]) if (width := re.search(r"\.(64|128|256)\b", one)) else 32 for one in found]
        return max(widths, default=0)

    def faults(self) -> list[str]:
        """Why this is no code for a device."""
        cubin, faults = self.cubin, []
        if cubin.registers is None or cubin.spilled is None:
            return ["this version of nvJitLink does not tell what threads take"]
        if cubin.spilled or cubin.local:
            faults.append(f"{cubin.spilled} bytes spilled, {cubin.local} bytes of local memory")
        own = sorted({one for one in self.instructions or () if one.startswith(("LDL", "STL"))})
        if own:
            faults.append(f"accesses of local memory: {', '.join(own)}")
        most = min(REGISTERS // max(self.launch.block, 1), 255)
        if cubin.registers > most:
            faults.append(f"{cubin.registers} registers in blocks of {self.launch.block}")
        for operation, name in (("LDG", "load"), ("STG", "store")):
            wanted, found = vector_bits(self.launch, name), self.widest(operation)
            if wanted == 8 * VECTOR_BYTES and found is not None and found < wanted:
                faults.append(f"{operation} of {found} bits for vectors of {wanted}")
        return faults

    def row(self) -> str:
        """Its line of the table."""
        cubin = self.cubin
        name = f"{self.case} {self.dtype}"
        if self.launch.family == "rows" and self.variant.longest_row:
            name += f" <= {self.variant.longest_row}"
        name += "" if self.variant.vector else " scalar"
        return (
            f"{name:46} {self.launch.family:8} sm_{self.capability[0]}{self.capability[1]:<2}"
            f" {self.launch.block:5} {cubin.registers!s:>4} {cubin.spilled!s:>5} {cubin.shared!s:>6}"
            f" {self.widest('LDG') or '':4} {self.widest('STG') or '':4} {len(cubin.code):7}"
        )


HEAD = (
    f"{'program, dtype, class of rows':46} {'family':8} {'device':5} {'block':>5} {'regs':>4} {'spill':>5}"
    f" {'shared':>6} {'load':>4} {'store':>4} {'bytes':>7}"
)


def vector_bits(launch: Launch, name: str) -> int:
    """Bits of the widest vector that a text loads or stores, as ``name`` says."""
    dtypes = {one.name: STORED_AS.get(one.dtype, one.dtype) for one in launch.arguments}
    found = re.findall(rf"\b{name}(\d+)\((\w+)", launch.text)
    return max((8 * int(lanes) * np.dtype(dtypes[array]).itemsize for lanes, array in found), default=0)


def kernels(case: Case, dtype: str) -> list[Kernel]:
    """The kernels of a program for a device, which needs to be none: nothing is run."""
    found: list[Kernel] = []

    class Watching(LoweredGroups):
        def kernel(self, group: Group) -> Kernel:
            kernel = super().kernel(group)
            if kernel not in found:
                found.append(kernel)
            return kernel

    device = Device(StandIn())
    with (
        patch.object(device_kernels, "LoweredGroups", Watching),
        patch.object(device_kernels, "usable_device", lambda or_emulated=False: device),
    ):
        executable(case, dtype, Mode("fast_run", device="cuda"))
    return found


def compiled(
    case: str, dtype: str, kernel: Kernel, toolchain: Toolchain, capabilities: Sequence[tuple[int, int]]
) -> Iterator[Compiled]:
    """All launches of a kernel."""
    seen: set[str] = set()
    for variant in VARIANTS:
        if variant.vector and is_too_long(collapse(kernel)):  # never called
            continue
        for launch in print_launches(kernel, variant).launches:
            if launch.text in seen:
                continue
            seen.add(launch.text)
            for capability in capabilities:
                cubin = toolchain.compile(launch, capability)
                seen_into = instructions(cubin) if capability == LOOKED_INTO else None
                yield Compiled(case, dtype, variant, launch, capability, cubin, seen_into)


def instructions(cubin: Cubin) -> tuple[str, ...]:
    """The operations of machine code, in order."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin.code)
        done = subprocess.run([disassembler(), "-c", file], capture_output=True, text=True, check=True)
    return tuple(_INSTRUCTION.findall(done.stdout))


def disassembler() -> str:
    """Path of nvdisasm: of its package, or of the system."""
    for folder in getattr(find_spec("nvidia"), "submodule_search_locations", None) or ():
        for found in Path(folder).glob("cu*/bin/nvdisasm*"):
            return str(found)
    found = shutil.which("nvdisasm")
    if found is None:
        raise FileNotFoundError("nvdisasm is missing: pip install nvidia-cuda-nvdisasm")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the number of launches with faults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", nargs="+", default=[case.name for case in CASES])
    parser.add_argument(
        "--capabilities", nargs="+", default=[".".join(map(str, one)) for one in CAPABILITIES]
    )
    parser.add_argument("--write", action="store_true", help="keep the table in benchmarks/results")
    options = parser.parse_args(arguments)
    capabilities = [tuple(map(int, one.split("."))) for one in options.capabilities]
    toolchain, start = default_toolchain(), time.perf_counter()
    lines, faults, count = [HEAD], [], 0
    print(HEAD)
    for case in (case for case in CASES if case.name in options.cases):
        for dtype in DTYPES:
            for kernel in kernels(case, dtype):
                for one in compiled(case.name, dtype, kernel, toolchain, capabilities):
                    count += 1
                    lines.append(one.row())
                    print(lines[-1], flush=True)
                    faults += [f"{one.row()}: {fault}" for fault in one.faults()]
    print(f"{time.perf_counter() - start:.0f} s")
    lines += ["", f"{count} kernels, {len(faults)} faults", *faults, toolchain.version]
    print("\n".join(lines[-len(faults) - 3 :]))
    if options.write:
        (ROOT / "benchmarks" / "results" / "device_code.txt").write_text("\n".join(lines) + "\n")
    return len(faults)


if __name__ == "__main__":
    sys.exit(main())
