"""What ``help`` and ``inspect.signature`` say about an elementwise op: it is a function of its operands."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

_OPERANDS = {1: ("x",), 2: ("x1", "x2")}
"""Number of operands -> their names, as NumPy's ufuncs have them."""

_FLOATS = [[0.25, 0.5], [0.75, 0.5], [0.5, 0.25]]
_INTEGERS: list[list[float]] = [[3, 5], [2, 1], [1, 1]]
_EXAMPLES: dict[str, list[list[float]]] = {
    "arccosh": [[1.25, 1.5]],
    "log1mexp": [[-0.25, -0.5]],
    "polygamma": [[0, 1], [0.25, 0.5]],
}
"""Of ops that the values above are out of range of."""


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
        what = f"{op.formula}, for each element" if op.formula else "Each element from those at its place"
        example = example_of(op)
        values = op.numpy(*(np.array(operand) for operand in example))
        parts = [
            f"{op.name}({parameters})",
            f"{what}, as ``{defined}`` computes it." if defined else f"{what}.",
            *([inspect.cleandoc(self.says)] if self.says else []),
            "Operands are Variables, arrays and numbers. They broadcast against each other, and are cast to\n"
            f"the dtype that NumPy computes in. In rules the op is ``{op.constructor}``.",
            f">>> esat.evaluate(esat.{op.name}({', '.join(map(str, example))}))\n{np.asarray(values)!r}",
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


def example_of(op: Any) -> list[list[float]]:
    """Values of the operands for an example: integers where the op takes no floats."""
    if op.name in _EXAMPLES:
        return _EXAMPLES[op.name]
    return (_FLOATS if op.admits("float64") else _INTEGERS)[: op.arity]
