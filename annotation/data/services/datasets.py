"""Uploads: received and kept, read by a worker, stored whole or not at all, then forgotten as files."""

import gc
import hashlib
import logging
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any, BinaryIO, cast
from uuid import UUID, uuid4

from celery.exceptions import SoftTimeLimitExceeded
from django.contrib.auth.models import AbstractBaseUser
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import models, transaction
from django.db.models.functions import Now

from annotation import signals
from annotation.budget.services import names_more_than
from annotation.data.pixels import PixelFile
from annotation.data.readers.checks import cut_spans_words
from annotation.data.readers.reading import Upload
from annotation.data.readers.unknown_labels import unknown_labels
from annotation.data.services import (
    charged_start,
    check_columns,
    drafts,
    import_parts,
    mappings,
    pool_files,
    registered,
    shared_rows,
    uploads,
)
from annotation.data.services.pictures import PictureSpool
from annotation.data.services.pseudonyms import reference_of
from annotation.data.services.records import RECORD_COLUMNS, RECORDS, RecordWriter
from annotation.data.services.shared_rows import HIDDEN
from annotation.errors import InvalidUpload, NamedTooOften, ScannerAway, UploadRefused, WorkCancelled
from annotation.models import (
    BadRows,
    Dataset,
    DatasetRole,
    DatasetState,
    Job,
    LeasedWork,
    Oracle,
    PoolSource,
    Project,
    Record,
    WorkState,
)
from annotation.models.database import copied_into
from annotation.models.retention import Forgetting
from annotation.work import scanning
from annotation.work.services import attempts, files, interruptions, jobs
from annotation.work.services.attempts import collector_paused
from dpal.reading.rows import BadRowReport, FirstRows, Layout
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import quota_of
from privacy.wording import as_message, as_plural_message, joined_messages


def refuse_more_than_declared(dataset: Dataset) -> None:
    """Raise `NamedTooOften` before an upload becomes ready; forgotten records still count for their contributor."""
    if dataset.role != DatasetRole.POOL:
        return
    project = dataset.project
    # Whoever joins, or ends another upload, waits here, and so do we.
    account = BudgetAccount.objects.select_for_update(no_key=True).get(pk=project.pool_account_id)
    quota = quota_of(account)
    if quota is None or account.unit != "record":
        return
    reason = ""
    if names_more_than(project, quota.records_per_person, with_dataset=dataset):
        reason = as_message(
            "Nothing was stored: a person would have more than the {number} records declared to the population.",
            number=quota.records_per_person,
        )
    elif _names_somebody_forgotten(dataset):
        reason = as_message("Nothing was stored: the file names a person who was erased here.")
    if reason:
        raise NamedTooOften(HIDDEN, uploader_reason=reason)


def _names_somebody_forgotten(dataset: Dataset) -> bool:
    references = set(Forgetting.objects.filter(project=dataset.project_id).values_list("reference", flat=True))
    if not references:
        return False
    named = Record.objects.filter(dataset=dataset, contributor__isnull=False)
    people = named.order_by().values_list("contributor", flat=True).distinct().iterator()
    return any(reference_of(project=dataset.project, contributor=bytes(each or b"")) in references for each in people)


logger = logging.getLogger(__name__)
MAXIMUM_ATTEMPTS = 5
LOOK_AGAIN_SECONDS = 0.1
# A file whose reading was cancelled waits so long to be read again.
CANCELLED_KEPT = timedelta(days=7)
UploadProgress = Callable[[int, int, int], None]


