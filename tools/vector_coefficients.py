"""Write ``esat/codegen/vector_math/coefficients.py``: run ``python -m tools.vector_coefficients``.

Every polynomial interpolates its function at the Chebyshev nodes of the interval, in 60 digits, and is
then rounded; that is within a factor of two of the best polynomial, and needs no iteration.
"""

from __future__ import annotations

import importlib
import struct
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from esat.base.records import record
from esat.codegen.vector_math import coefficients as written

mp: Any = importlib.import_module("mpmath")


@record(frozen=True)
class Fit:
    """One polynomial: what it approximates, where, and of what degree in each format."""

    name: str
    meaning: str
    function: Callable[[Any], Any]
    interval: Callable[[], tuple[Any, Any]]
    degrees: dict[int, int]


@record(frozen=True)
class Quotient:
    """A function as ``p / ((a x + b) p + r)``, with polynomials ``p`` and ``r``, for its relative error.

    Where ``r`` is small beside the rest, what rounding does to ``p`` cancels.

    Attributes
    ----------
    name
        Of the three tables, without what tells them apart.
    degrees
        Of ``p`` in each format; that of ``r`` is one less.
    limits, centres
        Approximated is the function from 0 to a limit, with nodes in ``(x - centre) / (x + centre)``.
    """

    name: str
    meaning: str
    function: Callable[[Any], Any]
    degrees: dict[int, int]
    limits: dict[int, str]
    centres: dict[int, str]

    def place(self, bits: int, t: Any) -> Any:
        """The ``x`` that lies at ``t`` of [-1, 1], as the interval is mapped there."""
        limit, centre = mp.mpf(self.limits[bits]), mp.mpf(self.centres[bits])
        mapped = -1 + (t + 1) / 2 * (1 + (limit - centre) / (limit + centre))
        return centre * (1 + mapped) / (1 - mapped)


def series(function: Callable[[Any], Any], limit: Callable[[Any], Any], radius: str = "1e-8") -> Any:
    """``function`` with its Taylor expansion ``limit`` near zero, where the formula cancels."""
    return lambda z: limit(z) if abs(z) < mp.mpf(radius) else function(z)


def of_root(function: Callable[[Any], Any], limit: Callable[[Any], Any]) -> Any:
    """A function of ``z = x * x`` from a function of ``x``."""
    return series(lambda z: function(mp.sqrt(z)), limit, "1e-14")


def symmetric(radius: Any) -> tuple[Any, Any]:
    """The interval ``[-radius, radius]``."""
    return -radius, radius


