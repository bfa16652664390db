"""PyTensor graphs, and with them PyMC's models, compiled by esat.

Importing it registers two modes with PyTensor: ``pytensor.function(inputs, outputs, mode="ESAT")`` compiles
the graph as it was written, ``"ESAT_AFTER"`` what PyTensor's rewrites make of it. It needs PyTensor
(``pip install esat[pytensor]``).

============ =====================================================================
steps        what rules are given, and the names of ops
types        types and constants
translation  builds a graph's nodes by a table of rules
rules        the table; its parts are scalars, arrays, indexing, reductions, matrices, special, draws, control
foreign      ops without a rule: PyTensor's own code, as a step of the program; the report that names them
linker       what PyTensor compiles with, and the two modes
nutpie       PyMC's models for nutpie, as C functions; imported when ``nutpie_model`` is asked for
============ =====================================================================
"""

from __future__ import annotations

import importlib
from typing import Any

from esat.frontend.pytensor.conversion import from_pytensor
from esat.frontend.pytensor.linker import ESAT, ESAT_AFTER, ESATLinker, register
from esat.frontend.pytensor.rules import RULES

__all__ = ["ESAT", "ESAT_AFTER", "RULES", "ESATLinker", "from_pytensor"]

register()


def __getattr__(name: str) -> Any:
    """``nutpie_model``: its module needs PyMC and nutpie, which nothing else here does."""
    if name == "nutpie_model":
        return importlib.import_module("esat.frontend.pytensor.nutpie").nutpie_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
