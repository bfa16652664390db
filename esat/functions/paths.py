"""The ways through a function that values of arrays choose between, as one program.

Where Python asks for a value that only a call can know, as ``if x.sum() > 0`` does, the function is traced
for either answer, each time from the start. A way that ends in a ``raise`` or a failed ``assert`` of the
user's is a check of the program: the same error, if the conditions on the way hold. Others give results, of
which the program chooses. Nothing is computed on ways that are not taken, as in Python.
"""

from __future__ import annotations

import dis
import functools
import traceback
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from esat.base.records import record
from esat.errors import EsatError, GraphError, UserLine
from esat.frontend.tracing.code import builtin_functions, user_objects
from esat.frontend.tracing.code.outside import is_users_file
from esat.frontend.tracing.path import ErrorCheck, NotChosen, Path, PathDecision, TracedInFull
from esat.frontend.tracing.trees import Structure, flatten, unflatten
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import as_symbol, mapped
from esat.frontend.tracing.values.merging import Merge, NoChoiceError, is_cheap
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.algorithms.traversal import inputs_of
from esat.graph.calls.callers import is_own
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.control import ifelse

MOST_WAYS = 8
"""Ways that end in results: code after an ``if`` is there once for each."""
MOST_TRACES = 160
"""Traces of a function, those that end in errors included."""


@record(frozen=True, eq=False)
class Returned:
    """What a function has returned.

    Attributes
    ----------
    value
        With traced arrays in it.
    stands
        What stood for the leaves of the arguments, as they were left.
    """

    value: Any
    stands: list[Any]


@record(frozen=True, eq=False)
class RunTimeCheck:
    """An error of the user's that a call raises.

    Attributes
    ----------
    way
        Decisions before, with their outcomes: it is raised where all were so and the condition holds.
    condition
        A scalar of dtype bool.
    error
        Its class, arguments and traceback are those of the user's.
    texts
        What stands in its arguments for values -> those and how they are written.
    """

    way: tuple[tuple[Variable, bool], ...]
    condition: Variable
    error: Exception
    texts: Mapping[str, tuple[Variable, str]]

    def holds(self, decisive: Collection[tuple[bool, ...]] | None = None) -> Variable:
        """Whether it is raised, as a Variable: what is beyond a decision is computed if that was so.

        Parameters
        ----------
        decisive
            Outcomes that lead to decisions between results. Others lead to an error either way.
        """
        found = self.condition
        for place, (condition, outcome) in reversed(list(enumerate(self.way))):
            before = tuple(one for _, one in self.way[:place])
            if decisive is None or before in decisive:
                truth = condition if outcome else op_named("invert")(condition)
                found = ifelse(truth, found, np.bool_(False))
        return found

    def raise_if_so(self, values: Mapping[Variable, Any]) -> None:
        """Raise the error, where it is one of a call with some values of the inputs."""
        if not evaluate(self.holds(), dict(values)):
            return
        made = _copied(self.error, lambda one: self._replaced(one, values))
        raise made.with_traceback(self.error.__traceback__)

    def _replaced(self, part: Any, values: Mapping[Variable, Any]) -> Any:
        for text in self.texts if isinstance(part, str) else ():
            if text in part:
                part = part.replace(text, self._shown(text, values))
        return part

    def _shown(self, text: str, values: Mapping[Variable, Any]) -> str:
        variable, spec = self.texts[text]
        value = evaluate(variable, dict(values))
        return format(value[()] if value.ndim == 0 else value, spec)


def _copied(error: Exception, change: Callable[[Any], Any]) -> Exception:
    made = type(error).__new__(type(error), *error.args)
    made.args = tuple(change(one) for one in error.args)
    made.__dict__.update({name: change(one) for name, one in vars(error).items()})
    made.__cause__, made.__suppress_context__ = error.__cause__, error.__suppress_context__
    return made


@record(frozen=True, eq=False)
class _Choice:
    """Ways that part at a decision."""

    decision: PathDecision
    then: _Way
    otherwise: _Way


_Way: TypeAlias = _Choice | Returned | None
"""What is returned, after some choices; None where an error is raised."""


