"""Programs and jaxprs of JAX itself, where it is installed, or an environment in ``.peers`` has it.

What these tests are about is tested without JAX in ``test_recorded``, but for draws.
"""

import copy
import re

import numpy as np
import pytest
from functions.everyday import PROGRAMS
from functions.kernels import KERNELS

import esat
from tests.frontend.jaxprs.peer import find_jax

if not find_jax():
    pytest.skip("JAX is neither installed nor in .peers/jax", allow_module_level=True)

import jax

from esat.frontend.jax import RULES, from_jax, translated
from esat.frontend.jax.steps import value_of
from esat.frontend.jax.translation import Translation, input_for
from esat.graph.constants import constant
from tests.frontend.jaxprs import programs, walk
from tests.frontend.jaxprs.in_jax import for_jax

ALL = {**programs.TRANSFORMATIONS, **programs.FUNCTIONS, **programs.WITH_JAX}
NUMPY = {**KERNELS, **PROGRAMS}
REFUSED = {
    "bodies", "bootstrap", "energies_by_bins", "in_place_everywhere", "mandelbrot", "means_of_groups",
    "moving_average_crossing", "nearest_centres", "pieces", "with_options", "without_outliers",
}  # fmt: skip
"""What JAX does not trace: masks, lists as indices, sizes that depend on values, ``out=``."""


def check(graph, arrays, expected):
    found = esat.evaluate(list(graph.outputs), dict(zip(graph.inputs, arrays, strict=True)))
    for one, other in zip(found, expected, strict=True):
        assert one.shape == np.shape(other)
        tolerance = 1e-5 if one.dtype == np.float32 else 1e-10
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ALL)
def test_computes_what_jax_computes(name):
    function, *arguments = ALL[name]
    expected = jax.tree_util.tree_leaves(jax.jit(function)(*arguments))
    check(from_jax(function, *arguments), programs.leaves(arguments), expected)


@pytest.mark.parametrize("name", [name for name in NUMPY if name not in REFUSED])
def test_programs_written_for_numpy(name):
    function, make = NUMPY[name]
    arguments = make(np.random.default_rng(0))
    changed = copy.deepcopy(arguments)
    result = function(*changed)
    run, arrays = for_jax(function, arguments)
    arrays_after = [one for one in changed if isinstance(one, np.ndarray)]
    leaves = jax.tree_util.tree_leaves((result, arrays_after))
    check(from_jax(run, *arrays), arrays, [one for one in leaves if not isinstance(one, str)])


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_jax_refuses_it_still_refuses(name):
    function, make = NUMPY[name]
    run, arrays = for_jax(function, make(np.random.default_rng(0)))
    with pytest.raises((TypeError, NotImplementedError, IndexError)):
        jax.make_jaxpr(run)(*arrays)


def test_every_rule_has_a_program():
    translation = Translation(RULES)
    for function, *arguments in ALL.values():
        inputs = [constant(one) for one in programs.leaves(arguments)]
        translation.run(jax.make_jaxpr(function)(*arguments), inputs)
    # One compares floats as sorting does, and others JAX emits where no result depends on them.
    assert {*RULES} - translation.seen <= {"eq_to", "empty", "empty2", "eval_jaxpr"}


NO_RULE = {"scaled_dot", "schur"}
"""Primitives of JAX's own functions that have none; their errors say why."""
LOOSE = {"of loops and others: attention": 1e-6}
"""What JAX computes in float32."""
UNDEFINED = {"lax.linalg.cholesky_update", "numpy.empty", "numpy.empty_like", "lax.empty"}
"""Whose results are undefined for the arguments that they are given."""


@pytest.mark.parametrize("name", [*walk.MODULES, "of loops and others"])
def test_primitives_of_functions_and_their_gradients_have_rules(name):
    without, tried = set(), 0
    for function, kind, jaxpr, _, arguments in walk.jaxprs(name):
        try:
            inputs = [input_for(value_of(one.aval)) for one in jaxpr.jaxpr.invars]
            outputs = Translation(RULES).run(jaxpr, inputs)
        except esat.EsatError as error:
            without.update(re.findall(r"no rule is known for JAX's primitive '(\w+)'", str(error)))
            continue
        tried += 1
        if kind not in ("value", "gradient") or function in UNDEFINED:
            continue
        arrays = [np.asarray(one) for one in jax.tree_util.tree_leaves(arguments)]
        given = {one: array.astype(one.type.dtype) for one, array in zip(inputs, arrays, strict=True)}
        expected = jax.tree_util.tree_leaves(jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *arrays))
        with np.errstate(all="ignore"):
            found = esat.evaluate(outputs, given)
        for one, other in zip(found, expected, strict=True):
            if not str(getattr(other, "dtype", "")).startswith("key"):
                tolerance = LOOSE.get(function, 1e-4 if one.dtype in (np.float32, np.complex64) else 1e-8)
                np.testing.assert_allclose(one, other, tolerance, tolerance, err_msg=f"{function}, {kind}")
    assert tried
    assert without <= NO_RULE


def test_translated_functions_are_parts_of_others():
    def in_jax(x, options):
        return {"y": jax.numpy.sin(x) * options["scale"], "sum": x.sum()}

    inner = translated(in_jax)

    @esat.jit(mode="fast_compile")
    def whole(x, scale):
        found = inner(x, {"scale": scale})
        return np.exp(found["y"]) + found["sum"]

    x = np.linspace(0, 1, 5)
    np.testing.assert_allclose(whole(x, 2.0), np.exp(np.sin(x) * 2) + x.sum())
    np.testing.assert_allclose(whole(x, 3.0), np.exp(np.sin(x) * 3) + x.sum())
    assert len(whole.programs) == 1
    twice = esat.jit(lambda x: inner(x, {"scale": 2.0})["y"], mode="fast_compile")
    np.testing.assert_allclose(esat.jacobian(twice)(x), np.diag(2 * np.cos(x)), atol=1e-15)
    rows = esat.vmap(twice)(np.stack([x, x + 1]))
    np.testing.assert_allclose(rows, 2 * np.sin(np.stack([x, x + 1])))


def test_inputs_have_the_names_and_dtypes_of_arguments():
    graph = from_jax(lambda p, x: p["w"] * x, {"w": np.ones(3, "float32")}, 2)
    assert [(one.name, one.type.dtype) for one in graph.inputs] == [
        ("argument[0]['w']", "float32"), ("argument[1]", "int64")
    ]  # fmt: skip
    assert graph.single_output


def test_an_error_names_the_line_in_the_function():
    def in_jax(x):
        return jax.scipy.linalg.schur(x)[0]

    with pytest.raises(esat.GraphError, match=r"(?s)'schur'.*test_against_jax\.py"):
        from_jax(in_jax, np.eye(3))
    with pytest.raises(esat.DtypeError, match="bfloat16"):
        from_jax(lambda x: x.astype("bfloat16"), np.ones(2))
