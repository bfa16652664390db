"""How rules are selected and applied, beside their tags."""

from __future__ import annotations

from dataclasses import field

from esat.base.records import record
from esat.classic.rules.rule_rewriter import RuleContext
from esat.egraph.language.constructors import op_signature
from esat.egraph.preparation.rule_database import RuleDatabase
from esat.extract.prices.expected_shapes import Expected
from esat.extract.prices.lasting import Repeated
from esat.extract.prices.machine import MachineProfile
from esat.extract.verdicts import Accuracy
from esat.rules.language.rule import RuleFile, Soundness


@record(frozen=True)
class RuleTexts:
    """What users' rules a compilation takes beside the package's.

    Attributes
    ----------
    extra
        Texts of this compilation.
    users
        What was added to the database.
    """

    extra: tuple[RuleFile, ...]
    users: tuple[RuleFile, ...]


@record(frozen=True)
class RuleOptions:
    """How rules are selected and applied, beside their tags.

    Attributes
    ----------
    soundness
        The loosest class admitted.
    extra
        Rule files of one compilation.
    machine
        What the cost model prices replacements with.
    shapes
        Expected shapes of the graph's inputs, by position.
    users
        What users added to the database; None: what is there now.
    accuracy
        What forms are chosen by before time.
    repeated
        Of the body of a loop, what is computed once.
    """

    soundness: Soundness = "real"
    extra: tuple[RuleFile, ...] = ()
    machine: MachineProfile = field(default_factory=MachineProfile)
    shapes: Expected = ()
    users: tuple[RuleFile, ...] | None = None
    accuracy: Accuracy = "best"
    repeated: Repeated | None = None

    def context(self, database: RuleDatabase) -> RuleContext:
        """What rules of ops that only Python types share, those of a database among them."""
        added = database.users_files() if self.users is None else self.users
        return RuleContext(op_signature(), [file.file for file in added])
