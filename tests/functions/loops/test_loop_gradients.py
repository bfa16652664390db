"""Derivatives of random programs with loops; the script ``loop_gradients`` tries any number of them."""

import numpy as np
import pytest

from .loop_gradients import BOUNDS, CURVED_BOUND, curvature_errors, errors, gradient_text


@pytest.mark.parametrize("seed", range(4))
def test_values_gradients_tangents_and_batches(seed, tmp_path):
    generator = np.random.default_rng(seed)
    text = gradient_text(generator)
    found = errors(text, tmp_path, f"gradient_{seed}", generator)
    assert np.all(found < BOUNDS), text


@pytest.mark.parametrize("seed", range(4, 7))
def test_second_derivatives(seed, tmp_path):
    generator = np.random.default_rng(seed)
    text = gradient_text(generator)
    found = curvature_errors(text, tmp_path, f"curved_{seed}", generator)
    assert np.all(found < CURVED_BOUND), text
