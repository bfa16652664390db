"""Variants: further programs of one compiled function, each faster for some sizes.

They are candidates for the ways of calls (:mod:`esat.runtime.entry.dispatch`). Looking for a better program,
and compiling it, wait until calls of these sizes have cost as much as that would ("ski rental": at most
twice the cost of knowing in advance how many calls there will be). The costs are predictions, not times, so
that the same calls lead to the same programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import inf

from esat.base.records import record
from esat.errors import ShapeError
from esat.extract.extraction import Extraction
from esat.extract.prices.class_values import Hints
from esat.extract.prices.expected_shapes import Expected
from esat.extract.resize import Resizing, SizeClass, cost_under, shapes_text
from esat.graph import TensorType, Variable
from esat.runtime.entry.dispatch import CallsLeft, Run, Way
from esat.runtime.linked import Build, Linked

COMPILE_SECONDS = 0.1
"""What compiling a further program is taken to cost."""
EXTRACT_SECONDS = 2.0e-5
"""What extraction is taken to cost for each e-node."""
SMALLEST_GAIN = 5.0e-6
"""Predicted seconds of a call that another program must save: a call through it costs one or two more."""
LEAST_RATIO = 1.1
"""Predicted time of the present program against a new one's, from which on this is believed to be faster."""
KNOWN_CLASSES = 256


@record(frozen=True, eq=False)
class Variant:
    """A further program.

    Attributes
    ----------
    shapes
        Shapes of the inputs it was chosen for; None for those that are no tensors.
    seconds, first_seconds
        Predicted time of a call with these shapes: its own, and the first program's.
    executable
        The program.
    """

    shapes: Expected
    seconds: float
    first_seconds: float
    executable: Linked = field(repr=False)
    extraction: Extraction = field(repr=False)

    def __str__(self) -> str:
        return (
            f"for {shapes_text(self.shapes)}: predicted {self.seconds * 1e6:.1f} us,"
            f" the first program {self.first_seconds * 1e6:.1f} us"
        )


class _Sizes:
    """What is known of one class of sizes.

    Attributes
    ----------
    wait
        Calls until the next step pays.
    found
        The better program, chosen but not compiled.
    settled
        Whether the decision stands: for ``variant``, or for the first program if that is None.
    """

    __slots__ = ("expected", "first_seconds", "found", "hints", "settled", "variant", "wait")

    def __init__(self, expected: Expected, hints: Hints) -> None:
        self.expected = expected
        self.hints = hints
        self.wait = CallsLeft()
        self.first_seconds = 0.0
        self.found: Extraction | None = None
        self.settled = False
        self.variant: Variant | None = None


