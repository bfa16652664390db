"""Gradients, tangents, batches, and what they are taken of."""
