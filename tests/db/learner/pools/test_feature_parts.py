import os
import time

import pytest
from django.core.files.storage import default_storage
from django.db import transaction

from annotation.data.services import forgetting
from annotation.models import Dataset, Record
from annotation.work.services import files
from learner import tasks
from learner.features.crew import Crew
from learner.models import FeatureMatrix
from learner.pools import features
from tests import learning
from tests.crews import batch_workers
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
COLUMNS = [{"name": "age", "low": 0, "high": 120}, {"name": "town", "categories": ["Bonn", "Köln"]}]


def kept(project):
    return list(files.names_in(f"features/{project.pk}/parts"))


@pytest.fixture
def cut_small(monkeypatch):
    """Have uploads of a few rows be cut, and one process make their features, which takes long to start."""
    monkeypatch.setattr(features, "MOST_PROCESSES", 1)
    monkeypatch.setattr(features, "BATCH_ROWS", 8)
    monkeypatch.setattr(features, "PART_BATCHES", 2)


@pytest.fixture
def large(cut_small):
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    dataset = Dataset.objects.select_related("project").get(project=project, role="pool")
    assert not FeatureMatrix.objects.filter(dataset=dataset).exists()
    assert dataset.row_count == 80
    return dataset


def counted(monkeypatch):
    rows = []
    real = features.sent_batches

    def noted(dataset, *, first, stop):
        rows.append((first, stop))
        return real(dataset, first=first, stop=stop)

    monkeypatch.setattr(features, "sent_batches", noted)
    return rows


def made_in_one_piece(dataset, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(features, "is_made_in_parts", lambda dataset: False)
        whole = features.ensure_matrix(dataset)
    whole.delete()
    default_storage.delete(whole.file.name)
    return whole.sha256, whole.rows


def empty(dataset, row):
    with transaction.atomic():
        forgetting.empty_records(Record.objects.filter(dataset=dataset, row_number=row), project=dataset.project)


class Killed(BaseException):
    pass


def die_at(number):
    def tell(done, total):
        if done == number:
            raise Killed

    return tell


@pytest.mark.one_in(3)
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_a_feature_file_has_the_same_bytes_whoever_made_its_parts(large, monkeypatch, processes):
    expected = made_in_one_piece(large, monkeypatch)
    monkeypatch.setattr(features, "features_engine", lambda featurizer: Crew(processes))
    rows = counted(monkeypatch)
    made = features.ensure_matrix(large)
    assert (made.sha256, made.rows) == expected
    assert len(rows) == 5
    assert FeatureMatrix.objects.count() == 1
    assert kept(large.project) == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("data_kind", ["text", "table"])
def test_an_emptied_record_has_zeros_in_parts_as_well(cut_small, monkeypatch, data_kind):
    if data_kind == "text":
        project = learning.open_trusted(make_user())
        dataset = learning.upload(project, [[text] for text in learning.sentences(40)], ["text"])
    else:
        project = learning.open_table(make_user(), COLUMNS)
        dataset = learning.upload(project, [[str(number), "Bonn"] for number in range(40)], ["age", "town"])
    empty(dataset, 17)
    expected = made_in_one_piece(dataset, monkeypatch)
    made = features.ensure_matrix(dataset)
    assert (made.sha256, made.rows) == expected
    X = features.open_features(dataset)
    assert not X[17].any()
    assert X[16].any()
    assert X[18].any()


def test_whoever_takes_over_goes_on_with_the_parts_that_were_made(large, monkeypatch):
    expected = made_in_one_piece(large, monkeypatch)
    with pytest.raises(Killed):
        features.ensure_matrix(large, die_at(3))
    assert len(kept(large.project)) == 3
    # One of their files is lost as well, and half a day has nearly passed.
    (lost,) = (name for name in kept(large.project) if name.endswith("/1.npy"))
    default_storage.delete(lost)
    made_hours_ago(large.project, 11)
    tasks.forget_abandoned_parts_task()
    rows = counted(monkeypatch)
    made = features.ensure_matrix(large)
    assert (made.sha256, made.rows) == expected
    assert rows == [(16, 32), (48, 64), (64, 80)]
    assert kept(large.project) == []


@pytest.mark.slow
def test_a_part_that_was_cut_short_is_not_read(large):
    with pytest.raises(Killed):
        features.ensure_matrix(large, die_at(2))
    os.truncate(default_storage.path(kept(large.project)[0]), 128 + 16 * 4 * 3)
    with pytest.raises(LookupError, match="are gone"):
        features.ensure_matrix(large)
    assert kept(large.project) == []
    assert features.ensure_matrix(large).rows == 80


@pytest.mark.slow
def test_a_disk_that_is_full_costs_no_part_that_was_made(large, monkeypatch):
    real = features.write_matrix

    def full(path, batches, *, dimension):
        def until_it_is():
            for number, batch in enumerate(batches):
                if number == 7:
                    raise OSError(28, "No space left on device")
                yield batch

        return real(path, until_it_is(), dimension=dimension)

    with monkeypatch.context() as patch:
        patch.setattr(features, "write_matrix", full)
        with pytest.raises(OSError, match="No space"):
            features.ensure_matrix(large)
    assert len(kept(large.project)) == 3
    rows = counted(monkeypatch)
    features.ensure_matrix(large)
    assert rows == [(48, 64), (64, 80)]


@pytest.mark.slow
def test_parts_made_before_a_record_was_emptied_are_of_no_more_use_and_go_with_it(large, monkeypatch):
    rows = counted(monkeypatch)
    featurizer = features.featurizer_of(large.project)
    list(features.transformed(large, featurizer, emptied=0))
    assert len(rows) == 5
    list(features.transformed(large, featurizer, emptied=1))
    assert len(rows) == 10
    assert len(kept(large.project)) == 10
    empty(large, 3)
    features.zero_emptied(large)
    assert len(kept(large.project)) == 5
    list(features.transformed(large, featurizer, emptied=1))
    assert len(rows) == 10


def made_hours_ago(project, hours):
    then = time.time() - hours * 3600
    for name in kept(project):
        os.utime(default_storage.path(name), (then, then))


def test_no_process_outlives_an_attempt_that_ends(large):
    started = []

    def end(done, total):
        started.append(batch_workers())
        if done == 3:
            raise Killed

    with pytest.raises(Killed):
        features.ensure_matrix(large, end)
    assert started[-1]
    assert not batch_workers()
