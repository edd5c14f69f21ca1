import json
from contextlib import contextmanager
from hashlib import sha256

import numpy as np
import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from annotation.errors import LeaseExpired, UndoRefused
from annotation.models import Consensus, Query, QueryState, Record, WorkState
from annotation.questions.services import correcting, labels, queue
from learner.models import ModelRelease, Round, SecretDraw, TrainingRun
from learner.pools import records
from learner.pools.selectors import trained_on, training_event
from learner.releases import storage
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import loop, selection, training
from learner.strategies.blocks import block_rates, draw_blocks
from privacy.accounting.event import event_from_json
from privacy.ledger import services as ledger
from privacy.mechanisms.randomness import SimulationRandom
from tests import learning
from tests.dying import Killed, die_at
from tests.factories import make_user, open_preset, write_settings
from tests.owning import as_owner, without_check

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def secret(remembered):
    return remembered("a pool of secret blocks", filled_secret)


def filled_secret():
    project = learning.open_secret(make_user())
    learning.fill_trusted(project)
    return project


def asked(round_number: int) -> set[int]:
    return set(Query.objects.filter(round_number=round_number).values_list("record", flat=True))


def lapse(row) -> None:
    type(row).objects.filter(pk=row.pk).update(leased_until="2000-01-01T00:00Z")


def test_blocks_are_disjoint_and_follow_the_stored_coins(secret):
    learning.run_to_release(secret, make_user(), version=3)
    blocks = [asked(number) for number in (1, 2, 3)]
    assert len(set.union(*blocks)) == sum(len(block) for block in blocks)
    coins = np.frombuffer(SecretDraw.objects.get().blocks, dtype=np.uint8)
    for number, block in enumerate(blocks, start=1):
        expected = Record.objects.filter(dataset__role="pool", row_number__in=np.flatnonzero(coins == number).tolist())
        assert block == set(expected.values_list("pk", flat=True))


def test_coins_are_stored_in_parts_and_fall_as_they_would_in_one(secret, monkeypatch):
    monkeypatch.setattr(selection, "SecureRandom", lambda: SimulationRandom(20_251_122))
    monkeypatch.setattr(selection, "PART_ROWS", 32)
    with without_check("learner_secretdraw", "learner_coins_part_within"):
        learning.run_to_release(secret, make_user(), version=2)
        parts = list(SecretDraw.objects.order_by("first_row"))
        assert [(part.first_row, len(part.blocks)) for part in parts] == [(0, 32), (32, 32), (64, 32), (96, 24)]
        coins = np.frombuffer(b"".join(part.blocks for part in parts), dtype=np.uint8)
        rates = records.release_event(secret, block=1).series.rates
        np.testing.assert_array_equal(coins, draw_blocks(120, rates, SimulationRandom(20_251_122)))
        pool = Record.objects.filter(dataset__role="pool")
        for number in (1, 2):
            drawn = pool.filter(row_number__in=np.flatnonzero(coins == number).tolist())
            assert asked(number) == set(drawn.values_list("pk", flat=True))


def test_coins_fall_at_the_rates_that_are_charged(secret, monkeypatch):
    """From the same numbers a record is in block k exactly where its number lies below the charged rates up to k."""
    monkeypatch.setattr(selection, "SecureRandom", lambda: SimulationRandom(20_251_122))
    learning.work_off(secret)
    drawn = np.frombuffer(SecretDraw.objects.get().blocks, dtype=np.uint8)
    numbers = SimulationRandom(20_251_122).random((120,))
    charged = records.release_event(secret, block=1).series.rates
    for block in (1, 2, 3):
        inside = (numbers >= sum(charged[: block - 1])) & (numbers < sum(charged[:block]))
        np.testing.assert_array_equal(drawn == block, inside)


