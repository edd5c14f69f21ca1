import re
from datetime import time

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.models import Dataset, Membership, Role
from annotation.models.configurations import KNOWN
from annotation.projects.selectors import project_cards
from annotation.projects.services import opening
from annotation.questions.services import labels, queue
from learner.models import Evaluation, ModelRelease
from tests import learning
from tests.clients import browser_of
from tests.factories import add_members, make_project, make_user, open_records
from tests.markup import tight

pytestmark = pytest.mark.django_db(transaction=True)


MONEY = ("learner:overview", "learner:dashboard", "annotation:budget")


@pytest.fixture
def manager(project):
    return project.created_by


@pytest.fixture
def project(remembered, request):
    return learning.begin_experts(remembered, released="release" in request.fixturenames)


def listed(person) -> str:
    client = browser_of(person)
    return tight(client.get(reverse("annotation:projects")).content.decode())


def test_a_manager_and_an_engineer_read_accuracy_and_budget(project, release, manager):
    engineer = make_user()
    Membership.objects.create(project=project, user=engineer, role=Role.ENGINEER)
    evaluation = release.evaluations.get()
    share = f"{100 * evaluation.correct / evaluation.examples:.1f} %"
    constant = f"{100 * evaluation.constant_correct / evaluation.examples:.1f} %"
    for person in (manager, engineer):
        page = listed(person)
        assert f"<strong>{share}</strong>Accuracy on public data, version 1; a constant {constant}" in page
        assert 'class="meter"' in page


@pytest.mark.parametrize(
    ("correct", "described", "words"), [(0, None, "always giving one answer"), (60_000, 70_000, "version 0")]
)
def test_a_losing_model_says_so_on_the_list_and_the_overview(project, release, manager, correct, described, words):
    learning.upload(project, [["a ripe plum", learning.CLASSES[0]]], ["text", "label"], role="public_test")
    other = Dataset.objects.filter(project=project).latest("pk")
    counts = {"examples": 100_000, "correct": correct, "constant_correct": 50_000, "described_correct": described}
    Evaluation.objects.create(release=release, dataset=other, **counts)
    client = browser_of(manager)
    overview = tight(client.get(reverse("learner:overview", args=[project.slug])).content.decode())
    for page in (listed(manager), overview):
        assert f"No better than {words}" in page
        assert " loses" in page
    assert ("version 0 " in listed(manager)) is (described is not None)


def test_a_spent_budget_and_a_paused_project_do_not_look_healthy(project, manager):
    assert "Used up" not in listed(manager)
    spent = learning.open_trusted(manager, selection="random", pool_epsilon=2.0, maximum_releases=1)
    learning.fill_trusted(spent)
    learning.run_to_release(spent, make_user(), version=1)
    opening.pause_project(project=spent)
    client = browser_of(manager)
    for page in (listed(manager), tight(client.get(reverse("learner:overview", args=[spent.slug])).content.decode())):
        assert "Used up" in page
        assert 'class="tag wait">paused' in page


def test_an_account_that_paid_once_for_all_answers_looks_healthy(manager):
    settings = {"label_randomizer": "randomized_consensus", "answers_epsilon": 4.0, "labels_epsilon": 4.0}
    settings |= {"estimator": "channel", "features": "static_encoder", "repeat_votes": False}
    crowd = learning.open_crowd(manager, **settings)
    learning.fill_crowd(crowd)
    client = browser_of(manager)
    pages = [reverse("annotation:projects"), *(reverse(name, args=[crowd.slug]) for name in MONEY)]
    assert not any("Paid once for all answers" in client.get(page).content.decode() for page in pages)
    learning.run_to_release(crowd, make_user(), version=1)
    for page in pages:
        shown = tight(client.get(page).content.decode())
        assert "Paid once for all answers" in shown
        assert "Used up" not in shown
    assert "2 more models fit and cost nothing." in shown
    card = next(card for card in project_cards(user=manager) if card.project == crowd)
    assert card.look != "spent"


