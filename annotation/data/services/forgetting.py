"""Forgetting: records become empty slots, contributors are forgotten."""

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Now
from numpy.typing import NDArray

from annotation.data.services import drafts, pool_files, registered
from annotation.data.services.pseudonyms import reference_of, site_pseudonyms
from annotation.errors import ForgettingRefused
from annotation.models import (
    Arrival,
    Assignment,
    AssignmentState,
    Consensus,
    Dataset,
    DatasetRole,
    DatasetState,
    Encounter,
    GateRun,
    GateState,
    Label,
    Project,
    Query,
    QueryState,
    Record,
    Report,
    SpanSet,
    Survey,
    WorkState,
)
from annotation.models.exports import Export
from annotation.models.people import IdempotentAnswer
from annotation.models.quality import GoldQuery, Opinion, Review
from annotation.models.retention import Forgetting
from annotation.work.services import files, jobs
from dpal.reading.cells import BadCell, read_contributor
from privacy.wording import as_message

ZEROED_AT_ONCE = 4096
# What a pixel file's name says of emptied rows, after the attempt that wrote it.
EMPTIED = re.compile(r"(?<=\d)-\d+$")
# What a claim over the REST interface was answered with, kept for a repeated request, shows the question.
SHOWS_A_QUESTION = '"leased_until"'


@dataclass(frozen=True, slots=True)
class Emptied:
    records: int
    questions: int


def empty_records(records: QuerySet[Record], *, project: Project) -> Emptied:
    """Empty records of a project with all that hangs on them, in the caller's transaction, which holds the project."""
    chosen = records.filter(dataset__project=project).order_by()
    emptied = Record.objects.filter(emptied=False, pk__in=chosen.values("pk")).update(
        emptied=True,
        payload=None,
        contributor=None,
        label=None,
        metadata=None,
        text=Case(When(text__isnull=False, then=Value(""))),
    )
    # A count of whole uploads is as private as they are, and is made again where somebody asks.
    Survey.objects.filter(dataset__project=project, dataset__records__emptied=True).delete()
    Survey.objects.filter(dataset__project=project, dataset__pool_parts__emptied_count__gt=0).delete()
    questions = empty_questions(Query.objects.filter(record__emptied=True), project=project)
    return Emptied(emptied, questions)


def empty_questions(questions: QuerySet[Query], *, project: Project) -> int:
    """Withdraw questions of a project and erase what was answered to them; that somebody answered, and when, stays."""
    locked = questions.filter(project=project, emptied=False).select_for_update(no_key=True, of=("self",))
    ids = [query.pk for query in locked.order_by("pk").only("pk")]
    about = {"query__in": ids}
    held = Assignment.objects.filter(**about)
    forget_shown(**about)
    GoldQuery.objects.filter(**about).delete()
    Query.objects.filter(pk__in=ids).update(
        state=QueryState.WITHDRAWN,
        open_slots=0,
        emptied=True,
        suggested=None,
        suggested_percent=None,
        suggestion_shown=None,
        assigned_to=None,
    )
    held.filter(state=AssignmentState.LEASED).update(state=AssignmentState.EXPIRED, finished_at=Now())
    held.exclude(skip_reason="").update(skip_reason="")
    Label.objects.filter(**about, choice__isnull=False).update(choice=None)
    Consensus.objects.filter(**about).update(choice=0, votes=0, agreeing=0, settled_by=None, changed=None)
    Report.objects.filter(**about).delete()
    Opinion.objects.filter(**about).delete()
    Review.objects.filter(**about).delete()
    return len(ids)


def delete_unused_spans(project: Project) -> None:
    """Delete sets of spans that nothing refers to any more, at the end of the caller's transaction."""
    referring = (
        Label.objects.filter(query__project=project, choice=OuterRef("number")),
        Consensus.objects.filter(project=project, choice=OuterRef("number")),
        GoldQuery.objects.filter(query__project=project, choice=OuterRef("number")),
        Opinion.objects.filter(query__project=project, choice=OuterRef("number")),
        Record.objects.filter(dataset__project=project, label=OuterRef("number")),
        Query.objects.filter(project=project, suggested=OuterRef("number")),
    )
    unused = SpanSet.objects.filter(*(~Exists(rows) for rows in referring), project=project)
    # One that is locked belongs to an answer that is being stored; of the others, what was stored meanwhile is seen.
    free = list(unused.select_for_update(skip_locked=True).values_list("pk", flat=True))
    unused.filter(pk__in=free).delete()


