import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from annotation.choices.presets import PRESETS
from annotation.models import Project, ReportKind, Role
from annotation.questions.services import checks as gold
from annotation.questions.services import flags, guidelines, labels, queue
from annotation.review import services as comparing
from dpal_site.catalogues import read_catalogue
from dpal_site.embedded.servers import REPOSITORY
from tests.clients import browser_of
from tests.factories import (
    add_members,
    answer_once,
    make_annotators,
    make_opener,
    make_project,
    make_user,
    open_messages,
    open_records,
    write_settings,
)
from tests.markup import commas_in_numbers
from tests.openings import begin

pytestmark = pytest.mark.django_db
CATALOGUE = read_catalogue(REPOSITORY / "locale" / "de" / "LC_MESSAGES" / "django.po")
# What is hidden from everybody, and what names things rather than says them.
UNREAD = re.compile(r"<(script|style|code|head)\b.*?</\1>", re.S)
TAG = re.compile(r"<[^>]+>")
FIELD = re.compile(r"%\(\w+\)[sd]|\{[^{}]*\}|%%")


def pieces(message: str) -> list[str]:
    return [part.strip() for part in FIELD.split(TAG.sub("{}", message)) if len(part.strip().split()) >= 3]


ENGLISH = {
    part
    for key, told in CATALOGUE.items()
    for text in key.split("\0")
    for part in pieces(text)
    if key and not any(part in one for one in told)
}


def english_in(html: str) -> set[str]:
    shown = " ".join(unescape(TAG.sub(" ", UNREAD.sub(" ", html))).split())
    return {part for part in ENGLISH if part in shown}


def german(person: User) -> Client:
    return browser_of(person, HTTP_ACCEPT_LANGUAGE="de")


@pytest.fixture
def manager() -> User:
    return make_opener("manager")


@pytest.fixture
def project(manager: User) -> Project:
    return open_messages(manager)


def test_a_managers_pages(project, manager):
    client, found = german(manager), {}
    names = [
        *(
            f"annotation:{name}"
            for name in ("people", "settings", "log", "retention", "configuration", "data", "budget")
        ),
        *(f"annotation:{name}" for name in ("limit_requests", "statement", "label_budget", "labelling", "guidelines")),
        *(f"annotation:{name}" for name in ("reported", "quality", "checks", "review", "invitations", "crowd_links")),
        "prolific:studies",
        "webhooks:webhooks",
        *(f"learner:{name}" for name in ("overview", "dashboard", "plan", "releases", "forget", "closing")),
    ]
    addresses = [reverse(name, args=[project.slug]) for name in names]
    addresses += [reverse("annotation:dataset", args=[project.slug, project.datasets.get().pk])]
    addresses += [begin(client, preset) for preset in PRESETS]
    addresses += [reverse(name) for name in ("annotation:projects", "annotation:new_project", "annotation:tokens")]
    addresses += [reverse(name) for name in ("preferences", "account_email", "mfa_index", "usersessions_list")]
    for address in addresses:
        page = client.get(address, follow=True)
        assert page.status_code == 200, address
        if english := english_in(page.content.decode()):
            found[address] = english
        assert not commas_in_numbers(page.content.decode()), address
    assert not found


def test_an_annotators_pages():
    project = make_project(overlap=2, guidelines="Erst.", price_per_label="0.05", currency="EUR")
    ann, bob = make_annotators(project, 2)
    add_members(project, project.created_by, role=Role.MANAGER)
    open_records(project, 5)
    for choice, person in enumerate((ann, bob)):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    guidelines.save_guidelines(project=project, text="Dann.", examples=[], author=project.created_by)
    held = queue.claim_next(project=project, user=bob)
    flags.flag_question(assignment=held, kind=ReportKind.SENSITIVE, comment="Name")
    comparing.make_report(job_id=str(comparing.start_report(project=project, owner=project.created_by).job_id))
    label = reverse("annotation:label", args=[project.slug])
    pages = [german(ann).get(reverse(f"annotation:{name}", args=[project.slug])) for name in ("label", "why")]
    pages += [
        german(project.created_by).get(reverse(f"annotation:{name}", args=[project.slug])) for name in ("quality",)
    ]
    pages += [german(project.created_by).get(reverse("annotation:reported", args=[project.slug]))]
    pages += [german(project.created_by).get(label), german(make_user()).get(label)]
    gold.pause_member(membership=project.memberships.get(user=ann), reason="checks")
    pages += [german(ann).get(reverse("annotation:own_statistics", args=[project.slug]))]
    held = queue.claim_next(project=project, user=bob)
    pages += [german(bob).post(reverse("annotation:submit", args=[held.pk]), {"choice": 9})]
    pages += [german(ann).post(reverse("annotation:submit", args=[held.pk]), {"choice": 0})]
    pages += [german(ann).post(reverse("annotation:undo", args=[project.slug]), headers={"hx-request": "true"})]
    states = [
        {"state": "paused"},
        {"state": "active", "labels_limit": 0},
        {"labels_limit": None, "answers_per_day": 1},
        {"answers_per_day": None, "encounter_limit": 1},
    ]
    for state in states:
        write_settings(project, **state)
        answer_once(Project.objects.get(pk=project.pk))
        pages += [german(bob).get(label)]
    assert [page.status_code for page in pages[:7]] == [200, 200, 200, 200, 403, 404, 200]
    assert not set().union(*(english_in(page.content.decode()) for page in pages))
