"""Local optimizers for what the rule files cannot say: indices, sizes, joins and writes to parts of arrays.

Each contributes equalities to saturation and replaces nodes in the greedy modes. ``table`` lists them all.
"""

from esat.classic.rewriting.table import LIFTS, LOCALS

__all__ = ["LIFTS", "LOCALS"]
