"""Ways in: constructors, NumPy-named functions, gradients, shared variables and graphs to compile."""
