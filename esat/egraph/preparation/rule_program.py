"""Programs: which rules e-graphs are made with, and under what key e-graphs are kept.

Rules, ready to load, belong to :mod:`esat.egraph.preparation.prepare`, which is imported only once they are
needed: a process that finds its e-graphs on disk does without the whole engine.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property, lru_cache
from typing import Literal

from esat.base.records import record
from esat.base.storage import digest_of
from esat.egraph.language.constructors import op_signature
from esat.egraph.language.content_keys import program_digest
from esat.egraph.language.signature import Signature
from esat.graph.registry import registered_ops
from esat.rules.language.rule_selection import RuleSelection, is_of_package

PROGRAMS_KEPT = 8

EngineName = Literal["egglog", "esat"]
"""What runs rules: egglog, or esat's own engine for its language (:mod:`esat.engine`)."""

SUPERSEDED = "Superseded"
"""Prefix of the constructors that mark sums and products which a rule of a file subsumed.

The n-ary layer subsumes terms too, to match them no more; those stay as good as any other. What a
rule subsumes must not be computed again, so it leaves a twin of another name in its class.
"""


@record(frozen=True, eq=False)
class RuleProgram:
    """Everything an engine may hold before the terms of a graph.

    Attributes
    ----------
    signature
        Constructors of the term language.
    selection
        The rules.
    strict
        Whether floating-point sums and products are left in the order they were written.
    digest
        Stands for all of it, and for the code that makes e-graphs of it.
    engine
        What runs the rules; a program that esat's own engine does not know all of runs on egglog.
    rulesets
        Those that run, without the algebra of sums and products beside them; None: all, with it.
    """

    signature: Signature
    selection: RuleSelection
    strict: bool
    digest: str
    engine: EngineName = "esat"
    rulesets: frozenset[str] | None = None

    @property
    def has_algebra(self) -> bool:
        """Whether the algebra of sums and products runs between the rules."""
        return not self.strict and self.rulesets is None

    @cached_property
    def users_rules(self) -> frozenset[str]:
        """Names of the rules that do not come with esat."""
        rules = self.selection.rules
        return frozenset(rule.name for rule in rules if not is_of_package(rule.file))

    @cached_property
    def report_names(self) -> frozenset[str]:
        """What reports call the rules."""
        return frozenset(rule.report_name for rule in self.selection.rules)

    @property
    def constructors(self) -> tuple[str, ...]:
        """Tables whose rows are e-nodes."""
        return (*self.signature, "NarySum", "NaryProd")


_programs: OrderedDict[str, RuleProgram] = OrderedDict()


def program_for(
    selection: RuleSelection,
    strict: bool = False,
    engine: EngineName = "esat",
    rulesets: frozenset[str] | None = None,
) -> RuleProgram:
    """The program of a rule selection, or of some of its rule sets; the last few are remembered."""
    signature = signature_of_registered()
    digest = program_digest(selection, signature, strict, engine)
    if rulesets is not None:
        digest = digest_of([digest, *sorted(rulesets)])
    known = _programs.get(digest)
    if known is None:
        known = _programs[digest] = RuleProgram(signature, selection, strict, digest, engine, rulesets)
        while len(_programs) > PROGRAMS_KEPT:
            _programs.popitem(last=False)
    return known


def signature_of_registered() -> Signature:
    """The signature of all ops that are registered now."""
    return _signature(tuple(map(id, registered_ops())))


@lru_cache(maxsize=2)
def _signature(ops: tuple[int, ...]) -> Signature:
    """The signature of the registered ops, which are never unregistered: their ids tell them apart."""
    return op_signature()
