"""Gates of crowd projects: chosen while nothing is charged, then run over each upload, alone or with earlier ones."""

# Of what does not pass, nothing is kept: no count, no id, no text, here or in a log. The key of an attempt's coins
# lives as long as the scan and is stored nowhere. Noise is drawn once, over all counts in the order of their texts,
# so no engine changes them.

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from json.encoder import encode_basestring
from typing import Any
from uuid import UUID

import pyarrow as pa
from django.contrib.auth.models import AbstractBaseUser
from django.db import connection, transaction
from django.db.models import QuerySet

from annotation.budget import charges
from annotation.choices import services
from annotation.choices.gates import all_gate_fields, gate_from, own_gate_parameters
from annotation.choices.presets import broken_rules
from annotation.data.readers.registered import TableFile
from annotation.data.services import pool_files, registered
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.gates.attempts import GateEnding, gate_key
from annotation.models import (
    Dataset,
    DatasetRole,
    DatasetState,
    GateRun,
    GateState,
    Job,
    Oracle,
    Project,
    Survey,
    WorkState,
)
from annotation.models.database import copied_into
from annotation.work.services import attempts, jobs
from privacy.accounting.event import Event
from privacy.accounting.events import GateOfSnapshotEvent
from privacy.accounting.gate_events import WINDOW_KINDS
from privacy.errors import UnsoundCombination
from privacy.gate.counting import CountingGate, ordered
from privacy.gate.engine import GateEngine, ProcessEngine, Tell
from privacy.gate.hashing import new_key
from privacy.gate.normalizers import Normalizer
from privacy.gate.survey import Frequencies, PoolSurvey
from privacy.ledger import services as ledger
from privacy.ledger.models import EntryKind, LedgerEntry
from privacy.ledger.selectors import guarantee
from privacy.wording import as_message, in_english, joined_rules

# Engines of add-ons for an upload, and the files of it that is a registered table; the first that is offered counts.
ENGINES: list[Callable[[Dataset, Sequence[TableFile] | None], GateEngine | None]] = []


@contextmanager
def ready_engine(dataset: Dataset, gate: CountingGate, lease: attempts.Lease) -> Iterator[GateEngine]:
    """Hold the engine that will read an upload for a gate; nothing is read yet, so what is missing costs nothing."""
    source = registered.source_of(dataset)
    files = None if source is None else registered.refuse_changed(source, lease.check)
    engine = next(filter(None, (offered(dataset, files) for offered in ENGINES)), None)
    if engine is None:
        engine = ProcessEngine(pool_files.file_rows if source is None else registered.table_reader(source))
    with engine.opened(gate, attempts.checked_at(lease)):
        yield engine


def release(uploads: Sequence[Dataset], gate: CountingGate, lease: attempts.Lease, engine: GateEngine) -> pa.Table:
    """Return what passes of uploads counted together; which engine counts, and on how many machines, is no matter."""
    key = new_key()
    rows = sum(upload.row_count for upload in uploads)
    tell = attempts.told_of_rows(lease, rows, as_message("Reading an upload"))
    if not all(upload.in_columns for upload in uploads):
        return gate.decide(gate.read(pool_files.records_of_all(uploads, tell), key=key), key=key)
    return gate.conclude(ordered(_counted(uploads, gate, key, tell, engine)))


def _counted(
    uploads: Sequence[Dataset], gate: CountingGate, key: bytes, tell: Tell, engine: GateEngine
) -> list[pa.Table]:
    for _ in range(pool_files.TRIES - 1):
        try:
            return engine.counted(gate, pool_files.files_of(*uploads), key=key, tell=tell)
        except FileNotFoundError:
            continue
    return engine.counted(gate, pool_files.files_of(*uploads), key=key, tell=tell)


# What passed is as many Python objects at a time.
OUTPUT_ROWS = 2**13
COUNT_TYPES = {"sample_count": "int8", "noisy_count": "float8"}
# Of runs of several uploads at once, each but the first looks again what was paid for before it.
TRIES = 20


def gate_of(project: Project) -> CountingGate:
    return gate_from(project.settings)


