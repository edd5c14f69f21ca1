from decimal import Decimal

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.budget.label_budget import questions_left
from annotation.errors import WorkCancelled
from annotation.models import Consensus, Membership, Query, QueryState, WorkState
from annotation.people.services import limits
from annotation.questions.services import labelling, labels, queue
from learner.linear_model import LinearModel
from learner.models import Round
from learner.pools import answers as repeat_selectors
from learner.pools import features, selectors
from learner.pools import records as pool_selectors
from learner.pools.attempts import CHOOSING, Progress
from learner.pools.configuration import featurizer_of, strategy_of
from learner.pools.prices import round_price
from learner.pools.selectors import next_strategy, question_counts, training_event
from learner.rounds import next_step
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import loop, watching
from learner.strategies import random, top_c, uncertainty
from privacy.ledger.selectors import guarantee
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom
from tests import learning
from tests.db.learner.pools.selectors.test_round_prices import dying_at, end
from tests.dying import Killed
from tests.factories import (
    add_members,
    make_annotators,
    make_candidates,
    make_project,
    make_user,
)

pytestmark = pytest.mark.django_db(transaction=True)
BLOCK = 16


@pytest.fixture(autouse=True)
def in_small_blocks(monkeypatch):
    for module in (top_c, uncertainty):
        monkeypatch.setattr(module, "default_block_rows", lambda dimension, outputs: BLOCK)
    monkeypatch.setattr(random, "BLOCK_ROWS", BLOCK)
    monkeypatch.setattr(watching, "REPORTED_ROWS", 2 * BLOCK)
    monkeypatch.setattr(pool_selectors, "TABLE_ROWS", 7)
    monkeypatch.setattr(queue, "OPENED_AT_ONCE", 5)


@pytest.fixture
def second_round(remembered):
    project = remembered("a second round over two uploads", before_a_second_round)
    chosen = Round.objects.select_related("project__pool_account", "model").get(project=project, strategy="top_c")
    assert chosen.state == "waiting"
    return chosen


def before_a_second_round():
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project, number=130)
    learning.run_to_release(project, make_user(), version=1)
    learning.upload(project, [[text] for text in learning.sentences(30, seed=5)], ["text"])
    loop.advance_project(project_id=project.pk)
    return project


def listed(project):
    found = pool_selectors.unasked_records(project).order_by("dataset_id", "row_number")
    starts, first = {}, 0
    for dataset in pool_selectors.pool_datasets(project):
        starts[dataset.pk], first = first, first + dataset.row_count
    return [(record.pk, starts[record.dataset_id] + record.row_number) for record in found]


def test_candidates_are_what_nobody_was_asked_about(second_round):
    candidates = pool_selectors.open_records(second_round.project)
    expected = listed(second_round.project)
    assert 0 < len(expected) < candidates.rows.total == 160
    rows = candidates.rows.at(np.arange(len(candidates.rows)))
    assert rows.tolist() == [row for _pk, row in expected]
    backwards = candidates.ids_of(rows[::-1])
    assert backwards.tolist() == [pk for pk, _row in reversed(expected)]


