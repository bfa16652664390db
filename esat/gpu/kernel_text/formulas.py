"""Functions of op templates written out as kernel text, over the functions of ``math`` and each other.

``{0}`` and ``{1}`` are the operands, ``T`` their dtype. Steps, which end with ``;``, name values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from esat.codegen.vector_math import coefficients
from esat.codegen.vector_math.special import DIGAMMA_ZERO

INTEGER_POWER = """\
{power} = {T}(1)
{square} = {base}
{rest} = uint64({exponent})
while {rest} != uint64(0):
    if {rest} & uint64(1) != uint64(0):
        {power} = {T}({power} * {square})
    {square} = {T}({square} * {square})
    {rest} = {rest} >> uint64(1)"""
"""Squaring and multiplying, wrapping around; the exponent counts as unsigned."""

_FLOATING = {
    "absolute": "fabs({0})",
    "isnan": "{0} != {0}",
    "isinf": "fabs({0}) == {T}(math.inf)",
    "isfinite": "fabs({0}) < {T}(math.inf)",
    "signbit": "copysign({T}(1), {0}) < {T}(0)",
    "sign": "{0} if {0} != {0} else {T}({0} > {T}(0)) - {T}({0} < {T}(0))",
    # Conversions to int64 would do for small numbers only, and functions of math give integers.
    "rint": "near := fabs({0}) + {whole}; copysign(near - {whole}, {0}) if fabs({0}) < {whole} else {0}",
    "floor": "near := rint({0}); copysign(near - {T}(near > {0}), {0})",
    "ceil": "near := rint({0}); copysign(near + {T}(near < {0}), {0})",
    "trunc": "near := fabs({0}); down := floor(near); copysign(down, {0})",
    "maximum": "{0} if {0} > {1} or {0} != {0} else {1}",
    "minimum": "{0} if {0} < {1} or {0} != {0} else {1}",
    "fmax": "{0} if {0} >= {1} or {1} != {1} else {1}",
    "fmin": "{0} if {0} <= {1} or {1} != {1} else {1}",
    "select": "{1} if {0} else {2}",
    # The steps of npy_remainder and npy_floor_divide in NumPy's npymath.
    "remainder": (
        "rest := fmod({0}, {1});"
        " moved := rest + {1} if rest != {T}(0) and (rest < {T}(0)) != ({1} < {T}(0)) else rest;"
        " copysign({T}(0), {1}) if rest == {T}(0) else moved"
    ),
    "floor_divide": (
        "plain := {0} / {1}; rest := fmod({0}, {1}); near := ({0} - rest) / {1};"
        " near := near - {T}(1) if rest != {T}(0) and (rest < {T}(0)) != ({1} < {T}(0)) else near;"
        " down := floor(near); down := down + {T}(1) if near - down > {T}(0.5) else down;"
        " down := copysign({T}(0), plain) if near == {T}(0) else down; plain if {1} == {T}(0) else down"
    ),
    "exp2": "pow({T}(2), {0})",
    "sigmoid": "power := exp(-fabs({0})); ({T}(1) if {0} >= {T}(0) else power) / ({T}(1) + power)",
    "softplus": "above := maximum({0}, {T}(0)); above + log1p(exp(-fabs({0})))",
    "logaddexp": (
        "above := maximum({0}, {1}); {0} + {T}(0.6931471805599453) if {0} == {1}"
        " else above + log1p(exp(-fabs({0} - {1})))"
    ),
    "log1mexp": "log(-expm1({0})) if {0} > {T}(-0.6931471805599453) else log1p(-exp({0}))",
    # A power is off by the rounding of its exponent; one step of Newton's method repairs that.
    "cbrt": (
        "size := fabs({0}); near := pow(size, {T}(0.3333333333333333));"
        " near := near - (near - size / (near * near)) * {T}(0.3333333333333333)"
        " if size > {T}(0) and size < {T}(math.inf) else size; copysign(near, {0})"
    ),
    # Below 4, exp(x*x) with what its argument was rounded by; above, a continued fraction that ends.
    "erfcx": (
        "square := {0} * {0}; rounding := fma({0}, {0}, -square); size := fabs({0});"
        " grown := exp(square); grown := grown + grown * rounding if grown < {T}(math.inf) else grown;"
        " large := {T}(0.5641895835477563) / {chain};"
        " large if {0} > {T}(4) else grown * erfc({0})"
    ),
}  # fmt: skip
_DEPTH = 24


def _continued_fraction() -> str:
    """The reciprocal of erfcx but for a factor: x + 1/2 / (x + 1 / (x + 3/2 / (x + ...)))."""
    text = "size"
    for step in range(_DEPTH, 0, -1):
        text = f"(size + {{T}}({step / 2}) / {text})"
    return text


_FLOATING["erfcx"] = _FLOATING["erfcx"].replace("{chain}", _continued_fraction())


def _polynomial(variable: str, coefficients: Sequence[float]) -> str:
    """Horner's rule, as text."""
    text = f"{{T}}({coefficients[-1]!r})"
    for coefficient in reversed(coefficients[:-1]):
        text = f"({text} * {variable} + {{T}}({coefficient!r}))"
    return text


