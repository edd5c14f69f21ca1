import json
import threading

import numpy as np
import pytest
from django.core.management import call_command
from django.db import IntegrityError, connections, transaction

from annotation.data.selectors import waiting_posts
from annotation.data.services.streams import post_records
from annotation.errors import InvalidConfiguration
from annotation.models import Consensus, Query, QueryState, Record, RecordPost
from dpal.recompute.running_sums import total_of
from dpal.recompute.transcript import Recorded, Transcript
from learner.estimators.running_sums import RunningSums
from learner.linear_model import LinearModel
from learner.models import ModelRelease, Stream, StreamBatch, TrainingRun
from learner.pools import stream_answers as stream_selectors
from learner.pools.configuration import featurizer_of, stream_event
from learner.pools.keys import attempt_key
from learner.pools.selectors import trained_on
from learner.releases import storage
from learner.releases.artifacts.files import recompute_weights
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import streams, training
from learner.rounds.services import streams as rounds_streams
from privacy.accounting.event import event_from_json
from privacy.ledger import services as ledger
from privacy.ledger.models import EntryKind
from tests import learning, streaming
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
HIDDEN = {"update_policy": "flsw_hidden", "window_length": 40, "window_denominator": 4, "updates_per_release": 1}
SMALL = {"window_length": 5, "updates_per_release": 2}


def examined(project):
    return list(Query.objects.filter(project=project).order_by("priority").values_list("priority", flat=True))


def test_the_whole_stream_is_charged_once_before_its_first_record():
    project = streaming.open_stream(make_user(), **SMALL)
    rounds_streams.run_stream(project_id=project.pk)
    assert learning.entries(project, "reserve", "commit") == []
    streaming.run_to_release(project, make_user(), version=3)
    assert [entry.kind for entry in learning.entries(project, "reserve", "commit", "post_processing")] == [
        "reserve",
        "commit",
        *["post_processing"] * 3,
    ]
    reservation, commit, *versions = learning.entries(project, "reserve", "commit", "post_processing")
    assert reservation.event == stream_event(project).to_json()
    assert {version.parent_id for version in versions} == {commit.pk}
    assert reservation.epsilon_nano == pytest.approx(1.9931e9, rel=1e-4)
    for release in ModelRelease.objects.all():
        assert release.event == reservation.event
        assert set(release.lineage.values_list("pk", flat=True)) == {commit.pk, release.entry_id}
    call_command("audit_ledger")


def test_what_the_account_cannot_pay_is_not_read():
    project = streaming.open_stream(make_user())
    ledger.change_account_limits(
        account=project.pool_account, epsilon_limit=0.5, delta_limit=0.0, actor="test", reason="less"
    )
    post_records(project=project, records=streaming.rows(20))
    rounds_streams.run_stream(project_id=project.pk)
    assert Stream.objects.get().entry is None
    assert waiting_posts(project.pk).count() == 1
    assert project_status(project).step == Step.CANNOT_PAY


def test_a_stale_reservation_that_was_charged_is_paid_again_and_not_used():
    project = streaming.open_stream(make_user(), pool_epsilon=5.0)
    post_records(project=project, records=streaming.rows(20))
    stream = Stream.objects.create(project=project)
    reservation = ledger.reserve(
        account=project.pool_account,
        event=stream_event(project),
        purpose="the whole stream, however long",
        key=attempt_key(stream, 1),
        subject="stream",
    )
    ledger.charge(reservation=reservation, reason="stale")
    for _ in range(2):
        rounds_streams.run_stream(project_id=project.pk)
    stream.refresh_from_db()
    assert stream.attempt == 2
    assert stream.next_slot == 20
    assert len(learning.entries(project, EntryKind.RESERVE)) == 2


