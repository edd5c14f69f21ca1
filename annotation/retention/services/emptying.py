"""Records as empty slots: their content, what was answered about them and what was said of them go; the slot stays.

An empty slot is the neighbour that every guarantee compares with: numbers of records and of questions stay as they
were, so later choices and trainings cost and tell nothing more. It is still drawn like any other, and asks nobody.
"""

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from django.core.files.storage import default_storage
from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from numpy.typing import NDArray

from annotation.models import (
    Assignment,
    AssignmentState,
    Consensus,
    Dataset,
    Encounter,
    Label,
    Project,
    Query,
    QueryState,
    Record,
    Report,
    Survey,
)
from annotation.models.exports import Export
from annotation.models.idempotency import IdempotentAnswer
from annotation.models.marks import Tag, Tagged
from annotation.models.quality import GoldQuery, Opinion
from annotation.models.reviews import Review
from annotation.work.services import files

ZEROED_AT_ONCE = 4096
# What a pixel file's name says of emptied rows, after the attempt that wrote it.
EMPTIED = re.compile(r"(?<=\d)-\d+$")
# What a claim over the REST interface was answered with, kept for a repeated request, shows the question.
SHOWS_A_QUESTION = '"leased_until"'

EMPTY_RECORDS = """
UPDATE annotation_record SET emptied = true, payload = NULL, contributor = NULL, label = NULL,
    metadata = NULL, text = CASE WHEN text IS NOT NULL THEN '' END
WHERE id IN ({chosen}) AND NOT emptied
"""


@dataclass(frozen=True, slots=True)
class Emptied:
    """How many rows an emptying met."""

    records: int
    questions: int


def empty_records(records: QuerySet[Record], *, project: Project) -> Emptied:
    """Empty records of a project with all that hangs on them, in the caller's transaction, which holds the project.

    Waits for the answers that are being stored at this moment, and whoever opens questions about these records waits
    for us, so that afterwards nobody is asked about them.
    """
    chosen, values = records.filter(dataset__project=project).order_by().values("pk").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(EMPTY_RECORDS.format(chosen=chosen), values)
        emptied: int = cursor.rowcount
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
    Tagged.objects.filter(**about).delete()
    Tag.objects.filter(project=project, questions=None).delete()
    held.filter(state=AssignmentState.LEASED).update(state=AssignmentState.EXPIRED, finished_at=Now())
    held.exclude(skip_reason="").update(skip_reason="")
    Label.objects.filter(**about, choice__isnull=False).update(choice=None)
    Consensus.objects.filter(**about).update(choice=0, votes=0, agreeing=0, settled_by=None, changed=None)
    Report.objects.filter(**about).delete()
    Opinion.objects.filter(**about).delete()
    Review.objects.filter(**about).delete()
    return len(ids)


def void_exports(project: Project) -> None:
    """Let nobody have a file of labels that was written before, in the caller's transaction; its files go after it."""
    Export.objects.filter(project=project).update(is_void=True)


def forget_shown(**about: Any) -> None:
    """Erase what people who were asked some questions, or reviewed them, were last answered over the REST interface."""
    asked = Assignment.objects.filter(**about).order_by().values("annotator")
    reviewed = Review.objects.filter(**about).order_by().values("reviewer")
    IdempotentAnswer.objects.filter(Q(user__in=asked) | Q(user__in=reviewed), body__contains=SHOWS_A_QUESTION).delete()


def forget_encounters(*, project: Project, contributor: bytes) -> None:
    """Erase who was shown records of a contributor."""
    Encounter.objects.filter(project=project, contributor=contributor).delete()


def emptied_rows(dataset: Dataset) -> NDArray[np.int64]:
    """Return the rows of an upload that are empty slots, shape (n,), ascending."""
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
    """Store the pixels without some rows under a name that tells how many those are, then delete what was there."""
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
