"""Ops that users add, and what the table promises of all ops."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import esat.egraph
from esat.egraph.language.constructors import op_signature
from esat.errors import DtypeError, GradientError, GraphError
from esat.frontend.derivatives.gradient import grad
from esat.frontend.derivatives.verify_grad import verify_grad
from esat.graph import registry
from esat.ops.elementwise.records.code import Code
from esat.ops.elementwise.records.define import TERM_LANGUAGE, elementwise
from esat.ops.elementwise.records.facts import Facts
from esat.ops.elementwise.records.templates import check_code
from esat.ops.inference.promotion import FLOATS
from esat.ops.table import ELEMENTWISE, OPS, register_all

from .samples import assert_same, run, variable


@pytest.fixture
def own_registry(monkeypatch):
    """Names registered in the test are forgotten after it."""
    for table in ("_OPS", "_BY_CONSTRUCTOR"):
        monkeypatch.setattr(registry, table, dict(getattr(registry, table)))


def text(name):
    return next(Path(esat.egraph.__file__).parent.rglob(name)).read_text(encoding="utf-8")


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


TEMPLATES = {
    "foo({0})": r"names foo, which templates do not have",
    "sqr({0})": r"names sqr, .*did you mean sqrt",
    "({0} * 2": r"is no expression",
    "{0} * ": r"is no expression",
    "{0} + {1}": r"names an operand \{1\}; it has \{0\}",
    "{x}": r"names an operand \{x\}",
    "{": r"is no expression",
    "{0:.2f}": r"formats an operand",
    "x * 2": r"names x, which templates do not have",
    "exp": r"names exp",
    "exp({0}, {0})": r"gives exp 2 operands, not 1",
    "maximum({0})": r"gives maximum 1 operands, not 2",
    "select({0} > 0, {0})": r"gives select 2 operands, not 3",
    "const({0})": r"const\(\.\.\.\) of what is no number",
    "{0}.real": r"has '.*real', which templates do not have",
    "{0}[0]": r"which templates do not have",
    "'a' * {0}": r"which templates do not have",
    "{0} if {0} > 0 else -{0}": r"which templates do not have",
    "[{0}]": r"which templates do not have",
    "(lambda x: x)({0})": r"which templates do not have",
    "{0}; {0}": r"is no expression",
    "exp({0})" + "+1" * 100_000: r"is no expression",
    "(" * 400 + "{0}" + ")" * 400: r"is no expression",
    "": r"is no expression",
}


@pytest.mark.usefixtures("own_registry")
@pytest.mark.parametrize("template", TEMPLATES, ids=lambda text: text[:20])
def test_code_is_checked_when_the_op_is_made(template):
    for code in (template, Code(floating="{0}", signed=template)):
        with pytest.raises(GraphError, match=r"^wrong_of_test: the code .*" + TEMPLATES[template]):
            elementwise("wrong_of_test", np.abs, code=code)
    with pytest.raises(GraphError, match="no op named"):
        registry.op_named("wrong_of_test")


@pytest.mark.usefixtures("own_registry")
def test_code_of_all_kinds_of_expressions():
    code = " select(not ({0} > const(-1.5) and isfinite({1})), float32(1), -{0} ** 2 // 3 % {1})"
    code += " + (inf if False else nan)"
    with pytest.raises(GraphError, match="templates do not have"):
        elementwise("branches_of_test", np.add, code=code)
    op = elementwise("all_of_test", np.add, code=code.replace("(inf if False else nan)", "const(inf) * 1e-3"))
    assert op.source("float32")


def test_templates_of_the_table_pass():
    for op in ELEMENTWISE:
        check_code(op.name, op.code, op.arity)


@pytest.mark.usefixtures("own_registry")
def test_names_that_mean_something_already():
    for name in ("logit", "cumsum", "grad", "matmul", "linalg"):
        with pytest.raises(GraphError, match=f"named '{name}': esat has a function of that name"):
            elementwise(name, np.tanh)
    for name in ("nary_sum", "K", "dim_shuffle", "output", "t", "words", "line"):
        with pytest.raises(GraphError, match=f"named '{name}': in rules .* means something else"):
            elementwise(name, np.tanh)
    own = {op.constructor for op in registry.registered_ops()}
    program = op_signature().program + "".join(text(name) for name in ("core.egg", "structure.egg"))
    found = re.findall(r"\((?:sort|constructor|function|relation) ([A-Z]\w*)", program)
    names_of_several = {"FACT", "NARY", "SUPERSEDED"}
    declared = {*found, "SupersededNarySum", "SupersededNaryProd"} - own - names_of_several
    assert len(declared) > 30
    assert declared == TERM_LANGUAGE


@pytest.mark.usefixtures("own_registry")
@pytest.mark.parametrize(
    ("argument", "values"),
    {
        "numpy": (5, None, "tanh"),
        "arity": (0, -1, 1.5, "a", 2**62, True),
        "code": (3, b"{0}", ["{0}"]),
        "gradient": (3, "one"),
        "dtypes": (3, "float64", (), ("float65",), [None]),
        "typing": (3, "text", None),
        "flops": ("a", -1.0, float("nan"), float("inf"), None, True),
        "facts": (3, None, {}),
    }.items(),
)
def test_arguments_that_an_op_does_not_have(argument, values):
    for value in values:
        with pytest.raises(GraphError, match=rf"^wrong_of_test: {argument} is .*, not "):
            elementwise("wrong_of_test", **{"numpy": np.tanh, argument: value})
    for name in (1, None, b"a", "a b", "", ["a"]):
        with pytest.raises(GraphError, match="an op cannot be named"):
            elementwise(name, np.tanh)


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
    assert op.needs_floats == (op.admits("int64") in ("float32", "float64", "complex128"))
    work = op.work([(2, 3)] * op.arity, [(2, 3)], [8] * (op.arity + 1))
    assert (work.flops, work.bytes, work.calls) == (6 * op.flops, 48 * (op.arity + 1), 0)


def test_importing_the_table_does_not_import_scipy():
    script = "import sys, esat.ops.table; print('scipy' in sys.modules, 'numba' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "False"]
