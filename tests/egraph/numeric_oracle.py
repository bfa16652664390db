"""The whole-e-graph oracle: every e-node must have its class's value, every fact must be true of it."""

import numpy as np

from esat.egraph.language.terms import SCALAR, broadcast_word
from esat.graph.types import DTYPES


def check_egraph(engine, arrays, tolerance=1e-9) -> int:
    """Evaluate all e-nodes bottom-up, assert that they agree; returns how many were compared."""
    tables = engine.freeze().functions
    nodes = _nodes(engine, tables)
    values: dict[int, np.ndarray] = {}
    compared = 0
    pending = nodes
    with np.errstate(all="ignore"):
        while pending:
            waiting = []
            for node in pending:
                _, name, _, operands, _ = node
                if all(operand in values for operand in operands):
                    value = _evaluate(node, values, arrays)
                    known = values.setdefault(node[0], value)
                    _compare(name, value, known, tolerance, node)
                    compared += 1
                else:
                    waiting.append(node)
            if len(waiting) == len(pending):
                break
            pending = waiting
    _check_facts(engine, tables, values)
    return compared


def _nodes(engine, tables):
    """(class, constructor, number of positives, operands, attributes) of every e-node."""
    convert = engine.values
    nodes = []
    for name, table in tables.items():
        if name == "N" or table.output_sort != "T" or not name[0].isupper():
            continue
        for row in table.rows:
            operands, attributes, positives = [], [], None
            for sort, value in zip(table.input_sorts, row.inputs, strict=True):
                if sort == "T":
                    operands.append(hash(value))
                elif sort == "MS":
                    elements = [hash(element) for element in convert.value_to_multiset(value)]
                    positives = len(elements) if positives is None else positives
                    operands += elements
                else:
                    attributes.append(
                        (convert.value_to_i64 if sort == "i64" else convert.value_to_f64)(value)
                    )
            nodes.append((hash(row.output), name, positives, tuple(operands), tuple(attributes)))
    return nodes


def _evaluate(node, values, arrays):
    _, name, positives, numbers, attributes = node
    operands = [values[number] for number in numbers]
    if name == "In":
        result = arrays[attributes[0]]
    elif name == "K":
        result = np.asarray(attributes[0]).astype(DTYPES[attributes[1]])
        assert float(result.real) == attributes[0], f"{attributes[0]} is no {result.dtype}"
    elif name in ("NarySum", "NaryProd"):
        result = _nary(name, operands[:positives], operands[positives:])
    elif name == "Fill":
        shape = np.broadcast_shapes(operands[0].shape, operands[1].shape)
        result = np.broadcast_to(operands[1], shape)
    else:
        functions = {
            "Add": np.add,
            "Sub": np.subtract,
            "Mul": np.multiply,
            "Div": np.divide,
            "Neg": np.negative,
            "Sqr": np.square,
            "Maximum": np.maximum,
            "Minimum": np.minimum,
            "Exp": np.exp,
            "Log": np.log,
            "Tanh": np.tanh,
            "Lt": np.less,
            "Switch": np.where,
            "Abs": np.abs,
        }
        result = functions[name](*operands)
    result = np.asarray(result)
    return result.reshape(()) if result.size == 1 else result


def _nary(name, above, below):
    combine, undo = (np.add, np.subtract) if name == "NarySum" else (np.multiply, np.divide)
    dtype = (above or below)[0].dtype
    result = np.asarray(0 if name == "NarySum" else 1, dtype)
    for operand in above:
        result = combine(result, operand)
    for operand in below:
        result = undo(result, operand)
    return result


def _compare(name, value, known, tolerance, node):
    assert value.dtype == known.dtype, (name, value.dtype, known.dtype, node)
    assert value.shape == known.shape, (name, value.shape, known.shape, node)
    if value.dtype.kind in "biu":
        assert np.array_equal(value, known), (name, value, known, node)
        return
    large = 1e60 if value.dtype.itemsize >= 8 else 1e10
    judged = np.isfinite(value) & np.isfinite(known) & (np.abs(value) < large) & (np.abs(known) < large)
    # Cancellation leaves rounding errors of the size of the cancelled terms, hence the absolute part.
    close = np.isclose(value, known, rtol=tolerance, atol=tolerance * 1e3, equal_nan=True)
    assert np.all(close | ~judged), (name, value, known, node)


def _check_facts(engine, tables, values):
    convert = engine.values
    for fact in ("dt", "bp", "val"):
        for row in tables[fact].rows if fact in tables else ():
            value = values.get(hash(row.inputs[0]))
            if value is None:
                continue
            if fact == "dt":
                assert DTYPES[convert.value_to_i64(row.output)] == value.dtype.name
            elif fact == "bp":
                word = convert.value_to_i64(row.output)
                expected = SCALAR if value.size == 1 else broadcast_word([size == 1 for size in value.shape])
                assert word == expected, (word, value.shape)
            elif np.all(np.isfinite(value)):
                assert np.allclose(value, convert.value_to_f64(row.output), atol=1e-6)
