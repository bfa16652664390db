"""Optimizing a graph: the classic optimizers, the e-graph between them, and what is extracted of it."""
