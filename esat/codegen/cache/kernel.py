"""From generated source to a callable, and from a callable to bytes and back.

Numba does the work; what is added here is what makes its result safe to keep: symbol names that
carry the cache key, so that kernels from different processes never collide in one process, and the
one set of flags that all kernels share.
"""

from __future__ import annotations

import linecache
import pickle
from collections.abc import Callable, Mapping
from dataclasses import field
from types import FunctionType
from typing import Any

from numba.core import compiler, serialize, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.typing.templates import Signature

from esat.codegen.cache import namespace
from esat.codegen.entry import Kind, entry_function, kinds_of
from esat.codegen.loop_compiler.compiler import LoopCompiler
from esat.codegen.loop_compiler.contexts import RUN_TIME
from esat.codegen.vector_math import shared_code
from esat.errors import CompileError
from esat.records import record

_COMPILER: Any = compiler
_SERIALIZER: Any = serialize
# Numba annotates itself in part; these modules are used where it does not.


@record(frozen=True)
class CompileOptions:
    """Choices that change a kernel's machine code.

    Attributes
    ----------
    parallel
        Run the loops over ``prange``, which the environment must name so, on numba's threads.
    noalias
        Names of the functions whose array arguments never overlap one another.
    """

    parallel: bool = False
    noalias: tuple[str, ...] = ()


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
    """

    function: Callable[..., Any]
    key: str
    entry: str
    source: str
    signature: Signature
    options: CompileOptions
    from_disk: bool
    compile_result: Any = field(repr=False, compare=False)
    """Numba's result, which owns the machine code."""

    def __call__(self, *arguments: object) -> Any:
        return self.function(*arguments)

    @property
    def address(self) -> int:
        """Of the native function, which is called by numba's convention."""
        return _address(self.compile_result)

    @property
    def assembly(self) -> str:
        """The machine code as assembly text, with what it calls; only of kernels compiled by this process."""
        if self.from_disk:
            raise CompileError(f"kernel {self.entry}: the assembly of a kernel loaded from disk is not kept")
        library = self.compile_result.library
        return str(library.get_asm_str()) + shared_code.assembly_called_by(library)


def _dispatcher(function: FunctionType, is_wrapped: bool, options: CompileOptions) -> Any:
    """Numba's dispatcher for one function of a kernel's source.

    The dispatcher is made directly because ``numba.njit`` returns plain Python functions when
    the user has switched the compiler off by NUMBA_DISABLE_JIT, which cannot call intrinsics.
    """
    target_options = {
        "nopython": True,
        "nogil": True,
        "boundscheck": False,
        "error_model": "numpy",
        "parallel": options.parallel and "prange" in function.__code__.co_names,
        "no_cpython_wrapper": not is_wrapped,
        "no_cfunc_wrapper": True,
    }
    noalias = function.__code__.co_name in options.noalias
    pipeline = LoopCompiler if noalias else compiler.Compiler
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
    kinds = kinds_of(signature)
    filename = f"<esat-{key[:16]}>"
    functions = dict(environment)
    functions["__name__"] = namespace.__name__
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    try:
        exec(compile(source, filename, "exec"), functions)
    except Exception as error:
        raise CompileError(f"kernel {entry}: the generated source does not run: {error}\n{source}") from error
    for name, function in list(functions.items()):
        if isinstance(function, FunctionType) and function.__globals__ is functions:
            # Symbols are named after the function: the key keeps them apart between kernels.
            function.__name__ = function.__qualname__ = f"{name}_{key[:32]}"
            functions[name] = _dispatcher(function, name == entry and kinds is None, options)
    dispatcher: Any = functions.get(entry)
    if not isinstance(dispatcher, CPUDispatcher):
        raise CompileError(f"kernel {entry}: the generated source defines no such function\n{source}")
    try:
        dispatcher.compile(signature)
    except NumbaError as error:
        raise CompileError(f"kernel {entry}: numba refused the source: {error}\n{source}") from error
    result: Any = dispatcher.overloads[signature.args]
    function = _function(result, kinds)
    return CompiledKernel(function, key, entry, source, signature, options, False, result)


def serialize_kernel(kernel: CompiledKernel) -> bytes | None:
    """The machine code of a freshly compiled kernel as bytes; None if it holds process addresses."""
    result = kernel.compile_result
    if result.library.has_dynamic_globals or result.lifted:
        return None
    # Numba would keep an annotated listing of the source with it, which takes long to write.
    reduced = result._replace(type_annotation="")._reduce()
    return bytes(_SERIALIZER.dumps((shared_code.called_by(result.library), reduced)))


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
    with global_compiler_lock:
        if RUN_TIME.encode() in bytes(payload):
            rtsys.initialize(cpu_target.target_context)
        shared, reduced = pickle.loads(payload)
        shared_code.load(shared)
        result = _COMPILER.CompileResult._rebuild(cpu_target.target_context, *reduced)
    function = _function(result, kinds_of(signature))
    return CompiledKernel(function, key, entry, source, signature, options, True, result)


def _function(result: Any, kinds: tuple[Kind, ...] | None) -> Callable[..., Any]:
    """The function that Python calls: of numba's making where it took its own wrapper."""
    if kinds is None:
        wrapped: Callable[..., Any] = result.entry_point
        return wrapped
    return entry_function(_address(result), kinds, result)


def _address(result: Any) -> int:
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))


def signature_text(signature: Signature) -> str:
    """Text that tells signatures apart, down to mutability and alignment of arrays."""

    def text(type_: types.Type) -> str:
        return f"{type(type_).__name__} {type_} {type_.key!r}"

    return "; ".join(text(type_) for type_ in (signature.return_type, *signature.args))