def test_no_record_is_read_to_know_them(second_round):
    """Statements follow the number of questions asked, seven at a time here; none goes through the records."""
    asked = Query.objects.filter(project=second_round.project, record__isnull=False).count()
    with CaptureQueriesContext(connection) as captured:
        pool_selectors.open_records(second_round.project)
    assert len(captured) == 1 + 2 * -(-asked // 7) + 1
    with_records = [one["sql"] for one in captured if 'FROM "annotation_record"' in one["sql"]]
    assert len(with_records) == -(-asked // 7)
    assert all('"annotation_record"."id" IN (' in sql for sql in with_records)


def test_a_round_asks_what_a_list_of_the_pool_gives(second_round, monkeypatch):
    project = second_round.project
    pairs = listed(project)
    strategy = strategy_of(project, "top_c")
    datasets = list(pool_selectors.pool_datasets(project))
    X = features.stacked_features(datasets, dimension=featurizer_of(project).dimension)
    model = LinearModel.from_json(second_round.model.weights)
    rows = np.array([row for _pk, row in pairs])
    chosen = set(strategy.query(X, rows, model, second_round.requested, SimulationRandom(5)).tolist())
    monkeypatch.setattr(loop, "SecureRandom", lambda: SimulationRandom(5))
    loop.run_round(round_id=second_round.pk)
    asked = Query.objects.filter(project=project, round_number=second_round.number).order_by("priority")
    # In the order of the choice, though few are opened at once.
    assert list(asked.values_list("record_id", flat=True)) == [pk for pk, row in pairs if row in chosen]
    assert len(chosen) == second_round.requested > queue.OPENED_AT_ONCE


def test_scoring_stops_with_the_attempt_and_leaves_no_pages(second_round, monkeypatch):
    given_back = []
    monkeypatch.setattr(features.matrix, "let_go", given_back.append)

    class Stopped:
        checked = 0

        def check(self):
            self.checked += 1
            if self.checked == 3:
                raise WorkCancelled("stop")

        def report(self, **fields):
            pass

    candidates = pool_selectors.open_records(second_round.project)
    X = features.stacked_features(candidates.datasets, dimension=featurizer_of(second_round.project).dimension)
    rows = watching.watched(candidates.rows, X, Progress(Stopped(), CHOOSING))
    blocks = rows.blocks(BLOCK)
    assert [len(next(blocks)) for _ in range(4)] == [BLOCK] * 4
    with pytest.raises(WorkCancelled):
        next(blocks)
    # Before each block, in both uploads.
    assert len(given_back) == 2 * 5


def answer(project, person, choices) -> None:
    while (held := queue.claim_next(project=project, user=person)) is not None:
        labels.submit_label(assignment=held, choice=choices[held.query_id])


def answered(overlap=3, texts=6, asked=4):
    project = make_project(oracle="crowd", selection="uncertainty", overlap=overlap, repeat_votes=True)
    make_candidates(project, [f"text {n}" for n in range(texts)])
    ids = list(Query.objects.order_by("pk").values_list("pk", flat=True))[:asked]
    queue.open_queries(project=project, round_number=1, query_ids=ids)
    people = make_annotators(project, overlap)
    for place, person in enumerate(people):
        # The first question has three opinions, the second a divided majority, the others one voice.
        answer(project, person, dict(zip(ids, [place, int(place == 0), 1, 1][:asked], strict=True)))
    return project, ids, people


def test_any_settled_question_may_be_asked_again_where_people_are_left_who_have_not_answered():
    project, ids, _ = answered()
    states = Query.objects.filter(pk__in=ids).order_by("pk").values_list("state", flat=True)
    assert list(states) == [QueryState.DISPUTED, *[QueryState.CLOSED] * 3]
    assert list(repeat_selectors.settled_questions(project)) == []
    add_members(project, make_user(), make_user())
    assert set(repeat_selectors.settled_questions(project).values_list("pk", flat=True)) == set(ids)
    queue.open_for_more_answers(project=project, round_number=2, query_ids=ids[:1])
    assert ids[0] not in repeat_selectors.settled_questions(project).values_list("pk", flat=True)


def test_a_question_asked_again_takes_two_more_answers_and_agrees_anew():
    project, ids, people = answered()
    more = make_annotators(project, 2)
    before = Consensus.objects.get(query=ids[1])
    queue.open_for_more_answers(project=project, round_number=2, query_ids=[ids[0], ids[1]])
    assert not Consensus.objects.filter(query__in=ids[:2]).exists()
    assert queue.claim_next(project=project, user=people[0]) is None
    for person in more:
        answer(project, person, {ids[0]: 2, ids[1]: 1})
    first, second = (Consensus.objects.get(query=pk) for pk in ids[:2])
    assert (first.choice, first.votes, first.agreeing) == (2, 5, 3)
    assert (second.choice, second.votes, second.agreeing) == (1, 5, 3) or second.votes == 5
    assert second.pk > before.pk
    assert list(Query.objects.filter(pk__in=ids).values_list("open_slots", flat=True)) == [0] * 4


def test_a_round_of_repeats_is_free_recorded_and_within_the_label_budget():
    project = learning.open_crowd(make_user(), overlap=1, round_size=20, labels_per_release=20, maximum_releases=None)
    learning.fill_crowd(project)
    person = make_user()
    learning.run_to_release(project, person, version=1)
    add_members(project, make_user(), make_user())
    assert Membership.objects.filter(project=project, role="annotator").count() == 3
    passed, asked = Query.objects.count(), Query.objects.exclude(state=QueryState.UNASKED).count()
    assert 2 * asked >= passed
    limit = {"money_limit": None, "price_per_label": None, "currency": ""}
    labelling.set_label_budget(project=project, labels_limit=asked + 7, **limit)
    loop.advance_project(project_id=project.pk)
    chosen = Round.objects.get(strategy="repeat_votes")
    assert (chosen.requested, chosen.model.version) == (3, 1)
    loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    assert (chosen.state, chosen.selected) == ("done", 3)
    assert (chosen.committed_entry.mechanism, chosen.committed_entry.epsilon_nano) == ("post_processing", 0)
    again = Query.objects.filter(state=QueryState.OPEN, overlap=3, open_slots=2).order_by("priority")
    assert list(again.values_list("pk", flat=True)) == least_sure(project, chosen.model, asked_first=20)[:3]


def least_sure(project, release, *, asked_first: int) -> list[int]:
    passed = list(Query.objects.filter(gate_run__isnull=False).order_by("gate_run__dataset_id", "id"))
    rows = [place for place, query in enumerate(passed) if query.round_number is not None]
    assert len(rows) == asked_first
    datasets = list(pool_selectors.pool_datasets(project))
    X = features.stacked_features(datasets, dimension=featurizer_of(project).dimension)
    chooser = strategy_of(project, "uncertainty")
    ranked = chooser.query(X, np.array(rows), LinearModel.from_json(release.weights), len(rows), SecureRandom())
    return [passed[row].pk for row in ranked]


def test_each_release_asks_again_once_and_what_comes_of_it_counts_as_done():
    project = learning.open_crowd(make_user(), overlap=1, round_size=20, labels_per_release=20, maximum_releases=None)
    learning.fill_crowd(project)
    person = make_user()
    learning.run_to_release(project, person, version=1)
    helpers = make_annotators(project, 2)
    learning.work_off(project)
    assert next_strategy(project) == "uncertainty"
    assert (question_counts(project).done, question_counts(project).newly_done) == (20, 0)
    asked = list(Query.objects.filter(state=QueryState.OPEN).order_by("priority").values_list("pk", flat=True))
    truth = {pk: learning.truth_of(Query.objects.get(pk=pk).text) for pk in asked}
    for place, helper in enumerate(helpers):
        answer(project, helper, {pk: truth[pk] if place else 1 - truth[pk] for pk in asked})
    counts = question_counts(project)
    assert (counts.open, counts.done, counts.newly_done) == (0, 40, 20)
    learning.work_off(project, version=2)
    assert question_counts(project).newly_done == 0
    assert next_strategy(project) == "uncertainty", "everybody who is there has answered"
    make_annotators(project, 2)
    assert next_strategy(project) == "uncertainty", "a question gets three times its answers at most"


NOTHING = {"labels_limit": None, "money_limit": None, "price_per_label": None, "currency": ""}


@pytest.fixture
def released(remembered):
    return remembered("a release of a crowd", released_crowd)


def released_crowd():
    project = learning.open_crowd(make_user())
    learning.fill_crowd(project)
    learning.run_to_release(project, make_user(), version=1)
    return project


def asked_in(number):
    return list(Query.objects.filter(round_number=number).order_by("-priority", "pk"))


def entropies(project, queries):
    model = LinearModel.from_json(selectors.latest_release(project).weights)
    featurizer = featurizer_of(project)
    X = np.vstack([featurizer.transform([query.text]) for query in queries]).astype(np.float32)
    mean = model.predict_proba(X)
    return -(mean * np.log(mean)).sum(axis=1)


def test_a_round_asks_the_most_uncertain(released):
    waiting = list(Query.objects.filter(state="unasked"))
    assert len(waiting) > 8
    loop.advance_project(project_id=released.pk)
    second = Round.objects.latest("number")
    assert second.strategy == "uncertainty"
    loop.run_round(round_id=second.pk)
    found = dict(zip([query.pk for query in waiting], entropies(released, waiting), strict=True))
    asked = {query.pk for query in asked_in(2)}
    assert len(asked) == 8
    assert min(found[pk] for pk in asked) >= max(found[pk] for pk in found.keys() - asked) - 1e-6


@pytest.mark.slow
def test_the_budget_in_money_ends_a_round_early_and_then_the_project_stops(released):
    given = Query.objects.exclude(state="unasked").count()
    limits = {"money_limit": Decimal("0.05") * (given + 3), "price_per_label": Decimal("0.05"), "currency": "EUR"}
    labelling.set_label_budget(project=released, **NOTHING | limits)
    released.refresh_from_db()
    assert questions_left(released) == 3
    loop.advance_project(project_id=released.pk)
    loop.run_round(round_id=Round.objects.latest("number").pk)
    assert len(asked_in(2)) == 3
    assert questions_left(released) == 0
    assert learning.label_everything(released, make_user()) == 3
    learning.work_off(released)
    # Three answers are fewer than a training is declared to take.
    assert next_step.project_status(released).step == Step.FEW_LABELS
    loop.train_on_few(project=released)
    learning.work_off(released)
    assert released.releases.filter(version=2).exists()
    assert next_step.project_status(released).step == Step.LABELS_SPENT
    assert Round.objects.count() == 2


def test_a_limit_that_is_lowered_while_a_round_waits_is_kept(released):
    """The round was opened for eight questions; by the time a worker takes it, two are paid for, then none."""
    loop.advance_project(project_id=released.pk)
    waiting = Round.objects.latest("number")
    assert waiting.requested == 8
    given = Query.objects.exclude(state="unasked").count()
    labelling.set_label_budget(project=released, **NOTHING | {"labels_limit": given + 2})
    loop.run_round(round_id=waiting.pk)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.selected, len(asked_in(2))) == ("done", 2, 2)


VISIBLE = [({"selection": "top_c", "selection_epsilon": 0.5}, loop)]


def about_to_choose(**settings):
    project = learning.open_trusted(make_user(), **settings)
    learning.fill_trusted(project, number=150)
    learning.run_to_release(project, make_user(), version=1)
    choice, training = round_price(project).epsilon, training_event(project).cost().epsilon
    assert 0 < 1.1 * choice < choice + training
    spent = guarantee(project.pool_account).epsilon_spent
    limits.change_limit(
        project=project,
        account=project.pool_account,
        epsilon_limit=round(spent + choice + training + 0.1 * choice, 6),
        delta_limit=0.0,
        reason="less",
        actor=project.created_by,
    )
    assert loop.advance_project(project_id=project.pk).step == Step.CHOOSING
    return project, Round.objects.get(project=project, number=2)


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize(("selecting", "module"), VISIBLE)
def test_where_the_model_is_out_of_reach_no_second_attempt_is_charged(selecting, module, ended):
    """The flaw: the second attempt paid for questions whose answers no training could be paid for.

    Whether another worker takes the round up, or a manager starts it anew.
    """
    project, chosen = about_to_choose(**selecting)
    before = len(learning.entries(project, "reserve"))
    with pytest.raises(Killed), dying_at("round_chosen", module):
        loop.run_round(round_id=chosen.pk)
    left = guarantee(project.pool_account).epsilon_left
    assert round_price(project).epsilon < left < training_event(project).cost().epsilon + round_price(project).epsilon
    if ended:
        end(chosen)
        chosen = loop.start_anew(row=chosen)
    else:
        Round.objects.filter(pk=chosen.pk).update(leased_until="2000-01-01T00:00Z")
    loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    assert chosen.state == WorkState.FAILED
    assert "too little for the next questions and the model trained on them" in chosen.error
    # What the attempt that died was charged stays charged; nothing comes after it, and the page says the same.
    assert len(learning.entries(project, "reserve")) == before + 1
    assert len(learning.entries(project, "charge")) == 1
    assert learning.open_reservations(project) == 0
    assert not project.queries.filter(round_number__gt=1).exists()
    status = project_status(project)
    assert status.step == Step.CANNOT_PAY
    assert str(status.sentence).startswith(str(chosen.error))


@pytest.mark.parametrize(("selecting", "module"), VISIBLE)
def test_where_it_stays_payable_the_second_attempt_chooses(selecting, module):
    project, chosen = about_to_choose(**selecting)
    limits.change_limit(
        project=project,
        account=project.pool_account,
        epsilon_limit=20.0,
        delta_limit=0.0,
        reason="more",
        actor=project.created_by,
    )
    with pytest.raises(Killed), dying_at("round_chosen", module):
        loop.run_round(round_id=chosen.pk)
    Round.objects.filter(pk=chosen.pk).update(leased_until="2000-01-01T00:00Z")
    loop.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    assert (chosen.state, chosen.attempt) == (WorkState.DONE, 2)
    assert len(learning.entries(project, "charge")) == 1
