"""A few random programs of functions that NumPy has too; ``tests/helpers/random_programs.py`` runs many."""

import random

import pytest
from random_programs import INDEXING, check_program


@pytest.mark.parametrize("seed", range(14))
def test_random_programs_compute_what_numpy_computes(seed: int) -> None:
    """As written, alone and beside other outputs, sizes declared or not, arrays laid out in all ways."""
    check_program(seed, 3 + seed % 6, random.Random(seed), compiled=1)


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_with_index_arrays_compute_what_numpy_computes(seed: int) -> None:
    check_program(seed, 4 + seed % 4, random.Random(seed), compiled=1, pool=INDEXING)
