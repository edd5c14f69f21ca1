from decimal import Decimal

import pytest
from django.db import IntegrityError
from django.urls import reverse

from annotation.budget import label_budget
from annotation.errors import InvalidConfiguration
from annotation.models import Configuration, Project, Query
from annotation.questions.services import correcting, labelling, labels, queue
from learner.models import ModelRelease, Round
from learner.rounds.next_step import Step, project_status
from learner.rounds.services import loop
from tests import learning
from tests.factories import (
    asked_project,
    make_annotators,
    make_project,
    make_user,
    open_preset,
    open_records,
    write_settings,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_counter")]
NOTHING = {"labels_limit": None, "money_limit": None, "price_per_label": None, "currency": ""}


def limited(project, **limits):
    return labelling.set_label_budget(project=project, **NOTHING | limits)


def test_what_was_asked_counts_with_its_overlap_and_what_was_given_costs():
    project = make_project(overlap=2)
    first, _second = open_records(project, 2, round_number=1)
    people = make_annotators(project, 2)
    limited(project, money_limit=Decimal("1.00"), price_per_label=Decimal("0.15"), labels_limit=50, currency="EUR")
    for person in people:
        assignment = queue.claim_next(project=project, user=person)
        assert assignment.query_id == first.pk
        labels.submit_label(assignment=assignment, choice=1)
    found = label_budget.label_budget(project)
    assert (found.limit, found.asked, found.given, found.left) == (6, 4, 2, 2)
    assert (found.spent, found.currency) == (Decimal("0.30"), "EUR")
    assert label_budget.questions_left(project) == 1
    limited(project, labels_limit=5)
    assert label_budget.questions_left(project) == 0  # one answer is left, and a question takes two
    limited(project, labels_limit=1)
    assert label_budget.label_budget(project).left == 0
    limited(project)
    assert label_budget.questions_left(project) is None
    assert label_budget.label_budget(project).spent is None


@pytest.mark.parametrize("second_opinion", [0, 1])
def test_how_much_is_asked_does_not_follow_how_often_answers_disagreed(second_opinion):
    """Rounds show how many they asked: a third answer to a question must take no place that a new question had."""
    project = make_project(overlap=2, overlap_limit=3)
    open_records(project, 2, round_number=1)
    limited(project, labels_limit=12)
    assert label_budget.questions_left(project) == 2
    people = make_annotators(project, 3)
    for choice, person in zip((0, second_opinion, 0), people, strict=True):
        assignment = queue.claim_next(project=project, user=person)
        if assignment is not None:
            labels.submit_label(assignment=assignment, choice=choice)
    assert label_budget.label_budget(project).asked == 4 + second_opinion
    assert label_budget.questions_left(project) == 2
    # Where one answer is asked for, nobody can disagree with it.
    alone = make_project(overlap=1, overlap_limit=3)
    open_records(alone, 2, round_number=1)
    limited(alone, labels_limit=12)
    assert label_budget.questions_left(alone) == 10


def test_an_answer_taken_back_and_given_again_is_paid_once():
    project, _, (person,) = asked_project()
    labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=1)
    correcting.undo_label(project=project, user=person)
    labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    assert label_budget.label_budget(project).given == 1


def test_rounds_shrink_to_what_is_left_then_stop_and_train_on_what_there_is():
    project = learning.open_trusted(make_user(), selection="random")
    learning.fill_trusted(project)
    limited(project, labels_limit=17)
    annotator = make_user()
    learning.run_to_release(project, annotator, version=1)
    learning.work_off(project)
    assert learning.label_everything(project, annotator) == 5
    learning.work_off(project)
    # Five are fewer than a training is declared to take, so a manager gives the word.
    assert project_status(project).step == Step.FEW_LABELS
    loop.train_on_few(project=project)
    learning.work_off(project)
    assert list(Round.objects.order_by("number").values_list("requested", flat=True)) == [12, 5]
    assert Query.objects.count() == 17
    assert ModelRelease.objects.count() == 2
    project.refresh_from_db()
    status = project_status(project)
    assert status.step == Step.LABELS_SPENT
    assert status.sentence == "The annotation budget is spent; a manager can raise it."
    assert queue.queue_state(project=project, user=annotator) == "labels_spent"
    limited(project, labels_limit=40)
    assert loop.advance_project(project_id=project.pk).step == Step.CHOOSING
    assert Round.objects.latest("number").requested == 12


@pytest.mark.parametrize(
    ("limits", "rule"),
    [
        ({"money_limit": Decimal(5)}, "annotation_project_money_has_price"),
        ({"money_limit": Decimal(5), "price_per_label": Decimal(0)}, "no choice declares this value of budget"),
        ({"price_per_label": -1}, "no choice declares this value of budget"),
    ],
)
def test_money_needs_a_price(limits, rule):
    project = make_project()
    with pytest.raises(InvalidConfiguration, match="price_per_label"):
        limited(project, **limits)
    with pytest.raises(IntegrityError, match=rule):
        write_settings(project, **limits)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("price_per_label", "0.12345"),
        ("price_per_label", "1e-2"),
        ("price_per_label", 0.5),
        ("money_limit", "-1.00"),
        ("money_limit", "99999999999.00"),
        ("money_limit", ""),
        ("currency", "EURO"),
        ("currency", "E1R"),
        ("labels_limit", -1),
        ("labels_limit", "7"),
    ],
)
def test_the_database_takes_no_amount_that_is_none(name, value):
    project = make_project(price_per_label="0.5", currency="EUR")
    document = {**project.configuration.document}
    document["budget"] = {**document["budget"], name: value}
    with pytest.raises(IntegrityError, match="no choice declares this value of budget"):
        Configuration.objects.create(project=project, version=2, document=document, digest="0" * 64)
    document["budget"][name] = {"currency": "NOK", "labels_limit": 7}.get(name, "0.25")
    Configuration.objects.create(project=project, version=2, document=document, digest="0" * 64)


def test_a_change_of_money_is_a_version_with_a_name_and_words(client):
    manager = make_user()
    project = open_preset(manager, "voice-crowd")
    limited(project, money_limit=Decimal("12.5"), price_per_label=Decimal("0.05"), currency="EUR", actor=manager)
    stored = Project.objects.get(pk=project.pk).configuration
    assert (stored.version, stored.created_by) == (2, manager)
    assert stored.document["budget"] == {
        "labels_limit": None,
        "money_limit": "12.50",
        "price_per_label": "0.0500",
        "currency": "EUR",
    }
    assert project.changes.get().fields == {
        "money_limit": [None, "12.50"],
        "price_per_label": [None, "0.0500"],
        "currency": ["", "EUR"],
    }
    limited(project, money_limit=Decimal("12.50"), price_per_label=Decimal("0.0500"), currency="EUR")
    assert Configuration.objects.filter(project=project).count() == 2  # the same amounts are no change
    client.force_login(manager)
    page = client.get(reverse("annotation:settings", args=[project.slug])).content.decode()
    assert "Price of an answer" in page
    assert "0.0500" in page


def test_a_secret_sample_has_no_limit_because_stopping_would_tell_its_size():
    project = learning.open_trusted(make_user(), selection="secret_sample")
    for limits in ({"labels_limit": 5}, {"money_limit": Decimal(5), "price_per_label": Decimal(1)}):
        with pytest.raises(InvalidConfiguration, match="secret"):
            limited(project, **limits)
        with pytest.raises(IntegrityError, match="annotation_project_limit_tells_nothing"):
            write_settings(project, **limits)
    assert limited(project, price_per_label=Decimal(1), currency="NOK").price_per_label == 1
