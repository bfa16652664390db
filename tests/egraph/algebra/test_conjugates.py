"""Conjugates and parts of complex numbers: what is equal is proved, what is nearly equal is not."""

import numpy as np
import pytest
from egraph.algebra.proving import proved

import esat
from esat import conj, imag, real

z, w = esat.zvector("z"), esat.zvector("w")
c = esat.vector("c", dtype="complex64")
r, s = esat.vector("r"), esat.vector("s")
M, N = esat.matrix("M", dtype="complex128"), esat.matrix("N", dtype="complex128")
INPUTS = [z, w, c, r, s, M, N]

EQUAL = {
    "a product": (conj(z * w), conj(z) * conj(w)),
    "a sum and a quotient": (conj(z + w / z), conj(z) + conj(w) / conj(z)),
    "twice": (conj(conj(z) * w), z * conj(w)),
    "parts": (real(z) + 1j * imag(z), z),
    "real part of a product": (real(z * w), real(z) * real(w) - imag(z) * imag(w)),
    "imaginary part of a product": (imag(z * w), real(z) * imag(w) + imag(z) * real(w)),
    "real part of a real multiple": (real(r * (1 + 2j)), r),
    "a real factor": (conj(r * z), r * conj(z)),
    "constants": (conj((2 + 3j) * z), (2 - 3j) * conj(z)),
    "i": ((1j * z) * (1j * z), -z * z),
    "no imaginary part": (imag(z + conj(z)), 0 * real(z)),
    "a squared size": (abs(z) ** 2, real(z) ** 2 + imag(z) ** 2),
    "a squared size of a product": (abs(z * w) ** 2, abs(z) ** 2 * abs(w) ** 2),
    "a squared size of a quotient": (abs(z / w) ** 2, abs(z) ** 2 / abs(w) ** 2),
    "a size of a conjugate": (abs(conj(z) * z**2), abs(z**2 * conj(z))),
    "parallelogram": (abs(z + w) ** 2 + abs(z - w) ** 2, 2 * abs(z) ** 2 + 2 * abs(w) ** 2),
    "an exponential": (conj(esat.exp(z)), esat.exp(conj(z))),
    "a turn": (conj(esat.exp(1j * r)), esat.exp(-1j * r)),
    "a turn and back": (esat.exp(1j * r) * esat.exp(-1j * r), 1 + 0j * r),
    "sums of angles": (
        (esat.cos(r) + 1j * esat.sin(r)) * (esat.cos(s) + 1j * esat.sin(s)),
        esat.cos(r + s) + 1j * esat.sin(r + s),
    ),
    "a sine": (conj(esat.sin(z)), esat.sin(conj(z))),
    "a logarithm": (conj(esat.log(z)), esat.log(conj(z))),
    "a product of matrices": (conj((M @ N).T), conj(N.T) @ conj(M.T)),
    "a squared norm": (real(conj(z) @ z), (real(z) ** 2).sum() + (imag(z) ** 2).sum()),
    "a join": (conj(esat.concatenate([z, w])), esat.concatenate([conj(z), conj(w)])),
    "single precision": (conj(c * c) * 1j, conj(c * c * -1j)),
}
DIFFERENT = {
    "itself": (conj(z), z),
    "one factor": (conj(z * w), conj(z) * w),
    "a square": (conj(z * z), z * z),
    "parts": (imag(z), real(z)),
    "parts of a product": (real(z * w), real(z) * real(w)),
    "a sign": (real(z * w), real(z) * real(w) + imag(z) * imag(w)),
    "a squared size": (real(z) ** 2 - imag(z) ** 2, real(z * conj(z))),
    "a square and a squared size": (abs(z) ** 2 + 0j * z, z * z),
    "a size": (abs(z), real(z)),
    "sizes": (abs(z * w), abs(z)),
    "constants": (conj((2 + 3j) * z), (2 + 3j) * conj(z)),
    "i": ((1j * z) * (1j * z), z * z),
    "a real factor": (imag(z * r), imag(z)),
    "a turn": (conj(esat.exp(1j * r)), esat.exp(1j * r)),
    "a turn by what is not real": (conj(esat.exp(1j * z)), esat.exp(-1j * z)),
    "an order": (conj((M @ N).T), conj(M.T) @ conj(N.T)),
    "a transform": (conj(esat.fft.fft(z)), esat.fft.fft(conj(z))),
    "the larger": (conj(esat.maximum(z, w)), esat.maximum(conj(z), conj(w))),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_is_proved(name) -> None:
    assert proved(INPUTS, *EQUAL[name])


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_nearly_equal_is_not(name) -> None:
    assert not proved(INPUTS, *DIFFERENT[name])


def test_values_are_numpys() -> None:
    rng = np.random.default_rng(5)
    values = {one: rng.normal(size=4) + 1j * rng.normal(size=4) for one in (z, w)}
    values |= {one: rng.normal(size=4) for one in (r, s)}
    others = {c, M, N}
    pairs = [pair for pair in EQUAL.values() if others.isdisjoint(esat.graph.ancestors(list(pair)))]
    outputs = [output for pair in pairs for output in pair]
    found = esat.compile(esat.Graph(list(values), outputs))(*values.values())
    for got, want in zip(found, esat.evaluate(outputs, values), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
