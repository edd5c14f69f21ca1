import csv
import io
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse
from django.utils import timezone, translation

from annotation.budget.action_words import SENTENCES, action_sentence
from annotation.models import Role
from annotation.models.history import Action
from annotation.work.services.history import NOTED_APPS, UNNOTED, UNNOTED_ELSEWHERE
from annotation.work.services.tokens import Scope, create_token
from dpal_site.api import api
from tests.clients import browser_of
from tests.factories import add_members, make_manager, make_user
from tests.permission_scene import named_patterns
from tests.programs import Caller

pytestmark = pytest.mark.django_db
# Pages that only show, so that no line ever names them.
SHOWING = {
    "annotation": "projects project configuration_file"
    " log log_csv crowd_done own_statistics own_answers questions question asked_image checks check_image review"
    " review_image payments opinions uploads dataset bad_rows download_labels budget statement statement_csv"
    " export_file statement_json limit_requests reported why question_image guideline_picture told_picture"
    " populations population population_statement",
    "learner": "overview standing next_step card dashboard work_list dashboard_plot dashboard_csv closing"
    " forget plan_plot draft_plan_plot releases release accuracy_plot measure_plot release_file shares_csv",
}


def page_names():
    for entry in get_resolver().url_patterns:
        if isinstance(entry, URLResolver) and entry.namespace in SHOWING:
            yield from (f"{entry.namespace}:{pattern.name}" for pattern in entry.url_patterns)


@pytest.fixture
def client(project):
    manager = make_user("manager")
    add_members(project, manager, role=Role.MANAGER)
    return browser_of(manager)


def rows(client, project, **chosen):
    answer = client.get(reverse("annotation:log_csv", args=[project.slug]), chosen)
    return list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode())))[1:]


def test_whatever_changes_something_has_a_sentence() -> None:
    showing = {f"{app}:{name}" for app, names in SHOWING.items() for name in names.split()}
    assert showing & set(SENTENCES) == set()
    assert {name for name in page_names() if name not in SENTENCES} == showing | {
        name for name in UNNOTED if name.startswith(tuple(f"{app}:" for app in SHOWING))
    }
    written = {
        f"api:{operation.view_func.__name__}"
        for _prefix, router in api._routers
        for view in router.path_operations.values()
        for operation in view.operations
        if operation.methods != ["GET"]
    }
    assert written - set(UNNOTED) - set(SENTENCES) == set()
    assert set(UNNOTED) & set(SENTENCES) == set()
    assert all(reason for reason in UNNOTED.values())


def test_what_lies_outside_the_log_is_declared_with_a_reason() -> None:
    names = {name for name, _pattern in named_patterns(get_resolver().url_patterns) if name}
    outside = {name for name in names if not name.startswith(tuple(NOTED_APPS))}
    assert {name for name in outside if not name.startswith(tuple(UNNOTED_ELSEWHERE))} == set()
    assert [begin for begin in UNNOTED_ELSEWHERE if not any(name.startswith(begin) for name in outside)] == []
    known = {name for name in names if name.startswith(("annotation:", "learner:", "operations:", "language_models:"))}
    assert {name for name in UNNOTED if not name.startswith("api:")} <= known


def test_a_sentence_names_the_numbers_in_the_readers_language() -> None:
    action = Action(route="learner:retire", target={"version": 3})
    assert action_sentence(action) == "Release: retired (Version 3)"
    with translation.override("de"):
        assert action_sentence(action) == "Freigabe: zurückgezogen (Version 3)"
    assert action_sentence(Action(route="admin:index")) == "admin:index"


def test_the_filters_narrow_the_page_and_the_file(client, project) -> None:
    page = reverse("annotation:log", args=[project.slug])
    whole = client.get(page).content.decode()
    assert "Release: retired (Version 3)" in whole
    assert "Expired data: erased (records 5)" in whole
    assert ">ben</td>" not in client.get(page, {"actor": "ann"}).content.decode()
    assert [row[1] for row in rows(client, project, actor="ben")] == ["ben"]
    assert len(rows(client, project, route="annotation:people")) == 2
    assert rows(client, project, until="2001-01-01") == []
    assert len(rows(client, project, since="2001-01-01")) == 4
    assert len(rows(client, project, since="no day")) == 4


def test_routes_that_share_an_address_are_told_apart(client, project) -> None:
    manager = User.objects.get(memberships__project=project, memberships__role=Role.MANAGER)
    _token, secret = create_token(user=manager, name="t", scopes=list(Scope), lifetime=timedelta(days=1))
    members = f"/api/v1/projects/{project.slug}/members"
    program = Client(headers={"Authorization": f"Bearer {secret}"})
    before = Action.objects.latest("pk").pk
    assert program.get(members).status_code == 200
    body = {"username": make_user("new").get_username(), "role": Role.ANNOTATOR}
    assert program.post(members, body, content_type="application/json").status_code < 300
    (line,) = Action.objects.filter(pk__gt=before)
    assert action_sentence(line) == "Role: given or asked for (REST)"
    # Looking for the next question to review leaves no line, whatever else its address does.
    assert program.post(f"/api/v1/projects/{project.slug}/reviews").status_code == 204
    assert Action.objects.filter(pk__gt=before).count() == 1


def test_a_program_reads_the_same_lines_by_the_same_filters(project):
    program, at = Caller(make_manager(project)), f"projects/{project.slug}/log"
    lines = program.get(at).json()
    assert [(line["who"], line["route"]) for line in lines] == [
        ("", "retention"),
        ("=cmd()", "annotation:people"),
        ("ben", "learner:retire"),
        ("ann", "annotation:people"),
    ]
    assert (lines[2]["what"], lines[2]["target"]) == ("Release: retired (Version 3)", {"version": 3})
    today = timezone.localdate()
    for chosen, found in (
        ({"who": "ann"}, [3]),
        ({"route": "annotation:people"}, [1, 3]),
        ({"since": today + timedelta(days=1)}, []),
        ({"until": today - timedelta(days=1)}, []),
        ({"since": today, "until": today}, [0, 1, 2, 3]),
        ({"since": "0001-01-01", "until": "9999-12-31"}, [0, 1, 2, 3]),
        ({"limit": 2, "offset": 1}, [1, 2]),
    ):
        assert program.get(at, **chosen).json() == [lines[place] for place in found], chosen
    assert program.get(at, since="yesterday").status_code == 422
