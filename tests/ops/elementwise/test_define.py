"""Ops that users add, and what the table promises of all ops."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from esat.errors import DtypeError, GradientError, GraphError
from esat.frontend.gradient import grad
from esat.frontend.verify_grad import verify_grad
from esat.graph import registry
from esat.ops.elementwise.define import elementwise
from esat.ops.elementwise.facts import Facts
from esat.ops.promotion import FLOATS
from esat.ops.table import ELEMENTWISE, OPS, register_all

from .samples import assert_same, run, variable


@pytest.fixture
def own_registry(monkeypatch):
    """Names registered in the test are forgotten after it."""
    monkeypatch.setattr(registry, "_OPS", dict(registry._OPS))


def softsign():
    return elementwise(
        "softsign_of_test",
        lambda x: x / (1 + abs(x)),
        code="{0} / (const(1) + absolute({0}))",
        dtypes=FLOATS,
        gradient=lambda inputs, output, cotangent: [cotangent / (1 + abs(inputs[0])) ** 2],
        facts=Facts(parity="odd", lowest=-1, highest=1),
    )


@pytest.mark.usefixtures("own_registry")
def test_an_op_in_a_few_lines():
    op = softsign()
    assert registry.op_named("softsign_of_test") is op
    assert (op.arity, op.constructor) == (1, "SoftsignOfTest")
    assert op.source("float32") == "{0} / (float32(1) + absolute({0}))"
    assert_same(run(op, np.array([3, -1], "int32")), np.array([0.75, -0.5]), "int32 is computed in float64")
    verify_grad(op, [np.array([[0.5], [-2.0]])])


@pytest.mark.usefixtures("own_registry")
def test_a_ufunc_brings_its_types():
    op = elementwise("heaviside_of_test", np.heaviside)
    assert op.arity == 2
    assert_same(
        run(op, np.array([-1, 0, 2], "int8"), 0.5), np.heaviside(np.array([-1, 0, 2], "int8"), 0.5), ""
    )
    x = variable(np.array(1.0))
    with pytest.raises(GradientError, match=r"heaviside_of_test.*no gradient"):
        grad(op(x, 0.5), x)
    with pytest.raises(DtypeError, match=r"heaviside_of_test\(complex64, float64"):
        op(variable(np.zeros(1, "complex64")), 0.5 * np.ones(1))


@pytest.mark.usefixtures("own_registry")
def test_names_that_cannot_be():
    softsign()
    with pytest.raises(GraphError, match="registered already"):
        softsign()
    with pytest.raises(GraphError, match="identifier"):
        elementwise("soft sign", np.tanh)
    with pytest.raises(GraphError, match="how many operands"):
        elementwise("anything_of_test", lambda *operands: operands[0])
    with pytest.raises(GraphError, match="'same', 'bool' or 'real'"):
        elementwise("text_of_test", np.tanh, typing="text")
    with pytest.raises(GraphError, match="constructor 'Sin' of 'Sin' is taken"):
        elementwise("Sin", np.sin)


def test_the_table_registers_all_ops_under_names_of_their_own():
    register_all()
    assert [registry.op_named(op.name) for op in OPS] == list(OPS)
    assert len({op.constructor for op in ELEMENTWISE}) == len(ELEMENTWISE)
    assert set(ELEMENTWISE) <= set(OPS)


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_records(op):
    assert op.typing in ("same", "bool", "real", "fill")
    assert len(op.operand_typing) == op.arity
    assert op.gradient == "zero" or callable(op.gradient)
    assert op.needs_floats == (op.admits("int64") in ("float32", "float64"))
    work = op.work([(2, 3)] * op.arity, [(2, 3)], [8] * (op.arity + 1))
    assert (work.flops, work.bytes, work.calls) == (6 * op.flops, 48 * (op.arity + 1), 0)


def test_importing_the_table_does_not_import_scipy():
    script = "import sys, esat.ops.table; print('scipy' in sys.modules, 'numba' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "False"]
