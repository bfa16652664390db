"""Terms and e-nodes as expressions."""

from __future__ import annotations

from collections.abc import Sequence

from esat.egraph.terms import TermGraph
from esat.rules.macros import permutation_axes, permutation_input_rank


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
    text = {"MatMul": " @ ", "Add": " + ", "Sub": " - ", "Mul": " * ", "Div": " / "}.get(name)
    if text is not None:
        return f"({text.join(shown)})"
    if name == "DimShuffle":
        return f"{shown[0]}{_rearranged(int(attributes[0]))}"
    return f"{name}({', '.join(shown)})"


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
