"""A gate that runs on: which uploads a run counts, what it pays, and that no record is counted more often than that."""

import secrets
import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.files.base import ContentFile
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from annotation.budget import charges
from annotation.choices.services import frozen_settings
from annotation.data.services import datasets, forgetting, pool_files
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.gates import services as gates
from annotation.models import GateRun, GateState, Job, PoolPart, Query, Record
from annotation.projects.services import configuring
from privacy.accounting.events import event_from_json
from privacy.accounting.gate_events import next_window_run
from privacy.gate.kanonymity import KAnonymityGate
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.models import LedgerEntry
from tests.factories import make_project, make_records, make_user, receive_upload, write_settings

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("reads_here")]
# At a rate of 0.5 and k = 8, 7 copies never pass, and 400 do but with a chance below 1e-90.
OFTEN, RARE = 400, 7
GATE = {"gate_k": 8, "gate_sampling_rate": 0.5, "gate_epsilon": 1.0, "gate_window": 3}
# What three runs cost together.
TOGETHER = 1.140625


def crowd(epsilon=10.0, **fields):
    pool = ledger.open_account(
        scope=f"gate {secrets.token_hex(4)}",
        label="pool",
        unit="record",
        filter="pure",
        epsilon_limit=epsilon,
        delta_limit=0.5,
        actor="test",
        reason="test",
    )
    return make_project(oracle="crowd", normalizer="L1", pool_account=pool, **GATE | fields)


def uploaded(project, texts):
    return make_records(project, texts)[0].dataset


def gated(project, texts):
    dataset = uploaded(project, texts)
    return dataset, run_of(dataset)


def run_of(dataset):
    job = gates.start_gate(dataset=dataset)
    gates.run_gate(job_id=job.pk)
    job.refresh_from_db()
    return job


def reserved(project):
    entries = LedgerEntry.objects.filter(account=project.pool_account, kind="reserve").order_by("sequence")
    return [event_from_json(entry.event) for entry in entries]


def spent(project):
    return project.pool_account.entries.latest("sequence").epsilon_spent_nano / 1e9


def asked(project):
    return set(Query.objects.filter(project=project).values_list("text", flat=True))


@pytest.fixture
def counts(monkeypatch):
    read = []
    release = gates.release

    def counted(uploads, *args):
        read.append([upload.pk for upload in uploads])
        return release(uploads, *args)

    monkeypatch.setattr(gates, "release", counted)
    return read


def test_what_is_said_a_little_every_day_passes_and_all_days_cost_the_window(counts):
    """False alarm: < 1e-10; in each of ten windows 8 of 21 copies are in the sample with a chance of 0.9."""
    project = crowd()
    days = [gated(project, ["play jazz"] * RARE + [f"only on day {day}"] * RARE)[0].pk for day in range(12)]
    assert counts == [days[max(0, day - 2) : day + 1] for day in range(12)]
    assert [event.cost().epsilon for event in reserved(project)] == [TOGETHER] + [0.0] * 11
    # What one day alone says never passes.
    assert asked(project) == {"play jazz"}
    assert [verdict.differing for verdict in audit_accounts(scope=project.pool_account.scope, marks=None)] == [0]


def test_the_price_on_the_button_is_what_is_charged():
    project = crowd()
    assert charges.gate_charge(project).epsilon == TOGETHER
    dataset, _job = gated(project, ["stop"] * OFTEN)
    assert charges.gate_charge(project).epsilon == 0.0
    assert charges.upload_charge(project, "pool", dataset).epsilon == 1.0
    assert charges.gate_charge(crowd(gate_window=None)).epsilon == 1.0


def test_a_gate_without_a_window_pays_for_each_upload_by_itself(counts):
    project = crowd(gate_window=None)
    days = [gated(project, ["stop"] * OFTEN)[0].pk for _ in range(3)]
    assert counts == [[day] for day in days]
    assert spent(project) == 3.0


class Killed(BaseException):
    """What a worker never sees: nothing after it runs."""


def killed(monkeypatch, job):
    def die(self, batches, *, key):
        list(batches)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(KAnonymityGate, "decide", die)
        with pytest.raises(Killed):
            gates.run_gate(job_id=job.pk)
    Job.objects.filter(pk=job.pk).update(leased_until=Now() - timedelta(minutes=10))


def test_a_killed_run_is_paid_for_and_repeated_as_its_epoch(monkeypatch, counts):
    project = crowd()
    first = uploaded(project, ["stop"] * OFTEN)
    job = gates.start_gate(dataset=first)
    killed(monkeypatch, job)
    second, _job = gated(project, ["go"] * OFTEN)
    gates.run_gate(job_id=job.pk)
    events = reserved(project)
    assert [(event.epoch, event.epochs, event.repeats) for event in events] == [(1, 0, ()), (2, 1, ()), (1, 2, ())]
    assert [event.cost().epsilon for event in events] == [TOGETHER, 0.0, 1.0]
    # It reads what its epoch reads, not what came later.
    assert counts == [[first.pk], [first.pk, second.pk], [first.pk]]
    states = GateRun.objects.order_by("pk").values_list("dataset_id", "state")
    assert list(states) == [(first.pk, "lost"), (second.pk, "committed"), (first.pk, "committed")]
    third, _job = gated(project, ["go"] * OFTEN)
    assert reserved(project)[-1].repeats == (1,)
    assert counts[-1] == [first.pk, second.pk, third.pk]
    assert spent(project) == TOGETHER + 1


