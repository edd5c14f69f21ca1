from datetime import timedelta

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db.models.functions import Now

from annotation import retrying
from annotation.data.services import datasets, uploads
from annotation.models import Dataset, DatasetState, Job, Record, WorkState
from annotation.work import scanning
from tests.factories import make_project, make_user, receive_upload
from tests.scanner import CLEAN, INFECTED, SmallScanner

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = b"text,contributor\nwhat is the weather,a\nplay some jazz,b\n"


@pytest.fixture(autouse=True)
def apart(monkeypatch, settings, own_storage):
    settings.CLAMD_SECONDS = 30


def receive():
    return receive_upload(project=make_project(), file=ContentFile(ROWS), name="rows.csv", uploaded_by=make_user())


def read(dataset):
    datasets.import_dataset(job_id=dataset.job_id)
    return Dataset.objects.select_related("job").get(pk=dataset.pk)


def read_nothing(*args, **kwargs):
    raise AssertionError("the file was read")


def test_a_clean_file_is_read_from_its_start(settings):
    with SmallScanner(CLEAN) as scanner:
        settings.CLAMD_URL = scanner.url
        dataset = read(receive())
    assert (dataset.state, dataset.row_count, scanner.received) == (DatasetState.READY, 2, [ROWS])


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (INFECTED, "found Eicar-Test-Signature"),
        (b"INSTREAM size limit exceeded. ERROR\0", "The file is too large or"),
        (b"stream: Heuristics.Limits.Exceeded.MaxFiles FOUND\0", "The file is too large or"),
    ],
)
def test_what_does_not_pass_is_refused_unread_and_deleted(settings, monkeypatch, reply, said):
    dataset = receive()
    monkeypatch.setattr(uploads, "open_upload", read_nothing)
    with SmallScanner(reply) as scanner:
        settings.CLAMD_URL = scanner.url
        dataset_after = read(dataset)
    assert (dataset_after.state, dataset_after.job.state) == (DatasetState.REFUSED, WorkState.FAILED)
    assert said in dataset_after.job.error
    assert not dataset_after.upload
    assert not default_storage.exists(dataset.upload.name)
    assert not Record.objects.exists()


def test_a_silent_scanner_is_asked_again_and_nothing_is_read_meanwhile(settings, monkeypatch):
    with SmallScanner() as scanner:
        settings.CLAMD_URL = scanner.url
    dataset = receive()
    with monkeypatch.context() as patch:
        patch.setattr(uploads, "open_upload", read_nothing)
        for attempt in range(1, scanning.MAXIMUM_ATTEMPTS):
            job = read(dataset).job
            assert (job.state, job.attempt) == (WorkState.RUNNING, attempt)
            assert "The virus scanner does not answer" in job.error
            # Nobody holds it any more.
            Job.objects.filter(pk=job.pk).update(leased_until=Now() - timedelta(seconds=1))
        failed = read(dataset)
    assert (failed.state, failed.job.state) == (DatasetState.RECEIVING, WorkState.FAILED)
    assert "The virus scanner did not answer" in failed.job.error
    assert default_storage.exists(failed.upload.name)
    assert not Record.objects.exists()
    # Once it answers, whoever uploaded the file starts it again.
    with SmallScanner(CLEAN) as scanner:
        settings.CLAMD_URL = scanner.url
        assert retrying.retry_job(job=failed.job, owner=make_user()) is not None
        dataset = Dataset.objects.get(pk=dataset.pk)
        assert read(dataset).row_count == 2


@pytest.mark.parametrize("url", ["", "none"])
def test_a_site_without_a_scanner_reads_at_once(settings, url):
    settings.CLAMD_URL = url
    assert not scanning.is_on()
    assert read(receive()).row_count == 2
