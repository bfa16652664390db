"""Random identities and near identities, of which saturation has to prove the former only.

``python -m benchmarks.generated_identities [--scalars N] [--parts N] [--seed S]``, N pairs of a kind.

Each pair is an expression and another form of it: expanded, factored, its terms in another order, brought
over another denominator, exponentials multiplied or their exponents added, arrays put together of other parts
(:mod:`benchmarks.generated_parts`). Every other pair has one coefficient changed, two factors of a product of
matrices swapped or a part moved by an element, and is not equal. All that are equal
have to be proved so, and none of the others.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

import esat
from benchmarks.generated_parts import SQUARE, UNKNOWN, VECTORS, Parts
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import RuleProgram, program_for
from esat.egraph.saturation.schedule import Budgets
from esat.optimize.equality.search import saturated
from esat.rules import RULES
from esat.rules.language.query import Query

Word = tuple[str, ...]
"""A product: names of scalars, in order, or of matrices; ``a'`` is a transpose."""
Sum = dict[Word, int]
"""Products with their coefficients."""

Kind = Literal["scalars", "exponentials", "matrices", "structure", "parts", "complex"]
KINDS: tuple[Kind, ...] = get_args(Kind)

SCALARS, MATRICES = "abcd", "ABC"
FACTS = {"G": "symmetric", "H": "orthogonal"}
"""What is known of matrices, by name."""
_NAMES_OF_KNOWN = {"B": "G", "C": "H"}
_NAME = re.compile(r"\b([abcd])\b")
_PRODUCT = re.compile(r"exp\([abcd]\)(?: \* exp\([abcd]\))+")
MOST_TERMS = 10
MOST_FACTORS = 5


@dataclass(frozen=True)
class Pair:
    """Two expressions of the same variables.

    Attributes
    ----------
    left, right
        As Python text, in the names of the variables.
    equal
        Whether they are equal.
    """

    left: str
    right: str
    equal: bool


def multiplied(left: Sum, right: Sum, commutes: bool) -> Sum:
    """The product of sums."""
    total: Sum = {}
    for one, coefficient in left.items():
        for other, factor in right.items():
            word = tuple(sorted(one + other)) if commutes else one + other
            total[word] = total.get(word, 0) + coefficient * factor
    return {word: coefficient for word, coefficient in total.items() if coefficient}


def added(left: Sum, right: Sum, factor: int = 1) -> Sum:
    """``left + factor * right``."""
    total = dict(left)
    for word, coefficient in right.items():
        total[word] = total.get(word, 0) + factor * coefficient
    return {word: coefficient for word, coefficient in total.items() if coefficient}


