"""`compile_rules`: from `Rule` records to egglog text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from esat.egraph.language.sharing import with_shared_parts
from esat.egraph.preparation.rule_compiler.ac_variants import (
    EXPANSION_LIMIT,
    WIDE_EXPANSION_LIMIT,
    all_variants,
    is_expanding,
    is_no_operation,
    joins_strangers,
    matches_everything,
    staged_variants,
)
from esat.egraph.preparation.rule_compiler.broadcast_words import is_meet_of_leaves, normalised
from esat.egraph.preparation.rule_compiler.bulk import bulk_rules
from esat.egraph.preparation.rule_compiler.compiled import Chunk, CompiledRules
from esat.egraph.preparation.rule_compiler.families import PRODUCT, SUM, contains_family
from esat.egraph.preparation.rule_compiler.guarding import concerns_bools, with_type_guards
from esat.egraph.preparation.rule_compiler.known_dtypes import Dtypes
from esat.egraph.preparation.rule_compiler.scalar_factors import all_scalars, scalar_factor
from esat.egraph.preparation.rule_compiler.signs import about_opposites, negated_variable
from esat.egraph.preparation.rule_compiler.surface import SurfaceRule, prepare, simplify, with_bases
from esat.egraph.preparation.rule_compiler.variant import RuleVariant
from esat.egraph.saturation.saturation_report import HELPER
from esat.rules.language.macros import expand
from esat.rules.language.reader import Form, Sexp, show
from esat.rules.language.rule import Rule, RuleFile
from esat.rules.language.rule_signature import Operator, Signature, check, declared_signature

RULESET_PREFIX = "rules-"
"""Keeps the rule sets of files apart from those of the core and from functions."""

EXPANDING_SUFFIX = "-expanding"
WIDE_SUFFIX = "-wide"
"""Ends the names of rule sets in which expanding rules match long groups, too."""

CORE = {
    # Uniform constants: rank-free, with the dtype id as second operand.
    "K": Operator(("f64", "i64"), dtype="#1", broadcast="-1"),
    SUM: Operator(("MS", "MS")),
    PRODUCT: Operator(("MS", "MS")),
}
"""Constructors that the e-graph's core declares itself."""


def compile_rules(
    rules: RuleFile | Iterable[Rule],
    signature: Signature,
    *,
    exact_only: bool = False,
    declarations: Sequence[Form] = (),
    taken: Collection[str] = (),
    wide: Collection[str] | None = None,
    known: CompiledRules | None = None,
    in_bulk: bool = True,
) -> CompiledRules:
    """Compile rules over binary constructors to rules over the n-ary e-graph.

    Parameters
    ----------
    rules
        A rule file, or any rules.
    signature
        Typing of the constructors in scope; those that a rule file declares are added.
    exact_only
        Compile for bitwise equality: rules of class `exact` alone, as the binary patterns they are written
        in. Matching any two elements of a sum reassociates it, which rounds differently.
    declarations
        Further declarations that the rules need.
    taken
        Names of generated rules that are loaded already.
    wide
        Names of the rules that match long groups even if they expand, or join summands that have nothing in
        common; None: all. That takes time in every saturation.
    known
        What some of these very rules were compiled to before, alike but for further rules and declarations.
    in_bulk
        Compile homomorphisms to one map over all elements; otherwise they match pairs, as they are written.

    Errors
    ------
    RuleError
        If a term's op is unknown or has a wrong number of operands, if two rules share a name, or if a rule
        can never be well typed.
    """
    if isinstance(rules, RuleFile):
        declarations = (*rules.declarations, *declarations)
        rules = rules.rules
    rules = tuple(rules)
    signature = {**signature, **CORE, **declared_signature(declarations)}
    compiler = _Compiler(signature, exact_only, taken, wide, known, in_bulk)
    check([rule for rule in rules if not compiler.is_known(rule)], signature)
    for rule in rules:
        compiler.add(rule)
    return compiler.result(declarations)