def start_gate(*, dataset: Dataset, owner: AbstractBaseUser | None = None) -> Job | None:
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


def start_gate_of_pool(sender: type[Dataset], *, dataset: Dataset, **given: Any) -> None:
    start_gate(dataset=dataset)


def run_gate(*, job_id: UUID | str) -> None:
    """Reserve, read the upload through the gate, and commit questions and ledger entry together; once per upload."""
    job = Job.objects.select_related("gated_dataset__project__pool_account").get(pk=job_id, kind=jobs.GATE)
    with attempts.attempt_at(job, GateEnding()) as lease:
        if lease is not None:
            _attempt(job, lease)


def _attempt(job: Job, lease: attempts.Lease) -> None:
    dataset = job.gated_dataset
    project = dataset.project
    gate = gate_of(project)
    # What is missing or away for counting, or cancelled before the reservation, costs nothing.
    with ready_engine(dataset, gate, lease) as engine:
        lease.check()
        reservation = _reserve(job, dataset)
        uploads = charges.uploads_in(reservation, dataset)
        run = GateRun.objects.create(project=project, dataset=dataset, reservation=reservation)
        passed = release(uploads, gate, lease, engine)
    rows = sum(upload.row_count for upload in uploads)
    with transaction.atomic():
        entry = ledger.commit(reservation=reservation, output_digest=output_digest(passed))
        run.state = GateState.COMMITTED
        run.committed_entry = entry
        run.passed_count = passed.num_rows
        run.save(update_fields=["state", "committed_entry", "passed_count"])
        _store_queries(run, project, passed, gate.count_column)
        attempts.finish_work(row=job, progress_done=rows, progress_total=rows, message=as_message("Done."))
        jobs.send_project_changed(project.pk)


def _reserve(job: Job, dataset: Dataset) -> LedgerEntry:
    """Pay for a run as its place in the series wants it; a run of another upload may take that place meanwhile."""
    for tries_left in reversed(range(TRIES)):
        event = charges.coming_run(dataset.project, dataset)
        if (source := registered.source_of(dataset)) is not None:
            event = _over_snapshot(event, source.snapshot)
        try:
            return ledger.reserve(
                account=dataset.project.pool_account,
                event=event,
                purpose=as_message("gate over an upload"),
                subject=charges.subject_of(dataset),
                key=gate_key(job, job.attempt),
            )
        except UnsoundCombination:
            if not tries_left or event.kind not in WINDOW_KINDS:
                raise
    raise AssertionError("the last try returns or raises")


def _over_snapshot(event: Event, snapshot: str) -> GateOfSnapshotEvent:
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
    """Add the texts as candidates; one that passed with an earlier upload stays the question it is."""
    count_type = COUNT_TYPES[counts]
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE gate_output (text text, counted {count_type}) ON COMMIT DROP")
        with copied_into("pg_temp.gate_output", ("text", "counted"), ("text", count_type)) as copy:
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


# What a page has time for; what is larger takes a job.
SURVEYED_ROWS = 200_000


def gate_is_frozen(project: Project) -> bool:
    paid = LedgerEntry.objects.filter(account=project.pool_account_id, kind=EntryKind.RESERVE)
    coming = Job.objects.filter(
        project=project, kind=jobs.GATE, state__in=(WorkState.WAITING, WorkState.RUNNING, WorkState.DONE)
    )
    # Its price was agreed to.
    sent = Dataset.objects.filter(project=project, role=DatasetRole.POOL, state=DatasetState.RECEIVING)
    return paid.exists() or coming.exists() or sent.exists()


