import threading
from uuid import uuid4

import numpy as np
import pytest
from django.db import connection, transaction

from annotation.models import Query, QueryState, WorkState
from annotation.people.services import limits
from annotation.projects.services import configuring
from annotation.questions.services import queue
from annotation.work.services import attempts, jobs
from dpal_site.embedded import host
from learner.errors import NothingWaits
from learner.linear_model import LinearModel
from learner.models import ModelRelease, Round, TrainingRun
from learner.pools import selectors
from learner.pools.keys import RUN_ROUND_TASK
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import loop
from privacy.accounting.selection import RandomChoiceEvent
from privacy.errors import UnsoundCombination
from privacy.ledger import services as ledger
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.dying import Killed, die_at
from tests.factories import make_records, make_user
from tests.owning import waits_for_a_lock

pytestmark = pytest.mark.django_db(transaction=True)
CONVEX = ["logistic", "logistic_output"]


@pytest.fixture
def trusted(remembered):
    return learning.begin_experts(remembered)


def started_round(project) -> Round:
    loop.advance_project(project_id=project.pk)
    return Round.objects.get(project=project, state=WorkState.WAITING)


def lapse(row) -> None:
    type(row).objects.filter(pk=row.pk).update(leased_until="2000-01-01T00:00Z")


# Sums add up in rho, so that an account of its own kind is opened for them.
IN_RHO = {
    "selection": "random",
    "estimator": "sums",
    "training_epsilon": 0.5,
    "training_delta": 1e-6,
    "maximum_releases": 50,
}


@pytest.fixture
def unpaid(remembered):
    return remembered("a pool of experts with a delta", lambda: learning.filled_experts(pool_delta=1e-5))


def change_account(project) -> None:
    configuring.configure_project(project=project, changes=IN_RHO, actor=project.created_by)


def test_an_account_that_settings_gave_up_meanwhile_pays_nothing(unpaid, monkeypatch):
    """Else a round that read the project a moment before would spend one limit, and its successors another."""
    started, given_up = started_round(unpaid), unpaid.pool_account
    strategy_of = loop.strategy_of

    def settings_change_first(project, name):
        change_account(unpaid)
        return strategy_of(project, name)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "strategy_of", settings_change_first)
        loop.run_round(round_id=started.pk)
    started.refresh_from_db()
    assert started.state == WorkState.FAILED
    assert "given up before anything was paid" in started.error
    assert not Query.objects.filter(project=unpaid).exists()
    assert not given_up.entries.filter(kind="reserve").exists()

    unpaid.refresh_from_db()
    assert unpaid.pool_account != given_up
    loop.run_round(round_id=started_round(unpaid).pk)
    assert unpaid.pool_account.entries.filter(kind="reserve").count() == 1
    assert given_up.entries.count() == 1


def test_a_reservation_waits_for_settings_that_change(unpaid):
    """It reads which accounts the project has once those are stored, and locks nothing that their change waits for."""
    account = unpaid.pool_account
    refusals: list[str] = []

    def pay() -> None:
        try:
            ledger.reserve(account=account, event=RandomChoiceEvent(12), purpose="a race", key=uuid4())
        except UnsoundCombination as refused:
            refusals.append(str(refused))
        finally:
            connection.close()

    paying = threading.Thread(target=pay)
    with transaction.atomic():
        change_account(unpaid)
        paying.start()
        assert host.wait_until(waits_for_a_lock, 120)
    paying.join(120)
    assert len(refusals) == 1
    assert "given up" in refusals[0]


def test_a_fault_of_one_project_keeps_no_other_waiting(trusted, monkeypatch):
    broken = learning.open_trusted(make_user())
    after = learning.open_trusted(make_user())
    learning.fill_trusted(after)
    advance_project = loop.advance_project

    def advance(*, project_id):
        if project_id == broken.pk:
            raise UnsoundCombination("a fault")
        return advance_project(project_id=project_id)

    monkeypatch.setattr(loop, "advance_project", advance)
    with pytest.raises(UnsoundCombination, match="a fault"):
        loop.advance_projects()
    assert {each.project for each in Round.objects.all()} == {trusted, after}


