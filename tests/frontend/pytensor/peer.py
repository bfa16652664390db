"""How a program is compared with what PyTensor computes."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery

import esat.frontend.pytensor  # noqa: F401 - which registers the modes

REFERENCE = Mode("py", RewriteDatabaseQuery(include=["minimum_compile"]))
"""PyTensor's ops by themselves, one after the other."""
MODES = ("ESAT", "ESAT_AFTER")


def variable(value, known=False, name=None):
    """A variable for an array; axes of size 1 are known to be such, others if all are."""
    value = np.asarray(value)
    shape = value.shape if known else tuple(1 if size == 1 else None for size in value.shape)
    return pt.tensor(name, dtype=value.dtype, shape=shape)


def slopes(outputs, inputs):
    """Gradients of a weighted sum of all outputs, by those inputs that are real."""
    total = sum((pt.cos(pt.arange(one.size)).reshape(one.shape) * one).sum() for one in outputs)
    real = [one for one in inputs if one.dtype == "float64"]
    return pytensor.grad(total, real, disconnected_inputs="ignore")


def compared(inputs, outputs, values, modes=MODES, tolerance=1e-11, foreign=()):
    """See that both modes compute what PyTensor does, and that of all ops it runs those only."""
    expected = pytensor.function(inputs, outputs, mode=REFERENCE, on_unused_input="ignore")(*values)
    for mode in modes:
        function = pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore")
        report = function.vm.jit_fn.report
        assert set(report.foreign) <= set(foreign), f"{mode}: {report}, {dict(report.reasons)}"
        same(function(*values), expected, tolerance, mode)


def same(found, expected, tolerance=1e-11, message=""):
    """See that values are the same, with dtypes and shapes."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert isinstance(one, np.ndarray)
        assert (one.dtype, one.shape) == (other.dtype, other.shape), message
        size = np.abs(other[np.isfinite(other)]).max(initial=0) if other.dtype.kind in "fc" else 0
        wide = max(tolerance, 1e-5) if one.dtype in ("float16", "float32", "complex64") else tolerance
        np.testing.assert_allclose(one, other, rtol=wide, atol=wide * 1e-2 * size, err_msg=message)