def void_exports(project: Project) -> None:
    """Let nobody have a file of labels that was written before, in the caller's transaction; its files go after it."""
    Export.objects.filter(project=project).update(is_void=True)


def forget_shown(**about: Any) -> None:
    """Erase what people who were asked some questions, or reviewed them, were last answered over the REST interface."""
    asked = Assignment.objects.filter(**about).order_by().values("annotator")
    reviewed = Review.objects.filter(**about).order_by().values("reviewer")
    IdempotentAnswer.objects.filter(Q(user__in=asked) | Q(user__in=reviewed), body__contains=SHOWS_A_QUESTION).delete()


def forget_encounters(*, project: Project, contributor: bytes) -> None:
    Encounter.objects.filter(project=project, contributor=contributor).delete()


def emptied_rows(dataset: Dataset) -> NDArray[np.int64]:
    rows = Record.objects.filter(dataset=dataset, emptied=True).order_by("row_number")
    return np.fromiter(rows.values_list("row_number", flat=True).iterator(), dtype=np.int64)


def black_out_pixels(dataset: Dataset) -> None:
    """Overwrite the pixels of empty slots, in the file or in one that takes its place; again, it changes nothing."""
    rows = emptied_rows(dataset)
    if not dataset.pixels or not rows.size:
        return
    old = str(dataset.pixels.name)
    if files.are_local():
        path = Path(default_storage.path(old))
        zero_rows(path, rows)
        Dataset.objects.filter(pk=dataset.pk).update(pixels_sha256=_digest(path))
        return
    _replace_pixels(dataset, old, rows)


def _replace_pixels(dataset: Dataset, old: str, rows: NDArray[np.int64]) -> None:
    folder, _, name = old.rpartition("/")
    new = f"{folder}/{EMPTIED.sub('', name.removesuffix('.npy'))}-{len(rows)}.npy"
    if new != old:
        with files.written_file(new) as path:
            files.open_stored(old, dataset.pixels_sha256, lambda copy: shutil.copyfile(copy, path))
            zero_rows(path, rows)
            digest = _digest(path)
        Dataset.objects.filter(pk=dataset.pk, pixels=old).update(pixels=new, pixels_sha256=digest)
        dataset.refresh_from_db(fields=["pixels", "pixels_sha256"])
    for other in files.names_in(folder):
        if other.startswith(f"{folder}/pixels-") and other != dataset.pixels.name:
            files.delete(other)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def zero_rows(path: Path, rows: NDArray[np.int64]) -> None:
    """Write zeros over rows of an `.npy` file, in the file itself, so that whoever has it open reads zeros as well."""
    matrix = np.load(path, mmap_mode="r+", allow_pickle=False)
    for start in range(0, len(rows), ZEROED_AT_ONCE):
        matrix[rows[start : start + ZEROED_AT_ONCE]] = 0
    matrix.flush()


WAITING = (QueryState.OPEN, QueryState.DISPUTED, QueryState.SET_ASIDE, QueryState.IN_REVIEW)


@dataclass(frozen=True, slots=True)
class Traces:
    records: int
    uploads: tuple[Dataset, ...]
    waiting_questions: int
    answers: int
    passed_gate: bool
    # Whose rows are their owner's, so that nobody here can say whether they hold any of the contributor.
    registered_tables: int


def records_of(*, project: Project, contributor: bytes) -> QuerySet[Record]:
    return Record.objects.filter(dataset__project=project, dataset__role=DatasetRole.POOL, contributor=contributor)