def scaled_erfc(centre: str, addend: str) -> Callable[[Any], Any]:
    """``erfcx(x) * (x + addend)`` in ``t = (x - centre) / (x + centre)``; its limit at one is 1/sqrt(pi)."""

    def at(t: Any) -> Any:
        x = mp.mpf(centre) * (1 + t) / (1 - t) if t < 1 else mp.mpf("1e60")
        if t > 1 - mp.mpf("1e-3"):
            terms = sum((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(1, 12))
            return (1 + terms) / (x * mp.sqrt(mp.pi)) * (x + mp.mpf(addend))
        return mp.erfc(x) * mp.exp(x * x) * (x + mp.mpf(addend))

    return at


def log_gamma_quotient(u: Any) -> Any:
    """``lgamma(2 + u) / (u (u + 1))``, with the limits at the two zeros."""
    if abs(u) < mp.mpf("1e-12"):
        return mp.psi(0, 2) + u * (mp.psi(1, 2) / 2 - mp.psi(0, 2))
    if abs(u + 1) < mp.mpf("1e-12"):
        return -(mp.psi(0, 1) + (u + 1) * (mp.psi(1, 1) / 2 + mp.psi(0, 1)))
    return mp.loggamma(2 + u) / (u * (u + 1))


def stirling_remainder(z: Any) -> Any:
    """``x * (lgamma(x) - Stirling's leading terms)`` for ``z = 1 / x**2``; the limit is 1/12."""
    if z < mp.mpf("1e-12"):
        return mp.mpf(1) / 12 - z / 360
    x = 1 / mp.sqrt(z)
    leading = (x - mp.mpf("0.5")) * mp.log(x) - x + mp.log(2 * mp.pi) / 2
    return x * (mp.loggamma(x) - leading)


def digamma_quotient(t: Any) -> Any:
    """``digamma(t + 3/2)`` divided by the distance from its zero, with the limit there."""
    y = t + mp.mpf("0.5")
    root = mp.findroot(lambda x: mp.psi(0, 1 + x), mp.mpf("0.4616"))
    if abs(y - root) < mp.mpf("1e-12"):
        return mp.psi(1, 1 + root) + (y - root) * mp.psi(2, 1 + root) / 2
    return mp.psi(0, 1 + y) / (y - root)


def digamma_remainder(z: Any) -> Any:
    """``x**2 (log(x) - 1 / (2 x) - digamma(x))`` for ``z = 1 / x**2``; the limit is 1/12."""
    if z < mp.mpf("1e-12"):
        return mp.mpf(1) / 12 - z / 120
    x = 1 / mp.sqrt(z)
    return (mp.log(x) - 1 / (2 * x) - mp.psi(0, x)) / z


def tables() -> list[Fit]:
    """All polynomials."""
    one = mp.mpf(1)
    half_ln2 = mp.log(2) / 2 * mp.mpf("1.0005")
    quarter_pi_squared = (mp.pi / 4 * mp.mpf("1.001")) ** 2
    s_max = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)
    eighth_tangent = mp.tan(mp.pi / 8) * mp.mpf("1.001")
    return [
        Fit(
            "EXPONENTIAL",
            "(exp(r) - 1 - r) / r**2 for abs(r) <= ln(2)/2",
            series(lambda r: (mp.exp(r) - 1 - r) / r**2, lambda r: one / 2 + r / 6, "1e-12"),
            lambda: symmetric(half_ln2),
            {32: 4, 64: 10},
        ),
        Fit(
            "BINARY_EXPONENTIAL",
            "(2**r - 1) / r for abs(r) <= 1/2",
            series(lambda r: mp.expm1(r * mp.log(2)) / r, lambda r: mp.log(2) + r * mp.log(2) ** 2 / 2),
            lambda: symmetric(mp.mpf("0.5001")),
            {32: 5, 64: 10},
        ),
        Fit(
            "LOGARITHM_OF_QUOTIENT",
            "(log((1 + s) / (1 - s)) - 2 s) / s**3 in z = s**2, for s of logarithms in [-ln(2)/2, ln(2)/2]",
            of_root(lambda s: (mp.log((1 + s) / (1 - s)) - 2 * s) / s**3, lambda z: one * 2 / 3 + z * 2 / 5),
            lambda: (mp.mpf(0), s_max**2 * mp.mpf("1.001")),
            {32: 3, 64: 7},
        ),
        Fit(
            "LOGARITHM_NEAR_ONE",
            "(log(1 + f) - f + f**2 / 2) / f**3 for abs(f) <= 0.081",
            series(lambda f: (mp.log(1 + f) - f + f * f / 2) / f**3, lambda f: one / 3 - f / 4, "1e-9"),
            lambda: symmetric(mp.mpf("0.081")),
            {32: 5, 64: 11},
        ),
        Fit(
            "LOGARITHM",
            "(log(1 + f) - f + f**2 / 2) / f**3 for 1 + f in [sqrt(1/2), sqrt(2)]",
            series(lambda f: (mp.log(1 + f) - f + f * f / 2) / f**3, lambda f: one / 3 - f / 4, "1e-9"),
            lambda: (mp.sqrt(one / 2) - mp.mpf("1.0001"), mp.sqrt(2) - 1 + mp.mpf("0.0001")),
            {32: 8},
        ),
        Fit(
            "BINARY_LOGARITHM",
            "log2(1 + f) / f for 1 + f in [sqrt(1/2), sqrt(2)]",
            series(lambda f: mp.log(1 + f, 2) / f, lambda f: (1 - f / 2) / mp.log(2), "1e-20"),
            lambda: (mp.sqrt(one / 2) - mp.mpf("1.0001"), mp.sqrt(2) - 1 + mp.mpf("0.0001")),
            {32: 9, 64: 21},
        ),
        Fit(
            "DECIMAL_LOGARITHM",
            "log10(1 + f) / f for 1 + f in [sqrt(1/2), sqrt(2)]",
            series(lambda f: mp.log(1 + f, 10) / f, lambda f: (1 - f / 2) / mp.log(10), "1e-20"),
            lambda: (mp.sqrt(one / 2) - mp.mpf("1.0001"), mp.sqrt(2) - 1 + mp.mpf("0.0001")),
            {32: 9, 64: 21},
        ),
        Fit(
            "SINE",
            "(sin(x) - x) / x**3 in z = x**2, for abs(x) <= pi/4",
            of_root(lambda x: (mp.sin(x) - x) / x**3, lambda z: -one / 6 + z / 120),
            lambda: (mp.mpf(0), quarter_pi_squared),
            {32: 3, 64: 5},
        ),
        Fit(
            "COSINE",
            "(cos(x) - 1 + x**2 / 2) / x**4 in z = x**2, for abs(x) <= pi/4",
            of_root(lambda x: (mp.cos(x) - 1 + x * x / 2) / x**4, lambda z: one / 24 - z / 720),
            lambda: (mp.mpf(0), quarter_pi_squared),
            {32: 3, 64: 5},
        ),
        Fit(
            "SINE_OF_PI",
            "sin(pi x) / x in z = x**2, for abs(x) <= 1/2",
            of_root(lambda x: mp.sin(mp.pi * x) / x, lambda z: mp.pi - mp.pi**3 * z / 6),
            lambda: (mp.mpf(0), mp.mpf("0.25")),
            {64: 9},
        ),
        Fit(
            "HYPERBOLIC_SINE",
            "(sinh(x) - x) / x**3 in z = x**2, for abs(x) <= 1",
            of_root(lambda x: (mp.sinh(x) - x) / x**3, lambda z: one / 6 + z / 120),
            lambda: (mp.mpf(0), one),
            {32: 3, 64: 6},
        ),
        Fit(
            "ERROR_FUNCTION",
            "erf(x) / x - 1 in z = x**2, for abs(x) <= 0.75",
            of_root(lambda x: mp.erf(x) / x - 1, lambda z: 2 / mp.sqrt(mp.pi) * (1 - z / 3) - 1),
            lambda: (mp.mpf(0), mp.mpf("0.75") ** 2),
            {32: 5, 64: 10},
        ),
        Fit(
            "SCALED_COMPLEMENT",
            "exp(x**2) erfc(x) (x + 1/2) in t = (x - 4) / (x + 4), for x >= 0",
            scaled_erfc("4", "0.5"),
            lambda: (-one, one),
            {32: 12, 64: 24},
        ),
        Fit(
            "LOG_COMPLEMENT",
            "log2(erfc(x)), for 0.7 <= x <= 4",
            lambda x: mp.log(mp.erfc(x), 2),
            lambda: (mp.mpf("0.7"), mp.mpf(4)),
            {32: 8},
        ),
        Fit(
            "ARCTANGENT",
            "(atan(x) - x) / x**3 in z = x**2, for abs(x) <= tan(pi/8)",
            of_root(lambda x: (mp.atan(x) - x) / x**3, lambda z: -one / 3 + z / 5),
            lambda: (mp.mpf(0), eighth_tangent**2),
            {32: 4, 64: 10},
        ),
        Fit(
            "ARCSINE",
            "(asin(x) - x) / x**3 in z = x**2, for abs(x) <= 1/2",
            of_root(lambda x: (mp.asin(x) - x) / x**3, lambda z: one / 6 + z * 3 / 40),
            lambda: (mp.mpf(0), mp.mpf("0.25")),
            {32: 5, 64: 12},
        ),
        Fit(
            "LOG_GAMMA",
            "lgamma(2 + u) / (u (u + 1)) for abs(u) <= 1",
            log_gamma_quotient,
            lambda: symmetric(one),
            {64: 27},
        ),
        Fit(
            "STIRLING",
            "x (lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2) in z = 1 / x**2, for x >= 8",
            stirling_remainder,
            lambda: (mp.mpf(0), one / 64),
            {64: 7},
        ),
        Fit(
            "DIGAMMA",
            "digamma(t + 3/2) / (t + 0.0383...) for abs(t) <= 1/2, the zero taken away",
            digamma_quotient,
            lambda: symmetric(one / 2),
            {64: 21},
        ),
        Fit(
            "DIGAMMA_REMAINDER",
            "x**2 (log(x) - 1 / (2 x) - digamma(x)) in z = 1 / x**2, for x >= 7",
            digamma_remainder,
            lambda: (mp.mpf(0), one / 49),
            {64: 7},
        ),
    ]


