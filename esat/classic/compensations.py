"""Compensated arithmetic stays as it was written.

Over the real numbers what an error-free transformation computes is zero: of ``s = a + b``, the error
``b - (s - a)`` that the addition made (T. J. Dekker, "A floating-point technique for extending the available
precision", 1971; W. Kahan, "Further remarks on reducing truncation errors", 1965). Rules would say so.
Before::

    add(s, sub(b, sub(s, a)))       s = add(a, b)

Between :func:`keep_compensations` and :func:`release_compensations` rules do not see what makes such a zero::

    add(s, as_written{sub}(b, as_written{sub}(s, a)))       s = as_written{add}(a, b)

That a difference is zero is found by computing modulo a prime with random values of what is no sum or product
(J. T. Schwartz, "Fast probabilistic algorithms for verification of polynomial identities", 1980). It counts
as written on purpose where a number is subtracted again from a sum of itself;
``(x - 1)**2 - (x**2 - 2*x + 1)``, which is zero as well, does no such thing. So does adding
and subtracting a constant that leaves no fractional digits, which rounds.

Arithmetic whose result is rounded to a whole number stays, too: its last bit decides which one that is.
Of ``(x * 255 / x.max()).astype("uint8")`` the largest element is 255, but may be 254 by
``x * (255 / x.max())``.

So does the complement of a function, as a factor, where elements of the function are chosen or moved: of
``s = sigmoid(x)`` the quotient ``s (1 - s) / (1 - concatenate([s, t])[0])`` is right to the last bits, as
both differences have the error of ``s``; ``sigmoid(-x)`` has none, but the other difference still has it.
And so does a function that one reads which is steep at one, as ``arccos(s)``, beside others: in
``sqrt(1 - s) / arccos(s)`` both have the error of ``s``. Inverses are left to rules: ``erfinv(erf(x))``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from hashlib import blake2b

import numpy as np

from esat.classic.optimizers.global_optimizers import FromFunctionOptimizer
from esat.egraph.analyses.uniform import value_of
from esat.graph import Apply, Family, FunctionGraph, TensorType, Variable
from esat.ops.annotations.as_written import AsWritten
from esat.ops.arrays.along_axis import AlongAxis
from esat.ops.arrays.creation import Alloc
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.join import Join
from esat.ops.arrays.repeat import RepeatedPlaces
from esat.ops.cast import Cast
from esat.ops.index.write import PartWrite

_PRIME = 2**127 - 1
_SUMS = ("add", "sub")
_ARITHMETIC = (*_SUMS, "neg", "mul", "sqr", "div")
_CHOOSING = ("clip", "maximum", "minimum", "fmax", "fmin", "abs", "switch")
_PRODUCTS = ("mul", "div")
_MOVING = (Alloc, AlongAxis, Join, PartWrite, RepeatedPlaces)
_STEEP_AT_ONE = {
    "arccos": "cos", "arcsin": "sin", "arctanh": "tanh", "betainc": "", "betaincinv": "betainc",
    "erfinv": "erf", "ndtri": "ndtr",
}  # fmt: skip
"""Functions that are steep at one, each with the function that it undoes."""
_ROUNDING = ("floor", "ceil", "trunc", "rint", "floor_div", "mod", "fmod")


def keep_compensations(graph: FunctionGraph) -> None:
    """Hide error-free transformations, what is rounded to whole numbers, complements of moved values, and
    arguments of functions that are steep at one."""
    _keep_rounded(graph)
    _keep_complements(graph)
    _keep_arguments(graph)
    subtracts_again = {node for node in graph.apply_nodes if _subtracts_again(node)}
    residues = _residues(graph) if subtracts_again else {}
    kept = {part for node in subtracts_again if _rounds(node) for part in _arithmetic_below(node, 1)}
    for node in graph.apply_nodes if subtracts_again else ():
        if _is_sum(node) and residues[node.outputs[0]] == 0 and node.inputs[0] is not node.inputs[1]:
            below = set(_arithmetic_below(node))
            if not below.isdisjoint(subtracts_again):
                kept |= below
    for node in graph.toposort():
        if node in kept:
            graph.replace(node.outputs[0], _hidden(node, node.inputs), "keep_compensations")


def _hidden(node: Apply, inputs: Sequence[Variable]) -> Variable:
    """What a node computes of some inputs, hidden from rules."""
    hidden = AsWritten(node.op).make_node(*inputs)
    hidden.where = node.where
    return hidden.outputs[0]


def release_compensations(graph: FunctionGraph) -> None:
    """Undo :func:`keep_compensations`."""
    for node in graph.toposort():
        if isinstance(node.op, AsWritten):
            shown = node.op.op.make_node(*node.inputs)
            shown.where = node.where
            graph.replace(node.outputs[0], shown.outputs[0], "release_compensations")


def _is_sum(node: Apply) -> bool:
    type = node.outputs[0].type
    return node.op.name in _SUMS and isinstance(type, TensorType) and type.kind == "f"


def _makes_whole(node: Apply) -> bool:
    """Whether a node makes whole numbers of floats."""
    if isinstance(node.op, Cast):
        return node.outputs[0].tensor_type.kind in "iu" and node.inputs[0].tensor_type.kind == "f"
    return node.op.name in _ROUNDING and node.outputs[0].tensor_type.kind == "f"


def _keep_rounded(graph: FunctionGraph) -> None:
    """Hide arithmetic where its result is rounded, also after elements of it were chosen and moved.

    What else reads such a result reads the node as it was, which rules see.
    """
    found: dict[Variable, Variable] = {}
    for node in graph.toposort():
        if _makes_whole(node):
            for place, operand in enumerate(node.inputs):
                kept = _as_written(operand, found)
                if kept is not operand:
                    graph.change_input((node, place), kept, "keep_compensations")


def _keep_complements(graph: FunctionGraph) -> None:
    """Hide ``c - f`` from products, where ``f`` is a function of which elements are chosen or moved."""
    nodes = graph.toposort()
    moved = set[Variable]()
    for node in nodes:
        if isinstance(node.op, _MOVING) or node.op.name in _CHOOSING:
            parts = {part for operand in node.inputs for part in _shown(operand)}
            functions = {part for part in parts if part in moved or _is_function(part.owner)}
            moved.update(functions, node.outputs if functions else ())
        elif _chooses(node) and not moved.isdisjoint(node.inputs):
            moved.update(node.outputs)
    for node in nodes if moved else ():
        if node.op.name != "sub" or not _is_sum(node) or value_of(node.inputs[0]) is None:
            continue
        if _base(node.inputs[1]) not in moved:
            continue
        hidden = _hidden(node, node.inputs)
        for reader, place in tuple(graph.clients[node.outputs[0]]):
            if isinstance(reader, Apply) and reader.op.name in _PRODUCTS:
                graph.change_input((reader, place), hidden, "keep_compensations")


def _keep_arguments(graph: FunctionGraph) -> None:
    """Hide functions that are read by others which are steep at one, and by nodes beside these."""
    for node in graph.toposort():
        for operand in node.inputs if node.op.name in _STEEP_AT_ONE else ():
            below = _stretched(operand).owner
            if below is None or not _is_function(below) or below.op.name == _STEEP_AT_ONE[node.op.name]:
                continue
            (value,) = below.outputs
            readers = [reader for reader, _ in graph.clients[value] if isinstance(reader, Apply)]
            if any(reader.op.name not in _STEEP_AT_ONE for reader in readers):
                graph.replace(value, _hidden(below, below.inputs), "keep_compensations")


def _is_function(node: Apply | None) -> bool:
    """Whether a node computes another function of elements than sums and products are."""
    if node is None or node.op.family is not Family.ELEMENTWISE or node.outputs[0].tensor_type.kind != "f":
        return False
    return node.op.name == "div" or node.op.name not in (*_ARITHMETIC, *_CHOOSING)


def _shown(variable: Variable) -> Iterator[Variable]:
    """A value and those it is a view or a part of."""
    yield variable
    while (node := variable.owner) is not None and node.op.family in (Family.VIEW, Family.INDEX):
        variable = node.inputs[0]
        yield variable


def _base(variable: Variable) -> Variable:
    """What a value is a power of, itself of others."""
    one = _stretched(variable)
    node = one.owner
    if node is None or node.op.name not in ("sqr", "pow", "mul"):
        return one
    first, last = _stretched(node.inputs[0]), node.inputs[-1]
    is_power = first is _stretched(last) or (node.op.name == "pow" and value_of(last) is not None)
    return first if is_power else one


def _as_written(variable: Variable, found: dict[Variable, Variable]) -> Variable:
    """A value whose arithmetic is hidden, down to what neither is that nor chooses or moves elements."""
    pending = [variable]
    while pending:
        one = pending[-1]
        node = one.owner
        is_arithmetic = node is not None and node.op.name in _ARITHMETIC
        if node is None or one in found or not (is_arithmetic or _chooses(node)):
            found.setdefault(one, one)
            pending.pop()
            continue
        below = [operand for operand in node.inputs if operand not in found]
        pending += below
        if below:
            continue
        inputs = [found[operand] for operand in node.inputs]
        if is_arithmetic:
            found[one] = _hidden(node, inputs)
        elif all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
            found[one] = one
        else:
            made = node.op.make_node(*inputs)
            made.where = node.where
            found[one] = next(new for new, old in zip(made.outputs, node.outputs, strict=True) if old is one)
        pending.pop()
    return found[variable]


def _chooses(node: Apply) -> bool:
    return node.op.name in _CHOOSING or node.op.family in (Family.VIEW, Family.INDEX)


def _subtracts_again(node: Apply) -> bool:
    """Whether a node is ``(a + b) - a`` or ``a - (a + b)``, where the sum may be a difference."""
    if node.op.name != "sub" or not _is_sum(node):
        return False
    first, second = (_stretched(operand) for operand in node.inputs)
    return any(
        whole.owner is not None
        and _is_sum(whole.owner)
        and any(_is_same(_stretched(part), other) for part in whole.owner.inputs)
        for whole, other in ((first, second), (second, first))
    )


def _rounds(node: Apply) -> bool:
    """Whether a node is ``(a + c) - c`` with a constant that leaves ``a`` no fractional digits."""
    value = value_of(node.inputs[1])
    digits = np.finfo(node.outputs[0].tensor_type.dtype).nmant
    return value is not None and abs(value) >= 2.0**digits


def _stretched(variable: Variable) -> Variable:
    """What a view with further axes of size 1 shows."""
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        order = [axis for axis in variable.owner.op.order if axis != "x"]
        if order != list(range(variable.owner.op.input_rank)):
            break
        variable = variable.owner.inputs[0]
    return variable


def _is_same(one: Variable, other: Variable) -> bool:
    value = value_of(one)
    return one is other or (value is not None and value == value_of(other))


def _arithmetic_below(node: Apply, depth: int | None = None) -> Iterator[Apply]:
    """A node and those below it that add, subtract and multiply, down to a depth."""
    pending, seen = [(node, 0)], {node}
    while pending:
        one, level = pending.pop()
        yield one
        if level == depth:
            continue
        for operand in one.inputs:
            below = _stretched(operand).owner
            if below is not None and below.op.name in _ARITHMETIC and below not in seen:
                seen.add(below)
                pending.append((below, level + 1))


def _residues(graph: FunctionGraph) -> dict[Variable, int]:
    """Each Variable modulo a prime; inputs and what is not computed by arithmetic have random values."""
    found: dict[Variable, int] = {}

    def residue(variable: Variable) -> int:
        known = found.get(variable)
        if known is None:
            value = value_of(variable)
            if value is None or not np.isfinite(value):
                known = _random("variable", len(found))
            else:
                fraction = Fraction(value)
                known = fraction.numerator * pow(fraction.denominator, -1, _PRIME) % _PRIME
            found[variable] = known
        return known

    for node in graph.toposort():
        operands = [residue(operand) for operand in node.inputs]
        for place, output in enumerate(node.outputs):
            computed = _computed(node, operands)
            if computed is None:
                computed = _random(repr(node.op), place, *operands)
            found[output] = computed
    return found


def _computed(node: Apply, operands: list[int]) -> int | None:
    """The residue of a result; None where the op does no arithmetic."""
    if isinstance(node.op, DimShuffle) and _stretched(node.outputs[0]) is not node.outputs[0]:
        return operands[0]
    name, first, second = node.op.name, operands[0] if operands else 0, operands[-1] if operands else 0
    if name == "add":
        return (first + second) % _PRIME
    if name == "sub":
        return (first - second) % _PRIME
    if name == "neg":
        return -first % _PRIME
    if name in ("mul", "sqr"):
        return first * second % _PRIME
    if name == "div" and second:
        return first * pow(second, -1, _PRIME) % _PRIME
    return None


def _random(*key: object) -> int:
    """A number that follows from a key."""
    return int.from_bytes(blake2b(repr(key).encode(), digest_size=15).digest()) + 1


KEEP_COMPENSATIONS = FromFunctionOptimizer(keep_compensations)
RELEASE_COMPENSATIONS = FromFunctionOptimizer(release_compensations)
