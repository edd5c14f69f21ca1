"""Tags of questions: put on, taken off, in exports, gone with the question, bounded."""

import csv
import io

import pytest
from django.db import IntegrityError, transaction

from annotation.browsing.services import saved_views, tagging
from annotation.data.services import forgetting
from annotation.errors import InvalidConfiguration
from annotation.exports.services.label_files import export_labels
from annotation.models import Query, QueryState
from annotation.models.marks import SavedView, Tag, Tagged
from annotation.questions.services import labels, queue
from tests.factories import make_annotators, make_project, make_user, open_records

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    return make_project()


@pytest.fixture
def asked(project):
    (person,) = make_annotators(project, 1)
    open_records(project, 3)
    for _ in range(2):
        labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    return list(Query.objects.order_by("priority").values_list("pk", flat=True))


def test_exports_bring_them(project, asked):
    for name in ("odd", "a, b"):
        tagging.tag_chosen(project=project, query_ids=[asked[0]], name=name)
    rows = list(csv.DictReader(io.StringIO(b"".join(export_labels(project=project, format="csv")).decode())))
    assert [row["tags"] for row in rows] == ['["a, b", "odd"]', ""]
    lines = b"".join(export_labels(project=project, format="jsonl")).decode().splitlines()
    assert '"tags": ["a, b", "odd"]' in lines[0]
    assert '"tags": []' in lines[1]


def test_only_what_was_asked_in_this_project(project, asked):
    Query.objects.filter(pk=asked[2]).update(state=QueryState.GOLD)
    assert tagging.tag_chosen(project=project, query_ids=asked, name="x") == asked[:2]
    assert tagging.tag_chosen(project=make_project(), query_ids=asked, name="x") == []
    assert Tag.objects.count() == 1


def test_the_tag_goes_with_the_last_question(project, asked):
    tagging.tag_chosen(project=project, query_ids=asked[:2], name="x")
    assert tagging.untag_chosen(project=project, query_ids=asked[:1], name="x") == asked[:1]
    assert Tag.objects.exists()
    forgetting.empty_questions(Query.objects.filter(pk=asked[1]), project=project)
    assert not Tag.objects.exists()
    assert tagging.tag_chosen(project=project, query_ids=asked[:2], name="y") == asked[:1]


def test_there_is_an_end_of_them(project, asked, monkeypatch):
    monkeypatch.setattr(tagging, "MAX_TAGS", 1)
    tagging.tag_chosen(project=project, query_ids=asked, name="x")
    for name in ("y", "z" * 41, " "):
        with pytest.raises(InvalidConfiguration):
            tagging.tag_chosen(project=project, query_ids=asked, name=name)


def test_the_database_keeps_the_rules(project, asked):
    tagging.tag_chosen(project=project, query_ids=asked[:1], name="x")
    tag = Tag.objects.get()
    for broken, wrong in (
        ("annotation_tag_once", lambda: Tag.objects.create(project=project, name="x")),
        ("annotation_tag_says_something", lambda: Tag.objects.create(project=project, name="")),
        ("annotation_tagged_once", lambda: Tagged.objects.create(tag=tag, query_id=asked[0])),
        ("annotation_savedview_keeps_no_words", lambda: keep(project, {"text": "apple"})),
        ("annotation_savedview_keeps_no_words", lambda: keep(project, {}, name="")),
    ):
        with pytest.raises(IntegrityError, match=broken), transaction.atomic():
            wrong()


def keep(project, chosen, name="view"):
    return SavedView.objects.create(project=project, owner=make_user(), name=name, chosen=chosen)


def test_one_person_keeps_so_many_views(project, monkeypatch):
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 1)
    owner = make_user()
    for chosen in ({"state": "open"}, {"state": "closed"}):
        saved_views.keep_view(project=project, owner=owner, name="one", chosen=chosen, shared=False)
    with pytest.raises(InvalidConfiguration, match="at most 1"):
        saved_views.keep_view(project=project, owner=owner, name="two", chosen={}, shared=False)