class _Compiler:
    """Collects chunks, rule by rule."""

    def __init__(
        self,
        signature: Signature,
        exact_only: bool,
        taken: Collection[str],
        wide: Collection[str] | None,
        known: CompiledRules | None,
        in_bulk: bool,
    ) -> None:
        self.signature, self.in_bulk = signature, in_bulk
        self.wide = wide
        self.exact_only = exact_only
        self.taken = taken
        self.rulesets: dict[str, None] = {}
        self.expanding: dict[str, None] = {}
        self.chunks: list[Chunk] = []
        self.origins: dict[str, Rule] = {}
        self.dropped: list[tuple[Rule, str]] = []
        self.names: dict[str, Rule] = {}
        self.known = known
        self.known_chunks: dict[int, list[Chunk]] = {}
        self.known_drops: dict[int, str] = {}
        if known is not None:
            self.known_drops = {id(rule): reason for rule, reason in known.dropped}
            for chunk in known.chunks:
                self.known_chunks.setdefault(id(chunk.rule), []).append(chunk)

    def is_known(self, rule: Rule) -> bool:
        """Whether the rule was compiled before."""
        return id(rule) in self.known_chunks or id(rule) in self.known_drops

    def result(self, declarations: Sequence[Form]) -> CompiledRules:
        rulesets = (*self.rulesets, *self.expanding)
        head = [Chunk(f"(ruleset {name})") for name in rulesets]
        head += [Chunk(show(expand(form))) for form in declarations]
        chunks, dropped = (*head, *self.chunks), tuple(self.dropped)
        return CompiledRules(chunks, tuple(self.rulesets), tuple(self.expanding), self.origins, dropped)

    def add(self, rule: Rule) -> None:
        """Compile one rule."""
        if rule.name in self.names:
            raise rule.error(f"the name is taken by the rule at {self.names[rule.name].position}")
        if rule.name in self.taken:
            raise rule.error("a rule of that name is loaded already")
        self.names[rule.name] = rule
        if self.is_known(rule):
            self._add_known(rule)
            return
        if self.exact_only and rule.soundness != "exact":
            self.dropped.append((rule, f"its class is {rule.soundness}, and only exact rules are wanted"))
            return
        surface = prepare(rule, self.signature, keep_squares=self.exact_only)
        uses_families = any(contains_family(form) for form in (*rule.body, *rule.head))
        if self.exact_only or not uses_families or concerns_bools(surface):
            self._emit(rule, [_plain_rule(surface, self.exact_only)], self._ruleset(rule))
        elif is_no_operation(surface):
            self.dropped.append((rule, "both sides are the same n-ary term"))
        elif matches_everything(surface):
            self.dropped.append((rule, "as an n-ary term its left side is a bare variable"))
        else:
            self._add_extended(rule, with_bases(simplify(surface)))

    def _add_known(self, rule: Rule) -> None:
        assert self.known is not None
        if id(rule) in self.known_drops:
            self.dropped.append((rule, self.known_drops[id(rule)]))
        for chunk in self.known_chunks.get(id(rule), ()):
            self.chunks.append(chunk)
            self.origins.update(dict.fromkeys(chunk.names, rule))
            if chunk.ruleset in self.known.rulesets:
                self.rulesets.setdefault(chunk.ruleset)
            elif chunk.ruleset in self.known.expanding:
                self.expanding.setdefault(chunk.ruleset)

    def _add_extended(self, rule: Rule, surface: SurfaceRule) -> None:
        bulk = bulk_rules(surface, RULESET_PREFIX + rule.ruleset) if self.in_bulk else None
        if bulk is not None:
            if bulk.declarations:
                self.chunks.append(Chunk("\n".join(bulk.declarations), rule))
            for index, (ruleset, helper) in enumerate(bulk.helpers):
                self._emit(rule, [helper], ruleset, first=index, part=HELPER if bulk.rules else "")
            self._emit(rule, bulk.rules, self._ruleset(rule))
            return
        guarded = replace(with_type_guards(surface), negated=negated_variable(surface))
        opposites = about_opposites(surface)
        expands = is_expanding(surface)
        is_own = self.wide is not None and rule.name not in self.wide
        limit = EXPANSION_LIMIT if expands or (is_own and joins_strangers(guarded)) else None
        variants = all_variants(guarded, limit)
        if opposites is not None:
            variants += all_variants(with_type_guards(opposites), limit)
        late = staged_variants(guarded, limit)
        scalar = scalar_factor(surface)

        def generated(variant: RuleVariant) -> tuple[list[Sexp], list[Sexp]]:
            return all_scalars(scalar, variant.body, variant.head) if scalar else (variant.body, variant.head)

        bodies, late_bodies = list(map(generated, variants)), list(map(generated, late))
        if expands:
            own = [*bodies, *late_bodies]
            self._emit(rule, own, self._expanding_ruleset(rule))
            if is_own:
                return
            wide = list(map(generated, all_variants(guarded, WIDE_EXPANSION_LIMIT)))
            ruleset = self._expanding_ruleset(rule, WIDE_SUFFIX)
            self._emit(rule, wide, ruleset, first=len(own))
            return
        # What finds rests makes no more of them, and may have to wait for facts about them.
        finding = [
            body for variant, body in zip(late, late_bodies, strict=True) if variant.choice.stage == "join"
        ]
        making = [
            body for variant, body in zip(late, late_bodies, strict=True) if variant.choice.stage != "join"
        ]
        self._emit(rule, [*bodies, *finding], self._ruleset(rule))
        if making:
            self._emit(rule, making, self._expanding_ruleset(rule), first=len(bodies) + len(finding))

    def _ruleset(self, rule: Rule) -> str:
        name = RULESET_PREFIX + rule.ruleset
        self.rulesets.setdefault(name)
        return name

    def _expanding_ruleset(self, rule: Rule, suffix: str = "") -> str:
        name = RULESET_PREFIX + rule.ruleset + EXPANDING_SUFFIX + suffix
        self.expanding.setdefault(name)
        return name

    def _emit(
        self,
        rule: Rule,
        generated: Sequence[tuple[Sequence[Sexp], Sequence[Sexp]]],
        ruleset: str,
        *,
        first: int = 0,
        part: str = "",
    ) -> None:
        """Print the generated rules of one rule as a chunk."""
        forms: list[str] = []
        names: list[str] = []
        for index, (body, head) in enumerate(generated, start=first):
            name = f"{rule.name}#{part}{index}" if index or part else rule.name
            names.append(name)
            self.origins[name] = rule
            facts, actions = _printed(with_shared_parts([expand(form) for form in body])), _printed(head)
            forms.append(f'(rule ({facts})\n      ({actions})\n      :ruleset {ruleset} :name "{name}")')
        self.chunks.append(Chunk("\n".join(forms), rule, tuple(names), ruleset))


def _printed(forms: Sequence[Sexp]) -> str:
    return " ".join([show(expand(form)) for form in forms])


def _plain_rule(surface: SurfaceRule, numbers_only: bool) -> tuple[list[Sexp], list[Sexp]]:
    """The rule as it is written, with its type guards.

    With `numbers_only`, its AC terms do not match bools: a rule about numbers says nothing about "or" and
    "and".
    """
    guarded = with_type_guards(surface)
    body: list[Sexp] = [("=", variable, term) for variable, term in guarded.patterns]
    body += guarded.guards
    for variable, word in guarded.shape_guards:
        body.append(("=", ("bp", variable), word if is_meet_of_leaves(word) else normalised(word)))
    if numbers_only and not concerns_bools(surface):
        body += Dtypes(surface).number_guards()
    return body, list(guarded.head)
