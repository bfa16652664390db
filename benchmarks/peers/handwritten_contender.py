"""What somebody would write who knows NumPy, SciPy, their BLAS and linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.cases import Case
from benchmarks.peers.contenders import Unsupported
from benchmarks.peers.laab_cases import Expression

VERSION = np.__version__


def prepare(case: Case, dtype: str) -> Callable[..., Any]:
    if not isinstance(case, Expression):
        raise Unsupported("nobody wrote it by hand")
    return case.by_hand
