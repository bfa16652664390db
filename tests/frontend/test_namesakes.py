"""Functions against their namesakes in NumPy and SciPy: values, dtypes, kinds of result, errors, names."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import esat
from esat.graph.types import DTYPES

from .namesakes import (
    CALLS,
    ELSEWHERE,
    LINALG_CALLS,
    OF_SCIPY,
    OF_SCIPY_LINALG,
    REFERENCE,
    SHAPES,
    SQUARES,
    call,
    evaluated,
    sample,
)

TOLERANCES = {"float16": 5e-3, "float32": 1e-4, "complex64": 1e-4}
CLASSES = (np.exceptions.AxisError, np.linalg.LinAlgError, IndexError, TypeError, ValueError)
CASES = [(dtype, 2) for dtype in DTYPES] + [
    (dtype, rank) for dtype in ("float64", "int8") for rank in (0, 1, 3, 4)
]

KNOWN = {
    "softmax": {"TypeError", "values"},  # of booleans and unsigned integers, see docs/numpy.md
    "log_softmax": {"TypeError", "values"},
    "average": {"ZeroDivisionError", "class"},
    "tril": {"class"},  # of a number NumPy says that tri lacks an argument
    "triu": {"class"},
    "i0": {"dtype"},
    "histogram": {"refused"},
    "histogram_bin_edges": {"refused"},  # of complex numbers
    "apply_over_axes": {"refused"},  # of a number, which has no axes
    "cross": {"refused", "class"},  # vectors of two elements, deprecated in NumPy
    "linalg.cross": {"class"},
    "interp": {"class"},
    "quantile": {"class"},
    "var": {"refused"},
    "polyval": {"class"},
    "concatenate": {"class"},
    "linalg.pinv": {"ValueError"},  # NumPy asks for the rounding error of integers
    "linalg.eig": {"dtype"},  # complex always, see docs/numpy.md
    "linalg.eigvals": {"dtype"},
    "linalg.tensorinv": {"class"},  # NumPy has a TypeError for numbers
    "linalg.expm": {"refused"},
    "linalg.block_diag": {"refused"},
    "linalg.lu": {"dtype", "refused"},  # small integers and float16, see docs/numpy.md
    "linalg.solve_triangular": {"dtype", "refused", "class"},
    "logsumexp": {"shape"},  # SciPy gives a number with a sign an axis
    "einsum": {"class"},
}
"""Function -> in what it may differ: an error of NumPy's alone, one here alone ("refused"), its class, ..."""

NEED_SIZES = (
    "unstack", "delete", "polyval", "concatenate", "packbits", "unpackbits", "diag_indices_from",
    "array_equiv", "tril_indices_from", "triu_indices_from", "linalg.tensorinv", "linalg.tensorsolve",
)  # fmt: skip
"""Functions that need sizes which are known when the graph is built."""


def outcome(text: str, namespace: object, x: object, values: dict | None = None) -> object:
    try:
        return evaluated(call(text, namespace, x), values or {})
    except Exception as error:  # what NumPy raises is what is compared
        return error


def kind(result: object) -> object:
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return result._fields
    return (type(result), len(result)) if isinstance(result, (list, tuple)) else "array"


def arrays(result: object) -> list[np.ndarray]:
    return (
        [np.asarray(part) for part in result] if isinstance(result, (list, tuple)) else [np.asarray(result)]
    )


def difference(wanted: object, got: object) -> str:
    """In what two outcomes differ; empty where they do not."""
    if isinstance(got, Exception):
        assert isinstance(got, esat.EsatError), f"foreign {type(got).__name__}: {got}"
        if not isinstance(wanted, Exception):
            return "refused"
        classes = [one for one in CLASSES if isinstance(wanted, one)]
        return "class" if classes and not isinstance(got, classes[0]) else ""
    if isinstance(wanted, Exception):
        return type(wanted).__name__
    if kind(wanted) != kind(got):
        return "kind"
    for one, other in zip(arrays(wanted), arrays(got), strict=True):
        if one.dtype != other.dtype:
            return "dtype"
        if one.shape != other.shape:
            return "shape"
        tolerance = TOLERANCES.get(one.dtype.name, 1e-9)
        if not np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True):
            return "values"
    return ""


@pytest.mark.parametrize("text", CALLS + LINALG_CALLS)
def test_a_call(text: str) -> None:
    name = text.removeprefix("m.").partition("(")[0]
    shapes = SQUARES if "linalg" in text or "matmul" in text else SHAPES
    for number, (dtype, rank) in enumerate(CASES):
        x = sample(dtype, shapes[rank])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = outcome(text, REFERENCE, x)
        static = number % 2 == 0 or name in NEED_SIZES
        sizes = x.shape if static else tuple(1 if size == 1 else None for size in x.shape)
        variable = esat.TensorType(x.dtype, shape=sizes)()
        got = outcome(text, esat, variable, {variable: x})
        found = difference(wanted, got)
        assert found in {"", *KNOWN.get(name, ())}, (
            f"{found} for {dtype} of shape {x.shape}: {wanted!r}, {got!r}"
        )


