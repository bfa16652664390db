"""What functions of functions do while they are traced: derivatives and batches of traced functions.

Each takes a function and traced arguments. It traces the function with new Variables in place of those it is
about, builds the graph of the derivative or batch, and puts the arguments into that.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import GradientError, GraphError, ShapeError, describe
from esat.frontend.arrays.shaping import moveaxis
from esat.frontend.derivatives.batching import vectorize
from esat.frontend.derivatives.checkpoints import checkpointed
from esat.frontend.derivatives.forward import push_forward
from esat.frontend.derivatives.gradient import vjp
from esat.frontend.derivatives.jacobians import jacobians_of
from esat.frontend.tracing.trace import current_trace, placing
from esat.frontend.tracing.trees import Structure, flatten, unflatten
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import as_symbol, layout_made_by
from esat.frontend.tracing.values.layouts import MemoryLayout
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.algorithms.copying import clone
from esat.graph.calls.callers import user_line
from esat.graph.tracing import Traced
from esat.graph.types import LARGEST_SIZE, TensorType
from esat.graph.variables import Variable
from esat.ops.arrays.shape import size_of, sizes_of
from esat.ops.cast import cast
from esat.ops.inference.batching import repeated

Function = Callable[..., Any]


@record(frozen=True, eq=False)
class Tree:
    """Leaves of a value, and what else it is made of."""

    structure: Structure
    leaves: tuple[Any, ...]

    @staticmethod
    def of(value: Any, where: str) -> Tree:
        """A value taken apart."""
        leaves: list[Any] = []
        return Tree(flatten(value, leaves, where), tuple(leaves))

    def rebuilt(self, leaves: Sequence[Any]) -> Any:
        """The value with other leaves."""
        return unflatten(self.structure, iter(leaves))


@record(frozen=True, eq=False)
class Run:
    """A function that was traced with new Variables in place of some arguments.

    Attributes
    ----------
    arguments
        Those arguments, as one tuple.
    fresh
        The new Variables, one for each of their leaves.
    result
        What the function returned.
    aux
        What else it returned, which is not differentiated.
    """

    arguments: Tree
    fresh: tuple[Variable, ...]
    result: Tree
    aux: Any

    @property
    def outputs(self) -> list[Variable]:
        """The leaves of the result as Variables."""
        return [as_symbol(leaf) for leaf in self.result.leaves]

    def placed(self, variables: Sequence[Variable], scalars: Sequence[bool]) -> list[TracedArray]:
        """Variables with the arguments in place of the new Variables, as traced arrays."""
        given = {one: as_symbol(leaf) for one, leaf in zip(self.fresh, self.arguments.leaves, strict=True)}
        placed = clone(list(variables), given)[0]
        return [TracedArray(variable, is_scalar=flag) for variable, flag in zip(placed, scalars, strict=True)]

    def aux_placed(self) -> Any:
        """What else the function returned, with the arguments in place."""
        return self.values_placed(Tree.of(self.aux, "the result"))

    def values_placed(self, tree: Tree) -> Any:
        """A tree with the arguments in place of the new Variables."""
        found = self.placed(
            [as_symbol(leaf) for leaf in tree.leaves], [is_scalar(leaf) for leaf in tree.leaves]
        )
        return tree.rebuilt(
            [
                TracedNumber(new.variable, leaf.kind) if type(leaf) is TracedNumber else new
                for leaf, new in zip(tree.leaves, found, strict=True)
            ]
        )


def is_scalar(leaf: Any) -> bool:
    """Whether a leaf is a number, or what NumPy has as a scalar."""
    return leaf.is_scalar if type(leaf) is TracedArray else not isinstance(leaf, np.ndarray)


def called(function: Function, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """A function of the user's, called within the trace that runs."""
    trace = current_trace()
    assert trace is not None
    return trace.exchange(function)(*arguments, **keywords)


def run(
    name: str,
    function: Function,
    arguments: Sequence[Any],
    keywords: dict[str, Any],
    positions: Sequence[int],
    has_aux: bool = False,
) -> Run:
    """Trace a function with new Variables in place of some of its arguments.

    Raises
    ------
    GradientError
        For arguments that have no derivatives.
    GraphError
        When the function writes to an argument.
    """
    for position in positions:
        if not -len(arguments) <= position < len(arguments):
            raise GradientError(f"{name}: there is no argument {position} of {len(arguments)}")
    places = [position % len(arguments) for position in positions]
    for place in places:
        value = arguments[place]
        if Tree.of(value, name).structure[0] == "static":
            reason = "has no derivatives; leave it out of argnums"
            raise GradientError(f"{name}: argument {place}, a {type(value).__name__}, {reason}{_at_line()}")
    tree = Tree.of(tuple(arguments[place] for place in places), name)
    fresh = tuple(_new_variable(name, leaf) for leaf in tree.leaves)
    stands = [_stand_in(leaf, variable) for leaf, variable in zip(tree.leaves, fresh, strict=True)]
    given = list(arguments)
    for place, value in zip(places, tree.rebuilt(stands), strict=True):
        given[place] = value
    values = {one: as_symbol(leaf) for one, leaf in zip(fresh, tree.leaves, strict=True)}
    with placing(lambda variables: clone(variables, values)[0]):
        result = called(function, given, keywords)
    if any(type(stand) is TracedArray and stand.version for stand in stands):
        raise GraphError(f"{name}: the function writes to its argument; return the new value, or take a copy")
    aux = None
    if has_aux:
        if not isinstance(result, tuple) or len(result) != 2:
            raise GradientError(f"{name}: with has_aux=True the function returns a pair")
        result, aux = result
    return Run(tree, fresh, Tree.of(result, "the result"), aux)


