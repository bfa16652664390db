"""Cases of rule files, in the rule language itself.

::

    (input x float64 (4 3))        ; a name, a dtype, and sizes: 1 broadcasts, the others are unknown to types
    (sparse x float64 (4 3))       ; likewise, a sparse matrix
    (fires "neg-neg" TERM)         ; the rule of this name matches when TERM is saturated with all rules
    (proves LEFT RIGHT)            ; both are one class then
    (refuses LEFT RIGHT)           ; they are not

In terms ``(axes (1 x 0) 2)`` stands for the permutation word of that order, for operands of rank 2.
"""

from dataclasses import dataclass
from pathlib import Path

from esat.egraph.analyses.facts import FACT_OPERATORS
from esat.egraph.language.constructors import op_signature
from esat.graph import TensorType, Variable
from esat.graph.sparse_type import SparseType
from esat.rules.language.macros import expand, permutation_word
from esat.rules.language.reader import head_of, read_forms, show, string_value
from esat.tools.soundness.construction import Construction

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Case:
    """One form of a case file."""

    kind: str
    rule: str
    terms: tuple
    inputs: dict
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.rule or show(self.terms[0])}"

    def variables(self) -> list[Variable]:
        """The terms as Variables."""
        signature = op_signature()
        construction = Construction(signature, {**signature.operators, **FACT_OPERATORS})
        return [construction.build(term, self.inputs) for term in self.terms]


def read_cases(path: Path) -> list[Case]:
    """The cases of a file, each with the inputs declared before it."""
    inputs: dict[str, Variable] = {}
    cases = []
    for form in read_forms(path.read_text(encoding="utf-8"), path.name):
        kind, *rest = form
        if kind == "input":
            name, dtype, sizes = rest
            type = TensorType(dtype, tuple(size == "1" for size in sizes))
            inputs = {**inputs, name: Variable(type, name=name)}
            continue
        if kind == "sparse":
            name, dtype, sizes = rest
            type = SparseType("csr", dtype, tuple(1 if size == "1" else None for size in sizes))
            inputs = {**inputs, name: Variable(type, name=name)}
            continue
        assert kind in ("fires", "proves", "refuses"), form.position
        rule = string_value(rest[0]) if kind == "fires" else ""
        terms = tuple(map(_with_words, rest[1:] if kind == "fires" else rest))
        assert all(head_of(term) or term in inputs for term in terms), form.position
        cases.append(Case(kind, rule, terms, inputs, path.name, form.position.line))
    return cases


def _with_words(sexp):
    """A term with its axes packed into permutation words."""
    if isinstance(sexp, str):
        return sexp
    if head_of(sexp).startswith("ds-"):
        return expand(sexp)
    if head_of(sexp) == "axes":
        order, rank = sexp[1:]
        return str(permutation_word([axis if axis == "x" else int(axis) for axis in order], int(rank)))
    return tuple(map(_with_words, sexp))


def all_cases() -> list[Case]:
    """The cases of every file of this folder."""
    return [case for path in sorted(HERE.glob("*.egg")) for case in read_cases(path)]
