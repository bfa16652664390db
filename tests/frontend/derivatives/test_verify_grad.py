import numpy as np
import pytest

import esat
from esat.errors import GradientError

POINT = np.random.default_rng(9).uniform(0.5, 2, (2, 3))


def test_right_gradients_pass():
    esat.verify_grad(lambda x, y: esat.exp(x) * y, [POINT, POINT[0]])
    esat.verify_grad(lambda x: esat.exp(x), [POINT.astype("float32")])  # noqa: PLW0108
    esat.verify_grad(lambda x: x * x, [POINT + 1j * POINT[::-1]])
    esat.verify_grad(lambda x: x.sum(), [np.zeros((0, 2))])


def test_wrong_gradients_fail():
    wrong = esat.elementwise(
        "wrong_for_this_test", np.sin, gradient=lambda inputs, output, cotangent: [cotangent * output]
    )
    with pytest.raises(GradientError, match=r"input 0 at \(0, 0\)"):
        esat.verify_grad(wrong, [POINT])
    with pytest.raises(GradientError, match="difference quotient"):
        esat.verify_grad(lambda x, y: x + 0 * wrong(y) + wrong(y), [POINT, POINT])
