"""Trees without the names of their atoms: what was found of one tree holds of all that are like it.

Layers of a program are alike up to what stands at the ends of their trees. The outline of a tree tells
everything that its forms depend on but these names, of which it keeps the order.
"""

from __future__ import annotations

from esat.base.records import record
from esat.egraph.algebra.equal_forms.normal_forms import Forms
from esat.egraph.algebra.finite_fields.coded import FILL, PRODUCT, SUM

Token = int | tuple[float]


@record(frozen=True, slots=True)
class Outline:
    """The chosen tree of a class down to its atoms, operators before operands.

    Attributes
    ----------
    tokens
        Of an operation the code, its number and how many operands it has; of a constant its value; of an atom
        ``-1 - i``, where it is the one of the ``i``-th smallest name.
    dtypes
        Of the class and of the atoms.
    """

    tokens: tuple[Token, ...]
    dtypes: tuple[int, ...]


def outline(forms: Forms, klass: int) -> tuple[Outline, list[int]]:
    """The outline of a class's tree, and the names of its atoms in ascending order."""
    found = forms.found
    rank, value, dtype = found.rank, found.reading.value, found.reading.dtype
    tokens: list[Token] = []
    atoms: list[tuple[int, int]] = []
    stack = [klass]
    while stack:
        current = stack.pop()
        if found.coded.is_constant[current]:
            tokens.append((float(value[current]),))
        elif forms.is_atom(current):
            atoms.append((len(tokens), current))
            tokens.append(-1)
        else:
            node = found.chosen_list[current]
            code, operands = found.code_list[node], ordered(forms, node)
            if code == FILL:
                stack.append(operands[1])
                continue
            tokens += (code, found.number_list[node], len(operands))
            stack += reversed(operands)
    classes = sorted({atom for _, atom in atoms}, key=rank.__getitem__)
    number = {atom: place for place, atom in enumerate(classes)}
    for place, atom in atoms:
        tokens[place] = -1 - number[atom]
    dtypes = tuple(dtype[[klass, *classes]].tolist())
    return Outline(tuple(tokens), dtypes), [rank[atom] for atom in classes]


def ordered(forms: Forms, node: int) -> list[int]:
    """Operands of an e-node in an order of ours: the engine has none for what stands on one side."""
    found = forms.found
    operands = found.reading.operands_of(node)
    if found.code_list[node] not in (SUM, PRODUCT):
        return operands

    def key(klass: int) -> tuple[int, int]:
        chosen = found.chosen_list[klass]
        return found.code_list[chosen], found.rank[klass]

    number = found.number_list[node]
    return [*sorted(operands[:number], key=key), *sorted(operands[number:], key=key)]