class Variants:
    """The further programs of one Executable.

    Parameters
    ----------
    resizing
        Chooses programs.
    build
        Compiles them.
    limit
        Programs kept beside the first; the one that was chosen longest ago is dropped for a new one.
    """

    def __init__(self, resizing: Resizing, build: Build, limit: int) -> None:
        self._resizing = resizing
        self._build = build
        self._limit = limit
        self._classes: dict[SizeClass, _Sizes] = {}
        self._programs: list[Variant] = []

    def attach(
        self,
        inputs: Sequence[Variable],
        leaves: Sequence[Variable],
        forget: Callable[[Callable[[Way], bool]], None],
        driver_seconds: float = 0.0,
    ) -> None:
        """Tell of the first program.

        Parameters
        ----------
        inputs, leaves
            Its inputs, and the variables whose shapes make a key.
        forget
            Drops the records of shapes whose way fits a test.
        driver_seconds
            What a call takes longer than predicted as long as it is not settled whether another program is
            better, before which no native function is made.
        """
        self._forget, self._driver_seconds = forget, driver_seconds
        places = {variable: place for place, variable in enumerate(leaves)}
        self._places = [
            places[variable] if isinstance(variable.type, TensorType) else None for variable in inputs
        ]

    @property
    def programs(self) -> tuple[Variant, ...]:
        """The programs compiled and kept, least recently chosen first."""
        return tuple(self._programs)

    def offer(self, way: Way) -> Run | CallsLeft | None:
        """The program for these shapes, where another one than the first is better."""
        expected = tuple(None if place is None else way.key[place] for place in self._places)
        try:
            hints = self._resizing.hints(expected)
        except ShapeError:
            # Sizes that the graph needs equal differ: they may, in a branch that is not taken.
            return None
        sizes = self._sizes(expected, hints)
        self._decide(sizes)
        if not sizes.settled:
            return sizes.wait
        if sizes.variant is None:
            return None
        self._touch(sizes.variant)
        return sizes.variant.executable.run

    def _sizes(self, expected: Expected, hints: Hints) -> _Sizes:
        size_class = self._resizing.size_class(hints)
        known = self._classes.pop(size_class, None)
        if known is None:
            known = _Sizes(expected, hints)
            chosen = self._resizing.first.selection.chosen
            known.first_seconds = self._resizing.seconds(chosen, hints)
            if known.first_seconds <= SMALLEST_GAIN or self._resizing.is_first_for(hints):
                known.settled = True
            elif known.first_seconds < inf:
                extraction = EXTRACT_SECONDS * self._resizing.first.graph.arrays.node_count
                known.wait.until(extraction, known.first_seconds, self._driver_seconds)
            while len(self._classes) >= KNOWN_CLASSES:
                del self._classes[next(iter(self._classes))]
        self._classes[size_class] = known
        return known

    def _decide(self, sizes: _Sizes) -> None:
        """Take the next step for sizes whose calls have paid for it: look for a program, then compile it."""
        if sizes.settled or sizes.wait.calls > 0:
            return
        if sizes.found is None:
            self._look(sizes)
        if sizes.found is not None and sizes.wait.calls <= 0 and not sizes.settled:
            self._compile(sizes, sizes.found)

    def _look(self, sizes: _Sizes) -> None:
        """Extract again; settle if a program that is there will do, else say how many calls to wait."""
        found = self._resizing.extract(sizes.hints)
        sizes.first_seconds = cost_under(found, self._resizing.first.selection.chosen)
        known: list[tuple[float, Variant | None]] = [(sizes.first_seconds, None)]
        known += [
            (cost_under(found, variant.extraction.selection.chosen), variant) for variant in self._programs
        ]
        seconds, best = min(known, key=lambda entry: entry[0])
        if not self._is_worth_it(sizes.first_seconds, seconds):
            seconds, best = known[0]
        if self._is_worth_it(seconds, found.seconds):
            sizes.found = found
            sizes.wait.until(COMPILE_SECONDS, seconds - found.seconds, self._driver_seconds)
        else:
            sizes.settled, sizes.variant = True, best

    @staticmethod
    def _is_worth_it(present: float, new: float) -> bool:
        return present > LEAST_RATIO * new and present - new >= SMALLEST_GAIN

    def _compile(self, sizes: _Sizes, found: Extraction) -> None:
        executable = self._build(self._resizing.program(found))
        variant = Variant(sizes.expected, found.seconds, sizes.first_seconds, executable, found)
        while len(self._programs) >= self._limit:
            self._drop(self._programs.pop(0))
        self._programs.append(variant)
        sizes.settled, sizes.variant, sizes.found = True, variant, None

    def _drop(self, variant: Variant) -> None:
        """Forget a program, and the decisions for it: they are made anew where its sizes return."""
        for key, sizes in list(self._classes.items()):
            if sizes.variant is variant:
                del self._classes[key]
                sizes.variant = None
        self._forget(lambda way: way.run == variant.executable.run)

    def _touch(self, variant: Variant) -> None:
        self._programs = [*(one for one in self._programs if one is not variant), variant]

    def __repr__(self) -> str:
        return "\n".join(map(str, self._programs)) or "no further program"
