"""Records that arrive one by one: checked, and kept with their slot until they are examined."""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import DateTimeField, ExpressionWrapper, F, Min
from django.db.models.functions import Now

from annotation.data.readers.checks import check_rows
from annotation.data.selectors import waiting_posts
from annotation.data.services import shared_rows
from annotation.data.services.records import RECORD_COLUMNS, RECORD_TYPES, RECORDS
from annotation.errors import IdempotencyKeyReused, InvalidRecords, NotAStream, StreamFull
from annotation.models import (
    STREAM_JOB,
    Arrival,
    DataKind,
    Dataset,
    DatasetRole,
    DatasetState,
    Job,
    Project,
    Query,
    QueryState,
    Record,
    RecordPost,
    WorkState,
)
from annotation.models.database import copied_into
from annotation.work.services import jobs
from dpal.reading.json_lines import NO_FIELD, NOT_AN_OBJECT
from dpal.reading.rows import BadRow, Layout, RawBatch
from privacy.wording import in_english

BAD_ROWS_NAMED = 100
UNKNOWN_FIELD = "is not a field of this project"
NO_STREAM = "Records are posted one by one to streams only; this project takes uploads."
# Long enough for any sender that tries again; the rows of posts that were examined are of no other use.
KEYS_KEPT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class SlotReceipt:
    """Slots that the records of a post took, which are public, and whether they had come before."""

    accepted: int
    first_slot: int
    repeated: bool


def open_stream(*, project: Project) -> Dataset:
    """Make the dataset whose rows are the stream's slots; in the transaction that opens the project."""
    job = Job.objects.create(project=project, kind=STREAM_JOB, state=WorkState.DONE, finished_at=Now())
    return Dataset.objects.create(
        project=project, job=job, name="stream", role=DatasetRole.POOL, state=DatasetState.READY
    )


def stream_dataset(project: Project) -> Dataset:
    if project.arrival != Arrival.STREAM:
        raise NotAStream(NO_STREAM)
    return Dataset.objects.get(project=project, role=DatasetRole.POOL)


def post_records(*, project: Project, records: Sequence[Any], key: str = "") -> SlotReceipt:
    """Store records in the order given, all or none, each in a slot of its own; the same `key` stores them once."""
    stream = stream_dataset(project)
    values = _stored_values(project, records)
    body = _as_json(values)
    post = RecordPost(
        project=project,
        key=hashlib.sha256(key.encode()).digest() if key else secrets.token_bytes(32),
        body_digest=hashlib.blake2b(body, digest_size=32, key=settings.PSEUDONYM_KEY.encode()[:64]).digest(),
        record_count=len(records),
        body=body,
    )
    earlier = _standing(post)
    if earlier is not None:
        return earlier
    try:
        with transaction.atomic():
            _append(stream, post, values)
    except IntegrityError:
        # Sent twice at once: the other one was stored.
        earlier = _standing(post)
        if earlier is None:
            raise
        return earlier
    return SlotReceipt(post.record_count, post.first_slot, repeated=False)


def _append(stream: Dataset, post: RecordPost, values: Sequence[Any]) -> None:
    # From here on no public upload becomes ready unseen: it waits for the stream's row.
    held = Dataset.objects.filter(pk=stream.pk)
    if not held.update(row_count=F("row_count") + post.record_count):
        raise NotAStream(NO_STREAM)
    _refuse_shared(stream, values)
    next_slot = held.values_list("row_count", flat=True).get()
    waiting = waiting_posts(stream.project_id).aggregate(first=Min("first_slot"))["first"]
    if waiting is not None and next_slot - waiting > settings.STREAM_BACKLOG_RECORDS:
        raise StreamFull(
            in_english("{most:,} records are waiting; send these again later.", most=settings.STREAM_BACKLOG_RECORDS)
        )
    post.first_slot = next_slot - post.record_count
    post.save(force_insert=True)
    if waiting is None:
        # While others wait, somebody has been told of the stream already.
        jobs.send_project_changed(stream.project_id)


def _refuse_shared(stream: Dataset, values: Sequence[Any]) -> None:
    """Refuse records that stand in public data of the project; who posts brings them, and manages it."""
    others = list(shared_rows.others_of(stream).values_list("pk", flat=True))
    if not others:
        return
    places = shared_rows.shared_records(project=stream.project, values=values, others=others)
    if places:
        named = [{"row": place + 1, "field": "", "rule": shared_rows.RULE} for place in places[:BAD_ROWS_NAMED]]
        raise InvalidRecords(
            named,
            in_english("{bad} of {n} records were refused, so none was stored.", bad=len(places), n=len(values)),
        )


