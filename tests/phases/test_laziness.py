from typing import Any

import esat
from esat.graph import Apply, FunctionGraph, Variable
from esat.phases.fusing.fusion import fuse
from esat.phases.fusing.group import Condition
from esat.phases.fusing.laziness import MOST_ALTERNATIVES, find_guards

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
    assert guards == {
        owner(one): ((Condition(c, True),),),
        owner(inner): ((Condition(c, True),),),
        owner(other): ((Condition(c, False),),),
    }


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
    assert guards[owner(deep)] == ((Condition(c, True), Condition(d, True)),)
    assert guards[owner(inner)] == ((Condition(c, True),),)
    # Two choices by the same condition: it is needed under that condition alone.
    assert guards[owner(shared)] == ((Condition(c, True),),)


def test_what_sides_of_several_choices_need_is_needed_where_one_of_them_is() -> None:
    shared, e = esat.exp(x), esat.scalar("e", dtype="bool")
    guards = guards_of([esat.ifelse(c, shared, y), esat.ifelse(d, y, shared)])
    assert set(guards[owner(shared)]) == {(Condition(c, True),), (Condition(d, False),)}
    # For both sides of an inner choice: wherever the outer one asks for it.
    guards = guards_of([esat.ifelse(c, esat.ifelse(d, shared, shared + y), y)])
    assert guards[owner(shared)] == ((Condition(c, True),),)
    guards = guards_of([esat.ifelse(c, esat.ifelse(d, shared, y), y), esat.ifelse(d, shared, y)])
    assert guards[owner(shared)] == ((Condition(d, True),),)
    # The condition of an inner choice reads it: it is needed wherever that choice is.
    inner = esat.ifelse(shared[0, 0] > 0.0, shared, y)
    guards = guards_of([esat.ifelse(c, inner, y)])
    assert guards[owner(shared)] == ((Condition(c, True),),)
    graph = FunctionGraph([x, y, c, d, e], [esat.ifelse(k, shared, y) for k in (c, d, e)], clone=False)
    assert len(find_guards(graph.toposort(), graph.outputs)[owner(shared)]) == 3


def test_guards_of_many_alternatives_are_given_up() -> None:
    shared = esat.exp(x)
    conditions = [esat.scalar(f"c{number}", dtype="bool") for number in range(MOST_ALTERNATIVES + 1)]
    outputs = [esat.ifelse(condition, shared, y) for condition in conditions]
    few = FunctionGraph([x, y, *conditions], outputs[1:], clone=False)
    assert len(find_guards(few.toposort(), few.outputs)[owner(shared)]) == MOST_ALTERNATIVES
    many = FunctionGraph([x, y, *conditions], outputs, clone=False)
    assert not find_guards(many.toposort(), many.outputs)
    nested = [esat.ifelse(c, output, y) for output in outputs]
    graph = FunctionGraph([x, y, c, *conditions], nested, clone=False)
    assert find_guards(graph.toposort(), graph.outputs)[owner(shared)] == ((Condition(c, True),),)


def test_kernels_do_not_mix_sides(rules: Any) -> None:
    graph = FunctionGraph([x, y, c, d], [esat.ifelse(c, esat.exp(x), esat.sin(x)), esat.cos(x)])
    kernels = [group for group in fuse(graph, rules).groups if group.kind == "kernel"]
    assert len(kernels) == 3
    assert sorted(len(group.guard) for group in kernels) == [0, 1, 1]
    assert all(group.reads[-1] is graph.inputs[2] for group in kernels if group.guard)
