"""What a native function does, as data: places, arrays, and steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from esat.base.records import record

Part: TypeAlias = Literal["all", "lower", "unit lower", "upper"]


@record(frozen=True)
class Place:
    """Where elements are: those of an argument or of a result, by number, or at a fixed address.

    Those of ``chosen`` are where the step that has this number found them, or where the
    :class:`RepeatedSteps` with this number has got to.

    Attributes
    ----------
    offset
        Bytes from there to the first element.
    """

    kind: Literal["input", "output", "fixed", "chosen"]
    number: int
    offset: int = 0


@record(frozen=True)
class ArraySpecification:
    """An argument that is admitted, or a result to be made: C-contiguous and aligned.

    Attributes
    ----------
    strides
        Bytes, of what a kernel reads; None for C-contiguous elements.
    bases
        An array of objects, arrays of so many bytes or None, in which a result may be made: the last one that
        nothing else refers to is taken. A call that finds none goes elsewhere. Without bases the memory of
        each result is new.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    bases: np.ndarray[Any, Any] | None = field(default=None, compare=False, repr=False)
    strides: tuple[int, ...] | None = None


@record(frozen=True)
class KernelStep:
    """A kernel compiled by numba, called with arrays and, after them, integers.

    Attributes
    ----------
    address
        Of its native function.
    arrays
        Where each array is, and what it is like.
    """

    address: int
    arrays: tuple[tuple[Place, ArraySpecification], ...]
    integers: tuple[int, ...] = ()


@record(frozen=True)
class RoutineStep:
    """A function that takes pointers and, after them, integers of 64 bits; pointers only, of BLAS.

    Attributes
    ----------
    refusal
        Of an integer of so many bits that is 0 afterwards, unless the function refuses the values: the call
        then goes elsewhere. None for a function that takes any.
    returns_status
        Whether it returns an integer of 32 bits, which is 0 unless it could not do its work.
    """

    address: int
    pointers: tuple[Place, ...]
    refusal: tuple[Place, int] | None = None
    integers: tuple[int, ...] = ()
    returns_status: bool = False


@record(frozen=True)
class MoveStep:
    """Elements copied from one place to another, or added to what is there. The places do not overlap.

    Attributes
    ----------
    dtype
        Of elements; of those that are added, a number's.
    converted
        The dtype of the source, where it is another one of float32, float64 and int32.
    sizes
        Of the axes, at most four of them.
    target_strides, source_strides
        Bytes from element to element along each axis.
    part
        Elements that are copied: those of a matrix up to its diagonal, before it, or from it on; others
        become 0, and 1 on the diagonal of ``unit lower``.
    """

    target: Place
    source: Place
    dtype: np.dtype[Any]
    sizes: tuple[int, ...]
    target_strides: tuple[int, ...]
    source_strides: tuple[int, ...]
    adds: bool = False
    part: Part = "all"
    converted: np.dtype[Any] | None = None


@record(frozen=True)
class CheckStep:
    """So many bools in one piece, all of which must be true, or the call goes elsewhere."""

    place: Place
    count: int


@record(frozen=True)
class DeterminantStep:
    """Sign and logarithm of a determinant from the triangular factors of ``getrf``.

    Attributes
    ----------
    factors
        A square matrix of so many rows.
    pivots, info
        What ``getrf`` said, in integers of 64 bits; where ``info`` is positive, the matrix is singular.
    sign, logarithm
        Where results go. Without a place for the sign, the determinant goes to the other one.
    """

    factors: Place
    rows: int
    pivots: Place
    info: Place
    sign: Place | None
    logarithm: Place
    dtype: np.dtype[Any]


@record(frozen=True)
class PermutationStep:
    """The matrix that exchanges rows as ``getrf`` did, transposed.

    Attributes
    ----------
    target
        Of so many rows and columns, C-contiguous, of a real dtype.
    pivots
        So many integers of 32 bits, which ``getrf`` gave.
    order
        Room for an integer of 64 bits for each row.
    """

    target: Place
    rows: int
    pivots: Place
    count: int
    order: Place
    dtype: np.dtype[Any]


class ToldFunction(Protocol):
    """A Python function without arguments that works on arrays which are told where their elements are.

    Attributes
    ----------
    pointers
        Of each array: the address of the word that tells where its elements are, and what that holds between
        calls.
    """

    @property
    def pointers(self) -> tuple[tuple[int, int], ...]: ...

    def __call__(self) -> bool: ...


@record(frozen=True)
class PythonStep:
    """A Python function, which returns whether it did its work; where it did not, the call goes elsewhere.

    Attributes
    ----------
    function
        What is called.
    places
        Where the elements of its arrays are.
    """

    function: ToldFunction
    places: tuple[Place, ...]


@record(frozen=True)
class ChoiceStep:
    """One of two places, by a bool: it is that of the choice of this number from then on."""

    number: int
    condition: Place
    then: Place
    otherwise: Place


@record(frozen=True)
class PlaceStep:
    """The place that integers choose: it is that of the choice of this number from then on.

    Attributes
    ----------
    base
        The place where all of them are 0.
    indices
        Where each is, its dtype, how many places it chooses among, and how many bytes these are apart. One
        that is out of bounds ends the call, which goes elsewhere.
    """

    number: int
    base: Place
    indices: tuple[tuple[Place, np.dtype[Any], int, int], ...]


@record(frozen=True)
class GuardedSteps:
    """Steps that run where all bools of one of the alternatives are as they say."""

    alternatives: tuple[tuple[tuple[Place, bool], ...], ...]
    steps: tuple[Step, ...]


@record(frozen=True)
class LoopControl:
    """What else there is to say of steps that run along one axis, where it is a loop of the user's.

    Attributes
    ----------
    handed
        Of each place that is handed on: the number by which steps name it, the first one, and the number of
        the place that it is after a run.
    limit
        An integer of 64 bits: how often steps run at most.
    condition
        A bool: whether there is a run, looked at before each.
    count
        Where an integer of 64 bits goes: how many runs there were.
    reverse
        Whether cursors begin at their last places.
    """

    handed: tuple[tuple[int, Place, int], ...] = ()
    limit: Place | None = None
    condition: Place | None = None
    count: Place | None = None
    reverse: bool = False


@record(frozen=True)
class RepeatedSteps:
    """Steps that run once for each index of axes of these sizes.

    Attributes
    ----------
    cursors
        Of each place that moves on: the number by which steps name it, the first one, and bytes along each
        axis.
    control
        Of a loop of the user's, which has one axis.
    """

    sizes: tuple[int, ...]
    cursors: tuple[tuple[int, Place, tuple[int, ...]], ...]
    steps: tuple[Step, ...]
    control: LoopControl | None = None


Step: TypeAlias = (
    KernelStep
    | RoutineStep
    | MoveStep
    | CheckStep
    | DeterminantStep
    | PermutationStep
    | PythonStep
    | ChoiceStep
    | PlaceStep
    | GuardedSteps
    | RepeatedSteps
)


def calls_python(steps: Sequence[Step]) -> bool:
    """Whether other Python threads may run while steps do, even where these hold the interpreter's lock."""
    return any(
        isinstance(step, PythonStep)
        or (isinstance(step, GuardedSteps | RepeatedSteps) and calls_python(step.steps))
        for step in steps
    )