def receive_upload(
    *,
    project: Project,
    file: "File[bytes]",
    name: str,
    role: str = DatasetRole.POOL,
    bad_rows: str = BadRows.KEEP_GOOD,
    mapping: Mapping[str, Any] | None = None,
    uploaded_by: AbstractBaseUser | None = None,
    start_epsilon: float | None = None,
    confirm_few: bool,
    send: bool = True,
) -> Dataset:
    """Keep a file and have a worker read it; `InvalidUpload` names the field and the rule, and nothing is kept."""
    uploads.check_upload(project=project, role=role, bad_rows=bad_rows, size=file.size)
    shared_rows.refuse_beside_unread(project=project, role=role, uploader_id=uploaded_by.pk if uploaded_by else None)
    registered.refuse_beside(project=project, role=role)
    jobs.refuse_when_busy()
    starts = role == DatasetRole.CHARGED_START
    limit = charged_start.check_start(project, start_epsilon) if starts else 0.0
    mapping = mappings.with_control(project, role, file, name, mapping or {})
    file.seek(0)
    # Ended here, since its sender has one look at a time.
    suffix = uploads.open_upload(file, name, mappings.layout_of(project, role, mapping), look=FirstRows(1)).suffix
    file.seek(0)
    if not confirm_few:
        drafts.refuse_few(drafts.forecast_upload(project=project, file=file, name=name, role=role, mapping=mapping))
        file.seek(0)
    digest = uploads.keyed_digest(file)
    kept = uploads.keep_file(file, f"{uploads.FOLDER}/{project.pk}/{uuid4()}/upload{suffix}")
    try:
        with transaction.atomic():
            if role == DatasetRole.POOL:
                # No checks are made meanwhile.
                Project.objects.select_for_update(no_key=True).get(pk=project.pk)
                check_columns.refuse_telling_pool(project=project, mapping=mapping)
            return Dataset.objects.create(
                project=project,
                job=jobs.open_job(project=project, kind=jobs.IMPORT, owner=uploaded_by, send=send),
                name=name[:200],
                role=role,
                bad_rows=bad_rows,
                upload=kept,
                upload_digest=digest,
                mapping=mapping,
                account=charged_start.open_start_account(project, limit, actor=uploaded_by) if starts else None,
                in_columns=pool_files.lies_in_columns(project, role),
                uploaded_by=uploaded_by,  # type: ignore[misc]
            )
    except BaseException:
        default_storage.delete(kept)
        raise


def import_dataset(*, job_id: UUID | str, on_progress: UploadProgress | None = None) -> None:
    """Read an upload and store its rows, once however often it is called; all of it commits together."""
    job = Job.objects.select_related("project", "dataset__project").get(pk=job_id, kind=jobs.IMPORT)
    ending = ImportEnding()
    with attempts.attempt_at(job, ending) as lease:
        if lease is not None:
            if (source := registered.source_of(job.dataset)) is not None:
                _register(source, job, lease)
            else:
                _read(job.dataset, job, lease, ending.report, on_progress)
            forget_upload(dataset_id=job.dataset.pk)


class ImportEnding(attempts.Ending):
    """An import charges nothing: a refused file is forgotten, and one that could not be read is read again."""

    maximum = MAXIMUM_ATTEMPTS
    # As long a file would take as long again, so its time is a refusal.
    refusals = (InvalidUpload, UploadRefused, WorkCancelled, ScannerAway, SoftTimeLimitExceeded)

    def __init__(self) -> None:
        self.report = BadRowReport()

    def killed_words(self, row: LeasedWork) -> str:
        assert isinstance(row, Job)
        given_up = as_message(
            "Reading stopped {attempts} times without an end; upload the file again.", attempts=self.maximum
        )
        return joined_messages(" ", [given_up, row.error])

    def give_up(self, row: LeasedWork, reason: str, *, uploader_reason: str = "") -> None:
        assert isinstance(row, Job)
        _refuse(row.dataset, row, self.report, reason, uploader_reason=uploader_reason)
        forget_upload(dataset_id=row.dataset.pk)

    def refused(self, row: LeasedWork, refusal: Exception) -> None:
        assert isinstance(row, Job)
        if isinstance(refusal, ScannerAway):
            # The file stays; whatever it holds, nobody has read it.
            import_parts.discard_parts(row.dataset)
            logger.warning("import job %s, attempt %s: no word from the virus scanner", row.pk, row.attempt)
            scanning.put_off(row)
        elif isinstance(refusal, WorkCancelled):
            # The file stays here, too, so that it can be read again.
            import_parts.discard_parts(row.dataset)
            attempts.fail_work(row=row, error=str(refusal))
        elif isinstance(refusal, SoftTimeLimitExceeded):
            self.give_up(row, interruptions.reason_of(refusal))
        else:
            self.give_up(row, str(refusal), uploader_reason=getattr(refusal, "uploader_reason", ""))

    def failed(self, row: LeasedWork, error: Exception) -> None:
        # Nothing was stored and nothing is charged, so the next attempt follows once the lease has lapsed.
        attempts.note_interruption(row=row, error=interruptions.reason_of(error))


