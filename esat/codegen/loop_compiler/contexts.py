"""What numba asks while it compiles printed loops, answered from memory where the answer stays the same.

Numba finds the type of each operation, and the code for it, by asking all that could know of it: for a
product of two floats, all of NumPy's functions. Kernels consist of few kinds of operations, over and over.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from types import BuiltinFunctionType
from typing import Any
from weakref import WeakKeyDictionary

from numba.core import types
from numba.core.cpu import CPUContext
from numba.core.typing.templates import builtin_registry

from esat.codegen.ground.target import Target
from esat.codegen.loop_compiler.private import PrivateContext

_PLAIN = (types.Integer, types.Float, types.Boolean, types.Array, types.RangeType, types.RangeIteratorType)
"""Types that kernels have in common; not those of literals, of which there is one for each value."""


class RememberingTypes:
    """Numba's context of types, which remembers what functions of its own and intrinsics return.

    Parameters
    ----------
    original
        Numba's own, which is asked for all else.
    """

    def __init__(self, original: Any) -> None:
        self._original = original
        self._signatures: dict[tuple[Any, ...], Any] = {}
        # Equal types are one object in numba: what a function's type has learned of its signatures is there.
        self._of_functions: WeakKeyDictionary[Any, dict[tuple[Any, ...], Any]] = WeakKeyDictionary()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def resolve_function_type(
        self, function: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Any:
        """The signature of a function for arguments of these types; None if it takes none such."""
        if named or not all(map(_is_plain, arguments)):
            return self._original.resolve_function_type(function, arguments, named)
        if type(function) is types.Function:
            known, key = self._of_functions.setdefault(function, {}), arguments
        elif isinstance(function, str | BuiltinFunctionType):
            known, key = self._signatures, (function, *arguments)
        else:
            return self._original.resolve_function_type(function, arguments, named)
        signature = known.get(key)
        if signature is None:
            signature = self._original.resolve_function_type(function, arguments, named)
            if signature is not None:
                known[key] = signature
        return signature

    def resolve_value_type(self, value: Any) -> Any:
        """The type of a global value."""
        # Of a class numba asks first whether it is a typed container, and imports these: 20 ms.
        known = (type_ for one, type_ in builtin_registry.globals if one is value)
        found = next(known, None) if value is range else None
        return self._original.resolve_value_type(value) if found is None else found

    def resolve_static_getitem(self, value: Any, index: Any) -> Any:
        """The signature of taking the element at a known index."""
        return self.resolve_function_type("static_getitem", (value, index), {})

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """The signature of storing an element of this type."""
        function = self._original.resolve_value_type(operator.setitem)
        return self.resolve_function_type(function, (target, index, value), {})


class LoopContext(PrivateContext):
    """Numba's context of code for one function of loops: the original's tables, asked less often.

    Parameters
    ----------
    original
        Numba's own, with the options of the function.
    signatures
        What finds signatures.
    target
        What the code is for; None for what numba's own is for.
    """

    def __init__(self, original: CPUContext, signatures: RememberingTypes, target: Target | None) -> None:
        super().__init__(original, target)
        self.signatures = signatures

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        """What writes the code of a function for a signature."""
        # For each array in use, numba looks in all its tables whether it is something else in disguise, and
        # fills them anew when it has found nothing.
        if fn == "__array__" and type(sig.args[0]) is types.Array:
            raise NotImplementedError("arrays are arrays")
        return super().get_function(fn, sig, _firstcall)


def _is_plain(type_: Any) -> bool:
    """Whether a type, or an index known beforehand, is one of those that kernels have in common."""
    if isinstance(type_, types.Tuple | types.UniTuple):
        return all(map(_is_plain, type_.types))
    return type(type_) is int or (isinstance(type_, _PLAIN) and not isinstance(type_, types.Literal))
