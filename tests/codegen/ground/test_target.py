"""Targets: what follows from features and caches, code for other machines, and numbers that are kept."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from codegen.kernel_cases import group_of, op, variable
from codegen.targets import AVX2, AVX512, HOST, NEON, PLAIN, SVE, TARGETS

import esat
from esat.codegen import compile_kernel, lower
from esat.codegen.compile import assembly
from esat.codegen.ground.host import (
    host_caches,
    host_target,
    runs_here,
    store_tuning,
    stored_tuning,
    untuned_host,
)
from esat.codegen.ground.target import Caches, Target, TuningNumbers
from esat.codegen.kernel.loop_ir import Kernel
from esat.errors import CompileError, ModeError
from esat.extract.prices.machine import VARIABLE
from esat.ops.reduction import SUM, reduce

X86 = "x86_64-unknown-linux-gnu"


@pytest.mark.parametrize(
    ("target", "vector_bytes", "registers", "count"),
    [(PLAIN, 16, 16, 0), (AVX2, 32, 16, 4), (AVX512, 64, 32, 2), (NEON, 16, 32, 0), (SVE, 16, 32, 0)],
    ids=TARGETS,
)
def test_what_follows_from_the_instruction_set(
    target: Target, vector_bytes: int, registers: int, count: int
) -> None:
    assert (target.vector_bytes, target.vector_registers) == (vector_bytes, registers)
    assert target.tuning.interleave_count == count
    assert target.tuning.preferred_vector_bytes == vector_bytes
    assert target.tuning.memory_vector_bytes == min(vector_bytes, 32)
    assert target.selects_by_masks == (target is AVX512)
    assert target.rounds_at_once == (target in (AVX512, NEON, SVE))
    assert target.tiles_products == (target is AVX2)


def test_products_are_tiled_only_where_numbers_are_multiplied_and_added_at_once() -> None:
    assert not Target.of(X86, "+avx,+avx2,-fma").tiles_products
    assert not Target.of(X86, "+avx,-avx2").tiles_products


def test_what_follows_from_the_caches() -> None:
    small, large = Caches(32 << 10, 256 << 10, 4 << 20), Caches(48 << 10, 2 << 20, 300 << 20)
    tuned_small, tuned_large = (Target.of(X86, AVX512.features, caches=one) for one in (small, large))
    assert tuned_small.tuning.non_temporal_from == 3 << 20
    assert tuned_large.tuning.non_temporal_from == 24_000_000  # of a last level that others use, too
    assert (tuned_small.tuning.group_bytes, tuned_large.tuning.group_bytes) == (128 << 10, 256 << 10)
    assert (tuned_small.tuning.prefetch_distance, tuned_large.tuning.prefetch_distance) == (0, 8192)
    assert (tuned_small.near_bytes, Target.of(X86, caches=Caches(16 << 10)).near_bytes) == (
        24 << 10,
        12 << 10,
    )


def test_targets_are_values() -> None:
    assert replace(AVX2) == AVX2
    assert hash(AVX2) == hash(replace(AVX2))
    digests = {one.digest for one in (*TARGETS.values(), AVX2.tuned(rows_in_group=2))}
    assert len(digests) == len(TARGETS) + 1
    assert AVX2.is_like(AVX2.tuned(rows_in_group=2))
    assert not AVX2.is_like(AVX512)


def test_the_caches_of_a_machine_are_read(tmp_path: Path) -> None:
    texts = [
        ("1", "Data", "48K"),
        ("1", "Instruction", "32K"),
        ("2", "Unified", "2048K"),
        ("3", "Unified", "36M"),
    ]
    for number, values in enumerate(texts):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, text in zip(("level", "type", "size"), values, strict=True):
            (folder / name).write_text(f"{text}\n")
    assert host_caches(tmp_path) == Caches(48 << 10, 2 << 20, 36 << 20)
    (tmp_path / "index2" / "size").write_text("unknown\n")
    (tmp_path / "index3" / "size").unlink()
    assert host_caches(tmp_path) == Caches(48 << 10, Caches().level2, 48 << 10)
    assert host_caches(tmp_path / "none") == Caches()


# ---- code for other machines


def kernels() -> dict[str, Kernel]:
    x, single = variable("float64", None, None), variable("float32", None)
    return {
        "exponentials": lower(group_of([op("exp", x)], [x])),
        "sines": lower(group_of([op("sin", single)], [single])),
        "sums of rows": lower(group_of([reduce(SUM, op("mul", x, x), 1)], [x])),
        "products": lower(group_of([op("add", op("mul", x, 2.0), x)], [x])),
    }


REGISTERS = {
    "x86-64": (r"%xmm\d", r"%[yz]mm\d"),
    "avx2": (r"%ymm\d", r"%zmm\d"),
    "avx-512": (r"%zmm\d", r"\bv\d+\.2d"),
    "neon": (r"\bv\d+\.[24][sd]", r"\bz\d+\.[sd]"),
    "sve": (r"\b[vz]\d+\.(?:[24])?[sd]", r"%[xyz]mm"),
}
"""The registers that code of a target uses, and those that it must not."""


@pytest.mark.parametrize("kernel", kernels())
@pytest.mark.parametrize("name", TARGETS)
def test_kernels_are_compiled_for_any_target(name: str, kernel: str) -> None:
    text = assembly(kernels()[kernel], TARGETS[name])
    wanted, refused = REGISTERS[name]
    if name != "avx-512" or kernel not in ("products", "sums of rows"):  # which wait for memory
        assert re.search(wanted, text)
    assert not re.search(refused, text)


def test_code_for_a_target_rounds_and_multiplies_as_it_can() -> None:
    exponential = kernels()["exponentials"]
    assert "vscalef" in assembly(exponential, AVX512) or not AVX512.scales
    for target in (AVX2, PLAIN):
        assert "vscalef" not in assembly(exponential, target)
    assert "frint" in assembly(exponential, NEON)
    assert "roundp" not in assembly(exponential, PLAIN)


def test_code_for_less_than_this_machine_has_runs_here() -> None:
    target = Target.of(HOST.triple, "", caches=HOST.caches)
    assert runs_here(target)
    x = variable("float64", None)
    kernel = lower(group_of([op("mul", op("exp", x), op("sin", x))], [x]))
    values, results = np.linspace(-3.0, 3.0, 103), [np.empty(103) for _ in range(2)]
    for result, one in zip(results, (HOST, target), strict=True):
        compile_kernel(kernel, one)(result, values)
    np.testing.assert_allclose(results[1], np.exp(values) * np.sin(values), rtol=1e-14)
    np.testing.assert_allclose(*results, rtol=1e-14)


def test_code_that_this_machine_cannot_run_is_refused() -> None:
    foreign = NEON if HOST.triple.startswith("x86") else AVX2
    assert runs_here(HOST)
    assert not runs_here(foreign)
    assert not runs_here(replace(HOST, features=f"{HOST.features},+unheard-of"))
    x = variable("float64", None)
    with pytest.raises(CompileError, match="cannot run code for"):
        compile_kernel(lower(group_of([op("exp", x)], [x])), foreign)
    y = esat.vector("y")
    with pytest.raises(CompileError, match="cannot run code for"):
        esat.compile(esat.Graph([y], [esat.exp(y)]), esat.Mode(target=foreign))
    with pytest.raises(ModeError, match="target of a Mode is a Target"):
        esat.Mode(target="native")


# ---- numbers that are kept


def test_tuning_is_kept_beside_the_profile_of_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "machine.json"))
    plain = untuned_host()
    try:
        host_target.cache_clear()
        assert host_target() == plain
        tuned = plain.tuned(rows_in_group=5, groups_rows=False)
        path = store_tuning(tuned)
        assert path.parent == tmp_path
        assert host_target() == tuned
        assert stored_tuning(replace(plain, features="+sse2")) is None  # another machine with the same folder
        stored = json.loads(path.read_text())
        for change in (
            {"format": 0},
            {"tuning": {**stored["tuning"], "rows_in_group": "5"}},
            {"tuning": {**stored["tuning"], "rows_in_group": -1}},
            {"tuning": {**stored["tuning"], "rows_in_group": True}},
            {"tuning": 5},
        ):
            path.write_text(json.dumps({**stored, **change}))
            assert stored_tuning(plain) is None
        # Of another version of the package: numbers that it did not measure, and one that is gone.
        path.write_text(json.dumps({**stored, "tuning": {"rows_in_group": 5, "of_old": 3}}))
        assert stored_tuning(plain) == plain.tuned(rows_in_group=5).tuning
        path.write_text("{")
        assert stored_tuning(plain) is None
    finally:
        host_target.cache_clear()


def test_all_numbers_are_told_apart() -> None:
    names = [field.name for field in fields(TuningNumbers)]
    changed = {HOST.tuned(**{name: 3}).digest for name in names}
    assert len(changed - {HOST.digest}) == len(names)
