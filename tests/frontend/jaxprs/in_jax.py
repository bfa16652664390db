"""Programs written for NumPy, run by JAX: with arrays that can be written to, and NumPy's names for JAX's."""

from __future__ import annotations

import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


class Held:
    """An array of JAX's that has another value after an assignment, as NumPy's have."""

    __array_priority__ = 1000

    def __init__(self, value: Any) -> None:
        self.value = value

    def __setitem__(self, index: Any, new: Any) -> None:
        index, new = bare(index), bare(new)
        if str(getattr(index, "dtype", None)) == "bool" and np.ndim(new) == 0:
            self.value = jnp.where(index, new, self.value)
        else:
            self.value = self.value.at[index].set(new)

    def __getitem__(self, index: Any) -> Any:
        return held(self.value[bare(index)])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.value, name)
        return _calling(found) if callable(found) else held(found)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return (held(one) for one in self.value)


def _operator(name: str) -> Any:
    return lambda self, *others: held(getattr(self.value, name)(*map(bare, others)))


def _in_place(name: str) -> Any:
    def operator(self: Held, other: Any) -> Held:
        self.value = getattr(self.value, name)(bare(other)).astype(self.value.dtype)
        return self

    return operator


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    setattr(Held, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(Held, f"__r{_name}__", _operator(f"__r{_name}__"))
    setattr(Held, f"__i{_name}__", _in_place(f"__{_name}__"))
for _name in ("neg", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "and", "or"):
    setattr(Held, f"__{_name}__", _operator(f"__{_name}__"))


def bare(value: Any) -> Any:
    """JAX's arrays in place of those held."""
    if isinstance(value, Held):
        return value.value
    if isinstance(value, (tuple, list)):
        return type(value)(map(bare, value))
    return value


def held(value: Any) -> Any:
    """What holds the arrays of JAX's in a value."""
    if isinstance(value, jax.Array):
        return Held(value)
    if isinstance(value, (tuple, list)):
        return type(value)(*map(held, value)) if hasattr(value, "_fields") else type(value)(map(held, value))
    return value


def _calling(function: Any) -> Any:
    def call(*arguments: Any, **keywords: Any) -> Any:
        return held(function(*bare(arguments), **{key: bare(value) for key, value in keywords.items()}))

    return call


class Namespace:
    """NumPy's functions by the names they have in ``jax.numpy``."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name == "random":
            return np.random
        if name == "add":
            add = _calling(jnp.add)
            add.at, add.outer = _add_at, _calling(jnp.add.outer)
            return add
        if name == "fill_diagonal":
            return _fill_diagonal
        found = getattr(self._module, name)
        if isinstance(found, types.ModuleType):
            return Namespace(found)
        return _calling(found) if callable(found) and not isinstance(found, type) else found


def _add_at(target: Held, index: Any, value: Any) -> None:
    target.value = target.value.at[bare(index)].add(bare(value))


def _fill_diagonal(target: Held, value: Any) -> None:
    target.value = jnp.fill_diagonal(target.value, value, inplace=False)


def for_jax(function: Any, arguments: Any) -> tuple[Any, list[Any]]:
    """A function of arrays alone that does for JAX what one does for NumPy, and its arguments.

    It returns what the function does, and the arrays it was given, which it may have written to.
    """
    names = {**function.__globals__, "np": Namespace(jnp)}
    for name, value in function.__globals__.items():
        if isinstance(value, types.FunctionType) and value.__globals__ is function.__globals__:
            names[name] = types.FunctionType(value.__code__, names, name, value.__defaults__)
    body = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    places = [place for place, one in enumerate(arguments) if isinstance(one, np.ndarray)]

    def run(*arrays: Any) -> Any:
        given = list(arguments)
        for place, array in zip(places, arrays, strict=True):
            given[place] = Held(array)
        result = body(*given)
        return _numbers(result), [given[place].value for place in places]

    return run, [arguments[place] for place in places]


def _numbers(value: Any) -> Any:
    """The arrays and numbers of a result."""
    if isinstance(value, dict):
        return {key: _numbers(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_numbers(part) for part in value]
    return None if isinstance(value, str) else bare(value)
