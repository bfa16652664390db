"""After rules ran on random sums and products, every e-node has the value and the shape of its class."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from esat.rules import permutation_axes, read_rules
from esat.rules.language.reader import Sexp

from .conftest import INDEX, LIFT, MATRIX, NORMALISE, TYPES, Laboratory, compiled, leaf, nary

RULES = """
(rewrite (Mul (Exp x) (Exp y)) (Exp (Add x y)))
(rewrite (Div (Exp x) (Exp y)) (Exp (Sub x y)))
(birewrite (Add (Log x) (Log y)) (Log (Mul x y)))
(rewrite (Mul (Sqrt x) (Sqrt y)) (Sqrt (Mul x y)) :when ((positive x) (positive y)))
(rewrite (Log (Div x y)) (Sub (Log x) (Log y)) :when ((positive x) (positive y)))
(rewrite (Add (Mul a b) (Mul a c)) (Mul a (Add b c)))
(rewrite (Sub (Mul a b) (Mul a c)) (Mul a (Sub b c)))
(rewrite (Mul x (Add y z)) (Add (Mul x y) (Mul x z)))
(rewrite (Div (Sub a b) c) (Sub (Div a c) (Div b c)))
(rewrite (Sub (Sqr a) (Sqr b)) (Mul (Add a b) (Sub a b)))
(rewrite (Add (Sqr (Sin x)) (Sqr (Cos x))) (Fill x (K 1.0 10)))
(rewrite (Log (Add one (Exp x))) (Softplus x) :when ((= (val one) 1.0)))
(rewrite (Sub (Exp x) one) (Expm1 x) :when ((= (val one) 1.0)))
(rewrite (Sub one (Sigmoid x)) (Sigmoid (Neg x)) :when ((= (val one) 1.0)))
(rewrite (Reciprocal (Add one (Exp (Neg x)))) (Sigmoid x) :when ((= (val one) 1.0)))
(rewrite (Div (Sin x) (Cos x)) (Tan x))
(rewrite (Mul (Sin x) (Cos x)) (Mul (K 0.5 d) (Sin (Add x x))) :when ((= d (dt x))))
(rewrite (Sub x (Floor x)) (Frac x))
(rewrite (Div x (Add x y)) (Ratio x y))
(rewrite (Tanh (Neg x)) (Neg (Tanh x)))
(rewrite (Exp (Neg x)) (Reciprocal (Exp x)))
(rewrite (Sqrt (Mul x x)) (Abs x))
(rewrite (Div (Mul x y) y) x)
(rewrite (Add (MatMul a b r) (MatMul a c r)) (MatMul a (Add b c) r) :when ((= (bp b) (bp c))))
(rewrite (MatMul (Mul s a) b r) (Mul s (MatMul a b r)) :when ((= (bp s) -1) (= (bp a) (bp (Mul s a)))))
(rewrite (ReduceSum (Mul a x) m) (Mul a (ReduceSum x m))
  :when ((= m (& m (bp a))) (= (bp x) (bp (Mul a x)))))
