"""Predicted seconds of e-nodes, and what they depend on."""
