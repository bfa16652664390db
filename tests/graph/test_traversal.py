import time

import pytest

import esat
from esat.errors import CycleError
from esat.graph.algorithms.copying import clone
from esat.graph.algorithms.traversal import ancestors, inputs_of, postorder_of, toposort


def test_orders():
    x, y = esat.scalar("x"), esat.scalar("y")
    inner = x + y
    outer = esat.exp(inner) * inner
    assert [node.op for node in toposort([outer])] == [esat.add, esat.exp, esat.mul]
    assert [node.op for node in toposort([outer], stop=[inner])] == [esat.exp, esat.mul]
    assert ancestors([outer])[-1] is outer
    assert x not in set(ancestors([outer], stop=[inner]))
    assert inputs_of([outer]) == [x, y]


@pytest.mark.parametrize("walk", [ancestors, toposort])
def test_ends_in_a_list_are_found_as_quickly_as_in_a_set(walk):
    inputs = [esat.scalar() for _ in range(3000)]
    total = inputs[0]
    for variable in inputs[1:]:
        total = total + variable
    begin = time.process_time()
    walk([total], stop=frozenset(inputs))
    middle = time.process_time()
    walk([total], stop=inputs)
    assert time.process_time() - middle < 10 * (middle - begin) + 0.1


def test_cycles():
    edges = {1: [2], 2: [3], 3: [1], 4: [5], 5: []}
    assert postorder_of([4], edges.__getitem__) == [5, 4]
    with pytest.raises(CycleError):
        postorder_of([1], edges.__getitem__)


def test_clone_with_replacements():
    x, y = esat.scalar("x"), esat.scalar("y")
    w = esat.shared(2.0)
    out = (x + y) * w
    (copied,), copies = clone([out], {x: esat.exp(y)})
    assert esat.evaluate(copied, {y: 0.0}) == 2.0
    assert copies[w] is w
    assert copies[y] is y
    assert copied.owner.where == out.owner.where
    (fresh,), copies = clone([out], {}, copy_inputs=True)
    assert copies[x] is not x
    assert fresh.type == out.type
