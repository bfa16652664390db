"""Loops: a step that is traced once, and runs a number of times, or as long as a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esat.errors import CallError
from esat.graph.registry import function_named
from esat.ops.loops import batches as _batches  # noqa: F401 - rules of the ops
from esat.ops.loops import derivatives as _derivatives  # noqa: F401

__all__ = ["fori_loop", "map", "scan", "while_loop"]


def _traced(name: str) -> Any:
    """What traces the body of a loop: it needs the compiler, which is loaded when first used."""
    return function_named("of_functions")(name)


def _check_function(name: str, argument: str, value: Any) -> None:
    if not callable(value):
        raise CallError(f"{name}: {argument} is a function, not a {type(value).__name__}")


def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    checkpoint: bool | int = False,
) -> tuple[Any, Any]:
    """A loop that hands a value on from step to step, and keeps a result of each.

    It is ``for x in xs: carry, y = f(carry, x)``, with all ``y`` stacked. In a function that is compiled,
    ``f`` is traced once, whatever the number of steps. Within a graph it builds a node; with arrays it is
    compiled and run at once.

    Parameters
    ----------
    f
        ``f(carry, x) -> (carry, y)``. It may use NumPy's functions, as functions of :func:`esat.jit` may.
    init
        The first carry: an array or number, or a tree of such in tuples, lists and dicts. Its dtypes become
        those that ``f`` gives, where these are wider.
    xs
        An array whose first axis is the steps, or a tree of such; None where ``f`` needs no ``x``, which is
        None then.
    length
        How many steps there are; by default as many as ``xs`` has elements.
    reverse
        Whether to begin with the last element. Results stand where their elements stand.
    checkpoint
        The gradient keeps the carries of all steps. With a number ``k`` here it keeps every ``k``-th, and
        computes the others once more: memory for ``steps / k + k`` carries in place of ``steps``, for the
        time of one more loop. True takes the square root of the number of steps, which is the least memory
        (Griewank and Walther, "Evaluating Derivatives", chapter 12).

    Returns
    -------
    The last carry, and the results of all steps along a new first axis.

    Raises
    ------
    ShapeError
        Where a carry changes its rank or size, or arrays of ``xs`` have not one length.
    CallError
        Where neither ``xs`` nor ``length`` is given, ``f`` does not return a pair, or ``checkpoint`` is no
        number of steps; where it is True and the number of steps is not known.

    Examples
    --------
    >>> import numpy as np
    >>> esat.scan(lambda total, x: (total + x, total), 0.0, np.array([1.0, 2.0, 4.0]))
    (np.float64(7.0), array([0., 1., 3.]))
    """
    _check_function("scan", "f", f)
    result: tuple[Any, Any] = _traced("scan")(f, init, xs, length, reverse, checkpoint)
    return result


def fori_loop(lower: Any, upper: Any, body: Callable[..., Any], init: Any) -> Any:
    """A loop over integers: ``for i in range(lower, upper): value = body(i, value)``.

    Parameters
    ----------
    lower, upper
        Integers, which may be computed: one program serves for all of them.
    body
        ``body(i, value) -> value``.
    init
        The first value, as the carry of :func:`scan`.

    Returns
    -------
    The last value; ``init`` where there are no steps.

    Raises
    ------
    ShapeError
        Where the value changes its rank or size.

    Examples
    --------
    >>> int(esat.fori_loop(1, 6, lambda i, product: product * i, 1))
    120
    """
    _check_function("fori_loop", "body", body)
    return _traced("fori_loop")(lower, upper, body, init)


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], init: Any, max_steps: int | None = None
) -> Any:
    """A loop for as long as a condition holds: ``while cond(value): value = body(value)``.

    Parameters
    ----------
    cond
        ``cond(value)`` is a scalar: whether there is another step.
    body
        ``body(value) -> value``.
    init
        The first value, as the carry of :func:`scan`.
    max_steps
        The most steps there can be. A loop that would go on after them raises an error when it runs. The
        reverse-mode gradient needs it: it keeps the values of so many steps.

    Returns
    -------
    The last value, for which the condition does not hold; ``init`` where it does not hold for that.

    Raises
    ------
    ShapeError
        Where the value changes its rank or size, or the condition is no scalar.
    AssertionFailed
        When it runs, where the condition still holds after ``max_steps`` steps.

    Examples
    --------
    >>> float(esat.while_loop(lambda x: abs(x * x - 2.0) > 1e-12, lambda x: (x + 2.0 / x) / 2.0, 1.0))
    1.414213562373095
    """
    _check_function("while_loop", "cond", cond)
    _check_function("while_loop", "body", body)
    return _traced("while_loop")(cond, body, init, max_steps)


def map(f: Callable[..., Any], xs: Any) -> Any:
    """A function of each element along the first axis, one after the other, with the results stacked.

    :func:`esat.vmap` computes all elements at once, which is faster and takes memory for all of them.

    Parameters
    ----------
    f
        A function of an element.
    xs
        An array, or a tree of arrays of one length.

    Raises
    ------
    ShapeError
        Where arrays have not one length.

    Examples
    --------
    >>> import numpy as np
    >>> esat.map(lambda row: np.sort(row)[0], np.array([[3.0, 1.0], [2.0, 5.0]]))
    array([1., 2.])
    """
    _check_function("map", "f", f)
    return _traced("map")(f, xs)
