"""Which toolchain is taken, and what is said where there is none."""

from types import SimpleNamespace

import pytest

from esat.errors import ModeError
from esat.gpu.toolchain import default_toolchain, interface


@pytest.mark.parametrize(
    "error", [ImportError("No module named 'cuda'"), RuntimeError("libnvvm.so not found")]
)
def test_what_is_missing_is_named_with_how_to_install_it(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> object:
        raise error

    monkeypatch.setattr(interface, "import_module", fail)
    with pytest.raises(ModeError, match="pip install 'esat\\[gpu\\]'") as caught:
        default_toolchain()
    assert f"NumbaCuda: {error}; Nvrtc: {error}" in str(caught.value)


def test_nvrtc_takes_the_place_of_numba_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> object:
        if "numba" in name:
            raise ImportError(name)
        return SimpleNamespace(Nvrtc=lambda: SimpleNamespace(version="NVRTC 13"))

    monkeypatch.setattr(interface, "import_module", found)
    assert default_toolchain().version == "NVRTC 13"
