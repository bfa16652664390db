"""Every op at empty, size-1, 0-d and broadcast operands; integers that overflow.

Many ops stand in one graph, so that few programs are compiled. What is expected is what NumPy and SciPy
give: for elementwise ops their own functions, for the others the table in ``size_cases.py``.
"""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import esat
from esat.graph.algorithms.traversal import toposort
from esat.graph.op import Op
from esat.graph.registry import registered_ops
from esat.graph.types import TensorType
from esat.ops.annotations.as_written import AsWritten
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.linalg.functions import MatrixFunction, RealFunction
from esat.ops.loops.record import LoopOp
from esat.ops.random.variable import RandomVariable
from ops.size_cases import CASES

ELEMENTWISE = [op for op in registered_ops() if isinstance(op, Elementwise)]
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
OVERFLOWING = (
    "add", "sub", "mul", "neg", "abs", "sqr", "floor_div", "mod", "maximum", "minimum", "fmod", "sign",
    "invert", "bitwise_and", "bitwise_or", "bitwise_xor",
)  # fmt: skip
MODES = ("fast_run", "greedy", "Stabilization")


def applied(variables):
    """By name, each op on as many of the Variables as it takes, where they suffice and fit in dtype."""
    found = {}
    for op in (one for one in ELEMENTWISE if one.arity <= len(variables)):
        try:
            found[op.name] = op(*variables[: op.arity])
        except esat.errors.DtypeError:
            continue
    return found


def dense(value):
    return value.toarray() if scipy.sparse.issparse(value) else np.asarray(value)


def compare(outputs, variables, calls, expected, mode="fast_run"):
    """Fail unless one program gives what is expected, at each call's values."""
    graph = esat.Graph(list(variables), list(outputs.values()), on_unused_input="ignore")
    function = esat.compile(graph, mode)
    for values in calls:
        shapes = [value.shape for value in values]
        with np.errstate(all="ignore"):
            wanted_values = expected(values)
        results = function(*values)
        found_values = map(dense, results if isinstance(results, tuple) else [results])
        for name, found, wanted in zip(outputs, found_values, wanted_values, strict=True):
            case = f"{name} at {shapes} in {mode}"
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), case
            tolerance = 1e-5 if wanted.dtype in ("float32", "complex64") else 1e-9
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=1e-13, err_msg=case)


def by_definition(outputs, variables):
    """What the ops' own NumPy functions give."""
    return lambda values: esat.evaluate(list(outputs.values()), dict(zip(variables, values, strict=True)))


def random(dtype, shape):
    generator = np.random.default_rng(sum(shape) + 1)
    values = generator.uniform(0.2, 0.8, shape) if dtype == "float64" else generator.integers(1, 7, shape)
    return np.asarray(values, dtype)


@pytest.mark.parametrize("dtype", ["float64", "int16"])
def test_elementwise_ops_at_all_sizes(dtype):
    shapes = ((None, None), (1, None), (None, 1))
    variables = [TensorType(dtype, shape=shape)(name) for shape, name in zip(shapes, "xyz", strict=True)]
    outputs = applied(variables)
    assert len(outputs) > 80
    sizes = [(0, 3), (3, 0), (0, 0), (1, 1), (2, 1), (3, 4)]
    calls = [[random(dtype, shape) for shape in ((n, m), (1, m), (n, 1))] for n, m in sizes]
    compare(outputs, variables, calls, by_definition(outputs, variables))


def test_elementwise_ops_without_axes():
    variables = [esat.scalar(name) for name in "xyz"]
    outputs = applied(variables)
    calls = [[random("float64", ()) for _ in variables]]
    compare(outputs, variables, calls, by_definition(outputs, variables))


