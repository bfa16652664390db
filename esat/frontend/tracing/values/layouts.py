"""How arrays of a traced function would lie in memory if NumPy computed them.

NumPy decides by memory order whether ``x.reshape(-1)`` or ``np.ascontiguousarray(x)`` is a view, to which
assignments write through, or a copy. So each traced array has a layout, which knows the function of NumPy's
that makes the array. Where it matters, that function is called with example arrays of the sizes and strides
of its operands, and the result is an example of what lies in memory as the array would.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.base.records import record

Example = np.ndarray[Any, np.dtype[Any]]
LARGEST_EXAMPLE = 1 << 20
"""Elements up to which a function is called though its operands are in C order: most results are, then."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@record(frozen=True, eq=False)
class KnownLayout:
    """What is known of how an array lies in memory.

    Attributes
    ----------
    example
        An array of the same sizes and strides; None where sizes are not known.
    contiguous
        Whether elements lie in C order; None where that is not known.
    assumed
        Positions of arguments of which it was taken that they are C-contiguous.
    """

    example: Example | None
    contiguous: bool | None
    assumed: frozenset[int] = frozenset()


class MemoryLayout:
    """How one array lies in memory, found out when it is asked for.

    Parameters
    ----------
    shape
        The sizes, None where one is not known.
    dtype
        Of the elements.
    made_by
        The function of NumPy's that makes it; None for a new array in C order.
    operands, options
        What the function is called with: layouts in place of arrays.
    keeps_order
        Whether, of operands in C order, the function makes such an array: asked where sizes are not known,
        and where they are large.
    assumed
        The argument, by its position, that it is of, where it is taken to be in C order.
    found
        What is known of it from the beginning.
    """

    __slots__ = ("_found", "assumed", "dtype", "keeps_order", "made_by", "operands", "options", "shape")

    def __init__(
        self,
        shape: tuple[int, ...] | None,
        dtype: Any,
        made_by: Callable[..., Any] | None = None,
        operands: Sequence[Any] = (),
        options: Mapping[str, Any] = _NOTHING,
        keeps_order: bool = True,
        assumed: frozenset[int] = frozenset(),
        found: KnownLayout | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.made_by = made_by
        self.operands = operands
        self.options = options
        self.keeps_order = keeps_order
        self.assumed = assumed
        self._found = found

    def found(self) -> KnownLayout:
        """What is known of it, after asking the same of all that it is made of."""
        waiting = [self]  # not by recursion: programs may be long
        while self._found is None:
            last = waiting[-1]
            missing = [one for one in _layouts_in([last.operands, last.options]) if one._found is None]
            if missing:
                waiting += missing
            else:
                waiting.pop()._settle()
        return self._found

    def _settle(self) -> None:
        if self._found is not None:
            return
        parts = [one.found() for one in _layouts_in([self.operands, self.options])]
        assumed = self.assumed.union(*(part.assumed for part in parts))
        in_order = self.keeps_order and all(part.contiguous for part in parts)
        if self.shape is None:
            self._found = KnownLayout(None, True if in_order else None, assumed)
            return
        sizes = [self.shape, *(part.example.shape for part in parts if part.example is not None)]
        run = self.made_by is not None and not (in_order and max(map(math.prod, sizes)) > LARGEST_EXAMPLE)
        made = self._made() if run else None
        made = example_of(self.shape, self.dtype) if made is None else made
        self._found = KnownLayout(made, made.flags.c_contiguous, assumed)

    def _made(self) -> Example | None:
        """What NumPy makes of examples; None where it refuses these, or what it makes is something else."""
        assert self.made_by is not None
        operands, options = _with_examples(self.operands), _with_examples(self.options)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = np.asarray(self.made_by(*operands, **options))
        except (ArithmeticError, LookupError, TypeError, ValueError):  # of values that examples do not have
            return None
        if made.shape != self.shape:
            return None
        return made if made.dtype == self.dtype else np.empty_like(made, self.dtype)


def _layouts_in(value: Any) -> list[MemoryLayout]:
    if type(value) is MemoryLayout:
        return [value]
    if isinstance(value, (tuple, list)):
        return [one for part in value for one in _layouts_in(part)]
    if isinstance(value, Mapping):
        return [one for part in value.values() for one in _layouts_in(part)]
    return []


def _with_examples(value: Any) -> Any:
    if type(value) is MemoryLayout:
        example = value.found().example
        return example if example is None or example.ndim else example[()]  # an index of rank 0 is a number
    if isinstance(value, (tuple, list)):
        parts = [_with_examples(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, Mapping):
        return {key: _with_examples(part) for key, part in value.items()}
    return value


def example_of(
    shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None, writeable: bool = True
) -> Example:
    """An array of given strides that most functions take: identity matrices, where it has two axes. A large
    one is zeros, which take no memory before they are read."""
    dtype = np.dtype(dtype)
    if strides is None or 0 in shape:
        made: Example = np.zeros(shape, dtype)
    else:
        steps = [step * (size - 1) for step, size in zip(strides, shape, strict=True)]
        before = -sum(step for step in steps if step < 0)
        memory = np.zeros(before + sum(step for step in steps if step > 0) + dtype.itemsize, np.uint8)
        made = np.ndarray(shape, dtype, memory, before, strides)
    fills = dtype.kind in "fc" and made.size <= LARGEST_EXAMPLE
    if fills and len(shape) < 2:
        made[...] = 1
    elif fills:
        diagonal = np.arange(min(shape[-2:]))
        made[..., diagonal, diagonal] = 1
    made.flags.writeable = writeable
    return made


def layout_key(array: Any) -> Any:
    """What programs that depend on memory order are found by, of an argument."""
    flags = getattr(array, "flags", None)
    if flags is None or (flags.c_contiguous and flags.writeable):
        return "C"
    return array.shape, array.strides, flags.writeable


def elementwise(*operands: Any, **options: Any) -> Example:
    """An array that lies as the results of elementwise functions do: as operands do."""
    flags: Any = ["zerosize_ok", "refs_ok"]
    made: Any = np.nditer([*operands, None], flags).operands[-1]
    return np.asarray(made)


def shares_memory(result: Any, example: Example) -> bool:
    """Whether a function's result is a view of its operand."""
    return isinstance(result, np.ndarray) and (
        math.prod(example.shape) == 0 or bool(np.may_share_memory(result, example))
    )
