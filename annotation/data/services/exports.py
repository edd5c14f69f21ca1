"""Files of labels written by a worker, kept for a while, and given out only where nothing was forgotten since."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from annotation.data.services.label_files import ExportFormat, export_labels, refuse_format
from annotation.models import UNFINISHED, Job, Label, Project, ProjectState, Role, WorkState
from annotation.models.exports import Export
from annotation.models.letters import MailKind
from annotation.people.services import letters
from annotation.work.services import attempts, files, jobs
from privacy.ledger.faults import fault_point
from privacy.wording import as_message

FOLDER = "exports"


def start_export(*, project: Project, owner: User, format: str, history: bool = False) -> Export:  # noqa: A002
    """Have a worker write the project's labels to a file; asked for again before it is there, it is the same one."""
    chosen = ExportFormat(format)
    refuse_format(project, chosen)
    jobs.refuse_when_busy()
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        alike = Export.objects.filter(project=project, format=chosen, history=history)
        standing = alike.filter(job__state__in=UNFINISHED).select_related("job").first()
        if standing is not None:
            return standing
        job = jobs.open_job(project=project, kind=jobs.EXPORT, owner=owner)
        return Export.objects.create(project=project, job=job, format=chosen, history=history)


def make_export(*, job_id: str) -> None:
    """Write the file; a killed attempt is made again from the start, under another name."""
    job = Job.objects.get(pk=job_id, kind=jobs.EXPORT)
    with attempts.attempt_at(job) as lease:
        if lease is None:
            return
        # From here on, whatever is forgotten is noted; what was forgotten before is not read any more.
        Export.objects.filter(job=job).update(is_void=False)
        export = Export.objects.filter(job=job).select_related("project").first()
        if export is None or export.project.state == ProjectState.DELETED:
            attempts.fail_work(row=job, error=as_message("The project was deleted."))
            return
        name = f"{FOLDER}/{export.project_id}/{export.pk}-{job.attempt}"
        stored = False
        try:
            with files.written_file(name) as path:
                written = _write(export, path, lease)
                fault_point("export_written")
            stored = _finish(export, job, name, written)
        finally:
            if not stored:
                files.delete(name)


@dataclass(frozen=True, slots=True)
class Written:
    rows: int
    size: int
    sha256: str


def _write(export: Export, path: Path, lease: attempts.Lease) -> Written:
    answers = Label.objects.filter(query__project=export.project_id, query__emptied=False)
    total = (answers if export.history else answers.filter(superseded_at=None)).count()
    rows = 0

    def count(number: int) -> None:
        nonlocal rows
        rows += number
        lease.check()
        lease.report(progress_done=rows, progress_total=max(total, rows))

    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        pieces: Iterator[bytes] = export_labels(
            project=export.project, format=export.format, history=export.history, count=count
        )
        for piece in pieces:
            file.write(piece)
            digest.update(piece)
            size += len(piece)
    return Written(rows, size, digest.hexdigest())


def _finish(export: Export, job: Job, name: str, written: Written) -> bool:
    """Give the file out, tell who asked for it, and take away the one before; false where something was forgotten."""
    with transaction.atomic():
        # Whoever forgets something holds the project as well: they come before us, or wait.
        Project.objects.select_for_update(no_key=True).get(pk=export.project_id)
        held = Export.objects.select_for_update(no_key=True).filter(pk=export.pk, is_void=False).first()
        if held is None:
            attempts.fail_work(
                row=job, error=as_message("Records were erased while the file was written. Write it again.")
            )
            return False
        expires_at = timezone.now() + timedelta(days=settings.EXPORT_KEPT_DAYS)
        Export.objects.filter(pk=export.pk).update(
            file=name, size=written.size, sha256=written.sha256, expires_at=expires_at
        )
        before = Export.objects.filter(project=export.project_id, format=export.format, history=export.history)
        before.exclude(pk=export.pk).exclude(file="").update(is_void=True)
        managers = letters.members_in_roles(export.project, (Role.MANAGER,))
        letters.write_notice(
            project=export.project,
            people=managers.filter(pk__in=[] if job.owner_id is None else [job.owner_id]),
            kind=MailKind.EXPORT,
            subject=f"export {export.pk}",
        )
        outcome = {
            "progress_done": written.rows,
            "progress_total": written.rows,
            "message": as_message("Done."),
        }
        attempts.finish_work(row=job, **outcome)
    remove_files(Export.objects.filter(project=export.project_id, is_void=True))
    return True


def remove_files(exports: QuerySet[Export]) -> int:
    removed = 0
    for export in exports.exclude(file=""):
        files.delete(export.file)
        removed += Export.objects.filter(pk=export.pk, file=export.file).update(file="", sha256="", size=None)
    return removed


def forget_exports() -> int:
    """Delete what is over its time or void, and what attempts left that were killed; return how many files."""
    over = Export.objects.filter(Q(expires_at__lte=Now()) | Q(is_void=True) | Q(project__state=ProjectState.DELETED))
    removed = remove_files(over)
    for name in list(files.names_in(FOLDER)):
        if not _is_wanted(name):
            files.delete(name)
            removed += 1
    return removed


def _is_wanted(name: str) -> bool:
    key, _, attempt = name.rpartition("/")[2].partition("-")
    if not (key.isdecimal() and attempt.isdecimal()):
        return False
    written = Q(job__state=WorkState.RUNNING, job__attempt=int(attempt))
    return Export.objects.filter(Q(file=name) | written, pk=int(key)).exists()
