"""Functions of elements, and of the elements along axes, under NumPy's names."""
