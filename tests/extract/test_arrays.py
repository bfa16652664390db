"""The arrays of an e-graph and their canonical numbering."""

import random
from dataclasses import replace

import numpy as np
import pytest
from extract.random_egraphs import Node, egraph, random_nodes, raw_nodes

from esat.errors import CompileError
from esat.extract.arrays import EGraphArrays
from esat.extract.numbering import canonical_arrays
from esat.extract.verify import verify_arrays

SMALL: list[Node] = [
    ("In", (0,), (), 0),
    ("In", (1,), (), 1),
    ("Add", (), (0, 1), 2),
    ("Mul", (), (2, 2), 3),
    ("Sqr", (), (2,), 3),
    ("K", (2.0, 10), (), 4),
]


def same(left: EGraphArrays, right: EGraphArrays) -> bool:
    return (
        left.operator_names == right.operator_names
        and [left.describe(node) for node in range(left.node_count)]
        == [right.describe(node) for node in range(right.node_count)]
        and np.array_equal(left.class_of, right.class_of)
        and np.array_equal(left.term_class, right.term_class)
    )


def test_rows_and_indices() -> None:
    arrays = egraph(SMALL, 5)
    verify_arrays(arrays)
    assert arrays.class_count == 5
    assert arrays.node_count == 6
    assert sorted(arrays.operator_of(node) for node in arrays.nodes_of(3)) == ["Mul", "Sqr"]
    product = next(node for node in arrays.nodes_of(3) if arrays.operator_of(node) == "Mul")
    assert arrays.operands_of(product).tolist() == [2, 2]
    assert sorted(arrays.operator_of(node) for node in arrays.parents_of(2)) == ["Mul", "Sqr"]
    assert arrays.attributes_of(arrays.nodes_of(4)[0]) == (2.0, 10)
    assert arrays.describe(product) == "Mul(c2, c2)"


@pytest.mark.parametrize("seed", range(20))
def test_numbering_does_not_depend_on_the_order_of_rows_or_classes(seed: int) -> None:
    rng = random.Random(seed)
    count = 60
    nodes = random_nodes(seed, count)
    terms = rng.sample(range(count), 12)
    expected = canonical_arrays(raw_nodes(nodes, count, terms))
    verify_arrays(expected)
    renamed = rng.sample(range(count), count)
    shuffled = [(name, attributes, tuple(renamed[c] for c in operands), renamed[klass])
                for name, attributes, operands, klass in rng.sample(nodes, len(nodes))]  # fmt: skip
    assert same(expected, canonical_arrays(raw_nodes(shuffled, count, [renamed[klass] for klass in terms])))


def test_classes_of_loaded_terms_come_first_in_their_order() -> None:
    arrays = egraph(SMALL, 5, terms=[3, 0, 3])
    assert arrays.term_class.tolist() == [0, 1, 0]
    assert {arrays.operator_of(node) for node in arrays.nodes_of(0)} == {"Mul", "Sqr"}


def test_elements_of_a_multiset_have_no_order() -> None:
    def with_operands(operands: tuple[int, ...]) -> EGraphArrays:
        nodes = [*SMALL, ("NarySum", (3,), operands, 5)]
        raw = raw_nodes(nodes, 6, range(5))
        raw.place[-len(operands) :] = [0, 0, 0, 1, 1]
        return canonical_arrays(raw)

    first = with_operands((2, 0, 1, 4, 3))
    assert first.operands_of(first.nodes_of(5)[0]).tolist() == [0, 1, 2, 3, 4]
    assert same(first, with_operands((1, 2, 0, 3, 4)))


def test_a_class_without_a_finite_term_keeps_its_e_nodes() -> None:
    arrays = egraph([*SMALL, ("Neg", (), (6,), 5), ("Neg", (), (5,), 6)], 7, terms=[0])
    verify_arrays(arrays)
    assert arrays.node_count == 8


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("operator", np.array([0, 0, 0, 0, 0, 9])),
        ("operands", np.array([0, 1, 2, 2, 7])),
        ("class_of", np.array([0, 1, 3, 2, 3, 4])),
        ("class_start", np.array([0, 1, 2, 3, 5])),
        ("operand_start", np.array([0, 0, 0, 2, 1, 4, 5])),
        ("term_class", np.array([0, 99])),
    ],
)
def test_the_verifier_names_the_wrong_array(name: str, value: np.ndarray) -> None:
    with pytest.raises(CompileError, match="read-out"):
        verify_arrays(replace(egraph(SMALL, 5), **{name: value}))