def test_each_record_is_examined_once_and_in_order_however_it_is_posted():
    project = streaming.open_stream(make_user(), selection="all", windows_ahead=1000, window_length=7)
    rows = streaming.rows(60)
    for start, end in ((0, 1), (1, 2), (2, 30), (30, 60)):
        post_records(project=project, records=rows[start:end], key=f"{start}")
        post_records(project=project, records=rows[start:end], key=f"{start}")
    streaming.work_off(project)
    assert examined(project) == list(range(60))
    stored = Record.objects.order_by("row_number").values_list("payload", flat=True)
    assert list(stored) == rows
    assert not waiting_posts(project.pk).exists()
    assert RecordPost.objects.filter(body=None).count() == 4
    batches = list(StreamBatch.objects.order_by("number").values_list("number", "questions", "end"))
    assert batches == [(number, 7, 7 * number) for number in range(1, 9)]
    assert Query.objects.filter(round_number=9).count() == 4


def test_examination_waits_for_the_update_and_then_goes_on():
    project = streaming.open_stream(make_user(), selection="all", window_length=5, windows_ahead=2)
    post_records(project=project, records=streaming.rows(40))
    streaming.work_off(project)
    assert examined(project) == list(range(10))
    annotator = make_user()
    streaming.answer(project, annotator, at_most=4)
    streaming.work_off(project)
    assert Stream.objects.get().batches_used == 0
    streaming.answer(project, annotator, at_most=1)
    streaming.work_off(project)
    assert Stream.objects.get().batches_used == 1
    assert examined(project) == list(range(15))


def test_updates_are_made_in_the_order_of_the_batches():
    project = streaming.open_stream(make_user(), selection="all", window_length=5, windows_ahead=2)
    post_records(project=project, records=streaming.rows(10))
    streaming.work_off(project)
    Query.objects.filter(round_number=1).update(open_slots=0)
    streaming.answer(project, make_user())
    assert Consensus.objects.count() == 5
    streaming.work_off(project)
    assert Stream.objects.get().batches_used == 0
    streaming.let_time_pass(project)
    streaming.work_off(project)
    assert Stream.objects.get().batches_used == 2
    assert set(Query.objects.filter(round_number=1).values_list("state", flat=True)) == {QueryState.WITHDRAWN}


def test_answers_that_made_an_update_cannot_be_taken_back():
    project = streaming.open_stream(make_user(), selection="all", window_length=5)
    post_records(project=project, records=streaming.rows(5))
    streaming.work_off(project)
    streaming.answer(project, make_user())
    streaming.work_off(project)
    project.refresh_from_db()
    assert project.labels_used_through == Consensus.objects.order_by("-pk").first().pk


def test_an_unanswered_batch_still_makes_its_noisy_step():
    project = streaming.open_stream(make_user(), selection="all", window_length=5)
    post_records(project=project, records=streaming.rows(5))
    streaming.work_off(project)
    streaming.let_time_pass(project)
    streaming.work_off(project)
    state = Stream.objects.get().learner_state
    assert state["updates"] == 1
    assert np.linalg.norm(state["coef"]) > 0


# --- hidden windows


def test_hidden_windows_update_at_their_public_time_and_never_before():
    project = streaming.open_stream(make_user(), **HIDDEN, windows_ahead=1000)
    post_records(project=project, records=streaming.rows(200))
    streaming.work_off(project)
    streaming.answer(project, make_user())
    streaming.work_off(project)
    stream = Stream.objects.get()
    assert (stream.batches_closed, stream.batches_used) == (5, 0)
    streaming.let_time_pass(project)
    streaming.work_off(project)
    stream.refresh_from_db()
    assert stream.batches_used >= 3
    assert ModelRelease.objects.count() == 3
    assert [batch.end for batch in StreamBatch.objects.order_by("number")] == [40, 80, 120, 160, 200]


def test_an_empty_hidden_window_makes_noise_of_the_same_size():
    project = streaming.open_stream(make_user(), **HIDDEN, screen_high=1e-6, screen_low=1e-6)
    post_records(project=project, records=streaming.rows(40))
    streaming.work_off(project)
    assert not Query.objects.exists()
    streaming.let_time_pass(project)
    streaming.work_off(project)
    assert ModelRelease.objects.count() == 1
    assert np.linalg.norm(Stream.objects.get().learner_state["coef"]) > 0


