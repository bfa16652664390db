"""What is computed row by row between products with one matrix, or through several layers."""
