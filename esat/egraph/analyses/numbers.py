"""Signs and ranges of numbers as facts: ``numbers.egg``, expanded, and what the records of ops say of ranges.

Rules may ask for ``(overflows x)``, ``(vanishes x)`` and ``(exponential x)``, which is either; see
:data:`esat.ops.inference.structure.RANGES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

from esat.graph.registry import registered_ops
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.inference.structure import RANGES, SIGNS
from esat.rules.language.macros import expand
from esat.rules.language.reader import read_forms, show

_CHOICES = {
    "SIGN": SIGNS,
    "WEAK": ("nonnegative", "nonpositive"),
    "RANGE": ("overflows", "vanishes"),
    "SIDE": ("p", "n"),
}


def numbers_program() -> str:
    """Declarations and rules, to be loaded after the layer of n-ary sums and products."""
    source = resources.files("esat.egraph.analyses").joinpath("numbers.egg").read_text(encoding="utf-8")
    forms = (show(expand(form)) for form in read_forms(source, "numbers.egg"))
    return "\n".join([*(text for form in forms for text in _instances(form)), *_of_records()])


def range_declarations() -> list[str]:
    """The relations, which rules may read in strict programs, too, though nothing is in them there."""
    return [f"(relation {name} (T))" for name in RANGES]


def _instances(form: str) -> Iterator[str]:
    """The forms one form of the file stands for (see its head)."""
    for placeholder, choices in _CHOICES.items():
        if placeholder in form:
            for choice in choices:
                yield from _instances(form.replace(placeholder, choice))
            return
    yield form


def _of_records() -> Iterator[str]:
    for op in registered_ops():
        if isinstance(op, Elementwise):
            operands = " ".join(f"a{index}" for index in range(op.arity))
            for fact in ("overflows", "vanishes"):
                if getattr(op.facts, fact):
                    body = f"(numbers/logarithms) (= e ({op.constructor} {operands})) (float-dtype (dt a0))"
                    yield f'(rule ({body}) (({fact} e)) :ruleset esat-facts :name "{op.constructor}-{fact}")'
