"""Machine code that is called with the addresses of arrays."""

import sys

import numpy as np
import pytest

from esat.codegen.ground.array_call import MOST_LOCKED, array_call
from esat.codegen.ground.machine_text import compiled

ORDER = (0, 1, None, None)
ADD = """
define i32 @run(ptr %value, ptr %output, i64 %count, i64 %step) {
entry:
  %x = load double, ptr %value
  %nothing = fcmp oeq double %x, 0.0
  br i1 %nothing, label %refuse, label %one
one:
  %i = phi i64 [ 0, %entry ], [ %next, %one ]
  %offset = mul i64 %i, %step
  %place = getelementptr i8, ptr %output, i64 %offset
  %old = load double, ptr %place
  %new = fadd double %old, %x
  store double %new, ptr %place
  %next = add i64 %i, 1
  %ends = icmp eq i64 %next, %count
  br i1 %ends, label %done, label %one
done:
  ret i32 0
refuse:
  ret i32 1
}
"""
"""Adds a value to every so many bytes; refuses a value of 0."""


@pytest.mark.parametrize("count", [1, 3, MOST_LOCKED, 50 * MOST_LOCKED])
def test_every_start_is_called_until_one_refuses(count):
    values, output = np.array([2.0, 3.0, 0.0, 5.0]), np.zeros((4, 2 * count))
    starts = [(8 * row, output.strides[0] * row) for row in range(4)]
    wanted = np.zeros_like(output)
    wanted[:2, ::2] = values[:2, None]
    assert array_call(compiled(ADD), ORDER, (count, 16), starts, count, True)(values, output) is False
    np.testing.assert_array_equal(output, wanted)
    assert array_call(compiled(ADD), ORDER, (count, 16), starts[:2], count, True)(values, output) is True
    np.testing.assert_array_equal(output, 2 * wanted)


def test_nothing_is_referred_to_after_calls():
    values, output = np.ones(1), np.zeros(3)
    call = array_call(compiled(ADD), ORDER, (3, 8), [(0, 0)])
    before = [sys.getrefcount(one) for one in (values, output, call)]
    for _ in range(1000):
        call(values, output)
    assert [sys.getrefcount(one) for one in (values, output, call)] == before
    np.testing.assert_array_equal(output, np.full(3, 1000.0))
