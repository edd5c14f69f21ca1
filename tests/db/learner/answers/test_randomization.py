import json
from contextlib import contextmanager
from uuid import uuid4

import numpy as np
import pytest
from django.db import IntegrityError, connection, transaction

from annotation.budget.lines import WantedLines, statement_page
from annotation.errors import ConfigurationFrozen, InvalidConfiguration, InvalidUpload, UndoRefused
from annotation.models import Label, Membership, Query
from annotation.people.services import limits
from annotation.projects.services import configuring, lifecycle
from annotation.questions.services import correcting, labels, queue
from annotation.review import services
from learner.linear_model import LinearModel
from learner.models import ModelRelease, Round, TrainingRun
from learner.models.answers import AnswerSeries, RandomizedLabel
from learner.pools import answers as answer_selectors
from learner.pools import selectors
from learner.releases import storage
from learner.rounds import next_step
from learner.rounds.services import loop, training
from learner.rounds.services.closing import delete_project
from privacy.accounting.event import event_from_json
from privacy.accounting.events import RandomizedAnswersEvent
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.counter import site_counter
from privacy.ledger.entries import broken_rule
from privacy.ledger.models import EntryKind, LedgerEntry
from privacy.mechanisms.randomized_response import RandomizedResponse
from privacy.mechanisms.randomness import SecureRandom
from tests import learning
from tests.factories import make_annotators, make_user, write_settings
from tests.owning import as_owner

pytestmark = pytest.mark.django_db(transaction=True)


def open_randomized(owner=None, **settings):
    values = {
        "label_randomizer": "randomized_consensus",
        "answers_epsilon": 4.0,
        "labels_epsilon": 4.0,
        "estimator": "channel",
        "repeat_votes": False,
        "features": "static_encoder",
        "overlap": 3,
    }
    return learning.open_crowd(owner or make_user(), **(values | settings))


def answer_all(project, opinions=None):
    """Have everybody answer what is open: truthfully, but for the questions whose `opinions` are given."""
    people = [each.user for each in Membership.objects.filter(project=project, role="annotator").order_by("pk")]
    for place, person in enumerate(people):
        while (held := queue.claim_next(project=project, user=person)) is not None:
            opinion = (opinions or {}).get(held.query_id)
            choice = learning.truth_of(held.query.text) if opinion is None else opinion[place]
            labels.submit_label(assignment=held, choice=choice)


@pytest.fixture
def crowd(remembered, request):
    return remembered("said by a crowd", said_once) if "said" in request.fixturenames else remembered("a crowd", asked)


def asked():
    project = open_randomized()
    learning.fill_crowd(project)
    make_annotators(project, 3)
    learning.work_off(project)
    return project


def said_once():
    project = asked()
    reach(project, 1)
    return project


def charged(project):
    return list(LedgerEntry.objects.filter(account=project.labels_account, kind=EntryKind.RESERVE).order_by("sequence"))


def reach(project, version, opinions=None):
    for _ in range(4 * version):
        learning.work_off(project, version=version)
        release = ModelRelease.objects.filter(project=project, version=version).first()
        if release is not None:
            project.refresh_from_db()
            return release
        answer_all(project, opinions)
    raise AssertionError(f"version {version} was not released")


def test_all_answers_are_paid_once_before_anybody_is_asked(crowd):
    (reservation,) = charged(crowd)
    assert not Label.objects.exists()
    event = event_from_json(reservation.event)
    assert event == RandomizedAnswersEvent(4.0, 2)
    assert reservation.epsilon_nano <= 4 * 10**9
    release = reach(crowd, 3)
    assert charged(crowd) == [reservation]
    assert learning.open_reservations(crowd) == 0
    assert RandomizedLabel.objects.count() == release.labels_used == 24
    assert all(
        not verdict.differing
        for verdict in audit_accounts(scope=crowd.labels_account.scope, marks=site_counter().marks())
    )
    assert release.state == "released"
    assert release.event == event.to_json()
    lineage = set(release.lineage.values_list("pk", flat=True))
    assert {entry.pk for entry in answer_selectors.spoken_entries(crowd)} | {release.entry_id} <= lineage
    assert AnswerSeries.objects.get().entry_id in lineage
    # What a further training costs, and whether it can be paid, says the same.
    assert selectors.training_price(crowd).epsilon == 0


def test_an_account_that_cannot_pay_for_all_answers_asks_nobody():
    project = open_randomized()
    learning.fill_crowd(project)
    ledger.reserve(
        account=project.labels_account, event=RandomizedAnswersEvent(0.5, 2), purpose="something else", key=uuid4()
    )
    learning.work_off(project)
    assert next_step.project_status(project).step == next_step.Step.CANNOT_PAY
    assert not Query.objects.filter(state="open").exists()