def test_a_record_gets_no_second_coin_and_a_later_upload_has_its_own(secret):
    learning.run_to_release(secret, make_user(), version=1)
    before = bytes(SecretDraw.objects.get().blocks)
    with pytest.raises(IntegrityError):
        SecretDraw.objects.create(dataset=SecretDraw.objects.get().dataset, blocks=before)
    learning.upload(secret, [[text] for text in learning.sentences(30, seed=5)], ["text"])
    learning.run_to_release(secret, make_user(), version=2)
    draws = list(SecretDraw.objects.order_by("pk"))
    assert [len(bytes(draw.blocks)) for draw in draws] == [120, 30]
    assert bytes(draws[0].blocks) == before
    late = np.frombuffer(draws[1].blocks, dtype=np.uint8)
    assert Query.objects.filter(record__dataset=draws[1].dataset).count() == (late == 2).sum()


def test_coins_and_the_rate_they_were_drawn_at_stay_whoever_writes(secret):
    write_settings(secret, selection_rate=0.3)  # no coin is drawn yet
    secret.refresh_from_db()
    learning.work_off(secret)
    with pytest.raises(IntegrityError, match="drawn once"):
        SecretDraw.objects.update(blocks=bytes(120))
    with pytest.raises(IntegrityError, match="goes with its project only"):
        SecretDraw.objects.all().delete()
    for change in ({"selection_rate": 0.1}, {"block_growth": 1.0}, {"selection": "random"}):
        with pytest.raises(IntegrityError, match="goes on under the configuration"):
            write_settings(secret, **change)
        with pytest.raises(IntegrityError, match="its selection stays"), _only_coins():
            write_settings(secret, **change)
    write_settings(secret, selection_rate=0.3, round_size=5)


