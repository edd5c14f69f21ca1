"""Refusal of rows that stand in data of two roles: what is private is not public, and what trains is no test."""

# Nothing is stored for it: the small side becomes keyed digests in memory and the other goes by, batch by batch. The
# last word falls under the project's lock in the transaction that makes an upload ready. The answer tells whether
# somebody's row is there, so only people who may read both sides get it.

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet
from django.utils.crypto import salted_hmac

from annotation.data.pixels import mapped_images
from annotation.data.readers.checks import without
from annotation.data.readers.digests import (
    Digests,
    image_digests,
    known_digests,
    payload_digests,
    rows_among,
    text_digests,
)
from annotation.data.services import pool_files
from annotation.errors import InvalidUpload, RowsShared
from annotation.models import (
    STREAM_JOB,
    DataKind,
    Dataset,
    DatasetRole,
    DatasetState,
    Oracle,
    Project,
    Record,
    RecordPost,
)
from annotation.work.services import files
from dpal.reading.rows import RowBatch
from privacy.gate import columns
from privacy.wording import as_message

KEY_BYTES = 16
BATCH_ROWS = 8192
ROWS_NAMED = 10
# Public examples and tests are small beside pools; the digests of those in use stay in a process.
SETS_KEPT = 4
# Read by who brought them alone, where a gate stands before everybody else.
PRIVATE_ROLES = (DatasetRole.POOL, DatasetRole.CHARGED_START)
UNREAD = as_message(
    "role: comparing this file with another person's private rows could reveal them; that person can upload it"
)
HIDDEN = as_message("Nothing was stored; the uploader sees the reason.")
RULE = as_message("a row is private or public, and for training or testing, never both")


class ComparedRows:
    """Comparison of an upload while its rows are read; with `keep` their digests are kept where they will be wanted."""

    def __init__(self, dataset: Dataset, *, keep: bool = True) -> None:
        self._dataset = dataset
        self._digests = _digests_by(dataset.project)
        pool = dataset.role == DatasetRole.POOL
        # Of a pool the others are the small side, and of anything else the upload itself is.
        self.compared = set(others_of(dataset).values_list("pk", flat=True)) if pool else set()
        self._known = digests_of_sets(self.compared)
        self._keeps = keep and (not pool or dataset.project.data_kind == DataKind.IMAGE)
        self._leaves_out = pool and bool(dataset.mapping.get("without_public"))
        self._own: list[Digests] = []
        self.shared = False

    def unshared(self, batch: RowBatch) -> RowBatch:
        if not (self._leaves_out and len(self._known) and batch.count):
            return batch
        shared = rows_among(self._digests(_values(batch)), self._known)
        return without(batch, set(shared.tolist())) if len(shared) else batch

    def add(self, batch: RowBatch) -> None:
        if not self._keeps and (self.shared or not len(self._known)):
            return
        if not batch.count:
            return
        digests = self._digests(_values(batch))
        if self._keeps:
            self._own.append(digests)
        self.shared = self.shared or len(rows_among(digests, self._known)) > 0

    def own(self) -> Iterable[Digests]:
        return self._own or stored_digests(self._dataset)


def _values(batch: RowBatch) -> Any:
    return next(rows for rows in (batch.pixels, batch.texts, batch.payloads) if rows is not None)


def iter_shared(
    *, project: Project, public: Iterable[RowBatch], pool: Iterable[RowBatch], most_rows: int
) -> Iterator[tuple[int, Any]]:
    """Yield rows that a pool and a public file hold, not stored yet, numbered from 1; of a long pool the first are
    compared.
    """
    digests = _digests_by(project)
    known = known_digests([digests(_values(batch)) for batch in public if batch.count])
    read = 0
    for batch in pool:
        if batch.count:
            values = _values(batch)
            yield from ((read + int(place) + 1, values[place]) for place in rows_among(digests(values), known))
        read += batch.count
        if read >= most_rows:
            break


def others_of(dataset: Dataset) -> QuerySet[Dataset]:
    standing = Dataset.objects.filter(project=dataset.project_id, state=DatasetState.READY)
    return standing.exclude(role=dataset.role)


def refuse_shared(dataset: Dataset, comparison: ComparedRows) -> None:
    """Raise `RowsShared` if a stored row stands elsewhere: looked up at leisure first, then again under the lock."""
    seen: dict[int, int] = dict.fromkeys(comparison.compared, -1)
    overlapping: list[Dataset] = []
    for locked in (False, True):
        if locked:
            # The stream first, as whoever posts records or chooses the project's kind has it.
            list(others_of(dataset).filter(job__kind=STREAM_JOB).select_for_update(of=("self",)))
            Project.objects.select_for_update(no_key=True).get(pk=dataset.project_id)
        refuse_beside_unread(project=dataset.project, role=dataset.role, uploader_id=dataset.uploaded_by_id)
        for other in others_of(dataset).select_related("project", "job").order_by("pk"):
            first = seen.get(other.pk, 0)
            if comparison.shared and other.pk in comparison.compared:
                first = 0
            if first < 0 or (locked and first >= other.row_count):
                continue
            seen[other.pk] = other.row_count if _is_stream(other) else -1
            if _overlap(dataset, comparison, other, first):
                overlapping.append(other)
        if overlapping:
            reason = _words(dataset, comparison, overlapping)
            raise (
                RowsShared(reason)
                if dataset.project.oracle == Oracle.TRUSTED
                else RowsShared(HIDDEN, uploader_reason=reason)
            )


