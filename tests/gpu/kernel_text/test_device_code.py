"""What ``benchmarks.device_code`` looks at; that it compiles takes packages that only few machines have."""

import pytest

from benchmarks.device_code import kernels
from benchmarks.peers.cases import CASES


@pytest.mark.parametrize(("name", "count"), [("softmax", 1), ("20 kernels", 3)])
def test_kernels_of_a_program_are_found_without_a_device(name: str, count: int) -> None:
    (case,) = (case for case in CASES if case.name == name)
    assert len(kernels(case, "float32")) == count
