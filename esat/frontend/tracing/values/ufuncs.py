"""NumPy's universal functions of traced arrays, with ``out=``, ``where=``, ``dtype=`` and their methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from esat.errors import DtypeError, ParameterError, ShapeError, describe
from esat.frontend.arrays.indexing import inc_subtensor, set_subtensor
from esat.frontend.arrays.shaping import broadcast_to
from esat.frontend.library_calls import call_ufunc
from esat.frontend.tensor import as_tensor
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import (
    as_symbol,
    given,
    handed_out,
    holds_unknown,
    laid_out,
    settled,
)
from esat.frontend.tracing.values.layouts import elementwise
from esat.frontend.tracing.values.mixed import mixed_result, note_mixed
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.calls.callers import user_line
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.cast import cast

_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any",
}  # fmt: skip
_RUNNING = {"add": "cumsum", "multiply": "cumprod"}
LONGEST_UNROLLED = 512
"""Elements along an axis up to which a method of a ufunc is written out element by element."""


def traced_ufunc(
    namespace: Mapping[str, Any],
    ufunc: np.ufunc,
    method: str,
    operands: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:
    """A ufunc or one of its methods, of traced arrays among other things.

    Raises
    ------
    DtypeError
        For a method or option that only arrays have.
    """
    options = {key: value for key, value in options.items() if key not in ("order", "subok")}
    out = options.pop("out", None)
    made_by = _maker_of(ufunc, method)
    if not holds_unknown([operands, options, out]) or (
        out is not None and not holds_unknown([operands, options])
    ):
        known = _of_known(ufunc, method, operands, options)
        stored = _stored(out, known, options)
        return laid_out(stored, made_by, operands, options) if out is None else stored
    if method == "at":
        return _at(ufunc, *operands)
    mixed = mixed_result(ufunc, operands) if method == "__call__" else None
    casting = options.pop("casting", "same_kind")
    where = options.pop("where", None) if method == "__call__" else None
    result = _METHODS[method](namespace, ufunc, operands, options) if method in _METHODS else None
    if result is None:
        raise DtypeError(
            describe(f"numpy.{ufunc.__name__}.{method}", [], "not for traced arrays", user_line())
        )
    if where is not None and where is not True:
        result = _where(ufunc, where, result, out)
    stored = _stored(out, result, {"casting": casting if method in ("__call__", "outer") else "unsafe"})
    if mixed is not None:
        note_mixed(stored, *mixed)
    return laid_out(stored, made_by, operands, options) if out is None else stored


def _maker_of(ufunc: np.ufunc, method: str) -> Callable[..., Any]:
    """What makes an array that lies in memory as a ufunc's result."""
    if method != "__call__" or ufunc.signature is not None:
        function: Callable[..., Any] = getattr(ufunc, method)
        return function
    return elementwise if ufunc.nout == 1 else lambda *operands, **_: (elementwise(*operands),) * ufunc.nout


