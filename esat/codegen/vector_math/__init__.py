"""Branch-free elementary functions as LLVM IR, which the loop vectoriser turns into SIMD code."""

from esat.codegen.vector_math.function_table import FUNCTIONS, VectorFunction
from esat.codegen.vector_math.intrinsics import function

__all__ = ["FUNCTIONS", "VectorFunction", "function"]
