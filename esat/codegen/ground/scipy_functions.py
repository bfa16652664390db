"""Functions of ``scipy.special`` in machine code, which kernels call by address.

SciPy exports them for Cython: a C function of floats, with an integer after them that says nothing. They are
called without the interpreter's lock, and are what SciPy's own loops over float64 call. It exports neither
polygamma nor Hurwitz's zeta function, of which SciPy computes that: they are here.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import struct
from collections.abc import Iterator

from llvmlite import binding

from esat.base.records import record
from esat.codegen.ground.machine_text import HostFunction, compiled

_PREFIX = "scipy.special."
_OF_FLOATS = ("", "__pyx_fuse_0", "__pyx_fuse_1")
"""What Cython puts before the name of a function of one type, or of one of several."""


def symbol(name: str, arity: int) -> str:
    """What machine code calls a function of SciPy, of so many floats."""
    return f"{_PREFIX}{name}/{arity}"


def address_named(symbol: str) -> int:
    """The address of the function that a symbol names; zero for other symbols."""
    if not symbol.startswith(_PREFIX):
        return 0
    name, _, arity = symbol.removeprefix(_PREFIX).partition("/")
    return address(name, int(arity))


@functools.cache
def address(name: str, arity: int) -> int:
    """The address of ``double name(double, ..., int)``; zero where SciPy has none of this type."""
    return PolygammaFunction().address() if name == "polygamma" else _exported(name, arity)


def _exported(name: str, arity: int) -> int:
    exported = importlib.import_module("scipy.special.cython_special").__pyx_capi__
    wanted = f"double ({'double, ' * arity}int __pyx_skip_dispatch)".encode()
    for prefix in _OF_FLOATS:
        capsule = exported.get(prefix + name)
        if capsule is not None and _signature(capsule) == wanted:
            return int(_pointer(capsule, wanted) or 0)
    return 0


def _signature(capsule: object) -> bytes | None:
    function = ctypes.pythonapi.PyCapsule_GetName
    function.restype, function.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    found: bytes | None = function(capsule)
    return found


def _pointer(capsule: object, signature: bytes) -> int | None:
    function = ctypes.pythonapi.PyCapsule_GetPointer
    function.restype, function.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    found: int | None = function(capsule, signature)
    return found


# ---- polygamma

_BERNOULLI = (
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1307674368000.0 / 691, 74724249600.0,
    -10670622842880000.0 / 3617, 5109094217170944000.0 / 43867, -802857662698291200000.0 / 174611,
    14101100039391805440000.0 / 77683, -1693824136731743669452800000.0 / 236364091,
)  # fmt: skip
"""``(2k)!`` divided by the Bernoulli numbers ``B(2k)``."""
_FAR_BELOW = -64.0
"""Where zeta's terms up to zero are not added up, as in ``esat.ops.elementwise.records.scipy_functions``."""


@record(frozen=True)
class PolygammaFunction(HostFunction):
    """``double polygamma(double order, double x, int is_float32)``, by zeta as Cephes has it (Moshier 1989).

    Of float32 the order plus one is rounded to float32 first, as in SciPy.

    That is the sum of its first terms, at least nine, and the rest by Euler and Maclaurin's formula.
    """

    def text(self) -> str:
        return "\n".join([*_DECLARATIONS, *_zeta(), *_POLYGAMMA])

    def make(self) -> int:
        for name in ("psi", "gamma"):
            place = _exported(name, 1)
            if not place:
                return 0
            binding.add_symbol(symbol(name, 1), place)
        return compiled(self.text())


_DECLARATIONS = (
    f'declare double @"{symbol("psi", 1)}"(double, i32)',
    f'declare double @"{symbol("gamma", 1)}"(double, i32)',
    *(f"declare double @llvm.{name}.f64(double)" for name in ("fabs", "floor")),
    "declare double @llvm.pow.f64(double, double)",
)


