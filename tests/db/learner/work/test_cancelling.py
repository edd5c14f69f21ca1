import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotation.data.services import datasets, pool_files
from annotation.gates import services as gates
from annotation.models import Dataset, GateRun, Job, Query, Record, WorkState
from annotation.work.services import attempts, jobs
from learner.models import ModelRelease, Round, TrainingRun
from learner.releases.services import publishing
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import loop, training
from tests import learning
from tests.factories import make_user, receive_upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage", "reads_here")]


def kinds(project) -> list[str]:
    return [entry.kind for entry in project.pool_account.entries.order_by("sequence")][1:]


def cancel(row) -> None:
    assert attempts.cancel_work(row=type(row).objects.get(pk=row.pk), by="ada")


def cancel_at(monkeypatch, module, step: str, row) -> None:
    monkeypatch.setattr(module, "fault_point", lambda reached: cancel(row) if reached == step else None)


def upload(project) -> Dataset:
    rows = "\n".join(learning.sentences(30))
    return receive_upload(
        project=project, file=SimpleUploadedFile("pool.csv", f"text\n{rows}\n".encode()), name="pool.csv", send=False
    )


def test_what_waits_is_cancelled_at_once_and_never_run():
    dataset = upload(learning.open_trusted(make_user()))
    cancel(dataset.job)
    datasets.import_dataset(job_id=dataset.job_id)
    job = Job.objects.get(pk=dataset.job_id)
    assert (job.state, job.error, job.cancelled_by) == ("failed", "Cancelled by ada.", "ada")
    assert not Record.objects.exists()
    assert not attempts.cancel_work(row=job, by="bob")
    assert Job.objects.get(pk=job.pk).cancelled_by == "ada"


def test_a_reading_that_is_cancelled_stores_nothing_and_the_file_is_read_again(monkeypatch):
    dataset = upload(learning.open_trusted(make_user()))
    real = attempts.Lease.check

    def check(lease: attempts.Lease) -> None:
        lease._cancelled_by = "ada"
        real(lease)

    # The thread that listens would have heard of it by now; a COPY keeps this connection to itself.
    with monkeypatch.context() as patch:
        patch.setattr(attempts.Lease, "check", check)
        datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    assert (dataset.state, dataset.job.state, dataset.job.error) == ("receiving", "failed", "Cancelled by ada.")
    assert not Record.objects.exists()
    datasets.forget_read_uploads()
    job = datasets.read_again(dataset=dataset)
    assert job is not None
    assert datasets.read_again(dataset=dataset) is None
    datasets.import_dataset(job_id=job.pk)
    dataset.refresh_from_db()
    assert (dataset.state, dataset.row_count, dataset.job_id) == ("ready", 30, job.pk)