@pytest.mark.filterwarnings("ignore:(Mean of empty slice|Degrees of freedom):RuntimeWarning")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("family", CASES)
def test_ops_at_all_sizes(family, mode):
    cases = CASES[family]
    variables = cases.inputs()
    outputs = {name: esat.graph.op.as_variable(own(*variables)) for name, (own, _) in cases.programs.items()}
    references = [reference for _, reference in cases.programs.values()]

    def expected(values):
        return [np.asarray(reference(*values)) for reference in references]

    compare(outputs, variables, cases.calls, expected, mode)


DRAWS = {
    "uniform": (2.0, 3.0), "normal": (), "laplace": (), "gumbel": (), "logistic": (), "exponential": (2.0,),
    "gamma": (2.0,), "beta": (1.0, 2.0), "poisson": (3.0,), "binomial": (5, 0.5), "geometric": (0.5,),
    "integers": (0, 9), "choice": (5,), "multinomial": (5, [0.25, 0.75]),
    "multivariate_normal": (np.zeros(2), np.eye(2)), "lognormal": (), "rayleigh": (2.0,), "weibull": (2.0,),
    "pareto": (2.0,), "power": (2.0,), "standard_t": (3.0,), "chisquare": (3.0,), "f": (2.0, 3.0),
    "wald": (1.0, 2.0), "vonmises": (0.0, 2.0), "triangular": (0.0, 1.0, 2.0), "negative_binomial": (3, 0.5),
    "hypergeometric": (5, 4, 3), "logseries": (0.5,), "zipf": (2.5,), "dirichlet": ([1.0, 2.0],),
}  # fmt: skip
SIZES = [None, (), (0,), (1,), (0, 3), (2, 3)]


def test_draws_of_all_sizes():
    state = esat.random.state("state")
    outputs, references = {}, []
    for name, parameters in DRAWS.items():
        for size in SIZES:
            outputs[f"{name} {size}"] = getattr(esat.random, name)(state, *parameters, size=size)[1]
            references.append((name, parameters, size))
    for count in (0, 1, 4):
        outputs[f"permutation {count}"] = esat.random.permutation(state, np.arange(count))[1]
        references.append(("permutation", (np.arange(count),), None))
    function = esat.compile(esat.Graph([state], list(outputs.values())))
    for case, found, (name, parameters, size) in zip(
        outputs, function(np.random.default_rng(3)), references, strict=True
    ):
        options = {} if name == "permutation" else {"size": size}
        wanted = np.asarray(getattr(np.random.default_rng(3), name)(*parameters, **options))
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), case
        np.testing.assert_array_equal(found, wanted, err_msg=case)


_REGISTERED = """
import importlib, pkgutil
import esat
from esat.graph.registry import registered_ops
for module in pkgutil.walk_packages(esat.ops.__path__, "esat.ops."):
    importlib.import_module(module.name)
print(*(op.name for op in registered_ops()))
"""


def test_every_op_is_compared():
    """The tables of this file hold every op that is registered, and one of each class of ops."""
    # In a process of its own: tests register ops, too.
    registered = subprocess.run(
        [sys.executable, "-c", _REGISTERED], capture_output=True, text=True, check=True
    ).stdout.split()
    state = esat.random.state()
    outputs = [getattr(esat.random, name)(state, *parameters)[1] for name, parameters in DRAWS.items()]
    outputs.append(esat.random.permutation(state, np.arange(3))[1])
    for cases in CASES.values():
        variables = cases.inputs()
        outputs += [esat.graph.op.as_variable(own(*variables)) for own, _ in cases.programs.values()]
    outputs += applied([esat.scalar(name) for name in "xyz"]).values()
    outputs += applied([esat.scalar(name, dtype="int64") for name in "xyz"]).values()
    used = {node.op for node in toposort(outputs)}
    names = {op.name for op in used}
    assert [name for name in registered if name not in names] == []
    complete = {kind for kind in kinds_of(Op) if kind.__module__.startswith("esat.ops.")} - BASES
    complete = {kind for kind in complete if kind.perform is not Op.perform}
    assert sorted(kind.__name__ for kind in complete - set(map(type, used))) == []


