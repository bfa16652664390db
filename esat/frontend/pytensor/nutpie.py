"""PyMC's models for nutpie, whose sampler calls esat's C functions.

nutpie takes the addresses of two C functions: a log-density with its gradient, and what makes all variables
of a model of the sampler's vector. It compiles them with numba, whatever mode PyMC is given. Here they are
those of :meth:`Executable.c_entry`, which chains in several threads call without the interpreter.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from nutpie import compile_pymc
from pymc.initial_point import make_initial_point_fn

from esat.base.records import record
from esat.errors import CallError


@record(frozen=True, eq=False)
class _Function:
    """A C function as nutpie takes numba's: by its address.

    Attributes
    ----------
    entry
        What the function belongs to.
    """

    address: int
    entry: Any


class ESATModel(compile_pymc.CompiledPyMCModel):
    """A model compiled for ``nutpie.sample``."""

    def with_data(self, **updates: Any) -> Any:
        """Refused: C functions have the data that they were made with."""
        raise CallError(
            f"nutpie_model: {', '.join(updates)} cannot be replaced in a compiled model;"
            " set it in the PyMC model with pm.set_data, and compile that again"
        )


def nutpie_model(
    model: Any,
    *,
    initial_points: Mapping[Any, Any] | None = None,
    jitter_rvs: Iterable[Any] | None = None,
    var_names: Iterable[str] | None = None,
    mode: str = "ESAT",
) -> ESATModel:
    """A PyMC model for ``nutpie.sample``, compiled by esat.

    Parameters
    ----------
    model
        A ``pymc.Model`` whose free variables are continuous.
    initial_points
        Values or strategies to start from, by variable, instead of the model's own.
    jitter_rvs
        Variables that start up to one off their initial values; by default all free ones.
    var_names
        What is kept of each draw; by default all variables.
    mode
        PyTensor's name of a mode of esat's: ``ESAT`` or ``ESAT_AFTER``.

    Raises
    ------
    CallError
        Where the log-density has an op that only Python computes. ``nutpie.compile_pymc_model`` compiles such
        a model with numba.

    Examples
    --------
    >>> import nutpie, pymc as pm
    >>> from esat.frontend.pytensor.nutpie import nutpie_model
    >>> with pm.Model() as model:
    ...     mean = pm.Normal("mean")
    ...     seen = pm.Normal("seen", mean, 0.5, observed=[0.1, 0.3])
    >>> trace = nutpie.sample(nutpie_model(model), draws=100, chains=2)  # doctest: +SKIP
    """
    start = make_initial_point_fn(
        model=model,
        overrides=initial_points,
        default_strategy="support_point",
        jitter_rvs=set(model.free_RVs if jitter_rvs is None else jitter_rvs),
        return_transformed=True,
    )
    size, expanded, density, expand, initial, shapes, renamed = compile_pymc._make_functions(
        model,
        mode=mode,
        compute_grad=True,
        join_expanded=True,
        pymc_initial_point_fn=_one_at_a_time(start),
        var_names=var_names,
    )
    dims, coords = compile_pymc._prepare_dims_and_coords(model, shapes, renamed)
    point = initial(0)
    density_entry, expand_entry = (_entry(function, point) for function in (density, expand))
    return ESATModel(
        dims=dims,
        reparameterized_names=renamed,
        compiled_logp_func=_Function(density_entry.density_address, density_entry),
        compiled_expand_func=_Function(expand_entry.mapping_address, expand_entry),
        initial_point_func=initial,
        shared_data={},
        shared_var_keys={},
        user_data=np.zeros(1),
        n_expanded=expanded,
        shape_info=shapes,
        logp_func=density,
        expand_func=expand,
        _n_dim=size,
        _shapes={name: tuple(shape) for name, _, shape in zip(*shapes, strict=True)},
        _coords=coords,
    )


def _entry(function: Any, point: np.ndarray[Any, Any]) -> Any:
    """The C function of a compiled PyTensor function of the sampler's vector, which is called once."""
    shared = [variable.get_value(borrow=True) for variable in function.get_shared()]
    return function.vm.jit_fn.c_entry(point, *shared)


def _one_at_a_time(start: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that chains in several threads may call, one after the other."""
    lock = threading.Lock()

    def locked(seed: Any) -> Any:
        with lock:
            return start(seed)

    return locked