def test_of_hidden_windows_only_slots_and_the_rate_are_said():
    project = streaming.open_stream(make_user(), **HIDDEN)
    post_records(project=project, records=streaming.rows(40))
    streaming.work_off(project)
    streaming.let_time_pass(project)
    streaming.work_off(project)
    release = ModelRelease.objects.get()
    said = trained_on(release.training_run)
    assert (said.questions, said.pool_size) == (None, 40)
    assert said.rate == pytest.approx(0.1)
    assert release.event["selection_visible"] is False
    assert "questions are open" not in project_status(project).sentence


def test_visible_batches_say_how_many_were_asked_not_how_many_were_answered():
    project = streaming.open_stream(make_user(), selection="all", window_length=5, updates_per_release=1)
    post_records(project=project, records=streaming.rows(5))
    streaming.work_off(project)
    streaming.answer(project, make_user(), at_most=3)
    streaming.let_time_pass(project)
    streaming.work_off(project)
    assert trained_on(ModelRelease.objects.get().training_run).questions == 5


@pytest.mark.parametrize(
    ("changes", "posted", "answered", "divided_by"),
    [({"selection": "all", "window_length": 5}, 5, 3, 5), (HIDDEN | {"screen_low": 0.1}, 40, 1, 4)],
    ids=["visible", "hidden"],
)
def test_a_step_is_divided_by_a_public_number_and_not_by_how_many_answered(
    changes, posted, answered, divided_by, monkeypatch
):
    noted = []
    learn = RunningSums.learn_batches

    def note(learner, batches, *, new):
        noted.extend((len(batch.classes), batch.asked) for batch in batches)
        return learn(learner, batches, new=new)

    monkeypatch.setattr(RunningSums, "learn_batches", note)
    project = streaming.open_stream(make_user(), **changes)
    post_records(project=project, records=streaming.rows(posted))
    streaming.work_off(project)
    said = streaming.answer(project, make_user(), at_most=answered)
    streaming.let_time_pass(project)
    streaming.work_off(project)
    assert noted == [(said, divided_by)]


# --- learners


def test_the_screen_scores_with_the_weights_as_they_are():
    """False alarm: < 1e-9; so little noise leaves 99 % right, give or take one."""
    project = streaming.open_stream(make_user(), **SMALL, training_epsilon=200.0, pool_epsilon=300.0)
    streaming.run_to_release(project, make_user(), version=3, records=300)
    stream = Stream.objects.get()
    featurizer = featurizer_of(project)
    learner = rounds_streams.current_learner(project, stream, featurizer)
    model = LinearModel(learner.coef_, learner.intercept_, tuple(project.classes))
    tested = streaming.rows(300, seed=99)
    right = model.predict(featurizer.transform(tested)) == np.array(
        [streaming.CLASSES[int(row["amount"] > 0)] for row in tested]
    )
    assert right.mean() > 0.75
    assert ModelRelease.objects.get(version=3).weights["coef"] == learner.coef_.tolist()


# --- the loop


def test_a_release_that_fails_is_tried_again_and_then_waits_for_a_person(monkeypatch):
    project = streaming.open_stream(make_user(), selection="all", window_length=2, updates_per_release=1)
    post_records(project=project, records=streaming.rows(2))
    streaming.work_off(project)

    def fail(run, lease):
        raise OSError("disk")

    monkeypatch.setattr(training.streams, "release_version", fail)
    streaming.answer(project, make_user())
    for _ in range(5):
        rounds_streams.run_stream(project_id=project.pk)
        for run in TrainingRun.objects.filter(state="waiting"):
            with pytest.raises(OSError, match="disk"):
                training.train_model(run_id=str(run.pk))
    assert TrainingRun.objects.filter(state="failed").count() == stream_selectors.MAX_FAILED_RELEASES
    assert project_status(project).step == Step.STUCK


def test_two_workers_take_turns():
    project = streaming.open_stream(make_user(), selection="all", window_length=3, windows_ahead=10_000)
    for start in range(0, 300, 10):
        post_records(project=project, records=streaming.rows(10, seed=start))

    def work():
        try:
            rounds_streams.run_stream(project_id=project.pk)
        finally:
            connections.close_all()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert examined(project) == list(range(300))
    assert list(StreamBatch.objects.order_by("number").values_list("end", flat=True)) == list(range(3, 301, 3))
    assert len(learning.entries(project, EntryKind.RESERVE)) == 1


