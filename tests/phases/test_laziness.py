from typing import Any

import esat
from esat.graph import Apply, FunctionGraph, Variable
from esat.phases.fusion import fuse
from esat.phases.laziness import find_guards

x, y = esat.matrix("x"), esat.matrix("y")
c, d = esat.scalar("c", dtype="bool"), esat.scalar("d", dtype="bool")


def owner(variable: Variable) -> Apply:
    assert variable.owner is not None
    return variable.owner


def guards_of(outputs: list[Variable]) -> dict[Apply, Any]:
    graph = FunctionGraph([x, y, c, d], outputs, clone=False)
    return find_guards(graph.toposort(), graph.outputs)


def test_what_one_side_alone_needs_is_guarded() -> None:
    one, other = esat.exp(x), esat.sin(y)
    inner = esat.cos(one)
    result = esat.ifelse(c, inner, other)
    guards = guards_of([result])
    assert guards == {owner(one): ((c, True),), owner(inner): ((c, True),), owner(other): ((c, False),)}


def test_what_both_sides_or_others_need_is_not() -> None:
    both, shown = esat.exp(x), esat.sin(y)
    result = esat.ifelse(c, esat.cos(both) + shown, both)
    guards = guards_of([result, shown])
    assert owner(both) not in guards
    assert owner(shown) not in guards
    assert len(guards) == 2
    condition = esat.exp(x)[0, 0] > 0.0
    guards = guards_of([esat.ifelse(condition, esat.tanh(x), x)])
    assert [str(node.op) for node in guards] == ["tanh"]


def test_choices_within_choices() -> None:
    deep, shared = esat.exp(x), esat.sin(x)
    inner = esat.ifelse(d, deep, shared)
    guards = guards_of([esat.ifelse(c, inner, y), esat.ifelse(c, shared, y)])
    assert guards[owner(deep)] == ((c, True), (d, True))
    assert guards[owner(inner)] == ((c, True),)
    # Two choices by the same condition: it is needed under that condition alone.
    assert guards[owner(shared)] == ((c, True),)


def test_kernels_do_not_mix_sides(rules: Any) -> None:
    graph = FunctionGraph([x, y, c, d], [esat.ifelse(c, esat.exp(x), esat.sin(x)), esat.cos(x)])
    kernels = [group for group in fuse(graph, rules).groups if group.kind == "kernel"]
    assert len(kernels) == 3
    assert sorted(len(group.guard) for group in kernels) == [0, 1, 1]
    assert all(group.reads[-1] is graph.inputs[2] for group in kernels if group.guard)
