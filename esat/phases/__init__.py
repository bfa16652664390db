"""Classic phases on the extracted graph: fusion, one pass over matrices, order of steps, memory."""
