import os
import signal

import pytest

from annotation.models import Dataset
from learner.features.text import HashingTextFeaturizer
from learner.pools import features
from tests import learning
from tests.db.learner.pools.test_features import Killed, counted, die_at, empty, kept, made_in_one_piece
from tests.factories import make_user
from tests.faults.storm.site import descendants
from tests.spark_cluster import command_line, needs_spark

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True), needs_spark]


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(features, "BATCH_ROWS", 2)
    monkeypatch.setattr(features, "PART_BATCHES", 8)
    monkeypatch.setattr(HashingTextFeaturizer, "worth_a_cluster", True)
    monkeypatch.setattr(features, "Crew", lambda processes: None)
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    dataset = Dataset.objects.select_related("project").get(project=project, role="pool")
    assert dataset.row_count == 80
    return dataset


def pointed_at(cluster, executors, monkeypatch, settings):
    told = cluster.configuration(f"{executors} {os.urandom(4).hex()}", **{"spark.cores.max": executors})
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    settings.SPARK_MASTER = cluster.address


def drivers():
    return {pid for pid in descendants(os.getpid()) if b"addons.spark.driver" in command_line(pid)}


@pytest.mark.parametrize("executors", [2, 4])
def test_neither_the_cluster_nor_who_dies_of_it_changes_a_byte(cluster, large, monkeypatch, settings, executors):
    empty(large, 17)
    expected = made_in_one_piece(large, monkeypatch)
    pointed_at(cluster, executors, monkeypatch, settings)
    killed = {1: set(), 3: set()}
    seen = set()

    def strike(done, total):
        seen.update(drivers())
        victims = {1: cluster.executors, 3: drivers}
        if done in victims:
            killed[done].update(victims[done]())
            for pid in killed[done]:
                os.kill(pid, signal.SIGKILL)

    made = features.ensure_matrix(large, strike)
    assert (made.sha256, made.rows) == expected
    assert killed[1]
    assert len(killed[3]) == 1
    # Another one went on where the first had been.
    assert len(seen) == 2
    X = features.open_features(large)
    assert not X[17].any()
    assert X[16].any()
    assert X[18].any()
    assert kept(large.project) == []
    assert not drivers()


def test_whoever_takes_over_makes_what_is_missing(cluster, large, monkeypatch, settings):
    expected = made_in_one_piece(large, monkeypatch)
    pointed_at(cluster, 2, monkeypatch, settings)
    with pytest.raises(Killed):
        features.ensure_matrix(large, die_at(3))
    assert not drivers()
    assert len(kept(large.project)) == 3
    rows = counted(monkeypatch)
    made = features.ensure_matrix(large)
    assert (made.sha256, made.rows) == expected
    assert rows == [(48, 64), (64, 80)]
    assert kept(large.project) == []
