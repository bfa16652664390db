"""Terms and e-nodes as expressions of Python, for reports."""

from __future__ import annotations

import re
from collections.abc import Sequence

from esat.egraph.language.terms import TermGraph
from esat.graph.types import DTYPES
from esat.ops.annotations.as_written import AsWritten
from esat.rules.language.macros import permutation_axes, permutation_input_rank


def form_text(name: str, attributes: Sequence[int | float], shown: Sequence[str], terms: TermGraph) -> str:
    """A constructor with its attributes as an expression of the texts of its operands."""
    if name == "In":
        return str(terms.inputs[int(attributes[0])])
    if name == "K":
        return f"{attributes[0]:g}"
    if name == "Array":
        return f"constant {int(attributes[0])}"
    if name in ("NarySum", "NaryProd"):
        sign, inverse = (" + ", " - ") if name == "NarySum" else (" * ", " / ")
        above, under = shown[: int(attributes[0])], shown[int(attributes[0]) :]
        if len(above) == 1 and not under:
            return above[0]
        start = sign.join(above) if above else ("0" if name == "NarySum" else "1")
        return f"({start}{''.join(inverse + part for part in under)})"
    if name == "DimShuffle":
        return f"{shown[0]}{_rearranged(int(attributes[0]))}"
    if name.startswith("AsWritten"):
        hidden = terms.opaque[int(attributes[-1])].op
        name = hidden.op.constructor if isinstance(hidden, AsWritten) else name
    return call_text(name, attributes, shown)


def call_text(name: str, attributes: Sequence[int | float], shown: Sequence[str]) -> str:
    """A constructor as the operator or function that users write.

    >>> call_text("LogSoftmax", [2], ["(x + y)"])
    'log_softmax(x + y, axis=1)'
    """
    operator = _OPERATORS.get(name)
    if operator is not None and len(shown) == 2:
        return f"({f' {operator} '.join(shown)})"
    if name == "Output":
        return f"{shown[0]}[{int(attributes[0])}]"
    if name == "Neg":
        return f"-{shown[0]}"
    if name == "Sqr":
        return f"({shown[0]})**2" if shown[0].startswith("-") else f"{shown[0]}**2"
    arguments = [bare(one) for one in shown]
    if name.startswith("Reduce") or name in ("Softmax", "LogSoftmax"):
        axes = [axis for axis in range(64) if int(attributes[0]) >> axis & 1]
        arguments.append(f"axis={axes[0] if len(axes) == 1 else tuple(axes)}")
    if name == "Cast":
        arguments.append(DTYPES[int(attributes[0])])
    return f"{_function(name)}({', '.join(arguments)})"


_OPERATORS = {
    **{
        "MatMul": "@",
        "Add": "+",
        "Sub": "-",
        "Mul": "*",
        "Div": "/",
        "FloorDiv": "//",
        "Mod": "%",
        "Pow": "**",
    },
    **{"Eq": "==", "Ne": "!=", "Lt": "<", "Le": "<=", "Gt": ">", "Ge": ">="},
    **{"BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^"},
}
_NAMES = {"Slogdet": "slogdet", "SlogDet": "slogdet", "Switch": "where", "Identity": "copy", "ShapeI": "size"}


def _function(constructor: str) -> str:
    """The name of a constructor's function: in lower case, words apart; without a number of operands."""
    plain = re.sub(r"_\d+$", "", constructor).removeprefix("Reduce").replace("MatMul", "Matmul")
    return _NAMES.get(plain) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain).lower()


def bare(text: str) -> str:
    """An expression without parentheses around all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for place, sign in enumerate(text):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 and "," not in text else text
    return text


def _rearranged(word: int) -> str:
    """A dimshuffle as NumPy's users write it, where they can."""
    order, rank = permutation_axes(word), permutation_input_rank(word)
    axes = [axis for axis in order if axis != "x"]
    if order == (1, 0) and rank == 2:
        return ".T"
    if axes != sorted(axes, key=int):
        return f".dimshuffle({', '.join(map(str, order))})"
    index, following = [], 0
    for axis in order:
        if axis == "x":
            index.append("None")
        else:
            index += ["0"] * (int(axis) - following) + [":"]
            following = int(axis) + 1
    return f"[{', '.join(index + ['0'] * (rank - following))}]"
