"""Machines that tests compile for: the one they run on, and others, of which LLVM writes assembly."""

from dataclasses import replace

from esat.codegen.ground.host import host_target, untuned_host
from esat.codegen.ground.target import Caches, Target

HOST = host_target()
PLAIN = Target.of("x86_64-unknown-linux-gnu", "+sse2", caches=Caches(32 << 10, 256 << 10, 8 << 20))
AVX2 = Target.of("x86_64-unknown-linux-gnu", "+avx,+avx2,+fma", caches=Caches(32 << 10, 512 << 10, 32 << 20))
AVX512 = Target.of(
    "x86_64-unknown-linux-gnu",
    "+avx,+avx2,+fma,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
    caches=Caches(48 << 10, 2 << 20, 64 << 20),
)
NEON = Target.of("aarch64-unknown-linux-gnu", "+neon", caches=Caches(64 << 10, 1 << 20, 32 << 20))
SVE = Target.of("aarch64-unknown-linux-gnu", "+neon,+sve", caches=Caches(64 << 10, 1 << 20, 32 << 20))
TARGETS = {"x86-64": PLAIN, "avx2": AVX2, "avx-512": AVX512, "neon": NEON, "sve": SVE}
"""By what they are called in the names of tests and files."""


def host_with(vector_bytes: int, **tuning: object) -> Target:
    """This machine, for code as if vectors had so many bytes: LLVM makes several of one that is too long.

    Tuned as machines with such vectors are, but for the numbers given.
    """
    like = {16: PLAIN, 32: AVX2, 64: AVX512}[vector_bytes]
    host = replace(untuned_host(), vector_bytes=vector_bytes, vector_registers=like.vector_registers)
    return replace(host, tuning=like.tuning).tuned(**tuning)
