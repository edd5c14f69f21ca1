"""A manager's pages about labelling: settings, guidelines in versions, and what annotators report."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Guidelines, Query, QueryState, Report, ReportKind, Role
from annotation.questions.services import labels, queue
from annotation.reports.services import reporting
from tests.factories import (
    add_members,
    make_annotators,
    make_candidates,
    make_project,
    make_user,
    open_records,
    write_settings,
)

pytestmark = pytest.mark.django_db
PAGES = ["labelling", "guidelines", "reported"]
SETTINGS = {"skips_to_set_aside": 2, "answers_per_person": "", "answers_per_day": 5, "encounter_limit": ""}


@pytest.fixture
def project():
    return make_project(guidelines="As it is.")


def browser_of(person):
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def web(project):
    manager = make_user()
    add_members(project, manager, role=Role.MANAGER)
    return browser_of(manager)


def set_one_aside(project):
    (query,) = open_records(project, 1)
    (person,) = make_annotators(project, 1)
    assignment = queue.claim_next(project=project, user=person)
    labels.skip_assignment(assignment=assignment, reason="unsure")
    query.refresh_from_db()
    assert query.state == QueryState.SET_ASIDE
    return query, assignment


class TestWhoMay:
    @pytest.mark.parametrize("name", PAGES)
    def test_managers_only(self, project, web, name):
        address = reverse(f"annotation:{name}", args=(project.slug,))
        assert web.get(address).status_code == 200
        assert Client().get(address).status_code == 302
        assert browser_of(make_user()).get(address).status_code == 404
        for role in (Role.ANNOTATOR, Role.ENGINEER):
            person = make_user()
            add_members(project, person, role=role)
            assert browser_of(person).get(address).status_code == 404
            # What only shows something takes nothing that is sent, from nobody.
            refusal = 405 if name == "reported" else 404
            assert browser_of(person).post(address, SETTINGS).status_code == refusal

    def test_a_question_of_another_project_cannot_be_decided_about(self, web, project):
        query, assignment = set_one_aside(make_project())
        report = reporting.comment_on(assignment=assignment, comment="odd")
        assert web.post(reverse("annotation:decide", args=(project.slug, query.pk))).status_code == 404
        web.post(reverse("annotation:resolve", args=(project.slug, report.pk)))
        report.refresh_from_db()
        assert report.resolved_at is None


class TestSettings:
    def test_they_are_stored(self, project, web):
        address = reverse("annotation:labelling", args=(project.slug,))
        sent = SETTINGS | {"confirm_answers": "on", "quiet_from": "22:00", "quiet_until": "06:30"}
        assert web.post(address, sent).status_code == 302
        project.refresh_from_db()
        assert (project.confirm_answers, project.skips_to_set_aside, project.answers_per_day) == (True, 2, 5)
        assert (project.answers_per_person, project.quiet_until.hour) == (None, 6)
        assert 'value="22:00"' in web.get(address).content.decode()

    @pytest.mark.parametrize(
        "wrong",
        [
            {"quiet_from": "22:00"},
            {"quiet_from": "22:00", "quiet_until": "22:00"},
            {"skips_to_set_aside": 0},
            {"answers_per_day": -1},
            {"encounter_limit": 0},
        ],
    )
    def test_what_makes_no_sense_is_refused(self, project, web, wrong):
        response = web.post(reverse("annotation:labelling", args=(project.slug,)), SETTINGS | wrong)
        assert response.status_code == 422
        project.refresh_from_db()
        assert project.answers_per_day is None

    def test_a_secret_choice_has_no_limits_on_a_person(self, project, web):
        write_settings(project, selection="secret_sample", selection_rate=0.1)
        address = reverse("annotation:labelling", args=(project.slug,))
        html = web.get(address).content.decode()
        for name in ("answers_per_person", "answers_per_day", "encounter_limit"):
            assert re.search(rf'name="{name}"[^>]*disabled', html)
        assert "one record would keep another from being answered" in html
        assert web.post(address, SETTINGS | {"answers_per_person": 1, "encounter_limit": 1}).status_code == 302
        project.refresh_from_db()
        assert (project.skips_to_set_aside, project.answers_per_day) == (2, None)
        assert (project.answers_per_person, project.encounter_limit) == (None, None)


class TestGuidelines:
    def test_a_change_is_a_new_version_and_the_old_one_stays(self, project, web):
        address = reverse("annotation:guidelines", args=(project.slug,))
        sent = {"text": "As it will be.", "examples": "rain? | music | no, a song\n\ngoal | sport"}
        assert web.post(address, sent).status_code == 302
        html = web.get(address).content.decode()
        assert "Version 2." in html
        assert "rain? | music | no, a song" in html
        assert "As it is." in html
        assert Guidelines.objects.get(version=2).examples == [
            {"text": "rain?", "choice": 1, "reason": "no, a song"},
            {"text": "goal", "choice": 0, "reason": ""},
        ]

    def test_a_preview_shows_them_and_stores_nothing(self, project, web):
        address = reverse("annotation:guidelines", args=(project.slug,))
        sent = {"text": "# Songs\n\n- *all* of them <b>", "examples": "rain? | music | no, a song", "preview": "1"}
        html = web.post(address, sent).content.decode()
        assert '<h2 dir="auto">Songs</h2>' in html
        assert "<em>all</em> of them &lt;b&gt;" in html
        assert "no, a song</span>" in html
        assert not Guidelines.objects.exists()

    @pytest.mark.parametrize("examples", ["rain?", "rain? | weather", "| music"])
    def test_an_example_that_cannot_be_read_is_named(self, project, web, examples):
        address = reverse("annotation:guidelines", args=(project.slug,))
        response = web.post(address, {"text": "New.", "examples": "goal | sport\n" + examples})
        assert response.status_code == 422
        assert "Line 2" in response.content.decode()
        assert not Guidelines.objects.exists()


class TestReports:
    def page(self, web, project):
        return web.get(reverse("annotation:reported", args=(project.slug,))).content.decode()

    def test_what_was_set_aside_is_listed_and_asked_again(self, project, web):
        query, assignment = set_one_aside(project)
        reporting.comment_on(assignment=assignment, comment="half a sentence")
        html = self.page(web, project)
        assert f"Question {query.pk}" in html
        assert "1 person: I cannot tell." in html
        assert "half a sentence" in html
        settings = web.get(reverse("annotation:labelling", args=(project.slug,))).content.decode()
        assert "1 question waits for you" in settings
        web.post(reverse("annotation:decide", args=(project.slug, query.pk)), {"decision": "ask"})
        query.refresh_from_db()
        assert query.state == QueryState.OPEN
        assert f"Question {query.pk}" not in self.page(web, project)

    def test_what_is_left_out_is_gone(self, project, web):
        query, _assignment = set_one_aside(project)
        address = reverse("annotation:decide", args=(project.slug, query.pk))
        assert web.post(address, {"decision": "leave"}).status_code == 302
        assert Query.objects.get().state == QueryState.WITHDRAWN
        assert web.post(address, {"decision": "ask"}).status_code == 422

    def test_a_record_is_shown_to_a_manager_who_is_asked_about_records_only(self, project, web):
        set_one_aside(project)
        assert "record 0" not in self.page(web, project)
        add_members(project, web.session and project.memberships.get(role=Role.MANAGER).user)
        assert "record 0" in self.page(web, project)

    def test_gate_output_is_shown(self):
        project = make_project(oracle="crowd")
        manager = make_user()
        add_members(project, manager, role=Role.MANAGER)
        (candidate,) = make_candidates(project, ["my name is somebody"])
        queue.open_queries(project=project, round_number=1, query_ids=[candidate.pk])
        (person,) = make_annotators(project, 1)
        assignment = queue.claim_next(project=project, user=person)
        reporting.flag_question(assignment=assignment, kind=ReportKind.SENSITIVE, comment="a name")
        html = self.page(browser_of(manager), project)
        assert "my name is somebody" in html
        assert "Sensitive: nobody should see this" in html

    def test_a_comment_on_an_open_question_is_listed_until_it_is_done_with(self, project, web):
        open_records(project, 1)
        (person,) = make_annotators(project, 1)
        report = reporting.comment_on(assignment=queue.claim_next(project=project, user=person), comment="two fit")
        assert "two fit" in self.page(web, project)
        web.post(reverse("annotation:resolve", args=(project.slug, report.pk)))
        assert "two fit" not in self.page(web, project)
        assert Report.objects.get().resolved_by is not None
