"""What rules know of dtypes: tables from a dtype's number, and rounding to a dtype in float64.

A value ``v`` is rounded to a floating dtype of p bits and least subnormal 2**-q by two classic
tricks: adding and subtracting ``1.5 * 2**(52 - q)`` rounds to a multiple of the least subnormal,
and Veltkamp's splitting ``t = v * (2**(53 - p) + 1); t - (t - v)`` to p bits (Dekker, "A
floating-point technique for extending the available precision", 1971). Both constants are 0
for dtypes that need no rounding, where the same expressions give ``v`` back. Values of the dtype
stay as they are; others come within one unit in the last place (two roundings are not always one).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np

from esat.base.records import record
from esat.graph.types import DTYPES

EXACT_INTEGER = 2.0**53 - 1
"""Largest integer below which every float64 result of integer arithmetic is exact."""


@record(frozen=True, slots=True)
class _Format:
    """How values of one dtype lie in float64."""

    low: float
    high: float
    quantum: float
    splitter: float


def _format(name: str) -> _Format:
    dtype = np.dtype(name)
    if dtype.kind == "b":
        return _Format(0.0, 1.0, 0.0, 0.0)
    if dtype.kind in "iu":
        information = np.iinfo(dtype)
        low = max(float(information.min), -EXACT_INTEGER)
        return _Format(low, min(float(information.max), EXACT_INTEGER), 0.0, 0.0)
    real = np.empty(0, dtype).real.dtype
    limits = np.finfo(real)
    high = float(limits.max)
    if real.itemsize == 8:
        return _Format(-high, high, 0.0, 0.0)
    bits = limits.nmant + 1
    least = round(np.log2(float(limits.smallest_subnormal)))
    return _Format(-high, high, 1.5 * 2.0 ** (52 + least), 2.0 ** (53 - bits) + 1.0)


def dtype_tables() -> str:
    """Declarations and contents of the dtype tables, as egglog text.

    ``dtype-format d quantum splitter low high``: see :func:`rounded`.
    ``real-dtype``: the real counterpart. ``arithmetic-dtype``: float64 folds it as NumPy does.
    ``integer-dtype``. ``exact-cast a b``: a value of ``a`` that is one of ``b`` is kept by a cast.
    """
    lines = [
        "(relation dtype-format (i64 f64 f64 f64 f64))",
        "(function real-dtype (i64) i64 :no-merge)",
        "(relation arithmetic-dtype (i64))",
        "(relation integer-dtype (i64))",
        "(relation exact-cast (i64 i64))",
    ]
    for number, name in enumerate(DTYPES):
        kind = np.dtype(name).kind
        form = _format(name)
        lines.append(f"(dtype-format {number} {form.quantum!r} {form.splitter!r} {form.low!r} {form.high!r})")
        real = np.empty(0, name).real.dtype.name
        lines.append(f"(set (real-dtype {number}) {DTYPES.index(real)})")
        if kind in "iuf":
            lines.append(f"(arithmetic-dtype {number})")
        if kind in "iu":
            lines.append(f"(integer-dtype {number})")
        for target, target_name in enumerate(DTYPES):
            if _keeps(kind, np.dtype(target_name).kind):
                lines.append(f"(exact-cast {number} {target})")
    return "\n".join(lines)


def _keeps(source: str, target: str) -> bool:
    order = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    return target != "b" and order[source] <= order[target]


def ring_facts(strict: bool) -> str:
    """Dtypes whose sums and products may be reordered: ``ring-dtype``; and divided: ``field-dtype``.

    Wrap-around integers are a ring, exactly; floats are a field over the reals only, so not in strict mode.
    """
    lines = []
    for number, name in enumerate(DTYPES):
        kind = np.dtype(name).kind
        if kind in "iu" or (kind in "fc" and not strict):
            lines.append(f"(ring-dtype {number})")
        if kind in "fc" and not strict:
            lines.append(f"(field-dtype {number})")
    return "\n".join(lines)


def rounded(result: str, value: str, dtype: str) -> str:
    """Facts that bind ``result`` to ``value`` rounded to ``dtype``; they fail outside its range.

    ``value`` and ``dtype`` are variables. Zero results are positive: the e-graph has no -0.0.
    """
    r, v, d = result, value, dtype
    return (
        f"(dtype-format {d} {r}-m {r}-s {r}-low {r}-high) (= {r}-q (- (+ {v} {r}-m) {r}-m))"
        f" (= {r}-t (* {r}-q {r}-s)) (= {r} (+ 0.0 (- {r}-t (- {r}-t {r}-q))))"
        f" (<= {r} {r}-high) (>= {r} {r}-low)"
    )


def folded_sum(result: str, value: str, one: str, other: str) -> str:
    """Facts that hold where the sum of two constants has lost nothing that either of them alone would show.

    ``value`` is ``one + other`` in float64, ``result`` that, :func:`rounded`; what both left out follows by
    Knuth's two-sum. In ``(x - 100) + 1e-6`` nothing but 1e-6 is left at ``x = 100``, so at most one unit in
    the last place of the smaller constant may be missing. The spacing of the dtype is that of float64 by its
    splitter.
    """
    r, v = result, value
    return (
        f"(= {r}-p (- {v} {one}))"
        f" (<= (abs (+ (+ (- {one} (- {v} {r}-p)) (- {other} {r}-p)) (- {v} {r})))"
        f" (* (* {2.0**-52!r} (abs (- {r}-s 1.0))) (min (abs {one}) (abs {other}))))"
    )


_MACRO = re.compile(r"\((rounded|folded-sum)((?: [\w-]+)+)\)")
_MACROS: Mapping[str, Callable[..., str]] = {"rounded": rounded, "folded-sum": folded_sum}


def expand_arithmetic(text: str) -> str:
    """``text`` with every ``(rounded ...)`` and ``(folded-sum ...)`` replaced by its facts."""
    return _MACRO.sub(lambda match: _MACROS[match[1]](*match[2].split()), text)
