import os
import signal
import sys
from dataclasses import dataclass
from io import StringIO

import numpy as np
import psycopg
import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import call_command

from annotation.data.services import datasets
from annotation.gates import services as gates
from annotation.models import Query
from annotation.models.imports import ImportPart
from annotation.tasks import read_import_parts_task
from annotation.work.services import files, jobs
from dpal_site.embedded import host
from learner.models import FeatureMatrix, Round
from learner.pools import features
from learner.pools import records as pool_selectors
from learner.pools.configuration import featurizer_of, strategy_of
from learner.rounds.services import loop, selection
from privacy.ledger.models import LedgerEntry
from privacy.mechanisms.randomness import SimulationRandom
from tests import learning
from tests.counting import new_counter
from tests.crews import batch_workers
from tests.factories import make_account, make_project, make_user, receive_upload
from tests.faults.small_parts import READING_LOCK, SEED, predict_coins
from tests.faults.storm.site import descendants
from tests.pools import stored_rows

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]
LEASE_SECONDS = 4
PATIENCE_SECONDS = 120
GATE = {"gate_k": 8, "gate_sampling_rate": 0.5, "gate_epsilon": 1.0}
ROWS = 600
MAPPING = {"text": "text", "contributor": "contributor"}


@pytest.fixture
def predictable(monkeypatch, settings, tmp_path):
    monkeypatch.setenv("WORK_LEASE_SECONDS", str(LEASE_SECONDS))
    monkeypatch.setenv("LEDGER_COUNTER_PATH", str(tmp_path / "ledger-counter.json"))
    settings.WORK_LEASE_SECONDS = LEASE_SECONDS
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)
    predict_coins(monkeypatch.setattr)


@pytest.fixture
def workers(predictable, supervisor):
    def start():
        options = ["--concurrency", "2", "--queues", "heavy", "--without-gossip", "--without-mingle"]
        supervisor.start("worker", [sys.executable, "-m", "tests.faults.small_parts", *options])

    start.pids = lambda: descendants(supervisor.pid("worker"))
    return start


@dataclass(frozen=True)
class Waiting:
    pid: int
    task: str

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        wait_until(lambda: host.running_process(self.pid) is None)


class Held:
    """A place in the work that no worker passes until it is let go: a lock, for which a change of rows may wait."""

    def __init__(self, address, key, *change):
        self.key, self.name = key, f"test_held_{key}"
        self.session = psycopg.connect(address, autocommit=True)
        self.session.execute("SELECT pg_advisory_lock(%s)", [self.key])
        if change:
            self._wait_at(*change)

    def _wait_at(self, table, change, rows):
        self.session.execute(
            f"CREATE FUNCTION {self.name}() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN PERFORM pg_advisory_xact_lock_shared({self.key}); RETURN NEW; END $$"
        )
        self.session.execute(
            f"CREATE TRIGGER {self.name} BEFORE {change} ON {table}"
            f" FOR EACH ROW WHEN ({rows}) EXECUTE FUNCTION {self.name}()"
        )

    def waiting(self):
        found = self.session.execute(
            "SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid)"
            " WHERE locktype = 'advisory' AND NOT granted AND objid = %s ORDER BY 1",
            [self.key],
        ).fetchall()
        return [Waiting(int(pid), task) for pid, _, task in (name.partition(" ") for (name,) in found)]

    def wait_for(self, count):
        wait_until(lambda: len(self.waiting()) == count)
        return {each.task: each for each in self.waiting()}

    def let_go(self):
        self.session.execute("SELECT pg_advisory_unlock_all()")

    def remove(self):
        self.session.execute(f"DROP FUNCTION IF EXISTS {self.name} CASCADE")
        self.session.close()


@pytest.fixture
def hold(embedded_servers):
    places = []

    def begin(*where, key=None):
        places.append(Held(embedded_servers.owner_url, key or 7000 + len(places), *where))
        return places[-1]

    yield begin
    # Whoever waits at one place may hold what another one's end waits for.
    for place in places:
        place.let_go()
    for place in places:
        place.remove()


def wait_until(condition):
    assert host.wait_until(condition, PATIENCE_SECONDS, 0.02), "it did not happen in time"


def done(row, victim):
    """Say whether a job or round is done; where its holder was killed, after doing the clock's part for it."""
    if victim == "holder":
        jobs.resend_stalled_work()
        loop.advance_projects()
    row.refresh_from_db()
    assert row.state != "failed", row.error
    return row.state == "done"


def reserved(project):
    """Count what was ever reserved; nothing may be open."""
    assert learning.open_reservations(project) == 0
    return LedgerEntry.objects.filter(account=project.pool_account, kind="reserve").count()


# Imports and gates.


def crowd_upload(settings, *, in_columns):
    settings.POOLS_IN_DATABASE = not in_columns
    account = make_account(epsilon_limit=10.0, delta_limit=0.5)
    project = make_project(oracle="crowd", normalizer="L1", pool_account=account, **GATE)
    lines = [f'"text {number % (7 + number // 40)}\n of many",person {number % 90}' for number in range(ROWS)]
    file = ContentFile("\n".join(["text,contributor", *lines]).encode())
    return receive_upload(
        project=project, file=file, name="rows.csv", mapping=MAPPING, uploaded_by=make_user(), send=False
    )


def gated(dataset):
    return sorted(Query.objects.filter(gate_run__dataset=dataset).values_list("text", "sample_count"))


