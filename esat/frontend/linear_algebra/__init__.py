"""Products, and linear algebra under the names of NumPy and SciPy."""
