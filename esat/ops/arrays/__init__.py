"""Ops that make, view, join and sort arrays."""
