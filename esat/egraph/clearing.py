"""Giving back an engine: every row that a use added is deleted again, and the rules stay.

egglog's own ``push`` copies all rules, and ``pop`` frees the copies: for a thousand rules that takes as long
as saturating a small graph. Here rules delete what they match. Rules do not see rows that were subsumed, so
whatever subsumes a term notes its operands in a twin relation, and the rule that clears it deletes both.

egglog drops deleted rows from a table only where they are more than 16, and more than half of it. Those that
stay count where it decides in which order to join tables. So that the history of an engine changes nothing,
more rows than that are added to every table before it is cleared.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from esat.egraph.engine import Engine

TWIN = "subsumed/"
"""Prefix of the relation that holds the operands of the subsumed terms of a constructor."""

_CLEAR = "esat-clear"
_PAD = "esat-pad"
_PADS = 17
_PADDING = "esat-padding"
_COUNT = "esat-count-padding"
_PADDING_ROWS = " ".join(f"({_PADDING} {-number})" for number in range(2, _PADS + 1))
"""All but the first, from which a rule makes them: commands take longer."""
_PADDED = {
    "i64": "i",
    "f64": "(to-f64 i)",
    "T": "(N i)",
    "MS": "(multiset-of (N i))",
    "Form": "(pair (multiset-of (N i)) (multiset-of))",
    "Dim": "(DK i)",
    "Unit": "()",
}
"""A value of each sort, by which rows can be told apart."""
_PADDING_TERMS = frozenset({"N", "DK"})
"""Constructors among these values."""
_SUBSUMED = "(subsume ("


def with_twins(texts: Sequence[str]) -> list[str]:
    """The texts of a program, with twin relations declared after their constructors, and filled."""
    names = {part[: part.index(" ")] for text in texts for part in text.split(_SUBSUMED)[1:]}
    declaration = re.compile(
        rf"\(constructor ({'|'.join(map(re.escape, sorted(names)))}) (\([^()]*\))[^()]*\)"
    )
    filled = [_filling_twins(text) if _SUBSUMED in text else text for text in texts]
    return [declaration.sub(rf"\g<0> (relation {TWIN}\1 \2)", text) if names else text for text in filled]


def _filling_twins(text: str) -> str:
    first, *parts = text.split(_SUBSUMED)
    return first + "".join(f"({TWIN}{_operation(part)} {_SUBSUMED}{part}" for part in parts)


def _operation(text: str) -> str:
    """The text up to the parenthesis that closes the one before it."""
    depth = 1
    for parenthesis in re.finditer(r"[()]", text):
        depth += 1 if parenthesis.group() == "(" else -1
        if depth == 0:
            return text[: parenthesis.end()]
    raise AssertionError(f"an action that is not closed: {text}")


def clear(engine: Engine, rest: Mapping[str, int], left: Mapping[str, int] | None = None) -> bool:
    """Delete the rows that tables have beyond those they had at rest.

    Parameters
    ----------
    engine
        What it holds of other tables than those in ``rest`` is deleted, too.
    rest
        Rows by table, before the use. A table that had some then must not have been added to.
    left
        Rows by table at present; None: not known.

    Returns
    -------
    bool
        Whether exactly that is left. If not, the engine must not be used again.
    """
    left = engine.sizes() if left is None else left
    grown = {name for name, rows in left.items() if rows != rest.get(name, 0)}
    if any(rest.get(name, 0) for name in grown):
        return False
    if grown:
        _learn(engine, (grown | (engine.emptied & rest.keys())) - engine.cleared)
        engine.execute_again(f"({_PADDING} -1) (run {_COUNT} 1) (run {_PAD} 1) (run {_CLEAR} 1)")
        left = engine.sizes()
    return all(rows == rest.get(name, 0) for name, rows in left.items())


def _learn(engine: Engine, names: Collection[str]) -> None:
    """Load the rules that pad and clear these tables."""
    if not names:
        return
    if not engine.cleared:
        engine.execute(
            f"(ruleset {_CLEAR}) (ruleset {_PAD}) (ruleset {_COUNT}) (relation {_PADDING} (i64))"
            f'(rule (({_PADDING} -1)) ({_PADDING_ROWS}) :ruleset {_COUNT} :name "{_COUNT}")'
        )
        names = {*names, _PADDING}
    tables = engine.freeze().functions
    if not engine.cleared:
        names = {*names, *(_PADDING_TERMS & tables.keys())}
    padding: list[str] = []
    for name in sorted(names):
        inputs, output = tables[name].input_sorts, tables[name].output_sort
        row = f"({' '.join([name, *(f'x{place}' for place in range(len(inputs)))])})"
        deleted = f"(delete {row})"
        if name.startswith(TWIN):
            deleted += f" (delete {row.replace(TWIN, '', 1)})"
        engine.execute(f'(rule ((= y {row})) ({deleted}) :ruleset {_CLEAR} :name "clear-{name}")')
        if name != _PADDING and inputs and tables.keys() >= _PADDING_TERMS and _PADDED.keys() >= {*inputs}:
            pad = f"({' '.join([name, *(_PADDED[sort] for sort in inputs)])})"
            action = f"(set {pad} {_PADDED[output]})" if name in engine.functions else pad
            padding.append(action)
    if padding:
        text = f'(rule (({_PADDING} i)) ({" ".join(padding)}) :ruleset {_PAD} :name "pad-{min(names)}")'
        engine.execute(text)
    engine.cleared.update(names)
