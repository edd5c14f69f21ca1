import hashlib
import os
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage, storages
from django.test import Client
from django.urls import reverse
from django.utils.functional import empty

from annotation.data.services import datasets, drafts, retention, uploads
from annotation.data.services.pictures import image_of
from annotation.errors import FileDamaged, StorageAway
from annotation.models import Dataset, Record
from annotation.work import file_cache
from annotation.work.services import files
from dpal_site.environment import storage_settings
from learner.models import FeatureMatrix, ReleaseState
from learner.pools import features
from learner.pools.features import pixel_batches
from learner.releases.services import checks
from learner.rounds.services import forgetting
from tests import learning
from tests.factories import make_user

pytestmark = [pytest.mark.faults, pytest.mark.hosts, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def use(settings, address):
    settings.STORAGES = settings.STORAGES | {"default": storage_settings(address)}
    storages._storages.clear()
    default_storage._wrapped = empty


@pytest.fixture
def in_bucket(store, bucket, settings, monkeypatch, tmp_path):
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    settings.FILE_CACHE_DIR = tmp_path / "copies"
    settings.FILE_CACHE_BYTES = 1_000_000
    settings.VAR_DIR = tmp_path / "var"
    before = settings.STORAGES
    use(settings, store.url(bucket))
    yield bucket
    settings.STORAGES = before
    storages._storages.clear()
    default_storage._wrapped = empty


def digest_of(body):
    return hashlib.sha256(body).hexdigest()


def copies():
    return sorted(path.name.partition("@")[0] for path in file_cache._copies())


def keep(name, body):
    default_storage.save(name, ContentFile(body))
    return digest_of(body)


def test_a_file_is_signed_for_and_shown_to_nobody_else(store, in_bucket):
    keep("datasets/1/a/upload.csv", b"text\nsecret\n")
    key = "site/datasets/1/a/upload.csv"
    assert store.keys(in_bucket) == [key]
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{store.endpoint}/{in_bucket}/{key}", timeout=30)
    with pytest.raises(NotImplementedError):
        default_storage.url("datasets/1/a/upload.csv")
    seen = []
    default_storage.connection.meta.client.meta.events.register(
        "before-send.s3", lambda request, **_: seen.append(request.headers["Authorization"].decode())
    )
    default_storage.check()
    assert seen[0].startswith("AWS4-HMAC-SHA256 Credential=")


def test_another_key_is_a_store_that_refuses(store, in_bucket, settings, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "somebody else's")
    use(settings, store.url(in_bucket))
    with pytest.raises(StorageAway):
        default_storage.check()
    with pytest.raises(StorageAway):
        keep("x", b"x")


def test_a_store_that_is_away_is_told_as_such(store, in_bucket, settings, client):
    use(settings, store.url(in_bucket).replace(str(store.port), "1"))
    default_storage.client_config.retries = {"max_attempts": 0}
    with pytest.raises(StorageAway):
        default_storage.check()
    with pytest.raises(StorageAway):
        uploads.keep_file(ContentFile(b"x"), "datasets/1/a/upload.csv")


def test_parts_are_read_without_a_copy(in_bucket):
    keep("a/b.npy", bytes(range(100)))
    assert files.read_bytes("a/b.npy", 10, 3) == bytes((10, 11, 12))
    assert files.read_bytes("a/b.npy", 90, 500) == bytes(range(90, 100))
    with pytest.raises(FileNotFoundError):
        files.read_bytes("a/none", 0, 1)
    assert copies() == []


def test_a_large_file_goes_in_parts_and_comes_back_whole(in_bucket):
    body = os.urandom(40_000_000)
    with files.written_file("features/1/large.npy") as path:
        path.write_bytes(body)
    assert files.open_stored("features/1/large.npy", digest_of(body), Path.read_bytes) == body
    with default_storage.open("features/1/large.npy") as file:
        assert (file.size, digest_of(file.read())) == (len(body), digest_of(body))


def test_a_copy_is_made_once_and_checked(in_bucket, monkeypatch):
    body = b"0123456789" * 1000
    digest = keep("features/1/x.npy", body)
    fetched = []
    fetch = type(default_storage._wrapped).fetch
    monkeypatch.setattr(
        type(default_storage._wrapped), "fetch", lambda *given: (fetched.append(given[1]), fetch(*given))[1]
    )
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: files.open_stored("features/1/x.npy", digest, Path.read_bytes), range(8)))
    assert found == [body] * 8
    assert fetched == ["features/1/x.npy"]
    assert file_cache.copy_of("features/1/x.npy", digest).stat().st_mode & 0o77 == 0
    with pytest.raises(FileDamaged):
        files.open_stored("features/1/x.npy", digest_of(b"another"), Path.read_bytes)
    assert copies() == ["x.npy"]
    assert list((file_cache._folder() / "partial").iterdir()) == []