def kinds_of(kind):
    """A class and all classes below it."""
    return {kind}.union(*map(kinds_of, kind.__subclasses__()))


BASES = {RandomVariable, AsWritten, LoopOp, MatrixFunction, RealFunction}
"""Classes of ops that are only there to be derived from, or that no program keeps."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extrema_of_nothing_are_errors_as_numpys(name, mode):
    x = esat.matrix("x")
    function = esat.compile(esat.Graph([x], getattr(esat, name)(x, axis=0)), mode)
    assert function(np.zeros((3, 0))).shape == getattr(np, name)(np.zeros((3, 0)), axis=0).shape
    with pytest.raises(esat.errors.ShapeError, match=name) as error:
        function(np.zeros((0, 3)))
    assert "test_sizes_and_overflow.py" in str(error.value)
    with pytest.raises(ValueError, match=r"empty|zero-size"):
        getattr(np, name)(np.zeros((0, 3)), axis=0)


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_integers_overflow_as_those_of_numpy(mode):
    variables, outputs = [], {}
    low, high = [], []
    for dtype in INTEGERS:
        pair = [esat.vector(f"{name}_{dtype}", dtype=dtype) for name in "xy"]
        variables += pair
        found = applied(pair)
        outputs |= {f"{name} of {dtype}": found[name] for name in OVERFLOWING if name in found}
        for name in ("sum", "prod", "cumsum", "cumprod", "sort", "max", "min", "argmax"):
            outputs[f"{name} of {dtype}"] = getattr(esat, name)(pair[0], axis=0)
        limits = np.iinfo(dtype)
        extremes = np.array([limits.min, limits.min + 1, limits.max - 1, limits.max, 3, 1], dtype)
        low += [extremes, extremes[::-1].copy()]
        high += [np.full(6, limits.max, dtype), extremes]
    assert len(outputs) > 150
    compare(outputs, variables, [low, high], by_definition(outputs, variables), mode)


POWERS = np.array([0, 1, 2, 3, 7, 63, 64])


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_powers_and_shifts_of_integers(mode):
    """0 ** 0 is 1, powers wrap around; numbers shifted by all of their bits or more are 0 or -1."""
    variables, outputs, references, values = [], {}, [], []
    for dtype in INTEGERS:
        base, count = esat.vector(f"b_{dtype}", dtype=dtype), esat.vector(f"n_{dtype}", dtype=dtype)
        limits = np.iinfo(dtype)
        bases = np.array([0, 2, 3, limits.max, limits.min, limits.max - 1, 5], dtype)
        variables += [base, count]
        values += [bases, POWERS.astype(dtype)]
        for name, of_esat, of_numpy in (
            ("power", esat.pow, np.power),
            ("left_shift", esat.left_shift, np.left_shift),
            ("right_shift", esat.right_shift, np.right_shift),
        ):
            outputs[f"{name} of {dtype}"] = of_esat(base, count)
            references.append(lambda b=bases, f=of_numpy, d=dtype: f(b, POWERS.astype(d)))
        for exponent in (0, 1, 2, 3, 10):
            outputs[f"{dtype} ** {exponent}"] = base**exponent
            references.append(lambda b=bases, e=exponent: b**e)
    compare(outputs, variables, [values], lambda _: [reference() for reference in references], mode)


@pytest.mark.parametrize("mode", MODES)
def test_negative_powers_of_integers_are_errors_as_numpys(mode):
    x, n = esat.lvector("x"), esat.lvector("n")
    with pytest.raises(esat.errors.EsatError, match="negative"):
        esat.compile(esat.Graph([x], x**-1), mode)(np.array([2]))
    with pytest.raises(esat.errors.EsatError, match="negative") as error:
        esat.compile(esat.Graph([x, n], x**n), mode)(np.array([2]), np.array([-1]))
    assert "test_sizes_and_overflow.py" in str(error.value)