# As :func:`esat.codegen.vector_math.special.digamma`, with a tangent for what the reflection adds.
_FLOATING["digamma"] = (
    "size := fabs({0}); above := {0} >= {T}(1); place := size - {T}(1) if above else size;"
    " whole := size if above else size + {T}(1); product := {T}(1); total := {T}(0);"
    + 6
    * (
        " down := place > {T}(1); total := total * place + product if down else total;"
        " product := product * place if down else product; place := place - {T}(1) if down else place;"
    )
    + " share := {T}(1) / whole if whole >= {T}(7) else total / product;"
    f" far := {_polynomial('(share * share)', coefficients.DIGAMMA_REMAINDER[64])};"
    " far := share * ({T}(0.5) + share * far);"
    f" near := {_polynomial('(place - {T}(0.5))', coefficients.DIGAMMA[64])};"
    f" near := ((place - {{T}}({DIGAMMA_ZERO[0]!r})) - {{T}}({DIGAMMA_ZERO[1]!r})) * near + share;"
    " upper := log(whole) - far if whole >= {T}(7) else near; turn := size - rint(size);"
    " pole := {T}(math.nan) if size >= {T}(1) and turn == {T}(0) else upper;"
    " tilt := {T}(3.141592653589793) * cos({T}(3.141592653589793) * turn);"
    " low := pole + tilt / sin({T}(3.141592653589793) * turn) if {0} < {T}(0) else pole - {T}(1) / {0};"
    " upper if above else low"
)

_INTEGERS = {
    "select": "{1} if {0} else {2}",
    "maximum": "{0} if {0} > {1} else {1}",
    "minimum": "{0} if {0} < {1} else {1}",
    "wrapping_add": "{T}({wide}({0}) + {wide}({1}))",
    "wrapping_sub": "{T}({wide}({0}) - {wide}({1}))",
    "wrapping_mul": "{T}({wide}({0}) * {wide}({1}))",
    # Of zero, where a quotient is 0; numba's own operators round down.
    "floor_divide": "safe := {T}(1) if {refused} else {1}; {T}(0) if {1} == {T}(0) else {T}({0} // safe)",
    "remainder": "safe := {T}(1) if {refused} else {1}; {T}(0) if {1} == {T}(0) else {T}({0} % safe)",
    "shift_left": (
        "inside := {1} >= {T}(0) and {1} < {T}({bits}); moved := {1} if inside else {T}(0);"
        " {T}({0} << moved) if inside else {T}(0)"
    ),
}
_SIGNED = _INTEGERS | {
    "absolute": "{T}(-{0}) if {0} < {T}(0) else {0}",
    "sign": "{T}({0} > 0) - {T}({0} < 0)",
    "fmod": (
        "safe := {T}(1) if {refused} else {1}; rest := {T}({0} % safe);"
        " rest := {T}(rest - safe) if rest != {T}(0) and (rest < {T}(0)) != ({0} < {T}(0)) else rest;"
        " {T}(0) if {1} == {T}(0) else rest"
    ),
    "shift_right": (
        "inside := {1} >= {T}(0) and {1} < {T}({bits}); moved := {1} if inside else {T}({bits} - 1);"
        " {T}({0} >> moved)"
    ),
}
_UNSIGNED = _INTEGERS | {
    "absolute": "{0}",
    "sign": "{T}({0} > {T}(0))",
    "fmod": "safe := {T}(1) if {refused} else {1}; {T}(0) if {1} == {T}(0) else {T}({0} % safe)",
    "shift_right": (
        "inside := {1} < {T}({bits}); moved := {1} if inside else {T}(0);"
        " {T}({0} >> moved) if inside else {T}(0)"
    ),
}
_REFUSED = {
    # The quotient of the least integer by -1 does not fit: processors trap.
    "signed": "{1} == {T}(0) or ({1} == {T}(-1) and {0} == {T}{lowest})",
    "unsigned": "{1} == {T}(0)",
}


def _table() -> Mapping[tuple[str, str], str]:
    kinds = {"floating": _FLOATING, "signed": _SIGNED, "unsigned": _UNSIGNED}
    table = {
        (name, kind): formula.replace("{refused}", _REFUSED.get(kind, ""))
        for kind, formulas in kinds.items()
        for name, formula in formulas.items()
    }
    return MappingProxyType(table | {("select", "boolean"): "{1} if {0} else {2}"})


FORMULAS: Mapping[tuple[str, str], str] = _table()
"""Name and kind of the operands (``floating``, ``signed``, ``unsigned``, ``boolean``) -> text."""
