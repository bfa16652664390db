"""Rules: the `.egg` files, their reader, the text macros, and the signature they are checked against.

`read_rules` turns a file into immutable `Rule` records, `check` checks them against a `Signature`;
`esat.egraph.rule_compiler` compiles them for the e-graph. The laws of rule writing are in README.md.
"""

from esat.rules.macros import expand, permutation_axes, permutation_input_rank, permutation_word
from esat.rules.reader import Position, read_forms, show
from esat.rules.rule import SOUNDNESS_CLASSES, Rule, RuleFile, Ruleset, Soundness, read_rules
from esat.rules.signature import Operator, Signature, check, declared_signature, elementwise

__all__ = [
    "SOUNDNESS_CLASSES",
    "Operator",
    "Position",
    "Rule",
    "RuleFile",
    "Ruleset",
    "Signature",
    "Soundness",
    "check",
    "declared_signature",
    "elementwise",
    "expand",
    "permutation_axes",
    "permutation_input_rank",
    "permutation_word",
    "read_forms",
    "read_rules",
    "show",
]
