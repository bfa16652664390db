"""Loops within traced functions: the body is traced for an element of each sequence, and becomes one op."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isqrt
from typing import Any

import numpy as np

from esat.errors import CallError, DtypeError, EsatError, ShapeError, UserLine, describe
from esat.frontend.tracing.path import Path
from esat.frontend.tracing.rolling.raised import unless_failed
from esat.frontend.tracing.trace import current_trace, placing
from esat.frontend.tracing.trees import Structure
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import as_symbol
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.functions.differentiation import Tree, called, is_scalar, recomputed
from esat.functions.jitted import jit
from esat.graph.algorithms.copying import clone
from esat.graph.calls.callers import user_line
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import TensorType
from esat.graph.variables import Constant, Variable
from esat.graph.watching import watching_nodes
from esat.ops.arrays.join import join
from esat.ops.arrays.shape import size_of, sizes_of
from esat.ops.arrays.view import reshape
from esat.ops.cast import cast
from esat.ops.control import assert_
from esat.ops.loops.parts import LoopParts, refuse_draws

Function = Callable[..., Any]

MOST_ROUNDS = 8
"""Traces of a body until the types of carries stay: each widens one, and dtypes have fewer steps."""


def scan(
    f: Function,
    init: Any,
    xs: Any,
    length: Any,
    reverse: bool,
    checkpoint: bool | int = False,
    sparing: bool = False,
) -> Any:
    """See :func:`esat.scan`; ``sparing`` as of :class:`~esat.ops.loops.record.Scan`."""
    if current_trace() is None:
        return jit(lambda init, xs: scan(f, init, xs, length, reverse, checkpoint))(init, xs)
    length = length.size_or_variable() if type(length) is TracedNumber else length
    sequences = Tree.of(xs, "scan: xs") if xs is not None else None
    elements = [as_symbol(leaf) for leaf in sequences.leaves] if sequences is not None else []
    steps = _steps("scan", elements, length)
    if checkpoint is not False:
        size = _block_size(checkpoint, steps)
        return _in_blocks(f, init, sequences, elements, steps, reverse, size)
    body = _Body("scan", Tree.of(init, "scan: init"))

    def step(carry: Any, element: Any) -> tuple[Any, Any]:
        result = called(f, (carry, element), {})
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            shown = type(result).__name__
            raise CallError(f"scan: f returns a pair, the next carry and a result, not a {shown}{_at(f)}")
        return result[0], result[1]

    loop = body.traced(step, steps, sequences, elements, reverse, sparing)
    return loop.carry(), loop.rows()


def _block_size(checkpoint: Any, steps: Variable) -> int:
    """After how many steps a carry is kept. Raises CallError."""
    known = int(steps.data) if isinstance(steps, Constant) else None
    if checkpoint is True:
        if known is None:
            reason = (
                "checkpoint=True takes a number of steps that is known; give one, after which to keep a carry"
            )
            raise CallError(describe("scan", [steps.type], reason, user_line()))
        return _near_root(max(known, 1))
    if type(checkpoint) is not int or checkpoint < 1:
        raise CallError(f"scan: checkpoint={checkpoint!r} is True, False, or a number of steps from 1 on")
    return checkpoint


def _near_root(steps: int) -> int:
    """A number near the square root that leaves few steps over."""
    root = isqrt(steps)
    return min(range(root, max(root * 3 // 4, 1) - 1, -1), key=lambda size: steps % size)


def _in_blocks(
    f: Function,
    init: Any,
    sequences: Tree | None,
    elements: Sequence[Variable],
    steps: Variable,
    reverse: bool,
    size: int,
) -> Any:
    """A scan of blocks of steps, whose gradient keeps the carries between blocks and runs each once more."""
    if isinstance(steps, Constant):
        blocks, rest = (as_variable(np.int64(part)) for part in divmod(max(int(steps.data), 0), size))
    else:
        count = op_named("maximum")(steps, 0)
        blocks, rest = op_named("floor_div")(count, size), op_named("mod")(count, size)
    done = op_named("mul")(blocks, size)

    def rebuilt(part: Callable[[Variable], Variable]) -> Any:
        return None if sequences is None else sequences.rebuilt([TracedArray(part(one)) for one in elements])

    def whole(one: Variable) -> Variable:
        return reshape(one[:done], [blocks, size, *sizes_of(one)[1:]])

    def inner(carry: Any, rows: Any) -> Any:
        return scan(f, carry, rows, size, reverse, sparing=True)

    def block(carry: Any, rows: Any) -> Any:
        return recomputed("scan", inner, (carry, rows), {})

    def in_blocks(carry: Any) -> tuple[Any, Any]:
        given = rebuilt(whole)
        tree = None if given is None else Tree.of(given, "scan: xs")
        leaves = [] if tree is None else [as_symbol(leaf) for leaf in tree.leaves]
        loop = _Body("scan", Tree.of(carry, "scan: init")).traced(block, blocks, tree, leaves, reverse, True)
        found = Tree.of(loop.rows(), "scan: the result")
        flat = [as_symbol(leaf) for leaf in found.leaves]
        joined = [TracedArray(reshape(one, [done, *sizes_of(one)[2:]])) for one in flat]
        return loop.carry(), found.rebuilt(joined)

    def at_the_end(carry: Any) -> tuple[Any, Any]:
        found: tuple[Any, Any] = scan(f, carry, rebuilt(lambda one: one[done:]), rest, reverse, sparing=True)
        return found

    if isinstance(rest, Constant) and not rest.data:
        return in_blocks(init)
    first, second = (at_the_end, in_blocks) if reverse else (in_blocks, at_the_end)
    carry, rows = first(init)
    carry, others = second(carry)
    parts = (others, rows) if reverse else (rows, others)
    trees = [Tree.of(part, "scan: the result") for part in parts]
    pairs = zip(*(tree.leaves for tree in trees), strict=True)
    joined = [TracedArray(join([as_symbol(one) for one in pair], 0)) for pair in pairs]
    return carry, trees[0].rebuilt(joined)


def fori_loop(lower: Any, upper: Any, body: Function, init: Any) -> Any:
    """See :func:`esat.fori_loop`."""
    if current_trace() is None:
        return jit(lambda lower, upper, init: fori_loop(lower, upper, body, init))(lower, upper, init)
    first, last = (_integer("fori_loop", one) for one in (lower, upper))
    steps = op_named("sub")(last, first)
    if isinstance(first, Constant) and isinstance(last, Constant):
        steps = as_variable(np.int64(last.data) - np.int64(first.data))
    carried = Tree.of((TracedNumber(first, int), init), "fori_loop: init")

    def step(carry: Any, element: Any) -> tuple[Any, Any]:
        place, value = carry
        return (place + 1, called(body, (place, value), {})), None

    loop = _Body("fori_loop", carried, 1).traced(step, steps, None, [], False)
    return loop.carry()[1]


def while_loop(cond: Function, body: Function, init: Any, max_steps: Any) -> Any:
    """See :func:`esat.while_loop`."""
    if max_steps is not None and (type(max_steps) is not int or max_steps < 0):
        raise CallError(f"while_loop: max_steps={max_steps!r} is a number of steps, or None")
    if current_trace() is None:
        return jit(lambda init: while_loop(cond, body, init, max_steps))(init)
    carried = _Body("while_loop", Tree.of(init, "while_loop: init"))

    def step(carry: Any, element: Any) -> tuple[Any, Any]:
        return called(body, (carry,), {}), None

    def condition(carry: Any) -> Variable:
        return _scalar_condition(called(cond, (carry,), {}))

    return carried.conditional(step, condition, max_steps).carry()


def map(f: Function, xs: Any) -> Any:
    """See :func:`esat.map`."""
    if current_trace() is None:
        return jit(lambda xs: map(f, xs))(xs)
    return scan(lambda carry, element: (carry, called(f, (element,), {})), (), xs, None, False)[1]


def _steps(name: str, elements: Sequence[Variable], length: Any) -> Variable:
    """How many steps there are. Raises ShapeError where sequences differ in length."""
    for one in elements:
        if not isinstance(one.type, TensorType) or one.tensor_type.ndim == 0:
            raise ShapeError(
                describe(name, [one.type], "xs has an axis of steps, the first one", user_line())
            )
    sizes = [size_of(one, 0) for one in elements]
    if length is not None:
        sizes.insert(0, _integer(name, length))
    if not sizes:
        raise CallError(f"{name}: neither xs nor length says how many steps there are")
    known = {int(one.data) for one in sizes if isinstance(one, Constant)}
    if len(known) > 1:
        shown = ", ".join(map_text(elements))
        reason = f"lengths {sorted(known)} differ"
        raise ShapeError(describe(name, [shown, *([] if length is None else [f"length={length}"])], reason,
                                  user_line()))  # fmt: skip
    if known:
        return as_variable(np.int64(known.pop()))
    equal = [op_named("eq")(sizes[0], one) for one in sizes[1:]]
    if not equal:
        return sizes[0]
    message = f"{name}: arrays of xs have not one length"
    return assert_(sizes[0], *equal, message=message, error=ShapeError)


def map_text(variables: Sequence[Variable]) -> list[str]:
    """The types of variables, as text."""
    return [str(one.type) for one in variables]


def _integer(name: str, value: Any) -> Variable:
    variable = as_symbol(value)
    if not isinstance(variable.type, TensorType) or variable.tensor_type.kind not in "iu" or variable.ndim:
        raise DtypeError(describe(name, [variable.type], "a number of steps is an integer", user_line()))
    if isinstance(variable, Constant):
        return as_variable(np.int64(variable.data))
    return cast(variable, "int64")


def _scalar_condition(value: Any) -> Variable:
    variable = as_symbol(value)
    if variable.ndim and all(size == 1 for size in variable.tensor_type.shape):
        variable = variable.reshape(())
    if variable.ndim:
        raise ShapeError(describe("while_loop", [variable.type], "the condition is a scalar", user_line()))
    return cast(variable, "bool") if variable.tensor_type.dtype != "bool" else variable


def _at(function: Function) -> str:
    code = getattr(function, "__code__", None)
    return "" if code is None else f"\n  at {code.co_filename}:{code.co_firstlineno}"


class _Made:
    """A loop that was built.

    Attributes
    ----------
    outputs
        The results of its node: first one for each carry, last one for each row.
    """

    def __init__(self, outputs: Sequence[Variable], carried: Tree, row: Tree) -> None:
        self.outputs, self._carried, self._row = outputs, carried, row

    def carry(self) -> Any:
        """The last carry, as a tree."""
        leaves = zip(self._carried.leaves, self.outputs, strict=False)
        return self._carried.rebuilt(
            [
                TracedNumber(made, leaf.kind)
                if type(leaf) is TracedNumber
                else TracedArray(made, is_scalar=is_scalar(leaf))
                for leaf, made in leaves
            ]
        )

    def rows(self) -> Any:
        """The traces, as a tree."""
        count = len(self._row.leaves)
        return self._row.rebuilt([TracedArray(one) for one in self.outputs[len(self.outputs) - count :]])


class _Body:
    """Traces a body until the types of what it hands on stay as they are.

    Parameters
    ----------
    name
        Of the function that the user called.
    init
        The first carry.
    hidden
        How many leaves of it, the first ones, are not the user's.
    """

    def __init__(self, name: str, init: Tree, hidden: int = 0) -> None:
        self.name, self.init = name, init
        self._names = list(_leaf_names(init.structure))[hidden:]
        self._names = [""] * hidden + self._names
        self.values = [as_symbol(leaf) for leaf in init.leaves]
        for one in self.values:
            if not isinstance(one.type, TensorType):
                raise DtypeError(describe(name, [one.type], "carries are arrays and numbers", user_line()))
        self.types = [one.tensor_type for one in self.values]
        self.kinds = [_kind(leaf) for leaf in init.leaves]
        self.scalars = [is_scalar(leaf) for leaf in init.leaves]

    def traced(
        self, step: Function, steps: Variable, sequences: Tree | None, elements: Sequence[Variable],
        reverse: bool, sparing: bool = False,
    ) -> _Made:  # fmt: skip
        """A loop of so many steps."""

        def built(
            carries: list[Variable], inner: list[Variable], following: list[Any], kept: list[Any]
        ) -> Any:
            return LoopParts(
                steps, self._first(carries), self._cast(following), kept,
                dict(zip(inner, elements, strict=True)), reverse=reverse, sparing=sparing,
            )  # fmt: skip

        return self._until_settled(step, built, sequences, elements)

    def conditional(self, step: Function, condition: Function, max_steps: int | None) -> _Made:
        """A loop as long as a condition holds."""

        def built(
            carries: list[Variable], inner: list[Variable], following: list[Any], kept: list[Any]
        ) -> Any:
            asked = condition(self.init.rebuilt(self._stands(carries)))
            first, after = self._first(carries), self._cast(following)
            goes_on = [clone([asked], dict(zip(carries, values, strict=True)))[0][0]
                       for values in (first.values(), after)]  # fmt: skip
            begins = unless_failed(goes_on[0])
            return LoopParts(begins, first, after, kept, goes_on=goes_on[1], max_steps=max_steps)

        made = self._until_settled(step, built, None, [])
        if max_steps is not None:
            count = len(self.values)
            ended = op_named("invert")(made.outputs[count + 1])
            message = f"while_loop: its condition still holds after {max_steps} steps, the most there can be"
            made.outputs = [assert_(one, ended, message=message) for one in made.outputs[:count]]
        return made

    def _first(self, carries: Sequence[Variable]) -> dict[Variable, Variable]:
        return dict(zip(carries, self._cast(self.values), strict=True))

    def _cast(self, values: Sequence[Variable]) -> list[Variable]:
        return [cast(one, type.dtype) for one, type in zip(values, self.types, strict=True)]

    def _stands(self, carries: Sequence[Variable]) -> list[Any]:
        return [
            TracedNumber(one, kind) if kind is not None else TracedArray(one, is_scalar=scalar)
            for one, kind, scalar in zip(carries, self.kinds, self.scalars, strict=True)
        ]

    def _until_settled(
        self, step: Function, built: Function, sequences: Tree | None, elements: Sequence[Variable]
    ) -> _Made:
        trace = current_trace()
        path = None if trace is None else trace.path
        for _ in range(MOST_ROUNDS):
            begin = None if path is None else path.point()
            loop = self._round(step, built, sequences, elements)
            if loop is not None:
                return loop
            if path is not None and begin is not None:
                _forget(path, begin)
        raise ShapeError(f"{self.name}: the types of carries do not settle after {MOST_ROUNDS} steps")

    def _round(
        self, step: Function, built: Function, sequences: Tree | None, elements: Sequence[Variable]
    ) -> _Made | None:
        """The loop, if the body hands on what it takes; None where types are wider now."""
        carries = [type.make_variable() for type in self.types]
        inner = [one.tensor_type.with_shape(one.tensor_type.shape[1:]).make_variable() for one in elements]
        stands = [TracedArray(one, is_scalar=one.ndim == 0) for one in inner]
        parts: LoopParts | None = None

        def checked(variables: list[Variable]) -> list[Variable]:
            """What checks of the body ask, of all steps."""
            if parts is None:
                return variables
            asking = LoopParts(
                parts.control, parts.carries, parts.following, variables, parts.sequences,
                dict(parts.invariants), parts.goes_on, parts.reverse, parts.max_steps, parts.sparing,
            )  # fmt: skip
            if asking.goes_on is not None and asking.max_steps is None:
                reason = "its body raises an error where a value says so, which takes max_steps="
                raise DtypeError(describe(self.name, [], reason, user_line()))
            asking.close()
            made = asking.node().outputs
            return [one.any() for one in made[len(made) - len(variables) :]]

        with watching_nodes() as nodes, placing(checked, batching=True):
            carry = self.init.rebuilt(self._stands(carries))
            element = None if sequences is None else sequences.rebuilt(stands)
            after, row = step(carry, element)
            tree, kept = Tree.of(after, f"{self.name}: the carry"), Tree.of(row, f"{self.name}: the result")
            if not self._settles(tree):
                return None
            refuse_draws(self.name, nodes)
            following = [as_symbol(leaf) for leaf in tree.leaves]
            parts = built(carries, inner, following, [as_symbol(leaf) for leaf in kept.leaves])
            parts.close()
        made = parts.node().outputs
        return _Made(made, Tree(self.init.structure, tuple(self._stands(made[: len(carries)]))), kept)

    def _settles(self, after: Tree) -> bool:
        """Whether what a step hands on has the types of what it takes; types become wider where it has not.

        Raises
        ------
        ShapeError
            Where a carry changes its rank or size.
        CallError
            Where it becomes another tree.
        """
        if len(after.leaves) != len(self.types) or list(_leaf_names(after.structure)) != list(
            _leaf_names(self.init.structure)
        ):
            reason = f"a step takes {len(self.types)} arrays as its carry, and returns {len(after.leaves)}"
            raise CallError(f"{self.name}: {reason} or a tree of another form{_line(user_line())}")
        settled = True
        for place, leaf in enumerate(after.leaves):
            value, kind, old = as_symbol(leaf), _kind(leaf), self.types[place]
            if not isinstance(value.type, TensorType):
                raise self._error(place, value, "carries are arrays and numbers")
            shape = self._joined(place, old, value)
            weak = self.kinds[place] is not None and kind is None
            is_number = self.kinds[place] is not None and kind is not None
            dtype = _wider(
                old.dtype, value.tensor_type.dtype, weak, self.kinds[place] is None and kind is not None
            )
            new = TensorType(dtype, shape=shape)
            number = {"b": bool, "i": int, "f": float, "c": complex}[new.kind] if is_number else None
            scalar = self.scalars[place] and is_scalar(leaf)
            if new != old or number is not self.kinds[place] or scalar != self.scalars[place]:
                self.types[place], self.kinds[place], self.scalars[place] = new, number, scalar
                settled = False
        return settled

    def _joined(self, place: int, old: TensorType, value: Variable) -> tuple[int | None, ...]:
        new = value.tensor_type
        if old.ndim != new.ndim:
            reason = (
                f"it has {old.ndim} axes before a step, and {new.ndim} after it; begin with an array that "
            )
            raise self._error(place, value, f"{reason}has them all, such as np.zeros(shape)")
        pairs = list(zip(old.shape, new.shape, strict=True))
        if any(None not in pair and pair[0] != pair[1] for pair in pairs):
            reason = f"it has shape {old.shape} before a step, and {new.shape} after it"
            raise self._error(place, value, f"{reason}; a loop hands on arrays of one shape")
        return tuple(a for a, _ in pairs)

    def _error(self, place: int, value: Variable, reason: str) -> EsatError:
        where = user_line() if value.owner is None else value.owner.where
        name = f"the carry{self._names[place]}"
        return ShapeError(f"{self.name}: {name}: {reason}{_line(where)}")


def _line(where: UserLine | None) -> str:
    return "" if where is None else f"\n  at {where[0]}:{where[1]}"


def _kind(leaf: Any) -> type | None:
    """The type of a number of Python's, which takes the dtype of what it meets."""
    kind = leaf.kind if type(leaf) is TracedNumber else type(leaf)
    return kind if kind in (int, float, complex) or (kind is bool and type(leaf) is TracedNumber) else None


