"""A large upload through the gate by many workers: ranges of rows, then shares of contributors and texts by hash.

Whoever runs the gate takes parts as well, so one worker alone gets through, and others help as they are free. A part
is held by the lock on its row: a worker that dies lets go of it, and whoever takes it next flips the same coins. Each
stage is a chord: the next one begins when all its parts are done. Noise is drawn once, by whoever runs the gate.
"""

import secrets
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
from celery import current_app
from django.db import models, transaction
from django.db.models import Max, Sum
from django.db.models.functions import Coalesce
from django.utils.crypto import salted_hmac

from annotation.choices.gates import gate_from
from annotation.models import Dataset, GatePart, GatePiece, GateRun, GateStage, GateState, Record
from annotation.work.services import work
from privacy.gate import KAnonymityGate, ThresholdGate
from privacy.threshold_gate import ordered
from privacy.wording import say

# A million records are a matter of seconds for one process; handing them around costs as much as it saves.
PART_ROWS = 1_000_000
# Keeps a range of long texts well within one value of the database.
PART_BYTES = 2**26
BATCH_ROWS = 65_536
SALT_BYTES = 32
NOBODY = bytes(16)
LOOK_AGAIN_SECONDS = 0.2
COLLECT_TASK = "annotation.tasks.collect_gate_parts_task"
GATE_SCHEMA = pa.schema([("text", pa.large_string()), ("contributor", pa.binary(16))])
WRITING = pa.ipc.IpcWriteOptions(compression="zstd")
Tell = Callable[[int], None]


class OctetLength(models.Func):
    """Bytes of a text."""

    function = "octet_length"
    output_field = models.BigIntegerField()


def records(dataset: Dataset, tell: Tell, *, first: int = 0, stop: int | None = None) -> Iterator[pa.RecordBatch]:
    """Stream an upload, or a range of it, in the order of its rows, which is the order of the coins."""
    wanted = Record.objects.filter(dataset=dataset, row_number__gte=first)
    if stop is not None:
        wanted = wanted.filter(row_number__lt=stop)
    rows = wanted.order_by("row_number").values_list("text", "contributor", "emptied")
    texts: list[str | None] = []
    contributors: list[bytes | memoryview[int] | None] = []
    read = 0
    for text, contributor, emptied in rows.iterator(chunk_size=BATCH_ROWS):
        # An empty slot keeps its place among the coins, says nothing, and is nobody's.
        texts.append(text)
        contributors.append(NOBODY if emptied else contributor)
        if len(texts) == BATCH_ROWS:
            read += len(texts)
            tell(read)
            yield pa.record_batch([texts, contributors], schema=GATE_SCHEMA)
            texts, contributors = [], []
    yield pa.record_batch([texts, contributors], schema=GATE_SCHEMA)


