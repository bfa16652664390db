"""What the algebra found, for reports."""

from __future__ import annotations

from typing import Literal

from esat.base.records import record

FOUND = "algebra-found"
"""The table that says of classes which finding they owe a form to: the number of the first."""

FindingKind = Literal["equal", "constant", "form"]
"""Two parts of a graph are equal; a part is a constant; a part has a form with fewer operations."""


@record(frozen=True, slots=True)
class Finding:
    """An equality that no rule derived.

    Attributes
    ----------
    kind
        What it is about.
    written
        The smallest form there was.
    found
        The other form.
    before, after
        Operations of both, down to what is no arithmetic.
    places
        Parts of the graph that it was found of, alike up to what stands at the ends of the forms: these are
        written down as in the first.
    """

    kind: FindingKind
    written: str
    found: str
    before: int
    after: int
    places: int = 1

    def __str__(self) -> str:
        where = f", in {self.places} places like this" if self.places > 1 else ""
        return f"{self.written} = {self.found}: {self.before} operations, {self.after} now{where}"