def test_a_budget_that_is_being_spent_on_the_next_step_is_not_called_too_little(monkeypatch):
    """Whoever asks where a project stands reads it in several statements, and a worker may pay between two of them."""
    project = open_randomized()
    learning.fill_crowd(project)
    price = next_step.training_event

    def priced_then_paid(asked):
        event = price(asked)
        monkeypatch.setattr(next_step, "training_event", price)
        learning.work_off(project)
        return event

    monkeypatch.setattr(next_step, "training_event", priced_then_paid)
    assert next_step.project_status(project).step == next_step.Step.LABELLING
    assert charged(project)


def test_what_was_said_is_never_drawn_again_by_an_attempt_that_follows(crowd, monkeypatch):
    """The second attempt would be a second look at the same answers, for one price."""
    answer_all(crowd)
    monkeypatch.setattr(
        "learner.rounds.services.training.fault_point", lambda name: (_ for _ in ()).throw(RuntimeError(name))
    )
    with pytest.raises(RuntimeError, match="training_fitted"):
        learning.work_off(crowd)
    before = list(RandomizedLabel.objects.order_by("pk").values_list("pk", "query", "said", "kept"))
    assert len(before) == 8
    monkeypatch.undo()
    drawn = []
    real = RandomizedResponse.release
    monkeypatch.setattr(RandomizedResponse, "release", lambda *given, **more: drawn.append(1) or real(*given, **more))
    failed = TrainingRun.objects.get()
    again = loop.start_anew(row=failed)
    training.train_model(run_id=str(again.pk))
    assert ModelRelease.objects.get().version == 1
    assert list(RandomizedLabel.objects.order_by("pk").values_list("pk", "query", "said", "kept")) == before
    # The canary draws of its own; no answer went through it.
    assert len(charged(crowd)) == 1


def test_what_dies_before_it_stores_its_draw_has_shown_nothing(crowd, monkeypatch):
    answer_all(crowd)
    monkeypatch.setattr(
        "learner.rounds.services.randomization.fault_point", lambda name: (_ for _ in ()).throw(RuntimeError(name))
    )
    with pytest.raises(RuntimeError, match="answers_said"):
        learning.work_off(crowd)
    assert not RandomizedLabel.objects.exists()
    assert not LedgerEntry.objects.filter(account=crowd.labels_account, kind="post_processing").exists()


def test_which_classes_may_be_said_does_not_follow_from_the_answers(crowd, monkeypatch):
    """Public words that are sure of one class leave the other out, though every answer names it."""

    def prior_of(project, X):
        return LinearModel(np.zeros((1, X.shape[1])), np.array([-30.0]), tuple(project.classes))

    sources = []
    real = RandomizedResponse.release
    monkeypatch.setattr("learner.rounds.services.randomization.prior_of", prior_of)
    monkeypatch.setattr(
        RandomizedResponse, "release", lambda *given, rng: sources.append(type(rng)) or real(*given, rng=rng)
    )
    answer_all(crowd, {question.pk: (1, 1, 1) for question in Query.objects.filter(state="open")})
    learning.work_off(crowd, version=1)
    said = list(RandomizedLabel.objects.values_list("said", "kept"))
    assert said == [(0, [0])] * 8
    # The first draw is that of the answers; a canary draws after it.
    assert sources[0] is SecureRandom


def test_a_coin_decides_where_answers_differ_and_every_settled_question_is_said(crowd):
    """A question left out because its answers differ would tell that they do."""
    asked = list(Query.objects.filter(state="open").order_by("pk"))
    people = make_annotators(crowd, 1)
    Query.objects.filter(pk__in=[asked[0].pk, asked[1].pk]).update(overlap=4, open_slots=4)
    answer_all(crowd, {asked[0].pk: (0, 0, 1, 1), asked[1].pk: (1, 0, 1, 0)})
    assert set(Query.objects.filter(pk__in=[asked[0].pk, asked[1].pk]).values_list("state", flat=True)) == {"disputed"}
    learning.work_off(crowd, version=1)
    assert set(RandomizedLabel.objects.values_list("query", flat=True)) == {question.pk for question in asked}
    assert ModelRelease.objects.get().labels_used == len(asked)
    assert people


def test_a_manager_settles_nothing_where_chance_does(crowd):
    asked = Query.objects.filter(state="open").first()
    make_annotators(crowd, 1)
    Query.objects.filter(pk=asked.pk).update(overlap=4, open_slots=4)
    answer_all(crowd, {asked.pk: (0, 0, 1, 1)})
    for decide in (
        lambda: services.settle(project=crowd, query_id=asked.pk, choice=0, person=crowd.created_by),
        lambda: services.leave_out_disputed(project=crowd, query_id=asked.pk),
    ):
        with pytest.raises(InvalidConfiguration, match="settled at random only"):
            decide()


