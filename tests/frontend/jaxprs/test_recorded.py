"""Jaxprs as JAX made them, translated without JAX: results are those that JAX computed."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import esat
from esat.frontend.jax import RULES, from_jax
from esat.frontend.jax.steps import value_of
from esat.frontend.jax.translation import Translation, input_for
from esat.ops.loops.record import Scan
from tests.frontend.jaxprs.recording import Atom, recorded

PROGRAMS = recorded()
WITH_JAX = {
    "call_hi_primitive", "empty", "empty2", "eq_to", "eval_jaxpr", "iota_2x32_shape", "random_bits",
    "random_clone", "random_fold_in", "random_seed", "random_split", "random_unwrap", "random_wrap",
    "threefry2x32",
}  # fmt: skip
"""Rules of draws and others that need JAX, and one that is tested by itself."""
seen = set()


def translated(jaxpr):
    inputs = [input_for(value_of(one.aval)) for one in jaxpr.jaxpr.invars]
    translation = Translation(RULES)
    outputs = translation.run(jaxpr, inputs)
    seen.update(translation.seen)
    return inputs, outputs


@pytest.mark.parametrize("name", PROGRAMS)
def test_computes_what_jax_computes(name):
    jaxpr, arguments, expected = PROGRAMS[name]
    inputs, outputs = translated(jaxpr)
    found = esat.evaluate(outputs, dict(zip(inputs, arguments, strict=True)))
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["convolution", "scan", "cond", "add"])
def test_is_compiled(name):
    jaxpr, arguments, expected = PROGRAMS[name]
    inputs, outputs = translated(jaxpr)
    graph = esat.Graph(inputs, outputs, on_unused_input="ignore")
    found = esat.compile(graph, "fast_compile")(*arguments)
    for one, other in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_every_rule_has_a_program():
    """Of those above, or of those that need JAX (``test_against_jax``)."""
    for jaxpr, *_ in PROGRAMS.values():
        translated(jaxpr)
    assert {*RULES} - seen == WITH_JAX


def one_equation(primitive, operands, results, frames=(), **params):
    """A jaxpr of one equation."""
    inputs = [Atom(dtype, shape) for dtype, shape in operands]
    outputs = [Atom(dtype, shape) for dtype, shape in results]
    frames = [SimpleNamespace(file_name=name, line_num=line) for name, line in frames]
    equation = SimpleNamespace(
        primitive=SimpleNamespace(name=primitive), params=params, invars=inputs, outvars=outputs,
        source_info=SimpleNamespace(traceback=SimpleNamespace(frames=frames)),
    )  # fmt: skip
    return SimpleNamespace(
        jaxpr=SimpleNamespace(constvars=[], invars=inputs, eqns=[equation], outvars=outputs), consts=[]
    )


def test_a_primitive_without_a_rule_is_named_with_its_line():
    frames = [("/lib/jax/_src/lax.py", 9), ("/home/user/model.py", 12)]
    for name, reason in [("schur", "eig and eigh are there"), ("pmax", "")]:
        jaxpr = one_equation(name, [("float64", (3, 3))], [("float64", (3, 3))], frames)
        with pytest.raises(esat.GraphError, match=rf"(?s)primitive '{name}'.*{reason}.*model\.py:12"):
            translated(jaxpr)


_FACTORS = [("geqrf", [(4, 4), (4,)], None), ("hessenberg", [(4, 4), (3,)], None)] + [
    ("tridiagonal", [(4, 4), (4,), (3,), (3,)], lower) for lower in (True, False)
]


@pytest.mark.parametrize(("name", "shapes", "lower"), _FACTORS)
def test_gradients_of_factors_are_those_of_their_steps(name, shapes, lower):
    """JAX has none; where a column is zero already, the factors jump, and the gradient is finite."""
    jaxpr = one_equation(name, [("float64", (4, 4))], [("float64", one) for one in shapes], lower=lower)

    def cost(matrix):
        return sum(esat.sin(one).sum() for one in Translation(RULES).run(jaxpr, [matrix]))

    x = np.random.default_rng(0).normal(size=(4, 4))
    esat.verify_grad(cost, [x])
    matrix = esat.tensor("matrix", shape=(4, 4))
    slope = esat.grad(cost(matrix), matrix)
    for special in (np.triu(x), np.zeros((4, 4)), np.eye(4)):
        assert np.isfinite(esat.evaluate(slope, {matrix: special})).all()


def test_too_many_reflections_are_refused():
    jaxpr = one_equation("geqrf", [("float64", (300, 300))], [("float64", (300, 300)), ("float64", (300,))])
    with pytest.raises(esat.GraphError, match="300 reflections one after another; at most 256"):
        translated(jaxpr)


def test_a_dtype_that_is_unknown_is_named():
    jaxpr = one_equation("neg", [("float64", (3,))], [("float64", (3,))])
    jaxpr.jaxpr.eqns[0].outvars[0].aval = SimpleNamespace(dtype="bfloat16", shape=(3,))
    with pytest.raises(esat.DtypeError, match="bfloat16"):
        translated(jaxpr)


def loop(body, length):
    """A scan whose body is a jaxpr of one carry."""
    params = {"jaxpr": body, "length": length, "num_consts": 0, "num_carry": 1, "reverse": False}
    return one_equation("scan", [("float64", ())], [("float64", ())], **params)


def test_a_long_loop_is_one_node():
    body = one_equation("sin", [("float64", ())], [("float64", ())])
    expected = 1.0
    for passes in range(1, 20_001):
        expected = np.sin(expected)
        if passes in (5, 10_000, 20_000):
            jaxpr = loop(loop(body, 100), 200) if passes == 20_000 else loop(body, passes)
            inputs, (output,) = translated(jaxpr)
            found = esat.compile(esat.Graph(inputs, output))(1.0)
            np.testing.assert_allclose(found, expected)
            assert isinstance(output.owner.op, Scan) == (passes > 5)


def test_a_loop_may_depend_on_values():
    asks = one_equation("lt", [("int64", ()), ("int64", ())], [("bool", ())])
    adds = one_equation("add", [("int64", ()), ("int64", ())], [("int64", ())])
    for jaxpr, value in ((asks, 7), (adds, 3)):
        jaxpr.jaxpr.invars = jaxpr.jaxpr.invars[:1]
        jaxpr.jaxpr.eqns[0].invars[1] = Atom("int64", (), val=np.int64(value))
    params = {"cond_jaxpr": asks, "body_jaxpr": adds, "cond_nconsts": 0, "body_nconsts": 0}
    inputs, outputs = translated(one_equation("while", [("int64", ())], [("int64", ())], **params))
    compiled = esat.compile(esat.Graph(inputs, outputs[0]))
    assert [int(compiled(one)) for one in (-4, 0, 7, 9)] == [8, 9, 7, 9]


def test_places_named_several_times_are_only_added_to():
    jaxpr, _, _ = PROGRAMS["multiply"]
    equations = [one for one in jaxpr.jaxpr.eqns if one.primitive.name == "scatter-mul"]
    equations[0].params["unique_indices"] = False
    with pytest.raises(esat.GraphError, match="unique_indices=True"):
        translated(jaxpr)
    equations[0].params["unique_indices"] = True


def test_threefry_gives_the_published_words():
    """The known answers of the authors' library Random123."""
    word = ("uint32", ())
    jaxpr = one_equation("threefry2x32", [word] * 4, [word] * 2)
    inputs, outputs = translated(jaxpr)
    for given, expected in (
        ((0, 0, 0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 4, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ):
        values = {one: np.uint32(value) for one, value in zip(inputs, given, strict=True)}
        assert tuple(map(int, esat.evaluate(outputs, values))) == expected


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_high_halves_of_products(dtype):
    """JAX has no such program on processors; Python's integers have all bits."""
    limits = np.iinfo(dtype)
    near = [
        limits.min,
        limits.min + 1,
        limits.max,
        limits.max - 3,
        0,
        1,
        77,
        limits.max // 3,
        limits.min // 5,
    ]
    x, y = (grid.ravel() for grid in np.meshgrid(np.array(near, dtype), np.array(near, dtype)))
    kind = (dtype, x.shape)
    inputs, outputs = translated(one_equation("mulhi", [kind] * 2, [kind]))
    width = 8 * np.dtype(dtype).itemsize
    found = esat.evaluate(outputs, dict(zip(inputs, (x, y), strict=True)))[0]
    assert found.tolist() == [(int(a) * int(b)) >> width for a, b in zip(x, y, strict=True)]


def test_a_total_order_has_zeros_apart_and_nan_last():
    numbers = [-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf, np.nan]
    x, y = (grid.ravel() for grid in np.meshgrid(numbers, numbers, indexing="ij"))
    places = np.arange(len(numbers))
    i, j = (grid.ravel() for grid in np.meshgrid(places, places, indexing="ij"))
    kind = ("float64", (49,))
    for name, expected in (("lt_to", i < j), ("le_to", i <= j), ("eq_to", i == j)):
        inputs, outputs = translated(one_equation(name, [kind] * 2, [("bool", (49,))]))
        np.testing.assert_array_equal(
            esat.evaluate(outputs, dict(zip(inputs, (x, y), strict=True)))[0], expected
        )


def test_without_jax_it_says_how_to_get_it():
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "import esat\nfrom esat.frontend.jax import from_jax, translated\n"
        "for f in (from_jax, translated):\n"
        "    try: f(len)\n"
        "    except esat.CallError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.count("pip install esat[jax]") == 2


def test_what_is_no_function_is_refused():
    with pytest.raises(esat.CallError, match="from_jax: a function is wanted"):
        from_jax(3)
