import json

import pytest
from django.db import IntegrityError, connection, transaction

from annotation.models import Assignment, Project, Query, QueryState
from annotation.projects.services import configuring
from annotation.questions.services import checks as gold
from annotation.questions.services import labels, queue
from annotation.review.suggestion_effect import effect_of
from learner.features.base import featurizer_from_json
from learner.linear_model import LinearModel
from learner.models import ModelRelease, Round
from learner.pools import records as pool_selectors
from learner.pools import starts
from learner.pools.configuration import featurizer_of
from learner.rounds.services import suggestions
from privacy.ledger.models import EntryKind
from tests import learning
from tests.db.learner.answers.test_randomization import open_randomized, reach
from tests.factories import make_annotators, make_user

pytestmark = pytest.mark.django_db(transaction=True)
SUGGESTED = {"suggestions": "released_model", "blind_share": 0.5}


def predicted(release: ModelRelease, text: str) -> tuple[int, int]:
    X = featurizer_from_json(json.dumps(release.features)).transform([text])
    shares = LinearModel.from_json(release.weights).predict_proba(X)[0]
    return int(shares.argmax()), round(100 * shares.max())


def agrees(query: Query, release: ModelRelease) -> bool:
    choice, percent = predicted(release, learning.shown_text(query))
    # Features are stored in single precision.
    return query.suggested == choice and abs((query.suggested_percent or 0) - percent) <= 1


@pytest.fixture
def crowd(remembered):
    return remembered("a crowd with suggestions", filled_with_suggestions)


def filled_with_suggestions():
    project = open_randomized(**SUGGESTED)
    learning.fill_crowd(project)
    make_annotators(project, 3)
    return project


def test_a_crowd_is_told_what_the_newest_release_says_and_the_first_round_nothing(crowd):
    owner = crowd.created_by
    test_set = crowd.datasets.get(role="public_test")
    gold.add_public_checks(project=crowd, dataset=test_set, owner=owner, most=5)
    learning.work_off(crowd)
    assert not Query.objects.exclude(suggested=None).exists()
    release = reach(crowd, 1)
    learning.work_off(crowd)
    assert Round.objects.filter(project=crowd).count() == 2
    first, second = (Query.objects.filter(project=crowd, round_number=number) for number in (1, 2))
    assert not first.exclude(suggested=None).exists()
    assert not Query.objects.filter(state=QueryState.UNASKED).exclude(suggested=None).exists()
    checks = Query.objects.filter(project=crowd, state=QueryState.GOLD)
    assert second.count() == 8
    assert checks.count() == 5
    for query in (*second, *checks):
        assert agrees(query, release)
        assert query.suggestion_shown is not None
    (entry,) = release.entry.account.entries.filter(kind=EntryKind.POST_PROCESSING, parent=release.entry)
    assert (entry.mechanism, entry.epsilon_nano, entry.subject, entry.purpose) == (
        "post_processing",
        0,
        "round:2",
        "suggest the classes that a version finds likely",
    )
    # It changes nothing about what is settled and when: the next model comes of the same answers as ever.
    assert reach(crowd, 2).labels_used == 16


def test_a_question_keeps_the_suggestion_it_was_opened_with(crowd):
    reach(crowd, 1)
    learning.work_off(crowd)
    before = dict(Query.objects.filter(round_number=2).values_list("pk", "suggested"))
    reach(crowd, 2)
    learning.work_off(crowd)
    assert dict(Query.objects.filter(round_number=2).values_list("pk", "suggested")) == before
    query = Query.objects.filter(round_number=2).first()
    for values in (
        {"suggested": 1 - query.suggested},
        {"suggestion_shown": not query.suggestion_shown},
        {"suggested": None, "suggested_percent": None, "suggestion_shown": None},
    ):
        with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
            Query.objects.filter(pk=query.pk).update(**values)
    first = Query.objects.filter(round_number=1).first()
    for half in ({"suggested": 1}, {"suggested": 1, "suggested_percent": 101, "suggestion_shown": True}):
        with pytest.raises(IntegrityError, match="suggestion_whole"), transaction.atomic():
            Query.objects.filter(pk=first.pk).update(**half)


def test_what_somebody_was_asked_without_a_suggestion_never_gets_one(crowd):
    """Turned off while a round is opened, then on: whoever holds a question is not told later what the model says."""
    configuring.configure_project(project=crowd, changes={"suggestions": ""}, actor=crowd.created_by)
    crowd.refresh_from_db()
    reach(crowd, 1)
    learning.work_off(crowd)
    person = crowd.memberships.filter(role="annotator").first().user
    held = queue.claim_next(project=crowd, user=person)
    configuring.configure_project(project=crowd, changes=SUGGESTED, actor=crowd.created_by)
    crowd.refresh_from_db()
    chosen = Round.objects.select_related("project").get(project=crowd, number=2)
    asked = Query.objects.filter(project=crowd, round_number=2)
    with transaction.atomic():
        suggestions.suggest_for_round(chosen, pool_selectors.gate_examples(crowd, asked))
    assert set(asked.filter(suggested=None)) == {held.query}
    assert asked.count() == 8


