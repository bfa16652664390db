"""Texts of rules with a few tokens gone wrong, from the package's rules and some with declarations."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import esat.rules

_TOKEN = re.compile(r'"[^"]*"|;[^\n]*|[()]|[^\s()";]+')
_STRANGE = (
    *(
        "()",
        "(",
        ")",
        "1",
        "-1.5",
        "x",
        "_",
        '"s"',
        "$g",
        "@v",
        "?x",
        "1e400",
        "\x00",
        "\ud800",
        "é",
        ":when",
    ),
    *("Add", "Exp", "NarySum", "dt", "val", "ix", "set", "union", "delete", "panic", "subsume", "let", "i64"),
    *("(K 1.0 11)", "(<< 1 100)", "(/ 1 0)", '(unstable-fn "Exp")', "(multiset-of x)", "(set (dt x) 3)"),
)
_OWN = (
    "(relation edge (T T)) (rule ((= e (Add x y))) ((edge x y) (edge y x)))"
    "(rule ((edge x y) (edge y z)) ((edge x z)))",
    "(function depth (T) i64 :merge (max old new)) "
    "(rule ((= e (Exp x)) (= d (depth x))) ((set (depth e) (+ d 1))))",
    "(constructor Mine (T) T) (rewrite (Exp x) (Mine x)) (rewrite (Mine x) (Exp x))",
    "(sort Colour) (constructor Red () Colour) (relation has (T Colour))"
    "(rule ((= e (Sin x))) ((has e (Red))))",
    "(datatype Kind (Even) (Odd Kind)) (relation kind (T Kind))"
    "(rule ((= e (Neg x)) (kind x k)) ((kind e (Odd k))))",
    "(ruleset mine :tags (fast_run) :soundness exact) "
    "(birewrite (Neg (Exp x)) (Mul (Exp x) (Neg (Fill x (K 1.0 11))))"
    ' :ruleset mine :name "odd")',
    "(rewrite (Mul (Add x y) z) (Add (Mul x z) (Mul y z)) :subsume)",
)


def mutants(seed: int, count: int) -> Iterator[str]:
    """Texts with one to three mistakes each."""
    chooser = random.Random(seed)
    directory = Path(esat.rules.__file__).parent
    forms = [
        form.source
        for path in sorted(directory.glob("*.egg"))
        for form in esat.rules.read_forms(path.read_text(encoding="utf-8"))
        if len(form.source) < 300
    ]
    for number in range(count):
        text = chooser.choice(_OWN) if chooser.random() < 0.5 else chooser.choice(forms)
        text = re.sub(r':name "[^"]*"|:ruleset (?!mine)\S+?(?=[\s)])', "", text)
        for _ in range(chooser.choice((1, 1, 2))):
            text = _with_another_part(text, chooser) if chooser.random() < 0.7 else _mutated(text, chooser)
        yield f"; mutant {number} of seed {seed}\n{text}"


def _with_another_part(text: str, chooser: random.Random) -> str:
    """One part of a text replaced by another: parentheses stay balanced."""
    parts = _parts(text)
    if not parts:
        return text
    start, end = chooser.choice(parts)
    part = text[start:end]
    texts = [text[slice(*place)] for place in parts]
    if chooser.random() < 0.7:
        # What may well be of the same sort: rules that are taken and wrong are of as much interest.
        alike = [one for one in texts if _kind(one) == _kind(part)]
        return text[:start] + chooser.choice(alike) + text[end:]
    other = chooser.choice(texts)
    strange = chooser.choice(_STRANGE[4:])
    depth = chooser.choice((1, 2, 40))
    deep = "(Neg " * depth + part + ")" * depth
    new = chooser.choice(
        (other, other, other, "", strange, f"{part} {other}", f"(Neg {part})", "x", "(Exp x)", deep)
    )
    return text[:start] + new + text[end:]


def _kind(part: str) -> tuple[bool, bool, bool]:
    return part.startswith("("), part.strip("(")[:1].isupper(), part.strip("(")[:1].isalpha()


def _parts(text: str) -> list[tuple[int, int]]:
    """Begin and end of each atom and form below the outermost ones."""
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    for token in _TOKEN.finditer(text):
        if token.group() == "(":
            opened.append(token.start())
        elif token.group() != ")":
            found.append(token.span())
        elif opened:
            start = opened.pop()
            if opened:
                found.append((start, token.end()))
    return found


def _mutated(text: str, chooser: random.Random) -> str:
    """A text with a token gone, moved, repeated or replaced, whatever becomes of its parentheses."""
    return " ".join(_mutated_tokens(_TOKEN.findall(text), chooser))


def _mutated_tokens(tokens: list[str], chooser: random.Random) -> list[str]:
    if len(tokens) < 2:
        return [*tokens, chooser.choice(_STRANGE)]
    place, other = chooser.randrange(len(tokens)), chooser.randrange(len(tokens))
    changed = tokens.copy()
    match chooser.randrange(7):
        case 0:
            del changed[place]
        case 1:
            changed[place], changed[other] = changed[other], changed[place]
        case 2:
            changed.insert(other, changed[place])
        case 3:
            changed[place] = chooser.choice(_STRANGE)
        case 4:
            depth = chooser.choice((1, 2, 40, 5000))
            changed[place] = "(Neg " * depth + changed[place] + ")" * depth
        case 5:
            changed[place] = "(" * chooser.choice((1, 3, 3000)) + changed[place]
        case _:
            start, end = sorted((place, other))
            changed[start:end] = changed[start:end] * chooser.choice((2, 2, 30))
    return changed
