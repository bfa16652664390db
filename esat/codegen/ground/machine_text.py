"""Functions written as LLVM's text, compiled for this machine when they are first needed."""

from __future__ import annotations

from typing import Any

from llvmlite import binding

from esat.native.host import target_machine

_engines: list[Any] = []


def host_function(text: str) -> int:
    """The address of the function ``run`` of a module; its code stays as long as the process."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(text), target_machine())
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address("run"))