def test_an_annotator_reads_neither(project, release):
    annotator = make_user()
    Membership.objects.create(project=project, user=annotator, role=Role.ANNOTATOR)
    page = listed(annotator)
    assert project.name in page
    assert "on public data" not in page
    assert 'class="meter"' not in page


def test_who_labels_reads_whether_a_question_waits(django_assert_num_queries):
    owner = make_user()
    projects = [make_project(overlap=1), make_project(overlap=1), make_project(overlap=1)]
    for project in projects:
        add_members(project, owner)
    with django_assert_num_queries(3):
        assert [card.waiting.asks for card in project_cards(user=owner)] == [False] * 3
    assert listed(owner).count("No question right now.") == 3
    for project in projects:
        open_records(project, 1)
    with django_assert_num_queries(3):
        assert [card.waiting.asks for card in project_cards(user=owner)] == [True] * 3
    assert "No question right now." not in listed(owner)
    answered, held, paused = projects
    labels.submit_label(assignment=queue.claim_next(project=answered, user=owner), choice=0)
    queue.claim_next(project=held, user=owner)
    Membership.objects.filter(project=paused, user=owner).update(paused_at=timezone.now())
    assert {card.project: card.waiting.asks for card in project_cards(user=owner)} == {
        answered: False,
        held: True,
        paused: False,
    }
    page = listed(owner)
    assert page.count("No question right now.") == 1
    assert page.count("You are paused in this project") == 1


def limited(person, **limits):
    project = make_project(overlap=1, **limits)
    add_members(project, person)
    records = open_records(project, 3)
    assignment = queue.claim_next(project=project, user=person)
    if assignment is not None:
        labels.submit_label(assignment=assignment, choice=0)
    assert records
    return project


def said_by_page(project, person) -> str:
    client = browser_of(person)
    page = tight(client.get(reverse("annotation:label", args=(project.slug,))).content.decode())
    return re.search(r"<h1[^>]*>(.*?)</h1>", page)[1].strip()


def test_a_card_says_what_the_page_would_say_of_limits_and_quiet_hours(django_assert_num_queries):
    person = make_user()
    now = timezone.localtime(timezone=timezone.get_default_timezone()).time().replace(second=0, microsecond=0)
    hours = {"quiet_from": now, "quiet_until": time((now.hour + 2) % 24, 30)}
    limits = ({"answers_per_person": 1}, {"answers_per_day": 1}, {"encounter_limit": 1}, hours)
    projects = [limited(person, **limit) for limit in limits]
    add_members(paused := make_project(overlap=1), person)
    open_records(paused, 1)
    Membership.objects.filter(project=paused, user=person).update(paused_at=timezone.now())
    KNOWN.clear()
    # Roles, projects, documents that this process has not read, three kinds of answers, and what waits.
    with django_assert_num_queries(7):
        cards = {card.project: card.waiting for card in project_cards(user=person)}
    assert {project: waiting.asks for project, waiting in cards.items()} == dict.fromkeys([*projects, paused], False)
    assert [cards[project].state for project in projects] == [*list(limits[0]), *limits[1], "encounters", "quiet_hours"]
    page = listed(person)
    for project in (*projects, paused):
        assert said_by_page(project, person) in page
        assert "No question right now." not in page
    # However many projects there are.
    for limit in limits:
        limited(person, **limit)
    with django_assert_num_queries(6):
        assert len(project_cards(user=person)) == 9


def test_before_the_first_model_the_card_says_so(project, manager):
    assert "No model is released yet." in listed(manager)


def test_a_retired_release_stands_on_no_card(project, release, manager):
    ModelRelease.objects.filter(pk=release.pk).update(state="retired", retired_reason="wrong classes")
    (card,) = project_cards(user=manager)
    assert card.model is None


def test_the_number_of_statements_does_not_grow_with_the_projects(project, release, manager, django_assert_num_queries):
    with django_assert_num_queries(5):
        assert len(project_cards(user=manager)) == 1
    for _ in range(3):
        learning.open_crowd(manager)
    with django_assert_num_queries(5):
        cards = project_cards(user=manager)
    assert [len(card.budgets) for card in cards] == [2, 2, 2, 1]