def _register(source: PoolSource, job: Job, lease: attempts.Lease) -> None:
    dataset = source.dataset
    found, snapshot = registered.files_now(source, lease.check)
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=dataset.project_id)
        registered.refuse_beside(project=dataset.project, role=dataset.role, is_table=True)
        rows = registered.note_files(source, found, snapshot)
        if not rows:
            raise UploadRefused(as_message("Nothing was stored: {reason}.", reason=as_message("the file holds none")))
        said = as_plural_message("{n:,} row of the table", "{n:,} rows of the table", n=rows)
        _finish(dataset, job, rows, BadRowReport(), len(found), said=said)


def _read(
    dataset: Dataset, job: Job, lease: attempts.Lease, report: BadRowReport, on_progress: UploadProgress | None
) -> None:
    layout = mappings.layout_of(dataset.project, dataset.role, dataset.mapping)
    kept = str(dataset.upload.name)
    if dataset.mapping.get("without_public"):
        _read_public_first(dataset, lease)
    with ExitStack() as stack:
        comparison = shared_rows.ComparedRows(dataset)
        file = stack.enter_context(default_storage.open(kept))
        scanning.scan_upload(cast("BinaryIO", file), lease)
        pixels = None
        pictures = PictureSpool(cast("BinaryIO", stack.enter_context(tempfile.TemporaryFile())))
        if layout.kind == "image":
            spool = stack.enter_context(tempfile.TemporaryFile())
            pixels = PixelFile(cast("BinaryIO", spool), shape=layout.image_shape)
        upload = uploads.open_upload(file, kept, layout)
        apart = not layout.spans and import_parts.open_parts(dataset, upload, cast("BinaryIO", file), size=file.size)
        if apart and not import_parts.read_parts(dataset, lease, partial(_tell_parts, lease, file.size, on_progress)):
            import_parts.discard_parts(dataset)
            apart = False
        if not apart:
            file.seek(0)
            upload = uploads.open_upload(file, kept, layout)
        pool = pool_files.PoolWriter(kept.rpartition("/")[0]) if dataset.in_columns and not apart else None
        if pool:
            stack.callback(_discard_unless_ready, dataset, pool)
        stack.enter_context(transaction.atomic())
        if apart:
            rows, found = import_parts.collected(dataset, comparison)
            report.count, report.kept = found.count, found.kept
            import_parts.store_parts(dataset, lease.check)
        else:
            on_rows = partial(_tell, lease, file, on_progress)
            rows = _copy(upload, dataset, lease, report, pixels, pictures, comparison, pool, on_rows)
            if pool:
                pool_files.note_parts(dataset, pool.written)
        if report.count and dataset.bad_rows == BadRows.REFUSE_ALL:
            reason = as_message("Nothing was stored: {reason}.", reason=report.sentence())
            raise UploadRefused(reason, uploader_reason=_about_labels(dataset, file, kept, layout, reason))
        if not rows:
            none = as_message("the file holds none")
            reason = as_message("Nothing was stored: {reason}.", reason=report.sentence() if report.count else none)
            raise UploadRefused(reason, uploader_reason=_about_labels(dataset, file, kept, layout, reason))
        labelled = Record.objects.filter(dataset=dataset, label__isnull=False)
        if dataset.role == DatasetRole.CHARGED_START and not labelled.exists():
            raise UploadRefused("No row has a label.")
        pictures.copy_beside(dataset, lease)
        if pixels:
            pixels.close()
            dataset.pixels_sha256 = hashlib.file_digest(spool, "sha256").hexdigest()
            dataset.pixels.name = _keep_pixels(dataset, job, File(spool))
        registered.refuse_beside(project=dataset.project, role=dataset.role)
        shared_rows.refuse_shared(dataset, comparison)
        refuse_more_than_declared(dataset)
        _finish(dataset, job, rows, report, file.size)


