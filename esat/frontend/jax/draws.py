"""Rules of random numbers: the same as JAX draws, of whatever generator its keys are for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from esat.frontend.jax.steps import Equation, Rule
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.graph.variables import Variable

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _threefry(step: Equation) -> list[Variable]:
    """Threefry-2x32 with 20 rounds, after Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
    1, 2, 3" (2011)."""
    add, xor = op_named("add"), op_named("bitwise_xor")
    first, second, *counts = step.operands
    keys = [first, second, xor(xor(first, second), constant(_PARITY, "uint32"))]
    x, y = add(counts[0], keys[0]), add(counts[1], keys[1])
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x = add(x, y)
            y = xor(x, _rotated(y, distance))
        x = add(x, keys[(group + 1) % 3])
        y = add(add(y, keys[(group + 2) % 3]), constant(group + 1, "uint32"))
    return [x, y]


def _rotated(word: Variable, distance: int) -> Any:
    high = op_named("left_shift")(word, constant(distance, "uint32"))
    low = op_named("right_shift")(word, constant(32 - distance, "uint32"))
    return op_named("bitwise_or")(high, low)


def _of_generator(draw: Callable[[Any, Equation], Callable[..., Any]]) -> Rule:
    """What a generator of JAX's does, traced by JAX: for each key of an array of them."""

    def rule(step: Equation) -> list[Variable]:
        jax = sys.modules["jax"]
        generator = step.params.get("impl") or step.abstract[0].dtype._impl
        function = draw(generator, step)
        for _ in step.abstract[0].shape:
            function = jax.vmap(function)
        shapes = [jax.ShapeDtypeStruct(step.shape_of(place), one.tensor_type.numpy_dtype)
                  for place, one in enumerate(step.operands)]  # fmt: skip
        return step.inline(jax.make_jaxpr(function)(*shapes), step.operands)

    return rule


RULES: dict[str, Rule] = {
    "random_bits": _of_generator(
        lambda own, step: lambda key: own.random_bits(key, step.params["bit_width"], step.params["shape"])
    ),
    "random_clone": lambda step: step.first,
    "random_fold_in": _of_generator(lambda own, step: own.fold_in),
    "random_seed": _of_generator(lambda own, step: own.seed),
    "random_split": _of_generator(lambda own, step: lambda key: own.split(key, step.params["shape"])),
    "threefry2x32": _threefry,
}
