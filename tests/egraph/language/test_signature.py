"""Typing and folding rules generated from the constructors' records."""

import itertools

import numpy as np
import pytest
from egraph.term_graphs import SIGNATURE, rules_engine

from esat.egraph.engine import Engine
from esat.egraph.language.dtype_tables import rounded
from esat.egraph.language.signature import ConstructorSignature, Signature
from esat.egraph.language.terms import SCALAR, broadcast_word
from esat.errors import CompileError
from esat.graph.types import DTYPES
from esat.rules.language.macros import permutation_word


def facts(engine, expression):
    """dtype name, broadcast word and value (or None) the rules give to an expression."""
    (found,) = facts_of_all(engine, [expression])
    return found


def facts_of_all(engine, expressions):
    """What :func:`facts` gives for each of several expressions, in one saturation."""
    engine.execute("(push)")
    engine.execute("(constructor subject (i64) T)")
    for number, expression in enumerate(expressions):
        engine.execute(f"(union (subject {number}) {expression})")
    engine.execute("(run-schedule (saturate (run esat-types)) (saturate (run esat-fold)))")
    tables, values = engine.freeze().functions, engine.values
    subjects = {values.value_to_i64(row.inputs[0]): hash(row.output) for row in tables["subject"].rows}
    found = [[] for _ in expressions]
    for fact, read in (
        ("dt", values.value_to_i64),
        ("bp", values.value_to_i64),
        ("val", values.value_to_f64),
    ):
        rows = {hash(row.inputs[0]): row.output for row in tables[fact].rows}
        for number, subject in subjects.items():
            found[number].append(read(rows[subject]) if subject in rows else None)
    engine.execute("(pop)")
    return [(DTYPES[dtype], word, value) for dtype, word, value in found]


@pytest.fixture(scope="module")
def engine():
    built = rules_engine(kind=Engine)
    for number, (dtype, shape) in enumerate(OPERANDS):
        word = broadcast_word([size == 1 for size in shape])
        built.execute(f"(set (dt (In {number})) {DTYPES.index(dtype)}) (set (bp (In {number})) {word})")
    return built


SHAPES = [(2, 3), (1, 3), (2, 1), (1, 1)]
OPERANDS = [(dtype, shape) for dtype in ("float32", "complex64") for shape in SHAPES]


def word_of(shape):
    return broadcast_word([size == 1 for size in shape])


@pytest.mark.parametrize(("left", "right"), list(itertools.product(range(4), range(4))))
def test_elementwise_types(engine, left, right):
    shape = np.broadcast_shapes(SHAPES[left], SHAPES[right])
    assert facts(engine, f"(Maximum (In {left}) (In {right}))")[:2] == ("float32", word_of(shape))
    assert facts(engine, f"(Lt (In {left}) (In {right}))")[:2] == ("bool", word_of(shape))
    assert facts(engine, f"(Fill (In {left}) (In {right}))")[:2] == ("float32", word_of(shape))


@pytest.mark.parametrize("operand", range(4))
def test_other_types(engine, operand):
    shape = SHAPES[operand]
    data = np.zeros(shape)
    source = f"(In {operand})"
    assert facts(engine, f"(Abs (In {operand + 4}))")[:2] == ("float32", word_of(shape))
    assert facts(engine, f"(Cast {source} 3)")[:2] == ("int32", word_of(shape))
    for order in ((1, 0), ("x", 0, 1), (1, "x", 0)):
        word = permutation_word(order, 2)
        kept = [axis for axis in order if axis != "x"]
        expected = np.expand_dims(
            data.transpose(kept), [place for place, axis in enumerate(order) if axis == "x"]
        )
        assert facts(engine, f"(DimShuffle {source} {word})")[:2] == ("float32", word_of(expected.shape))
    for mask, axes in ((1, (0,)), (2, (1,)), (3, (0, 1))):
        reduced = word_of(data.sum(axes, keepdims=True).shape)
        assert facts(engine, f"(ReduceSum {source} {mask})")[:2] == ("float32", reduced)
        assert facts(engine, f"(ArgMax {source} {mask})")[:2] == ("int64", reduced)