def _wider(old: str, new: str, old_is_weak: bool, new_is_weak: bool) -> str:
    """The dtype that has the values of both; a number of Python's takes that of an array of its kind."""
    kinds = "biufc"
    for weak, this, other in ((old_is_weak, old, new), (new_is_weak, new, old)):
        if weak and kinds.index(np.dtype(this).kind) <= kinds.index(np.dtype(other).kind):
            return other
    return np.promote_types(old, new).name


def _leaf_names(structure: Structure, before: str = "") -> Iterator[str]:
    """How messages call the leaves of a tree: ``[0]``, ``['state']``."""
    tag = structure[0]
    if tag in ("array", "scalar", "number", "traced"):
        yield before
    elif tag != "static":
        keys = structure[2] if tag in ("dict", "object") else range(len(structure[-1]))
        for key, part in zip(keys, structure[-1], strict=True):
            yield from _leaf_names(part, f"{before}.{key}" if tag == "object" else f"{before}[{key!r}]")


def _forget(path: Path, begin: tuple[int, int, int]) -> None:
    """Leave out what the body decided and checked in a trace that does not count."""
    del path.decisions[begin[0] :], path.checks[begin[1] :]
    for text in list(path.texts)[begin[2] :]:
        del path.texts[text]


__all__ = ["fori_loop", "map", "scan", "while_loop"]
