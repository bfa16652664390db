"""The one explicit table of these local optimizers: where each is registered, and with which tags."""

from __future__ import annotations

from esat.base.records import record
from esat.classic.optimizers.local import FromFunctionLocalOptimizer
from esat.classic.rewriting import (
    allocs,
    blocks,
    checks,
    decompositions,
    diagonals,
    fills,
    inverses,
    joins,
    kronecker,
    labels,
    logarithms,
    reshapes,
    useless,
)
from esat.classic.rewriting.indices import (
    gathers,
    increments,
    masked,
    subtensor_lift,
    subtensor_merge,
    writes,
)


@record(frozen=True, slots=True)
class Local:
    """A local optimizer and its registration.

    Attributes
    ----------
    optimizer
        Registered under its name.
    equilibrium
        Name of the database of ``optdb`` it belongs to.
    tags
        Beside that database's.
    """

    optimizer: FromFunctionLocalOptimizer
    equilibrium: str = "canonicalize"
    tags: tuple[str, ...] = ("fast_run",)


_EXACT = ("fast_run", "exact")

LOCALS: tuple[Local, ...] = (
    Local(subtensor_lift.local_subtensor_lift, tags=_EXACT),
    Local(subtensor_lift.local_subtensor_of_reduction),
    Local(subtensor_lift.local_reduction_of_reversed),
    Local(subtensor_lift.local_subtensor_of_dot),
    Local(subtensor_lift.local_subtensor_of_alloc, tags=_EXACT),
    Local(subtensor_lift.local_subtensor_of_join, tags=_EXACT),
    Local(subtensor_lift.local_subtensor_make_vector, tags=_EXACT),
    Local(subtensor_merge.local_useless_subtensor, tags=_EXACT),
    Local(subtensor_merge.local_subtensor_merge, tags=_EXACT),
    Local(writes.local_inc_subtensor_serialize),
    Local(writes.local_subtensor_inc_subtensor, tags=_EXACT),
    Local(writes.local_write_to_whole, tags=_EXACT),
    Local(writes.local_useless_inc_subtensor),
    Local(writes.local_set_to_inc_subtensor, tags=_EXACT),
    Local(writes.local_setsubtensor_of_setsubtensor),
    Local(writes.local_writes_to_join, tags=_EXACT),
    Local(fills.local_fill_shape, tags=_EXACT),
    Local(fills.local_useless_alloc, tags=_EXACT),
    Local(fills.local_elemwise_alloc, tags=_EXACT),
    Local(fills.local_elemwise_fill, tags=_EXACT),
    Local(fills.local_reduce_of_filled),
    Local(fills.local_0_dot_x),
    Local(joins.local_join_of_one, tags=_EXACT),
    Local(joins.local_join_of_joins, tags=_EXACT),
    Local(joins.local_join_make_vector, tags=_EXACT),
    Local(joins.local_reduce_join),
    Local(reshapes.local_reshape_dimshuffle, tags=_EXACT),
    Local(reshapes.local_useless_reshape, tags=_EXACT),
    Local(reshapes.local_reshape_to_dimshuffle, tags=_EXACT),
    Local(reshapes.local_reshape_lift, tags=_EXACT),
    Local(reshapes.local_shape_of_reshape, tags=_EXACT),
    Local(labels.local_log_of_chosen, "stabilize"),
    Local(logarithms.local_log_through_views, "stabilize"),
    Local(logarithms.local_log_of_join, "stabilize"),
    Local(labels.local_advanced_subtensor_lift, tags=_EXACT),
    Local(labels.local_sum_of_increments),
    Local(increments.local_subtract_increments),
    Local(increments.local_increments_times),
    Local(increments.local_sum_of_labeled),
    Local(checks.local_remove_useless_assert, tags=_EXACT),
    Local(checks.local_remove_all_assert, tags=("unsafe",)),
    Local(inverses.local_inverse_to_solve),
    Local(diagonals.local_diagonal_lift, tags=_EXACT),
    Local(diagonals.local_diagonal_of_dot),
    Local(diagonals.local_adv_idx_to_diagonal, tags=_EXACT),
    Local(diagonals.local_diagonal_increment),
    Local(decompositions.local_factor_of_triangular),
    Local(decompositions.local_part_of_decomposition),
    Local(decompositions.local_spectrum_of_diagonal),
    Local(decompositions.local_cholesky_pullback, "specialize", tags=_EXACT),
    Local(decompositions.local_linalg_of_number),
    Local(decompositions.local_linalg_of_stretched),
    Local(kronecker.local_kron_dot),
    Local(kronecker.local_solve_kron, "specialize"),
    Local(kronecker.local_linalg_of_kron, "specialize"),
    Local(kronecker.local_kron_of_diagonal),
    Local(blocks.local_fuse_block_diag, tags=_EXACT),
    Local(blocks.local_block_diag_dot),
    Local(blocks.local_solve_block_diag),
    Local(blocks.local_linalg_of_block_diag),
    Local(allocs.local_dimshuffle_alloc, tags=_EXACT),
    Local(allocs.local_merge_alloc, tags=_EXACT),
    Local(allocs.local_join_of_alloc, tags=_EXACT),
    Local(allocs.local_useless_inc_subtensor_alloc, tags=_EXACT),
    Local(gathers.local_adv_idx_to_slice, tags=_EXACT),
    Local(gathers.local_subtensor_of_adv_subtensor, tags=_EXACT),
    Local(gathers.local_advanced_subtensor_of_dot),
    Local(gathers.local_selection_dot),
    Local(gathers.local_sum_of_selection),
    Local(gathers.local_advanced_read_of_write_constant_indices, tags=_EXACT),
    Local(gathers.local_join_subtensors, tags=_EXACT),
    Local(masked.local_write_by_mask, tags=_EXACT),
    Local(masked.local_reduce_by_mask),
    Local(masked.local_count_by_mask, tags=_EXACT),
    Local(useless.local_ifelse_simplify, tags=_EXACT),
    Local(useless.local_useless_split, tags=_EXACT),
    Local(useless.local_sort_under_reduce),
    Local(useless.local_sum_make_vector),
    Local(useless.local_useless_dimshuffle_makevector, tags=_EXACT),
    Local(useless.local_useless_specify_shape, tags=_EXACT),
    Local(useless.local_merge_consecutive_specify_shape, tags=_EXACT),
    Local(useless.local_dense_from_sparse_sparse_from_dense),
)
"""All of them, in the order they are asked."""

LIFTS = (
    subtensor_lift.local_subtensor_lift,
    subtensor_lift.local_subtensor_of_reduction,
    subtensor_lift.local_subtensor_of_dot,
    subtensor_merge.local_subtensor_merge,
    diagonals.local_diagonal_lift,
    diagonals.local_diagonal_of_dot,
)
"""Those that compute parts of results from parts of operands."""