def _about_labels(dataset: Dataset, file: "File[bytes]", kept: str, layout: Layout, reason: str) -> str:
    """Return the reason with the labels that are no class; empty where there are none or they are private."""
    if dataset.role not in (DatasetRole.PUBLIC_TEST, DatasetRole.PUBLIC_START) or layout.kind == "image":
        return ""
    file.seek(0)
    found = unknown_labels(uploads.open_upload(file, kept, layout).cells(), layout)
    return joined_messages(" ", [reason, found]) if found else ""


def _read_public_first(pool: Dataset, lease: attempts.Lease) -> None:
    """Return once no other upload of the project is on its way whose rows the pool is to be without."""
    coming = Dataset.objects.filter(project=pool.project_id, state=DatasetState.RECEIVING).exclude(role=pool.role)
    while (other := coming.order_by("pk").first()) is not None:
        import_dataset(job_id=other.job_id)
        lease.check()
        time.sleep(LOOK_AGAIN_SECONDS)


def _copy(
    upload: Upload,
    dataset: Dataset,
    lease: attempts.Lease,
    report: BadRowReport,
    pixels: PixelFile | None,
    pictures: PictureSpool,
    comparison: shared_rows.ComparedRows,
    pool: pool_files.PoolWriter | None,
    tell: Callable[[int], None],
) -> int:
    spans: list[tuple[str, Any]] = []
    with ExitStack() as stack:
        stack.enter_context(collector_paused())
        writer: RecordWriter | pool_files.PoolWriter
        if pool:
            writer = pool
        else:
            copy = stack.enter_context(copied_into(RECORDS, RECORD_COLUMNS))
            writer = RecordWriter(copy, dataset_id=dataset.pk)
        for read in upload.batches():
            lease.check()
            report.add(read.bad)
            report.cut_spans += read.cut_spans
            batch = comparison.unshared(read)
            if upload.layout.spans and batch.labels is not None:
                spans += zip(batch.texts or (), batch.labels, strict=True)
                batch.labels = None
            if report.count and dataset.bad_rows == BadRows.REFUSE_ALL:
                continue  # nothing will be stored, but all bad rows are counted
            writer.write(batch)
            comparison.add(batch)
            if pixels and batch.pixels is not None:
                pixels.append(batch.pixels)
            pictures.append(batch.pictures or ())
            tell(writer.rows)
            # Of the young alone, should a reader ever leave a cycle behind.
            gc.collect(0)
        writer.close()
    # Numbers of spans are given by the table of their sets, which cannot be written during the copy.
    signals.spans_read.send(sender=None, dataset=dataset, found=spans)
    return writer.rows


def _discard_unless_ready(dataset: Dataset, pool: pool_files.PoolWriter) -> None:
    if not Dataset.objects.filter(pk=dataset.pk, state=DatasetState.READY).exists():
        pool.discard()


def _rows_read(rows: int) -> str:
    return as_plural_message("{n:,} row read", "{n:,} rows read", n=rows)


def _tell(lease: attempts.Lease, file: "File[bytes]", on_progress: UploadProgress | None, rows: int) -> None:
    done = file.tell()
    lease.report(progress_done=done, progress_total=file.size, message=_rows_read(rows))
    if on_progress:
        on_progress(rows, done, file.size)


