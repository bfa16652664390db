"""``initial`` and ``where`` of reductions, generated and compared with NumPy, in all modes."""

import random
import warnings

import numpy as np
import pytest

import esat
from esat.errors import DtypeError, ParameterError, ShapeError
from esat.graph.types import DTYPES
from esat.mode import mode_names

FOLDS = ("sum", "prod", "max", "min", "nansum", "nanprod", "nanmax", "nanmin")
SELECTIONS = ("any", "all", "mean", "var", "std", "nanmean", "nanvar", "nanstd")
MODES = [mode for mode in mode_names() if mode not in ("o1", "o4")]  # which are other names
INITIALS = (0, 1, 3, -2, 2.5, True)
TOLERANCES = {"float16": 2e-2, "float32": 1e-5, "complex64": 1e-5}


class Case:
    """A call of a reduction that NumPy takes: elements, mask, options."""

    def __init__(self, name: str, seed: int) -> None:
        choose = random.Random(f"{name} {seed}")
        rng = np.random.default_rng(seed)
        self.name = name
        shape = tuple(choose.choice((0, 1, 2, 3, 5)) for _ in range(choose.randrange(4)))
        dtype = choose.choice([dtype for dtype in DTYPES if dtype[0] != "c" or name not in ("max", "min")])
        x = rng.integers(0 if dtype[0] in "bu" else -3, 4, shape) / (2 if dtype[0] in "fc" else 1)
        self.x = np.asarray(x).astype(dtype)
        if name.startswith("nan") and self.x.dtype.kind in "fc":
            self.x = np.where(rng.random(shape) < 0.3, np.nan, self.x).astype(dtype)
        self.where = rng.random(tuple(choose.choice((n, n, 1)) for n in shape)) < 0.6
        if self.where.size == 1:
            self.where = self.where.reshape(self.where.shape[choose.randrange(len(shape) + 1) :])
        axes = choose.sample(range(-len(shape), len(shape)), choose.randrange(len(shape) + 1))
        axes = list({axis % len(shape): axis for axis in axes}.values())
        self.options = {
            "axis": choose.choice([None, tuple(axes), *axes[:1]]),
            "keepdims": choose.random() < 0.5,
        }
        self.selects = choose.random() < 0.75
        if name in FOLDS and choose.random() < 0.8:
            self.options["initial"] = choose.choice(INITIALS)
        if name in ("sum", "prod", "mean") and choose.random() < 0.2:
            self.options["dtype"] = choose.choice(("float32", "int16"))
        if name.endswith(("var", "std")) and choose.random() < 0.5:
            self.options["ddof"] = choose.choice((1, 0.5))
        if name.endswith(("var", "std")) and choose.random() < 0.2:
            self.options["mean"] = 0.5

    def wanted(self):
        """What NumPy gives; None where it takes no such arguments."""
        where = {"where": self.where} if self.selects else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return np.asarray(getattr(np, self.name)(self.x, **self.options, **where))
            except (ValueError, TypeError, OverflowError) as error:
                return error

    def built(self, static: bool, is_constant: bool):
        """The graph of it: the inputs with their values, and the result."""
        sizes = [size if static or size == 1 else None for size in self.x.shape]
        x = esat.TensorType(self.x.dtype, shape=sizes)("x")
        given, where = {x: self.x}, {}
        if self.selects and is_constant:
            where["where"] = self.where
        elif self.selects:
            sizes = [size if static or size == 1 else None for size in self.where.shape]
            mask = where["where"] = esat.TensorType("bool", shape=sizes)("mask")
            given[mask] = self.where
        return given, getattr(esat, self.name)(x, **self.options, **where)

    def outcome(self, static: bool, is_constant: bool):
        """What it evaluates to, or the error of it."""
        try:
            given, result = self.built(static, is_constant)
            return esat.evaluate(result, given)
        except esat.EsatError as error:
            return error

    def check(self, wanted, got, how: str) -> None:
        told = f"{how}: {self.name}({self.x!r}, where={self.where if self.selects else None}, {self.options})"
        assert (wanted.dtype, wanted.shape) == (got.dtype, got.shape), told
        tolerance = TOLERANCES.get(self.x.dtype.name, TOLERANCES.get(wanted.dtype.name, 1e-12))
        np.testing.assert_allclose(got, wanted, tolerance, tolerance, err_msg=told)


