"""What became of the ops of a PyTensor graph."""

from __future__ import annotations

from collections.abc import Mapping

from esat.records import record


@record(frozen=True)
class TranslationReport:
    """Which ops of a graph PyTensor runs.

    Attributes
    ----------
    count
        Of nodes, those of inner graphs among them.
    foreign
        What PyTensor runs: name of an op -> how many nodes.
    reasons
        Name of an op -> why, for the first of its nodes.
    """

    count: int
    foreign: Mapping[str, int]
    reasons: Mapping[str, str]

    def __str__(self) -> str:
        total = sum(self.foreign.values())
        if not total:
            return f"0 of {self.count} ops by PyTensor"
        names = [name if times == 1 else f"{name} ({times})" for name, times in sorted(self.foreign.items())]
        return f"{total} of {self.count} ops by PyTensor: {', '.join(names)}"