def _of_known(ufunc: np.ufunc, method: str, operands: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """NumPy's own result, where everything is known."""
    plain = [np.asarray(one) if type(one) is TracedArray else one for one in operands]
    if method == "at":
        target = operands[0]
        changed = np.array(plain[0])
        getattr(ufunc, method)(changed, *plain[1:])
        target.assign(changed)
        return None
    named = {key: np.asarray(one) if type(one) is TracedArray else one for key, one in options.items()}
    return getattr(ufunc, method)(*plain, **named)


def _stored(out: Any, result: Any, options: Mapping[str, Any]) -> Any:
    """A result handed out, or written into the arrays that were given for it."""
    if out is None or (isinstance(out, tuple) and all(one is None for one in out)):
        return handed_out(result)
    targets = out if isinstance(out, tuple) else (out,)
    results = result if isinstance(result, tuple) else (result,)
    for target, one in zip(targets, results, strict=True):
        if target is not None:
            store(target, one, str(options.get("casting", "same_kind")))
    filled = tuple(
        handed_out(one) if target is None else target for target, one in zip(targets, results, strict=True)
    )
    return filled if isinstance(result, tuple) else filled[0]


def store(target: Any, value: Any, casting: str = "same_kind") -> None:
    """Write a result into a traced array, as ``out=`` does.

    Raises
    ------
    DtypeError
        Where NumPy does not cast so, and for an array that is not traced.
    ShapeError
        For a result of another shape.
    """
    if type(target) is not TracedArray:
        reason = (
            "an array from outside the function cannot hold what is computed when it runs; make it with "
            "esat.numpy, or pass it as an argument"
        )
        shown = [f"{target.dtype} of shape {target.shape}" if isinstance(target, np.ndarray) else target]
        raise DtypeError(describe("out", shown, reason, user_line()))
    wanted = target.dtype
    found = value.value if type(value) is TracedArray else value
    dtype = _given_dtype(value, found, wanted)
    if not np.can_cast(dtype, wanted, casting):  # type: ignore[arg-type]
        reason = f"cannot cast the result from {dtype} to {wanted} by {casting!r}, as in NumPy"
        raise DtypeError(describe("out", [target.variable.type], reason, user_line()))
    target.assign(fitted(found, target, exact=True))


def _given_dtype(value: Any, found: Any, wanted: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of what is written. Python's numbers are weak: they have the dtype that they are written to,
    where they are of its kind or a lesser one."""
    kind = value.kind if type(value) is TracedNumber else type(value)
    if kind in (int, float, complex):
        weak = np.result_type(wanted, kind(0))
        return wanted if weak == wanted else weak
    return np.dtype(found.dtype) if hasattr(found, "dtype") else np.asarray(found).dtype


def fitted(value: Any, target: TracedArray, exact: bool = False) -> Any:
    """A value as what an array of the target's dtype and shape holds after it is written to it.

    Raises
    ------
    ShapeError
        For a value that does not broadcast to the shape; for ``exact`` also for one of more axes.
    """
    known = target.known_shape
    if not isinstance(value, Variable) and known is not None and not isinstance(value, TracedNumber):
        with np.errstate(all="ignore"):
            array = np.asarray(value).astype(target.dtype)
        try:
            return np.array(np.broadcast_to(_without_leading(array, len(known), exact), known))
        except ValueError:
            raise _unfit(array.shape, target, known) from None
    variable = _without_leading(as_symbol(value), target.ndim, exact)
    variable = cast(variable, target.dtype)
    given_shape = variable.tensor_type.shape
    if known is not None and given_shape != known:
        try:
            fits = None in given_shape or np.broadcast_shapes(given_shape, known) == known  # type: ignore[arg-type]
        except ValueError:
            fits = False
        if not fits:
            raise _unfit(given_shape, target, known)
        return broadcast_to(variable, known)
    if known is None and variable.tensor_type.ndim < target.ndim:
        return op_named("fill")(target.variable, variable)
    return variable


def _unfit(shape: Any, target: TracedArray, known: Any) -> ShapeError:
    reason = f"a value of shape {shape} does not fit an array of shape {known}"
    return ShapeError(describe("assignment", [target.variable.type], reason, user_line()))


def _without_leading(value: Any, ndim: int, exact: bool) -> Any:
    """A value without the axes of size 1 that it has more than the array it is written to."""
    extra = value.ndim - ndim
    if extra <= 0 or exact:
        return value
    if isinstance(value, Variable):
        from esat.frontend.arrays.shaping import squeeze

        return squeeze(value, tuple(range(extra)))
    return value.reshape(value.shape[extra:]) if value.shape[:extra] == (1,) * extra else value


def _where(ufunc: np.ufunc, where: Any, result: Any, out: Any) -> Any:
    """The result where a condition holds, and what ``out`` had elsewhere."""
    before = None if out is None else out[0]
    if before is None:
        reason = "with where= and without out= what stands elsewhere is undefined; pass out="
        raise ParameterError(describe(f"numpy.{ufunc.__name__}", ["where=..."], reason, user_line()))
    return op_named("switch")(as_symbol(where), result, as_symbol(before))


# ---- the methods


def _call(
    namespace: Mapping[str, Any], ufunc: np.ufunc, operands: Sequence[Any], options: dict[str, Any]
) -> Any:
    dtype = options.pop("dtype", None)
    values = list(given(list(operands)))
    values = [as_tensor(value) if isinstance(value, (list, tuple)) else value for value in values]
    if dtype is not None:
        values = [cast(as_symbol(value), dtype) for value in values]
    return call_ufunc(namespace, ufunc, "__call__", values, options)


def _reduce(
    namespace: Mapping[str, Any], ufunc: np.ufunc, operands: Sequence[Any], options: dict[str, Any]
) -> Any:
    array, *rest = operands
    named = dict(zip(("axis", "dtype", "out", "keepdims", "initial", "where"), rest, strict=False))
    named = {"axis": 0, **settled({**named, **options})}
    named = {key: value for key, value in named.items() if key == "axis" or not _says_nothing(key, value)}
    name = _REDUCTIONS.get(ufunc.__name__)
    if name is not None:
        return namespace[name](as_symbol(array), **named)
    keepdims = bool(named.pop("keepdims", False))
    axis = named.pop("axis")
    if named or not isinstance(axis, int):
        reason = f"takes one axis, and no {', '.join(named) or 'other'}, for traced arrays"
        raise DtypeError(describe(f"numpy.{ufunc.__name__}.reduce", [], reason, user_line()))
    parts = _parts(namespace, ufunc, as_symbol(array), axis, "reduce")
    result = parts[0]
    for part in parts[1:]:
        result = call_ufunc(namespace, ufunc, "__call__", [result, part], {})
    return namespace["expand_dims"](result, axis) if keepdims else result


def _says_nothing(key: str, value: Any) -> bool:
    return value is None or value is np._NoValue or (key, value) in (("keepdims", False), ("where", True))


def _accumulate(
    namespace: Mapping[str, Any], ufunc: np.ufunc, operands: Sequence[Any], options: dict[str, Any]
) -> Any:
    array, *rest = operands
    named = {"axis": 0, **dict(zip(("axis", "dtype"), rest, strict=False)), **options}
    variable = as_symbol(array)
    axis, dtype = int(named["axis"]), named.get("dtype")
    if ufunc.__name__ in _RUNNING:
        return namespace[_RUNNING[ufunc.__name__]](variable, axis, dtype)
    variable = variable if dtype is None else cast(variable, dtype)
    if 0 in variable.tensor_type.shape:
        return variable
    results = _parts(namespace, ufunc, variable, axis, "accumulate")
    for place in range(1, len(results)):
        results[place] = call_ufunc(namespace, ufunc, "__call__", [results[place - 1], results[place]], {})
    return namespace["stack"](results, axis)


def _parts(
    namespace: Mapping[str, Any], ufunc: np.ufunc, variable: Variable, axis: int, method: str
) -> list[Any]:
    size = variable.tensor_type.shape[axis] if -variable.ndim <= axis < variable.ndim else None
    if size is None or not 0 < size <= LONGEST_UNROLLED:
        reason = f"an axis of known size, 1 to {LONGEST_UNROLLED}, is needed, not axis {axis}"
        shown = f"numpy.{ufunc.__name__}.{method}"
        raise ShapeError(describe(shown, [variable.type], reason, user_line()))
    return list(namespace["moveaxis"](variable, axis, 0))


def _outer(
    namespace: Mapping[str, Any], ufunc: np.ufunc, operands: Sequence[Any], options: dict[str, Any]
) -> Any:
    left, right = (as_symbol(one) for one in operands)
    widened = left[(..., *[None] * right.ndim)]
    return _call(namespace, ufunc, [widened, right], options)


def _reduceat(
    namespace: Mapping[str, Any], ufunc: np.ufunc, operands: Sequence[Any], options: dict[str, Any]
) -> Any:
    array, indices, *rest = operands
    axis = int(rest[0] if rest else options.get("axis", 0))
    variable = namespace["moveaxis"](as_symbol(array), axis, 0)
    places = [int(place) for place in np.asarray(indices)]
    parts = []
    for begin, end in zip(places, [*places[1:], None], strict=True):
        chosen = variable[begin:end] if end is None or begin < end else variable[begin : begin + 1]
        parts.append(_reduce(namespace, ufunc, [chosen], {"axis": 0}))
    return namespace["moveaxis"](namespace["stack"](parts, 0), 0, axis)


_Method = Callable[[Mapping[str, Any], np.ufunc, Sequence[Any], dict[str, Any]], Any]
_METHODS: dict[str, _Method] = {
    "__call__": _call,
    "reduce": _reduce,
    "accumulate": _accumulate,
    "outer": _outer,
    "reduceat": _reduceat,
}


def _at(ufunc: np.ufunc, target: Any, indices: Any, value: Any = None) -> None:
    """``ufunc.at``: places that are named several times take part several times."""
    name = ufunc.__name__
    if type(target) is not TracedArray:
        store(target, value)
    symbol = as_symbol(target)
    part = symbol[given(indices)]
    if name in ("add", "subtract"):
        given_value = as_symbol(value)
        weak = type(value) in (int, float, complex) or type(value) is TracedNumber
        computed = np.result_type(symbol.dtype, value if weak else given_value.dtype)
        if computed != symbol.dtype and not _all_apart(indices, symbol):
            reason = (
                f"it is computed in {computed} and cast at each place in turn, which is done here only for "
                f"places that are known and different; convert the values to {symbol.dtype}"
            )
            types = [symbol.type, given_value.type]
            raise DtypeError(describe(f"numpy.{name}.at", types, reason, user_line()))
        if computed != symbol.dtype:
            target.assign(set_subtensor(part, cast(ufunc(part, given_value), symbol.dtype)))
            return
        added = cast(given_value, symbol.dtype)
        added = added if name == "add" else op_named("neg")(added)
        target.assign(inc_subtensor(part, added))
    elif value is None:
        target.assign(set_subtensor(part, ufunc(part)))
    else:
        reason = "of traced arrays only add, subtract and functions of one operand have a method `at`"
        raise DtypeError(describe(f"numpy.{name}.at", [symbol.type], reason, user_line()))


def _all_apart(indices: Any, symbol: Variable) -> bool:
    """Whether places are known and none is named twice."""
    shape = symbol.tensor_type.shape
    if holds_unknown(indices) or None in shape:
        return False
    plain = tuple(map(np.asarray, indices)) if isinstance(indices, tuple) else np.asarray(indices)
    places = np.arange(math.prod(shape)).reshape(shape)[plain]  # type: ignore[arg-type]
    return bool(np.unique(places).size == places.size)
