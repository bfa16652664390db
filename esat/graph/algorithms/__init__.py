"""Walks over graphs, copies, evaluation, and text forms."""
