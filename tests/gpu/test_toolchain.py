"""What is said where there is no toolchain."""

import sys
from types import SimpleNamespace

import pytest

from esat.errors import ModeError
from esat.gpu.toolchain import default_toolchain


@pytest.mark.parametrize(
    "error", [ImportError("No module named 'cuda'"), RuntimeError("libnvvm.so not found")]
)
def test_what_is_missing_is_named_with_how_to_install_it(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> object:
        raise error

    monkeypatch.setitem(sys.modules, "esat.gpu.toolchain.numba_cuda", SimpleNamespace(NumbaCuda=fail))
    with pytest.raises(ModeError, match="pip install 'esat\\[gpu\\]'") as caught:
        default_toolchain()
    assert f"kernels cannot be compiled ({error})" in str(caught.value)
