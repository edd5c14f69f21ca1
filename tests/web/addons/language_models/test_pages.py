import pytest
from django.test import Client
from django.urls import reverse

from addons.language_models.models import MachineAnnotator
from annotation.models import Query
from annotation.models.quality import Machine
from annotation.questions.services import labels, queue
from annotation.review.selectors import payments_csv
from tests.clients import browser_of
from tests.factories import add_members, make_annotators, make_project, make_user, open_records
from tests.markup import tight

pytestmark = pytest.mark.django_db


@pytest.fixture
def scene():
    project = make_project(overlap=2)
    (person,) = make_annotators(project, 1)
    machine = make_user("machine-7", is_active=False)
    add_members(project, machine)
    account = Machine.objects.create(project=project, user=machine)
    MachineAnnotator.objects.create(machine=account, requests=3, unusable=1, faults=1, last_fault="HTTP 429")
    open_records(project, 2)
    for who, choices in ((person, (0, 1)), (machine, (0, 0))):
        for choice in choices:
            labels.submit_label(assignment=queue.claim_next(project=project, user=who), choice=choice)
    owner, browser = make_user(), Client()
    add_members(project, owner, role="manager")
    browser.force_login(owner)
    return project, person, browser


def test_managers_see_which_is_the_machine_how_it_agrees_and_what_failed(scene):
    project, person, browser = scene
    page = tight(browser.get(reverse("annotation:quality", args=[project.slug])).content.decode())
    assert page.count('<span class="tag">machine</span>') == 1
    assert "1 of 2: 50.0 % (95 % interval 9.5 to 90.5)" in page
    assert "HTTP 429" in page
    people = tight(browser.get(reverse("annotation:people", args=[project.slug])).content.decode())
    assert people.count('<span class="tag">machine</span>') == 1
    assert Query.objects.count() == 2
    assert person.username in "".join(payments_csv(project))
    assert "machine-7" not in "".join(payments_csv(project))


def test_annotators_are_not_told_who_else_answers(scene):
    project, person, _browser = scene
    client = browser_of(person)
    page = client.get(reverse("annotation:label", args=[project.slug])).content.decode()
    assert "machine" not in page