def test_advancing_twice_starts_one_round(trusted):
    started_round(trusted)
    assert loop.advance_project(project_id=trusted.pk).step == Step.CHOOSING
    assert Round.objects.count() == 1


def test_many_workers_start_one_round(trusted):
    def advance() -> None:
        loop.advance_project(project_id=trusted.pk)
        connection.close()

    threads = [threading.Thread(target=advance) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Round.objects.count() == 1


def test_a_task_delivered_twice_chooses_once(trusted):
    chosen = started_round(trusted)
    loop.run_round(round_id=chosen.pk)
    loop.run_round(round_id=chosen.pk)
    assert Query.objects.filter(state=QueryState.OPEN).count() == 12
    assert len(learning.entries(trusted, "reserve")) == 1


def test_top_c_pays_exposure_once_and_never_asks_twice(trusted):
    learning.run_to_release(trusted, make_user(), version=3)
    chosen = list(Round.objects.order_by("number"))
    assert [row.strategy for row in chosen] == ["random", "top_c", "top_c"]
    assert [row.model and row.model.version for row in chosen] == [None, 1, 2]
    events = [row.reservation.event for row in chosen]
    assert [event.get("series") for event in events] == [None, "opened", "continued"]
    assert [event.get("pool_size") for event in events] == [None, 68, 56]
    assert chosen[1].reservation.epsilon_nano > 0.25e9 > chosen[2].reservation.epsilon_nano
    assert Query.objects.count() == Query.objects.values("record").distinct().count() == 36


@pytest.mark.one_in(2)
@pytest.mark.one_in(3)
@pytest.mark.parametrize("step", ["inside_reserve", "after_reserve", "round_chosen", "inside_commit", "round_finished"])
def test_an_attempt_that_dies_stays_charged_and_the_next_one_chooses_once(trusted, monkeypatch, step):
    learning.run_to_release(trusted, make_user(), version=1)
    chosen = started_round(trusted)
    die_at(monkeypatch, step, loop, ledger)
    with pytest.raises(Killed):
        loop.run_round(round_id=chosen.pk)
    monkeypatch.undo()
    assert Query.objects.filter(round_number=2).count() == 0
    lapse(chosen)
    loop.run_round(round_id=chosen.pk)
    assert Query.objects.filter(round_number=2, state=QueryState.OPEN).count() == 12
    assert learning.open_reservations(trusted) == 0
    charged = [entry.mechanism for entry in learning.entries(trusted, "charge")]
    assert charged == ([] if step == "inside_reserve" else ["top_c"])
    # What the dead attempt picked is in the pool yet, so its series cannot go on as if each record were picked once.
    reserved = [entry.event["series"] for entry in learning.entries(trusted, "reserve") if entry.mechanism == "top_c"]
    assert reserved == ["opened"] * (1 + len(charged))
    learning.run_to_release(trusted, make_user(), version=2)
    learning.work_off(trusted)
    assert Round.objects.get(number=3).reservation.event["series"] == "continued"


def test_a_worker_that_was_taken_over_stores_nothing(trusted, monkeypatch):
    chosen = started_round(trusted)
    real = loop._choose

    def slow(*args):
        monkeypatch.setattr(loop, "_choose", real)
        lapse(chosen)
        loop.run_round(round_id=chosen.pk)  # another worker, meanwhile
        return real(*args)

    monkeypatch.setattr(loop, "_choose", slow)
    loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    assert (chosen.state, chosen.attempt) == (WorkState.DONE, 2)
    assert Query.objects.count() == 12
    assert learning.open_reservations(trusted) == 0


def test_an_error_charges_the_attempt_and_names_no_content(trusted, monkeypatch):
    chosen = started_round(trusted)

    def fail(*args):
        raise OSError("apple pear plum")

    monkeypatch.setattr(loop, "_choose", fail)
    with pytest.raises(OSError, match="apple"):
        loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    assert chosen.state == WorkState.FAILED
    assert "OSError" in chosen.error
    assert "apple" not in chosen.error
    assert learning.open_reservations(trusted) == 0


def test_a_round_killed_again_and_again_is_given_up(trusted):
    chosen = started_round(trusted)
    Round.objects.filter(pk=chosen.pk).update(attempt=10, state="running", leased_until="2000-01-01T00:00Z")
    loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    assert chosen.state == WorkState.FAILED
    assert not learning.entries(trusted, "reserve")


def test_nothing_is_asked_when_the_model_cannot_be_paid():
    project = learning.open_trusted(make_user(), pool_epsilon=1.0)
    learning.fill_trusted(project)
    status = loop.advance_project(project_id=project.pk)
    assert status.step == Step.CANNOT_PAY
    assert "1.000 epsilon " in status.sentence
    assert not Round.objects.exists()


def test_a_pool_smaller_than_a_round_is_asked_whole_and_trained_on_at_a_managers_word():
    project = learning.open_trusted(make_user(), round_size=50, labels_per_release=50)
    learning.fill_trusted(project, number=20)
    learning.work_off(project)
    assert learning.label_everything(project, make_user()) == 20
    learning.work_off(project)
    assert project_status(project).step == Step.FEW_LABELS
    assert not TrainingRun.objects.exists()
    loop.train_on_few(project=project)
    learning.work_off(project)
    project.refresh_from_db()
    assert ModelRelease.objects.get().labels_used == Query.objects.count() == 20
    assert project_status(project).step == Step.FINISHED


class TestFewLabels:
    @pytest.fixture
    def asked_whole(self, remembered):
        return remembered("a pool that was asked whole", self.ask_whole)

    def ask_whole(self):
        project = learning.open_trusted(make_user(), selection="random", round_size=12, maximum_releases=None)
        learning.fill_trusted(project, number=12)
        learning.run_to_release(project, make_user(), version=1)
        learning.work_off(project)
        return project

    def answer_two_more(self, project):
        learning.upload(project, [[text] for text in learning.sentences(2, seed=7)], ["text"])
        learning.work_off(project)
        assert learning.label_everything(project, make_user()) == 2

    def test_two_new_answers_train_nothing_by_themselves(self, asked_whole):
        spent = guarantee(asked_whole.pool_account).epsilon_spent
        self.answer_two_more(asked_whole)
        for _ in range(3):
            learning.work_off(asked_whole)
            loop.advance_projects()
        assert TrainingRun.objects.count() == 1
        assert guarantee(asked_whole.pool_account).epsilon_spent == spent
        status = project_status(asked_whole)
        assert status.step == Step.FEW_LABELS
        assert "2 of 12 questions are done for version 2" in status.sentence
        assert "for epsilon 2, delta 0" in status.sentence

    def test_enough_of_them_train_as_ever(self, asked_whole):
        self.answer_two_more(asked_whole)
        learning.upload(asked_whole, [[text] for text in learning.sentences(10, seed=8)], ["text"])
        learning.run_to_release(asked_whole, make_user(), version=2)
        assert TrainingRun.objects.get(version=2).labels_used == 24

    def test_a_word_is_for_one_training(self, asked_whole):
        with pytest.raises(NothingWaits, match="No training is waiting"):
            loop.train_on_few(project=asked_whole)
        self.answer_two_more(asked_whole)
        loop.train_on_few(project=asked_whole)
        with pytest.raises(NothingWaits, match="No training is waiting"):
            loop.train_on_few(project=asked_whole)
        learning.work_off(asked_whole)
        self.answer_two_more(asked_whole)
        learning.work_off(asked_whole)
        assert TrainingRun.objects.count() == 2
        assert project_status(asked_whole).step == Step.FEW_LABELS

    def test_where_the_limit_is_too_low_there_is_no_word_to_give(self, asked_whole):
        limits.change_limit(
            project=asked_whole,
            account=asked_whole.pool_account,
            epsilon_limit=2.5,
            delta_limit=0.0,
            reason="less",
            actor=asked_whole.created_by,
        )
        records = make_records(asked_whole, learning.sentences(2, seed=7))
        queue.open_queries(project=asked_whole, round_number=9, record_ids=[record.pk for record in records])
        learning.label_everything(asked_whole, make_user())
        assert project_status(asked_whole).step == Step.CANNOT_PAY

    def test_a_crowds_leftovers_wait_too(self):
        project = learning.open_crowd(make_user(), labels_per_release=25, round_size=25, repeat_votes=False)
        learning.fill_crowd(project)
        learning.run_to_release(project, make_user(), version=1)
        for _ in range(4):
            learning.work_off(project)
            learning.label_everything(project, make_user())
        assert TrainingRun.objects.count() == 1
        assert project_status(project).step == Step.FEW_LABELS


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("given_up", "state"),
    [(0, QueryState.DISPUTED), (1, QueryState.DISPUTED), (5, QueryState.SET_ASIDE), (1, QueryState.WITHDRAWN)],
)
def test_what_the_world_sees_does_not_tell_how_many_questions_had_an_agreed_answer(given_up, state):
    """Neighbours differ in one record's answer: rounds, their questions and the models between them stay the same."""
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    annotator = make_user()
    for _ in range(4):
        learning.work_off(project)
        newest = Query.objects.order_by("-pk").values("pk")[:given_up]
        Query.objects.filter(pk__in=newest, state=QueryState.OPEN).update(state=state, open_slots=0)
        learning.label_everything(project, annotator)
    learning.work_off(project)
    seen = [(row.number, row.requested, row.selected, row.model and row.model.version) for row in Round.objects.all()]
    models = [selectors.trained_on(run).questions for run in TrainingRun.objects.order_by("version")]
    assert sorted(seen) == [(1, 12, 12, None), (2, 12, 12, 1), (3, 12, 12, 2)]
    assert models == [12, 24, 36]
    assert TrainingRun.objects.get(version=1).labels_used == 12 - given_up