def quotients() -> list[Quotient]:
    """All quotients of polynomials."""
    return [
        Quotient(
            "COMPLEMENT",
            "exp(x**2) erfc(x), for 0 <= x <= 10.2, or 27.5",
            lambda x: mp.erfc(x) * mp.exp(x * x),
            {32: 4, 64: 10},
            {32: "10.2", 64: "27.5"},
            {32: "2.5", 64: "3"},
        ),
    ]


def evaluate(coefficients: list[Any], x: Any) -> Any:
    """The polynomial at ``x``, by Horner's rule."""
    result = mp.mpf(0)
    for coefficient in reversed(coefficients):
        result = result * x + coefficient
    return result


def interpolate(fit: Fit, degree: int) -> tuple[list[Any], Any]:
    """Coefficients of the interpolating polynomial, lowest first, and its largest error found."""
    low, high = fit.interval()
    count = degree + 1
    nodes = [(low + high) / 2 + (high - low) / 2 * node for node in chebyshev_nodes(count)]
    vandermonde = mp.matrix(count, count)
    values = mp.matrix(count, 1)
    for row, node in enumerate(nodes):
        values[row] = fit.function(node)
        for column in range(count):
            vandermonde[row, column] = node**column
    solution = list(mp.lu_solve(vandermonde, values))
    points = [low + (high - low) * k / 200 for k in range(201)]
    error = max(abs(evaluate(solution, x) - fit.function(x)) for x in points)
    return solution, error


