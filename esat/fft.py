"""Discrete Fourier transforms under the names of ``numpy.fft``."""

from __future__ import annotations

from esat.frontend.elements import fourier as _functions
from esat.frontend.elements.fourier import *  # noqa: F403

__all__ = _functions.__all__
