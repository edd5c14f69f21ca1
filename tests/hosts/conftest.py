"""Servers of the tests of several hosts: an object store for all of them, a pooler, the compose file's servers."""

from contextlib import contextmanager

import pytest

from tests.hosts.compose_servers import ComposeServers
from tests.hosts.object_store import PrivateStore
from tests.hosts.pooler import PrivatePooler


@contextmanager
def running(server):
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    with running(PrivateStore(tmp_path_factory.mktemp("store") / "swift")) as started:
        yield started


@pytest.fixture
def pooler(transactional_db, embedded_servers, tmp_path):
    with running(PrivatePooler(tmp_path / "pooler", embedded_servers.database_url)) as started:
        yield started


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    with running(ComposeServers(tmp_path_factory.mktemp("compose") / "servers")) as started:
        yield started


@pytest.fixture
def bucket(store):
    return store.make_bucket()