def release(run: GateRun, gate: KAnonymityGate | ThresholdGate, lease: work.Lease) -> pa.Table:
    """Return what passes; the number of parts changes nothing of it."""
    salt = secrets.token_bytes(SALT_BYTES)
    key = coin_key(salt)
    size = Record.objects.filter(dataset=run.dataset).aggregate(
        rows=Coalesce(Max("row_number") + 1, 0), bytes=Coalesce(Sum(OctetLength("text")), 0)
    )
    parts = max(1, size["rows"] // PART_ROWS, min(size["rows"], size["bytes"] // PART_BYTES))

    def tell(read: int) -> None:
        lease.check()
        lease.report(progress_done=read, progress_total=size["rows"], message=say("Reading the upload."))

    if parts == 1:
        return gate.decide(gate.read(records(run.dataset, tell), key=key), key=key)
    for stage in _stages(gate):
        _open_parts(run, stage, salt, rows=size["rows"] if stage == GateStage.ROWS else 0, parts=parts)
        while left := GatePart.objects.filter(run=run, stage=stage, done=False).count():
            tell(size["rows"] * (parts - left) // parts if stage == GateStage.ROWS else size["rows"])
            if not collect_part(run_id=run.pk):
                time.sleep(LOOK_AGAIN_SECONDS)
        _check_complete(run, stage, parts)
    counted = _pieces(run, GateStage.PASSED, 0, parts)
    return gate.conclude(ordered(counted))


def coin_key(salt: bytes) -> bytes:
    """Return the key of an attempt's coins: nobody has it without the site's secret, nor with that alone."""
    return salted_hmac("annotation gate coins", salt, algorithm="sha256").digest()


def collect_part(*, run_id: int) -> bool:
    """Do a part that nobody holds; false where none is left or the attempt has ended."""
    free = GatePart.objects.filter(run=run_id, run__state=GateState.RUNNING, done=False)
    with transaction.atomic():
        # The lock lasts while the part is read; it needs no lease, for it ends with its worker.
        part = (
            free.select_for_update(of=("self",), skip_locked=True)
            .select_related("run__project", "run__dataset")
            .order_by("pk")
            .first()
        )
        if part is None:
            return False
        gate = gate_from(part.run.project.settings)
        parts = GatePart.objects.filter(run=run_id, stage=part.stage).count()
        _hand_on(part, _next_stage(gate, part.stage), _worked(part, gate, parts), parts=parts)
        part.done = True
        part.save(update_fields=["done"])
    return True


def _stages(gate: KAnonymityGate | ThresholdGate) -> list[GateStage]:
    """Return the stages of a gate; only contributors have to be capped."""
    if gate.texts_per_contributor is None:
        return [GateStage.ROWS, GateStage.TEXTS]
    return [GateStage.ROWS, GateStage.PEOPLE, GateStage.TEXTS]


def _next_stage(gate: KAnonymityGate | ThresholdGate, stage: str) -> GateStage:
    following = [*_stages(gate), GateStage.PASSED]
    return following[following.index(GateStage(stage)) + 1]


def _worked(part: GatePart, gate: KAnonymityGate | ThresholdGate, parts: int) -> list[pa.Table]:
    """Return what a part hands on: one table for each part of the next stage, or what reaches the minimum."""
    key = coin_key(bytes(part.salt))
    if part.stage == GateStage.ROWS:
        stop = part.first_row + part.row_count
        rows = records(part.run.dataset, lambda read: None, first=part.first_row, stop=stop)
        table = gate.collect(rows, key=key, first_record=part.first_row)
        return gate.split(table, key=key, shares=parts)
    pieces = _pieces(part.run, GateStage(part.stage), part.number, parts)
    if part.stage == GateStage.PEOPLE:
        return gate.split(gate.merged_texts(pieces, key=key), key=key, shares=parts)
    counted = list(gate.counted(pieces, key=key))
    return [pa.concat_tables(counted)] if counted else [gate.counts_schema.empty_table()]


def _hand_on(part: GatePart, stage: GateStage, tables: list[pa.Table], *, parts: int) -> None:
    """Store the tables for the next stage, and forget what this part has read."""
    GatePiece.objects.filter(run=part.run, stage=part.stage, number=part.number).delete()
    for number, table in enumerate(tables):
        GatePiece.objects.create(run=part.run, stage=stage, number=number, source=part.number, content=_to_bytes(table))


def _pieces(run: GateRun, stage: GateStage, number: int, parts: int) -> Iterator[pa.Table]:
    """Read what was handed to a part in the order of its sources, one at a time; all of it or nothing."""
    handed = GatePiece.objects.filter(run=run, stage=stage, number=number).order_by("source")
    sources = list(handed.values_list("source", flat=True))
    if sources != list(range(parts)):
        raise LookupError("parts of the upload are gone")
    for source in sources:
        content = handed.values_list("content", flat=True).get(source=source)
        yield pa.ipc.open_stream(pa.py_buffer(bytes(content))).read_all()


def collect_parts(*, run_id: int) -> None:
    """Do parts until none is free."""
    while collect_part(run_id=run_id):
        pass


def forget_parts(*, dataset: Dataset) -> None:
    """Delete all pieces and salts: what was drawn can never be drawn again."""
    GatePiece.objects.filter(run__dataset=dataset).delete()
    GatePart.objects.filter(run__dataset=dataset).delete()


def _open_parts(run: GateRun, stage: GateStage, salt: bytes, *, rows: int, parts: int) -> None:
    edges = [rows * number // parts for number in range(parts + 1)]
    with transaction.atomic():
        GatePart.objects.bulk_create(
            GatePart(
                run=run,
                stage=stage,
                number=number,
                first_row=edges[number],
                row_count=edges[number + 1] - edges[number],
                salt=salt,
            )
            for number in range(parts)
        )
        helping = current_app.signature(COLLECT_TASK, kwargs={"run_id": run.pk})
        for _ in range(parts - 1):
            transaction.on_commit(helping.apply_async, robust=True)


def _check_complete(run: GateRun, stage: GateStage, parts: int) -> None:
    """Raise where the database lost parts, as it does of such tables when it crashes."""
    if GatePart.objects.filter(run=run, stage=stage, done=True).count() != parts:
        raise LookupError("parts of the upload are gone")


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=WRITING) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written