def shared_records(*, project: Project, values: Sequence[Any], others: Iterable[int]) -> list[int]:
    known = digests_of_sets(others)
    if not len(known):
        return []
    return [int(place) for place in rows_among(_digests_by(project)(values), known)]


def digests_of_sets(ids: Iterable[int]) -> Digests:
    # The job's id is never given twice, not even in a database that was restored.
    found = Dataset.objects.filter(pk__in=list(ids)).order_by("pk").values_list("job", flat=True)
    return _kept_digests(tuple(found))


@lru_cache(maxsize=SETS_KEPT)
def _kept_digests(jobs: tuple[UUID, ...]) -> Digests:
    found = Dataset.objects.filter(job__in=jobs).select_related("project", "job")
    return known_digests([digests for dataset in found for digests in stored_digests(dataset)])


def stored_digests(dataset: Dataset, *, first: int = 0) -> Iterator[Digests]:
    """Yield the digests of a data set's rows from one on, in their order, at constant memory."""
    project = dataset.project
    of = _digests_by(project)
    if project.data_kind == DataKind.IMAGE:
        pixels = files.open_stored(str(dataset.pixels.name), dataset.pixels_sha256, mapped_images)
        yield from (of(pixels[start : start + BATCH_ROWS]) for start in range(first, len(pixels), BATCH_ROWS))
        return
    if dataset.in_columns:
        read = 0
        for rows in pool_files.records(dataset, contributors=False):
            if read + rows.num_rows > first:
                yield of(columns.plain_texts(rows).slice(max(0, first - read)))
            read += rows.num_rows
        return
    field = "text" if project.data_kind == DataKind.TEXT else "payload"
    rows = Record.objects.filter(dataset=dataset, row_number__gte=first).order_by("row_number")
    values = rows.values_list(field, flat=True).iterator(chunk_size=BATCH_ROWS)
    while batch := list(islice(values, BATCH_ROWS)):
        yield of(batch)
    if _is_stream(dataset):
        # What was posted and waits to be examined is no record yet.
        waiting = RecordPost.objects.filter(project=project, body__isnull=False)
        later = waiting.filter(first_slot__gt=first - F("record_count")).order_by("first_slot")
        for body in later.values_list("body", flat=True).iterator(chunk_size=16):
            yield of(json.loads(bytes(body or b"[]")))


def _overlap(dataset: Dataset, comparison: ComparedRows, other: Dataset, first: int) -> bool:
    """Say whether an upload and other data share a row; the small side is held, the large one goes by."""
    if dataset.role == DatasetRole.POOL:
        held, passing = digests_of_sets([other.pk]), comparison.own()
    else:
        held, passing = known_digests(list(comparison.own())), stored_digests(other, first=first)
    return any(len(rows_among(digests, held)) for digests in passing)


def _words(dataset: Dataset, comparison: ComparedRows, overlapping: Sequence[Dataset]) -> str:
    """Say that rows are shared and which ones they are; who brought the file may read both sides."""
    return as_message(
        "Nothing was stored: the file shares rows with the {word_role}; {reason}. Leave them out. First rows: {rows}.",
        word_role=DatasetRole(overlapping[0].role).label,
        reason=RULE,
        rows=", ".join(map(str, _shared_rows(dataset, comparison, overlapping))),
    )


def refuse_beside_unread(*, project: Project, role: str, uploader_id: int | None) -> None:
    """Refuse an upload that would be compared with private rows that who brings it may not read."""
    if project.oracle == Oracle.TRUSTED or uploader_id is None:
        return
    private = Dataset.objects.filter(project=project, role__in=PRIVATE_ROLES).exclude(state=DatasetState.REFUSED)
    if private.exclude(role=role).exclude(uploaded_by=uploader_id).exists():
        raise InvalidUpload(UNREAD)


def _shared_rows(dataset: Dataset, comparison: ComparedRows, overlapping: Sequence[Dataset]) -> list[int]:
    if dataset.role == DatasetRole.POOL:
        known = digests_of_sets([one.pk for one in overlapping])
    else:
        own = known_digests(list(comparison.own()))
        known = known_digests([part[rows_among(part, own)] for one in overlapping for part in stored_digests(one)])
    found: list[int] = []
    first = 1
    for digests in comparison.own():
        found += [first + int(place) for place in rows_among(digests, known)]
        first += len(digests)
    return found[:ROWS_NAMED]


def _is_stream(dataset: Dataset) -> bool:
    return dataset.job.kind == STREAM_JOB


def _digests_by(project: Project) -> Callable[[Any], Digests]:
    key = _key_of(project)
    if project.data_kind == DataKind.IMAGE:
        return lambda images: image_digests(images, key=key)
    if project.data_kind == DataKind.TEXT:
        return lambda texts: text_digests(texts, key=key)
    names = [column["name"] for column in project.columns]
    return lambda payloads: payload_digests(payloads, names=names, key=key)


def _key_of(project: Project) -> bytes:
    return salted_hmac("annotation shared rows", str(project.pk), algorithm="sha256").digest()[:KEY_BYTES]