def _new_variable(name: str, leaf: Any) -> Variable:
    type = as_symbol(leaf).tensor_type
    if type.kind not in "fc":
        reason = "integers and booleans have no derivatives; convert them, or leave them out of argnums"
        raise GradientError(describe(name, [type], reason, user_line()))
    return _standing_for(TensorType(type.dtype, shape=type.shape), sizes_of(as_symbol(leaf)))


def _standing_for(type: TensorType, sizes: Sequence[Variable]) -> Variable:
    """A new Variable within the trace that runs, in place of an array of these sizes."""
    variable, trace = type.make_variable(), current_trace()
    assert trace is not None
    trace.stand_ins[variable] = tuple(sizes)
    return variable


def _stand_in(leaf: Any, variable: Variable) -> Any:
    if type(leaf) is TracedNumber or (
        isinstance(leaf, (float, complex)) and not isinstance(leaf, np.generic)
    ):
        kind = leaf.kind if type(leaf) is TracedNumber else type(leaf)
        return TracedNumber(variable, kind)
    return TracedArray(
        variable, is_scalar=is_scalar(leaf), layout=leaf.layout if type(leaf) is TracedArray else None
    )


def positions_of(argnums: Any) -> list[int]:
    """Positions of arguments, given as one or several.

    Raises
    ------
    GradientError
        For what is no integer.
    """
    given = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    if not all(is_index(one) for one in given):
        raise GradientError(
            f"argnums={reprlib.repr(argnums)}: positions of arguments are an integer, or several"
        )
    return [int(one) for one in given]


def is_index(value: Any) -> bool:
    """Whether a value is an integer, and no boolean."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def value_and_gradient(
    name: str,
    function: Function,
    arguments: Sequence[Any],
    keywords: dict[str, Any],
    argnums: Any,
    has_aux: bool,
) -> tuple[Any, Any]:
    """What a function returns, and its gradient by some of its arguments."""
    positions = positions_of(argnums)
    found = run(name, function, arguments, keywords, positions, has_aux)
    if (
        len(found.result.leaves) != 1
        or found.outputs[0].ndim != 0
        or found.outputs[0].tensor_type.kind != "f"
    ):
        shown = ", ".join(str(as_symbol(leaf).type) for leaf in found.result.leaves) or "nothing"
        raise GradientError(
            f"{name} needs a function that returns one real scalar; {_name_of(function)} returns {shown}. "
            f"Sum it, or use esat.jacobian or esat.vjp{_at_line()}"
        )
    (cost,) = found.outputs
    parts = vjp([cost], list(found.fresh), [cast(1, cost.dtype)], "zero")
    gradients = found.placed(parts, [is_scalar(leaf) for leaf in found.arguments.leaves])
    tree = found.arguments.rebuilt(gradients)
    value = found.values_placed(found.result)
    return (value, found.aux_placed()) if has_aux else value, tree if isinstance(
        argnums, (tuple, list)
    ) else tree[0]


def pulled_back(
    name: str, function: Function, arguments: Sequence[Any], cotangents: Any
) -> tuple[Any, tuple[Any, ...]]:
    """What a function returns, and the cotangents of its arguments, given those of that."""
    found = run(name, function, arguments, {}, range(len(arguments)))
    given = _matching(name, cotangents, found.result)
    parts = vjp(found.outputs, list(found.fresh), given, "zero")
    results = found.placed(parts, [is_scalar(leaf) for leaf in found.arguments.leaves])
    return found.values_placed(found.result), found.arguments.rebuilt(results)


def pushed_forward(
    name: str, function: Function, arguments: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """What a function returns, and the tangent of that, given those of its arguments."""
    found = run(name, function, arguments, {}, range(len(arguments)))
    given = _matching(name, tuple(tangents), found.arguments)
    parts = push_forward(found.outputs, found.fresh, given)
    results = found.placed(parts, [is_scalar(leaf) for leaf in found.result.leaves])
    return found.values_placed(found.result), found.result.rebuilt(results)


def _matching(name: str, value: Any, like: Tree) -> list[Variable]:
    """Tangents as Variables of the dtypes of what they are tangents of."""
    given = Tree.of(value, name)
    if len(given.leaves) != len(like.leaves):
        raise GradientError(f"{name}: {len(given.leaves)} tangents are given for {len(like.leaves)} arrays")
    found = []
    for leaf, model in zip(given.leaves, like.leaves, strict=True):
        variable, wanted = as_symbol(leaf), as_symbol(model).tensor_type
        weak = isinstance(leaf, (int, float)) or type(leaf) is TracedNumber
        found.append(cast(variable, wanted.dtype) if weak and wanted.kind in "fc" else variable)
    return found


def jacobians(
    name: str,
    function: Function,
    arguments: Sequence[Any],
    keywords: dict[str, Any],
    argnums: Any,
    direction: Any,
    has_aux: bool,
) -> Any:
    """The derivatives of each leaf of a function's result by each leaf of some of its arguments."""
    found = run(name, function, arguments, keywords, positions_of(argnums), has_aux)
    rows = jacobians_of(found.outputs, found.fresh, direction)
    parts = [part for row in rows for part in row]
    placed = iter(found.placed(parts, [part.ndim == 0 for part in parts]))
    whole = []
    for row in rows:
        tree = found.arguments.rebuilt([next(placed) for _ in row])
        whole.append(tree if isinstance(argnums, (tuple, list)) else tree[0])
    result = found.result.rebuilt(whole)
    return (result, found.aux_placed()) if has_aux else result


