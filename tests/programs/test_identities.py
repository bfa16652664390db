"""Expressions that are equal to simpler ones come out in the simpler form, and with the right values."""

import numpy as np
import pytest

import esat
from benchmarks.identities import known
from benchmarks.identity_cases import IDENTITIES, Identity

VIEWS = {"dimshuffle", "fill", "alloc", "shape_i"}


class Plain:
    """The functions of the cases, of NumPy."""

    exp, sinh, cosh, tanh, sqrt = np.exp, np.sinh, np.cosh, np.tanh, np.sqrt
    sin, cos, tan, trace, diag = np.sin, np.cos, np.tan, np.trace, np.diag
    concatenate, conj, real, imag, abs = np.concatenate, np.conj, np.real, np.imag, np.abs

    @staticmethod
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))


def operations(function) -> int:
    return sum(node.op.name not in VIEWS for node in function.optimized.toposort())


def inputs_of(case: Identity) -> tuple[list, list[np.ndarray]]:
    """Variables of a case, and values for them."""
    makers = {"v": esat.vector, "z": esat.zvector}
    variables = [makers.get(kind, esat.matrix)(name) for name, kind in zip("abcsy", case.inputs, strict=True)]
    draws = [np.random.default_rng(seed) for seed in range(len(case.inputs))]
    values = [value_of(kind, draw) for kind, draw in zip(case.inputs, draws, strict=True)]
    return variables, values


def value_of(kind: str, draw: np.random.Generator) -> np.ndarray:
    """A value for an input."""
    if kind in "vz":
        return draw.uniform(0.3, 2.0, 6) * (1 + 2j if kind == "z" else 1.0)
    matrix = draw.uniform(0.3, 2.0, (6, 6))
    return {"m": matrix, "s": matrix + matrix.T, "o": np.linalg.qr(matrix)[0]}[kind]


@pytest.mark.parametrize("case", IDENTITIES, ids=lambda case: f"{case.family}: {case.name}")
def test_simplest_form(case: Identity) -> None:
    variables, values = inputs_of(case)
    output = case.build(esat, *known(case, variables))
    graph = esat.Graph(variables, output, on_unused_input="ignore")
    function = esat.compile(graph)
    assert operations(function) <= case.fewest, function.report.saturation.findings
    expected = case.build(Plain, *values)
    found = function(*values)
    np.testing.assert_allclose(np.broadcast_to(found, np.shape(expected)), expected, rtol=1e-9, atol=1e-10)


def test_the_gradient_of_the_logistic_loss_is_the_residual() -> None:
    x, y, w = esat.matrix("x"), esat.vector("y"), esat.vector("w")
    p = esat.sigmoid(x @ w)
    loss = -(y * esat.log(p) + (1 - y) * esat.log(1 - p)).mean()
    graph = esat.Graph([x, y, w], esat.grad(loss, w))
    function = esat.compile(graph, esat.Mode(accuracy="ignore"))
    names = sorted(node.op.name for node in function.optimized.toposort())
    assert [name for name in names if name not in VIEWS | {"cast", "shape_i"}] == [
        "div",
        "matmul",
        "matmul",
        "sigmoid",
        "sub",
    ]
    # Where the labels are certain, p - y has no digits left in float64; both programs agree elsewhere.
    accurate = esat.compile(graph)
    assert any("sigmoid" in str(finding) for finding in accurate.report.saturation.findings)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 4)), rng.uniform(0.0, 1.0, 30), rng.normal(size=4)
    residual = 1 / (1 + np.exp(-values[0] @ values[2])) - values[1]
    for program in (function, accurate):
        np.testing.assert_allclose(program(*values), values[0].T @ residual / 30, rtol=1e-12)
    certain = np.array([[1.0], [2.0]]), np.array([1.0, 1.0]), np.array([40.0])
    np.testing.assert_allclose(accurate(*certain), [-(np.exp(-40) + 2 * np.exp(-80)) / 2], rtol=1e-12)


def test_what_the_algebra_found_is_told() -> None:
    s, y = esat.vector("s"), esat.vector("y")
    function = esat.compile(esat.Graph([s, y], s * (1 - y) - (1 - s) * y))
    (finding,) = function.report.saturation.findings
    assert (finding.kind, finding.found, finding.before, finding.after) == ("form", "(s - y)", 5, 1)
    (part,) = function.explain().parts
    assert part.algebra == finding
    assert f"by algebra: {finding}" in str(function.explain())


