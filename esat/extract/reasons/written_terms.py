"""Which term of a program a user means: by a name, a number of an output, or a Variable."""

from __future__ import annotations

from collections.abc import Sequence

from esat.egraph.language.encode import encode
from esat.egraph.language.terms import Term, TermGraph
from esat.errors import CompileError, InputError
from esat.extract.reasons.given_names import names_of_classes
from esat.graph import Constant, FunctionGraph, SharedVariable, Variable, inputs_of


def term_meant(terms: TermGraph, value: object) -> int:
    """The number of the term that a user asks about.

    Parameters
    ----------
    value
        A name that a line of the user's assigns, the name of an input, the number of an output, or a
        Variable of the graph that was compiled.

    Raises
    ------
    InputError
        For what is none of these, or not in the program.
    """
    if isinstance(value, Variable):
        return _number_of(terms, value)
    if isinstance(value, str):
        return _named(terms, value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"why: {value!r} is neither a Variable, a name nor the number of an output")
    outputs = len(terms.roots)
    place: int = value.__index__()
    if not -outputs <= place < outputs:
        raise InputError(f"why: there is no output {place}: the program has {outputs}")
    return terms.roots[place]


def _named(terms: TermGraph, name: str) -> int:
    names = names_of_classes(terms, range(len(terms.terms)))
    inputs = {
        str(terms.inputs[int(term.attributes[0])]): number
        for number, term in enumerate(terms.terms)
        if term.constructor == "In"
    }
    known = {**inputs, **{own: number for number, own in names.items()}}
    if name not in known:
        told = ", ".join(sorted(known)) or "none"
        raise InputError(
            f"why: no value of the program goes by the name {name!r}; names that its lines assign: {told}."
            " A Variable, or the number of an output, does as well"
        )
    return known[name]


def _number_of(terms: TermGraph, variable: Variable) -> int:
    """The number of the term that computes a Variable of the written graph."""
    leaves = [leaf for leaf in inputs_of([variable]) if not isinstance(leaf, Constant | SharedVariable)]
    try:
        own = encode(FunctionGraph(leaves, [variable], clone=False))
    except CompileError:
        own = TermGraph((), (), (0,))
    found = _same_terms(own, terms).get(own.roots[0])
    if found is None:
        raise InputError(
            f"why: {variable} is no value of the program that was compiled: it belongs to another graph, or"
            " an optimizer before saturation replaced it. The number of an output, or a name, does as well"
        )
    return found


def _same_terms(own: TermGraph, terms: TermGraph) -> dict[int, int]:
    """Numbers of terms of one graph -> those of the same terms of another; inputs go by name and type."""
    known = {term: number for number, term in enumerate(terms.terms)}
    arrays = {_content(array): number for number, array in enumerate(terms.arrays)}
    opaque = {op: number for number, op in enumerate(terms.opaque)}
    numbers: dict[int, int] = {}
    for number, term in enumerate(own.terms):
        operands = tuple(numbers.get(operand, -1) for operand in term.operands)
        attributes = term.attributes
        if term.constructor == "In":
            attributes = (_place_of(own.inputs[int(attributes[0])], terms.inputs),)
        elif term.constructor == "Array":
            attributes = (arrays.get(_content(own.arrays[int(attributes[0])]), -1),)
        candidates = [attributes]
        if own.opaque and attributes and attributes[-1] in range(len(own.opaque)):
            place = opaque.get(own.opaque[int(attributes[-1])], -1)
            candidates.append((*attributes[:-1], place))
        for one in candidates:
            found = known.get(Term(term.constructor, operands, one))
            if found is not None:
                numbers[number] = found
    return numbers


def _place_of(leaf: Variable, inputs: Sequence[Variable]) -> int:
    for place, one in enumerate(inputs):
        if one is leaf or (leaf.name is not None and (one.name, one.type) == (leaf.name, leaf.type)):
            return place
    alike = [place for place, one in enumerate(inputs) if (one.name, one.type) == (leaf.name, leaf.type)]
    return alike[0] if len(alike) == 1 else -1


def _content(array: Constant) -> tuple[object, ...]:
    return array.type, array.data.tobytes()
