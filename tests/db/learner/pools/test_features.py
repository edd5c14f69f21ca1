import os
import time
from pathlib import Path

import numpy as np
import pytest
from django.core.files.storage import default_storage
from django.db import transaction

from annotation.choices.classes import FurtherClass
from annotation.data.services import forgetting
from annotation.errors import InvalidConfiguration
from annotation.models import Dataset, Record
from annotation.projects.services.classes import add_class
from annotation.projects.services.configuring import configure_project
from annotation.work.services import files
from learner import tasks
from learner.errors import ArtifactCorrupt
from learner.estimators.logistic import Logistic
from learner.features.crew import Crew
from learner.features.text import HashingTextFeaturizer
from learner.models import FeatureMatrix, Round
from learner.pools import configuration, features
from learner.pools.records import pool_datasets, refuse_leaving_series
from learner.pools.selectors import training_event
from learner.rounds.services import loop, training
from tests import learning
from tests.crews import batch_workers
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(remembered):
    return learning.begin_experts(remembered)


def test_features_are_written_once_and_checked_when_opened(project):
    dataset = Dataset.objects.get(project=project, role="pool")
    first = features.ensure_matrix(dataset)
    assert features.ensure_matrix(dataset) == first
    assert FeatureMatrix.objects.filter(dataset=dataset).count() == 1
    assert (first.rows, first.dimension) == (80, 16)
    path = Path(default_storage.path(first.file.name))
    body = bytearray(path.read_bytes())
    body[-1] ^= 1
    path.write_bytes(body)
    features.open_verified.cache_clear()
    with pytest.raises(ArtifactCorrupt):
        features.open_features(dataset)


def test_a_gap_in_the_row_numbers_is_found(project):
    dataset = Dataset.objects.get(project=project, role="pool")
    dataset.records.filter(row_number=5).delete()
    with pytest.raises(ArtifactCorrupt, match="row 5"):
        features.ensure_matrix(dataset)


def test_image_features_come_from_the_pixel_file():
    project = learning.open_images(make_user())
    images = np.random.default_rng(1).integers(0, 256, size=(7, 4, 4), dtype=np.uint8)
    rows = [[str(value) for value in image.ravel()] for image in images]
    dataset = learning.upload(project, rows, [f"pixel_{n}" for n in range(16)])
    X = features.open_features(dataset)
    grey = images.reshape(7, 2, 2, 2, 2).mean(axis=(2, 4)).reshape(7, 4)
    centred = grey - grey.mean(axis=1, keepdims=True)
    averages = X[:, :4] / np.linalg.norm(X[:, :4], axis=1, keepdims=True)
    np.testing.assert_allclose(averages, centred / np.linalg.norm(centred, axis=1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, atol=1e-5)


class NextVersion(HashingTextFeaturizer):
    """The same shape, other numbers: what a later release of the software might bring."""

    @property
    def version(self) -> str:
        return super().version + "-next"

    def raw_rows(self, batch):
        return -super().raw_rows(batch)


def upgrade(monkeypatch) -> None:
    def featurizer_of(project):
        return NextVersion(project.feature_dimension, normalizer=project.normalizer or "L1")

    for module in (configuration, features, loop, training):
        if hasattr(module, "featurizer_of"):
            monkeypatch.setattr(module, "featurizer_of", featurizer_of)


def test_an_upload_made_before_is_read_in_the_new_version_too(monkeypatch):
    """Two uploads, the featuriser changed between them: both come in the new version, none from the old file."""
    project = learning.open_trusted(make_user())
    learning.upload(project, [[text] for text in learning.sentences(20)], ["text"])
    (first,) = pool_datasets(project)
    old = np.array(features.open_features(first))
    upgrade(monkeypatch)
    learning.upload(project, [[text] for text in learning.sentences(10, seed=3)], ["text"])
    stacked = features.stacked_features(list(pool_datasets(project)), dimension=16)
    assert stacked.shape == (30, 16)
    assert np.array_equal(stacked[np.arange(20)], -old)
    files = FeatureMatrix.objects.filter(dataset=first).order_by("pk")
    assert [row.version.endswith("-next") for row in files] == [False, True]
    assert len({row.file.name for row in files}) == 2
    assert np.array_equal(np.load(features._path_of(files[0].file.name)), old)


def test_a_running_project_goes_on_in_the_new_version_alone(monkeypatch):
    """Rounds and trainings after the change read one version; the model says which one it takes."""
    project = learning.open_trusted(make_user(), selection="random")
    learning.fill_trusted(project)
    person = make_user()
    first = learning.run_to_release(project, person, version=1)
    upgrade(monkeypatch)
    read = []
    real = features.open_verified

    def remember(path, sha256):
        read.append(path.name)
        return real(path, sha256)

    monkeypatch.setattr(features, "open_verified", remember)
    second = learning.run_to_release(project, person, version=2)
    assert Round.objects.count() == 2
    assert read
    assert all(name.endswith("-next.npy") for name in read)
    assert (first.version, second.version) == (1, 2)


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


def add(project, name):
    return add_class(project=project, further=FurtherClass(name), known_beforehand=True, actor=project.created_by)


def test_before_a_series_is_opened_and_without_one_any_number_will_do():
    for project in (learning.open_secret(make_user()), learning.open_trusted(make_user())):
        refuse_leaving_series(project=project, before=["one", "two", "three"])


def test_classes_with_which_trainings_would_leave_their_series_are_refused(monkeypatch):
    # Split over another number of models a tilt's epsilon is larger by its last digit every other time, and a series
    # gives no block more than it has. A fit with a pick leaves more room than that.
    monkeypatch.setattr(Logistic, "picks", False)
    project = learning.open_secret(make_user(), maximum_releases=None, estimator="logistic", pool_epsilon=10.0)
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=1)

    def add_several():
        nonlocal project
        for name in "abcdefgh":
            project = add(project, name)

    with pytest.raises(InvalidConfiguration) as refusal:
        add_several()
    assert f"secret blocks are paid for {len(project.classes)} classes" in refusal.value.broken["name"]
    before = list(project.classes)
    project.refresh_from_db()
    assert project.classes == before
    assert training_event(project).kind == "secret_block"
    # A little less for each training, and there is room for the further class.
    configure_project(project=project, changes={"training_epsilon": 1.999}, actor=project.created_by)
    assert len(add(project, "h").classes) == len(before) + 1