def recomputed(name: str, function: Function, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """What a function returns, of which the gradient computes anew what it needs.

    Raises
    ------
    GraphError
        When the function writes to an argument.
    """
    tree = Tree.of((tuple(arguments), keywords), name)
    stands = list(tree.leaves)
    given: dict[Variable, Variable] = {}
    for place, leaf in enumerate(tree.leaves):
        if type(leaf) is TracedArray and isinstance(leaf.value, Variable):
            stand_in = _standing_for(leaf.value.tensor_type, sizes_of(leaf.value))
            given[stand_in] = leaf.value
            stands[place] = TracedArray(stand_in, is_scalar=leaf.is_scalar, layout=leaf.layout)
    with placing(lambda variables: clone(variables, given)[0]):
        result = called(function, *tree.rebuilt(stands))
    if any(type(stand) is TracedArray and stand.version for stand in stands):
        raise GraphError(f"{name}: the function writes to its argument; return the new value, or take a copy")
    found = Tree.of(result, "the result")
    traced = [place for place, leaf in enumerate(found.leaves) if isinstance(leaf, Traced)]
    outputs = checkpointed([as_symbol(found.leaves[place]) for place in traced], given)
    leaves = list(found.leaves)
    for place, output in zip(traced, outputs, strict=True):
        leaf = leaves[place]
        number = type(leaf) is TracedNumber
        leaves[place] = (
            TracedNumber(output, leaf.kind) if number else TracedArray(output, is_scalar=is_scalar(leaf))
        )
    return found.rebuilt(leaves)


# ---- batches


def mapped(
    name: str, function: Function, arguments: Sequence[Any], in_axes: Any, out_axes: Any, axis_size: Any
) -> Any:
    """What a function returns for each element of a batch of its arguments.

    Raises
    ------
    ShapeError
        When batches have not one size, or there is none.
    GraphError
        When the function writes to an argument.
    """
    axes_of = _axes_for(name, tuple(arguments), in_axes)
    tree = Tree.of(tuple(arguments), name)
    axes = [None if _is_number(leaf) else axis for leaf, axis in zip(tree.leaves, axes_of, strict=True)]
    moved = {
        place: _batch_first(name, as_symbol(leaf), axis)
        for place, (leaf, axis) in enumerate(zip(tree.leaves, axes, strict=True))
        if axis is not None
    }
    names = [
        f"{argument} (axis {axes[place]})"
        for place, argument in enumerate(_argument_names(function, arguments))
        if place in moved
    ]
    size = _size_of_batch(name, list(moved.values()), names, axis_size)
    stands = list(tree.leaves)
    fresh: dict[Variable, Variable] = {}
    for place, batch in moved.items():
        type = TensorType(batch.dtype, shape=batch.tensor_type.shape[1:])
        element = _standing_for(type, sizes_of(batch)[1:])
        fresh[element] = batch
        layout = _element_layout(tree.leaves[place], axes[place], element)
        stands[place] = TracedArray(element, is_scalar=element.ndim == 0, layout=layout)
    with placing(lambda variables: [_of_any(*one) for one in vectorize(variables, fresh)], batching=True):
        result = called(function, tree.rebuilt(stands), {})
    if any(stand.version for place, stand in enumerate(stands) if place in moved):
        raise GraphError(f"{name}: the function writes to its argument; return the new value, or take a copy")
    found = Tree.of(result, "the result")
    outputs = vectorize([as_symbol(leaf) for leaf in found.leaves], fresh)
    wanted = _axes_for(name, result, out_axes)
    return found.rebuilt([_placed_axis(name, *each, size) for each in zip(outputs, wanted, strict=True)])


def _argument_names(function: Function, arguments: Sequence[Any]) -> list[str]:
    """How messages call the leaves of arguments."""
    try:
        known = [*inspect.signature(function).parameters]
    except (TypeError, ValueError):
        known = []
    names: list[str] = []
    for place, value in enumerate(arguments):
        title = f"argument {known[place] if place < len(known) else place}"
        count = len(Tree.of(value, title).leaves)
        names += [title] if count == 1 else [f"{title}[{part}]" for part in range(count)]
    return names


def _at_line() -> str:
    line = user_line()
    return "" if line is None else f"\n  at {line[0]}:{line[1]}"


def _name_of(function: Function) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__)).replace("<locals>.", "")


