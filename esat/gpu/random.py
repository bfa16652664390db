"""Uniform random numbers drawn on a device, to the last bit those that NumPy draws.

NumPy's PCG64 (O'Neill 2014) is a linear congruential generator of 128 bits: the state ``k`` steps on is
``a**k * state + c``, both from the binary digits of ``k`` (Brown 1994, "Random number generation with
arbitrary strides"). So every thread jumps to its own place in the stream, and goes on from there by the
number of all threads. The generator itself is advanced on the host, which takes no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from esat.base.records import record
from esat.gpu.device import Device, DeviceArray
from esat.gpu.kernel_text.kernels import executor_of
from esat.gpu.kernel_text.launches import Argument, Launch, Launches
from esat.graph.op import Op
from esat.ops.random.distributions import NumberVariable

_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_BLOCK = 256
_MOST_BLOCKS = 1024
_DRAWN = ("uniform", "bernoulli")

_STEP = """
{indent}p0 = (low & mask) * ({al} & mask)
{indent}p1 = (low >> half) * ({al} & mask)
{indent}p2 = (low & mask) * ({al} >> half)
{indent}p3 = (low >> half) * ({al} >> half)
{indent}middle = (p0 >> half) + (p1 & mask) + (p2 & mask)
{indent}product = (p0 & mask) | (middle << half)
{indent}over = p3 + (p1 >> half) + (p2 >> half) + (middle >> half)
{indent}high = over + high * {al} + low * {ah} + {ch}
{indent}low = product + {cl}
{indent}if low < product:
{indent}    high += uint64(1)
"""
"""``state = state * a + c`` of 128 bits, each in two words."""


def _step(depth: int, **words: str) -> str:
    return _STEP.format(indent="    " * depth, **words).strip("\n")


_TEXT = f"""
def kernel(o0, x0, x1, n0, n1, n2, n3, n4, n5, n6):
    mask = uint64(4294967295)
    half = uint64(32)
    i0 = int64(cuda.blockIdx.x) * {_BLOCK} + cuda.threadIdx.x
    high = uint64(n1)
    low = uint64(n2)
    steps = uint64(i0 + 1)
    bit = int64(0)
    while steps != uint64(0):
        if steps & uint64(1) != uint64(0):
{_step(3, ah="x0[bit * 4]", al="x0[bit * 4 + 1]", ch="x0[bit * 4 + 2]", cl="x0[bit * 4 + 3]")}
        steps = steps >> uint64(1)
        bit += 1
    while i0 < n0:
        word = high ^ low
        turn = high >> uint64(58)
        word = (word >> turn) | (word << ((uint64(64) - turn) & uint64(63)))
        number = float64(word >> uint64(11)) * float64({2.0**-53!r})
        o0[i0] = x1[0] + mul_rn(x1[1], number)
{_step(2, ah="uint64(n3)", al="uint64(n4)", ch="uint64(n5)", cl="uint64(n6)")}
        i0 += int64(cuda.gridDim.x) * {_BLOCK}
