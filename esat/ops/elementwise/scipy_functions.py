"""Functions of SciPy, imported at their first call: the import takes longer than all of esat's."""

from __future__ import annotations

import importlib
from typing import Any

from esat.records import record


@record(frozen=True, slots=True)
class Special:
    """A function of ``scipy.special`` by name."""

    name: str

    def __call__(self, *operands: Any) -> Any:
        return getattr(importlib.import_module("scipy.special"), self.name)(*operands)
