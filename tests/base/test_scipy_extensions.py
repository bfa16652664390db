"""SciPy's compiled functions without its packages."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import scipy.special

from esat.base import scipy_extensions
from esat.base.scipy_extensions import blas, is_loaded, lapack, special

FIRST_RESULTS = """
import math, sys
import numpy as np
import esat

@esat.jit
def density(x, a):
    factor = np.linalg.cholesky(a)
    return math.erf(x[0]) + np.sum(x * np.linalg.solve(a, x)) + np.sum(np.log(np.diag(factor)))

x, a = np.array([0.5, 0.25, 1.0]), np.diag([1.0, 2.0, 4.0])
assert np.isclose(density(x, a), math.erf(0.5) + 0.25 + 0.03125 + 0.25 + math.log(8.0) / 2)

b, matrix, sides = esat.vector("b"), esat.matrix("matrix"), esat.matrix("sides")
factor = esat.linalg.cholesky(matrix)
solved = esat.linalg.solve_triangular(factor, sides, lower=True)
function = esat.compile(esat.Graph([b, matrix, sides], [esat.erf(b), solved]), mode="fast_compile")
values, found = function(x, a, x[:, None])
assert np.allclose(values, [math.erf(one) for one in x]) and np.allclose(found[:, 0], x / np.sqrt(np.diag(a)))
{then}
print([name for name in ("scipy.linalg", "scipy.special") if name in sys.modules])
"""
THEN = """
import scipy.linalg, scipy.special
assert np.allclose(scipy.linalg.solve_triangular(np.eye(3), x), x)
assert scipy.special.erf(0.0) == 0.0 and scipy.special.gammaln(1.0) == 0.0
from scipy.linalg.blas import dgemm
assert dgemm(1.0, a, a)[1, 1] == 4.0
"""


def printed(folder: Path, text: str) -> str:
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_first_results_do_without_the_packages(tmp_path):
    assert printed(tmp_path, FIRST_RESULTS.format(then="")) == "[]"


def test_the_packages_can_be_imported_afterwards(tmp_path):
    assert printed(tmp_path, FIRST_RESULTS.format(then=THEN)) == "['scipy.linalg', 'scipy.special']"


@pytest.mark.parametrize(
    "name", ["erf", "erfc", "gammaln", "psi", "ndtr", "log_ndtr", "zeta", "ndtri", "i0e"]
)
def test_special_is_the_function_that_the_package_exports(name):
    assert special(name) is getattr(scipy.special, name)


def test_the_extension_has_what_the_package_exports_under_the_same_names():
    """A name of the extension module never stands for another function of the package."""
    alone = scipy_extensions.extension("special", "_special_ufuncs")
    shared = [
        name
        for name in dir(alone)
        if not name.startswith("_") and isinstance(getattr(scipy.special, name, None), np.ufunc)
    ]
    assert len(shared) > 50
    assert [name for name in shared if getattr(alone, name) is not getattr(scipy.special, name)] == []


def test_is_loaded_knows_packages_and_extensions():
    assert is_loaded("linalg")
    assert is_loaded("special")
    assert not is_loaded("nothing")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_functions_of_a_dtype_are_those_that_scipy_chooses(dtype):
    matrix = np.eye(2, dtype=dtype)
    assert lapack("potrf", matrix) is scipy.linalg.get_lapack_funcs(("potrf",), (matrix,))[0]
    assert blas("trsm", matrix, matrix) is scipy.linalg.get_blas_funcs(("trsm",), (matrix,))[0]
