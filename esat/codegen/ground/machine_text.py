"""Functions in machine code that descriptions make: their addresses, and descriptions by these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from llvmlite import binding

from esat.base.native.own_machine import description, target_machine
from esat.base.records import record
from esat.base.storage import DiskStore, default_directory, digest_of


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


_engines: list[Any] = []
_addresses: dict[HostFunction, int] = {}


@record(frozen=True)
class HostFunction:
    """Base of frozen records that describe a function, which is made when it is first needed.

    Another process finds the same function by the name of the record's class and its fields.
    """

    def text(self) -> str:
        """The module in LLVM's text, whose function is ``run``; empty for a function of another library."""
        raise NotImplementedError

    def make(self) -> int:
        """The address of the function, which stays as long as the process."""
        return compiled(self.text())

    def address(self) -> int:
        """The address of the function; always the same."""
        if self not in _addresses:
            _addresses[self] = self.make()
        return _addresses[self]


def function_at(address: int) -> HostFunction | None:
    """What describes the function at an address; None for others."""
    return next((function for function, place in _addresses.items() if place == address), None)


@cache
def _store() -> DiskStore:
    return DiskStore(default_directory(), "native")


def compiled(
    text: str, version: str = "", linked: Callable[[], Iterable[Any]] = tuple, improved: bool = False
) -> int:
    """The address of the function ``run`` of a module of LLVM's text; its code stays.

    Machine code is kept on disk: to make it takes LLVM five milliseconds at least, to load it one.

    Parameters
    ----------
    version
        Of what is linked.
    linked
        Gives modules with functions that this one calls, when the code is to be made.
    improved
        Whether LLVM's general passes run: for text with loops that nobody has arranged.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    store = _store()
    llvm = ".".join(map(str, binding.llvm_version_info))
    key = digest_of([text, version, llvm, str(improved), *description()])
    code = store.load(key, bytes)
    if code is None:
        module = binding.parse_assembly(text)
        for one in linked():
            module.link_in(one)
        for function in module.functions:
            if function.name != "run" and not function.is_declaration:
                function.linkage = "internal"
        machine = target_machine()
        if improved:
            options = binding.create_pipeline_tuning_options(speed_level=2)
            options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
            builder = binding.create_pass_builder(machine, options)
            builder.getModulePassManager().run(module, builder)
        code = bytes(machine.emit_object(module))
        store.save(key, code)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target_machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address("run"))
