"""Rules of primitives that hold jaxprs: calls, choices and loops.

Short loops are unrolled, which leaves them open to algebra: a ``scan``, and a ``while`` whose condition
depends on constants alone. Others are loops here, too.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from esat.frontend.arrays.creation import zeros
from esat.frontend.arrays.shaping import stack
from esat.frontend.elements.searching import where
from esat.frontend.jax.steps import Equation, Rule
from esat.graph.algorithms.copying import clone
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.graph.variables import Constant, Variable
from esat.ops.control import AFTER, ifelse
from esat.ops.loops.parts import LoopParts

MOST_EQUATIONS = 128
"""Equations of all passes of a loop together that a loop is unrolled into."""


def _call(*names: str) -> Rule:
    """A call of a jaxpr, which is the parameter of the first of the names that there is."""
    return lambda step: step.inline(next(step.params[n] for n in names if n in step.params), step.operands)


def _barrier(step: Equation) -> list[Variable]:
    return _after_each_other(step.operands, (True,) * len(step.operands))


def _after_each_other(operands: Sequence[Variable], flags: Sequence[bool]) -> list[Variable]:
    """Operands, those with a flag as what is there once all of those are computed."""
    together = [one for one, flag in zip(operands, flags, strict=True) if flag]
    return [
        AFTER(one, *(other for other in together if other is not one)) if flag else one
        for one, flag in zip(operands, flags, strict=True)
    ]


def _again(step: Equation) -> list[Variable]:
    """What a gradient computes once more: it waits for the cotangents, which are among its operands."""
    prevent = step.params["prevent_cse"] if step.params["differentiated"] else False
    flags = prevent if isinstance(prevent, tuple) else (prevent,) * len(step.operands)
    return step.inline(step.params["jaxpr"], _after_each_other(step.operands, flags))


def _linear_solve(step: Equation) -> list[Variable]:
    """A solution, as the jaxpr among others computes it that is for it."""
    lengths, jaxprs = step.params["const_lengths"], step.params["jaxprs"]
    begin = lengths.matvec + lengths.vecmat
    kept = step.operands[begin : begin + lengths.solve]
    sides = step.operands[sum(lengths) :]
    return step.inline(jaxprs.solve, [*kept, *sides])


def _expanded(step: Equation) -> list[Variable]:
    """A primitive that says by a function of JAX's what it computes."""
    primitive, jax = step.params["_prim"], importlib.import_module("jax")
    examples = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in step.abstract]
    closed = jax.make_jaxpr(lambda *leaves: primitive.expand(*primitive.in_tree.unflatten(leaves)))(*examples)
    return step.inline(closed, step.operands)


def _choice(step: Equation) -> list[Variable]:
    which, *operands = step.operands
    branches = step.params["branches"]
    if isinstance(which, Constant):
        place = min(max(int(which.data), 0), len(branches) - 1)
        return step.inline(branches[place], operands)
    results = [step.inline(branch, operands) for branch in branches]
    chosen = results[-1]
    for place in range(len(branches) - 2, -1, -1):
        chosen = list(ifelse(op_named("le")(which, place), results[place], chosen))
    return chosen


def _platform(step: Equation) -> Variable:
    """Which branch is for this platform: the processor's, or the one for all others."""
    platforms = list(step.params["platforms"])
    fitting = [place for place, names in enumerate(platforms) if names is not None and "cpu" in names]
    return constant(np.int32(fitting[0] if fitting else platforms.index(None)))


def _scan(step: Equation) -> list[Variable]:
    params = step.params
    body, length = params["jaxpr"], int(params["length"])
    consts, carries = _parts(params)
    kept = list(step.operands[:consts])
    carry = list(step.operands[consts : consts + carries])
    sequences = step.operands[consts + carries :]
    if _equations(body) * length > MOST_EQUATIONS:
        fresh = [one.type.make_variable() for one in carry]
        elements = [
            one.tensor_type.with_shape(one.tensor_type.shape[1:]).make_variable() for one in sequences
        ]
        results = step.inline(body, [*kept, *fresh, *elements])
        parts = LoopParts(
            constant(length, "int64"), dict(zip(fresh, carry, strict=True)), results[:carries],
            results[carries:], dict(zip(elements, sequences, strict=True)), reverse=bool(params["reverse"]),
        )  # fmt: skip
        parts.close()
        return list(parts.node().outputs)
    rows: list[list[Variable]] = []
    for place in reversed(range(length)) if params["reverse"] else range(length):
        results = step.inline(body, [*kept, *carry, *(one[place] for one in sequences)])
        carry, row = results[:carries], results[carries:]
        rows.append(row)
    if params["reverse"]:
        rows.reverse()
    if not rows:
        return [*carry, *(zeros(value.shape, value.dtype) for value in step.results[carries:])]
    return [*carry, *(stack(list(parts), 0) for parts in zip(*rows, strict=True))]


