"""Random programs of views and copies that are written to, run by NumPy and traced.

``python -m tests.functions.random_writes 3000`` runs that many, and prints those that differ.
"""

import itertools
import random
import sys
import warnings

import numpy as np

import esat
from esat.frontend.tracing.trace import ValueAsked
from esat.frontend.tracing.trees import flatten
from esat.functions.traced_calls import trace_call
from esat.functions.traced_programs import Settings
from esat.graph.algorithms.traversal import ancestors

MADE = (
    "v{n} = v{a}[1:]", "v{n} = v{a}[..., ::-1]", "v{n} = v{a}.T", "v{n} = v{a}.reshape(-1)",
    "v{n} = v{a}.ravel()", "v{n} = v{a}[0]", "v{n} = v{a}.copy()", "v{n} = v{a} + 1", "v{n} = np.flip(v{a})",
    "v{n} = v{a}[None]", "v{n} = np.squeeze(v{a})", "v{n} = v{a}[:, 0]", "v{n} = np.moveaxis(v{a}, 0, -1)",
    "v{n} = v{a}[[0, -1]]", "v{n} = np.split(v{a}, [1])[1]", "v{n} = np.asarray(v{a})",
    "v{n} = np.array(v{a})", "v{n} = v{a}.sum(axis=0)", "v{n} = np.zeros((2, 3)) + v{a}.sum()",
    "v{n} = np.diagonal(v{a})", "v{n} = np.atleast_2d(v{a})", "v{n} = v{a}.swapaxes(0, -1)",
    "v{n} = v{a}[..., 0]", "v{n} = v{a}.astype(np.float32)", "v{n} = np.rot90(v{a})",
    "v{n} = v{a}[v{a} > 0].sum()", "v{n} = np.zeros((40, 40)); v{n}[3, 1:5] = v{a}.sum()",
    "v{n} = np.empty(4); v{n}[1:] = v{a}.sum(); v{n}[0] = v{a}.max()", "v{n} = np.einsum('ij->ji', v{a})",
    "v{n} = np.einsum('ii->i', v{a}[:, :3])", "v{n} = np.einsum('i...->...', v{a})",
    "v{n} = np.einsum('...->...', v{a})", "v{n} = np.ascontiguousarray(v{a})",
    "v{n} = np.asfortranarray(v{a})", "v{n} = np.zeros_like(v{a}) + v{a}", "v{n} = np.zeros_like(v{a})",
    "v{n} = np.full_like(v{a}, 2, order='C')", "v{n} = np.array(v{a}, order='F')",
    "v{n} = np.array(v{a}, copy=None)", "v{n} = np.array(v{a}, ndmin=3)",
    "v{n} = np.asarray(v{a}, order='C')", "v{n} = np.array(v{a}, copy=None, order='F')",
    "v{n} = np.copy(v{a})", "v{n} = v{a}.copy(order='F')", "v{n} = v{a}.copy(order='K')",
    "v{n} = v{a}.reshape(4, 3)", "v{n} = v{a}.reshape(2, -1)", "v{n} = v{a}.T.reshape(-1)",
    "v{n} = np.ravel(v{a}.T)", "v{n} = v{a}.reshape(-1, 2)", "v{n} = v{a}[:, ::2]", "v{n} = v{a}[::2]",
    "v{n} = v{a}[:, [0, 1]]", "v{n} = np.sqrt(v{a} ** 2)", "v{n} = v{a}.T @ v{a}",
    "v{n} = np.where(v{a} > 0, v{a}, -1)", "v{n} = np.concatenate([v{a}, v{a}])",
    "v{n} = np.stack([v{a}, v{a}])", "v{n} = np.sort(v{a}, axis=0)", "v{n} = v{a}.cumsum(axis=0)",
    "v{n} = np.stack([v{a}, v{a}], axis=-1)", "v{n} = np.roll(v{a}, 1, axis=0)",
    "v{n} = np.broadcast_to(v{a}, (2, *v{a}.shape))", "v{n} = np.clip(v{a}, -1, 1)", "v{n} = np.diag(v{a})",
    "v{n} = np.atleast_3d(v{a})", "v{n} = np.expand_dims(v{a}, -1)", "v{n} = np.fliplr(v{a})",
    "v{n} = v{a}.real", "v{n} = v{a} + v{b}", "v{n} = np.add(v{a}, v{b}.T)",
    "v{n} = np.atleast_1d(v{a}, v{b})[1]", "v{n} = np.tril(v{a})",
    "v{n} = np.zeros((4, 3), order='F'); v{n}[0] = v{a}.sum()", "v{n} = v{a}.flatten()",
    "v{n} = np.repeat(v{a}, 2, axis=0)", "v{n} = np.transpose(v{a}, (1, 0)) * 2",
    "v{n} = np.take(v{a}, [0, 1], axis=-1)", "v{n} = v{a}.mean(axis=-1)",
    "v{n} = np.maximum.accumulate(v{a}, axis=-1)",
)  # fmt: skip
WRITES = (
    "v{a} += 2", "v{a} *= 0.5", "v{a}[0] = 7", "v{a}[...] = 3", "v{a}[1:] -= v{a}[:-1]",
    "v{a}[v{a} > 2] = 1", "v{a}[v{a} < 0] += 10", "v{a}.flat[2] = 5", "v{a}[-1] += v{a}[0]",
    "np.negative(v{a}, out=v{a})", "v{a}.sort()", "v{a}[[0, 0]] += 1", "np.add.at(v{a}, [0, 0], 1)",
    "np.fill_diagonal(v{a}, 9)", "v{a}.fill(4)", "np.copyto(v{a}, 1.5, where=v{a} > 1)", "v{a}.T[0] = -1",
    "v{a}.reshape(-1)[1] = 8", "v{a}[v{a} > 1] *= v{a}[v{a} > 1]", "np.put(v{a}, [1, 2], [5.0, 6.0])",
    "v{a}.ravel()[2] = -6", "np.einsum('ij->ji', v{a})[0] = 11", "v{a}.T.reshape(-1)[-1] = 12",
    "np.ascontiguousarray(v{a})[0] = -13", "v{a}.T.ravel()[0] = 14", "v{a}[..., 0] = 15", "v{a}[:, 1] -= 1",
    "np.asfortranarray(v{a}.T)[0] = 16", "v{a}[...] = v{b}", "v{a} += v{b}",
)  # fmt: skip


