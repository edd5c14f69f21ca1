"""Random choice opened beside a project by REST: the same settings, the same epsilon, under the same common limit."""

import pytest
from django.contrib.auth.models import Permission

from annotation.models import Project, Role
from annotation.models.history import Action
from annotation.projects.services import opening
from privacy.ledger.selectors import guarantee, quota_of
from tests.factories import add_members, make_user, open_population
from tests.programs import Program

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def manager():
    person = make_user("manager")
    person.user_permissions.add(Permission.objects.get(codename="add_project"))
    return person


def opened(manager, **settings):
    values = {"selection": "top_c", "name": "Notes", "classes": ["a", "b"], "question": "Which?", "data_kind": "text"}
    return opening.create_project(preset="pool-experts", owner=manager, **values | settings)


def test_it_is_opened_and_stands_beside(manager):
    project = opened(manager)
    ask = Program(manager, project)
    made = ask("POST", "beside", {}, key="k")
    assert made.status_code == 201
    assert made.json()["name"] == "Notes, random choice"
    project.refresh_from_db()
    companion = project.compared_with
    assert (companion.slug, companion.selection) == (made.json()["slug"], "random")
    same = ("classes", "round_size", "labels_per_release", "estimator", "feature_dimension", "maximum_releases")
    assert [companion.settings[name] for name in same] == [project.settings[name] for name in same]
    assert guarantee(companion.pool_account).epsilon_limit == guarantee(project.pool_account).epsilon_limit
    assert ask("POST", "beside", {}, key="k").json() == made.json()
    assert Project.objects.count() == 2
    line = Action.objects.get()
    assert (line.route, line.project) == ("api:open_beside", companion)
    # What asks at random itself has no other beside it.
    assert Program(manager, companion)("POST", "beside", {}).status_code == 404


def test_under_a_common_limit_it_begins_there(manager):
    population = open_population(unit="record", owner=manager)
    project = opened(manager, population=population, records_per_person=2)
    ask = Program(manager, project)
    made = ask("POST", "beside", {"name": "Chance"}).json()
    quota = quota_of(Project.objects.get(slug=made["slug"]).pool_account)
    assert (made["name"], quota.population, quota.records_per_person) == ("Chance", population, 2)


def test_who_may_not_open_projects_or_manages_nothing(manager):
    project = opened(manager)
    engineer, second, reader = make_user(), make_user(), make_user()
    add_members(project, engineer, role=Role.ENGINEER)
    add_members(project, second, role=Role.MANAGER)
    assert Program(second, project)("POST", "beside", {}).status_code == 403
    reader.user_permissions.add(Permission.objects.get(codename="add_project"))
    engineer.user_permissions.add(Permission.objects.get(codename="add_project"))
    for person in (reader, engineer):
        assert Program(person, project)("POST", "beside", {}).status_code == (404 if person is reader else 403)
    assert Project.objects.count() == 1
    wrong = Program(manager, project)("POST", "beside", {"name": ""})
    assert (wrong.status_code, wrong.json()["parameters"]["field"]) == (422, "name")
