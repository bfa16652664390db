import numpy as np
import pytest
from oracle import agree

import esat
from esat.errors import ShapeError
from esat.frontend.einsum import _path
from esat.ops.contraction import MATMUL

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 2, "f": 3, "i": 3, "j": 4, "k": 5, "l": 2, "m": 6}
SUBSCRIPTS = [
    "ij,jk->ik", "ij,jk", "ij->ji", "ji", "ij->", "ii->i", "ii", "ij,ij->ij", "ij,ij->i", "ij,ij", "i,j->ij",
    "i,i",
    "bij,bjk->bik", "bij,bkj->ibk", "ijk,jk->i", "ijk,kjl->il", "ij,jk,kl->il", "ij,jk,kl,lm->im", "i,ij,j->",
    "...ij,...jk->...ik", "i...->...", "...i->i...", "ij...,jk...->ik...", "abc,abd->cd", "ab,cd->abcd",
    "iij->j",
    "iii->i", "ab,ab,b->a", ",ij->ij", "abcd,cdef->abef", "...,...->...", "ij , jk -> ik", "i...,i...",
    "ab,b->ab",
]  # fmt: skip


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_values_are_those_of_numpy(subscripts):
    rng = np.random.default_rng(0)
    parts = subscripts.replace(" ", "").split("->")[0].replace("...", "bc").split(",")
    arrays = [rng.standard_normal([SIZES[letter] for letter in part]) for part in parts]
    agree(lambda *x: esat.einsum(subscripts, *x), lambda *x: np.einsum(subscripts, *x), *arrays)
    if sum(array.size for array in arrays) < 60:
        esat.verify_grad(lambda *x: esat.einsum(subscripts, *x), arrays)


def test_integers_and_stretched_axes():
    x, y = np.arange(6, dtype="int8").reshape(2, 3), np.arange(3, dtype="int8")[:, None]
    agree(lambda a, b: esat.einsum("ij,jk->ik", a, b), lambda a, b: np.einsum("ij,jk->ik", a, b), x, y)
    agree(
        lambda a, b: esat.einsum("ij,jk->ik", a, b),
        lambda a, b: np.einsum("ij,jk->ik", a, b),
        np.ones((2, 1)),
        np.ones((3, 2)),
    )
    agree(
        lambda a, b: esat.einsum("...i,...i", a, b),
        lambda a, b: np.einsum("...i,...i", a, b),
        np.ones((4, 3)),
        np.ones((1, 3)),
    )


def test_products_are_matrix_products():
    x, y = esat.matrix("x"), esat.matrix("y")
    assert esat.einsum("ij,jk->ik", x, y).owner.op == MATMUL
    graph = esat.FunctionGraph([x, y], [esat.einsum("ij,j->i", x, y[0])])
    assert not any(node.op.name == "reshape" for node in graph.toposort())
    graph = esat.FunctionGraph([x, y], [esat.einsum("ij,jk,kl->il", x, y, y)])
    assert sum(node.op == MATMUL for node in graph.toposort()) == 2


def test_errors():
    x = esat.matrix(shape=(2, 3))
    cases = [
        ("ij,jk->ik", (x,)), ("ijk->i", (x,)), ("i->i", (x,)), ("ij->ii", (x,)), ("ij->k", (x,)),
        ("i1->i", (x,)),
        ("ij,jk->ik", (x, x)), ("ij>i", (x,)), ("ii->i", (x,)), ("...ij...->i", (x,)),
    ]  # fmt: skip
    for subscripts, operands in cases:
        with pytest.raises(ShapeError, match="einsum"):
            esat.einsum(subscripts, *operands)


def test_the_order_follows_known_sizes():
    x, v = esat.matrix("x"), esat.shared(np.ones(700))
    weights = esat.shared(np.ones((700, 700)))
    assert _path(["ij", "jk", "k"], "i", [x, weights, v])[0] == (1, 2)
    thin, wide = esat.shared(np.ones((2, 700))), esat.shared(np.ones((700, 700)))
    assert _path(["ij", "jk", "kl"], "il", [thin, wide, wide])[0] == (0, 1)