def test_copies_take_no_more_room_than_they_may(in_bucket, settings):
    settings.FILE_CACHE_BYTES = 25_000
    digests = {}
    for number in range(4):
        name = f"features/1/{number}.npy"
        digests[name] = keep(name, bytes([number]) * 10_000)
        path = file_cache.copy_of(name, digests[name])
        os.utime(path, (number, number))
    assert copies() == ["2.npy", "3.npy"]
    # What is open stays readable when its copy goes; what is asked for again is fetched again.
    with file_cache.copy_of("features/1/2.npy", digests["features/1/2.npy"]).open("rb") as open_one:
        for name in ("features/1/0.npy", "features/1/1.npy"):
            file_cache.copy_of(name, digests[name])
        assert copies() == ["0.npy", "1.npy"]
        assert open_one.read() == bytes([2]) * 10_000


def test_a_copy_goes_with_its_file(in_bucket):
    digest = keep("features/1/x.npy", b"x" * 100)
    file_cache.copy_of("features/1/x.npy", digest)
    assert file_cache.sweep() == 0
    # As another host would delete it.
    default_storage.delete("features/1/x.npy")
    assert file_cache.sweep() == 1
    assert copies() == []
    digest = keep("features/1/y.npy", b"y" * 100)
    file_cache.copy_of("features/1/y.npy", digest)
    files.delete("features/1/y.npy")
    assert copies() == []


def test_a_project_runs_from_upload_to_a_downloaded_release(store, in_bucket, client):
    owner = make_user()
    project = learning.open_trusted(owner, training_epsilon=100.0, pool_epsilon=400.0)
    learning.fill_trusted(project)
    release = learning.run_to_release(project, make_user(), version=1)
    assert not [key for key in store.keys(in_bucket) if "/upload" in key]
    assert sorted(key.rpartition("/")[2] for key in store.keys(in_bucket) if "releases/" in key) == sorted(
        release.digests
    )
    release = checks.check_release(release_id=release.pk)
    assert release.state == ReleaseState.RELEASED, release.held_back
    client = Client()
    address = reverse("learner:release_file", args=[project.slug, release.version, "weights.json"])
    assert client.get(address).status_code in (302, 404)
    client.force_login(owner)
    answer = client.get(address)
    assert answer.status_code == 200
    body = b"".join(answer.streaming_content)
    assert digest_of(body) == release.digests["weights.json"]
    part = client.get(address, headers={"Range": "bytes=5-9"})
    assert (part.status_code, b"".join(part.streaming_content)) == (206, body[5:10])
    default_storage.save(f"{release.folder}/weights.json", ContentFile(b"{}"))
    file_cache.drop(f"{release.folder}/weights.json")
    assert client.get(address).status_code >= 400


def test_images_are_shown_by_the_row_and_emptied_in_a_file_of_another_name(store, in_bucket):
    project = learning.open_images(make_user())
    images = np.random.default_rng(1).integers(1, 256, size=(40, 16))
    rows = [[str(value) for value in image] for image in images]
    dataset = learning.upload(project, rows, [f"pixel_{n}" for n in range(16)])
    dataset.refresh_from_db()
    first = str(dataset.pixels.name)
    record = Record.objects.filter(dataset=dataset).select_related("dataset").order_by("row_number")[1]
    shown = image_of(record)
    assert copies() == []
    whole = np.concatenate([np.array(batch) for batch in pixel_batches(dataset)])
    assert whole[1].any()
    features.open_features(dataset)
    stored = FeatureMatrix.objects.get(dataset=dataset)
    old_features = str(stored.file.name)
    Record.objects.filter(pk=record.pk).update(emptied=True, payload=None, contributor=None, label=None)
    forgetting.erase_from_files(project=project)
    dataset.refresh_from_db()
    stored.refresh_from_db()
    assert dataset.pixels.name != first
    assert stored.file.name != old_features
    assert sorted(store.keys(in_bucket)) == sorted(f"site/{name}" for name in (dataset.pixels.name, stored.file.name))
    assert copies() == []
    # A page that read the row before the file was replaced finds it under its new name.
    assert image_of(record) != shown
    emptied = np.concatenate([np.array(batch) for batch in pixel_batches(dataset)])
    assert not emptied[1].any()
    assert (np.delete(emptied, 1, axis=0) == np.delete(whole, 1, axis=0)).all()
    assert not features.open_features(dataset)[1].any()
    forgetting.erase_from_files(project=project)
    dataset.refresh_from_db()
    assert len(store.keys(in_bucket)) == 2


def test_drafts_and_what_nobody_owns_are_found_and_deleted(store, in_bucket):
    project = learning.open_trusted(make_user())
    draft = drafts.keep_draft(
        project=project,
        file=ContentFile(b"text\napple\nhammer\n", "a.csv"),
        name="a.csv",
        role="pool",
        bad_rows="keep_good",
        owner=make_user(),
    )
    assert len(drafts.preview_draft(draft).rows) == 2
    keep(f"datasets/{project.pk}/left/upload.csv", b"text\nleft\n")
    assert retention.forget_unowned_files() == 0
    assert retention.forget_unowned_files(older_than=timedelta(seconds=-60)) == 1
    dataset = drafts.upload_draft(draft=draft, by=make_user())
    assert len(store.keys(in_bucket)) == 1
    datasets.import_dataset(job_id=dataset.job_id)
    assert store.keys(in_bucket) == []
    assert Dataset.objects.get().row_count == 2
    files.delete_folder(f"datasets/{project.pk}")
