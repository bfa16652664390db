"""Loops as ops: a body that is a graph of its own, and how often it runs."""