@contextmanager
def _only_coins():
    with as_owner(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE annotation_project DISABLE TRIGGER annotation_project_successor")
        yield


def test_each_release_is_charged_what_it_adds_to_the_series(secret):
    learning.run_to_release(secret, make_user(), version=3)
    rates = block_rates(0.2, 1.5)
    charged = [release.entry for release in ModelRelease.objects.order_by("version")]
    so_far = 0.0
    for number, entry in enumerate(charged, start=1):
        event = event_from_json(entry.parent.event)
        assert (event.kind, event.series.rates, event.block) == ("secret_block", rates, number)
        assert event.attempts == (1,) * (number - 1) + (0,) * (len(rates) - number + 1)
        whole = np.log1p(sum(rates[:number]) * np.expm1(event.inner.cost().epsilon))
        assert entry.epsilon_nano == pytest.approx((whole - so_far) * 1e9, abs=2)
        so_far = whole
    # One by one the same releases would have cost more.
    assert ledger_total(secret) < 0.9e9 * sum(np.log1p(rate * np.expm1(event.inner.cost().epsilon)) for rate in rates)
    choices = Round.objects.filter(project=secret)
    assert [row.committed_entry.mechanism for row in choices] == ["secret_choice"] * 3
    assert sum(row.committed_entry.epsilon_nano for row in choices) == 0
    assert ledger_total(secret) == sum(entry.epsilon_nano for entry in charged)


def ledger_total(project) -> int:
    return project.pool_account.entries.order_by("-sequence").first().epsilon_spent_nano


def test_a_later_model_builds_on_the_release_before_it(secret, monkeypatch):
    learning.run_to_release(secret, make_user(), version=1)
    seen = []
    real = training.release_estimator_of

    def remember(*args, prior, **kwargs):
        seen.append(prior)
        return real(*args, prior=prior, **kwargs)

    monkeypatch.setattr(training, "release_estimator_of", remember)
    second = learning.run_to_release(secret, make_user(), version=2)
    first = ModelRelease.objects.get(version=1)
    assert seen[0].to_json() == first.weights
    assert set(first.lineage.all()) < set(second.lineage.all())
    assert second.labels_used <= Query.objects.filter(round_number=2).count()


def test_card_and_ledger_do_not_tell_what_was_asked(secret):
    release = learning.run_to_release(secret, make_user(), version=1)
    used = trained_on(release.training_run)
    assert (used.questions, used.pool_size, used.rate) == (None, 120, block_rates(0.2, 1.5)[0])
    with storage.open_file(release=release, name="card.md") as file:
        card = file.read().decode()
    assert "each of 120 records took part with probability at most 0.2" in card
    assert "which questions were asked" not in card
    assert "questions and released" not in card
    chosen = Round.objects.get()
    public = {"round": 1, "block": 1, "event": chosen.reservation.event}
    assert chosen.committed_entry.output_digest == sha256(json.dumps(public, sort_keys=True).encode()).hexdigest()
    for entry in secret.pool_account.entries.exclude(purpose=""):
        assert (entry.subject, entry.purpose) in (
            ("round:1", "choose a block of questions in secret"),
            ("release:1", "train a version of the model"),
        )


def test_a_block_waits_for_its_time_though_everything_is_answered(secret):
    learning.work_off(secret)
    learning.label_everything(secret, make_user())
    status = loop.advance_project(project_id=secret.pk)
    assert status.step == Step.LABELLING
    assert not TrainingRun.objects.exists()
    Round.objects.update(closes_at=timezone.now())
    assert loop.advance_project(project_id=secret.pk).step == Step.TRAINING


def test_an_unanswered_block_gives_a_model_all_the_same(secret):
    learning.work_off(secret)
    selection.close_block(project=secret)
    learning.work_off(secret, version=1)
    release = ModelRelease.objects.get()
    assert release.labels_used == 0
    assert set(Query.objects.values_list("state", flat=True)) <= {QueryState.WITHDRAWN}
    assert release.entry.parent.mechanism == "secret_block"


def test_what_is_answered_after_the_close_is_refused(secret):
    learning.work_off(secret)
    person = make_user()
    learning.label_everything(secret, person, at_most=1)
    held = queue.claim_next(project=secret, user=person)
    assert held is not None
    selection.close_block(project=secret)
    learning.work_off(secret, version=1)
    with pytest.raises(LeaseExpired):
        labels.submit_label(assignment=held, choice=0)
    with pytest.raises(UndoRefused):
        correcting.undo_label(project=secret, user=person)
    assert Consensus.objects.count() == 1
    assert queue.claim_next(project=secret, user=make_user()) is None or project_status(secret).step == Step.LABELLING


@pytest.mark.parametrize("step", ["after_reserve", "round_chosen", "inside_commit", "round_finished"])
def test_a_choice_that_dies_leaves_no_coin_and_the_next_one_chooses_once(secret, monkeypatch, step):
    loop.advance_project(project_id=secret.pk)
    chosen = Round.objects.get()
    die_at(monkeypatch, step, selection, training, ledger)
    with pytest.raises(Killed):
        loop.run_round(round_id=chosen.pk)
    monkeypatch.undo()
    assert not SecretDraw.objects.exists()
    assert not Query.objects.exists()
    lapse(chosen)
    loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    assert (chosen.state, chosen.selected) == (WorkState.DONE, Query.objects.count())
    assert SecretDraw.objects.count() == 1
    assert learning.open_reservations(secret) == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("step", ["after_reserve", "training_fitted", "inside_commit"])
def test_a_training_that_dies_makes_the_next_attempt_on_its_coins_dearer(secret, monkeypatch, step):
    learning.work_off(secret)
    learning.label_everything(secret, make_user())
    selection.close_block(project=secret)
    loop.advance_project(project_id=secret.pk)
    run = TrainingRun.objects.get()
    die_at(monkeypatch, step, selection, training, ledger)
    with pytest.raises(Killed):
        training.train_model(run_id=str(run.pk))
    monkeypatch.undo()
    lapse(run)
    training.train_model(run_id=str(run.pk))
    first, second = [event_from_json(entry.event) for entry in learning.entries(secret, "reserve")[1:]]
    assert (first.attempts[0], second.attempts[0]) == (0, 1)
    together = np.log1p(0.2 * np.expm1(first.inner.cost().epsilon + second.inner.cost().epsilon))
    assert ledger_total(secret) == pytest.approx(together * 1e9, abs=4)
    assert ModelRelease.objects.get().labels_used == Query.objects.count()
    assert learning.open_reservations(secret) == 0


def test_a_block_whose_training_keeps_failing_is_left_aside(secret, monkeypatch):
    learning.work_off(secret)
    selection.close_block(project=secret)
    monkeypatch.setattr(training, "_fit", lambda *args: 1 / 0)
    for _ in range(records.MAX_FAILED_TRAININGS):
        loop.advance_project(project_id=secret.pk)
        with pytest.raises(ZeroDivisionError):
            training.train_model(run_id=str(TrainingRun.objects.get(state=WorkState.WAITING).pk))
    loop.advance_project(project_id=secret.pk)
    assert Round.objects.get(state=WorkState.WAITING).block == 2


def planned_for_all_of_the_limit():
    project = open_preset(
        make_user(),
        "pool-experts",
        name="Planned",
        data_kind="text",
        classes=learning.CLASSES,
        question="Fruit or tool?",
        selection_rate=0.2,
        block_growth=1.5,
        features="standard",
        feature_dimension=16,
    )
    learning.fill_trusted(project)
    return project


def test_blocks_spend_all_of_the_limit_that_nobody_divided():
    project = planned_for_all_of_the_limit()
    learning.run_to_release(project, make_user(), version=3)
    assert 0.999 * 2e9 < ledger_total(project) <= 2e9
    delta = sum(entry.delta_atto or 0 for entry in project.pool_account.entries.filter(kind="commit"))
    assert 0.999 * 5e12 < delta <= 5e12


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dead", [1, 2, 3])
def test_an_attempt_that_dies_costs_its_release_and_no_other(monkeypatch, dead):
    project = planned_for_all_of_the_limit()
    if dead > 1:
        learning.run_to_release(project, make_user(), version=dead - 1)
    loop.advance_project(project_id=project.pk)
    learning.work_off(project)
    selection.close_block(project=project)
    loop.advance_project(project_id=project.pk)
    run = TrainingRun.objects.get(state=WorkState.WAITING)
    die_at(monkeypatch, "training_fitted", selection, training, ledger)
    with pytest.raises(Killed):
        training.train_model(run_id=str(run.pk))
    monkeypatch.undo()
    lapse(run)
    training.train_model(run_id=str(run.pk))
    run.refresh_from_db()
    # What is left is less than a second attempt costs, so nothing is released twice.
    assert run.state == WorkState.FAILED
    assert ModelRelease.objects.count() == dead - 1
    if dead < 3:
        assert project_status(project).step == Step.ASK
        learning.run_to_release(project, make_user(), version=2)
        blocks = ModelRelease.objects.order_by("version").values_list("training_run__block__block", flat=True)
        assert list(blocks) == [block for block in (1, 2, 3) if block != dead]
    assert project_status(project).step == Step.FINISHED
    assert ledger_total(project) <= 2e9
    assert learning.open_reservations(project) == 0


def test_the_budget_is_checked_at_the_price_of_the_block():
    project = learning.open_secret(make_user(), training_epsilon=2.0, pool_epsilon=1.5)
    learning.fill_trusted(project)
    first = training_event(project).cost().epsilon
    assert first == pytest.approx(np.log1p(0.2 * np.expm1(2.0)), abs=1e-6)
    learning.run_to_release(project, make_user(), version=2)
    # Two blocks at 0.2 cost 1.27; the third, at 0.4, would cost 0.54 more.
    status = loop.advance_project(project_id=project.pk)
    assert status.step == Step.CANNOT_PAY
    assert asked(3) == set()