def test_a_run_that_its_account_cannot_repeat_is_refused_before_it_reads(monkeypatch, counts):
    project = crowd(epsilon=2.0)
    job = gates.start_gate(dataset=uploaded(project, ["stop"] * OFTEN))
    killed(monkeypatch, job)
    gates.run_gate(job_id=job.pk)
    job.refresh_from_db()
    assert (job.state, len(counts)) == ("failed", 1)
    gated(project, ["go"] * OFTEN)
    assert len(counts) == 2


def test_two_uploads_at_once_are_two_epochs_and_paid_for_once(monkeypatch):
    project = crowd()
    jobs = [gates.start_gate(dataset=uploaded(project, [text] * OFTEN)) for text in ("stop", "go")]
    looked = threading.Barrier(2, timeout=120)
    reserve = ledger.reserve
    waiting = threading.local()

    def together(**given):
        if not getattr(waiting, "done", False):
            waiting.done = True
            looked.wait()
        return reserve(**given)

    monkeypatch.setattr(gates.ledger, "reserve", together)

    def go(job):
        gates.run_gate(job_id=job.pk)
        connection.close()

    threads = [threading.Thread(target=go, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    events = reserved(project)
    assert [(event.epoch, event.epochs) for event in events] == [(1, 0), (2, 1)]
    assert spent(project) == TOGETHER
    assert GateRun.objects.filter(project=project, state=GateState.COMMITTED).count() == 2
    assert asked(project) == {"stop", "go"}


def test_emptied_records_of_an_earlier_upload_are_not_counted_any_more(monkeypatch):
    project, read = crowd(), []
    first, _job = gated(project, ["stop", "go"])
    reading = KAnonymityGate.read

    def looked_at(self, batches, **given):
        found = list(batches)
        read.extend(text for batch in found for text in batch.column("text").to_pylist())
        return reading(self, found, **given)

    monkeypatch.setattr(KAnonymityGate, "read", looked_at)
    with transaction.atomic():
        forgetting.empty_records(Record.objects.filter(dataset=first, text="stop"), project=project)
    gated(project, ["play"])
    assert [text for text in read if text] == ["go", "play"]
    assert len(read) == 3


def test_uploads_in_columns_are_counted_together_by_the_engine(monkeypatch, counts):
    monkeypatch.setattr(pool_files, "PART_ROWS", 100)
    project = crowd(gate_window=2)
    found = [sent(project, text) for text in ("stop", "go", "stop")]
    firsts = PoolPart.objects.filter(dataset__in=found[:2]).count()
    files = pool_files.files_of(*found[:2])
    assert firsts == len({file.number for file in files}) == 8
    assert [file.first_row for file in files] == list(range(0, 800, 100))
    for dataset in found:
        gates.run_gate(job_id=dataset.gate_job_id)
    assert counts == [[found[0].pk], [found[0].pk, found[1].pk], [found[1].pk, found[2].pk]]
    assert asked(project) == {"stop", "go"}
    job = Job.objects.get(pk=found[2].gate_job_id)
    assert (job.state, job.progress_done) == ("done", 800)


def sent(project, text):
    dataset = receive_upload(
        project=project,
        file=ContentFile(f"text\n{(text + chr(10)) * OFTEN}".encode()),
        name=f"{text}.csv",
        uploaded_by=make_user(),
        send=False,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    return dataset


def test_the_number_of_uploads_stays_once_something_is_charged():
    project = crowd()
    gates.choose_gate(project=project, settings={"gate_kind": "k_anonymity", **GATE, "gate_window": 2})
    project.refresh_from_db()
    assert project.gate_window == 2
    gated(project, ["stop"] * OFTEN)
    assert "gate_window" in frozen_settings(project)
    with pytest.raises(ConfigurationFrozen):
        gates.choose_gate(project=project, settings={"gate_kind": "k_anonymity", **GATE})
    with pytest.raises(ConfigurationFrozen, match="gate_window"):
        configuring.configure_project(project=project, actor=make_user(), changes={"gate_window": 5})


def test_people_and_what_the_pool_cannot_pay_are_refused():
    project = crowd(epsilon=1.1, gate_window=None)
    chosen = {"gate_kind": "k_anonymity", **GATE}
    with pytest.raises(InvalidConfiguration, match=r"epsilon 1\.14"):
        gates.choose_gate(project=project, settings=chosen)
    gates.choose_gate(project=project, settings=chosen | {"gate_window": 2})
    with pytest.raises(IntegrityError, match="annotation_project_uploads_together"), transaction.atomic():
        write_settings(project, privacy_unit="contributor", texts_per_contributor=2, gate_window=2)


def test_the_database_refuses_a_run_of_another_window_or_a_second_epoch_of_an_upload():
    project = crowd()
    dataset, _job = gated(project, ["stop"] * OFTEN)
    before = reserved(project)[-1]
    once = before.inner

    def reserve(event, upload):
        return ledger.reserve(
            account=project.pool_account, event=event, purpose="test", subject=charges.subject_of(upload), key=uuid4()
        )

    again = reserve(next_window_run(before, once, window=3), dataset)
    for reservation, upload in (
        (again, dataset),  # a second epoch of the same upload
        (again, uploaded(project, ["go"])),  # paid for another upload
        (reserve(once, dataset), dataset),  # paid for as a run by itself
    ):
        with pytest.raises(IntegrityError) as refusal, transaction.atomic():
            GateRun.objects.create(project=project, dataset=upload, reservation=reservation)
        assert refusal.value.__cause__.diag.constraint_name == "annotation_gate_run_paid"