def _matrix():
    return np.zeros((3, 4)), np.zeros(4)


LAYOUTS = {
    "C": _matrix,
    "F": lambda: (np.zeros((3, 4), order="F"), np.zeros(4)),
    "transposed": lambda: (np.zeros((4, 3)).T, np.zeros(4)),
    "strided": lambda: (np.zeros((3, 8))[:, ::2], np.zeros(8)[::2]),
    "rows": lambda: (np.zeros((6, 4))[::2], np.zeros(4)),
    "reversed": lambda: (np.zeros((3, 4))[::-1], np.zeros(4)[::-1]),
    "turned": lambda: (np.zeros((3, 4))[:, ::-1], np.zeros(12)[::-3]),
    "column": lambda: (np.zeros((3, 4, 2))[..., 0], np.zeros((4, 2))[:, 1]),
    "read-only": lambda: (_read_only(np.zeros((3, 4))), np.zeros(4)),
    "broadcast": lambda: (np.broadcast_to(np.arange(4.0), (3, 4)), np.zeros(4)),
    "one": lambda: (np.zeros((1, 4)), np.zeros(1)),
    "empty": lambda: (np.zeros((0, 4)), np.zeros(0)),
}


def _read_only(array):
    array.flags.writeable = False
    return array


def _overlapping(make):
    return lambda: make(np.zeros(24))


OVERLAPPING = {
    "last row": _overlapping(lambda base: (base[:12].reshape(3, 4), base[8:12])),
    "shifted": _overlapping(lambda base: (base[:12].reshape(3, 4), base[10:14])),
    "both matrices": _overlapping(lambda base: (base[:12].reshape(3, 4), base[4:16].reshape(3, 4))),
    "apart within": _overlapping(lambda base: (base.reshape(3, 8)[:, ::2], base[1:9:2])),
    "reversed": _overlapping(lambda base: (base[:12].reshape(3, 4), base[3::-1])),
    "column": _overlapping(lambda base: (base[:12].reshape(3, 4), base[:16].reshape(4, 4).T[0])),
}
"""Of arguments that share some of their memory, or seem to."""


def layout_of(seed, layouts=LAYOUTS):
    return sorted(layouts)[seed % len(layouts)]