def choose_gate(*, project: Project, settings: Mapping[str, Any]) -> Project:
    if project.oracle != Oracle.CROWD or settings.keys() - {*all_gate_fields(), "gate_kind", "normalizer"}:
        raise InvalidConfiguration(in_english("Only the gate of a crowd project can be chosen."))
    with transaction.atomic():
        # This lock waits for whoever is opening a gate job, and they for it: a job's foreign key locks the project too.
        locked = Project.objects.select_for_update().get(pk=project.pk)
        if gate_is_frozen(locked):
            raise ConfigurationFrozen("This gate is in use and cannot change.")
        # What all gates have stays where it is not chosen anew, but for the price.
        chosen = dict.fromkeys(("gate_epsilon", *own_gate_parameters())) | dict(settings)
        pool = guarantee(locked.pool_account)
        limits = {"pool_epsilon": pool.epsilon_limit, "pool_delta": pool.delta_limit}
        if locked.labels_account is not None:
            limits["labels_epsilon"] = guarantee(locked.labels_account).epsilon_limit
        if broken := broken_rules(locked.settings | limits | chosen):
            raise InvalidConfiguration(joined_rules(broken))
        locked.save(update_fields=services.set_settings(project=locked, changes=chosen, actor=None))
    return locked


def countable_uploads(project: Project) -> QuerySet[Dataset]:
    """Return the uploads that may be counted whole; private starts and registered tables are read when paid for."""
    ready = Dataset.objects.filter(project=project, state=DatasetState.READY, source__isnull=True)
    return ready.exclude(role=DatasetRole.CHARGED_START)


def frequencies_of(dataset: Dataset) -> Frequencies | None:
    """Return how often texts are said in an upload: counted now if it is small, else by the job of `start_survey`."""
    if dataset.row_count <= SURVEYED_ROWS:
        return _count(dataset, lambda read: None)
    found = Survey.objects.filter(dataset=dataset, normalizer=dataset.project.normalizer).first()
    return None if found is None or found.frequencies is None else Frequencies.from_json(found.frequencies)


def survey_job(dataset: Dataset) -> Job | None:
    found = Survey.objects.filter(dataset=dataset, normalizer=dataset.project.normalizer).select_related("job").first()
    return None if found is None else found.job


def start_survey(*, dataset: Dataset, owner: AbstractBaseUser | None = None) -> Job:
    """Open the job that counts a whole upload; the one that stands, unless it failed or counted by another rule."""
    with transaction.atomic():
        locked = Dataset.objects.select_for_update(of=("self",)).select_related("project").get(pk=dataset.pk)
        standing = survey_job(locked)
        if standing is not None and standing.state != WorkState.FAILED:
            return standing
        jobs.refuse_when_busy()
        Survey.objects.filter(dataset=locked).delete()
        job = jobs.open_job(project=locked.project, kind=jobs.SURVEY, owner=owner)
        Survey.objects.create(dataset=locked, job=job, normalizer=locked.project.normalizer)
    return job


def run_survey(*, job_id: UUID | str) -> None:
    """Count a whole upload in bounded memory; nothing is charged, since only managers of the project see it."""
    job = Job.objects.get(pk=job_id, kind=jobs.SURVEY)
    with attempts.attempt_at(job) as lease:
        if lease is None:
            return
        survey = Survey.objects.select_related("dataset__project").get(job=job)
        counted = _count(survey.dataset, partial(_tell, lease, survey.dataset))
        with transaction.atomic():
            Survey.objects.filter(pk=survey.pk).update(frequencies=counted.to_json())
            attempts.finish_work(row=job, progress_done=survey.dataset.row_count, message=as_message("Done."))


def _tell(lease: attempts.Lease, dataset: Dataset, read: int) -> None:
    lease.check()
    lease.report(progress_done=read, progress_total=dataset.row_count, message=as_message("Reading an upload"))


def _count(dataset: Dataset, tell: Tell) -> Frequencies:
    project = dataset.project
    # A public test set names no contributors: there every record counts as somebody's own.
    named = project.privacy_unit == "contributor" and dataset.role == DatasetRole.POOL
    survey = PoolSurvey(
        key=new_key(),
        unit="contributor" if named else "record",
        texts_per_contributor=project.texts_per_contributor if named else None,
        normalizer=Normalizer(project.normalizer),
        expected_pairs=max(SURVEYED_ROWS, dataset.row_count),
    )
    survey.update(pool_files.records(dataset, tell, contributors=named))
    return survey.frequencies()