def _zeta() -> Iterator[str]:
    """``zeta(s, q)``, the sum of ``(q + k)**-s``, for ``s > 1`` and a ``q`` that is no pole."""
    yield """
define double @zeta(double %s, double %q) {
entry:
  %power = fneg double %s
  %less = fsub double %s, 1.0
  %large = fcmp ogt double %q, 1.0e8
  br i1 %large, label %at_infinity, label %begin
at_infinity:
  %whole = fdiv double 1.0, %less
  %half = fdiv double 0.5, %q
  %both = fadd double %whole, %half
  %opposite = fneg double %less
  %scale = call double @llvm.pow.f64(double %q, double %opposite)
  %limit = fmul double %both, %scale
  ret double %limit
begin:
  %first = call double @llvm.pow.f64(double %q, double %power)
  br label %term
term:
  %count = phi i32 [ 0, %begin ], [ %counted, %more ]
  %before = phi double [ %q, %begin ], [ %a, %more ]
  %sum = phi double [ %first, %begin ], [ %added, %more ]
  %a = fadd double %before, 1.0
  %b = call double @llvm.pow.f64(double %a, double %power)
  %added = fadd double %sum, %b
  %part = fdiv double %b, %added
  %size = call double @llvm.fabs.f64(double %part)
  %done = fcmp olt double %size, 0x3CA0000000000000
  br i1 %done, label %found, label %more
found:
  ret double %added
more:
  %counted = add i32 %count, 1
  %few = icmp slt i32 %counted, 9
  %low = fcmp ole double %a, 9.0
  %again = or i1 %few, %low
  br i1 %again, label %term, label %rest
rest:
  %product = fmul double %b, %a
  %integral = fdiv double %product, %less
  %with_integral = fadd double %added, %integral
  %half_term = fmul double 0.5, %b
  %s0 = fsub double %with_integral, %half_term
  br label %correction0"""
    factor, term = "1.0", "%b"
    for k, number in enumerate(_BERNOULLI):
        yield f"""correction{k}:
  %f{k} = fadd double %s, {2.0 * k}
  %g{k} = fmul double {factor}, %f{k}
  %b{k} = fdiv double {term}, %a
  %m{k} = fmul double %g{k}, %b{k}
  %t{k} = fdiv double %m{k}, {_literal(number)}
  %s{k + 1} = fadd double %s{k}, %t{k}
  %r{k} = fdiv double %t{k}, %s{k + 1}
  %z{k} = call double @llvm.fabs.f64(double %r{k})
  %e{k} = fcmp olt double %z{k}, 0x3CA0000000000000
  br i1 %e{k}, label %end{k}, label %next{k}
end{k}:
  ret double %s{k + 1}
next{k}:
  %h{k} = fadd double %s, {2.0 * k + 1}
  %n{k} = fmul double %g{k}, %h{k}
  %c{k} = fdiv double %b{k}, %a
  br label %{f"correction{k + 1}" if k + 1 < len(_BERNOULLI) else "last"}"""
        factor, term = f"%n{k}", f"%c{k}"
    yield f"""last:
  ret double %s{len(_BERNOULLI)}
}}"""


def _literal(number: float) -> str:
    """A double as LLVM reads it, to the last bit."""
    return f"0x{int.from_bytes(struct.pack('>d', number)):016X}"


_POLYGAMMA = (
    f"""
define double @run(double %order, double %x, i32 %is_float32) {{
entry:
  %is_psi = fcmp oeq double %order, 0.0
  br i1 %is_psi, label %psi, label %check
psi:
  %digamma = call double @"{symbol("psi", 1)}"(double %x, i32 0)
  ret double %digamma
check:
  %next = fadd double %order, 1.0
  %single = fptrunc double %order to float
  %next_single = fadd float %single, 1.0
  %widened = fpext float %next_single to double
  %is_double = icmp eq i32 %is_float32, 0
  %s = select i1 %is_double, double %next, double %widened
  %whole_s = call double @llvm.floor.f64(double %s)
  %is_whole = fcmp oeq double %whole_s, %s
  %is_above = fcmp ogt double %s, 1.0
  %is_right = and i1 %is_above, %is_whole
  br i1 %is_right, label %right, label %wrong
wrong:
  %is_one = fcmp oeq double %s, 1.0
  %harmonic = select i1 %is_one, double 0xFFF0000000000000, double 0x7FF8000000000000
  ret double %harmonic
right:
  %factorial = call double @"{symbol("gamma", 1)}"(double %s, i32 0)
  %half = fmul double %s, 0.5
  %whole_half = call double @llvm.floor.f64(double %half)
  %even = fcmp oeq double %whole_half, %half
  %sign = select i1 %even, double 1.0, double -1.0
  %scale = fmul double %sign, %factorial
  %floor = call double @llvm.floor.f64(double %x)
  %below = fcmp ole double %x, 0.0
  %at_whole = fcmp oeq double %floor, %x
  %pole = and i1 %below, %at_whole
  br i1 %pole, label %infinite, label %finite
infinite:
  %endless = fmul double %scale, 0x7FF0000000000000
  ret double %endless
finite:
  %far = fcmp olt double %x, {_FAR_BELOW}
  br i1 %far, label %mirrored, label %direct
direct:
  %zeta = call double @zeta(double %s, double %x)
  %result = fmul double %scale, %zeta
  ret double %result
mirrored:
  %part = fsub double %x, %floor
  %above = fadd double %floor, 1.0
  %rest = fsub double %above, %x
  %beyond = fsub double 1.0, %x
  %after = call double @zeta(double %s, double %part)
  %all = call double @zeta(double %s, double %rest)
  %without = call double @zeta(double %s, double %beyond)
  %before = fsub double %all, %without
  %signed = fmul double %sign, %after
  %sum = fadd double %signed, %before
  %value = fmul double %factorial, %sum
  ret double %value
}}""",
)
