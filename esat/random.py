"""Random numbers, under the names of the methods of ``numpy.random.Generator``.

A draw is a function of a generator's state, which gives the state after it and the sample. A ``RandomStream``
keeps track of states.
"""

from __future__ import annotations

from esat.frontend.elements import random as _functions
from esat.frontend.elements.random import *  # noqa: F403

__all__ = _functions.__all__