(rewrite (ReduceSum (Add x y) m) (Add (ReduceSum x m) (ReduceSum y m)) :when ((= (bp x) (bp y))))
(rewrite (DimShuffle (Mul x y) p) (Mul (DimShuffle x p) (DimShuffle y p)))
"""
SIZE = 4
TRANSPOSE = 2373112596481
WORDS = {0: MATRIX, 1: MATRIX, 2: 0b101, 3: 0b110, 4: -1, 5: MATRIX}
UNARY = {
    "Neg": np.negative,
    "Sqr": np.square,
    "Tanh": np.tanh,
    "Abs": np.abs,
    "Floor": np.floor,
    "Frac": lambda x: x - np.floor(x),
    "Exp": np.exp,
    "Log": np.log,
    "Sqrt": np.sqrt,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Expm1": np.expm1,
    "Reciprocal": np.reciprocal,
}
BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Ratio": lambda x, y: x / (x + y),
    "Fill": lambda x, y: np.broadcast_to(y, np.broadcast_shapes(x.shape, y.shape)),
}
FUNCTIONS = ("Exp", "Log", "Sqrt", "Sin", "Cos", "Sigmoid", "Floor", "Tanh")


def random_term(source: random.Random, depth: int = 2) -> str:
    """A matrix-shaped sum or product of up to five operands, some of them functions, products and sums."""
    family = source.choice(["NarySum", "NaryProd"])
    operands = [(1, leaf(source.choice([0, 1])))]
    while len(operands) < 2 or source.random() < 0.6:
        operands.append((source.choice([1, 1, -1]), random_operand(source, depth)))
    return nary(family, operands[:5])


def random_operand(source: random.Random, depth: int) -> str:
    kind = source.random()
    inner = random_term(source, depth - 1) if depth and kind < 0.5 else leaf(source.randrange(6))
    if kind < 0.15:
        return f"(DimShuffle {random_term(source, 0)} {TRANSPOSE})"
    if kind < 0.25:
        return f"(MatMul {inner if depth and kind < 0.5 and 'Nary' in inner else leaf(0)} {leaf(1)} 2)"
    if kind < 0.35:
        return f"(ReduceSum {random_term(source, 0)} {source.choice([1, 2, 3])})"
    if kind < 0.45:
        return source.choice(["$one", "(K 2.0 10)", inner])
    return f"({source.choice(FUNCTIONS)} {inner})" if kind < 0.9 else inner


ATTRIBUTES = {"m": "1", "p": str(TRANSPOSE), "r": "2", "one": "$one", "s": "(K 2.0 10)"}
LEFT_SIDES = [rule.body[0][2] for rule in read_rules(RULES).rules]


def instance(source: random.Random, pattern: Sexp, bound: dict[str, str], inputs: list[int]) -> str:
    """A left side with random terms for its variables."""
    if not isinstance(pattern, str):
        return f"({pattern[0]} {' '.join(instance(source, part, bound, inputs) for part in pattern[1:])})"
    if pattern not in bound:
        operand = leaf(source.choice(inputs))
        bound[pattern] = random_term(source, 0) if source.random() < 0.3 else operand
    return bound[pattern]


def matching_term(source: random.Random) -> str:
    """Instances of left sides inside a sum or product."""
    term = leaf(source.choice([0, 1]))
    for _ in range(source.randint(1, 3)):
        pattern = source.choice(LEFT_SIDES)
        # The sizes of a matrix product must fit: no rows and columns there.
        inputs = [0, 1] if "MatMul" in repr(pattern) else [0, 1, 1, 2, 5]
        operand = instance(source, pattern, dict(ATTRIBUTES), inputs)
        term = f"({source.choice(['Add', 'Sub', 'Mul', 'Div'])} {term} {operand})"
    return term


def evaluated(name: str, operands: list[Any], attributes: list[Any], arrays: list[np.ndarray]) -> np.ndarray:
    """What an op of the laboratory computes; size-1 results are scalars, as in the e-graph."""
    if name == "In":
        result = arrays[attributes[0]]
    elif name == "K":
        result = np.asarray(attributes[0])
    elif name in UNARY:
        result = UNARY[name](*operands)
    elif name in BINARY:
        result = BINARY[name](*operands)
    elif name == "ReduceSum":
        axes = tuple(axis for axis in (0, 1) if attributes[0] >> axis & 1)
        full = np.broadcast_to(operands[0], (1, 1)) if operands[0].ndim == 0 else operands[0]
        result = full.sum(axis=axes, keepdims=True)
    elif name == "DimShuffle":
        full = np.broadcast_to(operands[0], (1, 1)) if operands[0].ndim == 0 else operands[0]
        result = np.transpose(full, [int(axis) for axis in permutation_axes(attributes[0])])
    else:
        assert name == "MatMul", name
        result = operands[0] @ operands[1]
    return result.reshape(()) if result.size == 1 else result


def check_classes(laboratory: Laboratory, arrays: list[np.ndarray]) -> int:
    """Evaluate every e-node whose operands have values; returns how many were compared with their class."""
    convert = laboratory.engine.values
    nodes = []
    for name, table in laboratory.engine.freeze().functions.items():
        if table.output_sort != "T" or not name[0].isupper() or name == "N":
            continue
        for row in table.rows:
            operands, attributes = [], []
            for sort, value in zip(table.input_sorts, row.inputs, strict=True):
                if sort == "T":
                    operands.append(hash(value))
                elif sort == "MS":
                    operands.append([hash(element) for element in convert.value_to_multiset(value)])
                else:
                    read = convert.value_to_i64 if sort == "i64" else convert.value_to_f64
                    attributes.append(read(value))
            nodes.append((hash(row.output), name, operands, attributes))
    values: dict[int, np.ndarray] = {}
    compared, progress = 0, True
    while progress:
        progress, waiting = False, []
        for node in nodes:
            value = value_of(node, values, arrays)
            if value is None:
                waiting.append(node)
                continue
            progress = True
            known = values.setdefault(node[0], value)
            compared += known is not value
            assert value.shape == known.shape, (node, value.shape, known.shape)
            judged = np.isfinite(value) & np.isfinite(known) & (np.abs(known) < 1e30)
            scale = np.abs(known).max(where=judged, initial=1.0)
            assert np.all(np.isclose(value, known, rtol=1e-5, atol=1e-6 * scale) | ~judged), (
                node,
                value,
                known,
            )
        nodes = waiting
    return compared


def value_of(node: Any, values: dict[int, np.ndarray], arrays: list[np.ndarray]) -> np.ndarray | None:
    _, name, operands, attributes = node
    needed = [key for part in operands for key in (part if isinstance(part, list) else [part])]
    if any(key not in values for key in needed):
        return None
    if name not in ("NarySum", "NaryProd"):
        return evaluated(name, [values[key] for key in operands], attributes, arrays)
    combine, undo = (np.add, np.subtract) if name == "NarySum" else (np.multiply, np.divide)
    result = np.asarray(0.0 if name == "NarySum" else 1.0)
    for key in operands[0]:
        result = combine(result, values[key])
    for key in operands[1]:
        result = undo(result, values[key])
    return result.reshape(()) if result.size == 1 else result


@pytest.mark.parametrize("seed", range(40))
def test_every_class_keeps_its_value(laboratory: Laboratory, seed: int) -> None:
    source, generator = random.Random(seed), np.random.default_rng(seed)
    shapes = {MATRIX: (SIZE, SIZE), 0b101: (1, SIZE), 0b110: (SIZE, 1), -1: ()}
    arrays = [generator.uniform(0.5, 1.5, shapes[word]) for word in WORDS.values()]
    rules = compiled(RULES)
    engine = laboratory.engine
    engine.execute("(push)")
    try:
        for chunk in rules.chunks:
            engine.load(chunk.text)
        engine.load("(let $one (K 1.0 10))")
        for number, word in WORDS.items():
            engine.load(
                f"(set (dt (In {number})) 10) (set (bp (In {number})) {word}) (positive (In {number}))"
            )
        for _ in range(6):
            engine.load(random_term(source))
            engine.load(matching_term(source))
        engine.execute(f"(run-schedule (saturate (run mark)) {INDEX} (saturate (run esat-lift)) {NORMALISE})")
        for turn in range(3):
            sets = (*rules.expanding, *rules.rulesets) if turn == 0 else rules.rulesets
            runs = " ".join(f"(run {name})" for name in sets)
            engine.execute(f"(run-schedule (seq {INDEX} {runs} {LIFT} {NORMALISE} {TYPES}))")
        with np.errstate(all="ignore"):
            assert check_classes(laboratory, arrays) > 30
    finally:
        if engine.failure is None:
            engine.execute("(pop)")
