"""Which kernel a sparse matrix and narrow dense ones go to, found once for operands of their sizes.

A program of large arrays drives the interpreter's own data out of the caches: each function that is called
on the way to a kernel then takes 10 to 30 microseconds. So what was found for operands of some sizes is
looked up by these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads import configured_threads, granted_threads
from esat.codegen.threads.choice import ThreadingChoice
from esat.graph.op import Array
from esat.graph.sparse_type import Format

WIDEST = 32
"""Columns of a dense operand up to which a row of the result stays in registers."""
LEAST_WORK = 1 << 14
"""Multiplications from which a compiled kernel is worth its loading."""
SHARED_FROM = 1 << 20
"""Multiplications from which several threads may share the rows: a tenth of a millisecond for one."""
TURNS = 4
"""Parts of the rows for each thread; rows store different numbers of values."""
MAXIMUM_KNOWN = 128
_DTYPES = ("float32", "float64")
_LAYOUT = 0x101
"""Flags of an array that is in C order and aligned."""

Kernel = Callable[..., None]


class SparseCalls:
    """Finds kernels for operands.

    Called with a sparse matrix and dense ones, it gives what to call with the kernel's arguments, or None
    where there is no kernel for them or its loading would not pay.

    Parameters
    ----------
    dtype
        Of the values and of the dense matrices.
    threads
        The most there may be; None for what :func:`default_threads` says at each call.
    refuse
        Raises an error for operands whose sizes do not fit.
    kernel
        Compiles the kernel for such operands; None where there is none. Its last arguments are the address
        of a pool and the number of threads.
    formats
        Of the sparse matrices whose rows, or columns, threads may share.
    """

    def __init__(
        self,
        dtype: str,
        threads: int | None,
        refuse: Callable[..., None],
        kernel: Callable[..., Kernel | None],
        formats: tuple[Format, ...] = ("csr",),
    ) -> None:
        self._dtype = dtype
        self._threads = 1 if threads is None and configured_threads() == 1 else threads
        self._refuse = refuse
        self._kernel = kernel
        self._formats = formats
        self._known: dict[object, Callable[..., None] | None] = {}

    def __call__(self, sparse: Any, *dense: Array) -> Callable[..., None] | None:
        pointers, indices, values = sparse.indptr, sparse.indices, sparse.data
        key = (
            type(sparse),
            sparse.shape,
            pointers.dtype.num,
            indices.dtype.num,
            values.size.bit_length(),
            pointers.flags.num & indices.flags.num & values.flags.num & _LAYOUT,
            *[(array.shape, array.flags.num & _LAYOUT) for array in dense],
        )
        try:
            return self._known[key]
        except KeyError:
            return self._find(key, sparse, dense)

    def _find(self, key: object, sparse: Any, dense: tuple[Array, ...]) -> Callable[..., None] | None:
        self._refuse(sparse, *dense)
        while len(self._known) >= MAXIMUM_KNOWN:
            self._known.pop(next(iter(self._known)), None)
        found = self._known[key] = self._made(sparse, dense)
        return found

    def _made(self, sparse: Any, dense: tuple[Array, ...]) -> Callable[..., None] | None:
        arrays = (sparse.indptr, sparse.indices, sparse.data, *dense)
        width = dense[0].shape[1]
        work = sparse.data.size * width
        if self._dtype not in _DTYPES or not 0 < width <= WIDEST or work < LEAST_WORK:
            return None
        if sparse.indptr.dtype != sparse.indices.dtype or not all(array.flags.aligned for array in arrays):
            return None
        kernel = self._kernel(sparse, *dense)
        if kernel is None:
            return None
        in_order = all(array.flags.c_contiguous for array in arrays)
        if self._threads == 1 or work < SHARED_FROM or sparse.format not in self._formats:
            run: Callable[..., None] = _Alone(kernel).run
        else:
            run = _Shared(kernel, self._threads).run
        return run if in_order else _InOrder(run).run


class _Alone:
    """A kernel in one thread."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def run(self, *arguments: Any) -> None:
        self._kernel(*arguments, 0, 1)


class _Shared:
    """A kernel in several threads or in one, whichever is faster."""

    def __init__(self, kernel: Kernel, threads: int | None) -> None:
        self._kernel = kernel
        self._threads = threads
        self._choice = ThreadingChoice()

    def run(self, *arguments: Any) -> None:
        self._choice.run(granted_threads(self._threads), self._kernel, *arguments)


class _InOrder:
    """A kernel for arrays in any order: it gets copies in C order. Outputs are in that order."""

    def __init__(self, run: Callable[..., None]) -> None:
        self._run = run

    def run(self, *arguments: Any) -> None:
        self._run(
            *[
                np.ascontiguousarray(argument) if isinstance(argument, np.ndarray) else argument
                for argument in arguments
            ]
        )


def types_of_sparse(dtype: str, index: np.dtype[Any]) -> list[Any]:
    """Types of the arrays of a sparse matrix: pointers, indices, values."""
    place = NUMBA_TYPES[index.name]
    return [types.Array(item, 1, "C") for item in (place, place, NUMBA_TYPES[dtype])]
