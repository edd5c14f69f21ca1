"""An upload goes through the gate once: charged before it is read, committed with its questions, silent on the rest."""

import hashlib
import json
import logging
import secrets
from datetime import timedelta
from uuid import uuid5

import pyarrow as pa
import pytest
from django.core.files.base import ContentFile
from django.db import connection
from django.db.models.functions import Now

from annotation.data.services import datasets, pool_files
from annotation.gates import attempts as gate_attempts
from annotation.gates import services as gates
from annotation.models import Dataset, GateRun, Job, Query, Record
from annotation.work.services import interruptions, jobs
from privacy.gate.kanonymity import KAnonymityGate
from privacy.ledger import services as ledger
from privacy.ledger.models import LedgerEntry
from tests.factories import make_project, make_records, make_user, receive_upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("reads_here")]
# At a sampling rate of 0.3 all 400 copies together fall below k = 17 with probability below 1e-38, and 5 copies
# can never reach it.
OFTEN, RARE = 400, 5


def account(epsilon=10.0, delta=1e-3, unit="record"):
    return ledger.open_account(
        scope=f"gate {secrets.token_hex(4)}",
        label="pool",
        unit=unit,
        filter="pure",
        epsilon_limit=epsilon,
        delta_limit=delta,
        actor="test",
        reason="test",
    )


@pytest.fixture
def crowd():
    return make_project(oracle="crowd", normalizer="L1", overlap=3, pool_account=account())


def ready(project, texts):
    (record, *_) = make_records(project, texts)
    return record.dataset


def gated(project, texts):
    dataset = ready(project, texts)
    job = gates.start_gate(dataset=dataset)
    gates.run_gate(job_id=job.pk)
    job.refresh_from_db()
    return dataset, job


def let_lapse(job):
    Job.objects.filter(pk=job.pk).update(leased_until=Now() - timedelta(minutes=10))


TEXTS = ["Play  Jazz"] * OFTEN + ["my very own secret"] * RARE + ["stop"] * OFTEN


def test_common_texts_become_candidates_and_rare_ones_nothing(crowd, sent_tasks, caplog):
    caplog.set_level(logging.DEBUG)
    dataset, job = gated(crowd, TEXTS)
    found = Query.objects.order_by("text").values_list("text", "state", "overlap", "open_slots", "record_id")
    assert list(found) == [("play jazz", "unasked", 3, 0, None), ("stop", "unasked", 3, 0, None)]
    run = GateRun.objects.get()
    assert (run.state, run.passed_count, run.dataset_id) == ("committed", 2, dataset.pk)
    assert all(17 <= count < OFTEN for count in Query.objects.values_list("sample_count", flat=True))
    assert (job.state, job.message) == ("done", "Done.")
    assert sent_tasks[-1] == "learner.tasks.advance_project_task"
    assert "secret" not in caplog.text + job.message + job.error


def test_what_did_not_pass_is_written_nowhere(crowd):
    dataset, _job = gated(crowd, TEXTS)
    Record.objects.filter(dataset=dataset).delete()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE %s', ["%very own%"])
            assert cursor.fetchone() == (0,), table


def test_the_ledger_holds_the_cost_before_and_the_digest_after(crowd):
    dataset, job = gated(crowd, TEXTS)
    run = GateRun.objects.get()
    reservation, commit = crowd.pool_account.entries.filter(kind__in=("reserve", "commit")).order_by("sequence")
    assert (run.reservation, run.committed_entry) == (reservation, commit)
    assert reservation.idempotency_key == uuid5(job.pk, "1")
    assert reservation.subject == f"dataset:{dataset.pk}"
    assert reservation.event["kind"] == "k_anonymity_gate"
    assert (reservation.epsilon_nano, reservation.delta_atto > 0) == (500_000_000, True)
    shown = "".join(
        f'["{text}", {count}]\n' for text, count in Query.objects.order_by("text").values_list("text", "sample_count")
    )
    assert commit.output_digest == hashlib.sha256(shown.encode()).hexdigest()


@pytest.mark.parametrize("at_once", [1, 3, gates.OUTPUT_ROWS])
def test_the_digest_is_of_the_lines_that_json_writes(monkeypatch, at_once):
    monkeypatch.setattr(gates, "OUTPUT_ROWS", at_once)
    texts = ['say "stop"', "back\\slash", "line\nend\t\x01\x7f", "Straße 🎵\u2028"]
    for counts in ([8, 9, 10, 2**40], [8.0, 9.5, 1e22, 123456.789]):
        passed = pa.table({"text": texts, "count": counts})
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in zip(texts, counts, strict=True))
        assert gates.output_digest(passed) == hashlib.sha256(lines.encode()).hexdigest()


