"""The pages of a project's progress and of its releases: what they say, and to whom."""

import hashlib

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from annotation.services import projects
from learner.models import ModelRelease, ReleaseState
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def manager():
    return make_user()


@pytest.fixture
def project(manager):
    opened = learning.open_trusted(manager)
    learning.fill_trusted(opened)
    return opened


@pytest.fixture
def release(project) -> ModelRelease:
    return learning.run_to_release(project, make_user(), version=1)


def member(project, role: str) -> Client:
    person = make_user()
    projects.add_member(project=project, user=person, role=role)
    return client_of(person)


def client_of(person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def pages(project, version: int) -> list[str]:
    of_project = [reverse("learner:releases", args=(project.slug,))]
    of_release = [reverse("learner:release", args=(project.slug, version))]
    return [*of_project, *of_release, reverse("learner:release_file", args=(project.slug, version, "card.md"))]


def test_engineers_managers_and_superusers_see_releases(project, release, manager):
    superuser = make_user(is_superuser=True)
    for client in (member(project, Role.ENGINEER), client_of(manager), client_of(superuser)):
        for page in pages(project, 1):
            response = client.get(page)
            assert response.status_code == 200, page
            response.close()


def test_progress_is_for_managers(project, release, manager):
    overview, standing = (reverse(f"learner:{name}", args=(project.slug,)) for name in ("overview", "standing"))
    for page in (overview, standing):
        assert "agreed on" in client_of(manager).get(page).content.decode()
    engineer = member(project, Role.ENGINEER)
    assert engineer.get(overview).url == reverse("learner:releases", args=(project.slug,))
    assert engineer.get(standing).status_code == 404
    for page in pages(project, 1)[:2]:
        shown = engineer.get(page).content.decode()
        assert "agreed on" not in shown
        assert "labels" not in shown


def test_for_annotators_and_strangers_there_are_none(project, release):
    for client in (member(project, Role.ANNOTATOR), client_of(make_user())):
        for page in pages(project, 1):
            assert client.get(page).status_code == 404, page
    assert Client().get(pages(project, 1)[0]).status_code == 302


def test_a_release_page_opens_with_the_limit_and_shows_what_is_spent(project, release, manager):
    page = client_of(manager).get(reverse("learner:release", args=(project.slug, 1))).content.decode()
    assert "ε 20.000" in page
    assert "2.000 spent so far" in page
    assert "at most 12 questions" in page
    assert "12 agreed on" in page
    measured = release.evaluations.get()
    assert f"{100 * measured.correct / measured.examples:.1f} %" in page
    for name, digest in release.digests.items():
        assert name in page
        assert digest in page
    assert "train version 1" in page


def test_a_downloaded_file_has_the_digest_the_page_names(project, release, manager):
    client = client_of(manager)
    for name, digest in release.digests.items():
        response = client.get(reverse("learner:release_file", args=(project.slug, 1, name)))
        assert hashlib.sha256(response.getvalue()).hexdigest() == digest
    assert client.get(reverse("learner:release_file", args=(project.slug, 1, "other.txt"))).status_code == 404
    assert client.get(reverse("learner:release", args=(project.slug, 2))).status_code == 404


def test_the_overview_says_what_is_missing(manager):
    project = learning.open_trusted(manager)
    client = client_of(manager)
    page = reverse("learner:overview", args=(project.slug,))
    assert "upload a pool" in client.get(page).content.decode()
    learning.fill_trusted(project)
    learning.work_off(project)
    shown = client.get(page).content.decode()
    assert "12 questions are open; 12 more labels start version 1" in shown
    assert "random" in shown
    releases = client.get(reverse("learner:releases", args=(project.slug,))).content.decode()
    assert "No model is released yet" in releases


def test_only_a_manager_retires_a_release_and_says_why(project, release, manager):
    address = reverse("learner:retire", args=(project.slug, 1))
    assert member(project, Role.ENGINEER).post(address, {"reason": "no"}).status_code == 403
    client = client_of(manager)
    assert client.get(address).status_code == 200
    assert client.post(address, {"reason": " "}).status_code == 422
    assert client.post(address, {"reason": "trained on <wrong> guidelines"}).status_code == 302
    release.refresh_from_db()
    assert release.state == ReleaseState.RETIRED
    page = client.get(reverse("learner:release", args=(project.slug, 1))).content.decode()
    assert "trained on &lt;wrong&gt; guidelines" in page


def test_the_number_of_statements_does_not_grow_with_the_releases(project, manager, django_assert_max_num_queries):
    annotator = make_user()
    learning.run_to_release(project, annotator, version=3)
    client = client_of(manager)
    with django_assert_max_num_queries(40):
        client.get(reverse("learner:overview", args=(project.slug,)))
    with django_assert_max_num_queries(25):
        client.get(reverse("learner:releases", args=(project.slug,)))


def test_a_manager_closes_a_block_early(manager):
    project = learning.open_secret(manager)
    client = client_of(manager)
    address = reverse("learner:close_block", args=(project.slug,))
    assert client.get(address).status_code == 404
    learning.fill_trusted(project)
    learning.work_off(project)
    overview = client.get(reverse("learner:overview", args=(project.slug,))).content.decode()
    assert "Block 1 closes on" in overview
    assert address in overview
    assert "questions are still open" in client.get(address).content.decode()
    assert member(project, Role.ENGINEER).post(address).status_code == 403
    assert client.post(address).status_code == 302
    learning.work_off(project, version=1)
    engineer = member(project, Role.ENGINEER)
    assert "secret: each of 80 at rate 0.2" in engineer.get(pages(project, 1)[0]).content.decode()
    assert "each of 80 records took part with probability 0.2" in engineer.get(pages(project, 1)[1]).content.decode()


def test_the_overview_says_how_far_the_budget_goes(project, release, manager):
    page = client_of(manager).get(reverse("learner:overview", args=(project.slug,))).content.decode()
    assert "the budget pays for 2 more rounds and 2 more releases, and the plan is complete." in page
