"""The documents' 25 rows of optimizations, a test for each; and the tables of all rewrites they name."""

import re
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import esat
from esat.errors import AssertionFailed
from esat.frontend.elements import random as draws
from esat.frontend.linear_algebra import sparse
from esat.rules import RULES

ROOT = Path(__file__).resolve().parent.parents[1]
TABLES = ("papers/theano/rewrites.md", "papers/pytensor/rewrites.md")
STATUS = {"covered", "superfluous", "open", "not here"}
ASSERT = esat.assert_
MODES = pytest.mark.parametrize("mode", ["fast_run", "greedy"])

x, y, z = (esat.vector(name) for name in "xyz")
a, b, c = (esat.matrix(name) for name in "abc")
s = esat.scalar("s")
VALUES = {
    variable: np.random.default_rng(number).uniform(0.5, 1.5, (3,) * variable.tensor_type.ndim)
    for number, variable in enumerate((x, y, z, a, b, c, s))
}


def compiled(outputs, mode):
    """The function of these outputs, and the text of its graph; its values are checked."""
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    inputs = [variable for variable in VALUES if variable in set(esat.graph.inputs_of(outputs))]
    function = esat.compile(esat.Graph(inputs, outputs), mode)
    found = function(*(VALUES[variable] for variable in inputs))
    wanted = esat.evaluate(outputs, {variable: VALUES[variable] for variable in inputs})
    for one, other in zip(found if len(outputs) > 1 else [found], wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-12)
    return function


def text(outputs, mode):
    """What is left of outputs, as text."""
    return str(compiled(outputs, mode).optimized)


def left(outputs, mode):
    """What is left of outputs, as counts of ops; views do not count."""
    ops = Counter(node.op.name for node in compiled(outputs, mode).optimized.toposort())
    del ops["dimshuffle"]
    return dict(ops)


# ---- the rows, in the documents' order


@MODES
def test_merge(mode):
    assert left([(x + y) * 2, (x + y) * 3], mode)["add"] == 1


@MODES
def test_constant_folding(mode):
    two = esat.constant(2.0)
    assert left(x * (two * two + esat.exp(two)), mode) == {"mul": 1}


def test_gpu_transfer():
    """What a mode with a device does, whose query can leave it out: tests/gpu/test_placed_functions.py."""
    (row,) = (row for row in esat.classic.documents_table.ROWS if row.name == "GPU transfer")
    assert row.members == ("gpu_transfer",)
    assert esat.Mode("greedy").has("gpu_transfer")
    assert not esat.Mode("greedy").excluding("gpu_transfer").has("gpu_transfer")


@MODES
def test_shape_promotion(mode):
    assert "log" not in left(esat.log(x).shape[0] + 1, mode)


@MODES
def test_fill_cut(mode):
    fill = esat.graph.registry.op_named("fill")
    assert left(esat.exp(fill(x, s) + y), mode) == {"exp": 1, "add": 1}
    both = left(fill(x, s) * fill(y, s + 1), mode)
    assert both.get("fill", 0) <= 1


@MODES
def test_inc_subtensor_serialization(mode):
    zeros = esat.zeros_like(a)
    ops = left(esat.inc_subtensor(zeros[:2], b[:2]) + esat.inc_subtensor(zeros[1:], c[1:]), mode)
    assert "add" not in ops
    assert ops["inc_subtensor"] == 2


@MODES
def test_reshape_chain(mode):
    assert left(esat.exp(a.reshape((9,)).reshape((3, 3)).reshape((9,))), mode) == {"exp": 1, "reshape": 1}
    assert left(esat.exp(a.reshape((9, 1)).reshape((-1,)).reshape((1, 9))), mode) == {"exp": 1, "reshape": 1}


@MODES
def test_constant_elimination(mode):
    assert text(x**1, mode) == "[x]"
    assert text([x * 1, x + 0, x / 1, x - 0], mode) == "[x, x, x, x]"


@MODES
def test_add_canonicalization(mode):
    assert left((x + y + z) - (z + x), mode) == {}
    assert left((x + y + z) - (y + (x - z)), mode) in ({"add": 1}, {"mul": 1})


@MODES
def test_mul_canonicalization(mode):
    assert text((x * y) / x, mode) == "[y]"
    assert text(x / (y / z) / z * y, mode) == "[x]"


@MODES
def test_dot22(mode):
    function = compiled(a @ b, mode)
    assert [node.op.name for node in function.optimized.toposort()] == ["matmul"]


