"""The documents' table of optimizations: which of them each predefined mode has, and what does them here.

A mode has a row if its Query selects the row's tags; the members are named so that it selects them just
when it selects the row.
"""

from __future__ import annotations

from esat.base.records import record
from esat.rules.language.query import Query

_RUN = frozenset({"fast_run"})
_ALWAYS = frozenset({"fast_run", "fast_compile"})
_INPLACE = frozenset({"fast_run", "inplace"})
_UNSAFE = frozenset({"unsafe"})


@record(frozen=True, slots=True)
class Listed:
    """One optimization of the documents' table.

    Attributes
    ----------
    name
        As in the table.
    tags
        Tags of what belongs to it.
    members
        Names of entries of ``optdb``, of rules and of rule sets that do it.
    about
        What it does, in a few words.
    """

    name: str
    tags: frozenset[str]
    members: tuple[str, ...]
    about: str

    def selected(self, query: Query) -> bool:
        """Whether a mode with this query has it."""
        return query.selects(self.name, self.tags)

    def __str__(self) -> str:
        return f"{self.name}: {self.about}" + ("" if self.members else " (nothing is registered for it)")


ROWS: tuple[Listed, ...] = (
    Listed(
        "merge", _ALWAYS | {"merge"}, ("merge1", "MergeOptimizer", "merge2", "merge3"), "one of equal nodes"
    ),
    Listed("constant folding", _ALWAYS, ("constant_folding",), "constants computed when compiling"),
    Listed(
        "GPU transfer",
        _ALWAYS | {"gpu"},
        ("gpu_transfer",),
        "steps on the GPU, by Mode(device=...)",
    ),
    Listed("shape promotion", _RUN, ("local_shape_lift",), "sizes without the values"),
    Listed("fill cut", _RUN, ("fill", "local_elemwise_fill"), "fills inside elementwise ops"),
    Listed("inc_subtensor srlz.", _RUN, ("local_IncSubtensor_serialize",), "increments one after another"),
    Listed("reshape_chain", _RUN, ("local_reshape_chain", "reshape-reshape"), "one reshape for two"),
    Listed(
        "const. elimination", _RUN, ("pow-one", "pow-zero", "local_mul_canonizer"), "x ** 1, x * 1, x + 0"
    ),
    Listed("add canonical.", _RUN, ("local_add_canonizer",), "(a + b + ...) - (x + y + ...)"),
    Listed("mul canonical.", _RUN, ("local_mul_canonizer",), "(a * b * ...) / (x * y * ...)"),
    Listed("dot22", _RUN, ("contractions", "associations", "common-operands"), "matrix products by BLAS"),
    Listed("sparse_dot", _RUN, ("sparse-dot-left", "sparse-dot-right"), "products with sparse matrices"),
    Listed("sum_scalar_mul", _RUN, ("sum-of-scaled", "sum-of-scaled-along"), "sum(a * x) = a * sum(x)"),
    Listed("neg_neg", _RUN, ("neg-neg",), "-(-x) = x"),
    Listed("neg_div_neg", _RUN, ("neg-div-neg",), "(-x) / (-y) = x / y"),
    Listed("add specialize", _RUN, ("local_add_canonizer", "add-neg", "sub-neg"), "x + 0, x + (-y)"),
    Listed("mul specialize", _RUN, ("mul-self", "mul-minus-one", "local_mul_zero"), "x * x, x * 0, x * -1"),
    Listed("pow specialize", _RUN, ("pow-two", "pow-half", "pow-minus-half"), "x ** 2, x ** 0, x ** -0.5"),
    Listed(
        "inplace_setsubtensor", _INPLACE, ("inplace_setsubtensor",), "parts of arrays set where they stand"
    ),
    Listed(
        "gemm",
        _RUN,
        ("gemm", "matmul-scaled-left", "matmul-scaled-right"),
        "a * (x @ y) + b * z in one call of BLAS over z; without inplace_blas over a copy, for numbers a, b",
    ),
    Listed("inplace_elemwise", _INPLACE, ("inplace_elemwise",), "results in the storage of operands"),
    Listed("inplace_random", _INPLACE, ("inplace_random",), "random states updated where they stand"),
    Listed("elemwise fusion", _RUN | {"fusion"}, ("elemwise_fusion",), "one loop for many elementwise ops"),
    Listed("local_log_softmax", _RUN | {"stabilize"}, ("log-softmax",), "log(softmax(x)) without overflow"),
    Listed("local_remove_all_assert", _UNSAFE, ("local_remove_all_assert",), "no checks of valid input"),
)
"""The documents' table, in its order."""
