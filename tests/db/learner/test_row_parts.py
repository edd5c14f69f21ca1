"""Features made in parts are those one worker makes, to the last bit, whoever makes which part."""

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.utils import timezone

from annotation.models import Dataset
from learner import tasks
from learner.models import FeatureMatrix
from learner.models.parts import FeaturePart
from learner.pools.services import feature_parts, feature_rows, features
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Have no broker told."""
    monkeypatch.setattr("celery.canvas.Signature.apply_async", lambda signature, **options: None)


def beside(helpers, work):
    """Call `work` in so many other threads, each on a connection of its own, until the block ends."""

    class Others:
        def __enter__(self):
            self.finished = threading.Event()
            self.threads = [threading.Thread(target=self.run) for _ in range(helpers)]
            for thread in self.threads:
                thread.start()

        def run(self):
            try:
                while not self.finished.is_set():
                    work()
                    self.finished.wait(0.01)
            finally:
                connection.close()

        def __exit__(self, *error):
            self.finished.set()
            for thread in self.threads:
                thread.join()

    return Others()


def test_features_of_several_uploads_tell_one_course(monkeypatch):
    monkeypatch.setattr(feature_rows, "BATCH_ROWS", 5)
    monkeypatch.setattr(feature_parts, "PART_BATCHES", 2)
    project = learning.open_trusted(make_user())
    for seed in (1, 2):
        learning.upload(project, [[text] for text in learning.sentences(30, seed=seed)], ["text"])
    told = []
    uploads = list(Dataset.objects.filter(project=project).order_by("pk"))
    features.stacked_features(uploads, dimension=16, tell=lambda done, total: told.append(done / total))
    assert told == [0, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6]


def test_features_nobody_put_together_are_swept_away_with_their_files():
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    dataset = Dataset.objects.get(project=project, role="pool")
    parts = [
        FeaturePart.objects.create(build=uuid4(), dataset=dataset, number=0, first_row=0, stop_row=1) for _ in range(2)
    ]
    for part in parts:
        default_storage.save(f"features/{project.pk}/parts/{part.name}", ContentFile(b"features"))
    FeaturePart.objects.filter(pk=parts[0].pk).update(created_at=timezone.now() - timedelta(hours=13))
    tasks.forget_abandoned_parts_task()
    assert list(FeaturePart.objects.all()) == parts[1:]
    assert default_storage.listdir(f"features/{project.pk}/parts")[1] == [str(parts[1].name)]


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_a_feature_file_has_the_same_bytes_whoever_made_its_parts(monkeypatch, helpers):
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    dataset = Dataset.objects.select_related("project").get(project=project, role="pool")
    whole = features.ensure_matrix(dataset)
    expected = (whole.sha256, whole.rows)
    whole.delete()
    monkeypatch.setattr(feature_rows, "BATCH_ROWS", 8)
    monkeypatch.setattr(feature_parts, "PART_BATCHES", 2)

    def help_making():
        for build in FeaturePart.objects.order_by("build").values_list("build", flat=True).distinct():
            feature_parts.help_making(build=build)

    with beside(helpers, help_making):
        made = features.ensure_matrix(dataset)
    assert dataset.row_count > 48
    assert (made.sha256, made.rows) == expected
    assert FeatureMatrix.objects.count() == 1
    assert not FeaturePart.objects.exists()
    assert default_storage.listdir(f"features/{project.pk}/parts")[1] == []


def test_features_whose_rows_are_gone_are_not_put_together(monkeypatch):
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    dataset = Dataset.objects.select_related("project").get(project=project, role="pool")
    FeatureMatrix.objects.all().delete()
    monkeypatch.setattr(feature_rows, "BATCH_ROWS", 8)
    monkeypatch.setattr(feature_parts, "PART_BATCHES", 2)
    dataset.row_count += 1
    with pytest.raises(LookupError, match="are gone"):
        features.ensure_matrix(dataset)
    assert not FeaturePart.objects.exists()
    assert not FeatureMatrix.objects.exists()


@pytest.fixture
def large(monkeypatch):
    """Return an upload that is cut into five parts."""
    monkeypatch.setattr(feature_rows, "BATCH_ROWS", 8)
    monkeypatch.setattr(feature_parts, "PART_BATCHES", 2)
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    dataset = Dataset.objects.select_related("project").get(project=project, role="pool")
    assert not FeatureMatrix.objects.filter(dataset=dataset).exists()
    assert dataset.row_count == 80
    return dataset


def counted(monkeypatch):
    """Count the rows that are made features of."""
    rows = []
    real = feature_rows.batches

    def noted(dataset, *, first=0, stop=None):
        rows.append((first, stop))
        return real(dataset, first=first, stop=stop)

    monkeypatch.setattr(feature_rows, "batches", noted)
    return rows


class Killed(BaseException):
    """Ends a worker in the middle of its work."""


def test_whoever_takes_over_goes_on_with_the_parts_that_were_made(large, monkeypatch):
    expected = features.ensure_matrix(large).sha256
    FeatureMatrix.objects.all().delete()
    real, made = feature_parts.make_part, []

    def die_at_the_third(*, build):
        if len(made) == 3:
            raise Killed
        made.append(build)
        return real(build=build)

    monkeypatch.setattr(feature_parts, "make_part", die_at_the_third)
    with pytest.raises(Killed):
        features.ensure_matrix(large)
    assert FeaturePart.objects.filter(done=True).count() == 3
    # One of their files is lost as well.
    lost = FeaturePart.objects.select_related("dataset").get(number=1)
    default_storage.delete(feature_parts._name_of(lost))
    FeaturePart.objects.update(created_at=timezone.now() - timedelta(hours=11))
    monkeypatch.setattr(feature_parts, "make_part", real)
    rows = counted(monkeypatch)
    assert features.ensure_matrix(large).sha256 == expected
    assert rows == [(16, 32), (48, 64), (64, 80)]
    assert not FeaturePart.objects.exists()
    assert default_storage.listdir(f"features/{large.project_id}/parts")[1] == []


def test_a_disk_that_is_full_when_the_file_is_put_together_costs_no_part(large, monkeypatch):
    def full(*arguments, **named):
        for batch in arguments[1]:
            assert len(batch)
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(features, "write_matrix", full)
        with pytest.raises(OSError, match="No space"):
            features.ensure_matrix(large)
    assert FeaturePart.objects.filter(done=True).count() == 5
    rows = counted(monkeypatch)
    features.ensure_matrix(large)
    assert rows == []


def test_parts_made_before_a_record_was_emptied_are_of_no_more_use(large, monkeypatch):
    rows = counted(monkeypatch)
    list(feature_parts.transformed(large, features.featurizer_of(large.project), emptied=0))
    assert len(rows) == 5
    list(feature_parts.transformed(large, features.featurizer_of(large.project), emptied=1))
    assert len(rows) == 10
    assert FeaturePart.objects.values("build").distinct().count() == 2


def test_features_that_were_changed_meanwhile_end_the_work(large, monkeypatch):
    monkeypatch.setattr(features.featurizer_of(large.project).__class__, "version", "another")
    parts = feature_parts._open_parts(large, "as it was", 0)
    with pytest.raises(LookupError, match="were changed"):
        feature_parts.make_part(build=parts[0].build)


def test_whoever_comes_second_takes_the_file_of_the_first(large, monkeypatch):
    """Both share their parts; when the second puts them together, the first has stored the file and forgotten them."""
    real = features.write_matrix
    first = {}

    def overtaken(path, batches, *, dimension):
        if not first:
            first["stored"] = True
            first["matrix"] = features.ensure_matrix(large)
        return real(path, batches, dimension=dimension)

    monkeypatch.setattr(features, "write_matrix", overtaken)
    rows = counted(monkeypatch)
    stored = features.ensure_matrix(large)
    assert stored == first["matrix"]
    assert FeatureMatrix.objects.count() == 1
    assert len(rows) in (5, 10)
    assert not FeaturePart.objects.exists()


def test_a_living_holder_says_that_it_still_wants_its_parts(large, monkeypatch):
    """Half a day passes with each part, and the clock sweeps after it."""
    monkeypatch.setattr(feature_parts, "WANTED_EVERY_SECONDS", -1.0)
    real, kept = feature_parts._still_wanted, []

    def after_half_a_day(build):
        FeaturePart.objects.update(created_at=timezone.now() - timedelta(hours=13))
        real(build)
        kept.append(feature_parts.forget_abandoned())

    monkeypatch.setattr(feature_parts, "_still_wanted", after_half_a_day)
    features.ensure_matrix(large)
    assert kept == [0] * 6