@pytest.mark.one_in(4)
@pytest.mark.parametrize("estimator", CONVEX)
def test_where_nothing_was_agreed_on_a_model_is_made_all_the_same(estimator):
    """That there is none would tell everybody outside that nothing was agreed on."""
    delta = 1e-6 if estimator.endswith("_gaussian") else 0.0
    project = learning.open_trusted(
        make_user(), estimator=estimator, training_delta=delta, pool_delta=10 * delta, labels_per_release=12
    )
    learning.fill_trusted(project)
    learning.work_off(project)
    Query.objects.filter(state=QueryState.OPEN).update(state=QueryState.DISPUTED, open_slots=0)
    assert project_status(project).step == Step.TRAIN
    learning.work_off(project, version=1)
    release = ModelRelease.objects.get()
    assert (release.labels_used, selectors.trained_on(release.training_run).questions) == (0, 12)
    assert np.any(LinearModel.from_json(release.weights).coef != 0), "noise is all there is"


def test_crowd_rounds_are_free_and_descend_from_the_gate():
    project = learning.open_crowd(make_user())
    learning.fill_crowd(project)
    learning.run_to_release(project, make_user(), version=2)
    gate = learning.entries(project, "commit")[0]
    for chosen in Round.objects.order_by("number"):
        assert chosen.committed_entry.kind == "post_processing"
        assert chosen.committed_entry.parent == gate
        assert chosen.reservation is None
    assert [row.strategy for row in Round.objects.order_by("number")] == ["random", "uncertainty"]


def test_what_no_worker_holds_is_sent_again(trusted, sent_tasks, broker):
    chosen = started_round(trusted)
    assert sent_tasks == [RUN_ROUND_TASK]
    jobs.resend_stalled_work()
    assert len(sent_tasks) == 1  # it was sent a moment ago
    Round.objects.update(sent_at="2000-01-01T00:00Z")
    jobs.resend_stalled_work()
    assert len(sent_tasks) == 2
    assert attempts.take_work(row=chosen)
    Round.objects.update(sent_at="2000-01-01T00:00Z")
    jobs.resend_stalled_work()
    assert len(sent_tasks) == 2  # somebody is at it
    lapse(chosen)
    jobs.resend_stalled_work()
    assert len(sent_tasks) == 3
