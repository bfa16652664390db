"""Programs written for JAX, as graphs: jaxprs translated equation by equation.

============ =====================================================================
steps        what rules are given, and the dtypes and shapes of values
translation  runs a jaxpr by a table of rules
elementwise, bits, arrays, indexing, foldings, windows, matrices, reflections, draws, calls, rare  the rules
============ =====================================================================

JAX traces the function, so its ``grad``, ``vmap``, ``custom_jvp`` and so on have been at work when esat sees
it. It is imported when one of the functions here is called (``pip install esat[jax]``).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from esat.errors import CallError
from esat.frontend.graph import Graph
from esat.frontend.jax import (
    arrays,
    bits,
    calls,
    draws,
    elementwise,
    foldings,
    indexing,
    matrices,
    rare,
    reflections,
    windows,
)
from esat.frontend.jax.steps import Rule, value_of
from esat.frontend.jax.translation import Translation, input_for
from esat.frontend.tracing.trace import current_trace
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import as_symbol
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.variables import Variable
from esat.ops.cast import cast

__all__ = ["RULES", "from_jax", "translated"]

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **bits.RULES,
    **arrays.RULES,
    **indexing.RULES,
    **foldings.RULES,
    **windows.RULES,
    **matrices.RULES,
    **draws.RULES,
    **calls.RULES,
    **rare.RULES,
    **reflections.RULES,
}
"""Name of a primitive of JAX's -> what builds its results. A rule of one's own may be added."""


def from_jax(f: Callable[..., Any], *examples: Any) -> Graph:
    """A function written for JAX as a graph.

    Parameters
    ----------
    f
        A function of JAX's arrays, in trees of whatever kind; transformed by JAX's ``grad``, ``vmap`` and so
        on, or not.
    examples
        Arguments, or what has their shapes and dtypes, as ``jax.ShapeDtypeStruct``.

    Returns
    -------
    A Graph with one input for each array of the arguments and one output for each array of the results, in
    the order of JAX's ``tree_leaves``. Their dtypes are those that JAX computes in: float32 in place of
    float64, unless ``jax_enable_x64`` is set.

    Raises
    ------
    CallError
        When ``f`` is no function, or JAX is not installed.
    GraphError
        For a primitive that has no rule: the message names it and the line that asked for it.
    DtypeError
        For dtypes that esat lacks.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, numpy as np  # doctest: +SKIP
    >>> slope = esat.frontend.jax.from_jax(jax.grad(lambda x: jnp.sum(x**3)), np.ones(2))  # doctest: +SKIP
    >>> esat.compile(slope)(np.array([1.0, 2.0], "float32"))  # doctest: +SKIP
    array([ 3., 12.], dtype=float32)
    """
    jax = _jax("from_jax", f)
    closed, shapes = jax.make_jaxpr(f, return_shape=True)(*examples)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(examples)]
    inputs = [
        input_for(value_of(one.aval), f"argument{path}")
        for one, path in zip(closed.jaxpr.invars, paths, strict=True)
    ]
    outputs = Translation(RULES).run(closed, inputs)
    single = jax.tree_util.all_leaves([shapes])
    return Graph(inputs, outputs[0] if single else outputs, on_unused_input="ignore")


def translated(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function written for JAX as one for :func:`esat.jit`, whose graph it becomes a part of.

    Parameters
    ----------
    f
        A function of JAX's arrays, whose arguments are given by their places.

    Returns
    -------
    A function of the same arguments, which takes traced arrays, or Variables of known sizes, and gives such.
    It may be differentiated and batched by esat, too.

    Raises
    ------
    CallError, GraphError, DtypeError
        As :func:`from_jax`, the last two when it is called.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np  # doctest: +SKIP
    >>> norm = esat.jit(esat.frontend.jax.translated(lambda x: jnp.sqrt(jnp.sum(x**2))))  # doctest: +SKIP
    >>> float(norm(np.array([3.0, 4.0])))  # doctest: +SKIP
    5.0
    """
    jax = _jax("translated", f)

    def inlined(*arguments: Any) -> Any:
        leaves, tree = jax.tree_util.tree_flatten(arguments)
        symbols = [as_symbol(leaf) for leaf in leaves]
        examples = [_example(jax, leaf, symbol) for leaf, symbol in zip(leaves, symbols, strict=True)]
        given = jax.tree_util.tree_unflatten(tree, examples)
        closed, shapes = jax.make_jaxpr(f, return_shape=True)(*given)
        operands = [
            cast(symbol, value_of(one.aval).dtype)
            for one, symbol in zip(closed.jaxpr.invars, symbols, strict=True)
        ]
        outputs = _handed_back(Translation(RULES).run(closed, operands))
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shapes), outputs)

    return inlined


def _jax(name: str, f: Any) -> Any:
    if not callable(f):
        raise CallError(f"{name}: a function is wanted, not {f!r}")
    try:
        return importlib.import_module("jax")
    except ImportError:
        raise CallError(f"{name}: JAX is not installed; `pip install esat[jax]` installs it") from None


def _example(jax: Any, leaf: Any, symbol: Variable) -> Any:
    """What JAX is given for an argument: its shape and dtype; Python's numbers stay weak."""
    type = symbol.tensor_type
    if None in type.shape:
        raise CallError(f'translated: sizes must be known for JAX, not {type}; use shapes="static"')
    weak = isinstance(leaf, (TracedNumber, int, float, complex)) and not isinstance(leaf, bool)
    return jax.ShapeDtypeStruct(type.shape, type.numpy_dtype, weak_type=weak)


def _handed_back(outputs: Sequence[Variable]) -> list[Any]:
    if current_trace() is None:
        return list(outputs)
    return [TracedArray(one, is_scalar=one.tensor_type.ndim == 0) for one in outputs]
