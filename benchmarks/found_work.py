"""How much work a program is: one measure for graphs of any library, by the names and shapes of their nodes.

A unit is one arithmetic operation. A node that computes counts as many besides as are done in the time that
it takes to start, and a part of an array some, too; other views, constants and sizes count nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

Shape = Sequence[int]

STEP, PART = 100.0, 50.0
"""Operations in the time that it takes to start a node, and to find a part of an array."""

VIEWS = frozenset(
    {
        *("dimshuffle", "expanddims", "shape", "shape_i", "subtensor", "reshape", "view", "transpose"),
        *("squeeze", "splitdims", "joindims", "cast", "scalarfromtensor", "tensorfromscalar", "makevector"),
        *("make_vector", "shape_vector", "assume", "specify_shape", "specifyshape", "specifyassumptions"),
        *("assert", "checkandraise", "deepcopyop", "broadcastto", "unbroadcast", "identity", "extractdiag"),
        *("diagonal", "second", "fill", "alloc", "allocempty", "arange"),
    }
)
"""What computes nothing of its own: fills are broadcast where they are read."""

DEAR = frozenset(
    {
        *("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "tanh", "sinh", "cosh", "sin"),
        *(
            "cos",
            "tan",
            "arcsinh",
            "arccosh",
            "arctanh",
            "arcsin",
            "arccos",
            "arctan",
            "erf",
            "erfc",
            "erfcx",
        ),
        *("sigmoid", "softplus", "log1mexp", "pow", "log_sigmoid", "logaddexp", "hypot"),
        *("softmax", "log_softmax"),
    }
)
"""Functions; they count eight operations an element, powers too."""

READING = frozenset(
    {
        *("sum", "prod", "max", "min", "maximum", "minimum"),
        *("mean", "all", "any", "argmax", "argmin", "careduce"),
    }
)
"""What reads more than it writes: an operation for each element read."""

CUBIC: Mapping[str, float] = {
    **dict.fromkeys(("inverse", "matrixinverse", "matrixpinv", "inv"), 2.0),
    **dict.fromkeys(
        ("det", "slogdet", "logdet", "log_abs_det", "solve", "lu", "lufactor", "det_sign"), 2 / 3
    ),
    **dict.fromkeys(("cholesky",), 1 / 3),
}
"""Operations of what factors a matrix, by the cube of its size."""


def work(name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> float:
    """Operations of a node.

    Parameters
    ----------
    name
        What its op is called, in lower case.
    inputs, outputs
        Shapes of its operands and results; those of no arrays are left out.
    """
    if name in VIEWS:
        return PART if name == "subtensor" else 0.0
    return STEP + _arithmetic(name, inputs, outputs)


def _arithmetic(name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> float:
    written = sum(prod(shape) for shape in outputs)
    if name in CUBIC:
        own = CUBIC[name] * float(inputs[0][-1]) ** 3
        return own + sum(2.0 * prod(shape) * inputs[0][-1] for shape in inputs[1:])
    if name in PRODUCTS:
        return PRODUCTS[name](inputs, outputs)
    if name in DEAR:
        return 8.0 * written
    return float(max([written, *(prod(shape) for shape in inputs if name in READING)]))


def _multiplied(left: Shape, right: Shape, written: Shape) -> float:
    """Twice as many operations as there are pairs to be multiplied."""
    return 2.0 * prod(written) * left[-1]


PRODUCTS: Mapping[str, Callable[[Sequence[Shape], Sequence[Shape]], float]] = {
    **dict.fromkeys(
        ("dot", "matmul", "dot22", "matvec", "vecmat", "vecdot", "batcheddot"),
        lambda inputs, outputs: _multiplied(inputs[0], inputs[1], outputs[0]),
    ),
    **dict.fromkeys(
        ("gemm", "gemv", "accumulate_product"),
        lambda inputs, outputs: _multiplied(inputs[2], inputs[3], outputs[0]),
    ),
}