@MODES
def test_sparse_dot(mode):
    matrix = sparse.csr_matrix("m")
    dense = sparse.dense_from_sparse(matrix)
    data = scipy.sparse.random_array((3, 3), density=0.5, format="csr", rng=0)
    products = {
        sparse.dot(matrix, a) * 2.0: (data @ VALUES[a]) * 2,
        dense @ a: data @ VALUES[a],
        a @ dense: VALUES[a] @ data.toarray(),
    }
    # For these sizes the sparse product pays.
    expected = {matrix: (20_000, 20_000, 40_000), a: (20_000, 20_000)}
    for product, wanted in products.items():
        function = esat.compile(esat.Graph([matrix, a], [product]), mode, shapes=expected)
        np.testing.assert_allclose(function(data, VALUES[a]), wanted)
        names = {node.op.name for node in function.optimized.toposort()}
        assert names & {"structured_dot", "usmm"}
        assert "dense_from_sparse" not in names


@MODES
def test_sum_scalar_mul(mode):
    assert left(esat.sum(s * a), mode) == {"sum": 1, "mul": 1}
    assert text(esat.sum(s * a), mode).index("mul") < text(esat.sum(s * a), mode).index("sum")


@MODES
def test_neg_neg(mode):
    assert text(esat.neg(esat.neg(x)), mode) == "[x]"


@MODES
def test_neg_div_neg(mode):
    assert text((-x) / (-y), mode) == "[div(x, y)]"


@MODES
def test_add_specialization(mode):
    assert text(x + esat.zeros_like(x), mode) == "[x]"


@MODES
def test_mul_specialization(mode):
    # A square, or a change of sign, costs what a product does: which of them is left is not said.
    assert left(x * x, mode) in ({"sqr": 1}, {"mul": 1})
    assert left(x * -1, mode) in ({"neg": 1}, {"mul": 1})
    assert "mul" not in left(x * 0, mode)


@MODES
def test_pow_specialization(mode):
    assert left(x**2, mode) in ({"sqr": 1}, {"mul": 1})
    assert "pow" not in left(x**0, mode)
    assert "pow" not in left(x**-0.5, mode)


@MODES
def test_inplace_setsubtensor(mode):
    function = compiled(esat.set_subtensor(esat.exp(a)[0], 0.0), mode)
    assert any(node.op.name == "set_subtensor" and node.op.inplace for node in function.graph.toposort())


@MODES
def test_gemm(mode):
    weights = esat.shared(np.ones((4, 5)))
    p, q = esat.matrix("p"), esat.matrix("q")
    step = esat.compile(esat.Graph([p, q], [], updates={weights: 0.5 * weights - 2.0 * (p @ q)}), mode)
    assert [node.op.name for node in step.graph.toposort()] == ["gemm"]
    step(np.full((4, 3), 1.0), np.full((3, 5), 2.0))
    np.testing.assert_array_equal(weights.get_value(), np.full((4, 5), -11.5))


@MODES
def test_inplace_elemwise(mode):
    shared = esat.shared(np.ones((100, 100)))
    step = esat.compile(esat.Graph([], [], updates={shared: shared * 2 + 1}), mode)
    place = shared.get_value(borrow=True).ctypes.data
    step()
    assert shared.get_value(borrow=True).ctypes.data == place
    np.testing.assert_array_equal(shared.get_value(), np.full((100, 100), 3.0))


@MODES
def test_inplace_random(mode):
    state = draws.shared_state(5)
    following, sample = draws.normal(state, size=(3,))
    draw = esat.compile(esat.Graph([], [sample], updates={state: following}), mode)
    assert any(node.op.destroy_map for node in draw.graph.toposort())
    generator = np.random.default_rng(5)
    for _ in range(2):
        np.testing.assert_array_equal(draw(), generator.normal(size=3))


@MODES
def test_elemwise_fusion(mode):
    function = compiled(esat.exp(x) + y * esat.tanh(z) - x, mode)
    assert len(function.steps) == 1


@MODES
def test_local_log_softmax(mode):
    assert left(esat.log(esat.softmax(a, axis=1)), mode) == {"log_softmax": 1}


def test_local_remove_all_assert():
    value = ASSERT(x, s > 2.0)
    graph = esat.Graph([x, s], [value * 2.0])
    assert "assert" not in str(esat.compile(graph, "unsafe").optimized)
    with pytest.raises(AssertionFailed):
        esat.compile(graph, "fast_run")(VALUES[x], VALUES[s])


# A product of matrices is one op from the start and runs by BLAS: nothing can be left out. Assertions are
# dropped in one mode alone, which its test compares with another.
TESTED = {
    "merge": test_merge,
    "constant folding": test_constant_folding,
    "shape promotion": test_shape_promotion,
    "fill cut": test_fill_cut,
    "inc_subtensor srlz.": test_inc_subtensor_serialization,
    "reshape_chain": test_reshape_chain,
    "const. elimination": test_constant_elimination,
    "add canonical.": test_add_canonicalization,
    "mul canonical.": test_mul_canonicalization,
    "sparse_dot": test_sparse_dot,
    "sum_scalar_mul": test_sum_scalar_mul,
    "neg_neg": test_neg_neg,
    "neg_div_neg": test_neg_div_neg,
    "add specialize": test_add_specialization,
    "mul specialize": test_mul_specialization,
    "pow specialize": test_pow_specialization,
    "inplace_setsubtensor": test_inplace_setsubtensor,
    "gemm": test_gemm,
    "inplace_elemwise": test_inplace_elemwise,
    "inplace_random": test_inplace_random,
    "elemwise fusion": test_elemwise_fusion,
    "local_log_softmax": test_local_log_softmax,
}


