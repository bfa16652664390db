"""From generated source to a callable, and from a callable to bytes and back.

Numba does the work; what is added here is what makes its result safe to keep: symbol names that
carry the cache key, so that kernels from different processes never collide in one process, and the
one set of flags that all kernels share.
"""

from __future__ import annotations

import linecache
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from types import FunctionType, ModuleType
from typing import Any

from numba.core import compiler, serialize, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.typing.templates import Signature

from esat.base.interrupts import raise_from_outside
from esat.base.records import record
from esat.base.storage import digest_of
from esat.codegen.cache import namespace
from esat.codegen.cache.machine_code import MachineCode, assembly_of, finished
from esat.codegen.ground.host import host_target
from esat.codegen.ground.kernel_entry import entry_function, kinds_of
from esat.codegen.ground.numba_locks import released_locks
from esat.codegen.ground.registries import registries
from esat.codegen.ground.target import Target
from esat.codegen.llvm.block_bounds import BOUNDS
from esat.codegen.loop_compiler.compiler import loop_compiler
from esat.codegen.loop_compiler.private import RUN_TIME, forget, private_compiler
from esat.codegen.vector_math import shared_code
from esat.errors import CompileError, EsatError

_COMPILER: Any = compiler
_SERIALIZER: Any = serialize
# Numba annotates itself in part; these modules are used where it does not.


@record(frozen=True)
class CompileOptions:
    """Choices that change a kernel's machine code.

    Attributes
    ----------
    target
        What it is compiled for.
    parallel
        Run the loops over ``prange``, which the environment must name so, on numba's threads.
    noalias
        Names of the functions whose array arguments never overlap one another.
    joined
        Names of those that LLVM optimizes with the entry, and not alone before that. It may vectorise sums
        in another order then.
    """

    target: Target
    parallel: bool = False
    noalias: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()


@record(frozen=True)
class NumbaCode:
    """Machine code in numba's engine, which stays: of kernels that only numba's own wrapper can call.

    Attributes
    ----------
    result
        Numba's result, which owns the machine code.
    """

    result: Any

    @property
    def address(self) -> int:
        """Of the native function."""
        return int(self.result.library.get_pointer_to_function(self.result.fndesc.llvm_func_name))

    @property
    def llvm(self) -> str:
        """LLVM's code as text."""
        return str(self.result.library.get_llvm_str())

    @property
    def assembly(self) -> str:
        """The machine code as assembly text."""
        return str(self.result.library.get_asm_str())


@record(frozen=True)
class CompiledKernel:
    """A kernel ready to be called.

    Attributes
    ----------
    function
        The compiled entry. It takes exactly the arguments of ``signature`` and checks little:
        the caller answers for dtypes, ranks and memory layout.
    key
        The cache key, 64 hexadecimal digits.
    from_disk
        Whether it was loaded from the disk cache instead of compiled.
    code
        Owns the machine code. The function does, too.
    """

    function: Callable[..., Any]
    key: str
    entry: str
    source: str
    signature: Signature
    options: CompileOptions
    from_disk: bool
    code: MachineCode | NumbaCode = field(repr=False, compare=False)

    def __call__(self, *arguments: object) -> Any:
        return self.function(*arguments)

    @property
    def address(self) -> int:
        """Of the native function, which is called by numba's convention."""
        return self.code.address

    @property
    def assembly(self) -> str:
        """The machine code as assembly text, with what it calls; only of kernels compiled by this process."""
        if self.from_disk:
            raise CompileError(f"kernel {self.entry}: the assembly of a kernel loaded from disk is not kept")
        return self.code.assembly

    @classmethod
    def of(
        cls,
        code: MachineCode | NumbaCode,
        key: str,
        source: str,
        entry: str,
        signature: Signature,
        options: CompileOptions,
        from_disk: bool,
    ) -> CompiledKernel:
        """The kernel of machine code that is there."""
        if isinstance(code, NumbaCode):
            function: Callable[..., Any] = code.result.entry_point
        else:
            kinds = kinds_of(signature)
            assert kinds is not None, "other kernels are numba's"
            function = entry_function(code.address, kinds, code)
        return cls(function, key, entry, source, signature, options, from_disk, code)


def _dispatcher(function: FunctionType, is_wrapped: bool, options: CompileOptions) -> Any:
    """Numba's dispatcher for one function of a kernel's source.

    The dispatcher is made directly because ``numba.njit`` returns plain Python functions when
    the user has switched the compiler off by NUMBA_DISABLE_JIT, which cannot call intrinsics.
    """
    is_parallel = options.parallel and "prange" in function.__code__.co_names
    if (is_wrapped or is_parallel) and not options.target.is_like(host_target()):
        raise CompileError("only functions of arrays and words are compiled for other machines than this")
    target_options = {
        "nopython": True,
        "nogil": True,
        "boundscheck": False,
        "error_model": "numpy",
        "parallel": is_parallel,
        "no_cpython_wrapper": not is_wrapped,
        "no_cfunc_wrapper": True,
    }
    # Numba's functions for its threads are in its engine, which is for its own machine.
    is_private = not (is_wrapped or is_parallel)
    name = function.__code__.co_name
    if name in options.noalias:
        joins = is_private and name in options.joined
        pipeline: Any = loop_compiler(options.target, is_private, joins)
    else:
        pipeline = private_compiler(options.target) if is_private else compiler.Compiler
    return CPUDispatcher(function, targetoptions=target_options, pipeline_class=pipeline)