def _parts(params: Mapping[str, Any]) -> tuple[int, int]:
    """How many operands of a scan are the same in all passes, and how many are handed on: numbers before JAX
    0.12, and a tree since."""
    if "num_consts" in params:
        return int(params["num_consts"]), int(params["num_carry"])
    consts, carry, _ = params["ft_in"].unpack()
    return len(consts), len(carry)


def _while(step: Equation) -> list[Variable]:
    params = step.params
    asked, body = params["cond_jaxpr"], params["body_jaxpr"]
    begin = int(params["cond_nconsts"])
    end = begin + int(params["body_nconsts"])
    for_condition, for_body = list(step.operands[:begin]), list(step.operands[begin:end])
    first = carry = list(step.operands[end:])
    equations = 0
    while equations <= MOST_EQUATIONS:
        (goes_on,) = step.inline(asked, [*for_condition, *carry])
        if not isinstance(goes_on, Constant):
            break
        if not goes_on.data.any():
            return carry
        equations += _equations(body)
        changed = step.inline(body, [*for_body, *carry])
        carry = [_where_going_on(goes_on, *pair) for pair in zip(changed, carry, strict=True)]
    fresh = [one.type.make_variable() for one in first]
    (here,) = step.inline(asked, [*for_condition, *fresh])
    changed = step.inline(body, [*for_body, *fresh])
    following = [_where_going_on(here, *pair) for pair in zip(changed, fresh, strict=True)]
    before, after = (
        clone([here.any() if here.ndim else here], dict(zip(fresh, values, strict=True)))[0][0]
        for values in (first, following)
    )
    parts = LoopParts(before, dict(zip(fresh, first, strict=True)), following, goes_on=after)
    parts.close()
    return list(parts.node().outputs[: len(first)])


def _where_going_on(goes_on: Variable, changed: Variable, kept: Variable) -> Variable:
    """What a pass makes of a value. Of a batch of loops, those that have ended keep theirs."""
    if isinstance(goes_on, Constant) and goes_on.data.all():
        return changed
    if not goes_on.ndim:
        return changed
    rank = changed.tensor_type.ndim - goes_on.ndim
    mask: Any = goes_on.dimshuffle(*range(goes_on.ndim), *["x"] * rank)
    if isinstance(goes_on, Constant):
        mask = goes_on.data.reshape(goes_on.data.shape + (1,) * rank)
        if isinstance(changed, Constant) and isinstance(kept, Constant):  # it may decide how long it runs
            return constant(np.where(mask, changed.data, kept.data))
    result: Variable = where(mask, changed, kept)
    return result


def _equations(jaxpr: Any) -> int:
    """Equations of a jaxpr, with those of jaxprs among their parameters, as often as those run."""
    count = 0
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        times = int(equation.params.get("length", 1)) if equation.primitive.name == "scan" else 1
        count += sum(_equations(inner) * times for inner in _inner(equation.params.values())) or 1
    return count


def _inner(values: Any) -> Iterator[Any]:
    for value in values:
        if hasattr(getattr(value, "jaxpr", value), "eqns"):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _inner(value)


RULES: dict[str, Rule] = {
    "call_hi_primitive": _expanded,
    "composite": _call("jaxpr", "call_jaxpr"),
    "cond": _choice,
    "custom_jvp_call": _call("call_jaxpr"),
    "custom_linear_solve": _linear_solve,
    "custom_vjp_call": _call("call_jaxpr"),
    "custom_vmap_call": _call("call"),
    "eval_jaxpr": _call("call_jaxpr"),
    "jit": _call("jaxpr"),
    "linear_call": _call("callee"),
    "optimization_barrier": _barrier,
    "platform_index": _platform,
    "remat2": _again,
    "scan": _scan,
    "while": _while,
}
