"""Debug mode: every stage is run on samples and compared with the graph as it was given."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.stages import blamed_as
from esat.egraph.language.encode import encode
from esat.errors import DebugError, EsatError, EsatWarning, describe
from esat.extract.accuracy.wide_format.wide_values import Wide, loses_digits, wide_values
from esat.graph import Apply, FunctionGraph, TensorType, Variable
from esat.graph.algorithms.evaluate import apply_node, computed, evaluate
from esat.phases.assumptions import check_assumptions, satisfying

Values = Sequence[Any]
Truths = Sequence[Wide | None]
"""Outputs in the wide format, None where they cannot be computed so."""

TOLERANCES = {"float16": 1e-2, "float32": 1e-4, "complex64": 1e-4}
"""Relative to the largest number of an array, where nothing better is known; 1e-8 for other dtypes."""

SIZES = ((2, 3, 4, 5, 6, 7), (3,), (1,))
"""Sizes of axes that types leave open: as different as the graph allows, then all alike."""

MORE_SIZES = tuple((size,) for size in (2, 4, 6, 5, 8, 9, 12, 16, 10, 7, 24, 25, 32, 36, 64))
"""Sizes to try where none of those fits: what the graph reshapes to, or indexes, asks for one."""


class GraphChecker:
    """Compares graphs, and programs, with the graph a compilation began with.

    Parameters
    ----------
    graph
        The reference; it must not change.
    samples
        One array an input; made up where None.
    exact
        Whether results must be bitwise those of the reference.

    Warns
    -----
    EsatWarning
        When the reference cannot be computed for any sample: then stages go unchecked.
    """

    def __init__(self, graph: FunctionGraph, samples: Values | None = None, exact: bool = False) -> None:
        self.graph = graph
        self.exact = exact
        self.samples: list[Values] = []
        self.expected: list[list[Any]] = []
        self.truths: list[Truths] = []
        if samples is not None:
            self._add(samples)
        else:
            for sample in made_up_samples(graph, SIZES):
                self._try(sample)
            for sample in made_up_samples(graph, MORE_SIZES):
                if self.samples or self._try(sample):
                    break
        if not self.samples:
            warnings.warn(
                "debug mode found no input that the graph takes, so it checks no stage; give one as"
                ' Mode("debug", samples=(array, ...))',
                EsatWarning,
                stacklevel=2,
            )

    def _try(self, sample: Values) -> bool:
        """Whether the graph takes a sample, which is one of the samples then."""
        try:
            self._add(sample)
        except (EsatError, ArithmeticError, ValueError, IndexError):
            return False
        return True

    def _add(self, sample: Values) -> None:
        known = dict(zip(self.graph.inputs, sample, strict=True))
        check_assumptions(self.graph, known)
        self.expected.append(evaluate(self.graph.outputs, known))
        self.truths.append(self.truths_at(known))
        self.samples.append(sample)

    def check(self, stage: str, graph: FunctionGraph) -> None:
        """Raise DebugError if a graph does not compute what the reference does."""
        for sample, expected, truths in zip(self.samples, self.expected, self.truths, strict=True):
            known = dict(zip(graph.inputs, sample, strict=True))
            check_declarations(stage, graph, known)
            self.compare(stage, evaluate(graph.outputs, known), expected, truths, (graph, known))

    def truths_at(self, known: Mapping[Variable, Any]) -> Truths:
        """The outputs of the reference in the wide format, where they can be computed so."""
        if self.exact or any(node.op.lazy for node in self.graph.apply_nodes):
            return [None] * len(self.graph.outputs)
        found = wide_values(self.graph.outputs, known)
        return [found.get(output) for output in self.graph.outputs]

    def check_pairs(self, graph: FunctionGraph, pairs: Sequence[tuple[Variable, Variable, str]]) -> None:
        """Raise DebugError, naming who claims it, if two Variables are claimed to be equal but are not."""
        for sample in self.samples:
            known = dict(zip(graph.inputs, sample, strict=True))
            lazy = any(node.op.lazy for node in graph.apply_nodes)
            known = node_values(graph, known) if lazy else known
            for left, right, source in pairs:
                if lazy and left not in known:
                    continue  # maybe of a branch that the sample does not lead into
                claimed, value = evaluate([right, left], known)
                self.compare(source, [claimed], [value])

    def compare(
        self,
        stage: str,
        results: Values,
        expected: Values,
        truths: Truths = (),
        computed_by: tuple[FunctionGraph, Mapping[Variable, Any]] | None = None,
    ) -> None:
        """Raise DebugError if results differ from what is expected.

        Parameters
        ----------
        truths
            What is expected in the wide format, by output: a result may be as far off as rounding in the
            reference explains, and no farther.
        computed_by
            The graph that made the results, and its inputs: the first node that loses digits is named.
        """
        known = [*truths, *[None] * (len(expected) - len(truths))]
        for position, (result, wanted) in enumerate(zip(results, expected, strict=True)):
            reason = difference(result, wanted, self.exact, known[position])
            if reason:
                culprit = "" if computed_by is None else _culprit(*computed_by)
                wrong = f"output {position} is wrong: {reason}{culprit}"
                raise DebugError(f"debug mode: after {blamed_as(stage)}, {wrong}")


def _culprit(graph: FunctionGraph, known: Mapping[Variable, Any]) -> str:
    """The first node of a graph that loses digits, in words; empty if there is none."""
    node = loses_digits(graph.outputs, known, node_values(graph, known))
    if node is None:
        return ""
    types = [variable.type for variable in node.inputs]
    return "; " + describe(str(node.op), types, "is the first that loses its digits", node.where)


def difference(result: Any, expected: Any, exact: bool = False, truth: Wide | None = None) -> str:
    """How two values differ, in words; empty where they do not.

    Where the expected value is not finite the other may be anything: a stable form does better.

    Parameters
    ----------
    exact
        Whether they must be the same to the last bit.
    truth
        The expected value in the wide format: each element may be as far from it as rounding explains.
    """
    if not isinstance(expected, np.ndarray):
        return ""
    found: NDArray[Any] = np.asarray(result)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype}{list(found.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind not in "fc":
        wrong = found != expected
    elif exact:
        wrong = ~_identical(found, expected)
    else:
        with np.errstate(all="ignore"):
            finite = np.isfinite(expected)
            known = _known(truth, finite)
            largest = np.max(np.abs(expected), initial=0.0, where=finite)
            tolerance = TOLERANCES.get(expected.dtype.name, 1e-8) * (1.0 + largest)
            wrong = finite & ~known & ~(np.abs(found - expected) <= tolerance)
            if truth is not None and known.any():
                wrong |= known & ~(np.abs(found - truth.value) <= truth.allowed(expected.dtype))
    if not wrong.any():
        return ""
    place = tuple(int(axis[0]) for axis in np.nonzero(wrong)) if wrong.ndim else ()
    return (
        f"{found[place]} instead of {expected[place]} at {list(place)} ({int(wrong.sum())} elements differ)"
    )


def _known(truth: Wide | None, finite: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a result can be compared with the truth."""
    if truth is None or truth.value.shape != finite.shape:
        return np.zeros(finite.shape, np.bool_)
    return finite & truth.known


