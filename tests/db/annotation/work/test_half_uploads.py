import subprocess
import sys

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage, storages
from django.utils.functional import empty

from annotation.errors import StorageAway
from annotation.models import Dataset, Job
from dpal_site.environment import PART_BYTES, storage_settings
from tests import memory_store
from tests.factories import make_project, make_user, receive_upload

pytestmark = pytest.mark.django_db
BODY = b"text\n" + b"a line of text\n" * (2 * PART_BYTES // 15) + b"the end\n"


@pytest.fixture
def store(settings, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "its secret")
    before = settings.STORAGES
    with memory_store.running() as started:
        address = storage_settings(f"s3://bucket/site?endpoint_url={started.endpoint}&region=eu-central-1")
        address["OPTIONS"]["client_config"].retries = {"total_max_attempts": 1}
        settings.STORAGES = before | {"default": address}
        storages._storages.clear()
        default_storage._wrapped = empty
        yield started
    settings.STORAGES = before
    storages._storages.clear()
    default_storage._wrapped = empty


def test_a_large_file_goes_in_parts_and_is_seen_when_all_are_there(store):
    default_storage.save("datasets/1/a/upload.csv", ContentFile(BODY))
    assert store.objects == {"/bucket/site/datasets/1/a/upload.csv": BODY}
    assert (store.under_way, store.aborted) == ({}, 0)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("failure", [0, 500, 403])
def test_a_file_that_breaks_off_leaves_nothing(store, failure):
    store.failing[2] = failure
    with pytest.raises(StorageAway):
        default_storage.save("datasets/1/a/upload.csv", ContentFile(BODY))
    assert not default_storage.exists("datasets/1/a/upload.csv")
    assert (store.objects, store.under_way, store.aborted) == ({}, {}, 1)


def test_an_upload_whose_file_breaks_off_is_refused_with_a_reason_and_can_be_sent_again(store):
    store.failing[2] = 500
    project, person = make_project(), make_user()

    def send():
        return receive_upload(project=project, file=ContentFile(BODY), name="rows.csv", uploaded_by=person, send=False)

    with pytest.raises(StorageAway, match="does not answer"):
        send()
    assert not Dataset.objects.exists()
    assert not Job.objects.exists()
    assert store.objects == {}
    store.failing.clear()
    kept = send()
    assert list(store.objects) == [f"/bucket/site/{kept.upload.name}"]


SAVING = """
import sys
from dpal_site.environment import storage_settings
from django.core.files.base import ContentFile
from annotation.work.object_storage import ObjectStorage
options = storage_settings(sys.argv[1])["OPTIONS"]
ObjectStorage(**options).save("datasets/1/a/upload.csv", ContentFile(b"x" * int(sys.argv[2])))
"""


def test_a_file_whose_process_is_killed_on_the_way_is_never_seen(store):
    store.failing[2] = memory_store.HELD
    address = f"s3://bucket/site?endpoint_url={store.endpoint}&region=eu-central-1"
    command = [sys.executable, "-c", SAVING, address, str(len(BODY))]
    with subprocess.Popen(command) as process:
        try:
            assert store.part_came.wait(120)
        finally:
            process.kill()
    # Its parts lie under no name; the bucket's rule for incomplete uploads ends them.
    assert not default_storage.exists("datasets/1/a/upload.csv")
    assert store.objects == {}
    assert len(store.under_way) == 1