"""

_LAUNCH = Launch(
    "pcg64",
    _TEXT,
    (
        Argument("o0", "float64"),
        Argument("x0", "uint64"),
        Argument("x1", "float64"),
        *(Argument(f"n{place}") for place in range(7)),
    ),
    _BLOCK,
    f"min(-(-n0 // {_BLOCK}), {_MOST_BLOCKS})",
)
"""Outputs; powers of the multiplier; lower bound and range; how many, the state, a step of all threads."""


class Uniforms:
    """Draws on a device from NumPy's generators."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._executor = executor_of(device)
        self._powers: dict[int, DeviceArray] = {}
        self._bounds: dict[tuple[float, float], DeviceArray] = {}

    def draw(
        self, generator: np.random.Generator, shape: Sequence[int], low: float, wide: float
    ) -> DeviceArray:
        """``low + wide * generator.random(shape)``, bit by bit; the generator is advanced.

        Parameters
        ----------
        generator
            One whose bit generator is PCG64.
        """
        count = prod(shape)
        result = self._device.empty((count,), np.dtype(np.float64))
        if count:
            state = generator.bit_generator.state
            number, added = state["state"]["state"], state["state"]["inc"]
            threads = min(-(-count // _BLOCK), _MOST_BLOCKS) * _BLOCK
            sizes = {"n0": count}
            parts = (number, *_jump(threads, added))
            words = [word for part in parts for word in _words(part)]
            sizes.update((f"n{place}", _signed(word)) for place, word in enumerate(words, 1))
            start = self._executor.prepared(Launches((_LAUNCH,)), ("o0", "x0", "x1"), sizes)
            start((result, self._powers_of(added), self._bounds_of(low, wide)))
            advance(generator, count)
        return result.reshape(tuple(shape))

    def _powers_of(self, added: int) -> DeviceArray:
        known = self._powers.get(added)
        if known is None:
            words = [word for bit in range(64) for part in _jump(1 << bit, added) for word in _words(part)]
            known = self._powers[added] = self._device.upload(np.array(words, np.uint64))
        return known

    def _bounds_of(self, low: float, wide: float) -> DeviceArray:
        known = self._bounds.get((low, wide))
        if known is None:
            known = self._bounds[low, wide] = self._device.upload(np.array([low, wide], np.float64))
        return known


def _jump(steps: int, added: int) -> tuple[int, int]:
    """``a`` and ``c`` of so many steps at once."""
    factor, total = 1, 0
    one, own = _MULTIPLIER, added
    while steps:
        if steps & 1:
            factor, total = factor * one % 2**128, (total * one + own) % 2**128
        one, own = one * one % 2**128, own * (one + 1) % 2**128
        steps >>= 1
    return factor, total


def _words(number: int) -> tuple[int, int]:
    return number >> 64, number & (2**64 - 1)


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


def advance(generator: np.random.Generator, count: int) -> None:
    """Go on by so many numbers of 64 bits; what is left of an earlier one for numbers of 32 bits stays."""
    bits: Any = generator.bit_generator
    before = bits.state
    bits.advance(count)
    bits.state = {**bits.state, "has_uint32": before["has_uint32"], "uinteger": before["uinteger"]}


@record(frozen=True, eq=False)
class Draw:
    """A sample that is drawn where it is read first; the state of its generator has gone on already.

    Attributes
    ----------
    generator
        As it was before.
    shape
        Of the sample.
    low, wide
        Each number is ``low + wide * u`` for ``u`` from [0, 1).
    below
        For a bool sample, whether ``u`` is below it; None for the numbers themselves.
    """

    generator: np.random.Generator
    shape: tuple[int, ...]
    low: float = 0.0
    wide: float = 1.0
    below: float | None = None

    def on_device(self, uniforms: Uniforms) -> DeviceArray:
        """The sample on the device."""
        numbers = uniforms.draw(self.generator, self.shape, self.low, self.wide)
        return numbers if self.below is None else numbers < self.below


def draw_of(op: Op, operands: Sequence[Any]) -> tuple[Any, Draw] | None:
    """The state after a draw and the sample to be drawn; None where NumPy must draw it on the host.

    That is so for other distributions, for parameters that are no numbers, and for other bit generators.
    """
    if not isinstance(op, NumberVariable) or op.name not in _DRAWN:
        return None
    state, parameters, sizes = op.split(operands)
    if type(state.bit_generator) is not np.random.PCG64 or any(array.size != 1 for array in parameters):
        return None
    if op.size_rank is None:
        shape = np.broadcast_shapes(*(array.shape for array in parameters))
    else:
        shape = tuple(int(size) for size in sizes)
    numbers = [float(array.reshape(())) for array in parameters]
    before = state.copy()
    if op.name == "bernoulli":
        if not 0 <= numbers[0] <= 1:
            return None  # NumPy says what is wrong
        draw = Draw(before, shape, below=numbers[0])
    else:
        low, wide = numbers[0], numbers[1] - numbers[0]
        if not np.isfinite(wide) or wide < 0 or min(shape, default=0) < 0:
            return None
        draw = Draw(before, shape, low, wide)
    after = state if op.in_place else state.copy()
    advance(after, prod(shape))
    return after, draw
