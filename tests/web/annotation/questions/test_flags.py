import pytest
from django.urls import reverse

from annotation.models import Query, QueryState, Report, Role
from annotation.questions.services import flags, labels, queue
from tests.factories import add_members, make_annotators, open_records

pytestmark = pytest.mark.django_db


def set_one_aside(project):
    (query,) = open_records(project, 1)
    (person,) = make_annotators(project, 1)
    assignment = queue.claim_next(project=project, user=person)
    labels.skip_assignment(assignment=assignment, reason="unsure")
    query.refresh_from_db()
    assert query.state == QueryState.SET_ASIDE
    return query, assignment


def shown(web, project):
    return web.get(reverse("annotation:reported", args=(project.slug,))).content.decode()


def test_what_was_set_aside_is_listed_and_asked_again(project, web):
    query, assignment = set_one_aside(project)
    flags.comment_on(assignment=assignment, comment="half a sentence")
    html = shown(web, project)
    assert f"Question {query.pk}" in html
    assert "1 person: I cannot tell." in html
    assert "half a sentence" in html
    settings = web.get(reverse("annotation:labelling", args=(project.slug,))).content.decode()
    assert "1 question waits for you" in settings
    web.post(reverse("annotation:decide", args=(project.slug, query.pk)), {"decision": "ask"})
    query.refresh_from_db()
    assert query.state == QueryState.OPEN
    assert f"Question {query.pk}" not in shown(web, project)


def test_what_is_left_out_is_gone(project, web):
    query, _assignment = set_one_aside(project)
    address = reverse("annotation:decide", args=(project.slug, query.pk))
    assert web.post(address, {"decision": "leave"}).status_code == 302
    assert Query.objects.get().state == QueryState.WITHDRAWN
    assert web.post(address, {"decision": "ask"}).status_code == 422


def test_a_record_is_shown_to_a_manager_who_is_asked_about_records_only(project, web):
    set_one_aside(project)
    assert "record 0" not in shown(web, project)
    add_members(project, web.session and project.memberships.get(role=Role.MANAGER).user)
    assert "record 0" in shown(web, project)


def test_a_comment_on_an_open_question_is_listed_until_it_is_done_with(project, web):
    open_records(project, 1)
    (person,) = make_annotators(project, 1)
    report = flags.comment_on(assignment=queue.claim_next(project=project, user=person), comment="two fit")
    assert "two fit" in shown(web, project)
    web.post(reverse("annotation:resolve", args=(project.slug, report.pk)))
    assert "two fit" not in shown(web, project)
    assert Report.objects.get().resolved_by is not None
