"""From a function of printed loops to machine code, by a pipeline of numba's that does less."""