def chebyshev_nodes(count: int) -> list[Any]:
    """So many places in [-1, 1]."""
    return [mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def interpolate_quotient(quotient: Quotient, bits: int) -> tuple[tuple[list[Any], ...], Any]:
    """Coefficients of ``p``, which ends with 1, of the line and of ``r``, and the largest relative error."""
    degree = quotient.degrees[bits]
    count = 2 * degree + 2
    system, ones = mp.matrix(count, count), mp.matrix(count, 1)
    for row, t in enumerate(chebyshev_nodes(count)):
        x = quotient.place(bits, t)
        value = quotient.function(x)
        ones[row] = 1
        for power in range(degree + 1):
            system[row, power] = x**power / value
            system[row, degree + 1 + power] = -(x ** (power + 1))
    solution = list(mp.lu_solve(system, ones))
    numerator, denominator = solution[: degree + 1], [mp.mpf(1), *solution[degree + 1 :]]
    slope = denominator[-1] / numerator[-1]
    rest = [denominator[k] - (slope * numerator[k - 1] if k else 0) for k in range(degree + 1)]
    offset = rest[-1] / numerator[-1]
    rest = [rest[k] - offset * numerator[k] for k in range(degree)]
    places = [quotient.place(bits, mp.mpf(k) / 100 - 1) for k in range(201)]
    error = max(
        abs(evaluate(numerator, x) / evaluate(denominator, x) / quotient.function(x) - 1) for x in places
    )
    scaled = ([one / numerator[-1] for one in part] for part in (numerator, rest))
    first, last = scaled
    return (first, [offset, slope], last), error


def rounded(value: Any, bits: int) -> float:
    """The nearest number of a format."""
    if bits == 64:
        return float(value)
    nearest: float = struct.unpack("f", struct.pack("f", float(value)))[0]
    return nearest


def leading(value: Any, significand_bits: int) -> Any:
    """The leading bits of a value."""
    significand, exponent = mp.frexp(value)
    return mp.floor(significand * 2**significand_bits) / 2**significand_bits * mp.mpf(2) ** exponent


def split(value: Any, significand_bits: int, pieces: int, bits: int) -> tuple[float, ...]:
    """A constant as a sum: ``pieces - 1`` numbers of few bits, whose multiples are exact, and the rest."""
    parts = []
    for _ in range(pieces - 1):
        part = leading(value, significand_bits)
        parts.append(float(part))
        value -= part
    return (*parts, rounded(value, bits))


def split_on_grid(value: Any, bits: int) -> tuple[float, float]:
    """A constant as a multiple of the last bit of the first part of ln(2), and the rest."""
    last = 42 if bits == 64 else 15
    high = mp.nint(value * 2**last) / 2**last
    return float(high), rounded(value - high, bits)


def two_over_pi_words(count: int) -> tuple[int, ...]:
    """The first binary digits of 2/pi in words of 64 bits."""
    with mp.workprec(64 * count + 64):
        scaled = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (64 * count)))
    return tuple(scaled >> (64 * (count - 1 - k)) & (2**64 - 1) for k in range(count))


