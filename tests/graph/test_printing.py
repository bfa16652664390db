import io

import esat
from esat.graph import FunctionGraph
from esat.graph.algorithms.printing import expression_text


def test_expressions_as_in_the_documents():
    x, y, z = esat.scalar("x"), esat.scalar("y"), esat.scalar("z")
    add, mul, div = esat.add, esat.mul, esat.div
    a = add(z, mul(div(mul(y, x), y), div(z, x)))
    assert repr(FunctionGraph([x, y, z], [a])) == "[add(z, mul(div(mul(y, x), y), div(z, x)))]"


def test_shared_nodes_are_marked_once():
    x, y, z = esat.scalar("x"), esat.scalar("y"), esat.scalar("z")
    common = y + z
    assert expression_text([common * x / common]) == "[div(mul(*1 -> add(y, z), x), *1)]"
    two = esat.exp(common)
    assert expression_text([two * two, common]) == "[mul(*1 -> exp(*2 -> add(y, z)), *1), *2]"
    assert expression_text([common, common]) == "[*1 -> add(y, z), *1]"


def test_several_outputs():
    x = esat.vector("x")
    parts = esat.split(x, 2)
    assert expression_text([parts[1] + parts[0]]) == "[add(*1 -> split{0, 2}(x).1, *1.0)]"


def test_debugprint():
    x, y = esat.matrix("x"), esat.vector("y", shape=(3,))
    common = x + y
    text = esat.dprint(esat.exp(common) * common, file="str")
    assert text.splitlines() == [
        "mul <matrix(float64, shape=(?, 3))>",
        " ├─ exp <matrix(float64, shape=(?, 3))>",
        " │   └─ *1 -> add <matrix(float64, shape=(?, 3))>",
        " │       ├─ x <matrix(float64)>",
        " │       └─ dimshuffle{x,0} v={0: (0,)} <matrix(float64, shape=(1, 3))>",
        " │           └─ y <vector(float64, shape=(3,))>",
        " └─ *1",
    ]


def test_debugprint_takes_graphs_lists_and_files():
    x = esat.scalar("x")
    out = esat.exp(x)
    out.name = "out"
    stream = io.StringIO()
    assert esat.dprint([out, x], file=stream, types=False) is None
    assert stream.getvalue() == "exp 'out'\n └─ x\nx\n"
    graph = FunctionGraph([x], [esat.exp(x) + esat.exp(x)])
    text = esat.dprint(graph, clients=True, types=False, file="str")
    assert text.startswith("add clients:1\n ├─ exp clients:1")