def test_matmul_types():
    engine = rules_engine(kind=Engine)
    shapes = [(1, 4, 2, 3), (5, 1, 3, 1), (5, 4, 3, 7), (1, 1, 1, 3), (1, 1, 3, 1)]
    for number, shape in enumerate(shapes):
        engine.execute(f"(set (dt (In {number})) 11) (set (bp (In {number})) {word_of(shape)})")
    for left, right in ((0, 1), (0, 2), (3, 1), (3, 4), (3, 2)):
        shape = (np.zeros(shapes[left]) @ np.zeros(shapes[right])).shape
        assert facts(engine, f"(MatMul (In {left}) (In {right}) 4)")[:2] == ("float64", word_of(shape))


def constant(value, dtype):
    return f"(K {float(value)!r} {DTYPES.index(dtype)})"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32", "float64"])
def test_folding_agrees_with_numpy_or_stays_away(engine, dtype):
    values = [0, 1, 2, 3, 7, 100] + ([-1, -128] if not dtype.startswith("u") else [])
    if dtype.startswith("float"):
        values += [float(np.dtype(dtype).type(value)) for value in (0.1, 1e-3, 1e30)]
    functions = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Maximum": np.maximum}
    folded = 0
    for name, function in functions.items():
        pairs = list(itertools.product(values, values))
        found = facts_of_all(
            engine, [f"({name} {constant(left, dtype)} {constant(right, dtype)})" for left, right in pairs]
        )
        for (left, right), (_, word, value) in zip(pairs, found, strict=True):
            with np.errstate(all="ignore"):
                expected = function(np.dtype(dtype).type(left), np.dtype(dtype).type(right))
            assert word == SCALAR
            if value is not None:
                folded += 1
                assert value == float(expected)
                assert not (dtype.startswith("float") and expected == 0 and np.signbit(expected))
    assert folded > len(functions) * len(values)


def test_negative_zero_is_never_folded(engine):
    assert facts(engine, f"(Neg {constant(0, 'float64')})")[2] is None
    assert facts(engine, f"(Mul {constant(0, 'float64')} {constant(-1, 'float64')})")[2] is None
    assert facts(engine, f"(Neg {constant(0, 'int8')})")[2] == 0.0


@pytest.mark.parametrize(
    ("source", "value", "target", "kept"),
    [
        ("int64", 7, "float32", True),
        ("int64", 2**24 + 1, "float32", False),
        ("int64", 300, "int8", False),
        ("float64", 0.1, "float32", False),
        ("float64", 0.5, "float16", True),
        ("float64", 2.5, "int32", False),
        ("float64", 3.0, "bool", False),
    ],
)
def test_casts_keep_representable_values(engine, source, value, target, kept):
    found = facts(engine, f"(Cast {constant(value, source)} {DTYPES.index(target)})")
    assert found == (target, SCALAR, float(value) if kept else None)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rounding_in_rules(dtype):
    engine = rules_engine(kind=Engine)
    engine.execute("(relation given (f64)) (relation result (f64 f64)) (ruleset rounding)")
    engine.execute(
        f"(rule ((given v) (= d {DTYPES.index(dtype)}) {rounded('u', 'v', 'd')}) ((result v u))"
        " :ruleset rounding)"
    )
    random = np.random.default_rng(0)
    values = np.concatenate(
        [random.uniform(-10, 10, 40), 10.0 ** random.uniform(-50, 5, 40), [0.0, 65504, 1e-8]]
    )
    for value in values:
        engine.execute(f"(given {float(value)!r})")
    engine.execute("(run rounding 1)")
    read = engine.values.value_to_f64
    rows = engine.freeze().functions["result"].rows
    pairs = {read(row.inputs[0]): read(row.inputs[1]) for row in rows}
    for value in values:
        with np.errstate(over="ignore"):
            nearest = np.float64(value).astype(dtype)
        if np.isfinite(nearest):
            found = np.dtype(dtype).type(pairs[value])
            assert float(found) == pairs[value]
            assert found in (nearest, np.nextafter(nearest, found))
            assert nearest != value or found == value
        else:
            assert value not in pairs


def test_two_records_with_one_name():
    with pytest.raises(CompileError, match="named Add"):
        Signature([ConstructorSignature("Add", 2, (), "same"), ConstructorSignature("Add", 3, (), "same")])


def test_operators_for_the_rule_compiler():
    operators = SIGNATURE.operators
    assert operators["Add"].operands == ("T", "T")
    assert operators["Add"].broadcast == "(& #0 #1)"
    assert operators["Fill"].operand_dtypes == ("", "same")
    assert operators["Cast"].dtype == "#1"
    assert operators["dt"].result == "i64"
