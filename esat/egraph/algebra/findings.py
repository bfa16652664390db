"""What the algebra found, for reports."""

from __future__ import annotations

from typing import Literal

from esat.records import record

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
    """

    kind: FindingKind
    written: str
    found: str
    before: int
    after: int

    def __str__(self) -> str:
        return f"{self.written} = {self.found}: {self.before} operations, {self.after} now"
