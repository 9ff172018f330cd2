"""Shared fixtures of the tests."""

import pytest
from ring_maker import Fleet


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()