def test_an_answer_that_was_said_of_is_not_taken_back(crowd):
    answer_all(crowd)
    learning.work_off(crowd, version=1)
    person = Label.objects.first().annotator
    with pytest.raises(UndoRefused):
        correcting.undo_label(project=crowd, user=person)


def test_an_answer_that_was_taken_back_in_time_is_not_said_of(crowd):
    answer_all(crowd)
    person = Membership.objects.filter(project=crowd, role="annotator").first().user
    reopened = correcting.undo_label(project=crowd, user=person).query_id
    write_settings(crowd, labels_per_release=7)
    learning.work_off(crowd, version=1)
    assert RandomizedLabel.objects.count() == 7
    assert not RandomizedLabel.objects.filter(query=reopened).exists()


class TestTheDatabaseRefuses:
    @pytest.fixture
    def said(self, crowd):
        return RandomizedLabel.objects.first()

    @contextmanager
    def refused(self, name):
        # Even who owns the tables, and not only the site.
        with as_owner(), pytest.raises(IntegrityError) as caught, transaction.atomic():
            yield
        assert broken_rule(caught.value) == name

    @pytest.mark.one_in(5)
    @pytest.mark.parametrize("changed", [{"said": 1}, {"said": 0}, {"kept": [1]}, {"number": 2}, {"answers": 9}])
    def test_another_response_in_place_of_one(self, said, changed):
        with self.refused("learner_responses_stay"):
            RandomizedLabel.objects.filter(pk=said.pk).update(**changed)

    def test_a_response_that_goes(self, said):
        with self.refused("learner_responses_stay"):
            RandomizedLabel.objects.filter(pk=said.pk).delete()
        with self.refused("learner_responses_stay"), connection.cursor() as cursor:
            cursor.execute("TRUNCATE learner_randomizedlabel")

    def copy(self, like, **changed):
        values = {
            name: getattr(like, name) for name in ("project", "query", "number", "answers", "said", "kept", "entry")
        }
        RandomizedLabel.objects.create(**values | changed)

    def test_a_second_response_to_the_same_answers(self, said):
        with self.refused("learner_response_paid"):
            self.copy(said, number=2)
        with self.refused("learner_response_fits"):
            self.copy(said)

    def test_a_response_nobody_paid_for(self, said):
        other = open_randomized()
        query = Query.objects.filter(randomized_labels=None, state="unasked").first()
        with self.refused("learner_response_paid"):
            self.copy(said, project=other)
        gate = LedgerEntry.objects.filter(account=said.project.pool_account, kind="commit").first()
        with self.refused("learner_response_paid"):
            self.copy(said, query=query, entry=gate)

    def test_a_response_to_a_question_that_is_not_settled(self, said):
        query = Query.objects.filter(state="unasked").first()
        with self.refused("learner_response_fits"):
            self.copy(said, query=query, answers=query.overlap)

    @pytest.mark.one_in(3)
    @pytest.mark.parametrize("wrong", [{"said": 1, "kept": [0]}, {"said": 2, "kept": [2]}, {"answers": 7}])
    def test_a_response_that_could_not_have_been(self, crowd, wrong):
        reach(crowd, 1)
        said = RandomizedLabel.objects.first()
        answer_all(crowd)
        learning.work_off(crowd)
        answer_all(crowd)
        query = Query.objects.filter(project=crowd, state="closed", randomized_labels=None).first()
        assert query is not None
        with self.refused("learner_response_fits"):
            self.copy(said, query=query, **wrong)

    def test_another_payment(self, said):
        series = AnswerSeries.objects.get()
        gate = LedgerEntry.objects.filter(account=said.project.pool_account, kind="commit").first()
        for change in (
            lambda: AnswerSeries.objects.filter(pk=series.pk).update(entry=gate),
            lambda: AnswerSeries.objects.filter(pk=series.pk).update(entry=None),
            series.delete,
        ):
            with self.refused("learner_responses_stay"):
                change()

    def test_another_law_of_responses(self, said):
        """What was paid for goes on under the parameters it was paid for under."""
        for changed in ({"answers_epsilon": 1.0}, {"response_classes": "uniform"}, {"label_randomizer": ""}):
            with pytest.raises((ConfigurationFrozen, InvalidConfiguration)):
                configuring.configure_project(project=said.project, changes=changed, actor=said.project.created_by)


