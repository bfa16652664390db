"""Sums and products that hold all operands of another of their class are taken to lose what that does."""

import numpy as np

from esat.extract.accuracy.units import contained_forms
from esat.extract.arrays import EGraphArrays
from esat.extract.numbering import RawNodes, canonical_arrays

OPERATORS = ("In", "NaryProd", "NarySum")


def arrays_of(forms: list[tuple[str, tuple[int, ...], tuple[int, ...]]]) -> EGraphArrays:
    """An e-graph of four inputs, classes 0 to 3, and sums and products that are all of class 4."""
    nodes = [("In", (), ()) for _ in range(4)] + forms
    operands = [number for _, above, below in nodes for number in (*above, *below)]
    places = [side for _, *sides in nodes for side, numbers in enumerate(sides) for _ in numbers]
    attributes = [(number,) for number in range(len(nodes))]
    attributes[4:] = [(len(above),) for _, above, _ in forms]
    return canonical_arrays(
        RawNodes(
            operator_names=OPERATORS,
            operator=np.array([OPERATORS.index(name) for name, _, _ in nodes]),
            class_of=np.array([0, 1, 2, 3] + [4] * len(forms)),
            operand_count=np.array([len(above) + len(below) for _, above, below in nodes]),
            operands=np.array(operands, np.int64),
            place=np.array(places, np.int64),
            attribute=np.arange(len(nodes)),
            attribute_values=tuple(attributes),
            subsumed=np.zeros(len(nodes), np.bool_),
            origins=[""] * len(nodes),
            class_count=5,
            term_class=np.arange(5),
            facts={},
        )
    )


def pairs_of(arrays: EGraphArrays, written: frozenset[int] = frozenset()) -> set[tuple[str, str]]:
    """Pairs of forms as text, classes by the numbers of their inputs."""
    inputs = {
        int(arrays.class_of[node]): str(arrays.attributes_of(node)[0])
        for node in range(arrays.node_count)
        if arrays.operator_of(node) == "In"
    }

    def text(node: int) -> str:
        operands, (positives,) = arrays.operands_of(node).tolist(), arrays.attributes_of(node)
        names = sorted(inputs.get(one, "e") for one in operands[:positives])
        below = sorted(inputs.get(one, "e") for one in operands[positives:])
        return f"{arrays.operator_of(node)} {''.join(names)}/{''.join(below)}"

    return {(text(node), text(inner)) for node, inner in contained_forms(arrays, written).items()}


def test_forms_that_contain_another_are_found() -> None:
    arrays = arrays_of(
        [
            ("NaryProd", (0, 1), ()),
            ("NaryProd", (0, 1, 2), (3,)),
            ("NaryProd", (0,), (1,)),  # the other side
            ("NaryProd", (0, 0), (2,)),
            ("NaryProd", (0, 0, 0), (2, 3)),
            ("NaryProd", (0, 3), (2,)),  # once is not twice
            ("NaryProd", (4, 0, 1), ()),  # needs its own class
            ("NarySum", (0, 1, 2), (3,)),  # a sum contains no product
        ]
    )
    assert pairs_of(arrays) == {
        ("NaryProd 012/3", "NaryProd 01/"),
        ("NaryProd 000/23", "NaryProd 00/2"),
    }


def test_what_was_written_is_looked_at_for_itself() -> None:
    arrays = arrays_of([("NaryProd", (0, 1), ()), ("NaryProd", (0, 1, 2), (3,))])
    (longer,) = contained_forms(arrays, frozenset())
    assert not pairs_of(arrays, frozenset({longer}))