ARRAYS_ALONE = (
    *(f"m.{name}(" for name in OF_SCIPY if not isinstance(getattr(REFERENCE, name), np.ufunc)),
    *(f"m.linalg.{name}(" for name in OF_SCIPY_LINALG),
    "m.asarray(", "m.array(", "m.concatenate([])",
)  # fmt: skip
"""Functions that NumPy and SciPy do not hand on."""


@pytest.mark.parametrize("text", [text for text in CALLS + LINALG_CALLS if not text.startswith(ARRAYS_ALONE)])
def test_a_call_of_numpys_function(text: str) -> None:
    """NumPy's own function, called with a Variable, by place and by name."""
    name = text.removeprefix("m.").partition("(")[0]
    x = sample("float64", (SQUARES if "linalg" in text else SHAPES)[2])
    variable = esat.TensorType(x.dtype, shape=x.shape)()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = outcome(text, REFERENCE, x)
        got = outcome(text, REFERENCE, variable, {variable: x})
    assert difference(wanted, got) in {"", "class", *KNOWN.get(name, ())}, f"{wanted!r}, {got!r}"


# ---- parameters

MEANINGLESS = {
    "out", "order", "subok", "like", "casting", "overwrite_input", "overwrite_a", "overwrite_b",
    "check_finite", "kwargs",
}  # fmt: skip
"""Parameters of NumPy's about memory, and those that are an error here."""

LACKING = {
    "quantile": {"weights"}, "percentile": {"weights"},
    "nanquantile": {"weights"}, "nanpercentile": {"weights"},
    "array": {"ndmax"}, "lu": {"p_indices"}, "einsum": {"operands"},
    "arange": {"start_or_stop", "stop", "step"}, "multivariate_normal": {"check_valid", "tol"},
    "copy": {"a"}, "polyfit": {"full", "cov"}, "intersect1d": {"return_indices"},
}  # fmt: skip
OTHER_DEFAULTS = {"einsum", "integers", "array", "eye", "tri", "copy"}
"""Of NumPy's here: float for None, the type for its name, and what means nothing."""

NAMES = [
    (module, name, home)
    for module, homes in (
        (esat, (np, scipy.special)), (esat.linalg, (np.linalg, scipy.linalg)),
        (esat.random, (np.random.Generator,)),
    )
    for name in sorted(set(module.__all__))
    for home in homes
    if callable(getattr(home, name, None)) and not inspect.isclass(getattr(module, name))
    and not (home is scipy.special and hasattr(np, name))
    and not (home is scipy.linalg and hasattr(np.linalg, name))
    and not isinstance(getattr(home, name), type)
    and (name, home) != ("jvp", scipy.special)  # derivatives of Bessel functions
]  # fmt: skip


def silent(default: object) -> object:
    """A default; NumPy has several that say that nothing was given."""
    nothing = default in (np._NoValue, inspect.Parameter.empty) or default is False
    return None if nothing or type(default) is object else default


@pytest.mark.parametrize(("module", "name", "home"), NAMES, ids=lambda part: str(part).rpartition(".")[2])
def test_parameters(module: object, name: str, home: object) -> None:
    theirs_function, function = getattr(home, name), getattr(module, name)
    ours = dict(inspect.signature(function).parameters)
    if isinstance(theirs_function, np.ufunc):
        assert len([p for p in ours.values() if p.default is p.empty]) == theirs_function.nin
        return
    state = "state" in ours
    theirs = [
        parameter
        for parameter in inspect.signature(theirs_function).parameters.values()
        if parameter.name not in {"self", *LACKING.get(name, ()), *(() if state else MEANINGLESS)}
    ]
    places = list(ours)[state:]
    for place, parameter in enumerate(theirs):
        last = ours[places[min(place, len(places) - 1)]]
        if parameter.POSITIONAL_ONLY in (parameter.kind, last.kind):
            assert len(places) > place, f"{name} lacks {parameter.name}"
            own = ours[places[place]]
        else:
            assert parameter.name in ours, f"{name} lacks {parameter.name}"
            own = ours[parameter.name]
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and own.kind is own.POSITIONAL_OR_KEYWORD:
                assert places.index(own.name) == place, f"{name}: {own.name} is at another place"
        if name not in OTHER_DEFAULTS:
            assert silent(own.default) == silent(parameter.default), f"{name}: another default of {own.name}"


def test_every_function_with_a_namesake_is_called() -> None:
    called = " ".join(CALLS + LINALG_CALLS)
    for module, name, home in NAMES:
        if (
            module is esat.random
            or isinstance(getattr(home, name), np.ufunc)
            or isinstance(getattr(module, name), esat.Op)
        ):
            continue
        prefix = "m.linalg." if module is esat.linalg else "m."
        assert f"{prefix}{name}(" in called or name in ELSEWHERE, f"{prefix}{name} is not compared"
