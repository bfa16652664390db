"""Joins, slices and writes to parts: what is equal is proved, what is nearly equal is not."""

import numpy as np
import pytest
from egraph.algebra.proving import proved

import esat
from esat.egraph.algebra.additions import MADE
from esat.egraph.algebra.axes.pieces import MOST_POSITIONS, UNIT, Pieces, RefusedError
from esat.egraph.language.encode import encode
from esat.egraph.preparation.prepare import prepared
from esat.egraph.preparation.rule_program import program_for
from esat.rules import RULES
from esat.rules.language.query import Query


def known(name, *shape):
    return esat.TensorType("float64", shape=shape)(name)


a, b, c, d = (esat.vector(name) for name in "abcd")
A, B, C, D = (esat.matrix(name) for name in "ABCD")
x, y, p, q, S = known("x", 5), known("y", 5), known("p", 2), known("q", 3), known("S", 5, 5)
k = esat.scalar("k", dtype="int64")
INPUTS = [a, b, c, d, A, B, C, D, x, y, p, q, S, k]
join = esat.concatenate


def gradient(cost, variable):
    return esat.grad(cost, variable)


EQUAL = {
    "sum": (join([a, b, c]).sum(), c.sum() + a.sum() + b.sum()),
    "blocks": (join([A, B], axis=1) @ join([C, D]), A @ C + B @ D),
    "a part": (join([p, q])[2:], q),
    "a part of unknown length": (join([a, b])[a.shape[0] :], b),
    "the middle of three": (join([a, b, c])[a.shape[0] : a.shape[0] + b.shape[0]], b),
    "halves": (join([x[:2], x[2:]]), x),
    "halves of unknown length": (join([a[:2], a[2:]]), a),
    "halves from the end": (join([a[:-2], a[-2:]]), a),
    "halves at a number that is given": (join([a[:k], a[k:]]), a),
    "reversed twice": (a[::-1][::-1], a),
    "a join reversed": (join([p, q])[::-1], join([q[::-1], p[::-1]])),
    "sums of two partitions": (x[:2].sum() + x[2:].sum(), x[:4].sum() + x[4:].sum()),
    "elements": (x[0] + x[1] + x[2] + x[3] + x[4], x.sum()),
    "every other": (x[::2].sum() + x[1::2].sum(), x.sum()),
    "every other, backwards": (x[::-2], x[::-1][::2]),
    "gradient of a join": (gradient((join([a, b]) ** 2).sum(), b), 2 * b),
    "gradient of a part": (gradient((x[1:3] ** 2).sum(), x)[1:3], 2 * x[1:3]),
    "gradient beside a part": (gradient((x[1:3] ** 2).sum(), x)[3:].sum(), 0 * k.astype("float64")),
    "a part that is set": (esat.set_subtensor(x[1:3], p), join([x[:1], p, x[3:]])),
    "a part that is added to": (esat.inc_subtensor(x[1:3], p), join([x[:1], x[1:3] + p, x[3:]])),
    "a number set": (esat.set_subtensor(x[2], 0.0).sum(), x.sum() - x[2]),
    "columns": (S[:, :2] @ y[:2] + S[:, 2:] @ y[2:], S @ y),
    "a row of a product": ((S @ S)[1], S[1] @ S),
    "a stack": (esat.stack([a, c]).sum(axis=0), a + c),
    "a roll": (esat.roll(x, 2) @ esat.roll(y, 2), x @ y),
    "a mean": (join([a, b]).mean() * (a.shape[0] + b.shape[0]), a.sum() + b.sum()),
    "functions": (esat.exp(join([a, b])), join([esat.exp(a), esat.exp(b)])),
    "joins of joins": (join([a, join([b, c])]) * 2, join([join([a, b]) * 2, 2 * c])),
}
DIFFERENT = {
    "sum": (join([a, b]).sum(), a.sum() + 2 * b.sum()),
    "order": (join([a, b]), join([b, a])),
    "order of numbers": (esat.stack([p[0], p[1]]), esat.stack([p[1], p[0]])),
    "blocks": (join([A, B], axis=1) @ join([D, C]), A @ C + B @ D),
    "another part": (join([q, p])[:2], p),
    "an element more": (join([p, q])[:3], q),
    "reversed": (x[::-1], x),
    "reversed, of two": (p[::-1], p),
    "reversed, of unknown length": (a[::-1], a),
    "reversed in a product": ((x[::-1] * x).sum(), (x * x).sum()),
    "overlapping": (x[:2].sum() + x[2:].sum(), x[:4].sum() + x[3:].sum()),
    "products of sums": (x[:2].sum() * y[:2].sum(), 2 * (x[:2] * y[:2]).sum()),
    "a later part": (x[:2].sum(), x[1:3].sum()),
    "every other": (x[::2].sum(), x[1::2].sum()),
    "from either end": (join([a[:2], a[-2:]]), a),
    "before the same element": (join([a[:2], a[:-2]]), a),
    "with an element twice": (join([a[:3], a[2:]]), a),
    "at another number": (join([a[:k], a[k + 1 :]]), a),
    "means": (join([a, b]).mean(), (a.mean() + b.mean()) / 2),
    "one element twice": (x[0] + x[1] + x[2] + x[3] + x[3], x.sum()),
    "set beside it": (esat.set_subtensor(x[1:3], p), esat.set_subtensor(x[2:4], p)),
    "set or added": (esat.set_subtensor(x[1:3], p), esat.inc_subtensor(x[1:3], p)),
    "zero times what is divided": (join([0 * (a / b), c]), join([0 * a, c])),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_is_proved(name) -> None:
    assert proved(INPUTS, *EQUAL[name])


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_nearly_equal_is_not(name) -> None:
    assert not proved(INPUTS, *DIFFERENT[name])


@pytest.mark.parametrize("length", [0, 1, 2, 5])
@pytest.mark.parametrize("at", [-7, -2, 0, 1, 9])
def test_values_at_all_lengths(length, at) -> None:
    outputs = [
        join([a[:2], a[2:]]) + a,
        join([a[:-2], a[-2:]]) * 2,
        join([a[:k], a[k:]]) - a[::-1][::-1],
        a[:k].sum() + a[k:].sum() - 2 * a.sum(),
        join([a, a])[a.shape[0] :] * 2,
    ]
    values = np.linspace(1.0, 2.0, length), np.int64(at)
    expected = esat.evaluate(outputs, dict(zip([a, k], values, strict=True)))
    for got, want in zip(esat.compile(esat.Graph([a, k], outputs))(*values), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    "write",
    [
        lambda one: one[0, :],
        lambda one: one[0, ::-1],
        lambda one: join([one, 2 * one]),
        lambda one: join([one, 2 * one], axis=1)[:, 1],
        lambda one: esat.stack([one, one], axis=1),
        lambda one: esat.set_subtensor(one[0, :], 3.0) + one,
        lambda one: esat.inc_subtensor(one[:, 0], one[0]),
        lambda one: one[None][0, 0],
    ],
)
def test_a_number_stands_for_arrays_of_one_element(write) -> None:
    """No other array of these programs has two axes."""
    number = esat.scalar("number")
    result = write(esat.expand_dims(number, (0, 1)))
    function = esat.compile(esat.Graph([number], [result]))
    wanted = esat.evaluate([result], {number: np.array(5.0)})[0]
    np.testing.assert_array_equal(function(5.0), wanted)


def test_many_parts_are_left_alone() -> None:
    long = known("z", 100)
    total = sum(long[place] for place in range(1, 40))
    assert not proved([long], total, long[1:40].sum())
    assert proved([long], long[:10].sum() + long[10:].sum(), long.sum())


def test_lengths_are_cut_until_both_agree() -> None:
    pieces = Pieces({0: 5, 1: 2, 2: 3, 3: 4, 4: 6}, 10)
    pieces.equate([0], [1, 2])
    pieces.equate([0], [3, UNIT])
    assert pieces.leaves([0]) == [1, 1, UNIT]
    assert pieces.leaves([2]) == [1, UNIT]
    assert pieces.leaves([3]) == [1, 1]
    pieces.mirror(0)
    assert pieces.leaves([0]) == [UNIT] * 5


def test_unknown_lengths_are_what_is_left() -> None:
    pieces = Pieces({}, 10)
    pieces.equate([0], [1, 2])
    pieces.equate([0], [1, 3])
    assert pieces.root(2) == pieces.root(3)
    pieces.equate([0], [4, 5, 2])
    assert pieces.leaves([1]) == [4, 5]
    with pytest.raises(RefusedError):
        pieces.equate([0], [6, 7])
    with pytest.raises(RefusedError):
        pieces.equate([1], [1, UNIT])


def test_lengths_that_contradict_each_other_are_refused() -> None:
    pieces = Pieces({0: 5, 1: 2, 2: 100}, 10)
    for parts in ([1, 1], [1, 1, 1]):
        with pytest.raises(RefusedError):
            pieces.equate([0], parts)
    with pytest.raises(RefusedError):
        pieces.equate([2], [UNIT] * (MOST_POSITIONS + 1))


def test_what_the_algebra_makes_is_declared_for_every_graph():
    terms = encode(esat.Graph([a], [esat.set_subtensor(a[::-1], 7.0)]).function_graph())
    rules = prepared(program_for(RULES.query(Query(include=("fast_run",)))))
    numbers = rules.relevant({one.constructor for one in terms.terms})
    loaded = {rules.modules[number].declares for number in numbers}
    assert loaded >= MADE & {module.declares for module in rules.modules}
    set_all = esat.compile(esat.Graph([a], [esat.set_subtensor(a[::-1], 7.0)]))
    np.testing.assert_array_equal(set_all([1.0, 2.0]), [7.0, 7.0])
