"""A laboratory: an e-graph with the real core and a small signature, in which single rules are tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest

from esat.egraph.engine import Engine
from esat.egraph.language.signature import ConstructorSignature, Signature
from esat.egraph.preparation.core import core_program
from esat.egraph.preparation.rule_compiler import CompiledRules, compile_rules
from esat.rules import Operator, read_rules

FLOAT64 = 10
BOOL = 0
MATRIX = 0b100

_UNARY = ("Tanh", "Abs", "Floor", "OneLike", "Frac", "H1", "H2")
_UNARY_FLOAT = "Exp Log Sqrt Sin Cos Tan Sigmoid Softplus Expm1 Log1p Reciprocal".split()  # noqa: SIM905
_BINARY = ("Add", "Sub", "Mul", "Foo", "Pair", "Ratio", "Maximum")

SIGNATURE = Signature(
    [
        *(ConstructorSignature(name, 1, (), "same") for name in ("Neg", "Sqr", *_UNARY)),
        *(ConstructorSignature(name, 1, (), "same", floats=True) for name in _UNARY_FLOAT),
        *(ConstructorSignature(name, 2, (), "same") for name in _BINARY),
        ConstructorSignature("Div", 2, (), "same", floats=True),
        ConstructorSignature("Lt", 2, (), "bool"),
        ConstructorSignature("Ge", 2, (), "bool"),
        ConstructorSignature("Not", 1, (), "bool", operand_dtypes=("bool",)),
        ConstructorSignature("Switch", 3, (), "same", operand_dtypes=("bool", "same", "same")),
        ConstructorSignature("Cast", 1, ("i64",), "cast", operand_dtypes=("",)),
        ConstructorSignature("ReduceSum", 1, ("i64",), "reduce"),
        ConstructorSignature("DimShuffle", 1, ("i64",), "dimshuffle"),
        ConstructorSignature("MatMul", 2, ("i64",), "matmul"),
        ConstructorSignature("Gemm", 3, (), "opaque"),
    ]
)
OPERATORS = {**SIGNATURE.operators, "positive": Operator(("T",), "Unit")}

TYPES = "(saturate (run esat-types))"
INDEX = f"(saturate (seq {TYPES} (saturate (run esat-index)) (saturate (run esat-known))))"
REDUCE = f"(saturate (seq {INDEX} (run esat-reduce) (run esat-retire)))"
EXCHANGE = "(saturate (run esat-offer)) (run esat-take) (run esat-take-first) (run esat-taken)"
LIFT = f"{EXCHANGE} (saturate (run esat-lift))"
NORMALISE = f"(saturate (seq {REDUCE} (run esat-flatten) (run esat-retire)))"


@dataclass(frozen=True)
class Case:
    """A term, and the term that the rules must (or, with `equal` false, must not) find equal to it."""

    term: str
    wanted: str
    equal: bool = True


def leaf(number: int) -> str:
    """Input number `number`."""
    return f"(In {number})"


def multiset(elements: Iterable[str]) -> str:
    return f"(multiset-of {' '.join(elements)})"


def nary(constructor: str, signed: Iterable[tuple[int, str]]) -> str:
    """An n-ary term of (sign, term) pairs."""
    signed = list(signed)
    positives = multiset(term for sign, term in signed if sign > 0)
    negatives = multiset(term for sign, term in signed if sign < 0)
    return f"({constructor} {positives} {negatives})"


def compiled(text: str, **options: bool) -> CompiledRules:
    """The rules of a text, compiled."""
    return compile_rules(read_rules(text, file="user.egg"), OPERATORS, **options)


class Laboratory:
    """One e-graph; every experiment runs on a copy of it that is thrown away."""

    def __init__(self, *, strict: bool = False) -> None:
        self.engine = Engine()
        self.engine.load(SIGNATURE.program)
        self.engine.load(core_program(SIGNATURE, strict))
        self.engine.load("(relation positive (T)) (ruleset none) (ruleset mark)")
        for constructor in ("NarySum", "NaryProd"):
            self.engine.load(f"(rule ((= e ({constructor} p n))) ((need-type e)) :ruleset mark)")

    def equalities(
        self,
        rules: CompiledRules,
        cases: Sequence[Case],
        *,
        words: dict[int, int] | None = None,
        dtype: int = FLOAT64,
        facts: str = "",
        rounds: int = 3,
        expansions: int = 0,
    ) -> list[bool]:
        """Whether the rules find each case's terms equal.

        `words` gives the broadcast words of inputs that are no full matrices; `expansions` how often
        to run the rule sets of expanding rules.
        """
        engine = self.engine
        engine.execute("(push)")
        try:
            for chunk in rules.chunks:
                engine.load(chunk.text)
            for number in range(40):
                word = (words or {}).get(number, MATRIX)
                engine.load(f"(set (dt (In {number})) {dtype}) (set (bp (In {number})) {word})")
            engine.load("(let $one (K 1.0 10)) " + facts)
            for index, case in enumerate(cases):
                engine.load(f"(let $term{index} {case.term}) (set (flatten-budget $term{index}) 64)")
            engine.execute(f"(run-schedule (saturate (run mark)) {INDEX} (saturate (run esat-lift)) {INDEX})")
            for turn in range(rounds):
                self._round(rules, expand=turn < expansions)
            for index, case in enumerate(cases):
                engine.load(f"(let $wanted{index} {case.wanted})")
            engine.execute(
                f"(run-schedule (saturate (run mark)) {INDEX} (saturate (run esat-lift)) {NORMALISE})"
            )
            return [self._holds(f"(= $term{index} $wanted{index})") for index in range(len(cases))]
        finally:
            if engine.failure is None:
                engine.execute("(pop)")

    def _round(self, rules: CompiledRules, *, expand: bool) -> None:
        rulesets = (*rules.expanding, *rules.rulesets) if expand else rules.rulesets
        runs = " ".join(f"(run {ruleset})" for ruleset in rulesets)
        self.engine.execute(f"(run-schedule (seq {INDEX} {runs} {LIFT} {NORMALISE} (run esat-view) {TYPES}))")

    def _holds(self, fact: str) -> bool:
        # Without a goal the run makes one iteration; a goal that holds already ends it before.
        (output,) = self.engine.execute(f"(run none 1 :until {fact})")
        return not output.report.iterations

    def check(self, rules: CompiledRules | str, cases: Sequence[Case], **setting: object) -> None:
        """Assert what every case says."""
        if isinstance(rules, str):
            rules = compiled(rules)
        found = self.equalities(rules, cases, **setting)  # type: ignore[arg-type]
        wrong = [case for case, equal in zip(cases, found, strict=True) if equal != case.equal]
        assert not wrong, wrong


@pytest.fixture(scope="session")
def laboratory() -> Laboratory:
    return Laboratory()
