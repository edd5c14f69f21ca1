import numpy as np
import pytest

from annotation.models import Consensus, Membership, Query, QueryState
from annotation.questions.services import labelling, labels, queue
from learner.linear_model import LinearModel
from learner.models import Round
from learner.pools import answers as repeat_selectors
from learner.pools import features
from learner.pools import records as pool_selectors
from learner.pools.configuration import featurizer_of, strategy_of
from learner.pools.selectors import next_strategy, question_counts
from learner.rounds.services import loop
from privacy.mechanisms.randomness import SecureRandom
from tests import learning
from tests.factories import (
    add_members,
    make_annotators,
    make_candidates,
    make_project,
    make_user,
)

pytestmark = pytest.mark.django_db(transaction=True)


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