def test_what_is_found_of_several_alike_parts_is_told_once() -> None:
    names = [(f"w{layer}", f"g{layer}") for layer in range(4)]
    pairs = [(esat.vector(weight), esat.vector(gradient)) for weight, gradient in names]
    outputs = [w - 0.5 * (0.25 * w + g) for w, g in pairs]
    function = esat.compile(esat.Graph([v for pair in pairs for v in pair], outputs))
    # Layers are alike in one of two orders of their names.
    findings = function.report.saturation.findings
    assert len(findings) <= 2
    assert sum(finding.places for finding in findings) == len(pairs)
    assert {(finding.before, finding.after) for finding in findings} == {(4, 3)}
    assert any("places like this" in str(finding) for finding in findings)
    values = [np.linspace(-1, 2, 5) + shift for shift in range(8)]
    for w, g, got in zip(values[::2], values[1::2], function(*values), strict=True):
        np.testing.assert_allclose(got, w - 0.5 * (0.25 * w + g), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_integers_wrap_around_as_they_did(dtype: str) -> None:
    a, b = esat.vector("a", dtype=dtype), esat.vector("b", dtype=dtype)
    pairs = {
        2: (a + b) * (a + b) - (a - b) * (a - b),
        0: (a + b) * (a - b) - a * a + b * b,
        4: (a + b) * (a + b) * (a + b) - a * a * a - b * b * b,
    }
    function = esat.compile(esat.Graph([a, b], list(pairs.values())))
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    left, right = (rng.integers(limits.min, limits.max, 50, dtype=dtype, endpoint=True) for _ in range(2))
    with np.errstate(over="ignore"):
        total, difference = left + right, left - right
        expected = [
            total * total - difference * difference,
            total * difference - left * left + right * right,
            total * total * total - left * left * left - right * right * right,
        ]
    for got, want in zip(function(left, right), expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(np.broadcast_to(got, want.shape), want)
    for fewest, output in pairs.items():
        single = esat.compile(esat.Graph([a, b], output, on_unused_input="ignore"))
        assert operations(single) <= fewest


@pytest.mark.parametrize(
    "build",
    [
        lambda a, b: esat.sqrt(a * a) - a,
        lambda a, b: (1 + 2.0**-40) * b * b - b * b,
        lambda a, b: (a + 0.1) * 3 - a * 3 - 0.3 + b,
        lambda a, b: (a + b) ** 2 - a * a - 2.0000001 * a * b - b * b,
        lambda a, b: a // b * b - a,
        lambda a, b: esat.exp(a + 3) - 3 * esat.exp(a + 2) + 3 * esat.exp(a + 1) - esat.exp(a),
        lambda a, b: esat.tanh(a) - esat.tanh(b),
        lambda a, b: esat.exp(a) * esat.exp(b) - esat.exp(a + b + 1e-7),
        lambda a, b: esat.exp(0.1) * esat.exp(0.2 + a) - esat.exp(0.3 + a),
        lambda a, b: esat.sin(a) ** 2 + esat.cos(b) ** 2,
        lambda a, b: esat.sin(esat.exp(a)) - esat.exp(esat.sin(a)),
        lambda a, b: esat.exp(1.0 * a) ** 3 - esat.exp(3.0000001 * a),
    ],
)
def test_what_is_nearly_equal_stays_apart(build) -> None:
    a, b = esat.vector("a"), esat.vector("b")
    function = esat.compile(esat.Graph([a, b], build(a, b), on_unused_input="ignore"))
    left, right = np.array([-2.5, 0.75, 1e3]), np.array([0.5, -3.0, 2.0])
    values = esat.evaluate(build(a, b), {a: left[:2], b: right[:2]})
    np.testing.assert_allclose(
        np.broadcast_to(function(left[:2], right[:2]), 2), values, rtol=1e-6, atol=1e-13
    )


def test_shapes_of_what_is_zero_are_kept() -> None:
    a, b = esat.matrix("a"), esat.vector("b")
    function = esat.compile(esat.Graph([a, b], [(a + b) * 2 - 2 * a - 2 * b, (b + 1) * 2 - 2 * b - 2]))
    wide, narrow = function(np.ones((3, 4)), np.ones(4))
    np.testing.assert_array_equal(wide, np.zeros((3, 4)))
    np.testing.assert_array_equal(narrow, np.zeros(4))


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_what_is_zero_takes_its_shape_from_no_product(mode) -> None:
    a, b, c = (esat.matrix(name) for name in "abc")
    zeros = {
        "sums": a @ (b + c) - a @ b - a @ c,
        "one": (a @ b - a @ b),
        "filled": esat.fill(a @ b, c[:1, :1].sum()),
    }
    values = np.ones((3, 4)), np.ones((4, 5)), np.full((4, 5), 2.0)
    for name, output in zeros.items():
        if mode == "greedy" and name == "sums":
            continue
        function = esat.compile(esat.Graph([a, b, c], output, on_unused_input="ignore"), mode=mode)
        assert "matmul" not in {node.op.name for node in function.optimized.toposort()}, name
        np.testing.assert_array_equal(function(*values), np.full((3, 5), 2.0 if name == "filled" else 0.0))


@pytest.mark.parametrize(
    "build",
    [
        lambda a, b, c: (a * c + b * c) / (a + b) - c,
        lambda a, b, c: (a * b * c + a * c) / (b * c + c) - a,
        lambda a, b, c: c * ((a + b) / c) - a - b,
        lambda a, b, c: (a * c - b * c + c) / (a - b + 1) + 2 * c,
    ],
)
def test_what_equals_one_of_its_factors_is_not_copied_for_ever(build) -> None:
    variables = [esat.vector(name) for name in "abc"]
    function = esat.compile(esat.Graph(variables, build(*variables)))
    assert function.report.stop_reason == "saturated"
    assert function.report.e_nodes < 120
