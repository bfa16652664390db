"""egglog's primitives by name: the operation for the sorts of arguments, and the sort of the result."""

from __future__ import annotations

from collections.abc import Sequence

from esat.engine import arithmetic as a
from esat.engine import primitives as p
from esat.engine.vocabulary import UnknownFormError, Vocabulary

_INTEGERS = {
    "+": a.ADD,
    "-": a.SUBTRACT,
    "*": a.MULTIPLY,
    "/": a.DIVIDE,
    "%": a.REMAINDER,
    "&": a.AND,
    "|": a.OR,
    "^": a.XOR,
    "<<": a.SHIFT_LEFT,
    ">>": a.SHIFT_RIGHT,
    "not-i64": a.NOT,
    "log2": a.LOG2,
    "abs": a.ABSOLUTE,
    "min": a.SMALLER,
    "max": a.LARGER,
    "to-f64": a.TO_FLOAT,
    "<": a.LESS,
    ">": a.GREATER,
    "<=": a.LESS_EQUAL,
    ">=": a.GREATER_EQUAL,
}
_FLOATS = {
    "+": a.FLOAT_ADD,
    "-": a.FLOAT_SUBTRACT,
    "*": a.FLOAT_MULTIPLY,
    "/": a.FLOAT_DIVIDE,
    "^": a.FLOAT_POWER,
    "neg": a.FLOAT_NEGATE,
    "abs": a.FLOAT_ABSOLUTE,
    "min": a.FLOAT_SMALLER,
    "max": a.FLOAT_LARGER,
    "to-i64": a.TO_INTEGER,
    "<": a.FLOAT_LESS,
    ">": a.FLOAT_GREATER,
    "<=": a.FLOAT_LESS_EQUAL,
    ">=": a.FLOAT_GREATER_EQUAL,
}
_CONTAINERS = {
    "multiset-length": p.LENGTH_OF,
    "multiset-remove": p.REMOVE,
    "multiset-insert": p.INSERT,
    "multiset-sum": p.SUM_OF,
    "multiset-subtract": p.DIFFERENCE_OF,
    "multiset-intersection": p.INTERSECTION_OF,
    "multiset-of": p.MULTISET_OF,
    "multiset-single": p.SINGLE,
    "multiset-count": p.COUNT_OF,
    "multiset-reset-counts": p.RESET_COUNTS,
    "multiset-pick-max": p.PICK_MAX,
    "multiset-sum-multisets": p.SUM_MULTISETS,
    "multiset-contains": p.CONTAINS,
    "multiset-not-contains": p.CONTAINS_NOT,
    "multiset-contains-swapped": p.CONTAINS_SWAPPED,
    "pair": p.PAIR_OF,
    "pair-first": p.FIRST,
    "pair-second": p.SECOND,
}
HIGHER = {
    "unstable-multiset-map": p.MAP,
    "unstable-multiset-filter": p.FILTER,
    "unstable-multiset-filter-not": p.FILTER_NOT,
    "unstable-multiset-reduce": p.REDUCE,
}
CHECKS = frozenset({"<", ">", "<=", ">=", "!=", "multiset-contains", "multiset-not-contains"})
"""Primitives that have no result: facts by themselves."""
CHEAP = frozenset({p.LENGTH_OF, p.COUNT_OF, p.CONTAINS, p.CONTAINS_NOT, p.FIRST, p.SECOND})
"""Operations on containers that make none."""
_ASSOCIATIVE = frozenset({"+", "*", "&", "|", "^", "min", "max"})
NAMES = frozenset({*_INTEGERS, *_FLOATS, *_CONTAINERS, *HIGHER, "!=", "ordering-min", "ordering-max", "neg"})
_SAME = frozenset(
    {
        "multiset-remove",
        "multiset-insert",
        "multiset-sum",
        "multiset-subtract",
        "multiset-intersection",
        "multiset-reset-counts",
        "ordering-min",
        "ordering-max",
    }
)


def is_associative(name: str) -> bool:
    """Whether egglog takes more than two arguments for nested calls."""
    return name in _ASSOCIATIVE


def result_sort(  # noqa: PLR0911 - one kind of primitive after the other
    vocabulary: Vocabulary, name: str, sorts: Sequence[str], function: str = ""
) -> str:
    """The sort of a result; empty where it is not known yet, or there is none.

    Parameters
    ----------
    sorts
        Of the arguments; empty where one is not known.
    function
        The sort of what a function that is an argument makes.
    """
    if name in CHECKS or not sorts:
        return ""
    first = sorts[0]
    if name in ("multiset-length", "multiset-count", "log2", "to-i64"):
        return "i64"
    if name == "to-f64":
        return "f64"
    if name in _SAME or name in ("unstable-multiset-filter", "unstable-multiset-filter-not"):
        return first or (sorts[1] if name.startswith("ordering") or "su" in name else "")
    if name == "unstable-multiset-reduce":
        return first
    if name == "unstable-multiset-map":
        return vocabulary.multiset_of(function) if function else ""
    if name in ("multiset-of", "multiset-single"):
        return vocabulary.multiset_of(first) if first else ""
    if name in ("multiset-pick-max", "multiset-sum-multisets", "pair-first", "pair-second"):
        parts = vocabulary.elements.get(first, ())
        return parts[-1 if name == "pair-second" else 0] if parts else ""
    if name == "pair":
        return vocabulary.pair_of(*sorts) if all(sorts) else ""
    return next((sort for sort in sorts if sort), "")


def operation(vocabulary: Vocabulary, name: str, sorts: Sequence[str]) -> int:
    """The operation that a primitive is for arguments of these sorts.

    Raises
    ------
    UnknownFormError
        Where the machine has none.
    """
    if name == "!=":
        return a.DIFFERENT
    if name == "ordering-min":
        return a.SMALLER
    if name == "ordering-max":
        return a.LARGER
    if name in HIGHER:
        return HIGHER[name]
    if name in _CONTAINERS:
        return _CONTAINERS[name]
    table = _FLOATS if "f64" in sorts else _INTEGERS
    if name not in table or not all(sort in ("i64", "f64") for sort in sorts) or len({*sorts}) > 1:
        raise UnknownFormError(f"the primitive {name} of {' '.join(sorts)}")
    if name == "-" and len(sorts) == 1:
        raise UnknownFormError("the primitive - of one number")
    return table[name]
