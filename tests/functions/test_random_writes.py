"""Random programs of views and assignments: a traced function leaves what NumPy leaves, in all arrays."""

import copy
import random

import numpy as np
import pytest

import esat
from esat.frontend.tracing.trees import flatten
from esat.functions.traced_programs import Settings, trace_call
from esat.graph.traversal import ancestors

STATEMENTS = (
    "v{n} = v{a}[1:]", "v{n} = v{a}[..., ::-1]", "v{n} = v{a}.T", "v{n} = v{a}.reshape(-1)",
    "v{n} = v{a}.ravel()", "v{n} = v{a}[0]", "v{n} = v{a}.copy()", "v{n} = v{a} + 1", "v{n} = np.flip(v{a})",
    "v{n} = v{a}[None]",
    "v{n} = np.squeeze(v{a})", "v{n} = v{a}[:, 0]", "v{n} = np.moveaxis(v{a}, 0, -1)", "v{n} = v{a}[[0, -1]]",
    "v{n} = np.split(v{a}, [1])[1]", "v{n} = np.asarray(v{a})", "v{n} = np.array(v{a})",
    "v{n} = v{a}.sum(axis=0)", "v{n} = np.zeros((2, 3)) + v{a}.sum()", "v{n} = np.diagonal(v{a})",
    "v{n} = np.atleast_2d(v{a})", "v{n} = v{a}.swapaxes(0, -1)", "v{n} = v{a}[..., 0]",
    "v{n} = v{a}.astype(np.float32)", "v{n} = np.rot90(v{a})",
    "v{a} += 2", "v{a} *= 0.5", "v{a}[0] = 7", "v{a}[...] = 3", "v{a}[1:] -= v{a}[:-1]", "v{a}[v{a} > 2] = 1",
    "v{a}[v{a} < 0] += 10", "v{a}.flat[2] = 5", "v{a}[-1] += v{a}[0]", "np.negative(v{a}, out=v{a})",
    "v{a}.sort()", "v{a}[[0, 0]] += 1", "np.add.at(v{a}, [0, 0], 1)", "np.fill_diagonal(v{a}, 9)",
    "v{a}.fill(4)", "np.copyto(v{a}, 1.5, where=v{a} > 1)", "v{a}.T[0] = -1", "v{a}.reshape(-1)[1] = 8",
    "v{a}[v{a} > 1] *= v{a}[v{a} > 1]", "v{n} = v{a}[v{a} > 0].sum()",
    "v{n} = np.zeros((40, 40)); v{n}[3, 1:5] = v{a}.sum()",
    "v{n} = np.empty(4); v{n}[1:] = v{a}.sum(); v{n}[0] = v{a}.max()",
    "np.put(v{a}, [1, 2], [5.0, 6.0])",
)  # fmt: skip


def program(seed):
    """A function of a matrix and a vector that returns all arrays it has made."""
    source, count, lines = random.Random(seed), 2, []
    for _ in range(source.randint(2, 7)):
        statement = source.choice(STATEMENTS)
        lines.append("    " + statement.format(a=source.randrange(count), n=count))
        count += "{n}" in statement
    names = ", ".join(f"v{place}" for place in range(count))
    namespace = {"np": np}
    exec("def f(v0, v1):\n" + "\n".join(lines) + f"\n    return {names},\n", namespace)
    return namespace["f"]


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return error


def traced(function, arguments):
    """Results of the traced function, computed without compilation, and its arguments after it."""
    leaves = []
    structure = flatten((tuple(arguments), {}), leaves)
    trace = trace_call(function, structure, leaves, frozenset(), Settings("fast_compile", False, "f"))
    given = dict(zip(trace.inputs.values(), arguments, strict=True))
    outputs = []
    for output in trace.outputs:
        used = {*ancestors([output])}
        outputs.append(esat.evaluate(output, {v: value for v, value in given.items() if v in used}))
    after = list(arguments)
    for place, output in trace.written:
        after[place] = outputs[output]
    return [result.of(outputs, after) for result in trace.results], after


@pytest.mark.parametrize("block", range(6))
def test_writes_are_numpys(block):
    ran = 0
    for seed in range(40 * block, 40 * (block + 1)):
        function, values = program(seed), np.random.default_rng(seed)
        arguments = [np.round(3 * values.normal(size=shape), 2) for shape in ((3, 4), (4,))]
        theirs = copy.deepcopy(arguments)
        expected, found = outcome(function, *theirs), outcome(traced, function, arguments)
        assert isinstance(found, Exception) is isinstance(expected, Exception), (seed, found, expected)
        if isinstance(expected, Exception):
            continue
        results, after = found
        for one, other in zip([*results, *after], [*expected, *theirs], strict=True):
            assert type(one) is type(other), seed
            assert one.dtype == other.dtype, seed
            np.testing.assert_allclose(one, other, err_msg=str(seed))
        ran += 1
    assert ran > 20
