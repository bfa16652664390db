"""The phase: what it finds in an e-graph is told to the engine, and remembered."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from esat.egraph.algebra.additions import Additions, UnnamedError
from esat.egraph.algebra.axes.lengths import Symbols
from esat.egraph.algebra.equal_forms.matrix_sums import Matrices, MatrixTerms
from esat.egraph.algebra.equal_forms.normal_forms import NONNEGATIVE
from esat.egraph.algebra.equal_forms.offers import Offer, Offers, Patterns, TreePattern, candidates
from esat.egraph.algebra.findings import Finding
from esat.egraph.algebra.finite_fields.coded import FILL
from esat.egraph.algebra.finite_fields.fingerprints import Fingerprints, fingerprints
from esat.egraph.algebra.finite_fields.reading import read
from esat.egraph.algebra.finite_fields.structured_matrices import FACTS, SQUARE
from esat.egraph.algebra.merges import constants, equal_classes, fits
from esat.egraph.algebra.wording import Wording
from esat.egraph.engine import AnyEngine
from esat.egraph.language.terms import TermGraph
from esat.graph.types import DTYPES


class Algebra:
    """What equality of values says of one e-graph, however often it is asked.

    Parameters
    ----------
    terms
        What was loaded.
    constructors
        Tables whose rows are e-nodes, those of the terms aside.

    Attributes
    ----------
    findings
        All that was found.
    """

    def __init__(self, terms: TermGraph, constructors: Collection[str]) -> None:
        self.findings: list[Finding] = []
        self._operators = {*constructors}
        self._looked_at: dict[tuple[int, int], int] = {}
        self._looked_at_matrices: dict[tuple[int, int], int] = {}
        self._lent: set[tuple[tuple[int, int], int]] = set()
        self._patterns: Patterns = {}
        self._finding_of: dict[TreePattern, int] = {}
        self.tell(terms)

    def tell(self, terms: TermGraph) -> None:
        """Note that more terms were loaded: these are all.

        They may make more of classes that were looked at: all are looked at again.
        """
        self._terms = terms
        self._operators |= {term.constructor for term in terms.terms}
        self._symbols = Symbols.of(terms)
        self._facts = (NONNEGATIVE, *FACTS, *SQUARE) if terms.structured else (NONNEGATIVE,)
        self._looked_at.clear()
        self._looked_at_matrices.clear()

    def extend(self, engine: AnyEngine) -> bool:
        """Tell an engine, whose terms are typed, what its rules do not see; whether there was anything."""
        found = fingerprints(read(engine, self._operators, self._facts), self._symbols)
        roots = found.reading.class_of_term(np.array(self._terms.roots, np.int64))
        offers = Offers(found, self._patterns, roots.tolist())
        additions = Additions(found, offers.forms, self._symbols.stored_of(found.reading))
        wording = Wording(found, offers.forms, self._terms)
        settled = self._merge(found, offers, additions, wording)
        new = [
            klass
            for klass in candidates(found)
            if klass not in settled and self._is_new(found, klass, self._looked_at)
        ]
        for offer in offers.of(new):
            self._offer(offer, additions, wording)
        self._offer_matrices(found, settled, additions, wording)
        self._lend(found, additions)
        if additions.is_empty:
            return False
        additions.load(engine)
        return True

    def _offer(self, offer: Offer, additions: Additions, wording: Wording) -> None:
        """Add a form; trees that are alike share the finding."""
        add = partial(additions.form, offer.klass, offer.expression)
        known = None if offer.pattern is None else self._finding_of.get(offer.pattern)
        if known is not None:
            with suppress(UnnamedError):
                add(known)
                self.findings[known] = replace(self.findings[known], places=self.findings[known].places + 1)
            return
        texts = wording.of(offer.klass), wording.expression(offer.expression)
        finding = Finding("form", *texts, offer.before, offer.after)
        if self._tell(finding, add) and offer.pattern is not None:
            self._finding_of[offer.pattern] = len(self.findings) - 1

    def _offer_matrices(
        self, found: Fingerprints, settled: Collection[int], additions: Additions, wording: Wording
    ) -> None:
        """Add ways to compute sums of products of matrices."""
        matrices = Matrices(found)
        terms = MatrixTerms(matrices, additions)
        for klass in matrices.candidates():
            if klass in settled or not self._is_new(found, klass, self._looked_at_matrices):
                continue
            for offer in matrices.of(klass):
                texts = wording.of(klass), wording.plan(offer.plan, matrices.classes)
                finding = Finding("form", *texts, offer.before, offer.after)
                self._tell(finding, partial(terms.add, offer))

    def _merge(self, found: Fingerprints, offers: Offers, additions: Additions, wording: Wording) -> set[int]:
        """Equate classes, and classes with constants; all the classes that this was done to."""
        settled: set[int] = set()
        operations = offers.forms.operations
        for klass, value in constants(found):
            dtype = DTYPES[int(found.reading.dtype[klass])]
            if not fits(value, dtype):
                continue
            finding = Finding("constant", wording.of(klass), str(value), operations(klass), 0)
            if self._tell(finding, partial(additions.constant, klass, value)):
                settled.add(klass)
        for equal in equal_classes(found):
            group = [klass for klass in equal if klass not in settled]
            if len(group) < 2:
                continue
            first, *others = sorted(group, key=lambda klass: (found.cost[klass], found.rank[klass]))
            largest = max(others, key=lambda klass: (operations(klass), found.rank[klass]))
            counts = operations(largest), operations(first)
            finding = Finding("equal", wording.of(largest), wording.of(first), *counts)
            if self._tell(finding, partial(additions.equate, [first, *others])):
                settled.update(group)
        return settled

    def _lend(self, found: Fingerprints, additions: Additions) -> None:
        """Let small trees lend their shapes to fills: what lends the shape of one is computed, if all else
        goes.
        """
        codes = found.coded.nodes.code[found.chosen[found.order]]
        for klass in sorted(found.order[codes == FILL].tolist(), key=found.rank.__getitem__):
            shape = found.value_of(klass), int(found.shape[klass])
            if shape not in self._lent:
                with suppress(UnnamedError):
                    additions.lend(klass)
                self._lent.add(shape)

    def _tell(self, finding: Finding, add: Callable[[int], None]) -> bool:
        """Add what was found, unless a class has no name; whether it was added."""
        try:
            add(len(self.findings))
        except UnnamedError:
            return False
        self.findings.append(finding)
        return True

    def _is_new(self, found: Fingerprints, klass: int, looked_at: dict[tuple[int, int], int]) -> bool:
        """Whether a class was not looked at before with a tree as small as its present one."""
        value, cost = found.value_of(klass), int(found.cost[klass])
        known = looked_at.get(value)
        looked_at[value] = cost if known is None else min(known, cost)
        return known is None or cost < known
