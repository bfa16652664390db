"""Functions of functions: derivatives and batches, compiled as :func:`esat.jit` compiles functions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from esat.errors import GradientError
from esat.frontend.tracing.trace import current_trace
from esat.frontend.tracing.trees import flatten, unflatten
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import as_symbol, holds_traced
from esat.functions import differentiation
from esat.functions.jitted import Jitted, jit
from esat.graph.scoped import Scoped
from esat.ops.annotations.gradients import WithGradient

Function = Callable[..., Any]


def _made(name: str, f: Function, body: Function, signature: bool = True) -> Jitted[..., Any]:
    """A jitted function that a transformation makes of a function, with the function's options."""
    shown = getattr(f, "__qualname__", type(f).__name__).replace("<locals>.", "")
    body.__name__ = body.__qualname__ = f"{name}({shown})"
    body.__module__ = getattr(f, "__module__", body.__module__)
    if signature:
        try:
            body.__signature__ = inspect.signature(f)  # type: ignore[attr-defined]
        except (TypeError, ValueError):
            signature = False
    options = f.options if isinstance(f, Jitted) and signature else {}
    return jit(body, **options)


def grad(f: Function, argnums: Any = 0, has_aux: bool = False) -> Jitted[..., Any]:
    """The gradient of a function; see :func:`esat.grad`."""

    def gradient(*arguments: Any, **keywords: Any) -> Any:
        value, parts = differentiation.value_and_gradient("grad", f, arguments, keywords, argnums, has_aux)
        return (parts, value[1]) if has_aux else parts

    return _made("grad", f, gradient)


def value_and_grad(f: Function, argnums: Any = 0, has_aux: bool = False) -> Jitted[..., Any]:
    """The value and gradient of a function; see :func:`esat.value_and_grad`."""

    def both(*arguments: Any, **keywords: Any) -> Any:
        return differentiation.value_and_gradient("value_and_grad", f, arguments, keywords, argnums, has_aux)

    return _made("value_and_grad", f, both)


def jacobian(f: Function, argnums: Any = 0, has_aux: bool = False, direction: Any = None) -> Jitted[..., Any]:
    """The Jacobian of a function; see :func:`esat.jacobian`."""

    def derivatives(*arguments: Any, **keywords: Any) -> Any:
        return differentiation.jacobians("jacobian", f, arguments, keywords, argnums, direction, has_aux)

    return _made("jacobian", f, derivatives)


def hessian(f: Function, argnums: Any = 0) -> Jitted[..., Any]:
    """The second derivatives of a function; see :func:`esat.hessian`."""

    def derivatives(*arguments: Any, **keywords: Any) -> Any:
        inner = grad(f, argnums)
        return differentiation.jacobians("hessian", inner, arguments, keywords, argnums, "forward", False)

    return _made("hessian", f, derivatives)


def vmap(f: Function, in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None) -> Jitted[..., Any]:
    """A function of batches; see :func:`esat.vmap`."""

    def batch(*arguments: Any) -> Any:
        return differentiation.mapped("vmap", f, arguments, in_axes, out_axes, axis_size)

    return _made("vmap", f, batch, signature=_takes_places(f))


def _takes_places(f: Function) -> bool:
    """Whether all parameters of a function are given, by their places."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return False
    by_place = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return all(one.kind in by_place and one.default is one.empty for one in parameters)


def checkpoint(f: Function) -> Jitted[..., Any]:
    """A function whose gradient computes anew what it needs; see :func:`esat.checkpoint`."""

    def again(*arguments: Any, **keywords: Any) -> Any:
        return differentiation.recomputed("checkpoint", f, arguments, keywords)

    return _made("checkpoint", f, again)


def vjp(f: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of a function, and what makes cotangents of arguments of one of the value."""

    def pull(arguments: Any, cotangent: Any) -> Any:
        return differentiation.pulled_back("vjp", f, arguments, cotangent)[1]

    pull_back = _made("vjp", f, pull, signature=False)
    return _evaluated(f, primals), lambda cotangent: pull_back(primals, cotangent)


def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of a function, and the tangent of it, given those of the arguments."""
    both: tuple[Any, Any] = _pushed(f)(tuple(primals), tuple(tangents))
    return both


def linearize(f: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of a function, and its derivative there: a linear function of tangents."""
    push = _pushed(f)
    return _evaluated(f, primals), lambda *tangents: push(primals, tangents)[1]