def program(seed, layouts=LAYOUTS):
    """The source of a function of a matrix and a vector that returns all arrays it has made.

    Three programs of four have only statements that NumPy takes.
    """
    source, count, lines = random.Random(seed), 2, []
    values = {"np": np, **dict(zip(("v0", "v1"), arguments_of(seed, layouts), strict=True))}
    for _ in range(source.randint(2, 9)):
        statement = source.choice(source.choice((MADE, MADE, WRITES)))
        chosen = source.randrange(count)
        line = statement.format(a=chosen, b=source.randrange(count), n=count)
        target = values.get(f"v{chosen}")
        # NumPy writes to what is read-only, by these two.
        if ("add.at" in line or ".fill" in line) and not _is_writeable(target):
            continue
        # NumPy's own result is undefined where a diagonal has fewer rows than columns.
        if "ii->i" in line and layout_of(seed, layouts) == "empty":
            continue
        if isinstance(outcome(exec, line, values), Exception) and seed % 4:
            continue
        lines.append("    " + line)
        count += "{n}" in statement
    names = ", ".join(f"v{place}" for place in range(count))
    return "def f(v0, v1):\n" + "\n".join([*lines, f"    return {names},\n"])


def _is_writeable(value):
    return isinstance(value, np.ndarray) and value.flags.writeable


def function_of(source):
    namespace = {"np": np}
    exec(source, namespace)
    return namespace["f"]


def arguments_of(seed, layouts=LAYOUTS):
    """Two arrays of a layout that the seed chooses, with numbers in them."""
    values, arrays = np.random.default_rng(seed), layouts[layout_of(seed, layouts)]()
    for array in arrays:
        if array.flags.writeable:
            array[...] = np.round(3 * values.normal(size=array.shape), 2)
    return list(arrays)


def outcome(function, *arguments):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*arguments)
    except Exception as error:
        return error


def traced(function, arguments):
    """Results of the traced function, computed without compilation; it writes to the arguments."""
    leaves = []
    structure = flatten((tuple(arguments), {}), leaves)
    known = frozenset()
    while True:
        try:
            trace = trace_call(function, structure, leaves, known, Settings("fast_compile", False, "f"))
            break
        except ValueAsked as asked:
            known |= asked.leaves
    given = dict(zip(trace.inputs.values(), map(np.copy, arguments), strict=True))
    outputs = []
    for output in trace.outputs:
        used = {*ancestors([output])}
        outputs.append(esat.evaluate(output, {v: value for v, value in given.items() if v in used}))
    for place, output in trace.written:
        arguments[place][...] = outputs[output]
    return [_value(one, outputs, arguments) for one in trace.results]


def _value(result, outputs, arguments):
    """A leaf of what a traced function returns."""
    if result.kind == "known":
        return result.value
    value = (arguments if result.kind == "argument" else outputs)[result.place]
    return value[()] if result.kind == "scalar" else value.item() if result.kind == "number" else value


def differences(seed, call=traced, layouts=LAYOUTS):
    """What is not as in NumPy for a program, and whether both refuse it."""
    source = program(seed, layouts)
    function = function_of(source)
    theirs, ours = arguments_of(seed, layouts), arguments_of(seed, layouts)
    expected, found = outcome(function, *theirs), outcome(call, function, ours)
    if isinstance(expected, Exception) or isinstance(found, Exception):
        both = isinstance(expected, Exception) and isinstance(found, Exception)
        return ([] if both else [f"{expected!r} and {found!r}"]), True
    wrong = []
    for name, one, other in zip(itertools.count(), [*found, *ours], [*expected, *theirs]):
        same = type(one) is type(other) and one.dtype == other.dtype and np.shape(one) == np.shape(other)
        if not same or not np.allclose(one, other, rtol=1e-5, atol=1e-6, equal_nan=True):
            wrong.append(f"{name}: {one!r}, not {other!r}")
    return wrong, False


def compiled(function, arguments):
    """Results of the jitted function."""
    return esat.jit(function, mode="fast_compile")(*arguments)


def main(count, begin=0):
    refused = failed = 0
    for seed in range(begin, begin + count):
        wrong, refuses = differences(seed, compiled if seed % 20 == 0 else traced)
        refused += refuses
        if wrong:
            failed += 1
            print(f"seed {seed}, {layout_of(seed)}\n{program(seed)}", *wrong, sep="\n")
    print(f"{count} programs, {refused} that NumPy refuses, {failed} differ")
    return failed


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
