"""Products with sparse matrices, and sums over them."""
