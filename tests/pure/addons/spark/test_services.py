"""Executors are told where files lie, and of keys only that of one registration."""

import json

import pytest

from addons.spark import apps, services
from addons.spark.batches import SparkBatches
from annotation.data.services.pseudonyms import table_key
from annotation.models import Dataset, PoolSource, Project
from annotation.work.object_storage import ObjectStorage
from dpal_site.environment import storage_settings
from learner.features.crew import Crew
from learner.features.encoder import SentenceEncoder
from learner.features.text import HashingTextFeaturizer
from learner.pools import features

STORE = "s3://pools/site?endpoint_url=http://127.0.0.1:9&region=eu-central-1"


@pytest.fixture
def bucket(monkeypatch):
    """Have the site's files in a bucket."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the site")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the site's secret")
    monkeypatch.setattr(services, "default_storage", ObjectStorage(**storage_settings(STORE)["OPTIONS"]))


def told(address):
    dataset = Dataset(project=Project(slug="voices"), mapping={"text": "said", "contributor": "who"})
    return services.shared_table(PoolSource(dataset=dataset, address=address, secret=bytes(32)))


def test_a_table_goes_with_its_own_key_alone(bucket, settings):
    settings.POOL_SOURCES = ["file:///srv/lake/{project}", "s3://lake"]
    in_folder, in_bucket = told("file:///srv/lake/voices/log"), told("s3://lake/log")
    for reader in (in_folder, in_bucket):
        assert json.loads(reader.given)["key"] == table_key(bytes(32)).hex()
        assert settings.PSEUDONYM_KEY not in reader.given
        assert "the site" not in reader.given
        assert table_key(bytes(32)).hex() not in repr(reader)
        assert reader.needs == "annotation"
    assert json.loads(in_folder.given)["store"] == {"place": "/srv/lake/voices/log", "root": "/srv/lake/voices"}
    named = json.loads(in_bucket.given)["store"]["bucket"]
    assert (named["name"], named["prefix"], named["endpoint_url"]) == ("lake", "log", "http://127.0.0.1:9")


class Slow(HashingTextFeaturizer):
    """A featuriser of which a row takes long."""

    worth_a_cluster = True


def test_a_cluster_makes_what_takes_its_time_and_the_host_all_else(settings):
    quick, slow = HashingTextFeaturizer(n_features=8), Slow(n_features=8)
    assert SentenceEncoder.worth_a_cluster
    for master, engines in (("", (Crew, Crew)), ("local[2]", (Crew, SparkBatches))):
        settings.SPARK_MASTER = master
        assert tuple(type(features.features_engine(each)) for each in (quick, slow)) == engines


def test_a_cluster_needs_what_talks_to_it(settings, monkeypatch):
    monkeypatch.setattr(apps, "find_spec", lambda name: None)
    assert apps.check_cluster(None) == []
    settings.SPARK_MASTER = "spark://spark.example.org:7077"
    assert [error.id for error in apps.check_cluster(None)] == ["dpal.E007"]
    monkeypatch.setattr(apps, "find_spec", lambda name: name)
    assert apps.check_cluster(None) == []
