"""Functions of the subset, for the tests of its translation."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from esat.base.native import Arrays, Floats, Integers, Primitive

LIMIT = 3
FIRST_BIT = 1 << 40


@dataclass(frozen=True, eq=False)
class Pair(Arrays):
    """Two arrays."""

    numbers: Integers
    weights: Floats


@dataclass(frozen=True, eq=False)
class Other(Arrays):
    """One array."""

    weights: Floats


def arithmetic(a: int, b: int, x: float, results: Floats) -> None:
    """What operators and built-in functions give, of integers, floats and both."""
    results[0] = a + b * 7 - (a - b)
    results[1] = a // 3 + a % 5
    results[2] = (a & b) + (a | b) + (a ^ b) + (~a)
    results[3] = (a << 3) + (a >> 1)
    results[4] = a / b
    results[5] = a + x
    results[6] = x * x - x / 3
    results[7] = -a + -x
    results[8] = min(a, b, 4) + max(x, a)
    results[9] = int(x) + float(a)
    results[10] = LIMIT + FIRST_BIT + (1 if x < inf else 0)
    results[11] = a if a > b else x
    results[12] = max(b, a) + (a > b) + bool(a - b)


def comparisons(a: float, b: float, c: int) -> int:
    """Which comparisons hold, as bits."""
    found = 0
    if a < b:
        found |= 1
    if a <= b:
        found |= 2
    if a == b:
        found |= 4
    if a != b:
        found |= 8
    if a > c:
        found |= 16
    if c >= b or a == 7.0:
        found |= 32
    if not (a < b and c > 0):
        found |= 64
    return found


def loops(numbers: Integers, stop: int) -> tuple[int, int, float]:
    """Loops in all forms: what they add up, their variable afterwards, and how often they went round."""
    total = 0
    rounds = 0.0
    for index in range(len(numbers)):
        if numbers[index] < 0:
            continue
        if numbers[index] == stop:
            break
        total += numbers[index]
        rounds += 1
    for index in range(4, 1, -1):
        total = total * 3 + index
    for index in range(stop, stop):
        total += index + 1000
    for outer in range(2, 9, 3):
        inner = outer
        while True:
            inner -= 1
            if inner < 2:
                break
            total += inner
    return total, index, rounds


def guarded(numbers: Integers, place: int) -> bool:
    """Operands of ``and`` and ``or`` after the one that decides are not looked at."""
    return (place < len(numbers) and numbers[place] > 0) or place == 100


def collatz(start: int, pair: Pair) -> int:
    """Calls, records and elements that are changed."""
    count = 0
    while start != 1:
        start, parity = halved(start)
        pair.numbers[parity] += 1
        weigh(pair, parity)
        count += 1
    return count


def halved(number: int) -> tuple[int, int]:
    """One step, and whether it was an odd one."""
    if number % 2 == 0:
        return number // 2, 0
    return 3 * number + 1, 1


def weigh(pair: Pair, place: int) -> None:
    """Change a float by an integer."""
    weights = pair.weights
    weights[place] = weights[place] * 0.5 + pair.numbers[place]


def with_a_list(numbers: Integers) -> int:
    """Not of the subset."""
    return sum([2 * number for number in numbers])


def without_types(numbers):  # type: ignore[no-untyped-def]
    """Not of the subset."""
    return numbers[0]


def with_text(text: str) -> int:
    """Not of the subset."""
    return len(text)


reversed_bits = Primitive(1, lambda build, operands: build.bitreverse(operands[0]))
no_result = Primitive(0, lambda build, operands: None)


def with_primitives(value: int) -> int:
    """What only LLVM has a word for, as an expression and as a statement."""
    no_result()
    return reversed_bits(value) + 1


def with_too_few_operands(value: int) -> int:
    return reversed_bits() + value


def with_a_result_that_is_none(value: int) -> int:
    return no_result() + value
