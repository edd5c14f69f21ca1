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