BY_EGRAPHS = {
    "merge": "merge1",
    "constant folding": "constant_folding",
    "shape promotion": "",
    "fill cut": "",
    "add canonical.": "local_add_canonizer",
    "mul canonical.": "local_mul_canonizer",
    "neg_neg": "neg-neg",
    "neg_div_neg": "neg-div-neg",
    "add specialize": "local_add_canonizer",
    "mul specialize": "local_mul_zero",
}
"""Rows that an e-graph shows by itself, and what of them a warning names, if any."""


@pytest.mark.parametrize("name", [name for name, member in BY_EGRAPHS.items() if member])
def test_rows_that_e_graphs_show_by_themselves_are_told_of(name):
    (row,) = (one for one in esat.classic.documents_table.ROWS if one.name == name)
    told = f"leaving out .*{BY_EGRAPHS[name]}.* changes nothing"
    for mode in ("fast_run", "greedy"):
        with pytest.warns(esat.EsatWarning, match=told):
            esat.compile(esat.Graph([x], x), esat.Mode(mode).excluding(row.name, *row.members))


@pytest.mark.parametrize("name", [name for name in TESTED if name not in BY_EGRAPHS])
def test_no_row_shows_without_its_members(name, monkeypatch):
    """What the row's test asks for is the members' work: a greedy mode without the row fails it."""
    (row,) = (row for row in esat.classic.documents_table.ROWS if row.name == name)
    complete = esat.compile

    def without(graph, mode, **options):
        warnings.simplefilter("ignore", esat.EsatWarning)  # which tells of members that change nothing alone
        return complete(graph, esat.Mode(mode).excluding(row.name, *row.members), **options)

    monkeypatch.setattr(esat, "compile", without)
    with pytest.raises(AssertionError):
        TESTED[name]("greedy")


def test_all_rows_have_a_test():
    shown = {*TESTED, "GPU transfer", "dot22", "local_remove_all_assert"}
    assert shown == {row.name for row in esat.classic.documents_table.ROWS}
    assert len(esat.classic.documents_table.ROWS) == 25
    assert sum(name.startswith("test_") for name in globals()) >= 25 + 4


# ---- the examples of the documents, as they are and with operands exchanged


@MODES
def test_examples_of_the_documents(mode):
    p, q, r = (esat.scalar(name) for name in "pqr")
    values = [np.array(1.5), np.array(-2.0), np.array(0.3)]
    first = esat.compile(esat.Graph([p, q, r], [esat.add(r, esat.mul(q * p / q, r / p))]), mode)
    assert len(first.optimized) <= 3
    np.testing.assert_allclose(first(*values), 0.6)
    second = esat.compile(
        esat.Graph([p, q, r], [((q + r) * p) / (r + q)], on_unused_input="ignore"), "fast_run"
    )
    assert str(second.optimized) == "[p]"


# ---- the tables


def lines(name):
    """Rows of a table: name, status, how, and where it is shown."""
    found = []
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 4:
            found.append(tuple(cells))
    return found


@pytest.mark.parametrize("table", TABLES)
def test_no_line_is_empty(table):
    rows = lines(table)
    assert len(rows) >= (80 if "theano" in table else 250)
    for name, status, how, shown in rows:
        assert status in STATUS, name
        assert len(how) > 5, f"{name} says nothing"
        assert status != "covered" or "::" in shown, f"{name} names no test"
    names = [row[0] for row in rows]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("table", TABLES)
def test_every_rule_and_file_exists(table):
    known = {rule.report_name for rule in RULES.list()} | {entry.name for entry in all_entries()}
    for name, _, how, _ in lines(table):
        for mentioned in re.findall(r"`:([A-Za-z0-9_.-]+)`", how):
            assert mentioned in known, f"{name} names {mentioned}, which does not exist"
        for mentioned in re.findall(r"`(esat/[^`]+)`", how):
            assert (ROOT / mentioned).exists(), f"{name} names {mentioned}, which does not exist"


def all_entries():
    """Entries of ``optdb`` and of the databases in it."""
    for entry in esat.optdb:
        yield entry
        try:
            yield from iter(esat.optdb[entry.name])
        except TypeError:
            continue


@pytest.mark.parametrize("table", TABLES)
def test_every_test_exists(table):
    for name, _, _, shown in lines(table):
        for file, test in re.findall(r"`(tests/[^`:]+)::([^`\[]+)", shown):
            source = (ROOT / file).read_text(encoding="utf-8")
            assert f"def {test}(" in source, f"{name} names {file}::{test}, which does not exist"