def traces_of(*, project: Project, name: str) -> Traces:
    contributor = pseudonym_of(name)
    records = records_of(project=project, contributor=contributor)
    in_columns = {
        part: len(rows) for part, rows in pool_files.contributor_parts(project=project, contributor=contributor)
    }
    held = Q(pk__in=records.values("dataset")) | Q(pk__in={part.dataset_id for part in in_columns})
    uploads = tuple(Dataset.objects.filter(held).order_by("pk"))
    questions = Query.objects.filter(project=project, record__in=records)
    return Traces(
        records=records.count() + sum(in_columns.values()),
        uploads=uploads,
        waiting_questions=questions.filter(state__in=WAITING).count(),
        answers=Label.objects.filter(query__in=questions).count(),
        passed_gate=GateRun.objects.filter(dataset__in=uploads, state=GateState.COMMITTED).exists(),
        registered_tables=registered.tables_of(project).count(),
    )


def pseudonym_of(name: str) -> bytes:
    try:
        pseudonym = site_pseudonyms().of(read_contributor(name, required=True))
    except BadCell:
        pseudonym = None
    if pseudonym is None:
        raise ForgettingRefused("Name the contributor as the upload's column does.")
    return pseudonym


def request_forgetting(*, project: Project, name: str, actor: str, send: bool = True) -> Forgetting:
    """Open the job that forgets a contributor, or return the one that stands; refused while uploads are read."""
    contributor = pseudonym_of(name)
    reference = reference_of(project=project, contributor=contributor)
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        standing = (
            Forgetting.objects.filter(project=project, reference=reference, finished_at=None)
            .select_related("job")
            .first()
        )
        if standing is not None:
            if standing.job.state == WorkState.FAILED:
                standing.job = jobs.open_job(project=project, kind=jobs.FORGET, send=send)
                standing.save(update_fields=["job"])
            return standing
        refuse_while_read(project)
        if not _holds(project, contributor):
            raise ForgettingRefused(_nothing_found(project))
        return Forgetting.objects.create(
            project=project,
            job=jobs.open_job(project=project, kind=jobs.FORGET, send=send),
            contributor=contributor,
            reference=reference,
            actor=actor,
        )


def refuse_while_read(project: Project) -> None:
    if Dataset.objects.filter(project=project, state=DatasetState.RECEIVING).exists():
        raise ForgettingRefused("An upload is being read or in the gate. Try again afterwards.")
    if GateRun.objects.filter(project=project, state=GateState.RUNNING).exists():
        raise ForgettingRefused("An upload is being read or in the gate. Try again afterwards.")


def _holds(project: Project, contributor: bytes) -> bool:
    stored = records_of(project=project, contributor=contributor)
    return stored.exists() or any(True for _ in pool_files.contributor_parts(project=project, contributor=contributor))


def _nothing_found(project: Project) -> str:
    if project.arrival == Arrival.STREAM:
        return "A stream stores no contributors, so their records cannot be found."
    if registered.tables_of(project).exists():
        return as_message("No stored record names this contributor; rows of a registered table are dropped there.")
    return "No record of this project names that contributor."


def forget_records(*, forgetting: Forgetting) -> None:
    """Empty every record of the contributor in one transaction; what passed a gate stays, it names nobody."""
    if forgetting.contributor is None:
        return
    contributor = bytes(forgetting.contributor)
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).get(pk=forgetting.project_id)
        # First, since what counts the uploads' texts goes with what is empty then.
        pool_files.empty_contributor(project=project, contributor=contributor)
        empty_records(records_of(project=project, contributor=contributor), project=project)
        forget_encounters(project=project, contributor=contributor)
        delete_unused_spans(project)
        void_exports(project)


def discard_drafts(project: Project) -> None:
    """Throw away the files that wait for a look before they are uploaded: nobody knows yet whom they name."""
    for draft in project.upload_drafts.all():
        drafts.discard_draft(draft=draft)


def finish_forgetting(*, forgetting: Forgetting) -> None:
    """Drop the pseudonym as the last thing that was kept, in the caller's transaction."""
    Forgetting.objects.filter(pk=forgetting.pk, finished_at=None).update(contributor=None, finished_at=Now())