class Generator:
    """Draws pairs."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def scalars(self) -> Pair:
        """A pair of polynomials, or of quotients of polynomials."""
        text, value = self._polynomial(self.draw.choice((2, 3, 3)))
        while not 2 <= len(value) <= MOST_TERMS or max(map(len, value)) > MOST_FACTORS:
            text, value = self._polynomial(self.draw.choice((2, 3, 3)))
        equal = self.draw.random() < 0.5
        other = value if equal else self._perturbed(value)
        if self.draw.random() < 0.4:
            return self._quotients(text, other, equal)
        return Pair(text, self._expanded(other), equal)

    def exponentials(self) -> Pair:
        """A pair of polynomials of exponentials."""
        pair = self.scalars()
        left, right = (_NAME.sub(r"exp(\1)", text) for text in (pair.left, pair.right))
        return Pair(left, _PRODUCT.sub(self._exponents_added, right), pair.equal)

    def _exponents_added(self, product: re.Match[str]) -> str:
        """A product of exponentials, as that of sums of their exponents."""
        names = _NAME.findall(product[0])
        place = self.draw.randrange(len(names) + 1)
        return " * ".join(f"exp({' + '.join(part)})" for part in (names[:place], names[place:]) if part)

    def complex_numbers(self) -> Pair:
        """A pair of polynomials of complex numbers and their conjugates, of conjugates or parts of such."""
        pair = self.scalars()
        last, of_last = self.draw.choice((("conj(w)", "w"), ("(1j * e)", "(-1j * e)"), ("e", "e")))
        own = {"a": "z", "b": "conj(z)", "c": "w", "d": last}
        conjugates = {"a": "conj(z)", "b": "z", "c": "conj(w)", "d": of_last}
        left, right, conjugate = (
            _NAME.sub(lambda found, names=names: names[found[1]], text)  # type: ignore[misc]
            for text, names in ((pair.left, own), (pair.right, own), (pair.right, conjugates))
        )
        match self.draw.randrange(5):
            case 0:
                return Pair(f"conj({left})", conjugate, pair.equal)
            case 1:
                return Pair(f"2.0 * real({left}) + 0j * z", f"{right} + {conjugate}", pair.equal)
            case 2:
                return Pair(f"2j * imag({left})", f"{right} - ({conjugate})", pair.equal)
            case 3:
                return Pair(f"abs({left}) ** 2", f"real(({right}) * ({conjugate}))", pair.equal)
            case _:
                return Pair(left, right, pair.equal)

    def matrices(self) -> Pair:
        """A pair of sums of products of matrices and a vector."""
        text, value = self._matrix(2)
        while not 2 <= len(value) <= MOST_TERMS or max(map(len, value)) > 4:
            text, value = self._matrix(2)
        equal = self.draw.random() < 0.5
        return self._matrix_pair(text, value if equal else self._perturbed(value), equal)

    def structure(self) -> Pair:
        """A pair of sums of products of matrices, of which one is symmetric and one orthogonal."""
        while True:
            text, value = self._matrix(2)
            text = re.sub(r"[BC]", lambda found: _NAMES_OF_KNOWN[found[0]], text)
            reduced: Sum = {}
            for word, coefficient in value.items():
                reduced = added(reduced, {_reduced(word): coefficient})
            if () not in reduced and 2 <= len(reduced) <= MOST_TERMS and max(map(len, reduced)) <= 4:
                equal = self.draw.random() < 0.5
                return self._matrix_pair(text, reduced if equal else self._perturbed(reduced), equal)

    def _matrix_pair(self, text: str, other: Sum, equal: bool) -> Pair:
        right = self._expanded_matrices(other)
        match self.draw.randrange(4):
            case 0:
                return Pair(f"({text}) @ x", f"({right}) @ x", equal)
            case 1:
                return Pair(f"x @ (({text}) @ y)", f"(({right}).T @ x) @ y", equal)
            case 2:
                return Pair(f"({text}).sum()", f"({right}).sum(axis=0).sum()", equal)
            case _:
                return Pair(text, right, equal)

    def parts(self) -> Pair:
        """A pair of arrays put together of parts, or of their sums."""
        equal = self.draw.random() < 0.5
        return Pair(*Parts(self.draw).pair(equal), equal)

    # ---- scalars

    def _polynomial(self, depth: int) -> tuple[str, Sum]:
        if depth == 0 or self.draw.random() < 0.15:
            if self.draw.random() < 0.2:
                value = self.draw.randint(1, 4)
                return f"{value}.0", {(): value}
            name = self.draw.choice(SCALARS)
            return name, {(name,): 1}
        left, right = self._polynomial(depth - 1), self._polynomial(depth - 1)
        match self.draw.choice("++-***"):
            case "*":
                return f"({left[0]}) * ({right[0]})", multiplied(left[1], right[1], commutes=True)
            case "+":
                return f"({left[0]} + {right[0]})", added(left[1], right[1])
            case _:
                return f"({left[0]} - ({right[0]}))", added(left[1], right[1], -1)

    def _expanded(self, value: Sum) -> str:
        terms = list(value.items())
        self.draw.shuffle(terms)
        return " + ".join(
            f"{coefficient}.0" + "".join(f" * {name}" for name in self._shuffled(word))
            for word, coefficient in terms
        )

    def _shuffled(self, word: Word) -> Sequence[str]:
        return self.draw.sample(word, len(word))

    def _perturbed(self, value: Sum) -> Sum:
        word = self.draw.choice(sorted(value))
        changed = added(value, {word: 1}, self.draw.choice((-1, 1)))
        return changed or {word: value[word] + 2}

    def _quotients(self, text: str, other: Sum, equal: bool) -> Pair:
        first, second = self.draw.sample(SCALARS, 2)
        match self.draw.randrange(3):
            case 0:  # over a common factor
                return Pair(
                    f"({text}) / ({first} + 2.0)", f"({self._expanded(other)}) / (2.0 + {first})", equal
                )
            case 1:
                over = self._expanded(multiplied(other, {(first,): 1, (second,): -1}, commutes=True))
                return Pair(text, f"({over}) / ({first} - {second})", equal)
            case _:
                expanded = self._expanded(other)
                right = f"({expanded}) * (1.0 / ({first} + {second}))"
                return Pair(f"({text}) * {first} / ({first} * {first} + {second} * {first})", right, equal)

    # ---- matrices

    def _matrix(self, depth: int) -> tuple[str, Sum]:
        if depth == 0 or self.draw.random() < 0.15:
            name = self.draw.choice(MATRICES)
            return (name, {(name,): 1}) if self.draw.random() < 0.75 else (f"{name}.T", {(f"{name}'",): 1})
        left, right = self._matrix(depth - 1), self._matrix(depth - 1)
        match self.draw.choice("+-@@@t"):
            case "@":
                return f"({left[0]}) @ ({right[0]})", multiplied(left[1], right[1], commutes=False)
            case "+":
                return f"({left[0]} + {right[0]})", added(left[1], right[1])
            case "-":
                return f"({left[0]} - ({right[0]}))", added(left[1], right[1], -1)
            case _:
                return f"({left[0]}).T", {_transposed(word): c for word, c in left[1].items()}

    def _expanded_matrices(self, value: Sum) -> str:
        terms = list(value.items())
        self.draw.shuffle(terms)
        return " + ".join(
            f"{coefficient}.0 * ({self._product([_written(name) for name in word])})"
            for word, coefficient in terms
        )

    def _product(self, factors: list[str]) -> str:
        while len(factors) > 1:
            place = self.draw.randrange(len(factors) - 1)
            factors[place : place + 2] = [f"({factors[place]} @ {factors[place + 1]})"]
        return factors[0]


def _reduced(word: Word) -> Word:
    """A product with the names of matrices of which more is known, and without turns forth and back."""
    found: list[str] = []
    for name in word:
        known = _NAMES_OF_KNOWN.get(name[0], name[0]) + name[1:]
        if known == "G'":
            known = "G"
        if found and {found[-1], known} == {"H", "H'"}:
            found.pop()
        else:
            found.append(known)
    return tuple(found)


def _transposed(word: Word) -> Word:
    return tuple(name[:-1] if name.endswith("'") else f"{name}'" for name in reversed(word))


def _written(name: str) -> str:
    return f"{name[:-1]}.T" if name.endswith("'") else name


def variables() -> dict[str, Any]:
    """The variables of pairs, by name."""
    return {
        **{name: esat.vector(name) for name in (*SCALARS, "x", "y")},
        **{name: esat.matrix(name) for name in (*MATRICES, *FACTS)},
        **{name: esat.TensorType("float64", shape=(size,))(name) for name, size in VECTORS.items()},
        **{name: esat.vector(name) for name in (*UNKNOWN, "e")},
        **{name: esat.vector(name, dtype="complex128") for name in "zw"},
        SQUARE[0]: esat.TensorType("float64", shape=(SQUARE[1], SQUARE[1]))(SQUARE[0]),
    }


def values(seed: int = 0) -> dict[str, np.ndarray]:
    """Arrays for the variables."""
    draw = np.random.default_rng(seed)
    arrays = {name: draw.uniform(0.5, 2.0, 4) for name in (*SCALARS, "x", "y")}
    arrays |= {name: draw.uniform(-1.0, 2.0, (4, 4)) for name in MATRICES}
    turned = draw.uniform(-1.0, 2.0, (4, 4))
    arrays |= {"G": turned + turned.T, "H": np.linalg.qr(turned)[0]}
    arrays |= {name: draw.uniform(0.5, 2.0, size) for name, size in {**VECTORS, **UNKNOWN}.items()}
    arrays |= {"e": draw.uniform(0.5, 2.0, 4)}
    arrays |= {name: draw.uniform(0.5, 2.0, 4) + 1j * draw.uniform(0.5, 2.0, 4) for name in "zw"}
    return arrays | {SQUARE[0]: draw.uniform(-1.0, 2.0, (SQUARE[1], SQUARE[1]))}


def evaluated(text: str, names: dict[str, Any]) -> Any:
    """The value of a text of a pair."""
    module: Any = esat if isinstance(names["x"], esat.Variable) else np
    functions = {"exp": module.exp, "join": module.concatenate, "abs": module.abs}
    functions |= {"conj": module.conj, "real": module.real, "imag": module.imag}
    return eval(text, {"__builtins__": {}, **functions}, names)


def program() -> RuleProgram:
    """The rules of the ordinary mode."""
    return program_for(RULES.query(Query(include=("fast_run",))))


def proved(pair: Pair, rules: RuleProgram) -> bool:
    """Whether saturation proves two expressions equal."""
    names = variables()
    known = {name: esat.assume(names[name], fact) for name, fact in FACTS.items()}
    outputs = [evaluated(text, names | known) for text in (pair.left, pair.right)]
    graph = esat.Graph(list(names.values()), outputs, on_unused_input="ignore").function_graph()
    found, _ = saturated(encode(graph), rules, Budgets())
    left, right = found.arrays.term_class[list(found.terms.roots)].tolist()
    return bool(left == right)


def pairs(count: int, seed: int, kind: Kind = "scalars") -> Iterator[Pair]:
    """So many pairs; whether they are equal is checked with NumPy.

    Perturbed parts and complex numbers may be equal nevertheless: such pairs are left out.
    """
    generator, arrays = Generator(seed), values(seed)
    draw = {
        "scalars": generator.scalars,
        "exponentials": generator.exponentials,
        "matrices": generator.matrices,
        "structure": generator.structure,
        "parts": generator.parts,
        "complex": generator.complex_numbers,
    }[kind]
    found = 0
    while found < count:
        pair = draw()
        left, right = (evaluated(text, arrays) for text in (pair.left, pair.right))
        is_equal = np.shape(left) == np.shape(right) and bool(np.allclose(left, right, rtol=1e-9, atol=1e-9))
        if is_equal and not pair.equal and kind in ("parts", "complex"):
            continue
        assert is_equal == pair.equal, pair
        found += 1
        yield pair


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, prove, and print what was missed; 0 if nothing was, and nothing false was proved."""
    parser = argparse.ArgumentParser(description="Random identities and near identities.")
    parser.add_argument("--scalars", type=int, default=2000)
    parser.add_argument("--exponentials", type=int, default=500)
    parser.add_argument("--matrices", type=int, default=500)
    parser.add_argument("--structure", type=int, default=500)
    parser.add_argument("--parts", type=int, default=500)
    parser.add_argument("--complex", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    rules, wrong = program(), 0
    for name in KINDS:
        missed = false = equal = 0
        count = getattr(options, name)
        for pair in pairs(count, options.seed, name):
            is_proved = proved(pair, rules)
            equal += pair.equal
            missed += pair.equal and not is_proved
            false += is_proved and not pair.equal
            if is_proved != pair.equal:
                print("missed" if pair.equal else "FALSE", pair.left, "=", pair.right, flush=True)
        print(f"{name}: {equal} equal pairs, {missed} missed; {count - equal} others, {false} proved")
        wrong += missed + false
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
