from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from annotation.data.services import forgetting, retention
from annotation.errors import InvalidChoice
from annotation.models import Project, Record, SpanSet
from annotation.projects.services import lifecycle
from annotation.questions.selectors import answer_name, refuse_no_answer, spans_of
from annotation.questions.services.spans import span_set_number
from dpal.spans.text import Span
from tests.factories import answer_next, asked_project, make_project
from tests.owning import as_owner
from tests.refusing import refused

pytestmark = pytest.mark.django_db
TEXT = "Ada flew to Paris"
ADA, PARIS = Span(0, 3, "name"), Span(12, 17, "place")


@pytest.fixture
def project(db):
    return make_project(question_kind="spans", classes=["name", "place"])


def test_equal_sets_of_a_project_have_one_number(project):
    number = span_set_number(project, [PARIS, ADA], TEXT)
    assert number == span_set_number(project, [ADA, PARIS, ADA], TEXT) != span_set_number(project, [ADA], TEXT)
    assert span_set_number(project, [], TEXT) == 0
    assert spans_of(project, [number, 0]) == {number: (ADA, PARIS), 0: ()}
    other = make_project(question_kind="spans", classes=["name", "place"])
    assert span_set_number(other, [PARIS], TEXT) not in (0, number)
    assert answer_name(project, number, TEXT) == "name: Ada; place: Paris"
    assert answer_name(project, 0) == "no spans"


@pytest.mark.parametrize(
    ("spans", "text"),
    [
        ([Span(0, 3, "name"), Span(2, 5, "place")], TEXT),
        ([Span(12, 18, "place")], TEXT),
        ([Span(3, 3, "name")], TEXT),
        ([Span(0, 4, "name")], TEXT),
        ([Span(0, 3, "date")], TEXT),
        ([Span(64, 65, "name")], "a " * 33),
    ],
)
def test_other_spans_are_refused_without_a_word_of_the_text(project, spans, text):
    with pytest.raises(InvalidChoice) as told:
        span_set_number(project, spans, text)
    assert "Paris" not in str(told.value)
    assert not SpanSet.objects.exists()


def test_an_answer_is_a_stored_set(project):
    refuse_no_answer(project, 0)
    refuse_no_answer(project, span_set_number(project, [ADA], TEXT))
    with pytest.raises(InvalidChoice):
        refuse_no_answer(project, 2**30)


def test_rules_of_the_table(project):
    number = span_set_number(project, [ADA], TEXT)
    with refused("annotation_spanset_number"):
        SpanSet.objects.create(project=project, number=number, spans='[[0,1,"name"]]')
    with refused("annotation_spanset_once"):
        SpanSet.objects.create(project=project, number=number + 1, spans='[[0,3,"name"]]')
    for number, spans in ((0, '[[0,1,"name"]]'), (2, "[]")):
        with refused("annotation_spanset_says_something"):
            SpanSet.objects.create(project=project, number=number, spans=spans)
    with as_owner(), refused("annotation_spanset_fixed"):
        SpanSet.objects.update(spans='[[0,1,"name"]]')


def test_sets_go_with_their_project(project):
    span_set_number(project, [ADA], TEXT)
    lifecycle.erase_content(project=project)
    assert not SpanSet.objects.exists()


def test_types_go_by_their_present_names(project):
    SpanSet.objects.create(project=project, number=1, spans='[[0,3,"person"]]')
    Project.objects.filter(pk=project.pk).update(renamed_classes={"person": "name"})
    project.refresh_from_db()
    assert spans_of(project, [1]) == {1: (ADA,)}


@pytest.mark.django_db(transaction=True)
def test_answers_at_the_same_time_have_numbers_of_their_own():
    project = make_project(question_kind="spans", classes=["name", "place"])

    def store(place):
        try:
            return span_set_number(Project.objects.get(pk=project.pk), [Span(4 + place % 4, 8, "name")], TEXT)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        numbers = list(threads.map(store, range(16)))
    assert numbers == numbers[:4] * 4
    assert len(set(numbers)) == 4


@pytest.mark.django_db(transaction=True)
def test_sets_go_with_the_last_answer_that_refers_to_them():
    project, asked, (person,) = asked_project(3, 1, question_kind="spans", classes=["name", "place"])
    mine = Record.objects.filter(query__in=asked[:2])
    mine.update(contributor=forgetting.pseudonym_of("anna"))
    first, second = (span_set_number(project, [Span(0, end, "name")], "record one") for end in (6, 10))
    for number in (first, second, second):
        answer_next(project, person, number)
    request = forgetting.request_forgetting(project=project, name="anna", actor="m", send=False)
    forgetting.forget_records(forgetting=request)
    assert [one.number for one in SpanSet.objects.all()] == [second]
    retention.set_retention(project=project, actor="m", answers_days=30)
    retention.erase_overdue(project=project, now=timezone.now() + timedelta(days=31))
    assert not SpanSet.objects.exists()
    assert span_set_number(project, [Span(0, 6, "name")], "record one") > second


@pytest.mark.django_db(transaction=True)
def test_a_set_stays_while_an_answer_with_it_is_being_stored():
    project, _asked, (person,) = asked_project(1, 1, question_kind="spans", classes=["name", "place"])
    number = span_set_number(project, [ADA], TEXT)

    def erase():
        try:
            with transaction.atomic():
                forgetting.delete_unused_spans(project)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        refuse_no_answer(project, number)
        threads.submit(erase).result()
        answer_next(project, person, number)
    assert spans_of(project, [number]) == {number: (ADA,)}
    erase()
    assert SpanSet.objects.get().number == number
