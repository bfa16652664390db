"""Classic phases on the extracted graph: fusion, order of steps, memory."""
