"""Packed permutation words, axis masks, and the text macros that compute with them inside rules.

egglog has no loops and its vectors cost as much as a call each, so a `DimShuffle` carries its axes in one
integer, the *permutation word*:

====== =============================================================================================
nibble meaning
====== =============================================================================================
0-7    source axis of that output axis; 8 where the axis is inserted (size 1) or beyond the output
8      always 8, so that an inserted axis stays inserted when words are composed
9      output rank
10     input rank
====== =============================================================================================

An axis mask has bit i set for axis i. A broadcast word (`bp`) is the mask of size-1 axes with the bit
``1 << rank`` above them.

The macros below expand to plain `&`, `|`, `<<`, `>>` on 64-bit integers:

===================  =================================================================================
(ds-comp p q)        the word of "first p, then q"
(ds-bp b p)          broadcast word of a value with broadcast word b after p
(ds-mask m p)        axis mask of p's input -> axis mask of its output (inserted axes are not in it)
(ds-unmask m p)      axis mask of p's output -> axis mask of its input
(ds-used p)          mask of the input axes that survive p
(ds-nth p i)         source axis of output axis i; 8 if inserted
(ds-rank p)          output rank of p
(ds-inserted p)      mask of the nibbles of inserted axes, the highest bit of each
(ds-unused b p)      mask of the axes of size 1 in the broadcast word b that p drops
(ds-keep p i u)      p with the first axis of the mask u in the place of the first of (ds-inserted p), i
(ds-transpose)       the word that exchanges the axes of a matrix
(ds-row), (ds-column)  the words that make a row, or a column, of a vector
(ds-drop i r)        the word that drops axis i of r axes, of size 1
(ds-insert i r)      the word that makes an axis of size 1 before axis i of r axes
(ds-first)           the word that drops the second axis of a matrix, of size 1
===================  =================================================================================

Conditions of types that many rules ask for have names, which are read as what they mean:

===================  =================================================================================
(real-valued x)      the dtype of x is not complex: ``(<= (dt x) 11)``
(single-or-double x) the dtype of x is float32 or float64: ``(<= 10 (dt x)) (<= (dt x) 11)``
(one-along m x)      x has size 1 along all axes of the mask m, by type: ``(= m (& m (bp x)))``
===================  =================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import and_, lshift, mul, or_, rshift, sub
from typing import Literal

from esat.rules.language.reader import Form, Sexp, head_of, position_of

MAX_RANK = 8
"""Largest rank a permutation word can hold."""

INSERTED = 8
"""The nibble of an inserted axis."""

_OUTPUT_RANK_SHIFT = 36
_INPUT_RANK_SHIFT = 40

_INTEGER = re.compile(r"-?\d+")
_OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "&": and_,
    "|": or_,
    "<<": lshift,
    ">>": rshift,
    "-": sub,
    "*": mul,
}

Axis = int | Literal["x"]


def permutation_word(axes: Sequence[Axis], input_rank: int | None = None) -> int:
    """Pack an axis order such as ``(1, "x", 0)``; "x" is an inserted axis of size 1.

    Parameters
    ----------
    axes
        Source axis of each output axis, or "x".
    input_rank
        Rank of the operand; by default no axis is dropped.

    Errors
    ------
    ValueError
        If a rank exceeds 8, an axis is out of range, or an axis is taken twice.
    """
    taken = [axis for axis in axes if axis != "x"]
    rank = len(taken) if input_rank is None else input_rank
    if len(axes) > MAX_RANK or not 0 <= rank <= MAX_RANK:
        raise ValueError(f"a permutation word holds at most {MAX_RANK} axes, got {len(axes)} of rank {rank}")
    if len(set(taken)) != len(taken) or any(not 0 <= axis < rank for axis in taken):
        raise ValueError(f"{tuple(axes)} is not an axis order of a value of rank {rank}")
    word = INSERTED << 32 | len(axes) << _OUTPUT_RANK_SHIFT | rank << _INPUT_RANK_SHIFT
    for position in range(MAX_RANK):
        axis = axes[position] if position < len(axes) else "x"
        word |= (INSERTED if axis == "x" else axis) << 4 * position
    return word


def permutation_axes(word: int) -> tuple[Axis, ...]:
    """The axis order of a permutation word: the inverse of `permutation_word`."""
    nibbles = (word >> 4 * position & 15 for position in range(word >> _OUTPUT_RANK_SHIFT & 15))
    return tuple("x" if nibble == INSERTED else nibble for nibble in nibbles)


def permutation_input_rank(word: int) -> int:
    """Rank of the operand of a permutation word."""
    return word >> _INPUT_RANK_SHIFT & 15


def _literal(sexp: Sexp) -> int | None:
    """The value of an integer literal; None for anything else."""
    return int(sexp) if isinstance(sexp, str) and _INTEGER.fullmatch(sexp) else None


def _calculated(operator: str, left: Sexp, right: Sexp) -> Sexp:
    """A call, or what it gives where that is known: words written out in a rule need no arithmetic in it."""
    x, y = _literal(left), _literal(right)
    if x is not None and y is not None:
        return str(_OPERATORS[operator](x, y))
    if operator == "&":
        return "0" if 0 in (x, y) else _bit_of(right) if x == 1 else (operator, left, right)
    if operator in ("|", "<<", ">>", "-") and y == 0:
        return left
    return right if operator == "|" and x == 0 else (operator, left, right)


def _bit_of(word: Sexp) -> Sexp:
    """The lowest bit of a word; that of ``(>> (| mask bits) place)`` does not depend on both sides."""
    mask, place = (word[1], word[2]) if head_of(word) == ">>" and len(word) == 3 else (word, "0")
    match mask, _literal(place):
        case ("|", rest, bits), int(shift) if (known := _literal(bits)) is not None:
            return "1" if known >> shift & 1 else _bit(rest, place)
    return ("&", "1", word)


def _any_of(words: Iterable[Sexp]) -> Sexp:
    """Bitwise or of all words, as a balanced tree: egglog evaluates nested calls recursively."""
    given = list(words)
    known = [value for value in map(_literal, given) if value is not None]
    level = [word for word in given if _literal(word) is None]
    if any(known) or not level:
        level.append(str(reduce(or_, known, 0)))
    while len(level) > 1:
        pairs = [level[start : start + 2] for start in range(0, len(level), 2)]
        level = [("|", *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0]


def _shifted(word: Sexp, left: int) -> Sexp:
    return _calculated("<<", word, str(left))


def _nibble(word: Sexp, index: int) -> Sexp:
    return _calculated("&", "15", _calculated(">>", word, str(4 * index)))


def _bit(mask: Sexp, place: Sexp) -> Sexp:
    return _calculated("&", "1", _calculated(">>", mask, place))


def _compose(first: Sexp, then: Sexp) -> Sexp:
    def source(position: int) -> Sexp:
        # Four times the nibble of `then`: the bit offset at which `first` holds the source axis.
        shifted = (">>", str(4 * position - 2)) if position else ("<<", "2")
        offset = _calculated("&", "60", _calculated(shifted[0], then, shifted[1]))
        return _shifted(_calculated("&", "15", _calculated(">>", first, offset)), 4 * position)

    output = _calculated("&", then, str(255 << 32))
    input_rank = _calculated("&", first, str(15 << _INPUT_RANK_SHIFT))
    return _any_of([*(source(position) for position in range(MAX_RANK)), output, input_rank])


def _output_rank(word: Sexp) -> Sexp:
    return _calculated("&", "15", _calculated(">>", word, str(_OUTPUT_RANK_SHIFT)))


def _output_mask(mask: Sexp, word: Sexp) -> Sexp:
    bits = (_bit(mask, _nibble(word, index)) for index in range(MAX_RANK))
    return _any_of(_shifted(bit, index) for index, bit in enumerate(bits))


def _input_mask(mask: Sexp, word: Sexp) -> Sexp:
    # Inserted axes shift their bit to position 8, beyond the mask.
    bits = (_calculated("<<", _bit(mask, str(index)), _nibble(word, index)) for index in range(MAX_RANK))
    return _calculated("&", "255", _any_of(bits))


def _used_axes(word: Sexp) -> Sexp:
    bits = (_calculated("<<", "1", _nibble(word, index)) for index in range(MAX_RANK))
    return _calculated("&", "255", _any_of(bits))


def _broadcast(broadcast: Sexp, word: Sexp) -> Sexp:
    sentinel = _calculated("<<", "1", _output_rank(word))
    # Bit 8 is what an inserted axis reads, and it is 1: the axis has size 1.
    mask = _output_mask(_calculated("|", broadcast, "256"), word)
    return _calculated("|", sentinel, _calculated("&", _calculated("-", sentinel, "1"), mask))


def _inserted(word: Sexp) -> Sexp:
    # Only the nibble of an inserted axis has its highest bit set.
    positions = _calculated("-", _calculated("<<", "1", _calculated("*", "4", _output_rank(word))), "1")
    return _calculated("&", _calculated("&", word, str(0x88888888)), positions)


def _unused(broadcast: Sexp, word: Sexp) -> Sexp:
    sentinel = _calculated("<<", "1", _calculated("&", "15", _calculated(">>", word, str(_INPUT_RANK_SHIFT))))
    of_size_one = _calculated("&", broadcast, _calculated("-", sentinel, "1"))
    return _calculated("-", of_size_one, _calculated("&", of_size_one, _used_axes(word)))


def _kept(word: Sexp, inserted: Sexp, unused: Sexp) -> Sexp:
    place, axis = _lowest_bit(inserted), ("log2", _lowest_bit(unused))
    kept = _calculated("*", _calculated(">>", place, "3"), axis)
    return _calculated("|", _calculated("-", word, place), kept)


def _lowest_bit(mask: Sexp) -> Sexp:
    return _calculated("&", mask, _calculated("-", "0", mask))


def _source_axis(word: Sexp, axis: Sexp) -> Sexp:
    return _calculated("&", "15", _calculated(">>", word, _calculated("*", "4", axis)))


def _dropping(axis: int, rank: int) -> int:
    return permutation_word([one for one in range(rank) if one != axis], rank)


def _inserting(axis: int, rank: int) -> int:
    return permutation_word([*range(axis), "x", *range(axis, rank)], rank)


MACROS: Mapping[str, tuple[int, Callable[..., Sexp]]] = {
    "ds-comp": (2, _compose),
    "ds-bp": (2, _broadcast),
    "ds-mask": (2, _output_mask),
    "ds-unmask": (2, _input_mask),
    "ds-used": (1, _used_axes),
    "ds-nth": (2, _source_axis),
    "ds-rank": (1, _output_rank),
    "ds-inserted": (1, _inserted),
    "ds-unused": (2, _unused),
    "ds-keep": (3, _kept),
    "ds-drop": (2, lambda axis, rank: str(_dropping(int(axis), int(rank)))),
    "ds-insert": (2, lambda axis, rank: str(_inserting(int(axis), int(rank)))),
    "ds-first": (0, lambda: str(permutation_word((0,), 2))),
    "ds-transpose": (0, lambda: str(permutation_word((1, 0), 2))),
    "ds-row": (0, lambda: str(permutation_word(("x", 0), 1))),
    "ds-column": (0, lambda: str(permutation_word((0, "x"), 1))),
}
"""Macro name -> (number of operands, expansion)."""

_SINGLE, _LAST_REAL = 10, 11
"""Numbers of float32 and of float64, the last dtype before the complex ones."""

CONDITIONS: Mapping[str, tuple[int, Callable[..., tuple[Sexp, ...]]]] = {
    "real-valued": (1, lambda x: (("<=", ("dt", x), str(_LAST_REAL)),)),
    "single-or-double": (
        1,
        lambda x: (("<=", str(_SINGLE), ("dt", x)), ("<=", ("dt", x), str(_LAST_REAL))),
    ),
    "one-along": (2, lambda m, x: (("=", m, ("&", m, ("bp", x))),)),
}
"""Name of a condition -> (number of operands, the facts it means)."""


def condition_meant(fact: Sexp) -> tuple[Sexp, ...]:
    """What a fact of a rule means; one without a name of :data:`CONDITIONS` is what it was.

    Errors
    ------
    RuleError
        If a condition has the wrong number of operands.
    """
    name = head_of(fact)
    if name not in CONDITIONS:
        return (fact,)
    arity, meaning = CONDITIONS[name]
    if len(fact) - 1 != arity:
        raise position_of(fact).error(f"the condition {name} takes {arity} operands, got {len(fact) - 1}")
    meant = meaning(*fact[1:])
    if not isinstance(fact, Form):
        return meant
    return tuple([Form.at(one, fact.position, fact.text, fact.span) for one in meant])


def expand(sexp: Sexp) -> Sexp:
    """`sexp` with every macro call expanded; forms without one keep their positions.

    Errors
    ------
    RuleError
        If a macro has the wrong number of operands.
    """
    if isinstance(sexp, str):
        return sexp
    items = tuple([item if isinstance(item, str) else expand(item) for item in sexp])
    name = head_of(sexp)
    if name not in MACROS:
        if items == sexp:
            return sexp
        return Form.at(items, sexp.position, sexp.text, sexp.span) if isinstance(sexp, Form) else items
    arity, macro = MACROS[name]
    if len(items) - 1 != arity:
        raise position_of(sexp).error(f"the macro {name} takes {arity} operands, got {len(items) - 1}")
    return macro(*items[1:])
