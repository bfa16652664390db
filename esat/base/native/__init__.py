"""Loops of the compiler itself as machine code: plain functions on arrays, translated to LLVM.

Numba would do, and does for the kernels of programs, but it takes ten seconds to compile the loops of
extraction and half a second to load them again. What is needed here is small: integers, floats and arrays.
``translate`` turns functions of that subset into LLVM's language within a tenth of a second; ``library``
compiles, keeps the object code on disk and calls it. The functions remain Python, and tests run both.
"""

from esat.base.native.annotations import Arrays, Floats, Integers
from esat.base.native.expression_text import Primitive
from esat.base.native.library import Library

__all__ = ["Arrays", "Floats", "Integers", "Library", "Primitive"]
