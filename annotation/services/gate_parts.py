"""A large upload through the gate by many workers: ranges of rows, digested apart, decided together.

Whoever runs the gate digests ranges as well, so one worker alone gets through, and others help as they are free. A
range is held by the lock on its row: a worker that dies lets go of it, and whoever takes it next flips the same coins.
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

from annotation.models import Dataset, GatePart, GateRun, GateState, Record
from annotation.presets import gate_from
from annotation.services import work
from privacy.gate import KAnonymityGate

# A million records are a matter of seconds for one process; handing them around costs as much as it saves.
PART_ROWS = 1_000_000
# Keeps a range of long texts well within one value of the database.
PART_BYTES = 2**26
BATCH_ROWS = 65_536
SALT_BYTES = 32
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
    rows = wanted.order_by("row_number").values_list("text", "contributor")
    texts: list[str | None] = []
    contributors: list[bytes | memoryview[int] | None] = []
    read = 0
    for text, contributor in rows.iterator(chunk_size=BATCH_ROWS):
        texts.append(text)
        contributors.append(contributor)
        if len(texts) == BATCH_ROWS:
            read += len(texts)
            tell(read)
            yield pa.record_batch([texts, contributors], schema=GATE_SCHEMA)
            texts, contributors = [], []
    yield pa.record_batch([texts, contributors], schema=GATE_SCHEMA)


def release(run: GateRun, gate: KAnonymityGate, lease: work.Lease) -> pa.Table:
    """Return what passes; the number of ranges changes nothing of it."""
    salt = secrets.token_bytes(SALT_BYTES)
    size = Record.objects.filter(dataset=run.dataset).aggregate(
        rows=Coalesce(Max("row_number") + 1, 0), bytes=Coalesce(Sum(OctetLength("text")), 0)
    )
    parts = max(1, size["rows"] // PART_ROWS, min(size["rows"], size["bytes"] // PART_BYTES))

    def tell(read: int) -> None:
        lease.check()
        lease.report(progress_done=read, progress_total=size["rows"], message="Reading the upload.")

    if parts == 1:
        return gate.release(records(run.dataset, tell), key=coin_key(salt))
    _open_parts(run, salt, rows=size["rows"], parts=parts)
    while (left := GatePart.objects.filter(run=run, collected=None).count()) or not _complete(run, parts):
        tell(size["rows"] * (parts - left) // parts)
        if not collect_part(run_id=run.pk):
            time.sleep(LOOK_AGAIN_SECONDS)
    return gate.decide(_collected(run), key=coin_key(salt))


def coin_key(salt: bytes) -> bytes:
    """Return the key of an attempt's coins: nobody has it without the site's secret, nor with that alone."""
    return salted_hmac("annotation gate coins", salt, algorithm="sha256").digest()


def collect_part(*, run_id: int) -> bool:
    """Digest a range that nobody holds; false where none is left or the attempt has ended."""
    free = GatePart.objects.filter(run=run_id, run__state=GateState.RUNNING, collected=None)
    with transaction.atomic():
        # The lock lasts while the range is read; it needs no lease, for it ends with its worker.
        part = (
            free.select_for_update(of=("self",), skip_locked=True)
            .select_related("run__project", "run__dataset")
            .order_by("number")
            .first()
        )
        if part is None:
            return False
        gate = gate_from(vars(part.run.project))
        assert isinstance(gate, KAnonymityGate)
        stop = part.first_row + part.row_count
        rows = records(part.run.dataset, lambda read: None, first=part.first_row, stop=stop)
        table = gate.collect(rows, key=coin_key(bytes(part.salt)), first_record=part.first_row)
        part.collected = _to_bytes(table)
        part.save(update_fields=["collected"])
    return True


def collect_parts(*, run_id: int) -> None:
    """Digest ranges until none is free."""
    while collect_part(run_id=run_id):
        pass


def forget_parts(*, dataset: Dataset) -> None:
    """Delete all digests and salts: what was drawn can never be drawn again."""
    GatePart.objects.filter(run__dataset=dataset).delete()


def _open_parts(run: GateRun, salt: bytes, *, rows: int, parts: int) -> None:
    edges = [rows * number // parts for number in range(parts + 1)]
    with transaction.atomic():
        GatePart.objects.bulk_create(
            GatePart(
                run=run, number=number, first_row=edges[number], row_count=edges[number + 1] - edges[number], salt=salt
            )
            for number in range(parts)
        )
        helping = current_app.signature(COLLECT_TASK, kwargs={"run_id": run.pk})
        for _ in range(parts - 1):
            transaction.on_commit(helping.apply_async, robust=True)


def _complete(run: GateRun, parts: int) -> bool:
    """Say that no range is missing; raise where the database lost some, as it does of such tables when it crashes."""
    if GatePart.objects.filter(run=run).exclude(collected=None).count() == parts:
        return True
    if GatePart.objects.filter(run=run).count() == parts:
        return False
    raise LookupError("ranges of the upload are gone")


def _collected(run: GateRun) -> Iterator[pa.Table]:
    """Read the digests back in record order, one at a time."""
    for number in GatePart.objects.filter(run=run).order_by("number").values_list("number", flat=True):
        kept = GatePart.objects.values_list("collected", flat=True).get(run=run, number=number)
        assert kept is not None
        yield pa.ipc.open_stream(pa.py_buffer(bytes(kept))).read_all()


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=WRITING) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written
