"""The cards of the list of projects: who reads where a project stands, and at what price in statements."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Membership, Role
from annotation.projects.selectors import project_cards
from annotation.questions.services import labels, queue
from learner.models import ModelRelease
from tests import learning
from tests.factories import add_members, make_project, make_user, open_records
from tests.markup import tight

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def manager(project):
    return project.created_by


@pytest.fixture
def project(remembered, request):
    return learning.begin_experts(remembered, released="release" in request.fixturenames)


@pytest.fixture
def release(project) -> ModelRelease:
    return project.releases.get()


def listed(person) -> str:
    client = Client()
    client.force_login(person)
    return tight(client.get(reverse("annotation:projects")).content.decode())


def test_a_manager_and_an_engineer_read_accuracy_and_budget(project, release, manager):
    engineer = make_user()
    Membership.objects.create(project=project, user=engineer, role=Role.ENGINEER)
    evaluation = release.evaluations.get()
    share = f"{100 * evaluation.correct / evaluation.examples:.1f} %"
    constant = f"{100 * evaluation.constant_correct / evaluation.examples:.1f} %"
    for person in (manager, engineer):
        page = listed(person)
        assert f"<strong>{share}</strong>right on public data, version 1; a constant {constant}" in page
        assert 'class="meter"' in page


def test_an_annotator_reads_neither(project, release):
    annotator = make_user()
    Membership.objects.create(project=project, user=annotator, role=Role.ANNOTATOR)
    page = listed(annotator)
    assert project.name in page
    assert "right on public data" not in page
    assert 'class="meter"' not in page


def test_who_labels_reads_whether_a_question_waits(django_assert_num_queries):
    owner = make_user()
    projects = [make_project(overlap=1), make_project(overlap=1), make_project(overlap=1)]
    for project in projects:
        add_members(project, owner)
    with django_assert_num_queries(3):
        assert [card.asks for card in project_cards(user=owner)] == [False] * 3
    assert listed(owner).count("No question right now.") == 3
    for project in projects:
        open_records(project, 1)
    with django_assert_num_queries(3):
        assert [card.asks for card in project_cards(user=owner)] == [True] * 3
    assert "No question right now." not in listed(owner)
    answered, held, paused = projects
    labels.submit_label(assignment=queue.claim_next(project=answered, user=owner), choice=0)
    queue.claim_next(project=held, user=owner)
    Membership.objects.filter(project=paused, user=owner).update(paused_at=timezone.now())
    assert {card.project: card.asks for card in project_cards(user=owner)} == {
        answered: False,
        held: True,
        paused: False,
    }
    assert listed(owner).count("No question right now.") == 2


def test_before_the_first_model_the_card_says_so(project, manager):
    assert "No model is released yet." in listed(manager)


def test_a_retired_release_stands_on_no_card(project, release, manager):
    ModelRelease.objects.filter(pk=release.pk).update(state="retired", retired_reason="wrong classes")
    (card,) = project_cards(user=manager)
    assert card.model is None


def test_the_number_of_statements_does_not_grow_with_the_projects(project, release, manager, django_assert_num_queries):
    with django_assert_num_queries(4):
        assert len(project_cards(user=manager)) == 1
    for _ in range(3):
        learning.open_crowd(manager)
    with django_assert_num_queries(4):
        cards = project_cards(user=manager)
    assert [len(card.budgets) for card in cards] == [2, 2, 2, 1]
