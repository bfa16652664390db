"""Autotuning: programs that are predicted to take about the same time are compiled and timed.

What was found is remembered, in the process and on disk, by the e-graph, the sizes and the machine: the next
compilation of the same graph takes the winner without timing anything.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from esat.base.records import record
from esat.base.storage import DiskStore, default_directory, digest_of, digest_of_sources
from esat.codegen.ground.host import host_target
from esat.egraph.language.content_keys import code_digest
from esat.errors import CompileError, EsatError
from esat.extract.arrays import IntArray
from esat.extract.choice.refine import Editor, Move, single_moves
from esat.extract.choice.selection import Problem, Selection
from esat.extract.extraction import Extraction
from esat.extract.prices.machine import MachineProfile
from esat.extract.verify import verify_selection
from esat.graph import FunctionGraph, TensorType
from esat.graph.op import Array

if TYPE_CHECKING:
    from esat.runtime.executable import Executable

WITHIN = 0.1
"""Programs predicted to take at most this share longer are timed."""
CANDIDATES = 8
"""Changes of the predicted best program that are tried, at most."""
BELIEVED = 0.97
"""Measured time against that of the predicted best, up to which another program is believed to be faster."""
_SECONDS = 0.5  # for timing all candidates, beside compiling them
_SHORTEST = 2.0e-4  # of one timing: a shorter program runs several times in it
_MOST_ROUNDS = 40


@record(frozen=True)
class Tuning:
    """What autotuning did.

    Attributes
    ----------
    seconds
        Measured seconds of each program: the predicted best first, then the others in the order in which they
        were tried. Empty where the winner was remembered, or nothing could be tried.
    winner
        Place of the winner among them.
    remembered
        Whether an earlier compilation had found it.
    """

    seconds: tuple[float, ...] = ()
    winner: int = 0
    remembered: bool = False

    def __str__(self) -> str:
        if self.remembered:
            return "autotune: the winner of an earlier compilation"
        if len(self.seconds) < 2:
            return "autotune: no other program is predicted to take about as long"
        first, best = self.seconds[0], self.seconds[self.winner]
        return (
            f"autotune: {len(self.seconds)} programs timed; the predicted best takes {first * 1e6:.1f} us,"
            f" the winner {best * 1e6:.1f} us"
        )


class Tuner:
    """Chooses between programs by timing them.

    Parameters
    ----------
    program
        The graph of an extraction.
    build
        Compiles a graph into a program that changes neither its arguments nor shared variables.
    machine
        The machine's profile: part of the key.
    inputs
        Number of the graph's inputs.
    settings
        What else decides how programs are compiled, as text.
    samples
        One array an input, to time programs with; None for random ones.
    """

    def __init__(
        self,
        program: Callable[[Extraction], FunctionGraph],
        build: Callable[[FunctionGraph], Executable],
        machine: MachineProfile,
        inputs: int,
        settings: str,
        samples: Sequence[Any] | None = None,
    ) -> None:
        self._inputs = inputs
        self._program = program
        self._build = build
        self._about = [repr(machine), settings, _environment()]
        self._samples = samples

    def best(self, extraction: Extraction) -> tuple[Extraction, Tuning]:
        """The fastest program near the predicted best one, and what was done to find it."""
        key = digest_of([*self._about, *_described(extraction)])
        remembered = winners().find(key, extraction)
        if remembered is not None:
            return remembered, Tuning(remembered=True)
        found, tuning = self._search(extraction)
        if tuning.seconds:
            winners().keep(key, found.selection.chosen)
        return found, tuning

    def _search(self, extraction: Extraction) -> tuple[Extraction, Tuning]:
        arrays, roots = extraction.graph.arrays, extraction.graph.roots
        costs = extraction.costs + extraction.penalties
        moves = single_moves(arrays, costs, roots, extraction.selection, WITHIN * extraction.seconds)
        arguments = (
            self._samples if self._samples is not None else example_arguments(extraction, self._inputs)
        )
        if not moves or arguments is None:
            return extraction, Tuning()
        editor = Editor(Problem.of(arrays, costs, roots))
        selections = [extraction.selection]
        kept: list[Move] = []
        for move in moves:
            changed = editor.apply(extraction.selection, move)
            if changed is not None and not _among(changed, selections):
                selections.append(changed)
                kept.append(move)
            if len(kept) == CANDIDATES:
                break
        timed = [self._runner(extraction, selection, arguments) for selection in selections]
        seconds = _timed(timed)
        if seconds[0] == inf:
            return extraction, Tuning()
        selections, seconds = self._combined(extraction, editor, selections, seconds, kept, arguments)
        fastest = int(np.argmin(seconds))
        winner = fastest if seconds[fastest] <= BELIEVED * seconds[0] else 0
        return replace(extraction, selection=selections[winner]), Tuning(tuple(seconds), winner)

    def _combined(
        self,
        extraction: Extraction,
        editor: Editor,
        selections: list[Selection],
        seconds: list[float],
        moves: Sequence[Move],
        arguments: Sequence[Any],
    ) -> tuple[list[Selection], list[float]]:
        """Also all changes together that pay one by one: they may be of different parts of the program."""
        paying = [place for place in np.argsort(seconds) if seconds[place] <= BELIEVED * seconds[0]]
        together = extraction.selection
        for place in paying:
            changed = editor.apply(together, moves[place - 1])
            together = changed if changed is not None else together
        if len(paying) > 1 and not _among(together, selections):
            best = selections[paying[0]]
            pair = [self._runner(extraction, selection, arguments) for selection in (best, together)]
            alone, combined = _timed(pair)
            ratio = combined / alone
            selections, seconds = [*selections, together], [*seconds, ratio * seconds[paying[0]]]
        return selections, seconds

    def _runner(
        self, extraction: Extraction, selection: Selection, arguments: Sequence[Any]
    ) -> Callable[[], object] | None:
        """A program ready to be timed; None where it does not run with these arguments."""
        executable = self._build(self._program(replace(extraction, selection=selection)))
        try:
            executable(*arguments)
        except (EsatError, ArithmeticError, ValueError, IndexError, np.linalg.LinAlgError):
            return None  # random arguments need not be admissible: no matrix to be factored, say
        return functools.partial(executable, *arguments)


def _among(selection: Selection, others: Sequence[Selection]) -> bool:
    return any(np.array_equal(selection.chosen, other.chosen) for other in others)


def _timed(runners: Sequence[Callable[[], object] | None]) -> list[float]:
    """Best time of each, in turns, so that a slow moment of the machine meets all of them."""
    best = [inf] * len(runners)
    repeats = [1] * len(runners)
    for place, run in enumerate(runners):
        if run is not None:
            best[place] = _elapsed(run, 1)
            repeats[place] = max(1, int(_SHORTEST / max(best[place], 1e-9)))
    deadline = perf_counter() + _SECONDS
    for number in range(_MOST_ROUNDS):
        if number >= 3 and perf_counter() > deadline:
            break
        for place, run in enumerate(runners):
            if run is not None:
                best[place] = min(best[place], _elapsed(run, repeats[place]))
    return best


def _elapsed(run: Callable[[], object], repeats: int) -> float:
    begin = perf_counter()
    for _ in range(repeats):
        run()
    return (perf_counter() - begin) / repeats


def example_arguments(extraction: Extraction, count: int) -> list[Array] | None:
    """Random arrays for the first ``count`` inputs, of the sizes an extraction was made for.

    None where an input is no tensor, or its sizes are not known.
    """
    graph = extraction.graph
    rng = np.random.default_rng(0)
    found: dict[int, Array] = {}
    for number, term in enumerate(graph.terms.terms):
        if term.constructor == "In":
            position = int(term.attributes[0])
            type = graph.terms.inputs[position].type
            value = extraction.values[int(graph.arrays.term_class[number])]
            if position >= count or not isinstance(type, TensorType) or value is None:
                continue
            shape = tuple(int(size) for size in value.shape)
            if len(shape) == type.ndim:
                found[position] = _example(rng, shape, type.numpy_dtype)
    return [found[position] for position in range(count)] if set(range(count)) <= set(found) else None


def _example(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if dtype.kind in "biu":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.uniform(0.5, 1.5, shape).astype(dtype)


class Winners:
    """Selections that won, by key.

    Parameters
    ----------
    store
        Where they are beside memory.
    """

    def __init__(self, store: DiskStore) -> None:
        self._store = store
        self._known: dict[str, IntArray] = {}

    def find(self, key: str, extraction: Extraction) -> Extraction | None:
        """The extraction with the selection that won, if one is known that fits the e-graph."""
        chosen = self._known.get(key)
        if chosen is None:
            chosen = self._store.load(key, lambda payload: np.frombuffer(payload, "<i8").astype(np.int64))
        if chosen is None:
            return None
        costs = extraction.costs + extraction.penalties
        live = chosen[chosen >= 0]
        if len(live) and live.max() >= len(costs):
            return None
        cost = float(costs[live].sum())
        selection = replace(extraction.selection, chosen=chosen, cost=cost, method="autotune")
        try:
            verify_selection(extraction.graph.arrays, costs, extraction.graph.roots, selection)
        except CompileError:
            return None
        self._known[key] = chosen
        return replace(extraction, selection=selection)

    def keep(self, key: str, chosen: IntArray) -> None:
        """Remember a selection."""
        self._known[key] = chosen
        self._store.save(key, np.ascontiguousarray(chosen, "<i8").tobytes())


@functools.cache
def winners() -> Winners:
    """Those of the user's cache directory."""
    return Winners(DiskStore(default_directory(), "choice"))


@functools.cache
def _environment() -> str:
    """Stands for the code that compiles and runs programs, and the machine."""
    package = Path(__file__).resolve().parent.parent
    rooms = [digest_of_sources(package / room) for room in ("phases", "codegen", "runtime")]
    return " ".join([code_digest(), *rooms, platform.platform(), host_target().digest, np.__version__])


def _described(extraction: Extraction) -> list[str]:
    """The e-graph, what is asked of it, and the sizes, as text."""
    graph, arrays = extraction.graph, extraction.graph.arrays
    indices = (arrays.operator, arrays.class_of, arrays.operand_start, arrays.operands, arrays.attribute)
    facts: Mapping[str, Mapping[int, object]] = arrays.facts
    return [
        *(vector.tobytes().hex() for vector in (*indices, arrays.term_class)),
        repr((arrays.operator_names, arrays.attribute_values, graph.roots)),
        repr([(name, sorted(column.items())) for name, column in sorted(facts.items())]),
        repr([(term.constructor, term.attributes) for term in graph.terms.terms]),
        repr([str(opaque.op) for opaque in graph.terms.opaque]),
        repr(extraction.values),
    ]
