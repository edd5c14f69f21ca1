"""Files that are stored elsewhere and copied to this host.

A stand-in keeps them in memory here; `make test-hosts` has a real store.
"""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage, default_storage

from annotation.data.services.pictures import image_of
from annotation.errors import FileDamaged
from annotation.models import Record
from annotation.work import file_cache
from annotation.work.services import files
from learner.errors import ArtifactCorrupt
from learner.models import FeatureMatrix, ReleaseState
from learner.pools import features
from learner.pools.features import pixel_batches
from learner.releases import storage
from learner.releases.services import checks
from learner.rounds.services import forgetting
from tests import learning
from tests.factories import make_user

NAMES = [f"pixel_{number}" for number in range(16)]


class Elsewhere(InMemoryStorage):
    def __init__(self):
        super().__init__()
        self.fetched = []

    def get_available_name(self, name, max_length=None):
        return name

    def fetch(self, name, target):
        self.fetched.append(name)
        with self.open(name) as file:
            target.write(file.read())

    def read_part(self, name, start, length):
        with self.open(name) as file:
            return file.read()[start : start + length]


@pytest.fixture
def elsewhere(settings, monkeypatch, tmp_path):
    """Store files elsewhere, and copies under this test's folder."""
    settings.FILE_CACHE_DIR, settings.FILE_CACHE_BYTES = tmp_path / "copies", 1_000_000
    # One thread of this process would sweep other tests' folders, too.
    monkeypatch.setattr(file_cache, "sweep_from_now_on", lambda: None)
    made = Elsewhere()
    default_storage.exists("")
    monkeypatch.setattr(default_storage, "_wrapped", made)
    return made


def keep(name, body):
    default_storage.save(name, ContentFile(body))
    return hashlib.sha256(body).hexdigest()


def copies():
    return sorted(path.name.partition("@")[0] for path in file_cache._copies())


def test_a_copy_is_made_once_and_checked(elsewhere):
    digest = keep("features/1/x.npy", b"0123456789")
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda _: files.open_stored("features/1/x.npy", digest, Path.read_bytes), range(8))
        assert list(found) == [b"0123456789"] * 8
    assert elsewhere.fetched == ["features/1/x.npy"]
    with pytest.raises(FileDamaged):
        files.open_stored("features/1/x.npy", "0" * 64, Path.read_bytes)
    assert copies() == ["x.npy"]
    assert list((file_cache._folder() / "partial").iterdir()) == []


@pytest.mark.django_db(transaction=True)
def test_images_are_shown_by_the_row_and_emptied_in_a_file_of_another_name(elsewhere):
    project = learning.open_images(make_user())
    images = np.random.default_rng(1).integers(1, 256, size=(40, 16))
    dataset = learning.upload(project, [[str(value) for value in image] for image in images], NAMES)
    dataset.refresh_from_db()
    record = Record.objects.filter(dataset=dataset).select_related("dataset").order_by("row_number")[1]
    shown = image_of(record)
    assert elsewhere.fetched == []
    features.open_features(dataset)
    before = str(dataset.pixels.name), str(FeatureMatrix.objects.get().file.name)
    Record.objects.filter(pk=record.pk).update(emptied=True, payload=None, contributor=None, label=None)
    for _ in range(2):
        forgetting.erase_from_files(project=project)
        dataset.refresh_from_db()
        after = str(dataset.pixels.name), str(FeatureMatrix.objects.get().file.name)
        assert not set(before) & set(after)
        assert sorted([*files.names_in("datasets"), *files.names_in("features")]) == sorted(after)
    assert copies() == []
    # A page that read the row before its file was replaced finds it under the new name.
    assert image_of(record) != shown
    pixels = np.concatenate(list(pixel_batches(dataset)))
    assert not pixels[1].any()
    np.testing.assert_array_equal(np.delete(pixels, 1, axis=0).reshape(39, 16), np.delete(images, 1, axis=0))
    assert not features.open_features(dataset)[1].any()


@pytest.mark.django_db(transaction=True)
def test_a_release_is_made_checked_and_deleted_elsewhere(elsewhere):
    project = learning.open_trusted(make_user(), training_epsilon=100.0, pool_epsilon=400.0)
    learning.fill_trusted(project)
    release = learning.run_to_release(project, make_user(), version=1)
    assert sorted(files.names_in(release.folder)) == sorted(f"{release.folder}/{name}" for name in release.digests)
    assert checks.check_release(release_id=release.pk).state == ReleaseState.RELEASED
    with storage.open_file(release=release, name="weights.json") as file:
        assert hashlib.sha256(file.read()).hexdigest() == release.digests["weights.json"]
    keep(f"{release.folder}/weights.json", b"{}")
    file_cache.drop(f"{release.folder}/weights.json")
    with pytest.raises(ArtifactCorrupt):
        storage.open_file(release=release, name="weights.json")
    files.delete_folder(release.folder)
    assert list(files.names_in(release.folder)) == []