@pytest.mark.parametrize("name", FOLDS + SELECTIONS)
def test_generated_calls(name):
    computed = 0
    for seed in range(60):
        case = Case(name, seed)
        wanted = case.wanted()
        for static in (True, False):
            got = case.outcome(static, is_constant=seed % 3 == 0)
            if isinstance(wanted, Exception) or isinstance(got, Exception):
                assert isinstance(got, ValueError if isinstance(wanted, ValueError) else esat.EsatError), got
                assert isinstance(wanted, Exception), f"{got} of {case.x!r}, {case.options}"
                continue
            case.check(wanted, got, f"as written, static={static}")
            computed += 1
            mode = MODES[seed // 6 % len(MODES)]
            # Debug mode tells of NaN.
            if seed % 6 == 0 and (mode != "debug" or np.all(np.isfinite(wanted))):
                given, result = case.built(static, is_constant=False)
                function = esat.compile(esat.Graph(list(given), result, on_unused_input="ignore"), mode)
                for _ in range(2):
                    case.check(wanted, function(*given.values()), f"{mode}, static={static}")
    assert computed > 60


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "debug"])  # which tells of NaN
def test_every_mode(mode):
    x, mask = esat.matrix("x"), esat.matrix("mask", dtype="bool")
    outputs = [
        x.sum(initial=3, where=mask), x.prod(0, initial=2.0), x.max(1, initial=-1, where=mask),
        x.min(-1, keepdims=True, initial=9.0), x.mean(0, where=mask), x.var(where=mask, ddof=1),
        (x > 0).any(1, where=mask), np.all(x, axis=0, where=mask), np.max(x, initial=4, where=mask),
        esat.nanmax(x, 0, initial=0, where=mask), x.std(mean=1.5),
    ]  # fmt: skip
    function = esat.compile(esat.Graph([x, mask], outputs), mode)
    rng = np.random.default_rng(5)
    for shape in ((3, 4), (1, 1), (2, 0), (0, 3), (40, 50)):
        values, chosen = rng.normal(size=shape), rng.random(shape) < 0.5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = [
                values.sum(initial=3, where=chosen), values.prod(0, initial=2.0),
                values.max(1, initial=-1, where=chosen), values.min(-1, keepdims=True, initial=9.0),
                values.mean(0, where=chosen), values.var(where=chosen, ddof=1),
                (values > 0).any(1, where=chosen), np.all(values, axis=0, where=chosen),
                np.max(values, initial=4, where=chosen), np.nanmax(values, 0, initial=0, where=chosen),
                values.std(mean=1.5),
            ]  # fmt: skip
        for one, other in zip(function(values, chosen), wanted, strict=True):
            np.testing.assert_allclose(one, other, 1e-12)


def test_initial_values_and_masks_that_are_variables():
    x, first, mask = esat.vector("x"), esat.scalar("first"), esat.vector("mask", dtype="bool")
    values = np.array([1.0, np.nan, 3.0, -2.0])
    chosen = np.array([True, True, True, False])
    for name in FOLDS:
        for start in (0.5, 7.0, np.nan):
            result = getattr(esat, name)(x, initial=first, where=mask)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = getattr(np, name)(values, initial=start, where=chosen)
            got = esat.compile(esat.Graph([x, first, mask], result))(values, start, chosen)
            np.testing.assert_allclose(got, wanted)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "nanmax", "nanvar"])
def test_gradients(name):
    values = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0], [2.5, 0.75, -0.5]])
    mask = np.array([[True, False, True], [True, True, False], [True, True, True]])
    initial = {"initial": 0.6} if name in FOLDS else {}
    rows = np.array([[True], [False], [True]])
    for options in (
        {}, {"axis": -1, "where": mask}, {"axis": 0, "keepdims": True, "where": mask}, {"where": rows},
        {"axis": 0, "where": rows},
    ):  # fmt: skip
        esat.verify_grad(
            lambda x, options={**options, **initial}: getattr(esat, name)(x, **options), [values]
        )


def test_gradients_of_nothing_and_of_what_a_mask_leaves_out():
    x = esat.matrix("x")
    for name, wanted in (("max", [[0.0, 0, 0], [1, 0, 0]]), ("prod", [[0.0, 0, 0], [0, 0, 0]])):
        result = getattr(esat, name)(x, axis=1, initial=0.0, where=x < 10)
        function = esat.compile(esat.Graph([x], [result, esat.grad(result.sum(), x)]))
        value, gradient = function(np.array([[11.0, 12, np.nan], [5, 3, 10]]))
        np.testing.assert_array_equal(value, [0.0, 5.0] if name == "max" else [0.0, 0.0])
        np.testing.assert_array_equal(gradient, wanted)
        value, gradient = function(np.zeros((2, 0)))
        np.testing.assert_array_equal(value, [0.0, 0.0])
        assert gradient.shape == (2, 0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: esat.max(x, where=x > 0), ParameterError, "no value of nothing: .* give an initial value"),
        (lambda x: esat.nanmin(x, where=x > 0), ParameterError, "no value of nothing"),
        (lambda x: esat.sum(x, initial=None, where=x > 0), ParameterError, "no value of nothing"),
        (lambda x: esat.sum(x, initial=[1]), ShapeError, "the initial value is a scalar"),
        (
            lambda x: esat.prod(x, initial=x[0]),
            ShapeError,
            r"initial=vector.*: the initial value is a scalar",
        ),
        (lambda x: esat.sum(x, initial=1j), DtypeError, "complex"),
        (lambda x: esat.max(x.astype("int8"), initial=300), ParameterError, "initial=300, int8"),
        (lambda x: esat.sum(x > 0, initial=np.nan), ParameterError, "initial=nan, int64"),
        (lambda x: esat.mean(x, where=esat.ones_like(x)), DtypeError, "the mask .* is bool"),
        (lambda x: esat.any(x, where=np.ones((2, 2, 2), bool)), ShapeError, "where does not broadcast"),
        (lambda x: esat.sum(esat.ones((1, 3)), where=np.ones((2, 3), bool)), ShapeError, "where does not"),
        (lambda x: esat.var(x, mean=np.ones((1, 2, 3))), ShapeError, "mean does not broadcast"),
        (lambda x: esat.std(x, mean=1j), DtypeError, "the mean of real numbers is real"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(esat.matrix("x"))


def test_a_sum_without_an_initial_value_needs_an_element():
    x = esat.matrix("x")
    function = esat.compile(esat.Graph([x], esat.sum(x, axis=1, initial=None)))
    np.testing.assert_array_equal(function(np.ones((2, 3))), [3, 3])
    assert function(np.ones((0, 0))).shape == (0,)
    with pytest.raises(ShapeError, match="nothing to reduce"):
        function(np.ones((2, 0)))
