"""The macros against NumPy's transposes and reductions."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from esat.errors import RuleError
from esat.rules import expand, permutation_axes, permutation_input_rank, permutation_word, read_forms
from esat.rules.language.macros import MACROS, MAX_RANK, Axis
from esat.rules.language.reader import Sexp, is_number

ARITHMETIC = {
    "&": lambda left, right: left & right,
    "|": lambda left, right: left | right,
    "<<": lambda left, right: left << right,
    ">>": lambda left, right: left >> right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "log2": lambda operand: operand.bit_length() - 1,
}


def value(sexp: Sexp, variables: dict[str, int]) -> int:
    """What egglog computes for an expanded expression; every intermediate must fit 64 bits."""
    if isinstance(sexp, str):
        return int(sexp) if is_number(sexp) else variables[sexp]
    operands = (value(operand, variables) for operand in sexp[1:])
    result: int = ARITHMETIC[str(sexp[0])](*operands)
    assert -(2**63) <= result < 2**63
    return result


def call(macro: str, *operands: int) -> int:
    """The value of a macro's expansion, whichever operands are written out in the rule."""
    names = [f"v{index}" for index in range(len(operands))]
    variables = dict(zip(names, operands, strict=True))
    (found,) = {
        value(expand((macro, *given)), variables)
        for given in itertools.product(*((name, str(word)) for name, word in variables.items()))
    }
    return found


def random_order(source: random.Random, rank: int, *, dropped: tuple[int, ...] = ()) -> tuple[Axis, ...]:
    axes: list[Axis] = [axis for axis in range(rank) if axis not in dropped]
    source.shuffle(axes)
    while len(axes) < MAX_RANK and source.random() < 0.4:
        axes.insert(source.randrange(len(axes) + 1), "x")
    return tuple(axes)


def shuffled(array: np.ndarray, axes: tuple[Axis, ...]) -> np.ndarray:
    """What DimShuffle does."""
    kept = [axis for axis in axes if axis != "x"]
    dropped = tuple(axis for axis in range(array.ndim) if axis not in kept)
    moved = np.transpose(array, (*kept, *dropped)).reshape([array.shape[axis] for axis in kept])
    return np.expand_dims(moved, tuple(index for index, axis in enumerate(axes) if axis == "x"))


def mask_of(axes: set[int]) -> int:
    return sum(1 << axis for axis in axes)


def word_of(array: np.ndarray) -> int:
    """The broadcast word of an array, not normalised."""
    return 1 << array.ndim | mask_of({axis for axis, size in enumerate(array.shape) if size == 1})


@pytest.fixture(params=range(60))
def view(request: pytest.FixtureRequest) -> tuple[np.ndarray, tuple[Axis, ...]]:
    """An array with some axes of size 1 and a DimShuffle of it that drops some of those."""
    source = random.Random(request.param)
    rank = source.randint(0, 6)
    shape = [source.choice([1, size]) for size in (2, 3, 5, 7, 11, 13)[:rank]]
    dropped = tuple(axis for axis in range(rank) if shape[axis] == 1 and source.random() < 0.3)
    array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    return array, random_order(source, rank, dropped=dropped)


def test_words_round_trip(view: tuple[np.ndarray, tuple[Axis, ...]]) -> None:
    array, axes = view
    word = permutation_word(axes, array.ndim)
    assert permutation_axes(word) == axes
    assert permutation_input_rank(word) == array.ndim
    assert call("ds-rank", word) == len(axes)
    for index, axis in enumerate(axes):
        assert call("ds-nth", word, index) == (8 if axis == "x" else axis)
    assert call("ds-used", word) == mask_of({axis for axis in axes if axis != "x"})


def test_broadcast_words(view: tuple[np.ndarray, tuple[Axis, ...]]) -> None:
    array, axes = view
    word = permutation_word(axes, array.ndim)
    assert call("ds-bp", word_of(array), word) == word_of(shuffled(array, axes))
    ones = shuffled(np.ones((1,) * array.ndim), axes)
    assert call("ds-bp", -1, word) == word_of(ones)


