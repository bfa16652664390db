"""What ``help`` and ``inspect.signature`` say about an elementwise op: it is a function of its operands."""

from __future__ import annotations

import inspect
from typing import Any

_OPERANDS = {1: ("x",), 2: ("x1", "x2")}
"""Number of operands -> their names, as NumPy's ufuncs have them."""


class OperandSignature:
    """The signature of an op. Its class has none here: its parameters are those of the record."""

    def __get__(self, op: Any, owner: type) -> inspect.Signature:
        if op is None:
            raise AttributeError("__signature__")
        names = _OPERANDS.get(op.arity) or tuple(f"x{place + 1}" for place in range(op.arity))
        return inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
        )


class Documentation:
    """The docstring of an op, made when it is asked for, and that of its class.

    Parameters
    ----------
    of_class
        The docstring of the class.
    says
        What it says of each of its ops; nothing where it is about records in general.
    """

    def __init__(self, of_class: str | None, says: str = "") -> None:
        self.of_class, self.says = of_class, says

    def __get__(self, op: Any, owner: type) -> str | None:
        if op is None:
            return self.of_class
        parameters = ", ".join(inspect.signature(op).parameters)
        defined = _defining(op.numpy)
        what = f", as ``{defined}`` computes it" if defined else ""
        parts = [
            f"{op.name}({parameters})",
            f"Each element of the result from the elements at its place{what}.",
            *([inspect.cleandoc(self.says)] if self.says else []),
            "Operands are Variables, arrays and numbers. They broadcast against each other, and are cast to\n"
            f"the dtype that NumPy computes in. In rules the op is ``{op.constructor}``.",
        ]
        return "\n\n".join(parts)


def _defining(function: Any) -> str:
    """The public function of NumPy or SciPy that defines an op; empty where there is none."""
    special = getattr(function, "name", None)
    if special is not None:
        return f"scipy.special.{special}"
    name = str(getattr(function, "__name__", "_"))
    module = getattr(function, "__module__", None) or "numpy"
    return "" if name.startswith(("_", "<")) or not module.startswith("numpy") else f"{module}.{name}"