def test_a_deleted_project_loses_what_was_said(crowd):
    reach(crowd, 1)
    deletion = lifecycle.request_deletion(
        project=crowd, typed=crowd.slug, keep_releases=False, actor="somebody", send=False
    )
    delete_project(job_id=deletion.job_id)
    assert not RandomizedLabel.objects.exists()
    assert not AnswerSeries.objects.exists()


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"labels_epsilon": 3.0}, "labels_epsilon: All answers cost epsilon 4"),
        ({"estimator": "logistic"}, "estimator: Such answers need the model channel"),
        ({"label_randomizer": ""}, "estimator: Needs randomised answers"),
        ({"repeat_votes": True}, "repeat_votes: Asking again needs more responses"),
        ({"answers_epsilon": 30.0, "labels_epsilon": 30.0}, "answers_epsilon: Must be at most 20"),
    ],
)
def test_combinations_without_a_proof_are_refused(given, rule):
    with pytest.raises(InvalidConfiguration, match=rule):
        open_randomized(**given)


def test_among_experts_no_answer_is_randomised():
    with pytest.raises(InvalidConfiguration, match="answers to public questions, not records"):
        learning.open_trusted(make_user(), label_randomizer="randomized_consensus")


def test_no_private_start_is_taken_where_only_responses_are_learned_from():
    project = open_randomized()
    with pytest.raises(InvalidUpload, match="takes no private start"):
        learning.upload(project, [["apple", "fruit"]], ["text", "label"], role="charged_start", start_epsilon=3.0)


@pytest.mark.slow
def test_a_question_asked_again_is_said_of_again_as_often_as_was_paid_and_no_oftener():
    project = open_randomized(randomizations=2, repeat_votes=True, maximum_releases=None)
    learning.fill_crowd(project, texts=16)
    make_annotators(project, 9)
    learning.work_off(project)
    (reservation,) = charged(project)
    event = event_from_json(reservation.event)
    assert (event.randomizations, event.epsilon) == (2, pytest.approx(2.0))
    assert 3.9 * 10**9 < reservation.epsilon_nano <= 4 * 10**9
    for _ in range(12):
        answer_all(project)
        learning.work_off(project)
    said = RandomizedLabel.objects.order_by("query", "number")
    assert set(said.values_list("number", flat=True)) == {1, 2}
    for label in said.filter(number=2):
        assert label.answers == 5
        assert said.get(query=label.query, number=1).answers == 3
    # Each response counts with its own law.
    spoken = answer_selectors.responses_of(project)
    assert len(spoken.examples.ids) == said.values("query").distinct().count()
    assert charged(project) == [reservation]
    assert not answer_selectors.with_responses_left(Query.objects.filter(randomized_labels__number=2), project).exists()


def accuracy_of(release):
    (measured,) = release.evaluations.all()
    return measured.correct / measured.examples


def test_a_live_crowd_chooses_learns_and_beats_what_costs_nothing():
    """Names alone, 24 answers said at epsilon 4 in all: a model worth having, asked by what an answer would tell."""
    project = open_randomized(selection="clustered_uncertainty", text_columns=256)
    learning.fill_crowd(project)
    make_annotators(project, 3)
    releases = [reach(project, version) for version in (1, 2, 3)]
    chosen = list(Round.objects.filter(project=project, state="done").order_by("number"))
    assert {one.strategy for one in chosen} == {"clustered_uncertainty"}
    # The first round knows the texts and the names, and every later one the release before it.
    assert [one.model and one.model.version for one in chosen[:3]] == [None, 1, 2]
    assert [one.selected for one in chosen[:3]] == [8, 8, 8]
    assert accuracy_of(releases[-1]) >= 0.9
    assert LedgerEntry.objects.filter(account=project.pool_account, kind="reserve").count() == 1


def test_card_and_statement_say_how_answers_left(crowd):
    release = reach(crowd, 1)
    said = "left the site through a randomised response, once for each question. Epsilon 4 of one answer covers all"
    with storage.open_file(release=release, name="card.md") as file:
        assert said in file.read().decode()
    with storage.open_file(release=release, name="privacy.json") as file:
        assert said in json.load(file)["answers"]
    page = statement_page([crowd.labels_account], {}, WantedLines(), 1)
    assert any(line.what.startswith("All answers") for line in page.lines)
    # A limit that rises has the card written anew, with the same sentence.
    limits.change_limit(
        project=crowd,
        account=crowd.labels_account,
        epsilon_limit=5.0,
        delta_limit=0.0,
        reason="more room",
        actor=crowd.created_by,
    )
    release.refresh_from_db()
    with storage.open_file(release=release, name="card.md") as file:
        assert said in file.read().decode()