class _Explorer:
    """Traces a function along all of its ways."""

    def __init__(self, run: Callable[[Path], Returned]) -> None:
        self.run = run
        self.traces = self.ways = 0
        self.checks: list[RunTimeCheck] = []
        self.decisive: set[tuple[bool, ...]] = set()
        self.left: dict[tuple[bool, ...], Variable] = {}

    def explore(
        self, forced: tuple[tuple[bool, UserLine | None], ...] = (), breaks: frozenset[int] = frozenset()
    ) -> _Way:
        """All ways that begin with some outcomes, of which some are those of all steps of a loop."""
        path = Path(forced, breaks=breaks)
        self.traces += 1
        found: _Way = None
        try:
            found = self.run(path)
            self.ways += 1
        except Exception as error:
            if path.failed:
                raise TracedInFull from error
            _refuse_choices(path, error)
            if path.asked is not None and _is_of_library(error):
                raise path.asked from error
            if not path.decisions or not is_users_error(error):
                raise
            path.checks.append(ErrorCheck(None, _kept(error), len(path.decisions)))
        if path.failed or path.of_step is not None:
            raise TracedInFull
        _refuse_choices(path)
        taken = tuple((one.outcome, one.line) for one in path.decisions)
        outcomes = tuple(one.outcome for one in path.decisions)
        of_loops = frozenset(place for place, one in enumerate(path.decisions) if one.breaks)
        for place in of_loops:
            if outcomes[place]:
                self.left[outcomes[:place]] = path.decisions[place].condition
        first = len(self.checks)
        for place in reversed(range(len(forced), len(outcomes))):
            decision = path.decisions[place]
            if self.ways > MOST_WAYS or self.traces > MOST_TRACES:
                raise path.decisions[-1].refusal
            begin = frozenset(one for one in of_loops if one <= place)
            other = self.explore((*taken[:place], (not decision.outcome, decision.line)), begin)
            if decision.breaks:  # whether a loop is left is known by what is computed where it is
                decision.condition = self.left[outcomes[:place]]
            if other is not None and found is not None:
                self.decisive.add(outcomes[:place])
                found = _Choice(decision, *((found, other) if decision.outcome else (other, found)))
            else:
                found = found or other
        own = [_at_run_time(path, one) for one in path.checks if one.depth >= len(forced)]
        self.checks[first:first] = own
        return found


def _refuse_choices(path: Path, error: Exception | None = None) -> None:
    """Raise NotChosen where a branch has not been traced to its end, or an error may not be one of the way
    that Python takes."""
    if isinstance(error, NameError):
        for name, refusal in path.half_bound.items():
            if repr(name) in str(error):
                raise refusal
    if path.choices:
        raise NotChosen(path.choices[0], "one of them raises an error, or leaves them")


def _is_of_library(error: Exception) -> bool:
    """Whether a library has raised an error, which may hide that it was handed what has no value."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    file = "" if place is None else place.tb_frame.f_code.co_filename
    return not (isinstance(error, EsatError) or is_users_file(file) or is_own(file))


def _kept(error: Exception) -> Exception:
    """An error with the lines of the user's that led to it, without what was computed there."""
    place = error.__traceback__
    while place is not None and not is_users_file(place.tb_frame.f_code.co_filename):
        place = place.tb_next
    traceback.clear_frames(place)
    return error.with_traceback(place)


def _at_run_time(path: Path, check: ErrorCheck) -> RunTimeCheck:
    way = tuple((one.condition, one.outcome) for one in path.decisions[: check.depth])
    condition = check.condition
    if condition is None:
        condition, outcome = way[-1]
        way, condition = way[:-1], condition if outcome else op_named("invert")(condition)
    return RunTimeCheck(way, condition, check.error, dict(path.texts))


_STANDING_FOR_PYTHON = (builtin_functions.__file__, user_objects.__file__)
"""Files of functions that raise what Python raises, in place of an operator or an index."""


