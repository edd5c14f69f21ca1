"""The gate of a crowd project: each upload goes through, alone or with those before it, and what passes is asked.

Of what does not pass, nothing is kept: no count, no id, no text, here or in a log.
"""

import hashlib
from json.encoder import encode_basestring
from uuid import UUID

import pyarrow as pa
from django.contrib.auth.models import AbstractBaseUser
from django.db import connection, transaction

from annotation.budget import gate_runs
from annotation.choices.gates import gate_from
from annotation.gates.services import scan
from annotation.gates.services.attempts import GateEnding, gate_key
from annotation.models import (
    Dataset,
    DatasetRole,
    DatasetState,
    GateRun,
    GateState,
    Job,
    Oracle,
    Project,
    WorkState,
)
from annotation.tables import sources
from annotation.work.services import attempts, jobs
from privacy.accounting.event import Event
from privacy.accounting.events import GateOfSnapshotEvent, GateWindowEvent
from privacy.errors import UnsoundCombination
from privacy.gate.counting import CountingGate
from privacy.ledger import services as ledger
from privacy.ledger.models import LedgerEntry
from privacy.wording import as_message

# What passed is as many Python objects at a time.
OUTPUT_ROWS = 2**13
COUNT_TYPES = {"sample_count": "int8", "noisy_count": "float8"}
# Of runs of several uploads at once, each but the first looks again what was paid for before it.
TRIES = 20


def gate_of(project: Project) -> CountingGate:
    """Return the gate as the project configures it."""
    return gate_from(project.settings)


def start_gate(*, dataset: Dataset, owner: AbstractBaseUser | None = None) -> Job | None:
    """Open the gate job of a ready pool in a crowd project; None where there is nothing to gate or one stands.

    A job that failed, for want of budget say, may be followed by another; it draws and pays anew.
    """
    with transaction.atomic():
        locked = (
            Dataset.objects.select_for_update(of=("self",)).select_related("project", "gate_job").get(pk=dataset.pk)
        )
        gated = locked.project.oracle == Oracle.CROWD and locked.role == DatasetRole.POOL
        standing = locked.gate_job is not None and locked.gate_job.state != WorkState.FAILED
        if not gated or standing or locked.state != DatasetState.READY:
            return None
        job = jobs.open_job(project=locked.project, kind=jobs.GATE, owner=owner)
        Dataset.objects.filter(pk=locked.pk).update(gate_job=job)
    dataset.gate_job = job
    return job


def run_gate(*, job_id: UUID | str) -> None:
    """Reserve, read the upload through the gate, and commit questions and ledger entry together; once per upload.

    An attempt that was killed stays charged: what it drew is lost, and the next one draws and pays anew.
    """
    job = Job.objects.select_related("gated_dataset__project__pool_account").get(pk=job_id, kind=jobs.GATE)
    with attempts.attempt_at(job, GateEnding()) as lease:
        if lease is not None:
            _attempt(job, lease)


def _attempt(job: Job, lease: attempts.Lease) -> None:
    dataset = job.gated_dataset
    project = dataset.project
    gate = gate_of(project)
    # What is missing or away for counting, or cancelled before the reservation, costs nothing.
    with scan.ready_engine(dataset, gate, lease) as engine:
        lease.check()
        reservation = _reserve(job, dataset)
        uploads = gate_runs.uploads_in(reservation, dataset)
        run = GateRun.objects.create(project=project, dataset=dataset, reservation=reservation)
        passed = scan.release(uploads, gate, lease, engine)
    rows = sum(upload.row_count for upload in uploads)
    with transaction.atomic():
        entry = ledger.commit(reservation=reservation, output_digest=output_digest(passed))
        run.state = GateState.COMMITTED
        run.committed_entry = entry
        run.passed_count = passed.num_rows
        run.save(update_fields=["state", "committed_entry", "passed_count"])
        _store_queries(run, project, passed, gate.count_column)
        attempts.finish_work(row=job, progress_done=rows, progress_total=rows, message=as_message("The gate is done."))
        jobs.send_project_changed(project.pk)


def _reserve(job: Job, dataset: Dataset) -> LedgerEntry:
    """Pay for a run as its place in the series wants it; a run of another upload may take that place meanwhile."""
    for tries_left in reversed(range(TRIES)):
        event = gate_runs.coming_run(dataset.project, dataset)
        if (source := sources.source_of(dataset)) is not None:
            event = _over_snapshot(event, source.snapshot)
        try:
            return ledger.reserve(
                account=dataset.project.pool_account,
                event=event,
                purpose=as_message("gate over an upload"),
                subject=gate_runs.subject_of(dataset),
                key=gate_key(job, job.attempt),
            )
        except UnsoundCombination:
            if not tries_left or event.kind != GateWindowEvent.kind:
                raise
    raise AssertionError("the last try returns or raises")


def _over_snapshot(event: Event, snapshot: str) -> GateOfSnapshotEvent:
    """Return the run over a registered table; one without a proof there is refused before anything is paid."""
    try:
        return GateOfSnapshotEvent(event, snapshot)
    except ValueError as error:
        raise UnsoundCombination(str(error)) from None


def output_digest(passed: pa.Table) -> str:
    """Return the SHA-256 of the whole output: one JSON array [text, count] a line, sorted by text."""
    digest = hashlib.sha256()
    for batch in passed.to_batches(max_chunksize=OUTPUT_ROWS):
        columns = (column.to_pylist() for column in batch.columns)
        # As `json.dumps` writes each row, which makes an encoder for every one.
        lines = (f"[{encode_basestring(text)}, {count!r}]\n" for text, count in zip(*columns, strict=True))
        digest.update("".join(lines).encode())
    return digest.hexdigest()


def _store_queries(run: GateRun, project: Project, passed: pa.Table, counts: str) -> None:
    """Add the texts as candidates; one that passed with an earlier upload stays the question it is.

    Which texts passed before is gate output as well, so leaving them out is post-processing.
    """
    count_type = COUNT_TYPES[counts]
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE gate_output (text text, counted {count_type}) ON COMMIT DROP")
        with cursor.copy("COPY pg_temp.gate_output (text, counted) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(("text", count_type))
            for batch in passed.to_batches(max_chunksize=OUTPUT_ROWS):
                columns = (column.to_pylist() for column in batch.columns)
                for row in zip(*columns, strict=True):
                    copy.write_row(row)
        cursor.execute(
            "INSERT INTO annotation_query"  # noqa: S608 - a column's name, no value
            f" (project_id, gate_run_id, text, {counts}, state, priority, overlap, open_slots)"
            " SELECT %s, %s, text, counted, 'unasked', 0, %s, 0 FROM pg_temp.gate_output ORDER BY text"
            " ON CONFLICT (project_id, md5(text)) DO NOTHING",
            [project.pk, run.pk, project.overlap],
        )
        cursor.execute("DROP TABLE pg_temp.gate_output")
