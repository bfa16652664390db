"""Soundness: rules tried on samples, e-graphs checked against the values of their e-nodes.

In processing order: ``statement`` reads a rule as equalities under guards; ``situation`` draws dtypes
(``dtype_plans``), shapes and literals (``term_shapes``, ``dimensions``) under which it fires, and builds both
sides (``construction``); ``samples`` draws arrays; ``term_evaluation`` computes the sides, and what rounding
may do to them; ``judging`` compares them, ``derivation`` looks for facts that would leak; ``check`` does it
all for a set of rules and gives a ``gate_report``. ``firing`` tells whether a rule fires at all, ``oracle``
compares all e-nodes and facts of a saturated e-graph with the values of its classes.
"""

from esat.tools.soundness.check import check
from esat.tools.soundness.gate_report import Failure, RuleVerdict, SampledPoint, SoundnessReport

__all__ = ["Failure", "RuleVerdict", "SampledPoint", "SoundnessReport", "check"]
