import importlib
import inspect
import pydoc
import subprocess
import sys

import numpy as np
import pytest

import esat
from esat.ops.table import ELEMENTWISE


def test_every_public_name_is_there():
    assert len(set(esat.__all__)) == len(esat.__all__)
    for name in esat.__all__:
        assert hasattr(esat, name)
        assert name in dir(esat) or name in vars(esat.errors)
    assert not {"dmatrix", "ShapeError", "annotations", "collection"}.intersection(dir(esat))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        esat.nonsense


def test_functions_have_numpys_names():
    own = {"elementwise", "constant", "shared", "grad", "at"}
    public = {name for name in esat.__all__ if callable(getattr(esat, name)) and name not in own}
    shared = public & set(dir(np))
    assert len(shared) > 130
    assert {"exp", "sum", "where", "maximum", "einsum", "concatenate", "arange", "linalg"} - {
        "linalg"
    } <= shared


DERIVATIVES = ("gammainc_by_order", "betainc_by_first", "betainc_by_second")


@pytest.mark.parametrize(
    "op", [op for op in ELEMENTWISE if op.name not in DERIVATIVES], ids=lambda op: op.name
)
def test_every_elementwise_op_is_a_function(op):
    function = getattr(esat, op.name)
    dtype = "float64" if op.admits("float64") else "int64"
    operands = [esat.vector(dtype=dtype) for _ in range(op.arity)]
    assert function(*operands).owner.op == op


def test_importing_loads_no_compiler():
    code = (
        "import sys, esat; print([m for m in ('numba', 'egglog', 'scipy', 'networkx') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


MODULES = ["esat.linalg", "esat.random", "esat.sparse", "esat.mode", "esat.rules", "esat.classic"]


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_imported_by_name(name):
    module = importlib.import_module(name)
    assert module is getattr(esat, name.removeprefix("esat."))
    assert module.__name__ == name


def test_the_command_line_of_the_documents():
    program = (
        "import esat; esat.optdb.query(esat.mode.predefined_optimizers['Stabilization']).print_summary()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("SeqOptimizer optdb")


@pytest.mark.parametrize("name", [name for name in esat.__all__ if isinstance(getattr(esat, name), esat.Op)])
def test_an_op_is_shown_as_a_function(name):
    op = getattr(esat, name)
    parameters = inspect.signature(op).parameters.values()
    assert len(parameters) == op.arity
    assert all(parameter.kind is parameter.POSITIONAL_ONLY for parameter in parameters)
    shown = pydoc.plain(pydoc.render_doc(op))
    assert f"{op.name}({', '.join(p.name for p in parameters)})" in shown
    assert "for each element" in shown
    assert "Attributes" not in shown
    record = type(op)
    assert list(inspect.signature(record).parameters)[:3] == ["name", "arity", "numpy"]
    assert (record.__doc__ or "").startswith(("An op", "A comp", "The ", "``"))
