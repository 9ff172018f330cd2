"""What the tests share."""

import pytest
from ring_maker import Fleet


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()
