"""Derivatives and batches, of functions of arrays and of Variables: one name for both.

Given a function, each of these is another function, compiled as :func:`esat.jit` compiles it; within a
function that is being traced it takes part in that. Given Variables, it builds a graph.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from esat.errors import CallError, GraphError, describe
from esat.frontend.derivatives import gradient
from esat.frontend.derivatives.batching import vectorize_graph
from esat.frontend.derivatives.forward import push_forward
from esat.frontend.derivatives.gradient import Disconnected
from esat.frontend.derivatives.jacobians import Direction, hessian_of, jacobian_of
from esat.graph.algorithms.copying import clone
from esat.graph.op import as_variable
from esat.graph.registry import function_named
from esat.graph.types import TensorType
from esat.graph.variables import Variable
from esat.ops.annotations.gradients import stop_gradient

__all__ = [
    "checkpoint",
    "clone_replace",
    "custom_vjp",
    "grad",
    "hessian",
    "jacobian",
    "jvp",
    "linearize",
    "stop_gradient",
    "value_and_grad",
    "vectorize_graph",
    "vjp",
    "vmap",
]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class CompiledFunction(Protocol[P, R_co]):
    """A compiled function for type checkers: a :class:`esat.functions.Jitted`."""

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R_co: ...

    def __getattr__(self, name: str) -> Any: ...


def _of_functions(name: str) -> Any:
    """What makes a function of a function: it needs the compiler, which is loaded when first used."""
    return function_named("of_functions")(name)


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, Variable)


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise CallError(f"{name}={reprlib.repr(value)}: it is True or False")


@overload
def grad(cost: Variable, wrt: Variable, disconnected: Disconnected = "raise") -> Variable: ...
@overload
def grad(cost: Variable, wrt: Sequence[Variable], disconnected: Disconnected = "raise") -> list[Variable]: ...
@overload
def grad(
    cost: Callable[P, Any], *, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> CompiledFunction[P, Any]: ...
def grad(
    cost: Any,
    wrt: Any = None,
    disconnected: Disconnected = "raise",
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
) -> Any:
    """The derivative of a scalar.

    For complex numbers the convention is JAX's: a real cost changes by ``Re(gradient * dx)``.

    Parameters
    ----------
    cost
        A function of arrays that returns a real scalar; or a float or complex scalar (rank 0), a Variable.
    wrt, disconnected
        For a Variable: one or several Variables of float or complex dtype, which need not be inputs; and
        whether to raise, or to give zeros, where the cost does not depend on one.
    argnums
        For a function: by which arguments, by their positions. An argument may be a tree of arrays.
    has_aux
        For a function: whether it returns a pair of which only the first part is differentiated.

    Returns
    -------
    A function of the same arguments, which returns what the argument is, or a tuple for several, with a
    derivative in place of each array, and with ``has_aux`` the second part of the pair beside it. Or a
    Variable of the shape and dtype of ``wrt``, or a list of them; for a sparse matrix the vector of
    derivatives by its stored values, in the order of storage.

    Raises
    ------
    GradientError
        For a cost that is no scalar or not continuous, arrays of integers, a Variable that the cost does not
        depend on, or an op without a gradient on the way.

    Examples
    --------
    >>> import numpy as np
    >>> esat.grad(lambda w, x: np.sum(np.tanh(x * w)))(np.array([0.0, 1.0]), np.array([2.0, 0.5]))
    array([2.        , 0.39322387])
    """
    _check_flag("has_aux", has_aux)
    if _is_function(cost):
        return _of_functions("grad")(cost, argnums if wrt is None else wrt, has_aux)
    return gradient.grad(cost, wrt, disconnected)


@overload
def value_and_grad(cost: Variable, wrt: Variable) -> tuple[Variable, Variable]: ...
@overload
def value_and_grad(cost: Variable, wrt: Sequence[Variable]) -> tuple[Variable, list[Variable]]: ...
@overload
def value_and_grad(
    cost: Callable[P, Any], *, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> CompiledFunction[P, tuple[Any, Any]]: ...
def value_and_grad(
    cost: Any, wrt: Any = None, *, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Any:
    """A scalar and its derivative, as by :func:`grad`, computed together.

    Returns
    -------
    A function that returns a pair of the value and the gradient, the first of which is a pair with
    ``has_aux``; or, given Variables, the pair of the cost and its derivatives.

    Raises
    ------
    GradientError
        As :func:`grad`.

    Examples
    --------
    >>> import numpy as np
    >>> esat.value_and_grad(lambda x: (x**2).sum())(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """
    _check_flag("has_aux", has_aux)
    if _is_function(cost):
        return _of_functions("value_and_grad")(cost, argnums if wrt is None else wrt, has_aux)
    return cost, gradient.grad(cost, wrt)


def vjp(outputs: Any, *arguments: Any, **options: Any) -> Any:
    """Vector-Jacobian products.

    Parameters
    ----------
    outputs
        A function; then its arguments follow. Or Variables of any rank; then follow ``wrt``, a Variable or
        several; ``cotangents``, one for each output, of its dtype and rank; and ``disconnected``, as for
        :func:`grad`.

    Returns
    -------
    The function's value, and a function of its cotangent that returns a tuple with that of each argument. Or
    the cotangents of ``wrt``.

    Raises
    ------
    GradientError
        As :func:`grad`, and when a cotangent does not fit its output.

    Examples
    --------
    >>> import numpy as np
    >>> value, pull_back = esat.vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pull_back(np.array([1.0, 10.0]))
    (array([ 2., 40.]),)
    """
    if _is_function(outputs):
        return _of_functions("vjp")(outputs, *arguments, **options)
    return gradient.vjp(outputs, *arguments, **options)


def jvp(outputs: Any, wrt: Any, tangents: Any) -> Any:
    """Jacobian-vector products: tangents of results, given those of what they depend on.

    Parameters
    ----------
    outputs
        A function, or one or several Variables.
    wrt
        The function's arguments, in a tuple; or one or several Variables.
    tangents
        As many, of their shapes and dtypes.

    Returns
    -------
    The function's value and its tangent; or the tangents of the Variables.

    Raises
    ------
    GradientError
        For what is not continuous, a tangent that does not fit, or an op without a gradient on the way.

    Examples
    --------
    >>> import numpy as np
    >>> esat.jvp(np.sin, (np.array([0.0]),), (np.array([2.0]),))
    (array([0.]), array([2.]))
    """
    if _is_function(outputs):
        return _of_functions("jvp")(outputs, wrt, tangents)
    single = isinstance(outputs, Variable)
    wanted = [wrt] if isinstance(wrt, Variable) else list(wrt)
    given = [tangents] if isinstance(wrt, Variable) else list(tangents)
    results = push_forward([outputs] if single else list(outputs), wanted, given)
    return results[0] if single else results


def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of a function, and its derivative there: a linear function of tangents of the arguments.

    Raises
    ------
    GradientError
        As :func:`jvp`.

    Examples
    --------
    >>> import numpy as np
    >>> value, push = esat.linearize(lambda x: x**2, np.array([1.0, 3.0]))
    >>> push(np.array([1.0, 1.0]))
    array([2., 6.])
    """
    result: tuple[Any, Callable[..., Any]] = _of_functions("linearize")(f, *primals)
    return result


@overload
def jacobian(y: Variable, x: Variable, *, direction: Direction | None = None) -> Variable: ...
@overload
def jacobian(y: Variable, x: Sequence[Variable], *, direction: Direction | None = None) -> list[Variable]: ...
@overload
def jacobian(
    y: Callable[P, Any],
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    direction: Direction | None = None,
) -> CompiledFunction[P, Any]: ...
def jacobian(
    y: Any,
    x: Any = None,
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    direction: Direction | None = None,
) -> Any:
    """The derivatives of each element of a result by each element of what it depends on.

    Parameters
    ----------
    y
        A function, or a Variable of a real float dtype.
    x
        For a Variable: the one to differentiate by.
    argnums, has_aux
        For a function, as for :func:`grad`.
    direction
        ``"forward"`` takes a column at a time, ``"reverse"`` a row, all of them in a batch; by default what
        there are fewer of.

    Returns
    -------
    A function that returns an array of shape ``y.shape + x.shape`` in place of each array of the result, in a
    tree as the argument is; or a Variable of that shape.

    Raises
    ------
    GradientError
        For what is not continuous, complex numbers, or an op without a gradient on the way.

    Examples
    --------
    >>> import numpy as np
    >>> esat.jacobian(lambda x: x**2)(np.array([1.0, 3.0]))
    array([[2., 0.],
           [0., 6.]])
    """
    _check_flag("has_aux", has_aux)
    if _is_function(y):
        return _of_functions("jacobian")(y, argnums if x is None else x, has_aux, direction)
    return jacobian_of(as_variable(y), as_variable(x), direction)


@overload
def hessian(cost: Variable, wrt: Variable) -> Variable: ...
@overload
def hessian(cost: Variable, wrt: Sequence[Variable]) -> list[Any]: ...
@overload
def hessian(cost: Callable[P, Any], *, argnums: int | Sequence[int] = 0) -> CompiledFunction[P, Any]: ...
def hessian(cost: Any, wrt: Any = None, *, argnums: int | Sequence[int] = 0) -> Any:
    """The second derivatives of a scalar, of shape ``x.shape + x.shape``.

    Parameters
    ----------
    cost, wrt, argnums
        As for :func:`grad`.

    Raises
    ------
    GradientError
        As :func:`jacobian`.

    Examples
    --------
    >>> import numpy as np
    >>> esat.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
    array([[6., 2.],
           [2., 0.]])
    """
    if _is_function(cost):
        return _of_functions("hessian")(cost, argnums if wrt is None else wrt)
    return hessian_of(as_variable(cost), as_variable(wrt))


def vmap(
    f: Callable[P, R_co], in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None
) -> CompiledFunction[P, R_co]:
    """A function of batches from a function of their elements.

    The function is traced once, for an element; each op then works on the whole batch.

    Parameters
    ----------
    f
        A function.
    in_axes
        The axis of the batch in each argument, or None for one that all elements share: a number for all, or
        a tuple with one for each argument, which may be trees as the arguments are. Python numbers are
        shared.
    out_axes
        The axis of the batch in results, also a tree; None for one that does not depend on the batch.
    axis_size
        Size of the batch, where no argument has its axis.

    Returns
    -------
    A function of the same arguments, given by their places.

    Raises
    ------
    ShapeError
        Where batches have not one size, axes do not match, or an op cannot be applied to batches.

    Examples
    --------
    >>> import numpy as np
    >>> dots = esat.vmap(lambda a, b: a @ b, in_axes=(0, None))
    >>> dots(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    mapped: CompiledFunction[P, R_co] = _of_functions("vmap")(f, in_axes, out_axes, axis_size)
    return mapped


def custom_vjp(f: Callable[..., Any]) -> Any:
    """A function with a gradient of its own, which its method ``defvjp(forward, backward)`` says.

    ``forward`` takes the arguments and returns the value and what the gradient needs to be kept; ``backward``
    takes that and the cotangent of the value, and returns those of the arguments, in a tuple; None is zero.

    Raises
    ------
    GradientError
        When it is called before the gradient is said, or that does not fit the arguments.

    Examples
    --------
    >>> import numpy as np
    >>> @esat.custom_vjp
    ... def clipped(x):
    ...     return np.clip(x, -1, 1)
    >>> clipped.defvjp(lambda x: (clipped(x), None), lambda kept, cotangent: (cotangent,))
    >>> esat.grad(lambda x: clipped(x).sum())(np.array([-3.0, 0.5]))
    array([1., 1.])
    """
    return _of_functions("CustomGradient")(f)


def checkpoint(f: Callable[..., Any]) -> Any:
    """A function whose gradient computes anew what it needs, in place of keeping it.

    Gradients need much of what was computed on the way to a value. Of a function that is checkpointed only
    the arguments are kept, and what does not depend on them; the gradient runs the function once more. That
    takes time, and less memory: of a chain of functions, each checkpointed, the insides of one are there at
    a time. Values and gradients are the same.

    Parameters
    ----------
    f
        A function of arrays, or of Variables; it may be a method.

    Returns
    -------
    A function of the same arguments. Numbers among them are kept.

    Raises
    ------
    GraphError
        When it is called, where the function writes to its arguments.

    Examples
    --------
    >>> import numpy as np
    >>> @esat.checkpoint
    ... def layer(w, x):
    ...     return np.tanh(np.exp(w * x))
    >>> esat.grad(lambda w: layer(w, layer(w, 1.0)))(0.5).round(6)
    np.float64(0.253747)
    """
    return _of_functions("checkpoint")(f)


def clone_replace(outputs: Any, replace: Mapping[Variable, Any]) -> Any:
    """A copy of a graph in which some Variables are replaced.

    Parameters
    ----------
    outputs
        A Variable, or several.
    replace
        Variable -> what stands in its place, of the same dtype and rank.

    Raises
    ------
    GraphError
        For what does not fit.

    Examples
    --------
    >>> x, y = esat.vector("x"), esat.vector("y")
    >>> esat.clone_replace(x + 1, {x: y * 2}).eval({y: [3.0]})
    array([7.])
    """
    given = {target: as_variable(value) for target, value in replace.items()}
    for target, value in given.items():
        wanted, own = target.type, value.type
        fits = wanted == own
        if isinstance(wanted, TensorType) and isinstance(own, TensorType):
            fits = (wanted.dtype, wanted.ndim) == (own.dtype, own.ndim)
        if not fits:
            raise GraphError(
                describe("clone_replace", [wanted, own], "what replaces a Variable has its type")
            )
    single = isinstance(outputs, Variable)
    results = clone([outputs] if single else list(outputs), given)[0]
    return results[0] if single else results