def constants() -> dict[str, tuple[str, object]]:
    """Split constants, with what they are."""
    ln2, half_pi = mp.log(2), mp.pi / 2
    factors = (1.3125, 1.15625, 1.0, 0.875, 0.75)
    log10_of_2 = mp.log10(2)
    return {
        "LN2": (
            "ln(2) in two parts; multiples of the first by an exponent are exact",
            {32: split(ln2, 15, 2, 32), 64: split(ln2, 42, 2, 64)},
        ),
        "LOG10_OF_2": (
            "log10(2) in two parts; multiples of the first by an exponent are exact",
            {32: split(log10_of_2, 15, 2, 32), 64: split(log10_of_2, 42, 2, 64)},
        ),
        "SCALED_LOGARITHMS": (
            "a factor c, and -log(c) in two parts; the first plus multiples of LN2's first part is exact",
            {bits: tuple((c, *split_on_grid(-mp.log(c), bits)) for c in factors) for bits in (32, 64)},
        ),
        "HALF_PI": (
            "pi/2 in 64-bit parts, for 32 and 64-bit results; quotients times all but the last are exact",
            {32: split(half_pi, 33, 2, 64), 64: split(half_pi, 33, 4, 64)},
        ),
        "HALF_PI_SINGLE": (
            "pi/2 in three parts",
            {32: split(half_pi, 24, 3, 32)},
        ),
        "HALF_PI_DOUBLE_WORD": (
            "pi/2 as its leading bits and the rest",
            {32: split(half_pi, 24, 2, 32), 64: split(half_pi, 53, 2, 64)},
        ),
    }


def module_text() -> str:
    """The source of the module of coefficients."""
    with mp.workdps(60):
        return _module_text()


def wrapped(line: str) -> list[str]:
    """A line of Python broken after commas, at the length the project keeps to."""
    return textwrap.wrap(
        line, 110, subsequent_indent="        ", break_long_words=False, break_on_hyphens=False
    )


def _polynomial_lines(
    name: str, polynomials: dict[int, list[Any]], meaning: str, label: str, errors: dict[int, Any]
) -> list[str]:
    """A table of one polynomial in each format, and what it is."""
    lines = [f"{name}: dict[int, tuple[float, ...]] = {{"]
    for bits, coefficients in polynomials.items():
        lines += wrapped(f"    {bits}: ({', '.join(repr(rounded(c, bits)) for c in coefficients)}),")
    accuracy = ", ".join(f"2**{float(mp.log(error, 2)):.1f} ({bits} bits)" for bits, error in errors.items())
    return [*lines, "}", f'"""{meaning}', "", f"{label}: {accuracy}.", '"""', ""]


def _module_text() -> str:
    lines = [
        '"""Coefficients and constants of the vector functions, by format.',
        "",
        "Written by ``python -m tools.vector_coefficients``, which says how.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "# fmt: off",
        "",
    ]
    for fit in tables():
        found = {bits: interpolate(fit, degree) for bits, degree in fit.degrees.items()}
        polynomials = {bits: coefficients for bits, (coefficients, _) in found.items()}
        errors = {bits: error for bits, (_, error) in found.items()}
        lines += _polynomial_lines(fit.name, polynomials, f"{fit.meaning}.", "Largest error", errors)
    for quotient in quotients():
        parts = {bits: interpolate_quotient(quotient, bits) for bits in quotient.degrees}
        errors = {bits: error for bits, (_, error) in parts.items()}
        for place, (part, letter) in enumerate((("COMMON", "p"), ("LINE", "a x + b"), ("REST", "r"))):
            polynomials = {bits: one[place] for bits, (one, _) in parts.items()}
            meaning = f"{letter} of p / ((a x + b) p + r), which is {quotient.meaning}."
            name = f"{quotient.name}_{part}"
            lines += _polynomial_lines(name, polynomials, meaning, "Largest relative error", errors)
    for name, (meaning, value) in constants().items():
        kind = "dict[int, tuple[float, ...]]"
        if name == "SCALED_LOGARITHMS":
            kind = "dict[int, tuple[tuple[float, float, float], ...]]"
        lines += [*wrapped(f"{name}: {kind} = {value!r}"), f'"""{meaning}."""', ""]
    words = ", ".join(f"0x{word:016X}" for word in two_over_pi_words(20))
    lines += wrapped(f"TWO_OVER_PI_WORDS: tuple[int, ...] = ({words})")
    lines += ['"""The first 1280 binary digits of 2/pi."""']
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(written.__file__).write_text(module_text())