def test_coins_alone_decide_who_sees_it(crowd):
    """60 checks at a blind share of a half: fewer than 10 of a kind come by chance with 3e-8."""
    reach(crowd, 1)
    owner, test_set = crowd.created_by, crowd.datasets.get(role="public_test")
    added = gold.add_public_checks(project=crowd, dataset=test_set, owner=owner, most=60)
    learning.work_off(crowd)
    checks = Query.objects.filter(project=crowd, state=QueryState.GOLD, suggested__isnull=False)
    assert checks.count() == added
    for shown in (True, False):
        assert checks.filter(suggestion_shown=shown).count() >= added / 6


def test_experts_see_it_for_every_way_of_choosing_and_nobody_else_is_told():
    project = learning.open_trusted(make_user(), **SUGGESTED)
    learning.fill_trusted(project)
    release = learning.run_to_release(project, make_user(), version=1)
    learning.work_off(project)
    asked = list(Query.objects.filter(project=project, round_number=2).select_related("record"))
    assert len(asked) == 12
    assert all(agrees(query, release) for query in asked)
    # Inside the boundary nothing was released, so nothing is written.
    assert not learning.entries(project, EntryKind.POST_PROCESSING)


def test_a_secret_block_has_them_too_made_of_the_whole_pool(monkeypatch):
    project = learning.open_secret(make_user(), **SUGGESTED)
    learning.fill_trusted(project)
    release = learning.run_to_release(project, make_user(), version=1)
    sizes = []
    applied = suggestions._applied

    def noted(model, X, wanted, rows=None):
        sizes.append(len(wanted if rows is None else rows))
        return applied(model, X, wanted, rows)

    monkeypatch.setattr(suggestions, "_applied", noted)
    monkeypatch.setattr(suggestions, "BLOCK_ROWS", 7)
    before = Query.objects.filter(project=project).count()
    learning.work_off(project)
    asked = list(Query.objects.filter(project=project, round_number=2).select_related("record"))
    assert sizes == [120 - before]
    assert asked
    assert all(agrees(query, release) for query in asked)


def test_managers_see_minutes_and_anchoring_of_both_groups(crowd):
    reach(crowd, 1)
    learning.work_off(crowd)
    asked = list(Query.objects.filter(round_number=2).order_by("pk"))
    for person in (each.user for each in crowd.memberships.filter(role="annotator")):
        while (held := queue.claim_next(project=crowd, user=person)) is not None:
            query = held.query
            choice = query.suggested if query.suggestion_shown else 1 - query.suggested
            labels.submit_label(assignment=held, choice=choice)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE annotation_assignment held SET created_at = given.created_at - interval '30 seconds'"
            " FROM annotation_label given WHERE given.assignment_id = held.id"
        )
    effect = effect_of(Project.objects.get(pk=crowd.pk))
    shown = sum(bool(query.suggestion_shown) for query in asked)
    assert (effect.shown.questions, effect.blind.questions) == (shown, 8 - shown)
    assert (effect.shown.differing, effect.blind.differing) == (0, 8 - shown)
    for group in (effect.shown, effect.blind):
        assert group.minutes is None or group.minutes == pytest.approx(0.5)
    assert Assignment.objects.filter(query__in=asked).count() == 24


def test_words_about_the_classes_suggest_before_the_first_release(remembered):
    """Version 0 is made of public words, so nothing is charged and no entry names a release."""
    project = open_randomized(**SUGGESTED, class_descriptions=["tool: a hammer or a saw", "fruit: an apple or a pear"])
    learning.fill_crowd(project)
    make_annotators(project, 3)
    learning.work_off(project)
    model = starts.described_model(project)
    opened = list(Query.objects.filter(project=project, state=QueryState.OPEN))
    assert opened
    for query in opened:
        X = featurizer_of(project).transform([learning.shown_text(query)])
        assert query.suggested == int(model.leaders(model.decision_function(X))[0])
        assert query.suggestion_shown is not None
    entries = project.pool_account.entries.all() | project.labels_account.entries.all()
    assert not entries.filter(purpose="suggest the classes that a version finds likely").exists()
    assert set(project.labels_account.entries.values_list("kind", flat=True)).isdisjoint({EntryKind.POST_PROCESSING})