@pytest.mark.slow
def test_an_import_and_its_gate_end_as_if_nobody_had_been_killed(workers, hold, settings):
    whole = crowd_upload(settings, in_columns=True)
    datasets.import_dataset(job_id=whole.job_id)
    whole.refresh_from_db()
    gates.run_gate(job_id=whole.gate_job_id)
    assert 0 < len(gated(whole)) < ROWS
    workers()
    # Starting a worker takes longer than all the rest.
    for victim, in_columns in (("helper", False), ("holder", True)):
        check_import_and_gate(workers, hold, victim, whole, crowd_upload(settings, in_columns=in_columns))
    call_command("audit_ledger", stdout=StringIO())


def check_import_and_gate(workers, hold, victim, whole, dataset):
    first_part = f"NEW.dataset_id = {dataset.pk} AND NEW.number = 0 AND NEW.stored"
    storing = hold("annotation_importpart", "UPDATE", first_part)
    committing = hold("annotation_gaterun", "UPDATE", f"NEW.dataset_id = {dataset.pk} AND NEW.state = 'committed'")

    # One process keeps the first part and is held at it; the other is ahead.
    jobs.open_work(dataset.job)[0].send()
    holder = storing.wait_for(1)["import_dataset_task"]
    read_import_parts_task.delay(dataset_id=dataset.pk)
    ahead = ImportPart.objects.filter(dataset=dataset, stored=True)
    wait_until(ahead.exists)
    assert ImportPart.objects.filter(dataset=dataset).count() > 3
    wait_until(lambda: len(workers.pids()) == 2)
    (helper,) = set(workers.pids()) - {holder.pid}
    (Waiting(helper, "") if victim == "helper" else holder).kill()
    storing.let_go()
    wait_until(lambda: done(dataset.job, victim))
    assert (dataset.job.attempt == 1) == (victim == "helper")
    dataset.refresh_from_db()
    assert (dataset.state, dataset.row_count, dataset.bad_row_count) == ("ready", ROWS, 0)
    assert stored_rows(dataset) == stored_rows(whole)
    assert not ImportPart.objects.exists()

    # The gate has read everything, and nothing of what passed is stored.
    found = committing.wait_for(1)
    if victim == "holder":
        found["run_gate_task"].kill()
    committing.let_go()
    wait_until(lambda: done(dataset.gate_job, victim))
    assert gated(dataset) == gated(whole)
    assert reserved(dataset.project) == dataset.gate_job.attempt
    assert (dataset.gate_job.attempt == 1) == (victim == "helper")
    committed = [each.gate_runs.get(state="committed").committed_entry.output_digest for each in (whole, dataset)]
    assert committed[0] == committed[1]


# Features and scores.


def pool_of(owner):
    project = learning.open_trusted(owner)
    known = [[text, learning.CLASSES[learning.truth_of(text)]] for text in learning.sentences(20, seed=2)]
    learning.upload(project, known, ["text", "label"], role="public_start")
    return project, learning.upload(project, [[text] for text in learning.sentences(130)], ["text"])


def asked(project):
    rows = Query.objects.filter(project=project).values_list("record__row_number", flat=True)
    return sorted(rows)


def expected_choice(project, dataset):
    matrix = features.ensure_matrix(dataset)
    candidates = pool_selectors.open_records(project)
    strategy = strategy_of(project, "top_c")
    X = features.stacked_features(candidates.datasets, dimension=featurizer_of(project).dimension)
    chosen = Round(project=project, number=1, strategy="top_c", requested=project.round_size)
    model = selection.scoring_model(chosen)
    rows = strategy.choose(X, candidates.rows, model, chosen.requested, SimulationRandom(SEED))
    digest = matrix.sha256
    matrix.delete()
    return digest, np.sort(rows).tolist()


@pytest.mark.slow
def test_a_round_in_parts_ends_as_if_nobody_had_been_killed(workers, hold):
    workers()
    for victim in ("helper", "holder"):
        check_round(hold, victim)
    call_command("audit_ledger", stdout=StringIO())


def check_round(hold, victim):
    project, dataset = pool_of(make_user())
    digest, rows = expected_choice(project, dataset)
    folder = f"features/{project.pk}/parts"
    reading = hold(key=READING_LOCK + 3)
    opening = hold("annotation_query", "INSERT", f"NEW.project_id = {project.pk}")
    loop.advance_project(project_id=project.pk)
    chosen = Round.objects.get(project=project)
    assert chosen.strategy == "top_c"

    # Some parts are made, and processes of the holder's make the next.
    holder = reading.wait_for(1)["run_round_task"]
    made = list(files.names_in(folder))
    assert 0 < len(made) < 4
    helpers = batch_workers(holder.pid)
    assert helpers
    kept = {name: default_storage.get_modified_time(name) for name in made}
    if victim == "helper":
        for pid in helpers:
            os.kill(pid, signal.SIGKILL)
    else:
        holder.kill()
        wait_until(lambda: not any(map(host.running_process, helpers)))
        wait_until(lambda: done(chosen, victim) or reading.waiting())
        # Whoever took over goes on with the parts of the one that died.
        assert kept == {name: default_storage.get_modified_time(name) for name in made}
    reading.let_go()
    # The choice is drawn, and none of its questions is there yet.
    wait_until(lambda: done(chosen, victim) or opening.waiting())
    if victim == "holder":
        opening.wait_for(1)["run_round_task"].kill()
    opening.let_go()
    wait_until(lambda: done(chosen, victim))
    assert chosen.attempt == 1 if victim == "helper" else chosen.attempt >= 3
    assert asked(project) == rows
    assert FeatureMatrix.objects.get(dataset=dataset).sha256 == digest
    assert reserved(project) == chosen.attempt
    assert list(files.names_in(folder)) == []
