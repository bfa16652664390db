import numpy as np
import pytest
from oracle import agree

import esat
from esat.errors import ShapeError
from esat.frontend.linear_algebra.einsum import _path
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


def test_a_ring_of_factors_is_contracted_in_the_order_of_hinted_sizes():
    """Without sizes the frontend cannot know that the large products are the wrong ones to begin with."""
    shapes = [(40, 5), (5, 40), (40, 5), (5, 40)]
    arrays = [np.random.default_rng(seed).standard_normal(shape) for seed, shape in enumerate(shapes)]
    inputs = [esat.matrix(name) for name in "xyzw"]
    output = esat.einsum("ab,bc,cd,da->", *inputs)
    program = esat.compile(esat.Graph(inputs, [output]), shapes=dict(zip(inputs, shapes, strict=True)))
    np.testing.assert_allclose(program(*arrays), np.einsum("ab,bc,cd,da->", *arrays), rtol=1e-10)
    products = [node.outputs[0] for node in program.graph.toposort() if node.op.name == "matmul"]
    assert products
    assert not any(node.op.name == "reshape" for node in program.graph.toposort())
    found = esat.evaluate(products, dict(zip(program.graph.inputs, arrays, strict=True)))
    assert max(value.size for value in found) <= 40 * 5


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (1, 1)])
def test_inner_products_of_matrices(dtype, shape):
    left, right = (np.random.default_rng(seed).integers(-99, 99, shape).astype(dtype) for seed in (1, 2))
    for subscripts in ("ij,ij->", "ij,ij->j", "kij,ij->k"):
        first = np.stack([left, right]) if "k" in subscripts else left
        agree(
            lambda *xs, s=subscripts: esat.einsum(s, *xs),
            lambda *xs, s=subscripts: np.einsum(s, *xs),
            first,
            right,
        )
