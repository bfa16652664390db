"""Rules: the `.egg` files, their reader, the text macros, and the signature they are checked against.

`read_rules` turns a file into immutable `Rule` records, `esat.rules.language.rule_signature.check` checks
them against a `Signature`; `esat.egraph.preparation.rule_compiler` compiles them for the e-graph. How to
write rules is in README.md.

For users: `load(path_or_text)`, `add(text)`, `remove(name)`, `list(query)`, `show(name)`, and `check`,
which tries rules on samples. The database lives in `esat.egraph.preparation`, which admits texts, and `check`
in `esat.tools.soundness`; the package itself imports `esat.rules.language`.
"""

from typing import Any

from esat.egraph.preparation.rule_database import RULES, RuleDatabase
from esat.graph.calls.parameters import check_calls, check_methods
from esat.rules.language.macros import expand, permutation_axes, permutation_input_rank, permutation_word
from esat.rules.language.reader import Position, read_forms
from esat.rules.language.rule import SOUNDNESS_CLASSES, Rule, RuleFile, Ruleset, Soundness, read_rules
from esat.rules.language.rule_selection import PACKAGE_RULES
from esat.rules.language.rule_signature import Operator, Signature, declared_signature, elementwise

check_methods(RuleDatabase)
load = RULES.load
add = RULES.add
remove = RULES.remove
list = RULES.list
show = RULES.show

__all__ = [
    "PACKAGE_RULES", "RULES", "SOUNDNESS_CLASSES", "Operator", "Position", "Rule", "RuleDatabase",
    "RuleFile", "Ruleset", "Signature", "Soundness", "add", "declared_signature", "elementwise", "expand",
    "list", "load", "permutation_axes", "permutation_input_rank", "permutation_word", "read_forms",
    "read_rules", "remove", "show",
]  # fmt: skip


check_calls(globals(), __all__)


def __getattr__(name: str) -> Any:
    """`check`, from the room of soundness."""
    if name == "check":
        from esat.tools.soundness import check

        return check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