def _of_any(condition: Variable, depends: bool) -> Variable:
    """Whether a condition holds for any element of a batch."""
    result: Any = condition
    return result.any() if depends else condition


def _element_layout(leaf: Any, axis: int | None, element: Variable) -> MemoryLayout | None:
    """How an element of a batch lies in memory."""
    if type(leaf) is not TracedArray or axis is None:
        return None
    return layout_made_by(lambda batch: np.moveaxis(batch, axis, 0)[0], (leaf,), element, axis == 0)


def _is_number(leaf: Any) -> bool:
    return type(leaf) is TracedNumber or (
        isinstance(leaf, (int, float, complex)) and not isinstance(leaf, np.generic)
    )


def _axes_for(name: str, value: Any, axes: Any) -> list[int | None]:
    """The axis of each leaf of a value: axes are a tree as the value is one, or its beginning."""
    if axes is None or isinstance(axes, (int, np.integer)):
        return [None if axes is None else int(axes)] * len(Tree.of(value, name).leaves)
    if isinstance(value, dict) and isinstance(axes, dict) and value.keys() == axes.keys():
        return [one for key in value for one in _axes_for(name, value[key], axes[key])]
    if isinstance(value, (tuple, list)) and isinstance(axes, (tuple, list)) and len(value) == len(axes):
        return [one for pair in zip(value, axes, strict=True) for one in _axes_for(name, *pair)]
    counted = ""
    if isinstance(value, (tuple, list)) and isinstance(axes, (tuple, list)):
        counted = f": {len(axes)} for {len(value)}"
    raise ShapeError(
        f"{name}: axes {reprlib.repr(axes)} do not match arguments or results{counted}{_at_line()}"
    )


def _batch_first(name: str, variable: Variable, axis: int) -> Variable:
    if not -variable.ndim <= axis < variable.ndim:
        raise ShapeError(describe(name, [variable.type], f"there is no axis {axis} to map over", user_line()))
    return moveaxis(variable, axis, 0) if axis else variable


def _size_of_batch(name: str, batches: Sequence[Variable], names: Sequence[str], axis_size: Any) -> Variable:
    sizes = {batch.tensor_type.shape[0] for batch in batches if batch.tensor_type.shape[0] is not None}
    if axis_size is not None:
        if not is_index(axis_size) or not 0 <= axis_size <= LARGEST_SIZE:
            raise ShapeError(f"{name}: axis_size={reprlib.repr(axis_size)} is no number of elements")
        sizes.add(int(axis_size))
    if len(sizes) > 1:
        shown = ", ".join(
            f"{batch} has {batch_size}"
            for batch, batch_size in zip(names, (one.tensor_type.shape[0] for one in batches), strict=True)
            if batch_size is not None
        )
        given = "" if axis_size is None else f", and axis_size is {axis_size}"
        raise ShapeError(f"{name}: sizes along the axes to map over are not one: {shown}{given}{_at_line()}")
    if sizes:
        return cast(sizes.pop(), "int64")
    if not batches:
        raise ShapeError(f"{name}: no argument has an axis to map over; give axis_size")
    return size_of(batches[0], 0)


def _placed_axis(name: str, output: tuple[Variable, bool], axis: int | None, size: Variable) -> TracedArray:
    variable, depends = output
    if axis is None:
        if depends:
            raise ShapeError(f"{name}: a result depends on the batch, and cannot have None in out_axes")
        return TracedArray(variable, is_scalar=variable.ndim == 0)
    batch = variable if depends else repeated(variable, size)
    return TracedArray(moveaxis(batch, 0, axis) if axis else batch)
