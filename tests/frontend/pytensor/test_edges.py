"""Densities of PyMC and their slopes where inputs are near the ends of the range, or out of a domain."""

import importlib.util
import warnings

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery

from esat.frontend.pytensor.linker import INCOMPATIBLE
from frontend.pytensor.peer import REFERENCE

INF = np.inf
POINTS = {
    "StudentT": (
        ("nu", "mu", "sigma"),
        [
            (1.0932379586142822, 1e160, 1e300, 0.7242693046838979),
            (1e160, 1e300, 0.47293339602917817, 0.223847085770325),
            (1e300, 1.0000000000000002, 1.0, 1e-20),
            (-1e-160, 1e300, 1e20, 0.5),
            (1e20, 1e300, 5e-324, 0.837298822252974),
        ],
    ),
    "SkewStudentT": (
        ("a", "b", "mu", "sigma"),
        [
            (0.618271255350747, 1.8623542876102452, 5e-324, 1e160, 1.875831168766079),
            (1.8817148688641518, 1.5924012109567383, 0.5300412375892296, -1e160, 1.233939383845071),
        ],
    ),
    "HalfStudentT": (("nu", "sigma"), [(1e-300, 1e300, 1e160), (-0.0, 1e160, 1e160), (1e-20, 1e300, 1e300)]),
    "SkewNormal": (
        ("mu", "sigma", "alpha"),
        [
            (1e20, 1.8812783287212493, 1e160, 1e-300),
            (5e-324, 0.9463805288402074, 1e160, 1.4800571803815497),
            (1.9389117454113263, 1.0, 1e160, INF),
        ],
    ),
    "Beta": (
        ("alpha", "beta"),
        [(1.0, 1e-20, 1e-300), (1.0, 0.7, 0.97), (1.0, 1.56, 3.0), (1.0, 1.0, 1e300), (0.0, 0.5, 2.0)],
    ),
    "Mixture": (
        ("w", "m", "n", "s"),
        [
            (1.0000000000000002, 0.9999999999999999, -1e160, -0.0, 1.0000000000000002),
            (1.2662531648191886, 0.9999999999999999, 1e300, 1.0, 1.0),
            (1.0921200904061328, 0.20687757643848245, 1e160, 0.7879812269460862, 0.20034200289321832),
        ],
    ),
    "HurdleLogNormal": (("psi", "mu", "sigma"), [(0.0, 1.0, -1.0, INF), (-0.0, 1.0, 1.68, 1e-300)]),
    "AsymmetricLaplace": (
        ("kappa", "mu", "b"),
        [
            (1.462823418911371, 5e-324, -INF, 0.36892127617995124),
            (-INF, 1e160, 0.9999999999999999, 5e-324),
            (1e-20, 1e160, 0.0, 1e160),
        ],
    ),
    "Cauchy": (("alpha", "beta"), [(-1e300, 0.3488781519427422, 1e-8), (0.0763373705236485, 1e300, 1e-8)]),
    "HalfCauchy": (("beta",), [(1e300, 1e-8)]),
    "Kumaraswamy": (
        ("a", "b"),
        [
            (1.0, 1e-8, 1.2980860829955223),
            (1.0, 1.7683246953484446, 1e160),
            (0.15324575325392895, 1e-300, 1e160),
        ],
    ),
}
PEERS = {
    "ESAT": REFERENCE,
    "ESAT_AFTER": Mode("py", RewriteDatabaseQuery(include=["fast_run"], exclude=INCOMPATIBLE)),
}
"""What computes the ops that a mode is given, one after the other."""

if importlib.util.find_spec("pymc"):
    import pymc as pm

    def distribution(name, names, inputs):
        """One of PyMC's, of some parameters; a mixture of two normal ones."""
        if name == "Mixture":
            w, m, n, s = inputs
            return pm.Mixture.dist(pt.stack([w, 1 - w]), [pm.Normal.dist(m, s), pm.Normal.dist(n, 1.0)])
        return getattr(pm, name).dist(**dict(zip(names, inputs, strict=True)))

    @pytest.mark.parametrize(
        ("name", "mode"),
        [
            *((name, "ESAT") for name in POINTS),
            *((name, "ESAT_AFTER") for name in ("Cauchy", "Kumaraswamy")),
        ],
    )
    def test_numbers_and_infinities_are_those_of_the_written_form(name, mode):
        """A value that is a number or infinite as it was written is such a value, with its sign."""
        names, points = POINTS[name]
        inputs = [pt.scalar(one, dtype="float64") for one in ("value", *names)]
        density = pm.logp(distribution(name, names, inputs[1:]), inputs[0])
        outputs = [density, *pytensor.grad(density, inputs)]
        function, reference = (pytensor.function(inputs, outputs, mode=one) for one in (mode, PEERS[mode]))
        for point in points:
            with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
                expected, found = np.array(reference(*point)), np.array(function(*point))
            known = ~np.isnan(expected)
            np.testing.assert_array_equal(np.isnan(found[known]), False, err_msg=str(point))
            # What is infinite on the way only as it was written may be a number.
            infinite = np.isinf(found)
            np.testing.assert_array_equal(
                found[known & infinite], expected[known & infinite], err_msg=str(point)
            )

    def test_slopes_of_an_ordinal_regression_far_from_its_cutpoints():
        """Probabilities that are all but lost to rounding, as differences of sigmoids, and their slopes."""
        cutpoints, slope = pt.vector("cutpoints"), pt.scalar("slope")
        ratings = pm.OrderedLogistic.dist(eta=slope * np.array([1.0, 2.0, 33.0, 34.5]), cutpoints=cutpoints)
        density = pm.logp(ratings, np.array([0, 1, 2, 3])).sum()
        outputs = [density, *pytensor.grad(density, [cutpoints, slope])]
        for mode in ("ESAT", "ESAT_AFTER"):
            function, reference = (
                pytensor.function([cutpoints, slope], outputs, mode=one) for one in (mode, REFERENCE)
            )
            for point in (-1.0, 0.9, 1.0):
                arguments = np.array([-0.1, 0.2, 1.0]), point
                for found, expected in zip(function(*arguments), reference(*arguments), strict=True):
                    np.testing.assert_allclose(found, expected, rtol=1e-13)