def compile_kernel(
    key: str,
    source: str,
    entry: str,
    signature: Signature,
    environment: Mapping[str, object],
    options: CompileOptions,
) -> CompiledKernel:
    """Compile ``source`` and return its function ``entry`` for ``signature``.

    The source may define several functions; those that ``entry`` calls become part of the kernel.

    Raises
    ------
    CompileError
        When the source is not Python, does not define ``entry`` or is refused by numba.
    """
    is_wrapped = kinds_of(signature) is None or options.parallel
    with _compiled(key, source, entry, signature, environment, options, is_wrapped) as result:
        code = (
            NumbaCode(result)
            if is_wrapped
            else MachineCode.of(result.library, result.fndesc.llvm_func_name, options.target)
        )
    return CompiledKernel.of(code, key, source, entry, signature, options, from_disk=False)


def assembly(
    source: str,
    entry: str,
    signature: Signature,
    environment: Mapping[str, object],
    options: CompileOptions,
) -> str:
    """As :func:`compile_kernel`, for any target: the machine code as assembly text, which is not loaded."""
    key = digest_of([source, entry, signature_text(signature), repr(options)])
    with _compiled(key, source, entry, signature, environment, options, is_wrapped=False) as result:
        module, names = finished(result.library)
        return assembly_of(module, names, options.target)


@contextmanager
def _compiled(
    key: str,
    source: str,
    entry: str,
    signature: Signature,
    environment: Mapping[str, object],
    options: CompileOptions,
    is_wrapped: bool,
) -> Iterator[Any]:
    """Numba's result for the function ``entry``, which is forgotten afterwards unless Python calls it."""
    filename = f"<esat-{key[:16]}>"
    functions = {**BOUNDS, **environment}
    functions["__name__"] = namespace.__name__
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    dispatchers: list[Any] = []
    try:
        exec(compile(source, filename, "exec"), functions)
        for name, function in list(functions.items()):
            if isinstance(function, FunctionType) and function.__globals__ is functions:
                # Symbols are named after the function: the key keeps them apart between kernels.
                function.__name__ = function.__qualname__ = f"{name}_{key[:32]}"
                dispatchers.append(_dispatcher(function, name == entry and is_wrapped, options))
                functions[name] = dispatchers[-1]
        dispatcher: Any = functions.get(entry)
        if not isinstance(dispatcher, CPUDispatcher):
            raise CompileError(f"kernel {entry}: the generated source defines no such function\n{source}")
        with released_locks(), registries(whole=is_wrapped or ModuleType in map(type, functions.values())):
            dispatcher.compile(signature)
        yield dispatcher.overloads[signature.args]
    except NumbaError as error:
        raise_from_outside(error)
        raise CompileError(f"kernel {entry}: numba refused the source: {error}\n{source}") from error
    except EsatError:
        raise
    except Exception as error:
        raise_from_outside(error)
        raise CompileError(f"kernel {entry}: the generated source does not run: {error}\n{source}") from error
    finally:
        linecache.cache.pop(filename, None)
        if kinds_of(signature) is not None:
            for one in dispatchers:
                forget(one)


def serialize_kernel(kernel: CompiledKernel) -> bytes | None:
    """The machine code of a freshly compiled kernel as bytes; None if it holds process addresses."""
    code = kernel.code
    if isinstance(code, MachineCode):
        return pickle.dumps((shared_code.codes(code.shared), code.object_code, code.symbol, code.imported))
    if code.result.library.has_dynamic_globals or code.result.lifted:
        return None
    # Numba would keep an annotated listing of the source with it, which takes long to write.
    reduced = code.result._replace(type_annotation="")._reduce()
    return bytes(_SERIALIZER.dumps(({}, reduced)))


def deserialize_kernel(
    key: str,
    payload: memoryview,
    source: str,
    entry: str,
    signature: Signature,
    options: CompileOptions,
) -> CompiledKernel:
    """Load the machine code that :func:`serialize_kernel` gave; the payload must be trusted and whole.

    Numba's registries of typing and lowering are left alone: filling them takes ten times as long as
    loading a kernel. Machine code that allocates needs numba's run-time library, which LLVM compiles in each
    process: that takes as long as five kernels.
    """
    code: MachineCode | NumbaCode
    with global_compiler_lock:
        shared, *rest = pickle.loads(payload)
        shared_code.load(shared)
        if len(rest) == 1:
            if RUN_TIME.encode() in bytes(payload):
                rtsys.initialize(cpu_target.target_context)
            code = NumbaCode(_COMPILER.CompileResult._rebuild(cpu_target.target_context, *rest[0]))
        else:
            code = MachineCode(*rest)
    return CompiledKernel.of(code, key, source, entry, signature, options, from_disk=True)


def signature_text(signature: Signature) -> str:
    """Text that tells signatures apart, down to mutability and alignment of arrays."""

    def text(type_: types.Type) -> str:
        return f"{type(type_).__name__} {type_} {type_.key!r}"

    return "; ".join(text(type_) for type_ in (signature.return_type, *signature.args))
