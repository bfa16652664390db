"""Linear algebra: matrices in the last two axes, axes before them are a batch."""
