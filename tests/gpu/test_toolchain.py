"""What is said where there is no toolchain."""

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
    assert f"kernels cannot be compiled ({error})" in str(caught.value)
