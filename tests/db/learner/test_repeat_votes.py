"""Asking again: once half of the texts were asked, doubtful answers get more votes before new texts are asked about."""

import pytest

from annotation.errors import InvalidConfiguration
from annotation.models import Consensus, Membership, Query, QueryState
from annotation.services import labels, projects, queue, repeats
from learner import repeat_selectors
from learner.models import Round
from learner.selectors import next_strategy
from learner.services import rounds
from tests import learning
from tests.factories import add_members, make_annotators, make_candidates, make_project, make_user, open_records

pytestmark = pytest.mark.django_db(transaction=True)


def answer(project, person, choices) -> None:
    """Give one answer to each open question, as `choices` has it by the question's id."""
    while (held := queue.claim_next(project=project, user=person)) is not None:
        labels.submit_label(assignment=held, choice=choices[held.query_id])


def answered(overlap=3, texts=6, asked=4):
    """Return a crowd project in which three people answered four of six texts, and these questions, unsure first."""
    project = make_project(oracle="crowd", selection="uncertainty", overlap=overlap, repeat_votes=True)
    make_candidates(project, [f"text {n}" for n in range(texts)])
    ids = list(Query.objects.order_by("pk").values_list("pk", flat=True))[:asked]
    queue.open_queries(project=project, round_number=1, query_ids=ids)
    people = make_annotators(project, overlap)
    for place, person in enumerate(people):
        # The first question has three opinions, the second a divided majority, the others one voice.
        answer(project, person, dict(zip(ids, [place, int(place == 0), 1, 1][:asked], strict=True)))
    return project, ids, people


def test_the_least_sure_are_asked_first_and_only_people_who_have_not_answered_count():
    project, ids, _ = answered()
    assert Query.objects.get(pk=ids[0]).state == QueryState.DISPUTED
    assert list(repeat_selectors.doubtful_questions(project)) == []
    add_members(project, make_user(), make_user())
    assert [query.pk for query in repeat_selectors.doubtful_questions(project)] == ids[:2]
    assert next_strategy(project) == "repeat_votes"


def test_new_texts_come_first_until_half_of_them_were_asked():
    project, _, _ = answered(texts=9)
    add_members(project, make_user(), make_user())
    assert repeat_selectors.doubtful_questions(project).count() == 2
    assert not repeat_selectors.asks_again(project)
    project.repeat_votes = False
    Query.objects.filter(state=QueryState.CANDIDATE).delete()
    assert not repeat_selectors.asks_again(project)


def test_a_question_asked_again_takes_two_more_answers_and_agrees_anew():
    project, ids, people = answered()
    more = make_annotators(project, 2)
    before = Consensus.objects.get(query=ids[1])
    repeats.ask_again(project=project, round_number=2, query_ids=[ids[0], ids[1]])
    assert not Consensus.objects.filter(query__in=ids[:2]).exists()
    assert queue.claim_next(project=project, user=people[0]) is None
    for person in more:
        answer(project, person, {ids[0]: 2, ids[1]: 1})
    first, second = (Consensus.objects.get(query=pk) for pk in ids[:2])
    assert (first.choice, first.votes, first.agreeing) == (2, 5, 3)
    assert (second.choice, second.votes, second.agreeing) == (1, 5, 3) or second.votes == 5
    assert second.pk > before.pk
    assert list(Query.objects.filter(pk__in=ids).values_list("open_slots", flat=True)) == [0] * 4


def test_only_answered_questions_of_the_project_are_asked_again():
    project, ids, _ = answered()
    candidate = Query.objects.filter(project=project, state=QueryState.CANDIDATE).first()
    other = open_records(make_project())[0]
    for wrong in (candidate.pk, other.pk):
        with pytest.raises(InvalidConfiguration, match="Only 1 of 2"):
            repeats.ask_again(project=project, round_number=2, query_ids=[ids[0], wrong])
    assert Query.objects.get(pk=ids[0]).overlap == 3


def test_a_round_of_repeats_is_free_recorded_and_within_the_label_budget():
    project = learning.open_crowd(make_user(), overlap=1, round_size=20, labels_per_release=20, maximum_releases=None)
    learning.fill_crowd(project)
    person = make_user()
    learning.run_to_release(project, person, version=1)
    add_members(project, make_user(), make_user())
    assert Membership.objects.filter(project=project, role="annotator").count() == 3
    passed, asked = Query.objects.count(), Query.objects.exclude(state=QueryState.CANDIDATE).count()
    assert 2 * asked >= passed
    limit = {"money_limit": None, "price_per_label": None, "currency": ""}
    projects.set_label_budget(project=project, labels_limit=asked + 7, **limit)
    rounds.advance_project(project_id=project.pk)
    chosen = Round.objects.get(strategy="repeat_votes")
    assert chosen.requested == 3
    rounds.run_round(round_id=chosen.pk)
    chosen.refresh_from_db()
    assert (chosen.state, chosen.selected) == ("done", 3)
    assert (chosen.committed_entry.mechanism, chosen.committed_entry.epsilon_nano) == ("post_processing", 0)
    assert Query.objects.filter(state=QueryState.OPEN, overlap=3, open_slots=2).count() == 3
