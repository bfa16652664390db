"""Derivatives of loops, which are loops: of dual values forward, of cotangents over stored values backward.

After Griewank and Walther, "Evaluating Derivatives", chapters 3 and 12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from esat.errors import GradientError, describe
from esat.graph.algorithms.traversal import ancestors
from esat.graph.registry import function_named, op_named, register_functions
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.arrays.shape import ShapeI
from esat.ops.index.basic import zeros_like
from esat.ops.loops.parts import LoopParts, depends
from esat.ops.loops.record import While

Tangents = Sequence[Variable | None]


# ---- forward


def _pushed_forward(node: Apply, tangents: Tangents) -> list[Variable | None]:
    """Tangents of the results: one loop hands on carries and their tangents."""
    parts = LoopParts.of(node)
    given = {
        own: tangent
        for own, tangent in zip(parts.inputs, tangents[1:], strict=True)
        if tangent is not None and _is_continuous(own)
    }
    if not given:
        return [None] * len(node.outputs)
    active = parts.depending(given, _is_continuous)
    duals = {own: own.type.make_variable() for own in parts.inputs if own in active}
    kept = [one for one in parts.kept if _is_continuous(one) and depends(one, active)]
    handed = [(own, after) for own, after in zip(parts.carries, parts.following, strict=True) if own in duals]
    pushed = function_named("push_forward")(
        [*(after for _, after in handed), *kept], list(duals), list(duals.values())
    )
    both = LoopParts(
        parts.control,
        {
            **parts.carries,
            **{duals[own]: _known(given, own, parts.carries[own]) for own, _ in handed},
        },
        [*parts.following, *pushed[: len(handed)]],
        pushed[len(handed) :],
        {**parts.sequences, **{duals[own]: given[own] for own in parts.sequences if own in duals}},
        {**parts.invariants, **{duals[own]: given[own] for own in parts.invariants if own in duals}},
        parts.goes_on,
        parts.reverse,
        parts.max_steps,
        parts.sparing,
    )
    made = both.node().outputs
    last = dict(zip((own for own, _ in handed), made[len(parts.carries) :], strict=False))
    rows = dict(zip(kept, made[both.count_of_results() :], strict=True))
    between: list[Variable | None] = [None] * (parts.count_of_results() - len(parts.carries))
    return [*(last.get(own) for own in parts.carries), *between, *(rows.get(one) for one in parts.kept)]


# ---- backward


def _pulled_back(node: Apply, cotangents: Tangents) -> list[Variable | None]:
    """Cotangents of the operands: the loop once more with its carries kept, then one backward over these."""
    parts = LoopParts.of(node)
    count = len(parts.carries)
    control = parts.control
    if isinstance(node.op, While):
        control = node.outputs[count]
        if parts.max_steps is None:
            reason = (
                "its gradient keeps the values of all steps, and nothing says how many there can be; "
                "give the most, max_steps="
            )
            raise GradientError(describe("while_loop", [v.type for v in node.inputs], reason, node.where))
    last = {
        own: one
        for own, one in zip(parts.carries, cotangents, strict=False)
        if one is not None and _is_continuous(own)
    }
    rows = {
        place: one
        for place, one in enumerate(cotangents[parts.count_of_results() :])
        if one is not None and _is_continuous(parts.kept[place])
    }
    reached = _reaching(parts, set(last), [parts.kept[place] for place in rows])
    seeds = {own: own.type.make_variable() for own in parts.carries if own in reached}
    row_seeds = {parts.kept[place].type.make_variable(): one for place, one in rows.items()}
    wrt = [own for own in parts.inputs if own in reached]
    following = dict(zip(parts.carries, parts.following, strict=True))
    results = [*(following[own] for own in seeds), *(parts.kept[place] for place in rows)]
    pulled = dict(
        zip(wrt, function_named("vjp")(results, wrt, [*seeds.values(), *row_seeds], "zero"), strict=True)
    )
    sums = {own: own.type.make_variable() for own in parts.invariants if own in pulled}
    elements = [own for own in parts.sequences if own in pulled]
    back = LoopParts(
        control,
        {
            **{seed: _known(last, own, parts.carries[own]) for own, seed in seeds.items()},
            **{sums[own]: _zero_tangent(parts.invariants[own]) for own in sums},
        },
        [*(pulled[own] for own in seeds), *(op_named("add")(sums[own], pulled[own]) for own in sums)],
        [pulled[own] for own in elements],
        {},
        parts.invariants,
        reverse=not parts.reverse,
        sparing=parts.sparing,
    )
    back.sequences = {**_stored(parts, back), **parts.sequences, **row_seeds}
    back.prune([True] * len(back.carries), [True] * len(back.kept))
    made = back.node().outputs
    found = dict(zip((*seeds, *sums, *elements), made, strict=True))
    for own in elements:
        found[own] = _padded(found[own], parts.sequences[own], control)
    return [None, *(found.get(own) for own in parts.inputs)]


def _reaching(parts: LoopParts, active: set[Variable], rows: Sequence[Variable]) -> set[Variable]:
    """What the loop takes that results with cotangents depend on."""
    found = set(active)
    while True:
        after = [f for own, f in zip(parts.carries, parts.following, strict=True) if own in found]
        reached = set(ancestors([*rows, *after]))
        more = {own for own in parts.inputs if own in reached and _is_continuous(own)} - found
        if not more:
            return found
        found |= more


def _stored(parts: LoopParts, back: LoopParts) -> dict[Variable, Variable]:
    """The carries that the way back reads, with their values before each step."""
    read = set(ancestors(back.results))
    wanted = [own for own in parts.carries if own in read]
    if not wanted:
        return {}
    forward = LoopParts(
        parts.control, parts.carries, parts.following, [*parts.kept, *wanted], parts.sequences,
        parts.invariants, parts.goes_on, parts.reverse, parts.max_steps, parts.sparing,
    )  # fmt: skip
    made = forward.node().outputs
    return dict(zip(wanted, made[len(made) - len(wanted) :], strict=True))


def _padded(rows: Variable, sequence: Variable, steps: Variable) -> Variable:
    """Cotangents of all elements of a sequence, where there may be fewer steps than elements."""
    size, made = sequence.tensor_type.shape[0], steps.owner
    if size is not None and isinstance(steps, Constant) and int(steps.data) == size:
        return rows
    if made is not None and made.op == ShapeI(0) and made.inputs[0] is sequence:
        return rows
    written: Variable = function_named("set_subtensor")(zeros_like(sequence)[:steps], rows)
    return written


def _known(given: Mapping[Variable, Variable], own: Variable, value: Variable) -> Variable:
    """What is given for a carry; zeros like its value where nothing is."""
    found = given.get(own)
    return _zero_tangent(value) if found is None else found


def _zero_tangent(variable: Variable) -> Variable:
    zeros: Variable = function_named("zero_tangent")(variable)
    return zeros


def _is_continuous(variable: Variable) -> bool:
    return function_named("tangent_type")(variable) is not None


register_functions(
    {f"{name}_vjp": _pulled_back for name in ("scan", "while_loop")}
    | {f"{name}_jvp": _pushed_forward for name in ("scan", "while_loop")}
)
