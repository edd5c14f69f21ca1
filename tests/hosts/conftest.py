"""What the tests of several hosts share: one object store for all of them."""

import pytest

from tests.hosts.object_store import PrivateStore


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    started = PrivateStore(tmp_path_factory.mktemp("store") / "swift")
    try:
        started.start()
        yield started
    finally:
        started.stop()


@pytest.fixture
def bucket(store):
    return store.make_bucket()