def next_records(*, project: Project, next_slot: int, most: int) -> list[Any]:
    waiting = waiting_posts(project.pk).filter(first_slot__lt=next_slot + most).order_by("first_slot")
    posts = list(waiting.values_list("first_slot", "body"))
    records: list[Any] = [record for _, body in posts for record in json.loads(bytes(body))]
    passed = next_slot - posts[0][0] if posts else 0
    return records[passed : passed + most]


def store_records(*, project: Project, first_slot: int, records: Sequence[Any], selected: Sequence[int]) -> None:
    stream = stream_dataset(project)
    kept = selected if project.drop_unselected else range(len(records))
    text = project.data_kind == DataKind.TEXT
    with copied_into(RECORDS, RECORD_COLUMNS, RECORD_TYPES) as copy:
        for place in kept:
            record = records[place]
            copy.write_row(
                (stream.pk, first_slot + place, record if text else None, None if text else record, None, None, None)
            )


def ask_records(
    *, project: Project, slots: Sequence[int], batches: Sequence[int], guesses: Sequence[int] | None = None
) -> dict[int, int]:
    """Open a question for each of these slots in the batch given beside it; return slots to ids of questions."""
    stored = Record.objects.filter(dataset=stream_dataset(project), row_number__in=list(slots))
    records = dict(stored.values_list("row_number", "pk"))
    said: Sequence[int | None] = [None] * len(slots) if guesses is None else guesses
    asked = [
        Query(
            project=project,
            record_id=records[slot],
            state=QueryState.OPEN,
            round_number=batch,
            priority=slot,
            overlap=1,
            open_slots=1,
            guess=guess,
        )
        for slot, batch, guess in zip(slots, batches, said, strict=True)
    ]
    return {query.priority: query.pk for query in Query.objects.bulk_create(asked)}


def forget_old_posts() -> int:
    long_ago = ExpressionWrapper(Now() - KEYS_KEPT, output_field=DateTimeField())
    forgotten, _ = RecordPost.objects.filter(body=None, created_at__lt=long_ago).delete()
    return forgotten


def forget_examined(*, project: Project, next_slot: int) -> None:
    """Drop the bodies of posts all of whose records lie before `next_slot`, in the transaction that examined them."""
    passed = waiting_posts(project.pk).filter(first_slot__lt=next_slot)
    passed.filter(first_slot__lte=next_slot - F("record_count")).update(body=None)


def _standing(post: RecordPost) -> SlotReceipt | None:
    earlier = RecordPost.objects.filter(project=post.project, key=post.key).defer("body").first()
    if earlier is None:
        return None
    if bytes(earlier.body_digest) != post.body_digest:
        raise IdempotencyKeyReused("This Idempotency-Key was used for another request; use a new one.")
    return SlotReceipt(earlier.record_count, earlier.first_slot, repeated=True)


def _stored_values(project: Project, records: Sequence[Any]) -> list[Any]:
    if not records:
        raise InvalidRecords([], "Send at least one record.")
    if len(records) > settings.STREAM_POST_RECORDS:
        raise InvalidRecords(
            [], in_english("Send at most {most:,} records at once.", most=settings.STREAM_POST_RECORDS)
        )
    layout = _layout_of(project)
    names = layout.columns()
    required = {*names} - {column["name"] for column in layout.declared if column.get("missing") is not None}
    bad = [
        fault for row, record in enumerate(records, start=1) if (fault := _shape_fault(row, record, names, required))
    ]
    if not bad:
        columns: dict[str, list[Any]] = {name: [record.get(name) for record in records] for name in names}
        checked = check_rows(RawBatch(list(range(1, len(records) + 1)), columns), layout)
        bad = checked.bad
    if bad:
        named = [{"row": fault.line, "field": fault.column, "rule": fault.reason} for fault in bad[:BAD_ROWS_NAMED]]
        raise InvalidRecords(
            named,
            in_english("{bad} of {n} records were refused, so none was stored.", bad=len(bad), n=len(records)),
        )
    return list((checked.texts if layout.text else checked.payloads) or [])


def _as_json(values: Sequence[Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()


def _layout_of(project: Project) -> Layout:
    text = project.data_kind == DataKind.TEXT
    return Layout(
        kind="text" if text else "table", text="text" if text else None, declared=() if text else tuple(project.columns)
    )


def _shape_fault(row: int, record: Any, names: Sequence[str], required: set[str]) -> BadRow | None:
    """Say what is wrong with a record's fields; the name of one that is unknown might be content, so it is not said."""
    if not isinstance(record, Mapping):
        return BadRow(row, "", NOT_AN_OBJECT)
    missing = next((name for name in names if name in required and name not in record), None)
    if missing is not None:
        return BadRow(row, missing, NO_FIELD)
    return None if len(record) == sum(name in record for name in names) else BadRow(row, "", UNKNOWN_FIELD)
