"""Checks of what comes in: the arguments of a call, and what library routines hand back."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esat.errors import CompileError, EsatError, InputError, ShapeError, describe
from esat.graph import Apply, TensorType, Type, Variable
from esat.graph.op import Array


def input_name(position: int, variable: Variable) -> str:
    """How messages name an input: its position and, where it has one, its name."""
    return f"input {position} ({variable.name})" if variable.name else f"input {position}"


class InputCheck:
    """Turns one argument into an array of its input's type, or says why it cannot.

    Called with the argument. Python numbers, lists and arrays of other dtypes are converted where
    nothing is lost; anything else is an InputError.
    """

    def __init__(self, position: int, variable: Variable) -> None:
        self.position = position
        self.variable = variable

    def __call__(self, value: Any) -> Any:
        try:
            return self.variable.type.filter(value)
        except EsatError as error:
            raise InputError(f"{self._expectation()}, not {_shown(value)}: {error}") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{self._expectation()}, not {_shown(value)}: it is not an array") from error

    def shape_error(self, shape: tuple[int, ...]) -> InputError:
        """The error for an array of the right dtype with a rank or size that does not fit."""
        reason = "the rank differs" if len(shape) != self._rank() else "a size differs"
        return InputError(f"{self._expectation()}, not an array of shape {shape}: {reason}")

    def _rank(self) -> int:
        return self.variable.type.ndim if isinstance(self.variable.type, TensorType) else -1

    def _expectation(self) -> str:
        return f"{input_name(self.position, self.variable)} takes a {self.variable.type}"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype} and shape {value.shape}"
    text = reprlib.repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} of type {type(value).__name__}"


def wrong_count(inputs: Sequence[Variable], given: Sequence[Any]) -> InputError:
    """The error for a wrong number of arguments."""
    expected = ", ".join(variable.name or str(variable.type) for variable in inputs)
    return InputError(f"takes {len(inputs)} inputs ({expected}), not {len(given)}")


def in_order(inputs: Sequence[Variable], given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call, those of inputs by name put behind the others.

    Raises
    ------
    InputError
        When no input has a name or several have it, when one is given twice, and when one is not given.
    """
    if not named:
        return given
    names = [variable.name for variable in inputs]
    for name in named:
        if names.count(name) != 1:
            known = ", ".join(known for known in names if known) or "without names"
            several = "no" if name not in names else "more than one"
            raise InputError(f"{several} input is called {name!r}; the inputs are {known}")
        if names.index(name) < len(given):
            raise InputError(f"{input_name(names.index(name), inputs[names.index(name)])} is given twice")
    rest = list(enumerate(inputs))[len(given) :]
    missing = [input_name(place, variable) for place, variable in rest if variable.name not in named]
    if missing:
        raise InputError(f"{', '.join(missing)}: no array is given")
    return (*given, *(named[str(variable.name)] for _, variable in rest))


def aligned(array: Array) -> Array:
    """The array itself, or a copy whose elements start at multiples of their size."""
    return array if array.flags.aligned else array.copy()


class OutCheck:
    """Checks the arrays that a caller gives for outputs.

    Parameters
    ----------
    types
        Of the outputs.
    """

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = tuple(types)

    def __call__(
        self, given: Sequence[Any], shapes: Sequence[tuple[int, ...] | None], others: Sequence[Array]
    ) -> None:
        """Raise InputError unless results can be written into ``given`` while all ``others`` are read.

        Parameters
        ----------
        given
            One array an output.
        shapes
            The shapes of the outputs, None where not yet known.
        others
            Arguments and shared variables.
        """
        if not isinstance(given, tuple | list):
            wanted = "an array" if len(self.types) == 1 else f"a tuple of {len(self.types)} arrays"
            raise InputError(f"out: takes {wanted}, not {_shown(given)}")
        if len(given) != len(self.types):
            raise InputError(f"out: takes {len(self.types)} arrays, not {len(given)}")
        for place, (array, type, shape) in enumerate(zip(given, self.types, shapes, strict=True)):
            role = f"out: output {place} is a {type}"
            if not isinstance(type, TensorType) or not isinstance(array, np.ndarray):
                raise InputError(f"{role}; it cannot be written into {_shown(array)}")
            fits = array.shape == shape if shape is not None else type.admits_shape(array.shape)
            if array.dtype != type.numpy_dtype or not fits:
                wanted = "" if shape is None else f" of shape {shape}"
                raise InputError(f"{role}{wanted}; it cannot be written into {_shown(array)}")
            if not array.flags.writeable:
                raise InputError(f"{role}; it cannot be written into a read-only array")
            if any(np.may_share_memory(array, other) for other in (*others, *given[:place])):
                raise InputError(
                    f"{role}; its array shares memory with an argument, a shared variable or another output"
                )


def placed(array: Array) -> Array:
    """An array that results can be computed in: the one given, or one of its shape to copy from later."""
    return array if array.flags.carray else np.empty(array.shape, array.dtype)


def given_away(array: Array, *others: Array) -> Array:
    """The array itself if it can be overwritten, else a copy of it that can.

    Parameters
    ----------
    array
        What the caller gave away.
    others
        Arrays that must not change with it.
    """
    if array.flags.carray and not any(np.may_share_memory(array, other) for other in others):
        return array
    return np.array(array, order="C")


def copied(value: Any) -> Any:
    """A copy of a value of any type, or the value itself where it cannot be copied."""
    return value.copy() if hasattr(value, "copy") else value


class ResultCheck:
    """Makes of what a library routine returned an array that the next steps can rely on.

    Attributes
    ----------
    node, index
        The output that is checked.
    """

    def __init__(self, node: Apply, index: int) -> None:
        self.node = node
        self.index = index

    def __call__(self, result: Any, shape: tuple[int, ...] | None) -> Any:
        """``result`` as an array of the declared type.

        Parameters
        ----------
        result
            What the routine returned.
        shape
            The shape that was predicted for it, if one was.

        Raises
        ------
        ShapeError
            When sizes that the result meets in the graph are not its own.
        CompileError
            When the op does not return what it declared.
        """
        if isinstance(result, EsatError):
            raise result  # a size, in a branch, of what cannot be computed
        type = self.node.outputs[self.index].type
        if not isinstance(type, TensorType):
            return result
        array = np.asarray(result)
        if array.dtype != type.numpy_dtype or not type.admits_shape(array.shape):
            self._check_own_type(array, type)
            raise self._broken(f"dtype {array.dtype} and shape {array.shape}, where it declares {type}")
        if shape is not None and array.shape != shape:
            raise self._broken(f"shape {array.shape}, where its inputs' sizes give {shape}")
        return array.astype(type.numpy_dtype, copy=False)

    def _check_own_type(self, array: Array, type: TensorType) -> None:
        """Raise ShapeError where the op did what it must, and its result has another size than it meets."""
        own = self.node.op.infer_types(self.node.inputs)[self.index]
        if isinstance(own, TensorType) and array.dtype == own.numpy_dtype and own.admits_shape(array.shape):
            reason = f"the result has shape {array.shape}, and meets {type}"
            types = [variable.type for variable in self.node.inputs]
            raise ShapeError(describe(self.node.op.name, types, reason, self.node.where))

    def _broken(self, reason: str) -> CompileError:
        op = self.node.op
        types = [variable.type for variable in self.node.inputs]
        return CompileError(
            describe(op.name, types, f"perform returned an array of {reason}", self.node.where)
        )


def detached(result: Array, *others: Array) -> Array:
    """``result``, copied if it may share memory with any of the others."""
    return result.copy() if any(np.may_share_memory(result, other) for other in others) else result