def _tell_parts(
    lease: attempts.Lease, size: int, on_progress: UploadProgress | None, rows: int, parts_done: int, parts: int
) -> None:
    done = size * parts_done // parts
    lease.report(progress_done=done, progress_total=size, message=_rows_read(rows))
    if on_progress:
        on_progress(rows, done, size)


def _finish(dataset: Dataset, job: Job, rows: int, report: BadRowReport, size: int, *, said: str = "") -> None:
    dataset.state = DatasetState.READY
    dataset.row_count = rows
    _write_report(dataset, report)
    dataset.save(update_fields=["state", "row_count", "bad_row_count", "bad_row_report", "pixels", "pixels_sha256"])
    stored = said or as_plural_message("{n:,} row stored", "{n:,} rows stored", n=rows)
    left_out = (
        as_plural_message("{n:,} bad row left out", "{n:,} bad rows left out", n=report.count) if report.count else ""
    )
    message = joined_messages(", ", [stored, left_out, cut_spans_words(report.cut_spans)])
    attempts.finish_work(row=job, progress_done=size, progress_total=size, message=message)
    if dataset.role != DatasetRole.POOL:
        return
    if dataset.project.oracle == Oracle.CROWD:
        signals.pool_stored.send(Dataset, dataset=dataset)
    else:
        jobs.send_project_changed(dataset.project_id)


def _refuse(dataset: Dataset, job: Job, report: BadRowReport, reason: str, *, uploader_reason: str = "") -> None:
    with transaction.atomic():
        import_parts.discard_parts(dataset)
        dataset.state = DatasetState.REFUSED
        _write_report(dataset, report)
        dataset.uploader_reason = uploader_reason
        dataset.save(update_fields=["state", "bad_row_count", "bad_row_report", "uploader_reason"])
        attempts.fail_work(row=job, error=reason)


def _write_report(dataset: Dataset, report: BadRowReport) -> None:
    dataset.bad_row_count = report.count
    dataset.bad_row_report = [asdict(row) for row in report.kept]


def _keep_pixels(dataset: Dataset, job: Job, spool: "File[bytes]") -> str:
    folder = str(dataset.upload.name).rpartition("/")[0]
    for attempt in range(1, job.attempt):
        files.delete(f"{folder}/pixels-{attempt}.npy")
    return default_storage.save(f"{folder}/pixels-{job.attempt}.npy", spool)


def forget_upload(*, dataset_id: int) -> None:
    """Delete the file as sent: it holds contributors by name and columns nobody asked for."""
    dataset = Dataset.objects.get(pk=dataset_id)
    if dataset.state != DatasetState.RECEIVING and dataset.upload:
        default_storage.delete(str(dataset.upload.name))
        Dataset.objects.filter(pk=dataset_id).update(upload="")


def read_again(*, dataset: Dataset, owner: AbstractBaseUser | None = None) -> Job | None:
    with transaction.atomic():
        locked = Dataset.objects.select_for_update(of=("self",)).select_related("job", "project").get(pk=dataset.pk)
        there = locked.upload or registered.source_of(locked)
        if locked.state != DatasetState.RECEIVING or locked.job.state != WorkState.FAILED or not there:
            return None
        job = jobs.open_job(project=locked.project, kind=jobs.IMPORT, owner=owner)
        Dataset.objects.filter(pk=locked.pk).update(job=job)
    return job


def forget_read_uploads() -> int:
    """Delete files whose worker died after reading them, and those cancelled long ago; return how many those were."""
    long_ago = models.ExpressionWrapper(Now() - CANCELLED_KEPT, output_field=models.DateTimeField())
    cancelled = Dataset.objects.filter(state=DatasetState.RECEIVING, job__finished_at__lt=long_ago)
    cancelled.filter(job__state=WorkState.FAILED).update(state=DatasetState.REFUSED)
    left = Dataset.objects.exclude(state=DatasetState.RECEIVING).exclude(upload="").values_list("pk", flat=True)
    for dataset_id in left:
        forget_upload(dataset_id=dataset_id)
    return len(left)
