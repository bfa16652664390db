"""Engines of LLVM's that run machine code which is there. Nothing here needs numba."""

from __future__ import annotations

from typing import Any

from llvmlite import binding


def initialize() -> None:
    """Let LLVM know the processor, which numba does when it is first used."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def engine_of_text(text: str, optimization: int) -> Any:
    """An engine of LLVM's with the code of a module of text, compiled for this machine.

    Not by the engine: one that compiles keeps what it compiled with, ten times the memory of one that loads.
    """
    initialize()
    machine = binding.Target.from_default_triple().create_target_machine(opt=optimization, jit=True)
    return engine_of(machine.emit_object(binding.parse_assembly(text)))


def engine_of(object_code: bytes) -> Any:
    """An engine of LLVM's with this object code, loaded; it compiles nothing."""
    machine = binding.Target.from_default_triple().create_target_machine(
        opt=0, reloc="static", codemodel="jitdefault", jit=True
    )
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(object_code))
    engine.finalize_object()
    return engine
