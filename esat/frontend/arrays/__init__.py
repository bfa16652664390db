"""Arrays that are made, put together, taken apart and reshaped, under NumPy's names."""
