"""Arithmetic and comparisons, of integers and of floats.

Arguments stand in registers one after the other, the result in ``RESULT``. What has no value, for an overflow
or a division by zero, and a comparison that is false, is no match.
"""

from __future__ import annotations

from esat.engine.state.memory import RESULT, MachineMemory

# ---- of integers
ADD = 1
SUBTRACT = 2
MULTIPLY = 3
DIVIDE = 4
REMAINDER = 5
AND = 6
OR = 7
XOR = 8
SHIFT_LEFT = 9
SHIFT_RIGHT = 10
NOT = 11
LOG2 = 12
ABSOLUTE = 13
SMALLER = 14
LARGER = 15
TO_FLOAT = 16
LESS = 17
GREATER = 18
LESS_EQUAL = 19
GREATER_EQUAL = 20
DIFFERENT = 21
# ---- of floats
FLOAT = 32
FLOAT_ADD = FLOAT + ADD
FLOAT_SUBTRACT = FLOAT + SUBTRACT
FLOAT_MULTIPLY = FLOAT + MULTIPLY
FLOAT_DIVIDE = FLOAT + DIVIDE
FLOAT_POWER = FLOAT + XOR
FLOAT_NEGATE = FLOAT + NOT
FLOAT_ABSOLUTE = FLOAT + ABSOLUTE
FLOAT_SMALLER = FLOAT + SMALLER
FLOAT_LARGER = FLOAT + LARGER
TO_INTEGER = FLOAT + TO_FLOAT
FLOAT_LESS = FLOAT + LESS
FLOAT_GREATER = FLOAT + GREATER
FLOAT_LESS_EQUAL = FLOAT + LESS_EQUAL
FLOAT_GREATER_EQUAL = FLOAT + GREATER_EQUAL
_LEAST = -0x8000000000000000


def of_integers(m: MachineMemory, op: int, base: int) -> bool:
    """Compute an operation on integers; whether it has a value."""
    registers = m.registers
    a = registers[base]
    b = registers[base + 1]
    if op == ADD:
        registers[RESULT] = a + b
        return ((a ^ registers[RESULT]) & (b ^ registers[RESULT])) >= 0
    if op == SUBTRACT:
        registers[RESULT] = a - b
        return ((a ^ b) & (a ^ registers[RESULT])) >= 0
    if op == MULTIPLY:
        registers[RESULT] = a * b
        if a == -1:
            return b != _LEAST
        return a == 0 or registers[RESULT] // a == b
    if op == AND:
        registers[RESULT] = a & b
        return True
    if op == OR:
        registers[RESULT] = a | b
        return True
    if op == XOR:
        registers[RESULT] = a ^ b
        return True
    if op == SHIFT_LEFT:
        if b < 0 or b > 63:
            return False
        registers[RESULT] = a << b
        return True
    if op == SHIFT_RIGHT:
        if b < 0 or b > 63:
            return False
        registers[RESULT] = a >> b
        return True
    if op == LESS:
        return a < b
    if op == GREATER:
        return a > b
    if op == LESS_EQUAL:
        return a <= b
    if op == GREATER_EQUAL:
        return a >= b
    if op == DIFFERENT:
        return a != b
    if op == SMALLER:
        registers[RESULT] = min(a, b)
        return True
    if op == LARGER:
        registers[RESULT] = max(a, b)
        return True
    if op == NOT:
        registers[RESULT] = ~a
        return True
    if op == ABSOLUTE:
        registers[RESULT] = a if a >= 0 else -a
        return registers[RESULT] >= 0
    if op == TO_FLOAT:
        m.numbers[RESULT] = float(a)
        return True
    if op == LOG2:
        power = -1
        while a > 0:
            a = a >> 1
            power += 1
        registers[RESULT] = power
        return power >= 0
    return _divided(m, op, a, b)


def _divided(m: MachineMemory, op: int, a: int, b: int) -> bool:
    """A quotient towards zero, or what it leaves; Python's is the next lower one."""
    if b == 0 or (b == -1 and a == _LEAST):
        return False
    quotient = a // b
    rest = a - quotient * b
    if rest != 0 and (rest < 0) != (a < 0):
        quotient += 1
        rest -= b
    m.registers[RESULT] = quotient if op == DIVIDE else rest
    return op == DIVIDE or op == REMAINDER


def _is_less(a: float, b: float) -> bool:
    """In the order of egglog, where NaN equals itself and is larger than all else."""
    if b != b:
        return a == a
    return a < b


def of_floats(m: MachineMemory, op: int, base: int) -> bool:
    """Compute an operation on floats, less ``FLOAT``; whether it has a value."""
    a = m.numbers[base]
    b = m.numbers[base + 1]
    if op == LESS:
        return _is_less(a, b)
    if op == GREATER:
        return _is_less(b, a)
    if op == LESS_EQUAL:
        return not _is_less(b, a)
    if op == GREATER_EQUAL:
        return not _is_less(a, b)
    if op == TO_FLOAT:
        return _to_integer(m, a)
    result = a
    if op == ADD:
        result = a + b
    elif op == SUBTRACT:
        result = a - b
    elif op == MULTIPLY:
        result = a * b
    elif op == DIVIDE:
        if b == 0.0:
            return False
        result = a / b
    elif op == XOR:
        result = a**b
    elif op == NOT:
        result = -a
    elif op == ABSOLUTE:
        result = a if a >= 0.0 else -a
    elif op == SMALLER:
        result = b if _is_less(b, a) else a
    elif op == LARGER:
        result = b if not _is_less(b, a) else a
    else:
        return False
    _store(m, result)
    return True


def _store(m: MachineMemory, value: float) -> None:
    """Zero has one sign here, and NaN one form: what is equal has to be one value."""
    if value != value:
        m.registers[RESULT] = 0x7FF8000000000000
    elif value == 0.0:
        m.registers[RESULT] = 0
    else:
        m.numbers[RESULT] = value


def _to_integer(m: MachineMemory, value: float) -> bool:
    if value != value:
        m.registers[RESULT] = 0
    elif value >= 9.2233720368547758e18:
        m.registers[RESULT] = 0x7FFFFFFFFFFFFFFF
    elif value <= -9.2233720368547758e18:
        m.registers[RESULT] = _LEAST
    else:
        m.registers[RESULT] = int(value)
    return True
