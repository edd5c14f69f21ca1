"""Long work as every route describes it that starts some."""

from datetime import datetime
from typing import Any
from uuid import UUID

from ninja import Field, Schema

from annotation.models import Job
from annotation.rest.responses import AsCode
from annotation.work.services import jobs


class ExportOut(Schema):
    """A file of labels that a job writes; `file` is where it is below `/api/v1/`, for whoever may read labels.

    It is null before the file is there, after `expires_at`, and once something in the project was forgotten.
    """

    format: str
    history: bool
    file: str | None
    size: int | None
    sha256: str | None
    expires_at: datetime | None


class JobOut(Schema):
    """How far long work is."""

    id: UUID
    kind: str
    state: str
    progress_done: int
    progress_total: int | None
    message: str
    message_as_code: AsCode = Field(None, alias="message")
    error: str
    error_as_code: AsCode = Field(None, alias="error")
    created_at: datetime
    finished_at: datetime | None
    export: ExportOut | None = Field(None, description="What a job of the kind `export` writes.")

    @staticmethod
    def resolve_export(job: Job) -> dict[str, Any] | None:
        """Return the file that the job wrote, while somebody may have it."""
        export = getattr(job, "export", None) if job.kind == jobs.EXPORT else None
        if export is None:
            return None
        described: dict[str, Any] = {
            "format": export.format,
            "history": export.history,
            "expires_at": export.expires_at,
        }
        if not export.may_be_read:
            return described | {"file": None, "size": None, "sha256": None}
        file = f"projects/{export.project.slug}/exports/{job.pk}/file"
        return described | {"file": file, "size": export.size, "sha256": export.sha256}