@functools.lru_cache(maxsize=256)
def _pushed(f: Function) -> Jitted[..., Any]:
    def push(arguments: Any, tangents: Any) -> Any:
        return differentiation.pushed_forward("jvp", f, arguments, tangents)

    return _made("jvp", f, push, signature=False)


@functools.lru_cache(maxsize=256)
def _jitted(f: Function) -> Function:
    return f if isinstance(f, Jitted) else jit(f)


def _evaluated(f: Function, primals: Sequence[Any]) -> Any:
    if current_trace() is not None:
        return differentiation.called(f, primals, {})
    return _jitted(f)(*primals)


class CustomGradient:
    """A function with a gradient of its own; see :func:`esat.custom_vjp`."""

    def __init__(self, f: Function) -> None:
        functools.update_wrapper(self, f)
        self._function = f
        self._forward: Function | None = None
        self._backward: Function | None = None
        # A gradient's forward function may call the function itself, which is then the plain one.
        self._runs = Scoped[bool]("runs")

    def defvjp(self, forward: Function, backward: Function) -> None:
        """Say what the gradient is.

        Parameters
        ----------
        forward
            Of the function's arguments: gives its value, and what the gradient needs to be kept.
        backward
            Of what was kept, and the cotangent of the value: gives those of the arguments, in a tuple.
        """
        self._forward, self._backward = forward, backward

    def __call__(self, *arguments: Any) -> Any:
        """The function's value.

        Raises
        ------
        GradientError
            Before a gradient is defined.
        """
        if self._forward is None or self._backward is None:
            raise GradientError(f"{self._function.__name__} has no gradient yet; call its defvjp")
        if current_trace() is None:
            if holds_traced(list(arguments)):
                raise GradientError("a custom_vjp takes Variables within esat.jit only")
            return _jitted(self._function)(*arguments)
        if self._runs.get():
            return differentiation.called(self._function, arguments, {})
        with self._runs.set(True):
            return self._traced(arguments)

    def _traced(self, arguments: Sequence[Any]) -> Any:
        assert self._forward is not None
        value, kept = differentiation.called(self._forward, arguments, {})
        tree = differentiation.Tree.of(value, "the value")
        operands = differentiation.Tree.of(tuple(arguments), "the arguments")
        kept_tree = differentiation.Tree.of(kept, "what is kept")
        outputs = [as_symbol(leaf) for leaf in tree.leaves]
        inputs = [as_symbol(leaf) for leaf in operands.leaves]
        residuals = [as_symbol(leaf) for leaf in kept_tree.leaves]
        trace = current_trace()
        assert trace is not None
        backward = trace.exchange(self._backward)
        pull_back = _PullBack(backward, tree, operands, kept_tree)
        op = WithGradient(len(outputs), len(inputs), pull_back)
        made = op.make_node(*outputs, *inputs, *residuals).outputs
        scalars = [differentiation.is_scalar(leaf) for leaf in tree.leaves]
        return tree.rebuilt([TracedArray(v, is_scalar=s) for v, s in zip(made, scalars, strict=True)])


class _PullBack:
    """A user's gradient as a function of Variables."""

    def __init__(self, backward: Function, value: Any, operands: Any, kept: Any) -> None:
        self.backward = backward
        self.value = value
        self.operands = operands
        self.kept = kept

    def __call__(self, kept: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        array = TracedArray
        residuals = self.kept.rebuilt([array(one, is_scalar=one.ndim == 0) for one in kept])
        cotangent = self.value.rebuilt([array(one, is_scalar=one.ndim == 0) for one in cotangents])
        pulled = self.backward(residuals, cotangent)
        leaves: list[Any] = []
        flatten(tuple(pulled), leaves, "the gradient")
        places = iter(leaves)
        if len(leaves) == len(self.operands.leaves):
            return [as_symbol(next(places)) for _ in leaves]
        found: list[Any] = []
        for part, argument in zip(
            pulled, unflatten(self.operands.structure, iter(self.operands.leaves)), strict=True
        ):
            own: list[Any] = []
            flatten(argument, own, "the arguments")
            given: list[Any] = []
            if part is not None:
                flatten(part, given, "the gradient")
            found += [None] * len(own) if part is None else [as_symbol(one) for one in given]
        return found
