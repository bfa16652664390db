"""Variants: further programs of one compiled function, each faster for some sizes.

Every program is right for every legal shape; which one runs decides only how fast. The choice is made where
shapes are seen for the first time and stands in the record of these shapes, so that a later call pays one
test. Looking for a better program, and compiling it, wait until calls of these sizes have cost as much as
that would ("ski rental": at most twice the cost of knowing in advance how many calls there will be). The
costs are predictions, not times, so that the same calls lead to the same programs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import field
from math import inf
from typing import TYPE_CHECKING, Any

from esat.errors import ShapeError
from esat.extract.extraction import Extraction
from esat.extract.resize import Resizing, SizeClass, cost_under, shapes_text
from esat.extract.shapes import Expected
from esat.extract.values import Hints
from esat.forks import GATE
from esat.graph import FunctionGraph, TensorType, Variable
from esat.records import record
from esat.runtime.buffers import ScratchFrames
from esat.runtime.row_blocks import InBlocks

if TYPE_CHECKING:
    from esat.runtime.executable import Executable

COMPILE_SECONDS = 0.1
"""What compiling a further program is taken to cost."""
EXTRACT_SECONDS = 2.0e-5
"""What extraction is taken to cost for each e-node."""
SMALLEST_GAIN = 5.0e-6
"""Predicted seconds of a call that another program must save: a call through it costs one or two more."""
LEAST_RATIO = 1.1
"""Predicted time of the present program against a new one's, from which on this is believed to be faster."""
KNOWN_CLASSES = 256

Key = tuple[tuple[int, ...], ...]
Build = Callable[[FunctionGraph], "Executable"]


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
    executable: Executable = field(repr=False)
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
        self.wait = 0
        self.first_seconds = 0.0
        self.found: Extraction | None = None
        self.settled = False
        self.variant: Variant | None = None


