"""Ops that compute nothing: assumptions, and what derivatives are taken of."""