def test_two_workers_keep_the_order_of_the_updates():
    project = streaming.open_stream(
        make_user(), "full-information-ogd", window_length=1, windows_ahead=1000, updates_per_release=10_000
    )
    post_records(project=project, records=streaming.rows(60))
    streaming.work_off(project)
    streaming.answer(project, make_user())
    seen = []
    learn = rounds_streams._learn

    def note(project, learner, batches, featurizer):
        seen.extend(batch.number for batch in batches)
        learn(project, learner, batches, featurizer)

    def work():
        try:
            while rounds_streams.take_step(project=project):
                pass
        finally:
            connections.close_all()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds_streams, "_learn", note)
        patch.setattr(stream_selectors, "MOST_UPDATES", 7)
        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert seen == list(range(1, 61))
    assert Stream.objects.get().learner_state["updates"] == 60


# --- what the database refuses


def test_nothing_is_examined_before_it_is_paid_and_no_batch_is_used_before_it_is_closed():
    project = streaming.open_stream(make_user())
    stream = Stream.objects.create(project=project)
    for fields, rule in (({"next_slot": 1}, "learner_stream_paid"), ({"batches_used": 1}, "learner_stream_in_order")):
        with pytest.raises(IntegrityError, match=rule), transaction.atomic():
            Stream.objects.filter(pk=stream.pk).update(**fields)


RUNNING = {
    "estimator": "running_sums",
    "selection": "all",
    "window_length": 5,
    "updates_per_release": 2,
    "updates_per_epoch": 3,
    "training_epsilon": 1.5,
    "training_delta": 1e-6,
    "moment_share": 0.1,
    "pool_delta": 2e-6,
}
RECORDS = 45


def test_every_update_reads_its_epoch_and_keeps_no_sums_without_noise(monkeypatch):
    project = streaming.open_stream(make_user(), **RUNNING)
    read = []
    real = streams._answers

    def remember(project, numbers):
        found = real(project, numbers)
        read.append((numbers, sum(map(len, found.values()))))
        return found

    monkeypatch.setattr(streams, "_answers", remember)
    streaming.run_to_release(project, make_user(), version=3, records=RECORDS)
    assert {number for numbers, _ in read for number in numbers} == {1, 2, 3, 4, 5, 6}
    assert all(numbers[0] in (1, 4) and count == 5 * len(numbers) for numbers, count in read)
    [reservation] = learning.entries(project, "reserve")
    event = event_from_json(reservation.event)
    assert (event.kind, event.update.kind, event.update.updates) == ("stream", "running_sums", 3)
    assert reservation.epsilon_nano == pytest.approx(1.5e9, rel=1e-6)
    assert ModelRelease.objects.filter(project=project).count() == 3
    state = Stream.objects.get().learner_state
    kept = {"total", "transcript", "coef", "intercept", "prior", "updates", "n_features", "classes", "simulated"}
    assert set(state) == kept
    total = state["total"]["values"]
    assert (state["updates"], total["epochs"], total["place"]) == (6, 2, 0)
    before = None
    for release in ModelRelease.objects.filter(project=project).order_by("version"):
        with storage.files_at_hand(release) as folder:
            assert recompute_weights(folder) == 0.0
            said = json.loads((folder / "transcript.json").read_text())
        transcript = Transcript.from_json(said)
        assert [query for query, *_ in transcript.answers] == ["moments", "class_sums"] * 2 + ["seed"]
        start = transcript.parameters["start"]
        # The total that a version begins with is that which the version before ended with.
        assert (start is None) == (before is None)
        assert before is None or all(np.array_equal(getattr(before, name), start[name]) for name in start)
        before = total_of(transcript.parameters, Recorded(transcript.answers))
    assert np.isfinite(json.loads(json.dumps(state["coef"]))).all()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"pool_delta": 0.0}, "pool_delta"),
        ({"training_epsilon": 3.0}, "pool_epsilon"),
        ({"arrival": "pool"}, "estimator"),
    ],
)
def test_what_has_no_price_is_refused(changes, field):
    with pytest.raises(InvalidConfiguration, match=field):
        streaming.open_stream(make_user(), **RUNNING | changes)