def is_users_error(error: Exception) -> bool:
    """Whether a ``raise`` or ``assert`` in the user's code has raised an error, or what Python does there: an
    index that is out of range, a division by zero, a name that nothing was assigned to, None in place of an
    array."""
    place = error.__traceback__
    if place is None or isinstance(error, EsatError):
        return False
    while place.tb_next is not None and place.tb_next.tb_frame.f_code.co_filename not in _STANDING_FOR_PYTHON:
        place = place.tb_next
    code = place.tb_frame.f_code
    if not is_users_file(code.co_filename):
        return False
    is_pythons = isinstance(error, (LookupError, ArithmeticError, UnboundLocalError)) or any(
        one in str(error) for one in ("is not in list", "NoneType")
    )
    return is_pythons or code.co_code[place.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def merged_paths(
    name: str, run: Callable[[Path], Returned], inputs: set[Variable]
) -> tuple[Returned, tuple[RunTimeCheck, ...], Variable | None]:
    """What a function returns on all of its ways, chosen by the decisions.

    Parameters
    ----------
    name
        Of the function, for messages.
    run
        Traces it along one way.
    inputs
        Of the program.

    Returns
    -------
    The choice, the checks in the order in which the function comes to them, and whether one of these holds.

    Raises
    ------
    EsatError
        Where ways are too many, or return what cannot be chosen between.
    """
    explorer = _Explorer(run)
    found = explorer.explore()
    checks = tuple(sorted(explorer.checks, key=lambda one: len(one.way)))
    if found is None:
        raise GraphError(f"{name} raises an error whatever its arguments are: {checks[0].error!r}")
    returned = _merged(found)
    if not checks:
        return returned, (), None
    failed = functools.reduce(op_named("bitwise_or"), [one.holds(explorer.decisive) for one in checks])
    if any(type(leaf) is Variable for leaf in {*inputs_of([failed])} - inputs):
        raise GraphError(
            f"{name} raises errors within a function that esat calls for parts of arrays, which a program "
            "cannot do; check the whole arrays before"
        )
    return returned, checks, failed


def _merged(way: _Way) -> Returned:
    if isinstance(way, Returned):
        return way
    assert isinstance(way, _Choice)
    return _Merge(way.decision, _merged(way.then), _merged(way.otherwise)).merged()


class _Merge:
    """The choice between what is returned on two ways."""

    def __init__(self, decision: PathDecision, then: Returned, otherwise: Returned) -> None:
        self.decision = decision
        self.sides = then, otherwise
        self.merge = Merge(decision.condition, is_cheap)

    def merged(self) -> Returned:
        """One value, and what is left of the arguments. Raises the decision's refusal where there is none."""
        then, otherwise = self.sides
        stands = list(then.stands)
        for place, pair in enumerate(zip(then.stands, otherwise.stands, strict=True)):
            if any(type(one) is TracedArray and one.version for one in pair):
                stands[place] = None
                self._choose(pair, stands, place)
        leaves: list[list[Any]] = [[], []]
        trees = [flatten(_with_numbers(one.value), found, "the result")
                 for one, found in zip(self.sides, leaves, strict=True)]  # fmt: skip
        if len(leaves[0]) != len(leaves[1]):
            raise self.decision.refusal
        if _skeleton(trees[0]) != _skeleton(trees[1]):
            raise self.decision.refusal
        chosen: list[Any] = [None] * len(leaves[0])
        arguments = [{id(one): place for place, one in enumerate(side.stands) if type(one) is TracedArray}
                     for side in self.sides]  # fmt: skip
        same: list[tuple[int, int]] = []
        for place, pair in enumerate(zip(*leaves, strict=True)):
            owners = [known.get(id(one)) for known, one in zip(arguments, pair, strict=True)]
            if owners[0] is not None and owners[0] == owners[1]:
                same.append((place, owners[0]))
            else:
                self._choose(pair, chosen, place)
        self.merge.build()
        for place, argument in same:
            chosen[place] = stands[argument]
        return Returned(unflatten(_skeleton(trees[0]), iter(chosen)), stands)

    def _choose(self, pair: tuple[Any, Any], target: list[Any], place: int) -> None:
        try:
            self.merge.add(*pair, functools.partial(target.__setitem__, place))
        except NoChoiceError:
            raise self.decision.refusal from None


def _with_numbers(value: Any) -> Any:
    """A value whose bools can differ between ways."""
    return mapped(value, lambda one: TracedNumber(as_symbol(one), bool) if type(one) is bool else one)


def _skeleton(structure: Structure) -> Structure:
    """A structure in which leaves of all kinds are alike."""
    if structure[0] in ("array", "scalar", "number", "traced"):
        return ("traced",)
    return structure if structure[0] == "static" else (*structure[:-1], tuple(map(_skeleton, structure[-1])))
