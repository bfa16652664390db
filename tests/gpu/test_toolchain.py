"""What is said where kernels cannot be compiled for devices."""

import importlib

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
        assert importlib.util.find_spec(name) is not None
        raise error

    monkeypatch.setattr(interface, "import_module", fail)
    with pytest.raises(ModeError, match="pip install 'esat\\[gpu\\]'") as caught:
        default_toolchain()
    assert str(error) in str(caught.value)