def _identical(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    """Where two arrays of one dtype have the same numbers, signs of zeros included, or both NaN."""
    if left.dtype.kind == "c":
        real, imaginary = _identical(left.real, right.real), _identical(left.imag, right.imag)
        both: NDArray[np.bool_] = np.logical_and(real, imaginary)
        return both
    equal = np.logical_and(left == right, np.signbit(left) == np.signbit(right))
    same: NDArray[np.bool_] = np.logical_or(equal, np.logical_and(np.isnan(left), np.isnan(right)))
    return same


def made_up_samples(graph: FunctionGraph, choices: Sequence[tuple[int, ...]]) -> Iterator[Values]:
    """Inputs for a graph, of sizes that fit each other as far as the graph's ops tell.

    Parameters
    ----------
    graph
        The graph.
    choices
        For each sample, the sizes to give to its axes in turn.
    """
    terms = encode(graph)
    places = dict(zip(terms.inputs, _input_terms(terms.terms), strict=True))
    fixed: dict[object, int] = {}
    for shared in graph.shared_variables:
        if isinstance(shared.type, TensorType):
            shape = shared.look().shape
            fixed.update(zip(terms.types[places[shared]].shape, shape, strict=False))
    for number, sizes in enumerate(choices):
        symbols = dict(fixed)
        rng = np.random.default_rng(number)
        sample = []
        for variable in graph.inputs:
            type = variable.type
            if not isinstance(type, TensorType):
                return
            shape = terms.types[places[variable]].shape if type.ndim else ()
            known = type.shape if len(shape) != type.ndim else shape
            numbers = [
                size if isinstance(size, int) else symbols.setdefault(size, sizes[len(symbols) % len(sizes)])
                for size in known
            ]
            sample.append(_random(rng, type, tuple(numbers)))
        yield satisfying(graph, sample)


def _input_terms(terms: Sequence[Any]) -> list[int]:
    numbers = {int(term.attributes[0]): index for index, term in enumerate(terms) if term.constructor == "In"}
    return [numbers[position] for position in range(len(numbers))]


def _random(rng: np.random.Generator, type: TensorType, shape: tuple[int, ...]) -> NDArray[Any]:
    if type.kind == "b":
        return rng.random(shape) < 0.5
    if type.kind in "iu":
        return rng.integers(0, 2, shape).astype(type.dtype)
    values = rng.uniform(0.5, 1.5, shape)
    if type.kind == "c":
        return (values + 1j * rng.uniform(0.5, 1.5, shape)).astype(type.dtype)
    return np.asarray(values, dtype=type.dtype)


# ---- what single nodes do


def node_values(graph: FunctionGraph, known: Mapping[Variable, Any]) -> dict[Variable, Any]:
    """The value of every Variable of a graph that its outputs need."""
    return {**known, **computed(graph.outputs, known)}


def check_declarations(stage: str, graph: FunctionGraph, known: Mapping[Variable, Any]) -> None:
    """Raise DebugError for an op that overwrites, or shares memory with, what it does not declare."""
    values = node_values(graph, known)
    for node in graph.toposort():
        if node.op.lazy or any(output not in values for output in node.outputs):
            continue
        operands = evaluate(node.inputs, values)
        kept = [_copy(operand) for operand in operands]
        results = apply_node(node, operands)
        for position, (operand, before) in enumerate(zip(operands, kept, strict=True)):
            if difference(operand, before, exact=True):
                raise _undeclared(stage, node, f"it overwrites input {position}, which it does not declare")
        for place, result in enumerate(results):
            declared = (*node.op.view_map.get(place, ()), *node.op.destroy_map.get(place, ()))
            for position, operand in enumerate(operands):
                if position not in declared and _share(result, operand):
                    reason = f"output {place} shares memory with input {position}, which it does not declare"
                    raise _undeclared(stage, node, reason)


def _undeclared(stage: str, node: Apply, reason: str) -> DebugError:
    types = [variable.type for variable in node.inputs]
    return DebugError(describe(str(node.op), types, f"after {blamed_as(stage)}, {reason}", node.where))


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _share(left: Any, right: Any) -> bool:
    both = isinstance(left, np.ndarray) and isinstance(right, np.ndarray)
    return both and left.size > 0 and right.size > 0 and bool(np.shares_memory(left, right))


def first_bad_node(graph: FunctionGraph, known: Mapping[Variable, Any]) -> tuple[Apply, str] | None:
    """The first node that makes NaN or Inf of finite operands, and what it makes, if there is one."""
    values = node_values(graph, known)
    for node in graph.toposort():
        if node.op.lazy or any(output not in values for output in node.outputs):
            continue
        operands = evaluate(node.inputs, values)
        if any(_bad(operand) for operand in operands):
            continue
        bad = next((text for output in node.outputs if (text := _bad(values[output]))), "")
        if bad:
            return node, bad
    return None


def _bad(value: Any) -> str:
    """What is not finite in a value, in words."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return ""
    nans, infinite = int(np.isnan(value).sum()), int(np.isinf(value).sum())
    parts = [f"{count} {name}" for count, name in ((nans, "NaN"), (infinite, "Inf")) if count]
    return " and ".join(parts)


def guard(graph: FunctionGraph, known: Mapping[Variable, Any], results: Values) -> None:
    """Raise DebugError, naming the first bad node and the user's line, where results are NaN or Inf.

    NaN and Inf that came in with the inputs are no error.
    """
    if not any(map(_bad, results)):
        return
    found = first_bad_node(graph, known)
    if found is not None:
        node, bad = found
        types = [variable.type for variable in node.inputs]
        raise DebugError(describe(str(node.op), types, f"it makes {bad} of finite operands", node.where))