class _Counted:
    """Stands in for the first program while calls of its sizes are counted."""

    __slots__ = ("_frames", "_key", "_owner", "_sizes")

    def __init__(self, owner: Variants, sizes: _Sizes, frames: ScratchFrames, key: Key) -> None:
        self._owner = owner
        self._sizes = sizes
        self._frames = frames
        self._key = key

    @property
    def calls_left(self) -> int:
        """Calls until the next step pays, the next one included."""
        return max(self._sizes.wait, 1)

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        sizes, frames = self._sizes, self._frames
        sizes.wait -= 1
        if sizes.wait <= 0:
            self._owner.decide(sizes)
        if sizes.settled:
            frames.elsewhere = None if sizes.variant is None else sizes.variant.executable.run
            if sizes.variant is None and self._owner.in_blocks is not None:
                self._owner.in_blocks.choose(self._key, frames)
            return self._owner.first(*arguments, out=out)
        frames.elsewhere = None
        try:
            return self._owner.first(*arguments, out=out)
        finally:
            frames.elsewhere = self


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

    Attributes
    ----------
    in_blocks
        What may run where the first program is the best.
    """

    def __init__(self, resizing: Resizing, build: Build, limit: int) -> None:
        self.in_blocks: InBlocks | None = None
        self._resizing = resizing
        self._build = build
        self._limit = limit
        self._classes: dict[SizeClass, _Sizes] = {}
        self._programs: list[Variant] = []
        self._lock = threading.RLock()

    def attach(
        self,
        inputs: Sequence[Variable],
        leaves: Sequence[Variable],
        first: Callable[..., Any],
        forget: Callable[[Callable[[ScratchFrames], bool]], None],
    ) -> None:
        """Tell of the first program.

        Parameters
        ----------
        inputs, leaves
            Its inputs, and the variables whose shapes make a key.
        first
            Runs it, or what stands in for it.
        forget
            Drops the records of shapes whose frames fit a test.
        """
        self.first = first
        self._forget = forget
        places = {variable: place for place, variable in enumerate(leaves)}
        self._places = [
            places[variable] if isinstance(variable.type, TensorType) else None for variable in inputs
        ]

    @property
    def programs(self) -> tuple[Variant, ...]:
        """The programs compiled and kept, least recently chosen first."""
        return tuple(self._programs)

    def choose(self, key: Key, frames: ScratchFrames) -> None:
        """Decide for shapes seen for the first time what runs in place of the first program, if anything."""
        expected = tuple(None if place is None else key[place] for place in self._places)
        try:
            hints = self._resizing.hints(expected)
        except ShapeError:
            # Sizes that the graph needs equal differ: they may, in a branch that is not taken.
            return
        with self._lock:
            sizes = self._sizes(expected, hints)
            if not sizes.settled and sizes.wait <= 0:
                self.decide(sizes)
            if not sizes.settled:
                frames.elsewhere = _Counted(self, sizes, frames, key)
            elif sizes.variant is not None:
                self._touch(sizes.variant)
                frames.elsewhere = sizes.variant.executable.run

    def _sizes(self, expected: Expected, hints: Hints) -> _Sizes:
        size_class = self._resizing.size_class(hints)
        known = self._classes.pop(size_class, None)
        if known is None:
            known = _Sizes(expected, hints)
            chosen = self._resizing.first.selection.chosen
            known.first_seconds = self._resizing.seconds(chosen, hints)
            if known.first_seconds <= SMALLEST_GAIN:
                known.settled = True
            elif known.first_seconds < inf:
                extraction = EXTRACT_SECONDS * self._resizing.first.graph.arrays.node_count
                known.wait = int(extraction / known.first_seconds)
            while len(self._classes) >= KNOWN_CLASSES:
                del self._classes[next(iter(self._classes))]
        self._classes[size_class] = known
        return known

    def decide(self, sizes: _Sizes) -> None:
        """Take the next step for sizes whose calls have paid for it: look for a program, then compile it."""
        with GATE.busy(), self._lock:
            if sizes.settled or sizes.wait > 0:
                return
            if sizes.found is None:
                self._look(sizes)
            if sizes.found is not None and sizes.wait <= 0 and not sizes.settled:
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
            sizes.wait = int(COMPILE_SECONDS / (seconds - found.seconds))
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
        self._forget(lambda frames: frames.elsewhere == variant.executable.run)

    def _touch(self, variant: Variant) -> None:
        self._programs = [*(one for one in self._programs if one is not variant), variant]

    def __repr__(self) -> str:
        return "\n".join(map(str, self._programs)) or "no further program"


def calls_to_wait(frames: ScratchFrames) -> int | None:
    """Calls with the shapes of some frames after which a better program is looked for.

    0 where the first one runs for good, None where another one runs.
    """
    if frames.elsewhere is None:
        return 0
    return frames.elsewhere.calls_left if isinstance(frames.elsewhere, _Counted) else None


@record(frozen=True, eq=False)
class FurtherPrograms:
    """What can run in place of the first program of an Executable.

    Attributes
    ----------
    variants
        Programs that other rules make; None for none.
    in_blocks
        The first program with layers over rows in blocks; None where it has no such layers.
    """

    variants: Variants | None = None
    in_blocks: InBlocks | None = None

    def __bool__(self) -> bool:
        return self.variants is not None or self.in_blocks is not None

    def attach(
        self,
        inputs: Sequence[Variable],
        leaves: Sequence[Variable],
        first: Callable[..., Any],
        forget: Callable[[Callable[[ScratchFrames], bool]], None],
    ) -> None:
        """Tell of the first program; see :meth:`Variants.attach`."""
        if self.variants is not None:
            self.variants.attach(inputs, leaves, first, forget)
            self.variants.in_blocks = self.in_blocks
        if self.in_blocks is not None:
            self.in_blocks.attach(inputs, leaves)

    def choose(self, key: Key, frames: ScratchFrames) -> None:
        """Decide for shapes seen for the first time what runs in place of the first program, if anything."""
        if self.variants is not None:
            self.variants.choose(key, frames)
        if self.in_blocks is not None:
            self.in_blocks.choose(key, frames)


FIRST_ALONE = FurtherPrograms()
