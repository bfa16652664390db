import pytest
from all_fuse import AllFuse

from esat.ops import table


@pytest.fixture(scope="session", autouse=True)
def _ops() -> None:
    table.register_all()


@pytest.fixture
def rules() -> AllFuse:
    return AllFuse()
