"""A first program in an installed esat: imported, compiled, run, and its gradient; beside NumPy's values.

    python tools/smoke.py

Exit status 1 where a value is wrong. It needs what esat requires and nothing else; ``.ci/supported`` runs it.
"""

from __future__ import annotations

import platform
import sys

import numpy as np

import esat


def main() -> int:
    """Compile and run a small program; print what ran where."""
    x, w = esat.matrix("x"), esat.vector("w")
    loss = (esat.tanh(x @ w) ** 2).mean()
    function = esat.compile(esat.Graph([x, w], [loss, esat.grad(loss, w)]))
    rng = np.random.default_rng(1)
    data, weights = rng.normal(size=(50, 3)), rng.normal(size=3)
    value, slope = function(data, weights)
    outer = np.tanh(data @ weights)
    expected = (outer**2).mean(), data.T @ (2 * outer * (1 - outer**2)) / len(data)
    right = np.allclose(value, expected[0]) and np.allclose(slope, expected[1])
    state = "runs" if right else f"is wrong: {value}, {slope} instead of {expected}"
    print(f"esat {esat.__version__} {state}: Python {platform.python_version()}, NumPy {np.__version__}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