@pytest.fixture
def crowd():
    project = learning.open_crowd(make_user())
    rows = "\n".join(f"{text},person {n}" for text in learning.sentences(4) for n in range(20))
    dataset = receive_upload(
        project=project,
        file=SimpleUploadedFile("log.csv", f"text,contributor\n{rows}\n".encode()),
        name="log.csv",
        mapping={"contributor": "contributor"},
        send=False,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    return dataset


def test_a_gate_that_had_begun_to_read_is_charged_and_the_next_one_pays_once(crowd, monkeypatch):
    project = crowd.project
    real = pool_files.current_content

    def reading(*args):
        cancel(crowd.gate_job)
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(pool_files, "current_content", reading)
        gates.run_gate(job_id=crowd.gate_job_id)
    assert Job.objects.get(pk=crowd.gate_job_id).error == "Cancelled by ada."
    assert (GateRun.objects.get().state, kinds(project)) == ("lost", ["reserve", "charge"])
    assert not Query.objects.exists()
    again = gates.start_gate(dataset=crowd)
    gates.run_gate(job_id=again.pk)
    assert kinds(project) == ["reserve", "charge", "reserve", "commit"]
    cost = project.pool_account.entries.get(kind="commit").epsilon_nano
    assert project.pool_account.entries.latest("sequence").epsilon_spent_nano == 2 * cost


def test_a_gate_cancelled_before_it_reserves_costs_nothing(crowd):
    job = crowd.gate_job
    # As if its worker had died before it came to anything.
    Job.objects.filter(pk=job.pk).update(state="running", attempt=1, leased_until="2000-01-01T00:00Z")
    cancel(job)
    gates.run_gate(job_id=job.pk)
    assert Job.objects.get(pk=job.pk).state == "failed"
    assert kinds(crowd.project) == []
    gates.run_gate(job_id=gates.start_gate(dataset=crowd).pk)
    assert kinds(crowd.project) == ["reserve", "commit"]


@pytest.fixture
def trusted():
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    return project


def test_a_round_that_had_chosen_asks_nothing_stays_charged_and_starts_anew_once(trusted, monkeypatch):
    loop.advance_project(project_id=trusted.pk)
    chosen = Round.objects.get()
    with monkeypatch.context() as patch:
        cancel_at(patch, loop, "round_chosen", chosen)
        loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    assert (chosen.state, chosen.error) == ("failed", "Cancelled by ada.")
    assert (Query.objects.count(), kinds(trusted)) == (0, ["reserve", "charge"])
    # Nothing begins by itself what a person has stopped.
    assert loop.advance_project(project_id=trusted.pk).step == Step.STUCK
    assert "A manager can restart it on" in project_status(trusted).sentence
    again = loop.start_anew(row=chosen)
    assert loop.start_anew(row=chosen) is None
    loop.run_round(round_id=again.pk)
    assert kinds(trusted) == ["reserve", "charge", "reserve", "commit"]
    assert Query.objects.count() == 12
    assert loop.start_anew(row=chosen) is None


def test_a_training_that_was_cancelled_releases_nothing_and_starts_anew(trusted, monkeypatch):
    annotator = make_user()
    learning.work_off(trusted)
    learning.label_everything(trusted, annotator)
    loop.advance_project(project_id=trusted.pk)
    run = TrainingRun.objects.get()
    before = len(kinds(trusted))
    with monkeypatch.context() as patch:
        cancel_at(patch, publishing, "training_staged", run)
        training.train_model(run_id=str(run.pk))
    run.refresh_from_db()
    assert (run.state, run.error) == ("failed", "Cancelled by ada.")
    assert kinds(trusted)[before:] == ["reserve", "charge"]
    assert not ModelRelease.objects.exists()
    assert learning.open_reservations(trusted) == 0
    again = loop.start_anew(row=run)
    training.train_model(run_id=str(again.pk))
    assert kinds(trusted)[before:] == ["reserve", "charge", "reserve", "commit"]
    assert ModelRelease.objects.get().labels_used == again.labels_used == run.labels_used


def test_a_secret_block_is_started_anew_as_itself():
    """A training of no block would be charged as if there were no coins, so only the block itself may start."""
    project = learning.open_secret(make_user())
    learning.fill_trusted(project)
    loop.advance_project(project_id=project.pk)
    first = Round.objects.get()
    cancel(first)
    assert loop.advance_project(project_id=project.pk).step == Step.STUCK
    again = loop.start_anew(row=Round.objects.get(pk=first.pk))
    assert again.block == first.block == 1
    assert kinds(project) == []


def test_a_running_worker_hears_of_it_between_two_checks(settings):
    settings.WORK_LEASE_SECONDS = 30
    job = Job.objects.create(project=learning.open_trusted(make_user()), kind=jobs.COMPARE)
    assert attempts.take_work(row=job)
    assert Job.objects.get(pk=job.pk).started_at is not None
    lease = attempts.Lease(job)
    lease.check()
    cancel(job)
    lease._listen()
    with pytest.raises(attempts.WorkCancelled, match="Cancelled by ada"):
        lease.check()
    attempts.fail_work(row=job, error="Cancelled by ada.")
    assert job.state == WorkState.FAILED