def test_the_gate_starts_when_the_upload_is_read_and_only_once(crowd, sent_tasks):
    dataset = receive_upload(
        project=crowd, file=ContentFile(b"text\n" + b"Stop!\n" * OFTEN), name="a.csv", uploaded_by=make_user()
    )
    assert gates.start_gate(dataset=dataset) is None  # not read yet
    datasets.import_dataset(job_id=dataset.job_id)
    assert sent_tasks == ["annotation.tasks.import_dataset_task", "annotation.tasks.run_gate_task"]
    dataset.refresh_from_db()
    assert gates.start_gate(dataset=dataset) is None
    for _ in range(3):
        gates.run_gate(job_id=dataset.gate_job_id)
    assert GateRun.objects.count() == 1
    assert [query.text for query in Query.objects.all()] == ["stop"]
    assert crowd.pool_account.entries.filter(kind="reserve").count() == 1
    assert gates.start_gate(dataset=dataset) is None


def test_only_ready_pools_of_crowds_are_gated(crowd):
    for dataset in (
        ready(make_project(), ["a"]),
        make_records(crowd, ["a"], role="public_test")[0].dataset,
        make_records(crowd, ["a"], state="refused")[0].dataset,
    ):
        assert gates.start_gate(dataset=dataset) is None
    assert not Job.objects.filter(kind=jobs.GATE).exists()


def test_contributors_count_once_for_a_text():
    project = make_project(
        oracle="crowd",
        normalizer="L1",
        privacy_unit="contributor",
        texts_per_contributor=2,
        pool_account=account(unit="contributor"),
    )
    lines = [f"many,person {n}" for n in range(OFTEN)] + ["shouted,one person"] * OFTEN
    dataset = receive_upload(
        project=project,
        file=ContentFile(("text,who\n" + "\n".join(lines)).encode()),
        name="a.csv",
        mapping={"contributor": "who"},
        uploaded_by=make_user(),
    )
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    gates.run_gate(job_id=dataset.gate_job_id)
    assert [query.text for query in Query.objects.all()] == ["many"]
    # Two texts of one person together, each at .5.
    assert spent_nano(project) == 567_382_813


def spent_nano(project):
    return project.pool_account.entries.latest("sequence").epsilon_spent_nano


def test_a_text_that_passes_again_stays_the_question_it_was(crowd):
    gated(crowd, ["stop"] * OFTEN)
    first = Query.objects.get()
    dataset, job = gated(crowd, ["stop"] * OFTEN + ["go"] * OFTEN)
    assert job.state == "done"
    assert GateRun.objects.get(dataset=dataset).passed_count == 2
    again = Query.objects.get(text="stop")
    assert (again.pk, again.sample_count, again.gate_run_id) == (first.pk, first.sample_count, first.gate_run_id)
    assert Query.objects.get(text="go").gate_run.dataset == dataset
    assert spent_nano(crowd) == 2 * 500_000_000


def test_a_long_text_may_pass(crowd):
    gated(crowd, ["word " * 3000] * OFTEN)
    assert len(Query.objects.get().text) == 14_999


def test_nothing_may_pass_and_that_is_committed_too(crowd):
    _dataset, job = gated(crowd, ["rare"] * RARE)
    assert (job.state, GateRun.objects.get().passed_count) == ("done", 0)
    assert not Query.objects.exists()


def test_a_spent_budget_refuses_before_anything_is_read(crowd, monkeypatch):
    crowd.pool_account = account(epsilon=0.4)
    crowd.save()
    monkeypatch.setattr(KAnonymityGate, "decide", lambda *args, **kwargs: pytest.fail("read private rows"))
    dataset, job = gated(crowd, TEXTS)
    assert job.state == "failed"
    assert "epsilon=0.5" in job.error
    assert "left" in job.error
    assert not GateRun.objects.exists()
    assert spent_nano(crowd) == 0
    monkeypatch.undo()
    ledger.change_account_limits(
        account=crowd.pool_account, epsilon_limit=1.0, delta_limit=1e-3, actor="test", reason="more is needed"
    )
    dataset.refresh_from_db()
    again = gates.start_gate(dataset=dataset)
    gates.run_gate(job_id=again.pk)
    assert Query.objects.count() == 2
    assert spent_nano(crowd) == 500_000_000


