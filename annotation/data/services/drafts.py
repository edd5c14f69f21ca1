"""Uploads with a look before: kept, shown as they would be read, then uploaded, thrown away, or forgotten."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, BinaryIO, cast
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import models, transaction
from django.db.models.functions import Now

from annotation.budget import charges
from annotation.choices.gates import gate_from
from annotation.choices.policies import labels_of_first_model
from annotation.data.readers.forecast import forecast_of
from annotation.data.readers.preview import PREVIEW_ROWS, Preview, preview_of
from annotation.data.services import charged_start, datasets, mappings, uploads
from annotation.errors import FewWouldPass
from annotation.models import Dataset, DatasetRole, Project, Query
from annotation.models.imports import UploadDraft
from annotation.work.services import jobs
from dpal.reading.rows import FirstRows
from dpal.reading.shapes import FileShape
from privacy.gate.forecast import PassingTexts


@dataclass(frozen=True, slots=True)
class UploadForecast:
    """Texts of a file that would pass, of the rows that were counted, and how many the first model still needs."""

    passing: PassingTexts
    needed: int
    rows: int
    is_whole: bool

    @property
    def is_too_little(self) -> bool:
        return self.passing.expected < self.needed


def forecast_upload(
    *, project: Project, file: "File[bytes]", name: str, role: str, mapping: Mapping[str, Any]
) -> UploadForecast | None:
    """Count a file as the gate would; None where reading it is not followed by a charge."""
    charge = charges.upload_charge(project, role)
    if charge is None or not (charge.epsilon or charge.delta):
        return None
    passed = Query.objects.filter(project=project, gate_run__isnull=False).count()
    needed = max(0, labels_of_first_model(project.settings) - passed)
    layout = mappings.layout_of(project, role, mapping)
    file.seek(0)
    passing, rows, is_whole = forecast_of(
        cast("BinaryIO", file),
        name,
        layout,
        gate_from(project.settings),
        uploads=project.gate_window or 1,
        needed=needed,
        maximum_bytes=settings.UPLOAD_MAX_BYTES,
    )
    return UploadForecast(passing, needed, rows, is_whole)


def refuse_few(found: UploadForecast | None) -> None:
    if found is not None and found.is_too_little:
        passing = found.passing
        raise FewWouldPass(passing.expected, passing.low, passing.high, needed=found.needed)


KEPT_HOURS = 24


def keep_draft(
    *,
    project: Project,
    file: "File[bytes]",
    name: str,
    role: str,
    bad_rows: str,
    owner: User,
    start_epsilon: float | None = None,
    reading: Mapping[str, Any] | None = None,
) -> UploadDraft:
    """Keep a file for a day, with the mapping it suggests; `InvalidUpload` if no mapping could make it readable."""
    uploads.check_upload(project=project, role=role, bad_rows=bad_rows, size=file.size)
    jobs.refuse_when_busy()
    if role == DatasetRole.CHARGED_START:
        charged_start.check_start(project, start_epsilon)
    reading = reading or {}
    shape = mappings.look_at(file, name, reading)
    mapping = mappings.suggested_mapping(project=project, role=role, shape=shape, reading=reading)
    file.seek(0)
    kept = uploads.keep_file(file, f"{uploads.FOLDER}/{project.pk}/{uploads.DRAFTS}/{uuid4()}{shape.format}")
    try:
        return UploadDraft.objects.create(
            project=project,
            owner=owner,
            upload=kept,
            name=name[:200],
            role=role,
            bad_rows=bad_rows,
            start_epsilon=start_epsilon,
            mapping=mapping,
        )
    except BaseException:
        default_storage.delete(kept)
        raise


def shape_of_draft(draft: UploadDraft, reading: Mapping[str, Any] | None = None) -> FileShape:
    with draft.upload.open() as file:
        return mappings.look_at(file, draft.name, draft.mapping if reading is None else reading)


def preview_draft(draft: UploadDraft) -> Preview:
    """Return the first rows as they would be read; `InvalidUpload` if a column is not there or not named yet."""
    layout = mappings.layout_of(draft.project, draft.role, draft.mapping)
    with draft.upload.open() as file:
        return preview_of(uploads.open_upload(file, draft.name, layout, look=FirstRows(PREVIEW_ROWS)), layout)


def map_draft(*, draft: UploadDraft, mapping: Mapping[str, Any]) -> UploadDraft:
    mappings.check_mapping(mapping)
    draft.mapping = dict(mapping)
    draft.save(update_fields=["mapping"])
    return draft


def read_draft_as(*, draft: UploadDraft, reading: Mapping[str, Any]) -> UploadDraft:
    shape = shape_of_draft(draft, reading)
    mapping = mappings.suggested_mapping(project=draft.project, role=draft.role, shape=shape, reading=reading)
    return map_draft(draft=draft, mapping=mapping)


def forecast_draft(draft: UploadDraft) -> UploadForecast | None:
    """Return what of the file would pass the gate; None where no gate is charged for it."""
    with draft.upload.open() as file:
        return forecast_upload(
            project=draft.project, file=file, name=draft.name, role=draft.role, mapping=draft.mapping
        )


def upload_draft(*, draft: UploadDraft, by: User, confirmed: bool = False) -> Dataset:
    """Upload what was looked at, once however often it is asked for; the second time there is no draft."""
    with transaction.atomic():
        held = UploadDraft.objects.select_for_update().get(pk=draft.pk)
        with held.upload.open() as file:
            dataset = datasets.receive_upload(
                project=held.project,
                file=file,
                name=held.name,
                role=held.role,
                bad_rows=held.bad_rows,
                mapping=held.mapping,
                uploaded_by=by,
                start_epsilon=held.start_epsilon,
                confirm_few=confirmed,
            )
        held.delete()
    default_storage.delete(str(draft.upload.name))
    return dataset


def discard_draft(*, draft: UploadDraft) -> None:
    UploadDraft.objects.filter(pk=draft.pk).delete()
    default_storage.delete(str(draft.upload.name))


def forget_old_drafts() -> int:
    limit = models.ExpressionWrapper(Now() - timedelta(hours=KEPT_HOURS), output_field=models.DateTimeField())
    old = list(UploadDraft.objects.filter(created_at__lt=limit))
    for draft in old:
        discard_draft(draft=draft)
    return len(old)
