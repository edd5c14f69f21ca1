"""Executors are told where files lie, and of keys only that of one registration."""

import json

import pytest

from annotation.models import Dataset, PoolSource, Project
from annotation.tables import shared
from annotation.tables.footers import TableColumns
from annotation.tables.pseudonym_keys import table_key
from annotation.work.object_storage import ObjectStorage
from dpal_site.environment import storage_settings
from privacy.engines.stores import Bucket, Folder

STORE = "s3://pools/site?endpoint_url=http://127.0.0.1:9&region=eu-central-1"
COLUMNS = TableColumns("said", "who")


@pytest.fixture
def bucket(monkeypatch):
    """Have the site's files in a bucket."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the site")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the site's secret")
    monkeypatch.setattr(shared, "default_storage", ObjectStorage(**storage_settings(STORE)["OPTIONS"]))


def told(address):
    dataset = Dataset(project=Project(slug="voices"))
    return shared.shared_table(PoolSource(dataset=dataset, address=address, secret=bytes(32)), COLUMNS)


def test_a_folder_stays_one():
    assert shared.shared_store() == Folder(shared.default_storage.location)


def test_a_bucket_goes_without_its_key(bucket):
    assert shared.shared_store() == Bucket("pools", "site", "http://127.0.0.1:9", "eu-central-1", "path")


def test_a_table_goes_with_its_own_key_alone(bucket, settings):
    settings.POOL_SOURCES = ["file:///srv/lake/{project}", "s3://lake"]
    in_folder, in_bucket = told("file:///srv/lake/voices/log"), told("s3://lake/log")
    for reader in (in_folder, in_bucket):
        assert json.loads(reader.given)["key"] == table_key(bytes(32)).hex()
        assert settings.PSEUDONYM_KEY not in reader.given
        assert "the site" not in reader.given
        assert table_key(bytes(32)).hex() not in repr(reader)
        assert reader.package == "annotation"
    assert json.loads(in_folder.given)["store"] == {"place": "/srv/lake/voices/log", "root": "/srv/lake/voices"}
    named = json.loads(in_bucket.given)["store"]["bucket"]
    assert (named["name"], named["prefix"], named["endpoint_url"]) == ("lake", "log", "http://127.0.0.1:9")