def test_an_attempt_that_breaks_is_charged_and_lost(crowd, monkeypatch):
    def decide(self, batches, *, key):
        list(batches)
        raise OSError("a record might stand here")

    monkeypatch.setattr(KAnonymityGate, "decide", decide)
    job = gates.start_gate(dataset=ready(crowd, TEXTS))
    with pytest.raises(OSError, match="might"):
        gates.run_gate(job_id=job.pk)
    job.refresh_from_db()
    assert (job.state, GateRun.objects.get().state) == ("failed", "lost")
    assert job.error == interruptions.reason_of(OSError()) + " What the gate reserved stays charged."
    assert crowd.pool_account.entries.filter(kind="charge").count() == 1
    assert spent_nano(crowd) == 500_000_000


class Killed(BaseException):
    """What a worker never sees: nothing after it runs."""


def test_a_killed_attempt_is_charged_and_the_next_one_draws_anew(crowd, monkeypatch):
    keys = []
    decide = KAnonymityGate.decide

    def die(self, batches, *, key):
        keys.append(key)
        list(batches)
        raise Killed

    def live(self, batches, *, key):
        keys.append(key)
        return decide(self, batches, key=key)

    dataset = ready(crowd, TEXTS)
    job = gates.start_gate(dataset=dataset)
    monkeypatch.setattr(KAnonymityGate, "decide", die)
    with pytest.raises(Killed):
        gates.run_gate(job_id=job.pk)
    assert (GateRun.objects.get().state, spent_nano(crowd)) == ("running", 500_000_000)
    gates.run_gate(job_id=job.pk)  # the lease still runs
    let_lapse(job)
    monkeypatch.setattr(KAnonymityGate, "decide", live)
    gates.run_gate(job_id=job.pk)
    assert list(GateRun.objects.order_by("pk").values_list("state", flat=True)) == ["lost", "committed"]
    assert len(keys) == len(set(keys)) == 2
    assert min(map(len, keys)) >= 32
    reserved = LedgerEntry.objects.filter(account=crowd.pool_account, kind="reserve").order_by("sequence")
    assert [entry.idempotency_key for entry in reserved] == [uuid5(job.pk, "1"), uuid5(job.pk, "2")]
    assert [entry.children.get().kind for entry in reserved] == ["charge", "commit"]
    assert spent_nano(crowd) == 2 * 500_000_000
    assert Query.objects.count() == 2


def test_questions_and_ledger_entry_commit_together_or_not_at_all(crowd, monkeypatch):
    monkeypatch.setattr(jobs, "send_project_changed", lambda project_id: 1 / 0)
    job = gates.start_gate(dataset=ready(crowd, TEXTS))
    with pytest.raises(ZeroDivisionError):
        gates.run_gate(job_id=job.pk)
    assert not Query.objects.exists()
    assert GateRun.objects.get().state == "lost"
    assert not crowd.pool_account.entries.filter(kind="commit").exists()


def test_an_attempt_that_was_taken_over_stores_nothing(crowd, monkeypatch, caplog):
    decide = KAnonymityGate.decide
    job = gates.start_gate(dataset=ready(crowd, TEXTS))

    def slow(self, batches, *, key):
        passed = decide(self, batches, key=key)
        if Job.objects.get(pk=job.pk).attempt == 1:
            let_lapse(job)
            gates.run_gate(job_id=job.pk)
        return passed

    monkeypatch.setattr(KAnonymityGate, "decide", slow)
    gates.run_gate(job_id=job.pk)
    assert "taken over" in caplog.text
    assert list(GateRun.objects.order_by("pk").values_list("state", flat=True)) == ["lost", "committed"]
    assert Query.objects.filter(gate_run=GateRun.objects.get(state="committed")).count() == 2
    assert spent_nano(crowd) == 2 * 500_000_000


def test_what_kills_every_worker_does_not_eat_the_budget(crowd):
    job = gates.start_gate(dataset=ready(crowd, TEXTS))
    Job.objects.filter(pk=job.pk).update(attempt=gate_attempts.MAXIMUM_ATTEMPTS)
    gates.run_gate(job_id=job.pk)
    assert Job.objects.get(pk=job.pk).state == "failed"
    assert spent_nano(crowd) == 0


def test_records_reach_the_gate_in_the_order_of_their_rows(crowd, monkeypatch):
    monkeypatch.setattr(pool_files, "BATCH_ROWS", 3)
    dataset = ready(crowd, [f"text {n}" for n in range(10)])
    Record.objects.filter(dataset=dataset, row_number=2).update(payload={})  # moves the row within the table

    told = []
    batches = list(pool_files.records(Dataset.objects.get(pk=dataset.pk), told.append))
    assert [text for batch in batches for text in batch.column("text").to_pylist()] == [f"text {n}" for n in range(10)]
    assert [batch.num_rows for batch in batches] == [3, 3, 3, 1]
    assert told == [3, 6, 9]