def test_composition(view: tuple[np.ndarray, tuple[Axis, ...]]) -> None:
    array, axes = view
    middle = shuffled(array, axes)
    source = random.Random(str(axes))
    dropped = tuple(axis for axis in range(middle.ndim) if middle.shape[axis] == 1 and source.random() < 0.5)
    then = random_order(source, middle.ndim, dropped=dropped)
    composed = call("ds-comp", permutation_word(axes, array.ndim), permutation_word(then, middle.ndim))
    order = permutation_axes(composed)
    assert composed == permutation_word(order, array.ndim)
    np.testing.assert_array_equal(shuffled(array, order), shuffled(middle, then))


def test_axis_masks(view: tuple[np.ndarray, tuple[Axis, ...]]) -> None:
    array, axes = view
    word = permutation_word(axes, array.ndim)
    moved = shuffled(array, axes)
    for chosen in itertools.chain.from_iterable(
        itertools.combinations(range(moved.ndim), count) for count in (1, 2)
    ):
        sources = {axis for axis in (axes[index] for index in chosen) if axis != "x"}
        assert call("ds-unmask", mask_of(set(chosen)), word) == mask_of(sources)
        back = {index for index, axis in enumerate(axes) if axis in sources}
        assert call("ds-mask", mask_of(sources), word) == mask_of(back)
        # Reducing the view's axes is the view of reducing the sources.
        reduced = array.sum(axis=tuple(sources), keepdims=True)
        np.testing.assert_allclose(moved.sum(axis=chosen, keepdims=True), shuffled(reduced, axes), rtol=1e-4)


def test_dropped_axes_in_the_place_of_inserted_ones(view: tuple[np.ndarray, tuple[Axis, ...]]) -> None:
    array, axes = view
    word = permutation_word(axes, array.ndim)
    inserted = {index for index, axis in enumerate(axes) if axis == "x"}
    dropped = set(range(array.ndim)) - set(axes)
    assert call("ds-inserted", word) == sum(8 << 4 * index for index in inserted)
    assert call("ds-unused", word_of(array), word) == mask_of(dropped)
    if inserted and dropped:
        kept = call("ds-keep", word, call("ds-inserted", word), mask_of(dropped))
        order = permutation_axes(kept)
        assert order[min(inserted)] == min(dropped)
        assert kept == permutation_word(order, array.ndim)
        np.testing.assert_array_equal(shuffled(array, order), shuffled(array, axes))


@pytest.mark.parametrize(
    ("axes", "rank"),
    [((0, 0), None), ((2, 0), None), ((0, -1), 2), (tuple("x" * 9), None), ((0,), 9)],
)
def test_words_of_no_axis_order(axes: tuple[Axis, ...], rank: int | None) -> None:
    with pytest.raises(ValueError, match=r"axis order|at most 8"):
        permutation_word(axes, rank)


def test_expansion_keeps_everything_else() -> None:
    (form,) = read_forms('(rule ((= e (Exp x))) ((union e x)) :name "exp")', "f.egg")
    assert expand(form) is form
    (nested,) = read_forms("(f (g (ds-rank p)) h)", "f.egg")
    expanded = expand(nested)
    assert expanded == ("f", ("g", ("&", "15", (">>", "p", "36"))), "h")
    assert getattr(expanded, "position", None) == nested.position


def test_words_that_are_written_out_leave_little_to_calculate() -> None:
    assert expand(("ds-rank", ("ds-transpose",))) == "2"
    assert expand(("ds-comp", ("ds-transpose",), ("ds-transpose",))) == str(permutation_word((0, 1)))
    swapped = ("|", ("&", "1", (">>", "b", "1")), ("<<", ("&", "1", "b"), "1"))
    assert expand(("ds-bp", "b", ("ds-transpose",))) == ("|", "4", ("&", "3", ("|", swapped, "252")))


@pytest.mark.parametrize("name", MACROS)
def test_wrong_number_of_operands(name: str) -> None:
    (form,) = read_forms(f"\n ({name} a b c d)", "f.egg")
    with pytest.raises(RuleError, match=rf"f\.egg:2:2: the macro {name} takes \d operands, got 4"):
        expand(form)
